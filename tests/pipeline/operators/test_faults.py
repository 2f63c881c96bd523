"""One scenario for each kind of fault: what the partner gets, and that nothing is lost or duplicated."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import pytest

from tests.support.builders import ANN, is_event
from tests.support.manual_clock import ManualClock, ServiceClock
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.base.clock import VirtualClock
from waypost.simulator import read_scenario
from waypost.simulator.faults.fault_kinds import FAULT_KINDS

Scenario = Callable[[PipelineHarness], Awaitable[None]]

SEND: Final = {"on": "call", "call": "messages.send"}
WEBHOOK: Final = {"on": "webhook"}
ALL_EVENTS: Final = ["enqueued", "sent", "delivered"]
A_MINUTE_LATE: Final = {**WEBHOOK, "what": {"delay_ms": 60_000}}
BAD_DAY: Final = Path(__file__).parents[3] / "examples" / "scenarios" / "bad-day.toml"


async def check_temporary_error(pipeline: PipelineHarness) -> None:
    """The message is retried until it is accepted, and then no more."""
    [fault] = await arm(pipeline, {**SEND, "what": {"error": 131016}, "when": {"next": 2}})

    message_id = await pipeline.send_text()
    await pass_time_until_called_back(pipeline, message_id, "delivered")

    assert await received_events(pipeline, message_id) == ALL_EVENTS
    assert await count_accepted(pipeline, message_id) == 1
    assert await count_hits(pipeline, fault) == 2


async def check_later_failure(pipeline: PipelineHarness) -> None:
    """The message is accepted first, and then fails with the operator's code."""
    await arm(pipeline, {**SEND, "what": {"fail": 131049}})

    message_id = await pipeline.send_text()

    events = await pipeline.events_of(message_id, until="failed")
    assert [event["type"] for event in events] == ["enqueued", "failed"]
    assert events[1]["payload"]["code"] == 131049
    assert await count_accepted(pipeline, message_id) == 1


async def check_timeout(pipeline: PipelineHarness) -> None:
    """The message is uncertain until a status arrives, and is not sent again."""
    await arm(pipeline, {**SEND, "what": {"timeout": True}, "when": {"next": 1}}, A_MINUTE_LATE)

    message_id = await pipeline.send_text()
    await pipeline.wait_for_state(message_id, "uncertain")
    before = await received_events(pipeline, message_id)
    await pass_time_until_called_back(pipeline, message_id, "delivered")
    await pass_uncertain_time(pipeline)

    assert before == []
    assert await received_events(pipeline, message_id) == ALL_EVENTS
    assert await count_accepted(pipeline, message_id) == 1


async def check_reset(pipeline: PipelineHarness) -> None:
    """Reset after acceptance, a status decides; reset before it, the message fails as uncertain."""
    await arm(pipeline, {**SEND, "what": {"reset": "after"}, "when": {"next": 1}}, A_MINUTE_LATE)
    accepted = await pipeline.send_text("accepted")
    await pipeline.wait_for_state(accepted, "uncertain")
    await arm(pipeline, {**SEND, "what": {"reset": "before"}, "when": {"next": 1}})
    lost = await pipeline.send_text("lost")
    await pipeline.wait_for_state(lost, "uncertain")

    await pass_time_until_called_back(pipeline, accepted, "delivered")
    await pass_time_until_called_back(pipeline, lost, "failed", step_ms=60_000)
    await pass_uncertain_time(pipeline)

    assert await received_events(pipeline, accepted) == ALL_EVENTS
    assert await received_events(pipeline, lost) == ["failed"]
    [failed] = await pipeline.events_of(lost, until="failed")
    assert failed["payload"]["code"] == 4002
    assert [await count_accepted(pipeline, message_id) for message_id in (accepted, lost)] == [1, 0]


async def check_slow_response(pipeline: PipelineHarness) -> None:
    """Statuses that arrive before the response are called back after `enqueued`."""
    await arm(pipeline, {**SEND, "what": {"slow_ms": 200}})

    message_id = await pipeline.send_text()

    await pipeline.events_of(message_id, until="delivered")
    await wait_until_idle(pipeline)
    assert await received_events(pipeline, message_id) == ALL_EVENTS
    assert await count_accepted(pipeline, message_id) == 1


async def check_garbage_response(pipeline: PipelineHarness) -> None:
    """Whatever is in place of a response, a message that was accepted is not sent again."""
    options = {"status": 200, "processed": True}
    await arm(
        pipeline,
        *(
            {**SEND, "what": {"garbage": form, **options}, "when": {"next": 1}}
            for form in ("html", "truncated", "empty", "not_json")
        ),
        A_MINUTE_LATE,
    )

    message_ids = [await pipeline.send_text(str(number)) for number in range(4)]
    for message_id in message_ids:
        await pipeline.wait_for_state(message_id, "uncertain")
    for message_id in message_ids:
        await pass_time_until_called_back(pipeline, message_id, "delivered")
    await pass_uncertain_time(pipeline)

    assert [await received_events(pipeline, message_id) for message_id in message_ids] == [ALL_EVENTS] * 4
    assert [await count_accepted(pipeline, message_id) for message_id in message_ids] == [1] * 4


async def check_dropped_status(pipeline: PipelineHarness) -> None:
    """A later status replaces the one that was dropped."""
    await arm(pipeline, {**WEBHOOK, "webhook": "sent", "what": {"drop": True}})

    message_id = await pipeline.send_text()

    await pipeline.events_of(message_id, until="delivered")
    assert await received_events(pipeline, message_id) == ["enqueued", "delivered"]
    assert await count_accepted(pipeline, message_id) == 1


async def check_delayed_status(pipeline: PipelineHarness) -> None:
    """A status behind the current state is stored in the trace, and not called back."""
    [fault] = await arm(pipeline, {**WEBHOOK, "webhook": "sent", "what": {"delay_ms": 60_000}})

    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    posts = await count_webhook_posts(pipeline)
    manual_clock(pipeline).advance(ms=60_000)
    await poll_until(lambda: count_webhook_posts(pipeline), lambda count: count > posts)
    await wait_until_idle(pipeline)

    assert await received_events(pipeline, message_id) == ["enqueued", "delivered"]
    assert await count_hits(pipeline, fault) == 1


async def check_duplicate_webhooks(pipeline: PipelineHarness) -> None:
    """Repeated statuses and messages are called back once."""
    await arm(pipeline, {**WEBHOOK, "what": {"duplicate": 2}})

    message_id = await pipeline.send_text()
    reply = await pipeline.reply(ANN, "Twice?")
    await pipeline.events_of(message_id, until="delivered")
    await wait_for_all_webhooks(pipeline)

    assert await received_events(pipeline, message_id) == ALL_EVENTS
    replies = [callback for callback in pipeline.callbacks if callback["payload"].get("id") == reply["payload"]["id"]]
    assert len(replies) == 1


async def check_reordered_webhooks(pipeline: PipelineHarness) -> None:
    """A state never goes back."""
    await arm(pipeline, {**WEBHOOK, "what": {"reorder": True}})

    message_id = await pipeline.send_text()

    await pipeline.events_of(message_id, until="delivered")
    await wait_for_all_webhooks(pipeline)
    assert await received_events(pipeline, message_id) == ["enqueued", "delivered"]
    assert await count_accepted(pipeline, message_id) == 1


async def check_batched_webhooks(pipeline: PipelineHarness) -> None:
    """Many updates in one POST are called back one by one, in order."""
    await arm(pipeline, {**WEBHOOK, "what": {"batch": 12}})
    posts = await count_webhook_posts(pipeline)

    message_ids = [await pipeline.send_text(str(number)) for number in range(6)]
    for message_id in message_ids:
        await pipeline.events_of(message_id, until="delivered")

    assert [await received_events(pipeline, message_id) for message_id in message_ids] == [ALL_EVENTS] * 6
    assert await count_webhook_posts(pipeline) == posts + 1


async def check_wrong_signature(pipeline: PipelineHarness) -> None:
    """Webhooks are rejected and retried by the operator, and nothing is missing in the end."""
    await check_rejected_until_signed(pipeline, {"wrong_signature": True})


async def check_missing_signature(pipeline: PipelineHarness) -> None:
    """Unsigned webhooks are treated like wrongly signed ones."""
    await check_rejected_until_signed(pipeline, {"unsigned": True})


async def check_garbage_webhook(pipeline: PipelineHarness) -> None:
    """A validly signed body that is no JSON is accepted and becomes a dead letter, and blocks no other webhook."""
    await arm(pipeline, {**WEBHOOK, "what": {"garbage": True}})

    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")
    admin = {"Authorization": f"Bearer {ADMIN_TOKEN}"}
    [dead_letter] = (await pipeline.send_request("GET", "/admin/dead-letters", headers=admin)).body["dead_letters"]
    assert "an unreadable part of a webhook (body)" in dead_letter["note"]
    await pipeline.send_request("DELETE", f"/admin/dead-letters/{dead_letter['position']}", headers=admin)
    await wait_for_all_webhooks(pipeline)

    assert await received_events(pipeline, message_id) == ALL_EVENTS


# fmt: off
SCENARIOS: Final[dict[tuple[str, str], Scenario]] = {
    ("call",    "error"):           check_temporary_error,
    ("call",    "fail"):            check_later_failure,
    ("call",    "timeout"):         check_timeout,
    ("call",    "reset"):           check_reset,
    ("call",    "slow_ms"):         check_slow_response,
    ("call",    "garbage"):         check_garbage_response,
    ("webhook", "drop"):            check_dropped_status,
    ("webhook", "delay_ms"):        check_delayed_status,
    ("webhook", "duplicate"):       check_duplicate_webhooks,
    ("webhook", "reorder"):         check_reordered_webhooks,
    ("webhook", "batch"):           check_batched_webhooks,
    ("webhook", "wrong_signature"): check_wrong_signature,
    ("webhook", "unsigned"):        check_missing_signature,
    ("webhook", "garbage"):         check_garbage_webhook,
}
# fmt: on


def test_every_kind_of_fault_has_a_scenario() -> None:
    elsewhere = ("onboarding", "endpoint")  # of signups and of Flows, with tests of their own: no message meets them
    assert set(SCENARIOS) == {(kind.target, kind.name) for kind in FAULT_KINDS if kind.target not in elsewhere}


@pytest.mark.parametrize("kind", SCENARIOS, ids=lambda kind: " ".join(kind))
async def test_nothing_is_lost_or_duplicated(make_pipeline: Any, kind: tuple[str, str]) -> None:
    # Only where a call gets no response: elsewhere a slow machine would make calls fail.
    changes = {"operator_timeout_s": 0.5} if kind == ("call", "timeout") else {}
    pipeline: PipelineHarness = await make_pipeline(clock=ServiceClock(), changes=changes)
    await pipeline.open_window()

    await SCENARIOS[kind](pipeline)

    await wait_until_idle(pipeline)


async def test_every_message_is_sent_once_and_delivered_in_the_bad_day_scenario(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(clock=VirtualClock())
    template_id = await pipeline.approved_template()
    await pipeline.simulator.arm_scenario(read_scenario(BAD_DAY))

    phones = [str(15551300000 + number) for number in range(80)]
    message_ids = await asyncio.gather(*(pipeline.send(template_id, to=phone) for phone in phones))
    ongoing = list(message_ids)
    async with asyncio.timeout(HANGS_AFTER_S):
        while ongoing := [message_id for message_id in ongoing if not await is_ended(pipeline, message_id)]:
            await pipeline.travel(ms=1000)

    for message_id in message_ids:
        assert await count_accepted(pipeline, message_id) == 1
        events = await received_events(pipeline, message_id)
        assert events in (ALL_EVENTS, ["enqueued", "delivered"])
    faults = (await pipeline.control("GET", "faults"))["faults"]
    assert sum(fault["hits"] for fault in faults) > 20


def manual_clock(pipeline: PipelineHarness) -> ManualClock:
    """Return the clock that the test advances."""
    assert isinstance(pipeline.clock, ManualClock)
    return pipeline.clock


async def check_rejected_until_signed(pipeline: PipelineHarness, what: dict[str, bool]) -> None:
    [fault] = await arm(pipeline, {**WEBHOOK, "what": what, "when": {"next": 3}})

    message_id = await pipeline.send_text()
    await pass_time_until_called_back(pipeline, message_id, "delivered")

    assert await received_events(pipeline, message_id) == ALL_EVENTS
    assert await count_hits(pipeline, fault) == 3


async def arm(pipeline: PipelineHarness, *faults: dict[str, Any]) -> list[dict[str, Any]]:
    """Arm faults, and return them as the simulator lists them."""
    return (await pipeline.control("POST", "faults", {"faults": list(faults)}))["faults"]


async def count_hits(pipeline: PipelineHarness, fault: dict[str, Any]) -> int:
    """Return how often a fault has fired."""
    return (await pipeline.control("GET", f"faults/{fault['id']}"))["hits"]


async def received_events(pipeline: PipelineHarness, message_id: str) -> list[str]:
    """Return the events of a message that were called back, in order."""
    return [
        callback["payload"]["type"]
        for callback in pipeline.callbacks
        if callback["type"] == "message-event"
        and message_id in (callback["payload"]["id"], callback["payload"].get("gsId"))
    ]


async def is_ended(pipeline: PipelineHarness, message_id: str) -> bool:
    """Return True if the final event of a message was called back."""
    return bool({"delivered", "failed"} & {*await received_events(pipeline, message_id)})


async def pass_time_until_called_back(
    pipeline: PipelineHarness, message_id: str, event: str, *, step_ms: int = 1000
) -> None:
    """Advance the clock until the event is called back."""
    matches = is_event("message-event", type=event)

    def is_called_back() -> bool:
        return any(
            matches(callback) and message_id in (callback["payload"]["id"], callback["payload"].get("gsId"))
            for callback in pipeline.callbacks
        )

    await pipeline.pass_time_until(is_called_back, step_ms=step_ms)


async def count_accepted(pipeline: PipelineHarness, message_id: str) -> int:
    """Return how often the operator has the message."""
    return len(await pipeline.deliveries(message_id))


async def count_webhook_posts(pipeline: PipelineHarness) -> int:
    """Return how many POSTs the operator has made."""
    return (await pipeline.control("GET", "state"))["webhook_posts"]


async def wait_for_all_webhooks(pipeline: PipelineHarness) -> None:
    """Return when the operator has posted every webhook; advance the clock for its retries."""

    async def count_waiting() -> int:
        manual_clock(pipeline).advance(ms=1000)
        state = await pipeline.control("GET", "state")
        return sum(account["updates_waiting"] for account in state["accounts"])

    await poll_until(count_waiting, lambda count: count == 0)
    await wait_until_idle(pipeline)


async def pass_uncertain_time(pipeline: PipelineHarness) -> None:
    """Let the time pass that an uncertain message waits for a status, and wait for the callbacks."""
    manual_clock(pipeline).advance(ms=901_000)
    await wait_until_idle(pipeline)


async def wait_until_idle(pipeline: PipelineHarness) -> None:
    """Return when every queue is empty."""
    await poll_until(pipeline.queue_depths, lambda queues: not any(queues.values()))
