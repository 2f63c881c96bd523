"""Each state of a message is called back, in order, with the ids of facts 6.2."""

from typing import Any

import pytest

from tests.support.builders import ANN, APP, BEN, is_event
from tests.support.callback_sink import ReceivedCallback
from tests.support.pipeline import PipelineHarness


@pytest.mark.holds("submission-states")
async def test_read_message_has_been_called_back_in_each_of_its_states(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")

    await pipeline.read()

    events = await pipeline.events_of(message_id, until="read")
    assert [event["type"] for event in events] == ["enqueued", "sent", "delivered", "read"]


async def test_each_state_is_called_back_with_its_documented_ids(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="delivered")

    await pipeline.read()

    enqueued, sent, delivered, read = await pipeline.events_of(message_id, until="read")
    operator_id = (await pipeline.inbox())[-1]["wamid"]
    assert enqueued == {
        "id": message_id,
        "type": "enqueued",
        "destination": ANN,
        "payload": {"whatsappMessageId": operator_id, "type": "session"},
    }
    for event, name in ((sent, "sent"), (delivered, "delivered"), (read, "read")):
        assert event["id"] == operator_id
        assert event["gsId"] == message_id
        assert event["type"] == name
        assert event["destination"] == ANN
        assert list(event["payload"]) == ["ts"]
        assert abs(event["payload"]["ts"] - pipeline.clock.now_ms() // 1000) < 30


async def test_enqueued_template_message_is_called_back_as_a_template(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()

    message_id = await pipeline.send(template_id)

    [enqueued, *_] = await pipeline.events_of(message_id, until="enqueued")
    assert enqueued["payload"]["type"] == "template"


async def test_price_of_a_message_is_called_back_with_its_sent_event(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    message_id = await pipeline.send(template_id)

    events = await pipeline.events_of(message_id, until="delivered")

    assert events[1]["pricing"].keys() <= {"policy", "category", "type"}
    assert events[1]["pricing"]["category"] == "utility"
    assert [event["type"] for event in events if "pricing" in event] == ["sent"]


async def test_conversation_of_an_older_operator_is_called_back(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline(simulator_changes={"statuses_version": "v23"})
    await pipeline.open_window()
    message_id = await pipeline.send_text()

    events = await pipeline.events_of(message_id, until="delivered")

    assert events[1]["conversation"].keys() == {"id", "expiresAt", "type"}
    assert [event["type"] for event in events if "conversation" in event] == ["sent"]


async def test_callbacks_for_one_recipient_are_numbered_from_1_without_a_gap(pipeline: PipelineHarness) -> None:
    await pipeline.open_window(ANN)
    await pipeline.open_window(BEN)
    for text in ("one", "two", "three"):
        await pipeline.send_text(text, to=ANN)
        last = await pipeline.send_text(text, to=BEN)

    await pipeline.sink.wait_for(is_event("message-event", type="delivered"), count=6)

    def numbers_of(phone: str) -> list[int]:
        return [attempt.sequence for attempt in pipeline.sink.accepted if _recipient(attempt) == phone]

    await pipeline.events_of(last, until="delivered")
    assert numbers_of(ANN) == list(range(1, 11))  # the inbound message, then three callbacks of each message
    assert numbers_of(BEN) == list(range(1, 11))


async def test_subscription_gets_only_the_states_of_its_modes(pipeline: PipelineHarness) -> None:
    await pipeline.send_request(
        "DELETE", f"/partner/app/{APP.id}/subscription", headers={"Authorization": pipeline.app_token}
    )
    await pipeline.subscribe(tag="some", modes="READ,ENQUEUED,MESSAGE")
    await pipeline.open_window()
    message_id = await pipeline.send_text()
    await pipeline.events_of(message_id, until="enqueued")

    await pipeline.read()

    events = await pipeline.events_of(message_id, until="read")
    assert [event["type"] for event in events] == ["enqueued", "read"]


async def test_every_subscription_gets_a_callback_of_its_own(pipeline: PipelineHarness) -> None:
    await pipeline.subscribe(tag="second", url=f"{pipeline.sink.url}/second", modes="MESSAGE")

    callback = await pipeline.reply(ANN, "Hello?")

    await pipeline.sink.wait_until(lambda: len(pipeline.sink.accepted) == 2)
    first, second = pipeline.sink.accepted
    assert {first.path, second.path} == {"/callbacks", "/callbacks/second"}
    assert first.value == second.value == callback
    assert first.callback_id != second.callback_id
    assert first.sequence == second.sequence == 1


async def test_headers_of_a_subscription_are_sent_with_its_callbacks(pipeline: PipelineHarness) -> None:
    await pipeline.subscribe(tag="second", modes="MESSAGE", meta='{"headers":{"X-Shop":"s-1"}}')

    await pipeline.reply(ANN, "Hello?")

    await pipeline.sink.wait_until(lambda: len(pipeline.sink.accepted) == 2)
    assert sorted(attempt.headers.get("X-Shop", "") for attempt in pipeline.sink.accepted) == ["", "s-1"]


def _recipient(attempt: ReceivedCallback) -> str | None:
    payload = attempt.value["payload"]
    return payload.get("destination") or payload.get("source")
