"""The types of `v3/message`, each by its documented sample: sent unchanged, accepted and delivered."""

from asyncio import sleep
from typing import Any, Final

import pytest

from tests.support.builders import ANN
from tests.support.flow_json import one_screen_flow
from tests.support.pipeline import PipelineHarness
from tests.support.polling import poll_until
from tests.support.recording_operator_proxy import RecordedSends

IMAGE: Final = {"link": "https://shop.example/a.png"}
REPLY: Final = {"type": "quick_reply", "quick_reply": {"id": "a", "title": "Yes"}}


def interactive(kind: str, action: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"interactive": {"type": kind, "body": {"text": "Choose."}, "action": action, **more}}


def card(index: int, action: dict[str, Any]) -> dict[str, Any]:
    header = {"type": "image", "image": IMAGE}
    return {"card_index": index, "type": "cta_url", "header": header, "body": {"text": "A hat"}, "action": action}


def reply_card(index: int) -> dict[str, Any]:
    """Return a card with two reply buttons; only a card with a link has the type `cta_url`."""
    replies = [{"id": f"{index}-{title}", "title": title} for title in ("Yes", "No")]
    buttons = [{"type": "quick_reply", "quick_reply": reply} for reply in replies]
    return {**card(index, {"buttons": buttons}), "type": "button"}


def link_action(url: str) -> dict[str, Any]:
    return {"name": "cta_url", "parameters": {"display_text": "Look", "url": url}}


ORDER: Final = {
    "status": "pending",
    "items": [{"retailer_id": "1", "name": "Hat", "amount": {"value": 1000, "offset": 100}, "quantity": 1}],
    "subtotal": {"value": 1000, "offset": 100},
    "tax": {"value": 0, "offset": 100},
}
# fmt: off
SAMPLES: Final[dict[str, dict[str, Any]]] = {  # Source: ledger 1.7, types on the same call
    "text":       {"text": {"body": "Hello", "preview_url": True}},
    "image":      {"image": {**IMAGE, "caption": "A hat"}},
    "audio":      {"audio": {"link": "https://shop.example/a.mp3"}},
    "voice note": {"audio": {"link": "https://shop.example/a.ogg", "voice": True}},
    "video":      {"video": {"link": "https://shop.example/a.mp4", "caption": "A hat"}},
    "document":   {"document": {"link": "https://shop.example/a.pdf", "filename": "a.pdf", "caption": "The list"}},
    "sticker":    {"sticker": {"link": "https://shop.example/a.webp"}},
    "contacts":   {"contacts": [{"name": {"formatted_name": "Ben", "first_name": "Ben"}, "phones": [{"phone": "+15557654321", "type": "WORK"}]}]},
    "location":   {"location": {"longitude": -122.4, "latitude": 37.5, "name": "Shop", "address": "1 Main Street"}},
    "button":     interactive("button", {"buttons": [{"type": "reply", "reply": {"id": "y", "title": "Yes"}}]}),
    "list":       interactive("list", {"button": "Menu", "sections": [{"title": "Hats", "rows": [{"id": "1", "title": "Red", "description": "A red hat"}]}]}),
    "cta_url":    interactive("cta_url", link_action("https://shop.example/hat")),
    "address":    interactive("address_message", {"name": "address_message", "parameters": {"country": "IN"}}),
    "place":      interactive("location_request_message", {"name": "send_location"}),
    "permission": interactive("call_permission_request", {"name": "call_permission_request"}),
    "link cards": interactive("carousel", {"cards": [card(0, link_action("https://shop.example/0")), card(1, link_action("https://shop.example/1"))]}),
    "reply cards": interactive("carousel", {"cards": [reply_card(0), reply_card(1)]}),
    "product":    interactive("product", {"catalog_id": "1", "product_retailer_id": "2"}),
    "products":   interactive("product_list", {"catalog_id": "1", "sections": [{"title": "Hats", "product_items": [{"product_retailer_id": "2"}]}]}, header={"type": "text", "text": "Hats"}),
    "order":      interactive("order_details", {"name": "review_and_pay", "parameters": {
                      "reference_id": "order-1", "type": "digital-goods", "payment_type": "upi", "payment_configuration": "shop",
                      "currency": "INR", "total_amount": {"value": 1000, "offset": 100}, "order": ORDER}}),
    "status":     interactive("order_status", {"name": "review_order", "parameters": {"reference_id": "order-1", "order": {"status": "shipped", "description": "On its way"}}}),
}
SCREENS: Final = one_screen_flow()
WRONG_CARDS: Final[dict[str, list[dict[str, Any]]]] = {  # Source: ledger 1.7, limits of a media-card carousel
    "one card":          [card(0, link_action("https://shop.example/0"))],
    "eleven cards":      [card(index, link_action("https://shop.example/0")) for index in range(11)],
    "different buttons": [card(0, link_action("https://shop.example/0")), card(1, {"buttons": [REPLY]})],
    "no header":         [{name: value for name, value in card(index, link_action("https://shop.example/0")).items() if name != "header"} for index in range(2)],
}
# fmt: on


def flow_message(flow_id: str) -> dict[str, Any]:
    """Return a message with a button that opens a published flow. Source: ledger 1.7, types on the same call."""
    payload = {"screen": "START", "data": {"table": "7"}}
    parameters = {
        "flow_message_version": "3", "flow_token": "token-7", "flow_id": flow_id, "flow_cta": "Book",
        "flow_action": "navigate", "flow_action_payload": payload,
    }  # fmt: skip
    return interactive("flow", {"name": "flow", "parameters": parameters}, footer={"text": "Today"})


@pytest.fixture
async def pipeline(make_pipeline: Any) -> PipelineHarness:
    """A pipeline with a proxy before the operator that records what is sent."""
    return await make_pipeline(operator_proxy=RecordedSends())


async def sent_body(pipeline: PipelineHarness, message_id: str) -> dict[str, Any]:
    assert isinstance(pipeline.operator_proxy, RecordedSends)
    bodies = pipeline.operator_proxy.bodies
    await poll_until(lambda: sleep(0, bodies), lambda bodies: message_id in bodies)
    return bodies[message_id]


def message_of(sample: dict[str, Any]) -> dict[str, Any]:
    [kind] = sample
    return {"messaging_product": "whatsapp", "recipient_type": "individual", "to": ANN, "type": kind, **sample}


@pytest.mark.holds("v3-types", "post-v3-message")
async def test_every_documented_type_is_sent_unchanged_and_delivered(pipeline: PipelineHarness) -> None:
    flow_id = await pipeline.publish_flow("booking", SCREENS)
    await pipeline.open_window()
    samples = {**SAMPLES, "flow": flow_message(flow_id)}

    message_ids = {name: await pipeline.send_passthrough(**message_of(sample)) for name, sample in samples.items()}

    for name, message_id in message_ids.items():
        trace = await poll_until(
            lambda message_id=message_id: pipeline.trace(message_id),
            lambda trace: trace["state"] in ("delivered", "failed"),
        )
        assert (name, trace["state"], trace["reason"]) == (name, "delivered", None)
        body = await sent_body(pipeline, message_id)
        assert body == message_of(samples[name]) | {"biz_opaque_callback_data": message_id}


@pytest.mark.holds("v3-types")
async def test_template_is_delivered_and_a_reaction_is_sent(pipeline: PipelineHarness) -> None:
    await pipeline.open_window()
    template_id = await pipeline.approved_template(buttons=[], elementName="greeting", content="Hello", example="Hello")
    first = await pipeline.send_passthrough(**message_of(SAMPLES["text"]))
    await pipeline.wait_for_state(first, "delivered")
    [delivery] = await pipeline.deliveries(first)
    samples: list[dict[str, Any]] = [
        {"reaction": {"message_id": delivery["wamid"], "emoji": "👍"}},
        {"template": {"name": "greeting", "language": {"code": "en_US"}}},
    ]

    reaction, template = [await pipeline.send_passthrough(**message_of(sample)) for sample in samples]

    assert template_id
    await pipeline.wait_for_state(template, "delivered")
    await pipeline.wait_for_state(reaction, "sent")


@pytest.mark.parametrize("name", WRONG_CARDS)
async def test_operator_checks_the_documented_limits_of_a_carousel(pipeline: PipelineHarness, name: str) -> None:
    await pipeline.open_window()

    message_id = await pipeline.send_passthrough(**message_of(interactive("carousel", {"cards": WRONG_CARDS[name]})))

    trace = await pipeline.wait_for_state(message_id, "failed")
    assert "cards" in trace["reason"]
