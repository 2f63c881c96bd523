"""Carousels: created with every kind of sample, sent by both APIs, shown and tapped card by card."""

import json
from typing import Any, Final

import pytest

from tests.support.builders import is_event
from tests.support.callback_assertions import assert_approval_callbacks, assert_delivery_callbacks, assert_tap_callbacks
from tests.support.file_server import FileServer
from tests.support.media_samples import sample
from tests.support.pipeline import PipelineHarness
from tests.support.version_3_receiver import Version3Receiver

pytestmark = pytest.mark.content_only

CARD_TYPES: Final = {  # kind in a send, MIME type, sample, and its name on the file server
    "IMAGE": ("image", "image/png", sample("png"), "png"),
    "VIDEO": ("video", "video/mp4", sample("mp4"), "mp4"),
}
BUY: Final = {"type": "QUICK_REPLY", "text": "Buy"}
LOOK: Final = {
    "type": "URL",
    "text": "Look",
    "url": "https://acme.test/shoes/{{1}}",
    "example": ["https://acme.test/shoes/red"],
}
LOOK_WITH_SUFFIX: Final = LOOK | {"buttonValue": "https://acme.test/shoes/", "suffix": "red"}
LOOK_WITHOUT_URL: Final = {"type": "URL", "text": "Look", "buttonValue": "https://acme.test/shoes/", "suffix": "red"}
PARAMS: Final = (
    "Ben", "red", "red/41",
    "blue", "blue/42",
    "green", "green/43",
)  # fmt: skip
"""Parameters of the main bubble, then of each card: its body, and the suffix of its URL."""


@pytest.mark.parametrize("type", CARD_TYPES)
@pytest.mark.holds(
    "does-templates", "does-callback", "create-cards", "create-card", "create-card-handle",
    "postback-params", "postback-carousel", "postback-returned",
)  # fmt: skip
async def test_carousel_is_shown_and_tapped_card_by_card(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver, files: FileServer, type: str
) -> None:
    kind, mime_type, content, name = CARD_TYPES[type]
    media_id = await pipeline.upload(content, mime_type, name=f"shoe.{name}")
    samples = (
        {"exampleMedia": await pipeline.upload_sample(content, mime_type)},
        {"mediaUrl": f"{files.url}/{name}"},
        {"mediaId": media_id},
    )
    cards = [
        {
            "headerType": type,
            "body": "Our {{1}} shoes.",
            "sampleText": "Our red shoes.",
            "buttons": [BUY, look],
            **card_sample,
        }
        for card_sample, look in zip(samples, (LOOK, LOOK_WITH_SUFFIX, LOOK_WITHOUT_URL), strict=True)
    ]
    template_id = await pipeline.approved_template(
        buttons=(),
        category="MARKETING",
        templateType="CAROUSEL",
        content="Hi {{1}}, look at these.",
        example="Hi Ann, look at these.",
        cards=json.dumps(cards),
    )
    link = f"https://files.acme.test/shoe.{name}"
    media = ({"id": media_id}, {"link": link}, {"id": media_id})
    message = {
        "type": "carousel",
        "cardHeaderType": type,
        "cards": [{**medium, "postbackTexts": [{"index": 0, "text": f"buy-{at}"}]} for at, medium in enumerate(media)],
    }

    sent = [
        await pipeline.send_template(template_id, by=api, params=PARAMS, message=message)
        for api in ("messaging", "partner")
    ]

    await assert_approval_callbacks(pipeline, receiver_v3, template_id)
    for message_id in sent:
        shown = await pipeline.visible_message(message_id)
        [operator_media] = (await pipeline.control("GET", "media"))["media"]
        uploaded = {"id": operator_media["media_id"], "mime_type": mime_type, "filename": f"shoe.{name}"}
        headers = (uploaded, {"link": link}, uploaded)
        assert remove_payloads(shown) == {
            "type": "template",
            "template": {"name": "greeting", "language": "en_US", "category": "MARKETING"},
            "text": "Hi Ben, look at these.",
            "buttons": [],
            "cards": [
                {
                    "index": at,
                    "header": {"format": type, kind: header},
                    "text": f"Our {colour} shoes.",
                    "buttons": [
                        {"index": 0, "type": "QUICK_REPLY", "text": "Buy"},
                        {"index": 1, "type": "URL", "text": "Look", "url": f"https://acme.test/shoes/{colour}/{size}"},
                    ],
                }
                for at, (header, colour, size) in enumerate(
                    zip(headers, ("red", "blue", "green"), (41, 42, 43), strict=True)
                )
            ],
        }
        await assert_delivery_callbacks(pipeline, receiver_v3, message_id)
        for card in (2, 0, 1):
            await assert_tap_callbacks(
                pipeline, receiver_v3, message_id, 0, text="Buy", postback_text=f"buy-{card}", card=card
            )
    assert [len(content)] * 3 == [
        handle["size_bytes"] for handle in (await pipeline.control("GET", "handles"))["handles"]
    ]


def remove_payloads(shown: dict[str, Any]) -> dict[str, Any]:
    """Remove the payloads of the cards' quick replies, which a person does not see."""
    for card in shown["cards"]:
        for button in card["buttons"]:
            button.pop("payload", None)
    return shown


@pytest.mark.both_engines
async def test_carousel_without_postback_texts_is_called_back_with_the_label(
    pipeline: PipelineHarness, receiver_v3: Version3Receiver
) -> None:
    handle = await pipeline.upload_sample(sample("png"), "image/png")
    card = {
        "headerType": "IMAGE",
        "body": "Our shoes.",
        "sampleText": "Our shoes.",
        "exampleMedia": handle,
        "buttons": [BUY],
    }
    template = await pipeline.create_template(
        category="MARKETING", templateType="CAROUSEL", cards=json.dumps([card, card])
    )
    await pipeline.wait_for_callback(is_event("template-event", id=template["id"], status="approved"))
    message = {
        "type": "carousel",
        "cardHeaderType": "IMAGE",
        "cards": [{"link": "https://files.acme.test/shoe.png"}] * 2,
    }

    message_id = await pipeline.send_template(template["id"], params=["Ann"], message=message)

    await assert_delivery_callbacks(pipeline, receiver_v3, message_id)
    await assert_tap_callbacks(pipeline, receiver_v3, message_id, 0, text="Buy", card=1)
