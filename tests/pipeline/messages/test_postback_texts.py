"""A tapped quick reply is called back with its own postback text."""

import pytest

from tests.support.builders import ANN, APP
from tests.support.pipeline import PipelineHarness

pytestmark = pytest.mark.content_only


@pytest.mark.holds("does-callback", "postback-returned", "event-postback")
@pytest.mark.both_engines
async def test_tapped_button_is_called_back_with_its_postback_text(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    message_id = await pipeline.send(template_id, postback_texts={0: "ok-1", 1: "no-1"})

    callback = await pipeline.tap(ANN, 1)

    assert callback["payload"]["payload"] == {"text": "No", "type": "button", "postbackText": "no-1"}
    assert callback["payload"]["context"]["gsId"] == message_id


@pytest.mark.holds(
    "event-tap", "event-envelope", "event-app", "event-phone", "event-timestamp",
    "event-version", "event-type", "event-id", "event-source", "event-payload-type", "event-text",
    "event-button", "event-postback", "event-sender", "event-context", "version-callback", "event-38",
)  # fmt: skip
async def test_callback_of_a_tap_has_every_documented_field(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    message_id = await pipeline.send(template_id, postback_texts={0: "ok-1"})

    callback = await pipeline.tap(ANN, 0)

    [sent, tap] = await pipeline.inbox()
    assert callback.items() >= {"app": APP.name, "phone": APP.phone_number, "version": 2, "type": "message"}.items()
    assert isinstance(callback["timestamp"], int)
    assert callback["payload"] == {
        "id": tap["wamid"],
        "source": ANN,
        "type": "quick_reply",
        "payload": {"text": "Yes", "type": "button", "postbackText": "ok-1"},
        "sender": {
            "phone": ANN,
            "name": callback["payload"]["sender"]["name"],
            "country_code": "1",
            "dial_code": "5551234567",
        },
        "context": {"id": sent["wamid"], "gsId": message_id, "forwarded": False, "frequently_forwarded": False},
    }


async def test_tap_without_a_postback_text_is_called_back_without_one(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    await pipeline.send(template_id, postback_texts={0: "ok-1"})

    callback = await pipeline.tap(ANN, 1)

    assert callback["payload"]["payload"] == {"text": "No", "type": "button"}


async def test_postback_text_equal_to_the_label_is_called_back(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    await pipeline.send(template_id, postback_texts={1: "No"})

    callback = await pipeline.tap(ANN, 1)

    assert callback["payload"]["payload"]["postbackText"] == "No"


async def test_postback_text_of_300_characters_is_called_back_whole(pipeline: PipelineHarness) -> None:
    template_id = await pipeline.approved_template()
    long_text = "ö" * 299 + "!"
    await pipeline.send(template_id, postback_texts={0: long_text, 1: "short"})

    callback = await pipeline.tap(ANN, 0)

    assert callback["payload"]["payload"]["postbackText"] == long_text


@pytest.mark.holds("postback-index")
async def test_index_of_a_postback_text_counts_every_kind_of_button(pipeline: PipelineHarness) -> None:
    buttons = [
        {"type": "PHONE_NUMBER", "text": "Call", "phone_number": "+15550001111"},
        {"type": "URL", "text": "Look", "url": "https://acme.test/orders"},
        {"type": "QUICK_REPLY", "text": "Yes"},
        {"type": "QUICK_REPLY", "text": "No"},
    ]
    template_id = await pipeline.approved_template(buttons=buttons)
    await pipeline.send(template_id, postback_texts={2: "third", 3: "fourth"})

    callback = await pipeline.tap(ANN, 3)

    assert callback["payload"]["payload"]["postbackText"] == "fourth"
