"""Reads the `template`, `message` and `postbackTexts` of a template form."""

from typing import Annotated, Any, Final

import msgspec

from waypost.domain.coercion import Text, coerce_text, read_integer
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.domain.message import CardSend, TemplateSend
from waypost.domain.session_messages.content import Location, MediaKind, ProductSection, read_location, read_media_ref
from waypost.wire.forms import Form, read_json

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
    own = _own_postback_texts(form)
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


def _own_postback_texts(form: Form) -> dict[int, str] | None:
    own = json_text(form, "postbackTexts")
    if own is None:
        return None
    accepted = '[{"index":0,"text":"..."}]'
    texts = read_json(own, _postback_texts, name="postbackTexts", accepted=accepted, has_texts=True)
    return _texts_by_index(texts, "postbackTexts")


def _texts_by_index(postback_texts: PostbackTexts, field: str) -> dict[int, str] | None:
    items = [postback_texts] if isinstance(postback_texts, PostbackText) else postback_texts
    texts: dict[int, str] = {}
    for position, item in enumerate(items or []):
        text = coerce_text(item.text)
        if not text.strip():
            raise ApiError(
                ErrorCode.FIELD_BROKEN,
                f"{field}[{position}].text must have at least one visible character; leave out the "
                f"item of index {item.index} for a button without a postback text.",
            )
        if item.index in texts:
            raise invalid_field(
                f"{field}[{position}].index", f"another than those before it: {item.index} is given twice"
            )
        texts[item.index] = text
    return texts or None


def _read_message(
    template: TemplateId, params: tuple[str, ...], own: dict[int, str] | None, text: str | None
) -> TemplateSend:
    message = TemplateMessage()
    if text is not None:
        accepted = '{"type":"image","image":{"link":"https://..."}}, or as the template\'s type wants it'
        message = read_json(text, _template_message, name="message", accepted=accepted, has_texts=True)
    written_type = message.type if message.type is not None else _type_by_member(message)
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
    expiration = template.expiration
    return TemplateSend(
        template.id,
        params,
        own or _texts_by_index(message.postbackTexts, "message.postbackTexts"),
        expiration_ms=None
        if expiration is None or expiration == ""
        else read_integer(expiration, "template.expiration"),
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


def _type_by_member(message: TemplateMessage) -> str:
    for name in (*_MEDIA, "location"):
        if getattr(message, name) is not None:
            return name
    return "carousel" if message.cards is not None else "text"


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
    media = read_media_ref(
        medium.id,
        medium.link or medium.url,
        f"cards[{index}].link",
        f"the address of the medium, or message.cards[{index}].id",
    )
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
