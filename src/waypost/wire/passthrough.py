"""Messages in the operator's own words: what a partner posts to `v3/message`, and what it is answered."""

import re
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from waypost.domain.message import Passthrough
from waypost.domain.phone_number import read_phone_number
from waypost.domain.refusals import Reason, Refused
from waypost.wire.forms import Form, read_json, read_json_body
from waypost.wire.lenient import Text, as_text

PRODUCT: Final = "whatsapp"
MESSAGE_EVENT: Final = "message-event"
TYPES: Final = (  # Source: facts 9.3
    "text", "image", "audio", "video", "document", "sticker", "location", "contacts", "reaction",
    "interactive", "template",
)  # fmt: skip
_USER_ID: Final = re.compile(
    r"[A-Z]{2}\.(ENT\.)?[0-9A-Za-z]{1,128}", re.ASCII
)  # operator's facts 7.5


class Language(msgspec.Struct):
    """Of a template."""

    code: str
    policy: str | None = None


class TemplateObject(msgspec.Struct):
    """The `template` of a passthrough. Source: spec, "Flow passthrough message"; facts 9.3."""

    name: str
    language: Language
    components: list[dict[str, Any]] | None = None


class AnsweredMessage(msgspec.Struct):
    """The `context` of a passthrough: ours, or the operator's id."""

    message_id: Text | None = None


class TypingIndicator(msgspec.Struct):
    """Shows the recipient that somebody writes. Source: facts 9.1, read receipts."""

    type: str = "text"


class ReadMessage(msgspec.Struct):
    """The `message` of an event."""

    status: str | None = None
    message_id: Text | None = None
    messaging_product: str | None = None
    typing_indicator: TypingIndicator | None = None


class Event(msgspec.Struct):
    """What `v1/event` takes. Source: facts 9.1, read receipts."""

    type: str | None = None
    message: ReadMessage | None = None


@dataclass(frozen=True, slots=True)
class PassthroughSend:
    """A message to be sent.

    Attributes:
        input: the recipient as the partner wrote it.
        destination: digits, or a business-scoped user id.
    """

    input: str
    destination: str
    content: Passthrough


@dataclass(frozen=True, slots=True)
class ReadReceipt:
    """An inbound message has been read.

    Attributes:
        message_id: the operator's.
        typing: whether to show that somebody writes.
    """

    message_id: str
    typing: bool = False


_object: Final = msgspec.json.Decoder(dict[str, Any])
_list: Final = msgspec.json.Decoder(list[dict[str, Any]])
_context: Final = msgspec.json.Decoder(AnsweredMessage)


def read_passthrough(form: Form) -> PassthroughSend | ReadReceipt:
    """A message, or the receipt that some clients post in the same place (facts 9.1).

    The body is not held against the operator's rules: it goes as it is, and the operator says.

    Raises:
        Refused: another product, a bad recipient, no type or one that there is not, or no object for it.
    """
    product = form.text("messaging_product")
    if product and product.strip().lower() != PRODUCT:
        raise Refused(Reason.FIELD_BROKEN, "messaging_product must be whatsapp.")
    if (form.text("status") or "").strip().lower() == "read":
        typing = bool((form.text("typing_indicator") or "").strip())
        return ReadReceipt(form.required("message_id", "the id of an inbound message"), typing)
    individual = form.text("recipient_type")
    if individual and individual.strip().lower() != "individual":
        raise Refused(Reason.FIELD_BROKEN, "recipient_type must be individual.")
    recipient = form.text("to") or form.text("recipient") or ""
    destination = _destination(recipient.strip())
    kind = form.required("type", ", ".join(TYPES)).strip().lower()
    if kind not in TYPES:
        raise Refused(Reason.FIELD_BROKEN, f"type must be one of {', '.join(TYPES)}.")
    body = _read_object(form, kind)
    reply_to: str | None = None
    context = form.text("context")
    if context and context.strip():
        answered = read_json(context, _context, name="context", accepted='{"message_id":"..."}')
        reply_to = as_text(answered.message_id) or None
    return PassthroughSend(recipient, destination, Passthrough(kind, body, reply_to))


def _destination(recipient: str) -> str:
    number = read_phone_number(recipient)
    if number is not None:
        return number
    if _USER_ID.fullmatch(recipient):
        return recipient
    raise Refused(
        Reason.INVALID_DESTINATION,
        "to must be a phone number of 8 to 15 digits with its country code, or recipient a "
        "business-scoped user id such as US.1349.",
    )


def _read_object(form: Form, kind: str) -> Any:
    accepted = "a list of objects" if kind == "contacts" else "an object"
    text = form.required(kind, f"{accepted}, as the operator's documentation shows it")
    if kind == "contacts":
        return read_json(text, _list, name=kind, accepted=accepted)
    return read_json(text, _object, name=kind, accepted=accepted)


def read_event(body: bytes) -> ReadReceipt:
    """What a partner posts to `v1/event`.

    Raises:
        Refused: no readable JSON of this shape, or another event than a receipt.
    """
    try:
        given = read_json_body(body)
    except Refused as refused:
        raise Refused(Reason.INVALID_JSON_PAYLOAD, refused.explanation) from refused
    if isinstance(given.get("type"), str) and given["type"] != MESSAGE_EVENT:
        raise _not_supported()  # whatever else the body holds: it may be of another shape
    try:
        event = msgspec.convert(given, Event, strict=False)
    except msgspec.ValidationError as error:
        raise Refused(
            Reason.INVALID_JSON_PAYLOAD, f"The body is not as documented: {error}."
        ) from error
    message = event.message
    if event.type is None or message is None:
        raise Refused(
            Reason.INVALID_JSON_PAYLOAD,
            'The body must be {"type":"message-event","message":{"status":"read","message_id":"..."}}.',
        )
    if (message.status or "").lower() != "read":
        raise _not_supported()
    message_id = as_text(message.message_id)
    if not message_id:
        raise Refused(
            Reason.INVALID_JSON_PAYLOAD, "message.message_id must be the id of an inbound message."
        )
    return ReadReceipt(message_id, message.typing_indicator is not None)


def _not_supported() -> Refused:
    return Refused(
        Reason.EVENT_NOT_SUPPORTED, f"type must be {MESSAGE_EVENT}, and message.status read."
    )


def taken(message_id: str, send: PassthroughSend) -> dict[str, Any]:
    """What a taken message answers; a business-scoped id has no number to show.

    Source: spec, "Flow passthrough message", Response; operator's facts 4.3.
    """
    shown = "wa_id" if send.destination[:1].isdecimal() else "user_id"
    return {
        "messages": [{"id": message_id}],
        "messaging_product": PRODUCT,
        "contacts": [{"input": send.input, shown: send.destination}],
    }
