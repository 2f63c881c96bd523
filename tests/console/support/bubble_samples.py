"""One message of every kind as a phone shows it, and one draft of every type.

The simulator itself renders the messages, so a bubble gets exactly what the control API returns.
"""

from dataclasses import replace
from typing import Any, Final

from waypost.domain.templates.buttons import ButtonKind, Card, SupportedApp, TemplateButton
from waypost.domain.templates.fields import TemplateDraft
from waypost.domain.templates.template import add_type_button
from waypost.operators.cloud.templates import template_components
from waypost.simulator.handsets.phone_messages import (
    build_contacts_message,
    build_media_message,
    build_message,
    build_number_change,
    build_response,
    build_text_message,
)
from waypost.simulator.messages.message_kinds import render_message
from waypost.simulator.messages.template_sends import render_template
from waypost.simulator.templates.drafts import fill_preset_texts
from waypost.simulator.templates.template import SimulatedTemplate

NOW_MS: Final = 1_795_370_000_000
UNTIL_MS: Final = NOW_MS + 3 * 3_600_000

_PICTURE: Final = {"id": "m-image", "mime_type": "image/png"}
_PLACE: Final = {"latitude": 52.3740, "longitude": 4.8897, "name": "The shop", "address": "Canal Street 1"}
_PERSON: Final = {
    "name": {"formatted_name": "Bo Berg"},
    "org": {"company": "Berg & Co", "title": "Director"},
    "phones": [{"phone": "+15550009001", "type": "WORK"}],
    "emails": [{"email": "bo@berg.test"}],
}
_SECTIONS: Final = [
    {"title": "Teas", "product_items": [{"product_retailer_id": "tea-1"}, {"product_retailer_id": "tea-2"}]},
    {"title": "Cups", "product_items": [{"product_retailer_id": "cup-1"}]},
]  # fmt: skip
_ORDER: Final = {
    "reference_id": "order-7", "type": "physical-goods", "currency": "INR", "total_amount": {"value": 29900, "offset": 100},
    "payment_settings": [{"type": "payment_gateway", "payment_gateway": {"type": "razorpay", "configuration_name": "shop"}}],
    "order": {"status": "pending", "subtotal": {"value": 29900, "offset": 100}, "items": [
        {"retailer_id": "tea-1", "name": "Sencha from Uji, 100 g", "amount": {"value": 12000, "offset": 100}, "quantity": 2},
        {"retailer_id": "cup-1", "name": "Cup", "amount": {"value": 5900, "offset": 100}, "quantity": 1}]},
}  # fmt: skip


def _action(kind: str, action: Any, body: str = "What shall it be?", **more: Any) -> Any:
    return {"type": kind, "body": {"text": body}, "action": action, **more}


def _reply(id: str, title: str) -> Any:
    return {"type": "reply", "reply": {"id": id, "title": title}}


def _card(index: int) -> Any:
    return {
        "card_index": index,
        "header": {"type": "image", "image": {"id": "m-image"}},
        "body": {"text": f"Tea number {index}"},
        "action": {"name": "cta_url", "parameters": {"display_text": "Look", "url": f"https://shop.test/{index}"}},
    }


# fmt: off
_BUSINESS_MESSAGES: Final[dict[str, tuple[str, Any]]] = {  # by free-form sends; Source: decision 0057
    "text":       ("text", {"body": "Hello *Ann*, your _order_ is ~late~ `4711`.\n> As you asked\n* one\n* two\n1. first\n2. second"}),
    "preview":    ("text", {"body": "Look: https://shop.test/teas/green?of=today.", "preview_url": True}),
    "emoji":      ("text", {"body": "🎉"}),
    "hostile":    ("text", {"body": "<script>alert(1)</script> & \"x\" javascript:alert(1)"}),
    "long":       ("text", {"body": "A long story. " * 120}),
    "image":      ("image", {**_PICTURE, "caption": "The *green* one"}),
    "video":      ("video", {"id": "m-video", "caption": "How to brew it"}),
    "audio":      ("audio", {"id": "m-audio"}),
    "document":   ("document", {"link": "https://files.test/a/price-list.pdf", "filename": "price-list.pdf", "caption": "Prices"}),
    "sticker":    ("sticker", {"id": "m-sticker"}),
    "location":   ("location", _PLACE),
    "contacts":   ("contacts", [_PERSON]),
    "replies":    ("interactive", _action("button", {"buttons": [_reply("y", "Yes"), _reply("n", "No"), _reply("l", "Later")]}, header={"type": "text", "text": "A question"}, footer={"text": "Answer when you like"})),
    "list":       ("interactive", _action("list", {"button": "Our teas", "sections": [{"title": "Green", "rows": [{"id": "a", "title": "Sencha", "description": "From Uji"}]}, {"title": "Black", "rows": [{"id": "b", "title": "Assam"}]}]})),
    "link":       ("interactive", _action("cta_url", {"name": "cta_url", "parameters": {"display_text": "To the shop", "url": "https://shop.test/"}})),
    "product":    ("interactive", _action("product", {"catalog_id": "c-1", "product_retailer_id": "tea-1"})),
    "products":   ("interactive", _action("product_list", {"catalog_id": "c-1", "sections": _SECTIONS}, header={"type": "text", "text": "Our range"})),
    "catalog":    ("interactive", _action("catalog_message", {"name": "catalog_message"})),
    "flow":       ("interactive", _action("flow", {"name": "flow", "parameters": {"flow_cta": "Book a table", "flow_id": "77", "flow_action_payload": {"screen": "TABLE", "data": {"people": 2}}}})),
    "ask_place":  ("interactive", _action("location_request_message", {"name": "send_location"})),
    "address":    ("interactive", _action("address_message", {"name": "address_message", "parameters": {"country": "IN"}})),
    "permission": ("interactive", _action("call_permission_request", {"name": "call_permission_request"})),
    "ask_card":   ("interactive", _action("request_contact_info", {"name": "request_contact_info"})),
    "order":      ("interactive", _action("order_details", {"name": "review_and_pay", "parameters": _ORDER}, body="Your order is ready to be paid.", footer={"text": "The tea shop"})),
    "order_news": ("interactive", _action("order_status", {"name": "review_order", "parameters": {"reference_id": "order-7", "order": {"status": "partially_shipped", "description": "The cup follows on Monday."}}}, body="Half of your order is on its way.")),
    "call":       ("interactive", _action("voice_call", {"name": "voice_call", "parameters": {"display_text": "Call the shop", "ttl_minutes": 30}})),
    "carousel":   ("interactive", _action("carousel", {"cards": [_card(0), _card(1), _card(2)]})),
}
_PHONE_MESSAGES: Final = {  # from the phone
    "own_text":     build_text_message("Yes please 👍"),
    "own_photo":    build_media_message("image", {"id": "m-image", "mime_type": "image/png"}, "Mine"),
    "own_voice":    build_media_message("audio", {"id": "m-audio", "mime_type": "audio/ogg", "voice": True}, None),
    "own_location": build_message("location", _PLACE),
    "own_contacts": build_contacts_message([_PERSON]),
    "own_order":    build_message("order", {"catalog_id": "c-1", "text": "Gift wrap, please", "product_items": [{"product_retailer_id": "tea-1", "quantity": 2, "item_price": 4.5, "currency": "USD"}]}),
    "own_form":     build_response({"type": "FLOW"}, {"people": "2", "time": "19:00"}),
    "own_poll":     build_message("unsupported", {"type": "poll"}),
    "moved":        build_number_change("Ann", "15550002001", "15550002009"),
}
_BASE: Final = TemplateDraft(
    element_name="sample", category="MARKETING", template_type="TEXT", vertical="Samples",
    content="Hello {{1}}, have a look.", example="Hello [Ann], have a look.",
)
YES: Final = TemplateButton(ButtonKind.QUICK_REPLY, "Yes please")
NO: Final = TemplateButton(ButtonKind.QUICK_REPLY, "Not now")
SHOP: Final = TemplateButton(ButtonKind.URL, "To the shop", url="https://shop.test/{{1}}", example=("teas",))
CALL: Final = TemplateButton(ButtonKind.PHONE_NUMBER, "Call us", phone_number="+15550001000")
CODE: Final = TemplateButton(ButtonKind.COPY_CODE, example=("TEA20",))
_APP: Final = (SupportedApp("test.shop", "K8a/AINcGX7"),)


def _draft(**fields: Any) -> TemplateDraft:
    return replace(_BASE, **fields)


def _otp(kind: str) -> TemplateDraft:
    button = TemplateButton(ButtonKind.OTP, "Copy code", otp_type=kind, autofill_text="Fill in" if kind == "ONE_TAP" else "", supported_apps=() if kind == "COPY_CODE" else _APP)
    return _draft(category="AUTHENTICATION", content=None, example=None, buttons=(button,), add_security_recommendation=True, code_expiration_minutes=10)


DRAFTS: Final = {
    "text":     _draft(header="For {{1}}", example_header="For Ann", footer="The tea shop", buttons=(YES, NO)),
    "many":     _draft(buttons=(YES, NO, SHOP, CALL)),
    "image":    _draft(template_type="IMAGE", example_media="4::img", footer="The tea shop", buttons=(SHOP, CALL)),
    "video":    _draft(template_type="VIDEO", example_media="4::vid"),
    "document": _draft(template_type="DOCUMENT", example_media="4::doc"),
    "location": _draft(template_type="LOCATION"),
    "product":  _draft(template_type="PRODUCT"),
    "catalog":  _draft(template_type="CATALOG"),
    "carousel": _draft(template_type="CAROUSEL", cards=tuple(Card("IMAGE", example_media=f"4::{n}", body=f"Tea {n}, only {{{{1}}}}", sample_text=f"Tea {n}, only [4]", buttons=(YES, SHOP)) for n in range(3))),
    "offer":    _draft(is_lto=True, limited_offer_text="Until tonight", has_expiration=True, buttons=(CODE, SHOP)),
    "flow":     _draft(buttons=(TemplateButton(ButtonKind.FLOW, "Book", flow_id="77", navigate_screen="TABLE"),)),
    "one_tap":  _otp("ONE_TAP"),
    "zero_tap": _otp("ZERO_TAP"),
    "code":     _otp("COPY_CODE"),
    "calling":  _draft(is_call_permission_request=True),
    "gaps":     _draft(content="Hello {{1}}, it is {{2}}.", example=None, header="{{1}}"),
    "nothing":  TemplateDraft(),
}
_TEMPLATE_COMPONENTS: Final[dict[str, list[dict[str, Any]]]] = {  # template components of a send
    "text":     [{"type": "header", "parameters": [{"type": "text", "text": "Ann"}]}],
    "many":     [{"type": "button", "sub_type": "url", "index": 2, "parameters": [{"type": "text", "text": "teas"}]}],
    "image":    [{"type": "header", "parameters": [{"type": "image", "image": {"id": "m-image"}}]}, {"type": "button", "sub_type": "url", "index": 0, "parameters": [{"type": "text", "text": "teas"}]}],
    "document": [{"type": "header", "parameters": [{"type": "document", "document": {"id": "m-document", "filename": "terms.pdf"}}]}],
    "location": [{"type": "header", "parameters": [{"type": "location", "location": _PLACE}]}],
    "product":  [{"type": "button", "sub_type": "mpm", "index": 0, "parameters": [{"type": "action", "action": {"thumbnail_product_retailer_id": "tea-1", "sections": _SECTIONS}}]}],
    "catalog":  [],
    "carousel": [{"type": "carousel", "cards": [{"card_index": n, "components": [
        {"type": "header", "parameters": [{"type": "image", "image": {"id": "m-image"}}]}, {"type": "body", "parameters": [{"type": "text", "text": "4"}]},
        {"type": "button", "sub_type": "url", "index": 1, "parameters": [{"type": "text", "text": "teas"}]}]} for n in range(3)]}],
    "offer":    [{"type": "limited_time_offer", "parameters": [{"type": "limited_time_offer", "limited_time_offer": {"expiration_time_ms": UNTIL_MS}}]},
                 {"type": "button", "sub_type": "copy_code", "index": 0, "parameters": [{"type": "coupon_code", "coupon_code": "TEA20"}]},
                 {"type": "button", "sub_type": "url", "index": 1, "parameters": [{"type": "text", "text": "teas"}]}],
    "flow":     [],
    "one_tap":  [{"type": "button", "sub_type": "url", "index": 0, "parameters": [{"type": "text", "text": "123456"}]}],
}
# fmt: on


def business_message(name: str, **more: Any) -> dict[str, Any]:
    """Return a message from the business, as the control API does."""
    kind, content = _BUSINESS_MESSAGES[name]
    return _inbox_item(name, kind, "to_phone", render_message(kind, content, None), more)


def phone_message(name: str, **more: Any) -> dict[str, Any]:
    """Return a message from the phone, likewise."""
    message = _PHONE_MESSAGES[name]
    assert message is not None
    return _inbox_item(name, message.type, "from_phone", message.rendered, more)


def template_message(name: str, **more: Any) -> dict[str, Any]:
    """Return a template message, likewise: the draft when it is submitted, approved and sent."""
    draft = DRAFTS[name]
    if draft.template_type in ("PRODUCT", "CATALOG"):
        draft = add_type_button(draft)
    category = draft.category or ""
    components = fill_preset_texts(category, template_components(draft, {}))
    template = SimulatedTemplate("1", "2", "sample", "en_US", category, components)
    value = "123456" if category == "AUTHENTICATION" else "Ann"
    body = {"type": "body", "parameters": [{"type": "text", "text": value}]}
    rendered = render_template(template, [*_TEMPLATE_COMPONENTS[name], body], now_ms=NOW_MS, references=None)
    return _inbox_item(f"t-{name}", "template", "to_phone", rendered, more)


def all_items() -> list[dict[str, Any]]:
    """Return all of them, in the order of an inbox."""
    reply = phone_message("own_text", wamid="reply", context_id="replies")
    reaction = _inbox_item("r", "reaction", "from_phone", {"reaction": {"message_id": "text", "emoji": "❤️"}}, {})
    items = [
        *map(business_message, _BUSINESS_MESSAGES),
        *map(phone_message, _PHONE_MESSAGES),
        reply,
        *map(template_message, _TEMPLATE_COMPONENTS),
    ]
    return [*items, reaction]


def _inbox_item(name: str, kind: str, direction: str, rendered: dict[str, Any], more: dict[str, Any]) -> dict[str, Any]:
    item: dict[str, Any] = {
        "position": 1, "wamid": name, "direction": direction, "phone_number_id": "2", "type": kind,
        "at_ms": NOW_MS, "state": "read" if direction == "from_phone" else "delivered", "context_id": None,
    }  # fmt: skip
    return {**item, **rendered, **more}
