"""Log records of one message: its id at every step, and no content."""

import ast
import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.builders import ANN, APP
from tests.support.callback_sink import respond_in_turn
from tests.support.pipeline import API_KEY, PipelineHarness
from waypost.base.clock import SystemClock
from waypost.base.telemetry.logs import set_up_logs
from waypost.base.telemetry.tracing import Tracer, TraceRecord, TraceStep

TEXT: Final = "Meet me behind the old windmill"


@pytest.fixture(params=["debug"])
def records(request: pytest.FixtureRequest, logs: Callable[[], None]) -> Iterator[io.StringIO]:
    """Record the log at a level, as JSON."""
    stream = io.StringIO()
    set_up_logs(SystemClock(), as_json=True, level=request.param, stream=stream)
    yield stream
    logs()


def message_records(records: io.StringIO, message_id: str) -> list[dict[str, Any]]:
    """Return the records with a message's id."""
    lines = [json.loads(line) for line in records.getvalue().splitlines() if line.startswith("{")]
    return [line for line in lines if line.get("message_id") == message_id]


async def test_every_stage_logs_its_step_with_the_message_id(records: io.StringIO, make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()

    message_id = await pipeline.send_text(TEXT)
    await pipeline.events_of(message_id, until="delivered")
    await pipeline.wait_for_state(message_id, "delivered")

    logged = message_records(records, message_id)
    steps = [record["event"] for record in logged]
    parts = {record["logger"] for record in logged}
    assert parts == {"api", "queue", "operators", "dispatch", "events", "callbacks"}
    assert steps.index("accepted") < steps.index("in flight") < steps.index("operator responded")
    assert {record["level"] for record in logged} == {"debug"}
    [accepted] = [record for record in logged if record["event"] == "accepted"]
    assert (accepted["app_id"], accepted["partner_id"]) == (APP.id, APP.partner_id)
    [responded] = [record for record in logged if record["logger"] == "operators"]
    assert responded["outcome"] == "accepted"
    assert responded["took_ms"] > 0
    attempts = [record for record in logged if record["event"] == "callback attempted"]
    delivered = [attempt for attempt in attempts if attempt["callback_event"] == "delivered"]
    assert [attempt["status"] for attempt in delivered] == [200]
    trace = await pipeline.trace(message_id)
    logged_ids = {record["callback_id"] for record in logged if "callback_id" in record}
    assert logged_ids <= {callback["id"] for callback in trace["callbacks"]}


async def test_no_record_contains_a_text_a_number_a_credential_or_an_operators_id(
    records: io.StringIO, make_pipeline: Any
) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    pipeline.sink.choose_status = respond_in_turn(500, 200)

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
async def test_failures_are_logged_at_a_level_without_successes(records: io.StringIO, make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.open_window()
    pipeline.sink.choose_status = respond_in_turn(500, 200)

    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")

    logged = message_records(records, message_id)
    assert [(record["event"], record["status"]) for record in logged] == [("callback attempted", 500)]
    assert {record["level"] for record in logged} == {"info"}


def test_successes_are_recorded_only_while_they_are_traced() -> None:
    logged: list[TraceRecord] = []
    tracer = Tracer()
    tracer.log_to(logged.append, include_successes=False)
    before = tracer.is_enabled

    stop_tracing = tracer.trace_to(lambda _record: None)
    while_traced = tracer.is_enabled
    tracer.record(TraceStep.ACCEPTED, "one")
    tracer.record(TraceStep.OPERATOR_RESPONDED, "two", failed=True)
    stop_tracing()

    assert (before, while_traced, tracer.is_enabled) == (False, True, False)
    assert [record.message_id for record in logged] == ["two"]


def test_every_recorded_fact_is_in_the_table() -> None:
    """A fact outside the table might be personal data."""
    named = {name for step in TraceStep for name in step.value.facts}
    recorded: set[str | None] = set()
    for path in (Path(__file__).parents[2] / "src" / "waypost").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if "tracer.record" in text else ():
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name("tracer"), attr="record"), keywords=facts):
                    recorded |= {fact.arg for fact in facts}
                case _:
                    pass

    assert recorded - {"failed", "took_s"} == named
