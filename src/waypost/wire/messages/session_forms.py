"""Reads the `message` of a session form, by the table of kinds."""

import re
from typing import TYPE_CHECKING, Any, Final, Union, get_type_hints

import msgspec

from waypost.domain.coercion import Flag, Text, coerce_text, read_flag
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.domain.message import Content
from waypost.domain.session_messages import SESSION_KINDS
from waypost.domain.session_messages.content import SessionContent
from waypost.domain.session_messages.plain import SessionProducts, SessionText, TextShape
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


if TYPE_CHECKING:
    MessageObject = PlainMessage
else:
    MessageObject = _build_message_type()
_KINDS_BY_TYPE: Final[dict[str, type[SessionContent]]] = {
    name: kind for kind in SESSION_KINDS for name in kind.wire_types
}
_INVISIBLE: Final = " \t\r\n\u00a0\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
"""White space, a byte order mark, and other characters without width that editors put before or after a text."""
_GAP: Final = rf"[\s{_INVISIBLE}]*"
_JSON_START: Final = re.compile(rf"""\{{{_GAP}(?:["'}}]|$)|\[{_GAP}(?:[\[{{"'\]]|$)""")
"""How an object or a list begins, single quotes included; a text such as `{name}, hello` or `[1] Yes` does not."""
_MISTAKES: Final = (  # (how the text begins, what it is): texts that were meant as JSON
    (
        re.compile(rf"""[bBuUrR]{{0,2}}['"`]{{1,3}}{_GAP}[\[{{]{_GAP}["'\\]"""),
        "JSON in quotes, or Python's b'...' of it",
    ),
    (re.compile(rf"""[\[{{]{_GAP}(?:\\["'nrt]|&quot;|&#3[49];|&#x2[27];)"""), "JSON that was escaped twice"),
    (re.compile(r"%(?:25)*(?:7B|5B)", re.IGNORECASE), "JSON that was percent-encoded twice"),
    (re.compile(rf"\{{{_GAP}[\u2018-\u201f\u00ab]"), "JSON with typographic quotes"),
    (re.compile(rf"""\{{{_GAP}[A-Za-z_]+{_GAP}:{_GAP}["'\[{{]"""), "JSON whose names have no quotes"),
    (re.compile(r"\[object \w+\]"), "JavaScript's text of an object that was not encoded"),
    (
        re.compile(rf"""[^{{]{{1,12}}\{{{_GAP}["'](?:type|text)["']{_GAP}:.*\}}\Z""", re.DOTALL),
        "JSON with other characters before it",
    ),
)
_plain_decoder: Final = msgspec.json.Decoder(PlainMessage, strict=False)
_any_kind_decoder: Final = msgspec.json.Decoder(MessageObject, strict=False)


def read_session_message(form: Form) -> Content:
    """Return the message of a session form.

    A message that is not JSON is accepted as a plain text (facts 9.1), and so is a number. What was meant as JSON is
    never sent as a text: it is read, or an error.

    Raises:
        ApiError: it is missing or unreadable, its type is unknown, or a member that the type requires is missing.
    """
    text = form.required("message", _ACCEPTED)
    json_text = text.strip(_INVISIBLE)
    if not (json_text.startswith('{"') or _JSON_START.match(json_text)):
        _reject_intended_json(json_text)
        return SessionText.read(TextShape(text), "text", None)
    text = json_text
    message = read_json(text, _plain_decoder, name="message", accepted=_ACCEPTED, has_texts=True)
    reply_to = coerce_text(message.context.msgId) or None if message.context else None
    wire_type = message.type if message.type == "text" else message.type.strip().lower()
    kind = _KINDS_BY_TYPE.get(wire_type)
    if kind is None:
        raise ApiError(ErrorCode.FIELD_BROKEN, _unknown_type(wire_type))
    if kind is not SessionText:
        accepted = f"as {wire_type} wants it"
        members = read_json(text, _any_kind_decoder, name="message", accepted=accepted, has_texts=True)
        return kind.read(members, wire_type, reply_to)
    preview = message.previewUrl is not None and read_flag(message.previewUrl, "message.previewUrl")
    return SessionText.read(TextShape(message.text, preview and not form.flag("disablePreview")), wire_type, reply_to)


def _reject_intended_json(text: str) -> None:
    """Raise an error for a text that was meant as JSON, and for a JSON value that is neither object nor number."""
    for pattern, mistake in _MISTAKES:
        if pattern.match(text):
            raise invalid_field("message", f"a JSON object such as {_ACCEPTED}, or plain text; it is {mistake}")
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return
    if value is None or isinstance(value, bool | str | list):
        is_value = value is None or isinstance(value, bool)
        kind = (
            msgspec.json.encode(value).decode()
            if is_value
            else "a text in quotes"
            if isinstance(value, str)
            else "a list"
        )
        raise invalid_field("message", f"a JSON object such as {_ACCEPTED}, or plain text without quotes; it is {kind}")


def is_about_products(form: Form) -> bool:
    """True if a form's message is about products, whose credential errors are nested (facts 10)."""
    try:
        text = (form.text("message") or "").strip(_INVISIBLE)
        message = read_json(text, _plain_decoder, name="message", accepted="JSON")
    except ApiError:
        return False
    return message.type.strip().lower() in SessionProducts.wire_types


def _unknown_type(wire_type: str) -> str:
    rule = f"message.type must be one of {', '.join(_KINDS_BY_TYPE)}."
    if wire_type in _ORDER_TYPES:
        rule += f" {wire_type} is sent with POST /partner/app/<APP_ID>/v3/message, type interactive."
    return rule
