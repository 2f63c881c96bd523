"""What is logged of one message: its id at every step, and nothing that anybody wrote."""

import ast
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.builders import ANN, APP
from tests.support.callback_sink import in_turn
from tests.support.pipeline import API_KEY, PipelineHarness
from waypost.base.clock import SystemClock
from waypost.base.telemetry.logs import set_up_logs
from waypost.base.telemetry.tracing import Tracer, TraceRecord, TraceStep

TEXT: Final = "Meet me behind the old windmill"


@pytest.fixture(params=["debug"])
def records(request: pytest.FixtureRequest, logs: Callable[[], None]) -> Iterator[io.StringIO]:
    """Everything that is logged at a level, as JSON."""
    stream = io.StringIO()
    set_up_logs(SystemClock(), as_json=True, level=request.param, stream=stream)
    yield stream
    logs()


def of_message(records: io.StringIO, message_id: str) -> list[dict[str, Any]]:
    """The records that carry a message's id."""
    lines = [json.loads(line) for line in records.getvalue().splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("message_id") == message_id]


async def test_every_stage_says_what_it_did_with_a_message_by_its_id(records: io.StringIO, make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()

    message_id = await pipeline.send_text(TEXT)
    await pipeline.events_of(message_id, until="delivered")
    await pipeline.wait_for_state(message_id, "delivered")

    told = of_message(records, message_id)
    steps = [one["event"] for one in told]
    parts = {one["part"] for one in told}
    assert parts == {"api", "queue", "operators", "dispatch", "events", "callbacks"}
    assert steps.index("accepted") < steps.index("in flight") < steps.index("operator responded")
    assert {one["level"] for one in told} == {"debug"}
    [accepted] = [one for one in told if one["event"] == "accepted"]
    assert (accepted["app_id"], accepted["partner_id"]) == (APP.id, APP.partner_id)
    [answered] = [one for one in told if one["part"] == "operators"]
    assert answered["outcome"] == "sent"
    assert answered["took_ms"] > 0
    delivered = [one for one in told if one["event"] == "callback attempted" and one["news"] == "delivered"]
    assert [one["status"] for one in delivered] == [200]
    trace = await pipeline.trace(message_id)
    assert {one["callback_id"] for one in told if "callback_id" in one} <= {one["id"] for one in trace["callbacks"]}


async def test_no_record_has_a_text_a_number_a_credential_or_an_operators_id(
    records: io.StringIO, make_pipeline: Any
) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    pipeline.sink.answers = in_turn(500, 200)

    message_id = await pipeline.send_text(TEXT)
    await pipeline.events_of(message_id, until="delivered")

    logged = records.getvalue()
    trace = await pipeline.trace(message_id)
    secrets = (
        TEXT, ANN, APP.phone_number, API_KEY, pipeline.app_token, trace["operator_message_id"], pipeline.sink.url,
    )  # fmt: skip
    assert message_id in logged
    assert [secret for secret in secrets if secret in logged] == []


@pytest.mark.parametrize("records", ["info"], indirect=True)
async def test_what_fails_is_logged_where_nothing_else_is(records: io.StringIO, make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    pipeline.sink.answers = in_turn(500, 200)

    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")

    told = of_message(records, message_id)
    assert [(one["event"], one["status"]) for one in told] == [("callback attempted", 500)]
    assert {one["level"] for one in told} == {"info"}


def test_steps_are_for_those_who_ask() -> None:
    heard: list[TraceRecord] = []
    some = Tracer()
    some.log_to(heard.append, include_successes=False)
    before = some.is_enabled

    no_more = some.trace_to(lambda _told: None)
    while_traced = some.is_enabled
    some.record(TraceStep.ACCEPTED, "one")
    some.record(TraceStep.OPERATOR_RESPONDED, "two", failed=True)
    no_more()

    assert (before, while_traced, some.is_enabled) == (False, True, False)
    assert [told.message_id for told in heard] == ["two"]


def test_every_fact_that_is_told_is_in_the_table() -> None:
    """A fact that nobody has thought about may be somebody's number."""
    named = {name for step in TraceStep for name in step.value.facts}
    said: set[str | None] = set()
    for path in (Path(__file__).parents[2] / "src" / "waypost").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "tracer.record" in text else ():
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name("tracer"), attr="record"), keywords=facts):
                    said |= {one.arg for one in facts}
                case _:
                    pass

    assert said - {"failed", "took_s"} == named
