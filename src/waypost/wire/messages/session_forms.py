"""Reads the `message` of a session form, by the table of kinds."""

from typing import Any, Final, Union, get_type_hints

import msgspec

from waypost.domain.coercion import Flag, Text, coerce_text, read_flag
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.domain.message import Content
from waypost.domain.session_messages import SESSION_KINDS
from waypost.domain.session_messages.content import SessionContent
from waypost.domain.session_messages.plain import SessionText, TextShape
from waypost.domain.session_messages.products import SessionProducts
from waypost.wire.forms import Form, read_json

_ACCEPTED: Final = '{"type":"text","text":"..."} with at most 4096 characters'
_ORDER_TYPES: Final = ("order_details", "order_status")
"""Types that the public API documents for version 3 only. Source: public page "Payment link message"."""


class ContextObject(msgspec.Struct):
    """The message that this one replies to. Source: spec, "Send session text message", message object."""

    msgId: Text | None = None  # noqa: N815  the wire's name


class PlainMessage(msgspec.Struct):
    """The members of every type, and those of a text message, which is the most frequent one."""

    type: str = "text"
    text: Text | None = None
    previewUrl: Flag | None = None  # noqa: N815  in an image message: a URL
    context: ContextObject | None = None


def _build_message_type() -> type[msgspec.Struct]:
    """Return the type of the message object, with the members of every kind, so that none is ignored if invalid."""
    members: dict[str, list[Any]] = {"isHSM": [Flag | None]}  # sent by old clients; ignored
    for shape in (PlainMessage, *(kind.shape for kind in SESSION_KINDS if kind is not SessionText)):
        for name, type_ in get_type_hints(shape).items():
            members.setdefault(name, []).append(type_)
    del members["type"]
    fields = [(name, Union[tuple(types)], None) for name, types in members.items()]  # noqa: UP007  a list of types
    return msgspec.defstruct("SessionMessage", [("type", str, "text"), *fields])


SESSION_MESSAGE: Final = _build_message_type()
_KINDS_BY_TYPE: Final[dict[str, type[SessionContent]]] = {
    name: kind for kind in SESSION_KINDS for name in kind.wire_types
}
_plain_decoder: Final = msgspec.json.Decoder(PlainMessage, strict=False)
_any_kind_decoder: Final = msgspec.json.Decoder(SESSION_MESSAGE, strict=False)


def read_session_message(form: Form) -> Content:
    """Return the message of a session form.

    A message that is not JSON is accepted as a plain text (facts 9.1), and so is a number.

    Raises:
        ApiError: it is missing or unreadable, its type is unknown, or a member that the type requires is missing.
    """
    text = form.required("message", _ACCEPTED)
    if text.lstrip()[:1] not in ("{", "["):
        _reject_json_value(text)
        return SessionText.read(TextShape(text), "text", None)
    message = read_json(text, _plain_decoder, name="message", accepted=_ACCEPTED)
    reply_to = coerce_text(message.context.msgId) or None if message.context else None
    wire_type = message.type if message.type == "text" else message.type.strip().lower()
    kind = _KINDS_BY_TYPE.get(wire_type)
    if kind is None:
        raise ApiError(ErrorCode.FIELD_BROKEN, _unknown_type(wire_type))
    if kind is not SessionText:
        members = read_json(text, _any_kind_decoder, name="message", accepted=f"as {wire_type} wants it")
        return kind.read(members, wire_type, reply_to)
    preview = message.previewUrl is not None and read_flag(message.previewUrl, "message.previewUrl")
    return SessionText.read(TextShape(message.text, preview and not form.flag("disablePreview")), wire_type, reply_to)


def _reject_json_value(text: str) -> None:
    """Raise an error for JSON that is neither an object nor meant as a text: null, true, false, a quoted string."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return
    if value is None or isinstance(value, bool | str):
        kind = "a string" if isinstance(value, str) else msgspec.json.encode(value).decode()
        raise invalid_field(
            "message", f"a JSON object such as {_ACCEPTED}, or plain text without quotes; it is JSON's {kind}"
        )


def is_about_products(form: Form) -> bool:
    """True if a form's message is about products, whose credential errors are nested (facts 10)."""
    try:
        message = read_json(form.text("message") or "", _plain_decoder, name="message", accepted="JSON")
    except ApiError:
        return False
    return message.type.strip().lower() in SessionProducts.wire_types


def _unknown_type(wire_type: str) -> str:
    rule = f"message.type must be one of {', '.join(_KINDS_BY_TYPE)}."
    if wire_type in _ORDER_TYPES:
        rule += f" {wire_type} is sent with POST /partner/app/<APP_ID>/v3/message, type interactive."
    return rule
