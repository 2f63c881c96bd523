"""An attempt to send that does not end a message is a step of its trace, and changes no state."""

from typing import Any

from tests.support.manual_clock import ServiceClock
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from waypost.store.trace_events import SEND_ATTEMPTED

TEMPORARY_ERROR: dict[str, Any] = {
    "on": "call",
    "call": "messages.send",
    "what": {"error": 131016},
    "when": {"next": 2},
}


async def read_steps(pipeline: PipelineHarness, message_id: str) -> list[tuple[str, bool]]:
    trace = await pipeline.trace(message_id)
    return [(step["event"], step["applied"]) for step in trace["events"]]


async def test_attempts_that_were_postponed_are_in_the_trace_with_the_error_of_the_operator(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(clock=ServiceClock())
    await pipeline.open_window()
    await pipeline.control("POST", "faults", {"faults": [TEMPORARY_ERROR]})

    message_id = await pipeline.send_text()
    await pipeline.pass_time_until(
        lambda: any(
            callback["type"] == "message-event" and callback["payload"]["type"] == "delivered"
            for callback in pipeline.callbacks
        )
    )

    trace = await pipeline.trace(message_id)
    attempts = [step for step in trace["events"] if step["event"] == SEND_ATTEMPTED]
    assert [step["detail"].partition(":")[0] for step in attempts] == ["131016", "131016"]
    assert [step["applied"] for step in attempts] == [False, False]
    assert attempts[0]["at_ms"] < attempts[1]["at_ms"]
    changes = [step["event"] for step in trace["events"] if step["applied"]]
    assert changes[0] == "enqueued"
    events = [callback["event"] for callback in trace["callbacks"]]
    assert SEND_ATTEMPTED not in events


async def test_message_that_is_accepted_at_once_has_no_attempt_in_its_trace(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()

    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")

    assert SEND_ATTEMPTED not in [event for event, _ in await read_steps(pipeline, message_id)]


async def test_operator_that_is_unreachable_is_in_the_trace_of_a_message(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    await pipeline.close_operator()

    message_id = await pipeline.send_text()

    await poll_until(lambda: read_steps(pipeline, message_id), lambda steps: (SEND_ATTEMPTED, False) in steps)
    [step, *_] = (await pipeline.trace(message_id))["events"]
    assert step["detail"].startswith("the operator was not reached")
