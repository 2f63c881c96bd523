"""Forms of messages: addresses, session messages and templates; and messages in responses."""

import re
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, Union, get_type_hints

import msgspec

from waypost.domain.coercion import Flag, Text, coerce_text, read_flag, read_integer
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.domain.message import CardSend, Content, TemplateSend
from waypost.domain.phone_number import describe_recipient, parse_group_id, read_phone_number, read_recipient_number
from waypost.domain.session_messages import SESSION_KINDS
from waypost.domain.session_messages.content import (
    Location,
    MediaKind,
    ProductSection,
    SessionContent,
    read_location,
    read_media_ref,
)
from waypost.domain.session_messages.plain import SessionProducts, SessionText, TextShape
from waypost.wire.forms import Form, read_json

CHANNEL: Final = "whatsapp"


class SendAddresses(NamedTuple):
    """Source and destination as digits, and the app's name."""

    source: str  # may be the id of the app, if the path has it
    destination: str
    app_name: str  # empty: not sent


def read_addresses(form: Form, app_id: str = "") -> SendAddresses:
    """Read source, destination and app name; the destination is checked before the app details.

    The endpoint decides if the app's name may be missing.

    Args:
        app_id: of the app in the path, if there is one; some clients send it instead of the number.

    Source: spec, "Send session text message" and "Errors"; facts 9.2, "Errors"; `src` for `source`
        from the spec's location table.

    Raises:
        ApiError: with the documented text for each.
    """
    channel = form.text("channel")
    if channel and channel.strip().lower() != CHANNEL:
        raise invalid_field("channel", "whatsapp")
    number = form.text("destination") or ""
    destination = read_recipient_number(number)
    if destination is None:
        raise ApiError(ErrorCode.INVALID_DESTINATION, f"destination must be {describe_recipient(number)}.")
    text = form.text("source") or form.text("src") or ""
    source = app_id if app_id and text.strip() == app_id else read_phone_number(text)
    if source is None:
        raise ApiError(
            ErrorCode.INVALID_APP_DETAILS, "source must be the phone number of one of your apps: 8 to 15 digits."
        )
    return SendAddresses(source, destination, form.text("src.name") or "")


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
        rule = f"message.type must be one of {', '.join(_KINDS_BY_TYPE)}."
        if wire_type in _ORDER_TYPES:
            rule += f" {wire_type} is sent with POST /partner/app/<APP_ID>/v3/message, type interactive."
        raise ApiError(ErrorCode.FIELD_BROKEN, rule)
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
    kind = msgspec.json.encode(value).decode() if value is None or isinstance(value, bool) else ""
    if isinstance(value, str | list):
        kind = "a text in quotes" if isinstance(value, str) else "a list"
    if kind:
        raise invalid_field("message", f"a JSON object such as {_ACCEPTED}, or plain text without quotes; it is {kind}")


def is_about_products(form: Form) -> bool:
    """True if a form's message is about products, whose credential errors are nested (facts 10)."""
    try:
        text = (form.text("message") or "").strip(_INVISIBLE)
        message = read_json(text, _plain_decoder, name="message", accepted="JSON")
    except ApiError:
        return False
    return message.type.strip().lower() in SessionProducts.wire_types


MAX_PARAMS: Final = 400
MAX_SEND_CARDS: Final = 30

Index = Annotated[int, msgspec.Meta(ge=0, le=99)]


class TemplateId(msgspec.Struct):
    """The `template` of a form. Source: spec, "Send template message"; facts 9.2."""

    id: str
    params: list[Text | bool | None] | None = None
    expiration: Text | None = None
    mpm: "ProductSections | None" = None


class ProductSections(msgspec.Struct):
    """The products of a PRODUCT template."""

    sections: "list[SendSection] | None" = None


class SendSection(msgspec.Struct):
    """One section: products as ids, or as objects."""

    title: Text | None = None
    products: "list[Text | SendProduct] | None" = None


class SendProduct(msgspec.Struct):
    """A product as an object. Source: facts 9.2, PRODUCT."""

    product_retailer_id: Text | None = None
    productId: Text | None = None  # noqa: N815  the wire's name


class PostbackText(msgspec.Struct):
    """The postback text of a button. Source: spec, `postbackTexts`."""

    index: Index
    text: Text


PostbackTexts = list[PostbackText] | PostbackText | None
"""The postback texts of a message; some clients send a single one without a list."""


class SendMedium(msgspec.Struct):
    """A medium by id or URL."""

    id: Text | None = None
    link: str | None = None
    url: str | None = None
    filename: Text | None = None


class LocationObject(msgspec.Struct):
    """A location; degrees may be texts. Other objects are accepted too, without a location."""

    latitude: Text | None = None
    longitude: Text | None = None
    name: Text | None = None
    address: Text | None = None


class CardMedium(msgspec.Struct):
    """One card of a carousel."""

    id: Text | None = None
    link: str | None = None
    url: str | None = None
    image: SendMedium | None = None
    video: SendMedium | None = None
    postbackTexts: PostbackTexts = None  # noqa: N815  the wire's name


class TemplateMessage(msgspec.Struct):
    """The `message` of a template form, with the members of all types.

    Source: facts 9.2; spec, "Location message": its long object has the location's members among others.
    """

    type: str | None = None
    postbackTexts: PostbackTexts = None  # noqa: N815  the wire's name, as below
    image: SendMedium | None = None
    video: SendMedium | None = None
    document: SendMedium | None = None
    audio: SendMedium | None = None
    gif: SendMedium | None = None
    filename: Text | None = None
    location: LocationObject | str | None = None
    LOCATION: LocationObject | str | None = None
    latitude: Text | None = None
    longitude: Text | None = None
    name: Text | None = None
    address: Text | None = None
    cardHeaderType: str | None = None  # noqa: N815
    cards: list[CardMedium] | None = None


_template: Final = msgspec.json.Decoder(TemplateId, strict=False)
_postback_texts: Final = msgspec.json.Decoder(PostbackTexts, strict=False)
_template_message: Final = msgspec.json.Decoder(TemplateMessage, strict=False)

_MEDIA: Final = ("image", "video", "document", "audio", "gif")
_MESSAGE_TYPES: Final = ("text", *_MEDIA, "location", "carousel")


def read_template_send(form: Form) -> TemplateSend:
    """Read template, parameters, media and postback texts of a template form.

    Postback texts may be in their own field or in `message`; the field takes precedence.
    The operator checks the number of parameters (facts 9.2).

    Raises:
        ApiError: a member is missing or unreadable.
    """
    accepted = '{"id":"<template id>","params":["..."]}'
    text = form.required("template", accepted)
    template = read_json(text, _template, name="template", accepted=accepted, has_texts=True)
    values = template.params or []
    if len(values) > MAX_PARAMS:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"template.params must hold at most {MAX_PARAMS} values.")
    params = tuple([value if isinstance(value, str) else _param(value) for value in values])
    message = json_text(form, "message")
    own_text, accepted = json_text(form, "postbackTexts"), '[{"index":0,"text":"..."}]'
    own = None
    if own_text is not None:
        texts = read_json(own_text, _postback_texts, name="postbackTexts", accepted=accepted, has_texts=True)
        own = _texts_by_index(texts, "postbackTexts")
    if message is None and not template.mpm and not template.expiration:
        return TemplateSend(template.id, params, own)
    return _read_message(template, params, own, message)


def json_text(form: Form, name: str) -> str | None:
    """Return the JSON text of a field; None where it is absent, empty or null."""
    text = form.text(name)
    return None if text is None or text.strip() in ("", "null") else text


def _param(value: float | bool | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return coerce_text(value)


def _texts_by_index(postback_texts: PostbackTexts, field: str) -> dict[int, str] | None:
    items = [postback_texts] if isinstance(postback_texts, PostbackText) else postback_texts
    texts: dict[int, str] = {}
    for position, item in enumerate(items or []):
        text, place = coerce_text(item.text), f"{field}[{position}]"
        if not text.strip():
            rule = f"{place}.text must have at least one visible character; leave out the item of index {item.index} "
            raise ApiError(ErrorCode.FIELD_BROKEN, f"{rule}for a button without a postback text.")
        if item.index in texts:
            raise invalid_field(f"{place}.index", f"another than those before it: {item.index} is given twice")
        texts[item.index] = text
    return texts or None


def _read_message(
    template: TemplateId, params: tuple[str, ...], own: dict[int, str] | None, text: str | None
) -> TemplateSend:
    message = TemplateMessage()
    if text is not None:
        accepted = '{"type":"image","image":{"link":"https://..."}}, or as the template\'s type wants it'
        message = read_json(text, _template_message, name="message", accepted=accepted, has_texts=True)
    written_type = message.type
    if written_type is None:
        given = (name for name in (*_MEDIA, "location") if getattr(message, name) is not None)
        written_type = next(given, "text" if message.cards is None else "carousel")
    kind = written_type.strip().lower()
    if kind not in _MESSAGE_TYPES:
        raise invalid_field("message.type", f"one of {', '.join(_MESSAGE_TYPES)}")
    members: dict[str, Any] = {}
    if kind in _MEDIA:
        members = _media(kind, message)
    elif kind == "location":
        members = {"place": _read_location(written_type.strip(), message)}
    elif kind == "carousel":
        members = _carousel(message)
    has_expiration = template.expiration not in (None, "")
    return TemplateSend(
        template.id,
        params,
        own or _texts_by_index(message.postbackTexts, "message.postbackTexts"),
        expiration_ms=read_integer(template.expiration or "", "template.expiration") if has_expiration else None,
        sections=_sections(template.mpm),
        **members,
    )


def is_location_sample(text: str) -> bool:
    """True for a message like the spec's own sample of a location: its type in capitals, and an object without degrees.

    Source: spec, "Send template message (image, location)": the sample does not decide the exact shape.
    """
    message = read_json(text, _template_message, name="message", accepted="an object")
    has_object = message.location is not None or message.LOCATION is not None
    return has_object and (message.type or "").strip() == "LOCATION"


def _media(kind: str, message: TemplateMessage) -> dict[str, Any]:
    medium: SendMedium = getattr(message, kind) or SendMedium()
    media = read_media_ref(
        medium.id, medium.link or medium.url, f"{kind}.link", f"the address of the {kind}, or message.{kind}.id"
    )
    name = medium.filename if medium.filename is not None else message.filename
    return {"media_kind": MediaKind(kind), "media": media, "file_name": coerce_text(name)}


def _read_location(written_type: str, message: TemplateMessage) -> Location | None:
    """Return the location; None for the spec's own sample, whose object has only an example text.

    The message is then sent without a location, and the operator decides.
    """
    location: LocationObject | TemplateMessage = message
    for inner in (message.location, message.LOCATION):
        if isinstance(inner, LocationObject):
            location = inner
    if written_type == "LOCATION" and location.latitude is None and location.longitude is None:
        return None
    return read_location(location.latitude, location.longitude, location.name, location.address, "message.location")


def _carousel(message: TemplateMessage) -> dict[str, Any]:
    kind: MediaKind | None = None
    if message.cardHeaderType:
        spelled = message.cardHeaderType.strip().lower()
        if spelled not in ("image", "video"):
            raise invalid_field("message.cardHeaderType", "one of IMAGE, VIDEO")
        kind = MediaKind(spelled)
    cards = message.cards or []
    if not cards or len(cards) > MAX_SEND_CARDS:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"message.cards must hold 1 to {MAX_SEND_CARDS} cards.")
    return {"cards": tuple(_card(index, card) for index, card in enumerate(cards)), "card_media_kind": kind}


def _card(index: int, card: CardMedium) -> CardSend:
    medium = card.image or card.video or SendMedium(card.id, card.link, card.url)
    accepted = f"the address of the medium, or message.cards[{index}].id"
    media = read_media_ref(medium.id, medium.link or medium.url, f"cards[{index}].link", accepted)
    postback_texts = _texts_by_index(card.postbackTexts, f"message.cards[{index}].postbackTexts")
    return CardSend(media, postback_texts or {})


def _sections(mpm: ProductSections | None) -> tuple[ProductSection, ...]:
    sections = (mpm.sections if mpm else None) or []
    return tuple(
        ProductSection(coerce_text(section.title), tuple(map(_product_id, section.products or [])))
        for section in sections
    )


def _product_id(product: Text | SendProduct) -> str:
    if isinstance(product, SendProduct):
        return coerce_text(product.product_retailer_id or product.productId)
    return coerce_text(product)


def submission_response(message_id: str) -> bytes:
    """Return the response to an accepted message. Built by hand: ids need no escaping, and it is the busiest response.

    Source: spec, "Message submission result".
    """
    return b'{"status":"submitted","messageId":"' + message_id.encode() + b'"}'


# fmt: off
_SHOWN_STATES = {  # until the operator has a message, it is submitted; Source: facts 5
    "accepted":  "submitted",
    "uncertain": "submitted",
}
# fmt: on


def message_record(row: Any, is_template: bool) -> dict[str, Any]:
    """Return the record of a sent message; unknown members are omitted."""
    record: dict[str, Any] = {
        "id": row.id,
        "appId": row.app_id,
        "source": row.source,
        "destination": parse_group_id(row.destination) or row.destination,
        "type": "template" if is_template else "session",
        "status": _SHOWN_STATES.get(row.state, row.state),
        "createdOn": row.accepted_on_ms,
        "modifiedOn": row.changed_on_ms,
    }
    optional = (("whatsappMessageId", row.operator_message_id), ("code", row.code), ("reason", row.reason))
    return record | {name: value for name, value in optional if value is not None}


def received_record(row: Any, app_phone_number: str) -> dict[str, Any]:
    """Return the record of a received message; `source` is omitted where the sender is no longer stored.

    Source: the path is facts 9.1's, the format our own, like that of sent messages.
    """
    record: dict[str, Any] = {
        "id": row.operator_message_id,
        "appId": row.app_id,
        "destination": app_phone_number,
        "type": "message",
        "status": "received",
        "createdOn": row.received_on_ms,
        "modifiedOn": row.received_on_ms,
        "whatsappMessageId": row.operator_message_id,
    }
    source = row.phone_number or row.user_id
    return record | ({"source": source} if source else {})
