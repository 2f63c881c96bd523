"""Messages in the operator's own format: requests to `v3/message` and `v1/event`, and the response."""

import re
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import msgspec

from waypost.domain.coercion import Text, coerce_text
from waypost.domain.errors import ApiError, ErrorCode, invalid_field, missing_parameter
from waypost.domain.message import Passthrough
from waypost.domain.phone_number import describe_recipient, group_destination, parse_group_id, read_recipient_number
from waypost.wire.calling import VOICE_EVENT, CallEvent, read_voice
from waypost.wire.forms import Form, mismatch, read_json, read_json_body

Decoded = TypeVar("Decoded")
MESSAGING_PRODUCT: Final = "whatsapp"
MESSAGE_EVENT: Final = "message-event"
CALLBACK_DATA: Final = "biz_opaque_callback_data"
MAX_CALLBACK_DATA_CHARS: Final = 512 - 37
"""The operator's limit, minus our id and a space before it. Source: operator's facts 4.1."""
MAX_GROUP_ID_CHARS: Final = 200
RECIPIENT_TYPES: Final = ("individual", "group")  # Source: ledger C31
RECEIPT_MEMBERS: Final = ("messaging_product", "status", "message_id", "typing_indicator")  # Source: facts 9.1
_TYPES: Final = "text image audio video document sticker location contacts reaction interactive template"
PASSTHROUGH_TYPES: Final = tuple(_TYPES.split())  # Source: facts 9.3
_EVENT: Final = '{"type":"message-event","message":{"status":"read","message_id":"..."}}'
_USER_ID: Final = re.compile(r"[A-Z]{2}\.(ENT\.)?[0-9A-Za-z]{1,128}", re.ASCII)  # operator's facts 7.5


class TemplateLanguage(msgspec.Struct):
    """The language of a template."""

    code: str
    policy: str | None = None


class TemplateObject(msgspec.Struct):
    """The `template` of a passthrough. Source: spec, "Flow passthrough message"; facts 9.3."""

    name: str
    language: TemplateLanguage
    components: list[dict[str, Any]] | None = None


class MessageContext(msgspec.Struct):
    """The `context` of a passthrough, with our message id or the operator's."""

    message_id: Text | None = None


class TypingIndicator(msgspec.Struct):
    """Shows the recipient a typing indicator. Source: facts 9.1, read receipts."""

    type: str = "text"


class ReadMessage(msgspec.Struct):
    """The `message` of an event."""

    status: str | None = None
    message_id: Text | None = None
    messaging_product: str | None = None
    typing_indicator: TypingIndicator | None = None


class ReceiptEvent(msgspec.Struct):
    """The body of `v1/event`. Source: facts 9.1, read receipts."""

    type: str | None = None
    message: ReadMessage | None = None


@dataclass(frozen=True, slots=True)
class PassthroughSend:
    """A message to be sent."""

    input: str  # the recipient as the partner wrote it
    destination: str  # digits, a business-scoped user id, or a group (`group_destination`)
    content: Passthrough


@dataclass(frozen=True, slots=True)
class ReadReceipt:
    """An inbound message has been read."""

    message_id: str  # the operator's
    typing: bool = False  # true to show a typing indicator


_object_decoder: Final = msgspec.json.Decoder(dict[str, Any])
_list_decoder: Final = msgspec.json.Decoder(list[dict[str, Any]])
_context_decoder: Final = msgspec.json.Decoder(MessageContext)
_any_decoder: Final = msgspec.json.Decoder(Any)
Members = dict[str, Any]


def read_passthrough(request: Members | Form) -> PassthroughSend | ReadReceipt:
    """Read a message, or the receipt that some clients send to the same endpoint (facts 9.1).

    The body is not checked against the operator's rules: every member is passed on unchanged, and the
    operator decides. The texts of a form are decoded first (`_form_members`).

    Raises:
        ApiError: another product, an invalid recipient, a missing or unknown type, no object for it, a
            template without a name, or a receipt with a member that it cannot have.
    """
    members = _form_members(request) if isinstance(request, Form) else dict(request)
    product = _read_lower_text(members, "messaging_product")
    if product not in ("", MESSAGING_PRODUCT):
        raise invalid_field("messaging_product", "whatsapp")
    if _read_lower_text(members, "status") == "read":
        return _read_receipt(members)
    recipient_type = _read_lower_text(members, "recipient_type")
    if recipient_type not in ("", *RECIPIENT_TYPES):
        raise invalid_field("recipient_type", " or ".join(RECIPIENT_TYPES))
    written, destination = _read_recipient(members, is_group=recipient_type == "group")
    kind = _read_lower_text(members, "type")
    if not kind:
        raise missing_parameter("type", ", ".join(PASSTHROUGH_TYPES))
    if kind not in PASSTHROUGH_TYPES:
        raise invalid_field("type", f"one of {', '.join(PASSTHROUGH_TYPES)}")
    body = _read_type_object(members, kind)
    data = members.get(CALLBACK_DATA)  # the partner's, which follows our id
    if data is not None and not (isinstance(data, str) and len(data) <= MAX_CALLBACK_DATA_CHARS):
        raise invalid_field(CALLBACK_DATA, f"a text of at most {MAX_CALLBACK_DATA_CHARS} characters")
    for name, value in (("messaging_product", product), ("recipient_type", recipient_type)):
        members.pop(name, None)
        if value:
            members[name] = value
    del members["type"], members[kind]
    reply_to = _read_reply_to(members)
    return PassthroughSend(written, destination, Passthrough(kind, body, reply_to, members))


def _form_members(form: Form) -> Members:
    """Return the members from a form's fields, without empty ones.

    A field with a JSON object or list is decoded, `ttl_seconds` is a number, every other field is a text.
    """
    members: Members = {}
    for name, text in form.texts().items():
        members[name] = text
        if name == "ttl_seconds" and text.isascii() and text.isdecimal() and len(text) < 10:
            members[name] = int(text)
        elif text[0] in "{[" and name not in (*PASSTHROUGH_TYPES, "context"):
            try:
                members[name] = read_json(text, _any_decoder, name=name, accepted="JSON")
            except ApiError as error:
                if not isinstance(error.__cause__, msgspec.DecodeError):
                    raise
    return members


def _read_lower_text(members: Members, name: str) -> str:
    """Return a text member in lower case; empty where it is missing.

    Raises:
        ApiError: it is not a text.
    """
    value = members.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise invalid_field(name, "a text")
    return value.strip().lower()


def _read_receipt(members: Members) -> ReadReceipt:
    unknown = [name for name, value in members.items() if value is not None and name not in RECEIPT_MEMBERS]
    if unknown:
        raise ApiError(
            ErrorCode.FIELD_BROKEN,
            f"{unknown[0][:100]} is not a member of a read receipt; accepted: {', '.join(RECEIPT_MEMBERS)}.",
        )
    message_id = members.get("message_id")
    if not message_id or not isinstance(message_id, str | int) or isinstance(message_id, bool):
        raise missing_parameter("message_id", "the id of an inbound message")
    typing = members.get("typing_indicator")
    return ReadReceipt(str(message_id), bool(typing.strip() if isinstance(typing, str) else typing))


def _read_recipient(members: Members, *, is_group: bool) -> tuple[str, str]:
    """Return the recipient as written, and as the destination of a message: `to`, else `recipient`."""
    name = "to" if members.get("to") not in (None, "") else "recipient"
    value = members.get(name, "")
    if value is None:
        value = ""
    if not isinstance(value, str | int) or isinstance(value, bool):
        raise invalid_field(name, "a text")
    written = str(value)
    if is_group:
        if not written.strip() or len(written) > MAX_GROUP_ID_CHARS:
            raise ApiError(
                ErrorCode.INVALID_DESTINATION,
                f"to must be the id of a group, of at most {MAX_GROUP_ID_CHARS} characters.",
            )
        return written, group_destination(written.strip())
    return written, _destination(written.strip(), name)


def _destination(recipient: str, name: str) -> str:
    number = read_recipient_number(recipient)
    if number is not None:
        return number
    if name == "recipient" and _USER_ID.fullmatch(recipient):
        return recipient
    raise ApiError(
        ErrorCode.INVALID_DESTINATION,
        f"to must be {describe_recipient(recipient)}, or recipient a business-scoped user id such as US.1349.",
    )


def _read_type_object(members: Members, kind: str) -> Any:
    """Return the object under the name of the type, which may be JSON text; a template must have a name."""
    accepted = "a list of objects" if kind == "contacts" else "an object"
    body = members.get(kind)
    if body is None or body == "":
        raise missing_parameter(kind, f"{accepted}, as the operator's documentation shows it")
    if kind == "contacts":
        return _convert(body, _list_decoder, name=kind, accepted=accepted)
    body = _convert(body, _object_decoder, name=kind, accepted=accepted)
    if kind == "template":
        name = body.get("name")
        if not isinstance(name, str) or not name.strip():
            raise invalid_field("template.name", "the name of a template")
    return body


def _read_reply_to(members: Members) -> str | None:
    """Return the id of the message that this one replies to; a context in JSON text becomes an object."""
    context = members.get("context")
    if context is None or (isinstance(context, str) and not context.strip()):
        return None
    reply_context = _convert(context, _context_decoder, name="context", accepted='{"message_id":"..."}')
    members["context"] = _convert(context, _object_decoder, name="context", accepted="an object")
    return coerce_text(reply_context.message_id) or None


def _convert(value: Any, decoder: "msgspec.json.Decoder[Decoded]", *, name: str, accepted: str) -> Decoded:
    """Return a value as a type; it may be JSON text."""
    if isinstance(value, str):
        return read_json(value, decoder, name=name, accepted=accepted)
    try:
        return msgspec.convert(value, decoder.type)
    except msgspec.ValidationError as error:
        raise ApiError(
            ErrorCode.UNREADABLE, f"{name} must be {accepted}{mismatch(error, decoder.type, name)}."
        ) from error


def read_event(body: bytes) -> ReadReceipt | CallEvent:
    """Read the body of `v1/event`.

    Raises:
        ApiError: it is not readable JSON of this format, or another event than a receipt or an action on a call.
    """
    try:
        members = read_json_body(body)
    except ApiError as error:
        raise ApiError(ErrorCode.INVALID_JSON_PAYLOAD, error.explanation) from error
    if members.get("type") == VOICE_EVENT:
        return read_voice(members)
    if isinstance(members.get("type"), str) and members["type"] != MESSAGE_EVENT:
        raise _event_not_supported()  # before the other members are checked: they may differ
    try:
        event = msgspec.convert(members, ReceiptEvent, strict=False)
    except msgspec.ValidationError as error:
        problem = mismatch(error, ReceiptEvent, "")
        raise ApiError(ErrorCode.INVALID_JSON_PAYLOAD, f"The body must be {_EVENT}{problem}.") from error
    message = event.message
    if event.type is None or message is None:
        raise ApiError(ErrorCode.INVALID_JSON_PAYLOAD, f"The body must be {_EVENT}.")
    if (message.status or "").lower() != "read":
        raise _event_not_supported()
    message_id = coerce_text(message.message_id)
    if not message_id:
        raise ApiError(ErrorCode.INVALID_JSON_PAYLOAD, "message.message_id must be the id of an inbound message.")
    return ReadReceipt(message_id, message.typing_indicator is not None)


def _event_not_supported() -> ApiError:
    return ApiError(
        ErrorCode.EVENT_NOT_SUPPORTED, f"type must be {MESSAGE_EVENT}, with message.status read, or {VOICE_EVENT}."
    )


def passthrough_response(message_id: str, send: PassthroughSend) -> dict[str, Any]:
    """Return the response to an accepted message; a business-scoped id has no phone number.

    Source: spec, "Flow passthrough message", Response; operator's facts 4.3.
    """
    group_id = parse_group_id(send.destination)
    id_name = "wa_id" if group_id or send.destination[:1].isdecimal() else "user_id"
    return {
        "messages": [{"id": message_id}],
        "messaging_product": MESSAGING_PRODUCT,
        "contacts": [{"input": send.input, id_name: group_id or send.destination}],
    }
