"""Every error code of the operator: the state of the message, and the code in the callback."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest
from aiohttp import web

from tests.support.builders import OPERATOR
from tests.support.operator_webhook import post_messages_change
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import open_version_3_receiver
from waypost.admin import provisioning
from waypost.base.clock import VirtualClock
from waypost.domain.outcome import RetryReason, RetryScope
from waypost.operators.cloud.error_codes import OPERATOR_ERROR_ROWS, OperatorErrorRow, ReportMode

pytestmark = pytest.mark.content_only

TTL_S: Final = 2000
ASYNC: Final = (ReportMode.LATER, ReportMode.EITHER, ReportMode.UNKNOWN)
OTHER: Final = "15559999999"
"""A recipient whose messages are always accepted."""

# fmt: off
KNOWN_CODES: Final = (  # Source: operator's facts 5.2; of a range its ends and its middle
    0, 190, 3, 10, 200, 250, 299, 1, 2, 4, 17, 613, 33, 100, 803, 368, 80007, 80008, 130403, 130429, 130472, 130497, 131000,
    131005, 131008, 131009, 131016, 131021, 131026, 131030, 131031, 131037, 131042, 131045, 131047, 131048, 131049, 131050,
    131051, 131052, 131053, 131055, 134100, 134101, 134102, 131056, 131057, 131062, 131063, 131064, 132000, 132001, 132005,
    132007, 132012, 132015, 132016, 132018, 132021, 132068, 132069, 133005, 133006, 133008, 133009, 133010, 133015, 133016, 135000, 137000,
    138000, 138018, 139200,
)
KNOWN_SUBCODES: Final = (
    (190, 463), (4, 2446079), (100, 33), (100, 2388019), (100, 2388023), (100, 2388024), (100, 2388039), (100, 2388040),
    (100, 2388047), (100, 2388072), (100, 2388073), (100, 2388293), (100, 2388299), (100, 2388318), (100, 2388330),
)
# fmt: on


def format_code(row: OperatorErrorRow) -> str:
    return f"{row.code}" if row.subcode is None else f"{row.code}-{row.subcode}"


def is_final_error(row: OperatorErrorRow) -> bool:
    return row.report_mode is not ReportMode.INBOUND and (
        row.retry_reason is None or row.retry_reason is RetryReason.ONCE
    )


def recipient_of(number: int) -> str:
    return str(15_552_000_000 + number)


@dataclass
class RejectingOperator:
    """A real server in the operator's place that rejects messages to some recipients.

    Attributes:
        errors: by recipient, the error in the response.
        recipients: of the requests to send, in order.
    """

    errors: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    recipients: list[str] = field(default_factory=list[str])

    async def handle(self, request: web.Request) -> web.StreamResponse:
        to = (await request.json())["to"].removeprefix("+")
        self.recipients.append(to)
        error = self.errors.get(to)
        if error is not None:
            return web.json_response({"error": error}, status=400)
        return web.json_response({"messages": [{"id": wamid_of(to)}]})


def wamid_of(recipient: str) -> str:
    return f"wamid.{recipient}"


def error_of(row: OperatorErrorRow, code: int | None = None) -> dict[str, Any]:
    """Return an error as the operator writes it in a response. Source: operator's facts 5.1."""
    code = row.code if code is None else code
    error: dict[str, Any] = {
        "message": f"(#{code}) {row.meaning}",
        "type": "OAuthException",
        "code": code,
        "fbtrace_id": "AbCdEf",
    }
    if row.subcode is not None:
        error["error_subcode"] = row.subcode
    return error


@pytest.fixture
async def pipeline_and_operator(make_pipeline: Any) -> AsyncIterator[tuple[PipelineHarness, RejectingOperator]]:
    """A pipeline whose operator rejects what the test says, on a virtual clock."""
    pipeline: PipelineHarness = await make_pipeline(clock=VirtualClock(), changes={"message_ttl_s": TTL_S})
    operator = RejectingOperator()
    application = web.Application()
    application.router.add_post("/{path:.*}", operator.handle)
    runner = web.AppRunner(application, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    await provisioning.put_operator_account(pipeline.waypost.admin_context, replace(OPERATOR, base_url=url))
    yield pipeline, operator
    await runner.cleanup()


def test_every_known_code_has_a_row() -> None:
    covered = {
        (code, row.subcode) for row in OPERATOR_ERROR_ROWS for code in range(row.code, (row.last_code or row.code) + 1)
    }

    expected = {*((code, None) for code in KNOWN_CODES), *KNOWN_SUBCODES}
    assert expected - covered == set()
    assert len({(row.code, row.subcode) for row in OPERATOR_ERROR_ROWS}) == len(OPERATOR_ERROR_ROWS)


@pytest.mark.both_engines
async def test_final_error_fails_the_message_with_the_code_of_its_row(
    pipeline_and_operator: tuple[PipelineHarness, RejectingOperator],
) -> None:
    pipeline, operator = pipeline_and_operator
    cases = [
        (row, code)
        for row in OPERATOR_ERROR_ROWS
        if is_final_error(row)
        for code in {row.code, row.last_code or row.code}
    ]
    ids: list[str] = []
    for number, (row, code) in enumerate(cases):
        operator.errors[recipient_of(number)] = error_of(row, code)
        ids.append(await pipeline.send_text(to=recipient_of(number)))

    await pipeline.travel(ms=2000)  # one more attempt needs a second

    failures: list[tuple[str, str, int]] = []
    for message_id, (row, _) in zip(ids, cases, strict=True):
        [failed] = await pipeline.events_of(message_id, until="failed")
        failures.append((format_code(row), failed["type"], failed["payload"]["code"]))
    assert failures == [(format_code(row), "failed", row.resolve_partner_code(code)) for row, code in cases]
    attempts = [operator.recipients.count(recipient_of(number)) for number in range(len(cases))]
    assert attempts == [2 if row.retry_reason is RetryReason.ONCE else 1 for row, _ in cases]


@pytest.mark.parametrize(
    "row", [row for row in OPERATOR_ERROR_ROWS if row.retry_reason not in (None, RetryReason.ONCE)], ids=format_code
)
async def test_temporary_error_is_retried_until_the_message_expires(
    pipeline_and_operator: tuple[PipelineHarness, RejectingOperator], row: OperatorErrorRow
) -> None:
    pipeline, operator = pipeline_and_operator
    rejected = recipient_of(0)
    operator.errors[rejected] = error_of(row)

    first = await pipeline.send_text(to=rejected)
    await pipeline.travel(ms=0)
    second = await pipeline.send_text(to=OTHER)
    await pipeline.travel(ms=0)

    others_wait = row.retry_scope is not RetryScope.JOB
    assert operator.recipients == [rejected] if others_wait else [rejected, OTHER]
    assert [event["type"] for event in await received_events(pipeline, first)] == []
    await pipeline.travel(ms=(TTL_S + 1000) * 1000)
    [failed] = await pipeline.events_of(first, until="failed")
    await pipeline.events_of(second, until="enqueued")
    assert failed["payload"]["code"] == row.resolve_partner_code(row.code)
    assert operator.recipients.count(OTHER) == 1
    assert operator.recipients.count(rejected) > 2


@pytest.mark.both_engines
async def test_failed_status_fails_the_message_with_the_operators_code(
    pipeline_and_operator: tuple[PipelineHarness, RejectingOperator],
) -> None:
    pipeline, _ = pipeline_and_operator
    rows = [row for row in OPERATOR_ERROR_ROWS if row.report_mode in ASYNC]
    ids = [await pipeline.send_text(to=recipient_of(number)) for number, _ in enumerate(rows)]
    await pipeline.travel(ms=2000)

    statuses = [
        {
            "id": wamid_of(recipient_of(number)),
            "status": "failed",
            "timestamp": str(pipeline.clock.now_ms() // 1000),
            "recipient_id": recipient_of(number),
            "errors": [{"code": row.code, "title": row.meaning, "message": row.meaning}],
        }
        for number, row in enumerate(rows)
    ]
    await post_messages_change(pipeline, statuses=statuses)

    for message_id, row in zip(ids, rows, strict=True):
        events = await pipeline.events_of(message_id, until="failed")
        assert [event["type"] for event in events] == ["enqueued", "failed"]
        assert events[1]["payload"] == {"code": row.code, "reason": row.meaning}


async def test_code_of_an_inbound_message_fails_no_message_and_is_called_back(
    pipeline_and_operator: tuple[PipelineHarness, RejectingOperator],
) -> None:
    pipeline, _ = pipeline_and_operator
    rows = [row for row in OPERATOR_ERROR_ROWS if row.report_mode is ReportMode.INBOUND]
    messages = [
        {
            "from": OTHER,
            "id": f"wamid.in.{row.code}",
            "timestamp": str(pipeline.clock.now_ms() // 1000),
            "type": "unsupported",
            "errors": [{"code": row.code, "title": row.meaning}],
        }
        for row in rows
    ]
    async with open_version_3_receiver(pipeline) as third:
        await post_messages_change(pipeline, messages=messages)

        for row in rows:
            value = await third.message(f"wamid.in.{row.code}")
            assert value["messages"][0]["errors"][0]["code"] == row.code


async def test_message_that_waits_for_its_account_fails_when_it_expires(
    pipeline_and_operator: tuple[PipelineHarness, RejectingOperator],
) -> None:
    """Although few messages of an account are attempted, none stays in the queue beyond its lifetime."""
    pipeline, operator = pipeline_and_operator
    [expired] = [row for row in OPERATOR_ERROR_ROWS if (row.code, row.subcode) == (190, 463)]
    ids: list[str] = []
    for number in range(300):
        operator.errors[recipient_of(number)] = error_of(expired)
        ids.append(await pipeline.send_text(to=recipient_of(number)))

    await pipeline.travel(ms=(TTL_S + 1000) * 1000)

    events_by_message = [await pipeline.events_of(message_id, until="failed") for message_id in ids]
    assert {(len(events), events[0]["payload"]["code"]) for events in events_by_message} == {(1, 500)}
    assert len(set(operator.recipients)) < len(ids)


@pytest.mark.both_engines
async def test_account_with_a_new_token_sends_within_seconds(
    pipeline_and_operator: tuple[PipelineHarness, RejectingOperator],
) -> None:
    pipeline, operator = pipeline_and_operator
    [expired] = [row for row in OPERATOR_ERROR_ROWS if (row.code, row.subcode) == (190, 463)]
    operator.errors[recipient_of(0)] = error_of(expired)
    await pipeline.send_text(to=recipient_of(0))
    await pipeline.travel(ms=0)
    account = await pipeline.waypost.directory.operator_account(OPERATOR.id)
    assert account is not None

    await provisioning.put_operator_account(pipeline.waypost.admin_context, account.replace_fields(token="new-token"))
    message_id = await pipeline.send_text(to=OTHER)
    await pipeline.travel(ms=10_000)

    await pipeline.events_of(message_id, until="enqueued")
    assert operator.recipients == [recipient_of(0), OTHER]


async def received_events(pipeline: PipelineHarness, message_id: str) -> list[dict[str, Any]]:
    """Return the events of a message that were called back so far."""
    payloads = [callback["payload"] for callback in pipeline.callbacks if callback["type"] == "message-event"]
    return [payload for payload in payloads if message_id in (payload["id"], payload.get("gsId"))]
