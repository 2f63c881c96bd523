"""Version 2 bodies of recipients' messages, by a table of the kinds."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, cast

from waypost.domain.app import App
from waypost.domain.event import InboundEvent
from waypost.domain.phone_number import country_and_national
from waypost.domain.postback import InboundContext
from waypost.wire.callbacks.callback_v2 import envelope

Payload = dict[str, Any]


@dataclass(frozen=True, slots=True)
class InboundKind:
    """A row of the table of inbound messages.

    Attributes:
        type: `payload.type` of the callback.
        payload: returns the inner `payload`; None: there is none.
        envelope_type: `type` of the callback.
        context: returns members of `payload.context` in addition to those of a reply.
    """

    type: str
    payload: Callable[[InboundEvent, InboundContext], Payload] | None
    envelope_type: str = "message"
    context: Callable[[InboundEvent], Payload] | None = None


def inbound_body(app: App, at_ms: int, event: InboundEvent, context: InboundContext) -> bytes | None:
    """Return the body of a recipient's message; None where version 2 has no format for it.

    Args:
        app: the app of the number that received it.
        at_ms: now; the operator's time has whole seconds and would run backwards.
        event: the message.
        context: our data about it.

    Source: spec, "Events"; ledger row 36; facts 6.4 (`context.id` is the operator's id, `context.gsId` ours).
    """
    kind = V2_INBOUND_KINDS.get(event.kind)
    if kind is None:
        return None
    phone = event.sender or event.sender_user_id or ""
    country_code, national = country_and_national(event.sender) if event.sender else ("", "")
    payload: Payload = {"id": event.operator_message_id, "source": phone, "type": kind.type}
    if kind.payload is not None:
        payload["payload"] = kind.payload(event, context)
    names = {"phone": phone, "name": event.sender_name, "country_code": country_code, "dial_code": national}
    if app.preferences.user_ids and event.sender_user_id:
        names["userId"] = event.sender_user_id
    payload["sender"] = names
    reply_context: Payload = {}
    if event.reply_to is not None or event.forwarded or event.frequently_forwarded:
        reply_context = _context(event, context)
    if kind.context is not None:
        reply_context |= kind.context(event)
    if reply_context:
        payload["context"] = reply_context
    if event.referral:
        payload["referral"] = event.referral
    return envelope(app, at_ms, kind.envelope_type, payload)


def _context(event: InboundEvent, context: InboundContext) -> Payload:
    payload: Payload = {}
    if event.reply_to is not None:
        payload["id"] = event.reply_to
    if context.reply_target_id is not None:
        payload["gsId"] = context.reply_target_id
    payload["forwarded"] = event.forwarded
    payload["frequently_forwarded"] = event.frequently_forwarded
    return payload


def _text(event: InboundEvent, _: InboundContext) -> Payload:
    return {"text": event.text("body")}


def _tap(event: InboundEvent, context: InboundContext) -> Payload:
    payload: Payload = {"text": event.text("text"), "type": "button"}
    if context.postback_text is not None:
        payload["postbackText"] = context.postback_text
    return payload


def _choice(event: InboundEvent, context: InboundContext) -> Payload:
    """Return the choice. Its `id` is the partner's `msgid`, empty without one. Source: facts 6.4."""
    title, reply = event.text("title"), context.reply
    number = None if reply is None else reply.number
    payload: Payload = {
        "title": title,
        "id": reply.sender_id if reply else "",
        "reply": title if number is None else f"{title} {number}",
    }
    if reply is not None and reply.postback_text is not None:
        payload["postbackText"] = reply.postback_text
    return payload


def _list_choice(event: InboundEvent, context: InboundContext) -> Payload:
    return {**_choice(event, context), "description": event.text("description")}


def _medium(event: InboundEvent, context: InboundContext) -> Payload:
    payload: Payload = {}
    if event.text("caption"):
        payload["caption"] = event.text("caption")
    if event.kind == "document":
        payload["name"] = event.text("filename")
    if context.media is not None:
        payload["url"] = context.media.url
    payload["contentType"] = event.text("mime_type")
    if context.media is not None:
        payload["urlExpiry"] = context.media.until_ms
    return payload


def _location(event: InboundEvent, _: InboundContext) -> Payload:
    """Return the location; degrees are texts, as in the sample. Source: facts 6.4."""
    location = _object(event.content)
    payload: Payload = {name: str(location.get(name, "")) for name in ("longitude", "latitude")}
    payload |= {name: location[name] for name in ("name", "address") if location.get(name)}
    return payload


def _contacts(event: InboundEvent, _: InboundContext) -> Payload:
    cards = [_object(card) for card in _items(event.content)]
    return {"contacts": [_card(card) for card in cards]}


def _card(card: Payload) -> Payload:
    """Return a contact card with every member that readers may expect, and others that it has.

    Source: facts 6.4; ledger row 47.
    """
    addresses = [_object(item) for item in _items(card.get("addresses"))]
    return {
        "addresses": [
            {**_select_members(address, "city", "country"), "countryCode": address.get("country_code", "")}
            | _select_members(address, "state", "street", "type", "zip")
            for address in addresses
        ],
        **_present_members(card, "birthday"),
        "emails": [_select_members(_object(item), "email", "type") for item in _items(card.get("emails"))],
        "ims": _items(card.get("ims")),
        "name": _card_part(card, "name"),
        "org": _card_part(card, "org"),
        "phones": [
            _select_members(_object(item), "phone", "type") | _present_members(_object(item), "wa_id")
            for item in _items(card.get("phones"))
        ],
        "urls": [_select_members(_object(item), "url", "type") for item in _items(card.get("urls"))],
    }


def _card_part(card: Payload, name: str) -> Payload:
    members, more = _CARD_PARTS[name]
    part = _object(card.get(name))
    return _select_members(part, *members) | _present_members(part, *more)


def _reaction(event: InboundEvent, context: InboundContext) -> Payload:
    """Return the reaction; without an emoji it was removed."""
    payload: Payload = {"emoji": event.text("emoji"), "id": event.text("message_id")}
    if context.reply_target_id is not None:
        payload["gsId"] = context.reply_target_id
    return payload


def _order_text(event: InboundEvent, _: InboundContext) -> Payload:
    return {"text": event.text("text")}


def _order_context(event: InboundEvent) -> Payload:
    """Return the products of an order. Source: ledger row 49."""
    items = [_object(item) for item in _items(_object(event.content).get("product_items"))]
    shown_items = [{name: item.get(given) for name, given in _ORDER_ITEM_MEMBERS.items()} for item in items]
    return {"catalog": {"id": event.text("catalog_id"), "order": {"items": shown_items}}}


def _select_members(value: Payload, *names: str) -> Payload:
    return {name: value.get(name, "") for name in names}


def _present_members(value: Payload, *names: str) -> Payload:
    return {name: value[name] for name in names if value.get(name)}


def _object(value: Any) -> Payload:
    return cast(Payload, value) if isinstance(value, dict) else {}


def _items(value: Any) -> list[Any]:
    return cast(list[Any], value) if isinstance(value, list) else []


_CARD_PARTS: Final = {  # of a contact card: members that it always has, and further ones. Source: facts 6.4; ledger row 47
    "name": (("first_name", "formatted_name", "last_name"), ("middle_name", "prefix", "suffix")),
    "org": (("company",), ("department", "title")),
}
_ORDER_ITEM_MEMBERS: Final = {  # of a product, and the operator's names of them. Source: ledger row 49; operator's facts 7.4
    "id": "product_retailer_id",
    "currency": "currency",
    "amount": "item_price",
    "quantity": "quantity",
}
V2_INBOUND_KINDS: Final = {  # Source: facts 6.4; ledger rows 49, 50; a flow's reply, and other kinds not listed, have no format in version 2
    # the operator's kind, `payload.type`, inner payload, `type`, more context
    "text": InboundKind("text", _text),
    "button": InboundKind("quick_reply", _tap),
    "button_reply": InboundKind("button_reply", _choice),
    "list_reply": InboundKind("list_reply", _list_choice),
    "image": InboundKind("image", _medium),
    "video": InboundKind("video", _medium),
    "audio": InboundKind("audio", _medium),
    "document": InboundKind("file", _medium),
    "sticker": InboundKind("sticker", _medium),
    "location": InboundKind("location", _location),
    "contacts": InboundKind("contact", _contacts),
    "reaction": InboundKind("reaction", _reaction),
    "order": InboundKind("text", _order_text, "order", _order_context),
    "request_welcome": InboundKind("request_welcome", None),
}
