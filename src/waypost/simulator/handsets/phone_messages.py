"""The messages a phone can send: a table of kinds, the content each requires, and the webhook it becomes.

The content comes from the control API or a test. `Handsets` handles media, because it has the media storage.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final

from msgspec import Meta, Struct

from waypost.base.invalid_values import name_type
from waypost.base.json_values import object_or_none, objects_in, text_or_none
from waypost.base.written_numbers import ascii_json
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.field_types import FileName, Id, Name
from waypost.simulator.messages.message_kinds import find_contact_defect
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.phone import SimulatedPhone


class InboundOptions(Struct, frozen=True, kw_only=True):
    """Options that any message from a phone may have.

    Source: facts 7.4.
    """

    context_id: Name | None = None  # the message it replies to
    forwarded: bool = False  # whether it was forwarded
    frequently_forwarded: bool = False  # whether it was forwarded many times
    # `catalog_id` and `product_retailer_id` of the product that it is about
    referred_product: dict[str, Any] | None = None
    referral: dict[str, Any] | None = None  # the advertisement that the person came from

    def rendered_marks(self) -> dict[str, Any]:
        """Return the marks that the phone itself shows."""
        marks = {"forwarded": self.forwarded, "frequently_forwarded": self.frequently_forwarded}
        return {name: True for name, is_set in marks.items() if is_set}

    def webhook_members(self, number: Number) -> dict[str, Any]:
        """Return the members that the webhook's message has for these options."""
        context: dict[str, Any] = {}
        if self.context_id is not None:
            context |= {"from": number.phone_number, "id": self.context_id}
        context |= self.rendered_marks()
        if self.referred_product is not None:
            context |= {"from": number.phone_number, "referred_product": self.referred_product}
        members: dict[str, Any] = {"context": context} if context else {}
        return members | ({"referral": self.referral} if self.referral is not None else {})


class PhoneMedia(Struct, frozen=True, forbid_unknown_fields=True, rename={"media_id": "id"}):
    """Media that a phone sends: new content, or the id of existing media."""

    media_id: Id | None = None  # of media that the business number has; then nothing else is needed
    content: bytes = b""  # the bytes
    mime_type: Annotated[str, Meta(max_length=100)] = ""
    file_name: FileName = ""
    caption: Annotated[str, Meta(max_length=1024)] | None = None
    voice: bool = False  # of audio: whether it is a voice recording
    animated: bool = False  # of a sticker: whether it is animated


PHONE_MEDIA_KINDS: Final = ("image", "video", "audio", "document", "sticker")


class InvalidPhoneMessage(ControlApiError):
    """Raised for a phone's message that lacks a member or has an invalid one."""


@dataclass(frozen=True)
class PhoneMessage:
    """One message from a phone, before it has an id."""

    type: str  # as in the webhook
    content: dict[str, Any]  # the members of the webhook's message that are specific to the type
    rendered: dict[str, Any]  # what the phone itself shows
    opens_window: bool = True  # whether it opens the 24-hour window
    has_contact: bool = True  # whether the webhook also names the sender in `contacts`


def build_message(kind: str, content: dict[str, Any]) -> PhoneMessage:
    """Check the content of a phone's message, and return the message as webhooks carry it.

    Raises:
        InvalidPhoneMessage: something is missing or wrong.

    Source: facts 7.4.
    """
    for name in content if kind in _CONTENT_MEMBERS else ():
        if name not in _CONTENT_MEMBERS[kind]:
            raise InvalidPhoneMessage(f"{kind}.{name}"[:100], "is unknown", ", ".join(_CONTENT_MEMBERS[kind]))
        if name in _CONTENT_TEXTS:
            _check_text(f"{kind}.{name}", content[name])
    return PHONE_MESSAGE_KINDS[kind](content)


def build_media_message(kind: str, media: dict[str, Any], caption: str | None) -> PhoneMessage:
    """Return a phone's message with media."""
    content = {"caption": caption, **media} if caption else media
    return PhoneMessage(kind, {kind: content}, {"text": caption or "", "media": {"kind": kind, **content}})


def build_text_message(body: str) -> PhoneMessage:
    """Return a text message. Source: facts 7.4, `text`."""
    return PhoneMessage("text", {"text": {"body": body}}, {"text": body})


def check_options(options: InboundOptions) -> None:
    """Check the types of what a message from a phone refers to: an ad, or a product.

    Raises:
        InvalidPhoneMessage: a documented member has another type.

    Source: facts 7.4.
    """
    for field, names in _REFERENCE_TEXTS.items():
        content: dict[str, Any] = getattr(options, field) or {}
        for name in names:
            if name in content:
                _check_text(f"{field}.{name}", content[name])


def _check_text(path: str, value: object) -> None:
    if not isinstance(value, str):
        raise InvalidPhoneMessage(path, f"must be a text, not {name_type(value)}", "a text")


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _location(content: dict[str, Any]) -> PhoneMessage:
    for name, at_most in (("latitude", 90), ("longitude", 180)):
        if not _is_number(content.get(name)) or not -at_most <= content[name] <= at_most:
            accepted = f"a number from -{at_most} to {at_most}"
            raise InvalidPhoneMessage(f"location.{name}", "is not valid", accepted)
    text = ", ".join(content[name] for name in ("name", "address") if content.get(name))
    return PhoneMessage("location", {"location": content}, {"text": text, "location": content})


def build_contacts_message(cards: list[dict[str, Any]]) -> PhoneMessage:
    """Return a message with contact cards. Source: facts 7.4, `contacts`."""
    names = [(object_or_none(card.get("name")) or {}).get("formatted_name") for card in cards]
    for index, name in enumerate(names):
        if name is not None:
            _check_text(f"contacts[{index}].name.formatted_name", name)
    if not names or not all(names):
        raise InvalidPhoneMessage("contacts", "every card needs a name", '[{"name": {"formatted_name": "Bo"}, ...}]')
    for index, card in enumerate(cards):
        if defect := find_contact_defect(card):
            path, rule = defect
            parts = "".join(f".{part}" if isinstance(part, str) else f"[{part}]" for part in path)
            raise InvalidPhoneMessage(f"contacts[{index}]{parts}", rule, rule.removeprefix("must be "))
    rendered = {"text": ", ".join(map(str, names)), "contacts": cards}
    return PhoneMessage("contacts", {"contacts": cards}, rendered)


def _reaction(content: dict[str, Any]) -> PhoneMessage:
    """Return a reaction; without an emoji it removes the earlier one. Source: facts 7.4, `reaction`."""
    message_id = text_or_none(content.get("message_id"))
    if not message_id:
        raise InvalidPhoneMessage("reaction.message_id", "is missing", "a wamid of the phone's inbox")
    emoji = text_or_none(content.get("emoji")) or ""
    reaction = {"message_id": message_id} | ({"emoji": emoji} if emoji else {})
    return PhoneMessage("reaction", {"reaction": reaction}, {"text": emoji, "reaction": reaction})


def _order(content: dict[str, Any]) -> PhoneMessage:
    """Return an order of a catalog's products. Source: facts 7.4, `order`."""
    items = objects_in(content.get("product_items"))
    if not text_or_none(content.get("catalog_id")) or not items:
        raise InvalidPhoneMessage("order", "needs a catalog_id and product_items", _ORDER_FORMAT)
    for index, item in enumerate(items):
        for name in ("product_retailer_id", "currency"):
            if name in item:
                _check_text(f"order.product_items[{index}].{name}", item[name])
        if (
            not text_or_none(item.get("product_retailer_id"))
            or not isinstance(item.get("quantity"), int)
            or isinstance(item.get("quantity"), bool)
            or not _is_number(item.get("item_price"))
            or not text_or_none(item.get("currency"))
        ):
            raise InvalidPhoneMessage(f"order.product_items[{index}]", "is incomplete", _ORDER_FORMAT)
    text = text_or_none(content.get("text")) or ""
    order = {"catalog_id": content["catalog_id"], "text": text, "product_items": items}
    return PhoneMessage("order", {"order": order}, {"text": text, "order": order})


def _unsupported(content: dict[str, Any]) -> PhoneMessage:
    """Return a message of a type that the operator does not pass on. Source: facts 7.4, `unsupported`."""
    code = content.get("code", 131051)
    if not isinstance(code, int) or code not in _UNSUPPORTED_TEXTS:
        raise InvalidPhoneMessage("unsupported.code", "is not such a code", ", ".join(map(str, _UNSUPPORTED_TEXTS)))
    title, details = _UNSUPPORTED_TEXTS[code]
    error = {"code": code, "title": title, "message": title, "error_data": {"details": details}}
    kind = text_or_none(content.get("type"))
    members: dict[str, Any] = {"errors": [error]}
    if kind:
        members["unsupported"] = {"type": kind}
    return PhoneMessage("unsupported", members, {"text": "", "unsupported": {"type": kind or "unknown"}})


def _notice(system: dict[str, Any]) -> PhoneMessage:
    shown = {"text": system["body"], "system": system}
    return PhoneMessage("system", {"system": system}, shown, opens_window=False, has_contact=False)


def build_number_change(name: str, old_number: str, new_number: str) -> PhoneMessage:
    """Return the message about a changed phone number. Source: facts 7.4, `system`."""
    body = f"User {name} changed from {old_number} to {new_number}"
    return _notice({"body": body, "wa_id": new_number, "type": "user_changed_number"})


def user_id_change_text(phone: SimulatedPhone, user_id: str) -> str:
    """Return the text of a notice of another user id."""
    return f"User {phone.username or phone.name} changed from {phone.user_id} to {user_id}"


def build_user_id_change(phone: SimulatedPhone, user_id: str) -> PhoneMessage:
    """Return the message about another user id. Source: the operator's page "Business-scoped user IDs"."""
    system = {"body": user_id_change_text(phone, user_id), "user_id": user_id, "type": "user_changed_user_id"}
    return _notice(system | ({"wa_id": phone.whatsapp_id} if phone.shows_number else {}))


# fmt: off
_CONTENT_MEMBERS: Final = {  # of the kinds whose content is an object. Source: facts 7.4
    "location":    ("latitude", "longitude", "name", "address", "url"),
    "reaction":    ("message_id", "emoji"),
    "order":       ("catalog_id", "text", "product_items"),
    "unsupported": ("type", "code"),
}
# fmt: on
_UNSUPPORTED_TEXTS: Final = {  # Source: facts 7.4; 131060: the operator's page "Onboard WhatsApp Business app users"
    131051: ("Message type unknown", "Message type is currently not supported."),
    131060: ("This message is unavailable", "This message is currently unavailable. Please check your phone."),
}
_REFERENCE_TEXTS: Final = {
    "referred_product": ("catalog_id", "product_retailer_id"),
    "referral": (
        "source_url",
        "source_type",
        "source_id",
        "headline",
        "body",
        "media_type",
        "image_url",
        "video_url",
        "thumbnail_url",
        "ctwa_clid",
    ),
}  # fmt: skip
_CONTENT_TEXTS: Final = ("name", "address", "url", "message_id", "emoji", "catalog_id", "text", "type")
_ORDER_FORMAT: Final = (
    '{"catalog_id", "text"?, "product_items": [{"product_retailer_id", "quantity", "item_price", "currency"}]}'
)

PHONE_MESSAGE_KINDS: Final[
    dict[str, Callable[[Any], PhoneMessage]]
] = {  # Source: facts 7.4; the member of the request has the kind's name
    "text": build_text_message,
    "location": _location,
    "contacts": build_contacts_message,
    "reaction": _reaction,
    "order": _order,
    "unsupported": _unsupported,
}


def build_response(button: dict[str, Any], response: dict[str, Any]) -> PhoneMessage:
    """Return the message that sends back the form or the choice that a button opens.

    Source: facts 7.4, `nfm_reply` and `call_permission_reply`.
    """
    match button["type"]:
        case "FLOW":
            name, body = "flow", "Sent"
            filled = {"flow_token": button.get("flow_token", "unused"), **response}
        case "ADDRESS":
            name, body = "address_message", "\n".join(str(value) for value in response.values()) or "Sent"
            filled = {"values": response}
        case "CALL_PERMISSION":
            choice = {"response": "accept", "response_source": "user_action", **response}
            if choice["response"] not in ("accept", "reject"):
                raise InvalidPhoneMessage("response.response", "is not a decision", "accept, reject")
            return _interactive("call_permission_reply", choice, {"text": choice["response"]})
        case kind:
            raise ValueError(f"a {kind} button opens neither a form nor a choice")
    reply = {"name": name, "body": body, "response_json": ascii_json(filled)}
    return _interactive("nfm_reply", reply, {"text": body, "response": filled})


def build_tap(button: dict[str, Any]) -> PhoneMessage | None:
    """Return the message that a tap on a button sends; None if it sends none.

    Source: facts 7.4, `button` and `interactive`.
    """
    text = button["text"]
    chosen = {"id": button.get("payload"), "title": text}
    match button["type"]:
        case "QUICK_REPLY":
            content = {"payload": button["payload"], "text": text}
            return PhoneMessage("button", {"button": content}, {"text": text, "button": content})
        case "REPLY":
            return _interactive("button_reply", chosen, {"text": text})
        case "LIST_ROW":
            if button.get("description"):
                chosen["description"] = button["description"]
            return _interactive("list_reply", chosen, {"text": text})
        case _:
            return None


def _interactive(kind: str, reply: dict[str, Any], rendered: dict[str, Any]) -> PhoneMessage:
    content = {"type": kind, kind: reply}
    return PhoneMessage("interactive", {"interactive": content}, {**rendered, "interactive": content})


NOT_REQUESTED_BUTTON: Final = {
    "index": 0,
    "type": "QUICK_REPLY",
    "text": "I didn't request a code",
    "payload": "DID_NOT_REQUEST_CODE",
}
"""The button that WhatsApp itself adds to one-time codes. Source: facts 7.4."""
