"""Messages that the operator rejects: in its response, or with a later status."""

from typing import Any

import pytest

from tests.support.builders import ANN
from tests.support.pipeline import PipelineHarness


@pytest.mark.holds("does-acknowledge", "submission-states")
async def test_text_outside_the_window_is_accepted_and_fails_afterwards(pipeline: PipelineHarness) -> None:
    message_id = await pipeline.send_text("Are you there?")

    events = await pipeline.events_of(message_id, until="failed")

    [delivery] = await pipeline.deliveries(message_id)
    assert [event["type"] for event in events] == ["enqueued", "failed"]
    assert events[1] == {
        "id": delivery["wamid"],
        "gsId": message_id,
        "type": "failed",
        "destination": ANN,
        "payload": {"code": 131047, "reason": events[1]["payload"]["reason"]},
    }
    assert events[1]["payload"]["reason"]


async def test_wrong_number_of_parameters_fails_at_once_under_our_id(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()

    message_id = await pipeline.send(template_id, params=["Ann", "one too many"])

    [failed] = await pipeline.events_of(message_id, until="failed")
    assert failed == {
        "id": message_id,
        "type": "failed",
        "destination": ANN,
        "payload": {"code": 132000, "reason": failed["payload"]["reason"]},
    }
    assert await pipeline.inbox() == []


async def test_template_that_is_not_approved_yet_fails_at_once(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(simulator_changes={"review_delay_ms": None})
    template = await pipeline.create_template()

    message_id = await pipeline.send(template["id"])

    [failed] = await pipeline.events_of(message_id, until="failed")
    assert failed["id"] == message_id
    assert failed["payload"]["code"] == 132001


async def test_failed_message_does_not_block_the_next_one(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    await pipeline.send(template_id, params=[])

    message_id = await pipeline.send(template_id)

    events = await pipeline.events_of(message_id, until="delivered")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered"]


async def test_failed_message_shows_code_and_reason_in_its_trace(pipeline: PipelineHarness) -> None:
    message_id = await pipeline.send_text("Are you there?")

    trace = await pipeline.wait_for_state(message_id, "failed")

    assert trace["code"] == 131047
    assert [step["event"] for step in trace["events"]] == ["enqueued", "failed"]
