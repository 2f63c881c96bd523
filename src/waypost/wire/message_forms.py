"""Session and template forms to messages."""

from dataclasses import dataclass
from typing import Annotated, Final

import msgspec

from waypost.domain.message import SessionText, TemplateSend
from waypost.domain.phone_number import read_phone_number
from waypost.domain.refusals import Reason, Refused
from waypost.wire.forms import Form, read_json

MOST_TEXT: Final = 4096  # Source: operator 4.1
MOST_PARAMS: Final = 400
CHANNEL: Final = "whatsapp"

Index = Annotated[int, msgspec.Meta(ge=0, le=99)]
Number = str | int | float


class _Context(msgspec.Struct):
    msgId: str | None = None  # noqa: N815  the wire's name


class _TextMessage(msgspec.Struct):
    type: str = "text"
    text: str | None = None
    previewUrl: bool | None = None  # noqa: N815  the wire's name
    context: _Context | None = None


class _Template(msgspec.Struct):
    id: str
    params: list[Number | None] | None = None


class _PostbackText(msgspec.Struct):
    index: Index
    text: str


class _TemplateMessage(msgspec.Struct):
    type: str = "text"
    postbackTexts: list[_PostbackText] | None = None  # noqa: N815  the wire's name


_text_message: Final = msgspec.json.Decoder(_TextMessage, strict=False)
_template: Final = msgspec.json.Decoder(_Template)
_postback_texts: Final = msgspec.json.Decoder(list[_PostbackText], strict=False)
_template_message: Final = msgspec.json.Decoder(_TemplateMessage, strict=False)


@dataclass(frozen=True, slots=True)
class Addresses:
    """From whom to whom, as digits, and the app's name."""

    source: str
    destination: str
    app_name: str


def read_addresses(form: Form) -> Addresses:
    """Source, destination and app name, refused in this order: destination, then app details.

    Source: spec, "Send session text message" and "Errors"; facts 9.2, "Errors".

    Raises:
        Refused: the documented text for each.
    """
    channel = form.text("channel")
    if channel and channel.strip().lower() != CHANNEL:
        raise Refused(Reason.FIELD_BROKEN, "channel must be whatsapp.")
    destination = read_phone_number(form.text("destination") or "")
    if destination is None:
        raise Refused(
            Reason.INVALID_DESTINATION,
            "destination must be a phone number of 8 to 15 digits with its country code.",
        )
    source = read_phone_number(form.text("source") or form.text("src") or "")
    if source is None:
        raise Refused(
            Reason.INVALID_APP_DETAILS,
            "source must be the phone number of one of your apps: 8 to 15 digits.",
        )
    name = form.text("src.name")
    if not name:
        raise Refused(Reason.INVALID_APP_DETAILS, "src.name must be the name of the app.")
    return Addresses(source, destination, name)


def read_session_text(form: Form) -> SessionText:
    """The message of a session form.

    Raises:
        Refused: missing, unreadable, of another type, or without a text.
    """
    accepted = '{"type":"text","text":"..."} with at most 4096 characters'
    text = form.required("message", accepted)
    message = read_json(text, _text_message, name="message", accepted=accepted)
    if message.type.lower() != "text":
        raise Refused(
            Reason.FIELD_BROKEN, "message.type must be text, the one type that this version takes."
        )
    if not message.text or not message.text.strip():
        raise Refused(Reason.FIELD_BROKEN, "message.text is required: at least one character.")
    if len(message.text) > MOST_TEXT:
        raise Refused(
            Reason.FIELD_BROKEN,
            f"message.text must be at most {MOST_TEXT} characters; it has {len(message.text)}.",
        )
    reply_to = message.context.msgId if message.context else None
    return SessionText(message.text, bool(message.previewUrl), reply_to or None)


def read_template_send(form: Form) -> TemplateSend:
    """Template, parameters and postback texts of a template form.

    Postback texts may stand in a field of their own or inside `message`; the field counts.
    How many parameters the template takes is for the operator to check (facts 9.2).

    Raises:
        Refused: missing or unreadable.
    """
    accepted = '{"id":"<template id>","params":["..."]}'
    text = form.required("template", accepted)
    template = read_json(text, _template, name="template", accepted=accepted)
    params = template.params or []
    if len(params) > MOST_PARAMS:
        raise Refused(
            Reason.FIELD_BROKEN, f"template.params must hold at most {MOST_PARAMS} values."
        )
    return TemplateSend(
        template.id,
        tuple("" if value is None else _as_text(value) for value in params),
        _read_postback_texts(form),
    )


def _read_postback_texts(form: Form) -> dict[int, str] | None:
    own = form.text("postbackTexts")
    if own and own.strip():
        accepted = '[{"index":0,"text":"..."}]'
        items = read_json(own, _postback_texts, name="postbackTexts", accepted=accepted)
    else:
        message = form.text("message")
        if not message or not message.strip():
            return None
        accepted = '{"type":"text","postbackTexts":[{"index":0,"text":"..."}]}'
        content = read_json(message, _template_message, name="message", accepted=accepted)
        if content.type.lower() != "text":
            raise Refused(
                Reason.FIELD_BROKEN, "message.type must be text for a template of type TEXT."
            )
        items = content.postbackTexts or []
    return {item.index: item.text for item in items} or None


def _as_text(value: Number) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
