"""Conversations: texts in both directions, replies, and unusual characters."""

import pytest

from tests.support.builders import ANN, APP, BEN
from tests.support.pipeline import API_KEY, PipelineHarness

pytestmark = pytest.mark.content_only


async def test_inbound_text_is_called_back_with_its_sender(pipeline: PipelineHarness) -> None:
    await pipeline.control("PUT", f"phones/{ANN}", {"name": "Ann Ames"})

    callback = await pipeline.reply(ANN, "Where is my order?")

    assert callback["payload"] == {
        "id": callback["payload"]["id"],
        "source": ANN,
        "type": "text",
        "payload": {"text": "Where is my order?"},
        "sender": {"phone": ANN, "name": "Ann Ames", "country_code": "1", "dial_code": "5551234567"},
    }


@pytest.mark.holds("session-context")
async def test_text_in_reply_arrives_in_reply_to_the_message_it_names(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    question_id = await pipeline.send_text("Shall we come?")
    await pipeline.events_of(question_id, until="delivered")

    reply_id = await pipeline.send_text("We do come.", context={"msgId": question_id})

    await pipeline.events_of(reply_id, until="delivered")
    *_, shown_question, shown_reply = await pipeline.inbox()
    assert shown_reply["context_id"] == shown_question["wamid"]


async def test_text_in_reply_may_name_the_phones_own_message(pipeline: PipelineHarness) -> None:
    question = await pipeline.reply(ANN, "Will you come?")

    reply_id = await pipeline.send_text("Yes.", context={"msgId": question["payload"]["id"]})

    await pipeline.events_of(reply_id, until="delivered")
    assert (await pipeline.inbox())[-1]["context_id"] == question["payload"]["id"]


async def test_reply_to_our_message_is_called_back_with_both_ids_of_it(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    message_id = await pipeline.send_text("Shall we come?")
    await pipeline.events_of(message_id, until="delivered")
    operator_id = (await pipeline.inbox())[-1]["wamid"]

    callback = await pipeline.reply(ANN, "Please do.", to=operator_id)

    assert callback["payload"]["context"] == {
        "id": operator_id,
        "gsId": message_id,
        "forwarded": False,
        "frequently_forwarded": False,
    }


@pytest.mark.parametrize("text", ["ä€😀", 'quotes " and \\', "line\nbreak\ttab", "<b>&amp;</b> %00"])
async def test_text_with_special_characters_is_unchanged_in_both_directions(
    pipeline: PipelineHarness, text: str
) -> None:
    callback = await pipeline.reply(ANN, text)
    message_id = await pipeline.send_text(text)

    await pipeline.events_of(message_id, until="delivered")

    assert callback["payload"]["payload"]["text"] == text
    assert (await pipeline.inbox())[-1]["text"] == text


@pytest.mark.both_engines
async def test_texts_to_one_phone_arrive_in_the_order_in_which_they_were_sent(pipeline: PipelineHarness) -> None:
    await pipeline.open_window(ANN)
    await pipeline.open_window(BEN)
    sent: list[str] = []
    for number in range(10):
        sent.append(await pipeline.send_text(f"{number}", to=BEN))
        sent.append(await pipeline.send_text(f"{number}", to=ANN))

    for message_id in sent[-2:]:
        await pipeline.events_of(message_id, until="delivered")

    for phone in (ANN, BEN):
        texts = [shown["text"] for shown in await pipeline.inbox(phone)]
        assert texts == ["Hello?", *(f"{number}" for number in range(10))]


async def test_number_with_punctuation_reaches_the_same_phone(pipeline: PipelineHarness) -> None:
    await pipeline.open_window("15550004567")

    message_id = await pipeline.send_text("Hello", to="+1 (555) 000-4567")

    [enqueued, *_] = await pipeline.events_of(message_id, until="delivered")
    assert enqueued["destination"] == "15550004567"
    assert (await pipeline.inbox("15550004567"))[-1]["text"] == "Hello"


async def test_inbound_message_can_be_fetched_by_the_id_in_its_callback(pipeline: PipelineHarness) -> None:
    callback = await pipeline.reply(ANN, "Where is my order?")
    received_id = callback["payload"]["id"]

    response = await pipeline.send_request("GET", f"/wa/app/{APP.id}/msg/{received_id}", headers={"apikey": API_KEY})

    message = response.body["message"]
    assert (message["id"], message["type"], message["status"]) == (received_id, "message", "received")
    assert (message["source"], message["destination"]) == (ANN, APP.phone_number)
    assert message["createdOn"] <= pipeline.clock.now_ms()
