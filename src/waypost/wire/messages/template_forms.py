"""The `template`, `message` and `postbackTexts` of a template form to what is sent."""

from typing import Annotated, Any, Final

import msgspec

from waypost.domain.coercion import Text, as_text, read_integer
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.domain.message import CardSend, TemplateSend
from waypost.domain.session_messages.content import MediaKind, Place, ProductSection, media_ref, read_place
from waypost.wire.forms import Form, read_json

MOST_PARAMS: Final = 400
MOST_CARDS: Final = 30

Index = Annotated[int, msgspec.Meta(ge=0, le=99)]


class TemplateId(msgspec.Struct):
    """The `template` of a form. Source: spec, "Send template message"; facts 9.2."""

    id: str
    params: list[Text | bool | None] | None = None
    expiration: Text | None = None
    mpm: "ProductSections | None" = None


class ProductSections(msgspec.Struct):
    """The products of a PRODUCT template."""

    sections: "list[Section] | None" = None


class Section(msgspec.Struct):
    """One section: products as ids, or as objects."""

    title: Text | None = None
    products: "list[Text | Product] | None" = None


class Product(msgspec.Struct):
    """A product as an object. Source: facts 9.2, PRODUCT."""

    product_retailer_id: Text | None = None
    productId: Text | None = None  # noqa: N815  the wire's name


class PostbackText(msgspec.Struct):
    """What a button's tap calls back. Source: spec, `postbackTexts`."""

    index: Index
    text: Text


PostbackTexts = list[PostbackText] | PostbackText | None
"""The postback texts of a message; some clients write a single one without its list."""


class Medium(msgspec.Struct):
    """A medium by its id or its address."""

    id: Text | None = None
    link: str | None = None
    url: str | None = None
    filename: Text | None = None


class LocationObject(msgspec.Struct):
    """A place; degrees may be texts. Another object is read too: it holds none."""

    latitude: Text | None = None
    longitude: Text | None = None
    name: Text | None = None
    address: Text | None = None


class CardMedium(msgspec.Struct):
    """One card of a carousel."""

    id: Text | None = None
    link: str | None = None
    url: str | None = None
    image: Medium | None = None
    video: Medium | None = None
    postbackTexts: PostbackTexts = None  # noqa: N815  the wire's name


class TemplateMessage(msgspec.Struct):
    """The `message` of a template form, all types in one.

    Source: facts 9.2; spec, "Location message": its long object has the location's members beside others.
    """

    type: str | None = None
    postbackTexts: PostbackTexts = None  # noqa: N815  the wire's name, as all below
    image: Medium | None = None
    video: Medium | None = None
    document: Medium | None = None
    audio: Medium | None = None
    gif: Medium | None = None
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
_TYPES: Final = ("text", *_MEDIA, "location", "carousel")


def read_template_send(form: Form) -> TemplateSend:
    """Template, parameters, media and postback texts of a template form.

    Postback texts may stand in a field of their own or inside `message`; the field counts.
    How many parameters the template takes is for the operator to check (facts 9.2).

    Raises:
        Refused: missing or unreadable.
    """
    accepted = '{"id":"<template id>","params":["..."]}'
    text = form.required("template", accepted)
    template = read_json(text, _template, name="template", accepted=accepted)
    given = template.params or []
    if len(given) > MOST_PARAMS:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"template.params must hold at most {MOST_PARAMS} values.")
    params = tuple(one if isinstance(one, str) else _param(one) for one in given)
    message = json_text(form, "message")
    own = _own_postback_texts(form)
    if message is None and not template.mpm and not template.expiration:
        return TemplateSend(template.id, params, own)
    return _with_message(template, params, own, message)


def json_text(form: Form, name: str) -> str | None:
    """A field that holds JSON; None where it is absent, empty or JSON's own null."""
    text = form.text(name)
    return None if text is None or text.strip() in ("", "null") else text


def _param(value: float | bool | None) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return as_text(value)


def _own_postback_texts(form: Form) -> dict[int, str] | None:
    own = json_text(form, "postbackTexts")
    if own is None:
        return None
    accepted = '[{"index":0,"text":"..."}]'
    given = read_json(own, _postback_texts, name="postbackTexts", accepted=accepted)
    return _by_index(given, "postbackTexts")


def _by_index(given: PostbackTexts, field: str) -> dict[int, str] | None:
    items = [given] if isinstance(given, PostbackText) else given
    found: dict[int, str] = {}
    for at, item in enumerate(items or []):
        text = as_text(item.text)
        if not text.strip():
            raise ApiError(
                ErrorCode.FIELD_BROKEN,
                f"{field}[{at}].text must have at least one visible character; leave out the "
                f"item of index {item.index} for a button without a postback text.",
            )
        if item.index in found:
            raise invalid_field(f"{field}[{at}].index", f"given once; {item.index} stands before it")
        found[item.index] = text
    return found or None


def _with_message(
    template: TemplateId, params: tuple[str, ...], own: dict[int, str] | None, text: str | None
) -> TemplateSend:
    message = TemplateMessage()
    if text is not None:
        accepted = '{"type":"image","image":{"link":"https://..."}}, or as the template\'s type wants it'
        message = read_json(text, _template_message, name="message", accepted=accepted)
    given = message.type if message.type is not None else _type_by_member(message)
    kind = given.strip().lower()
    if kind not in _TYPES:
        raise invalid_field("message.type", f"one of {', '.join(_TYPES)}")
    more: dict[str, Any] = {}
    if kind in _MEDIA:
        more = _media(kind, message)
    elif kind == "location":
        more = {"place": _place(given.strip(), message)}
    elif kind == "carousel":
        more = _carousel(message)
    expiration = template.expiration
    return TemplateSend(
        template.id,
        params,
        own or _by_index(message.postbackTexts, "message.postbackTexts"),
        expiration_ms=None
        if expiration is None or expiration == ""
        else read_integer(expiration, "template.expiration"),
        sections=_sections(template.mpm),
        **more,
    )


def _type_by_member(message: TemplateMessage) -> str:
    for name in (*_MEDIA, "location"):
        if getattr(message, name) is not None:
            return name
    return "carousel" if message.cards is not None else "text"


def _media(kind: str, message: TemplateMessage) -> dict[str, Any]:
    medium: Medium = getattr(message, kind) or Medium()
    media = media_ref(medium.id, medium.link or medium.url, f"{kind}.link", f"or message.{kind}.id")
    name = medium.filename if medium.filename is not None else message.filename
    return {"media_kind": MediaKind(kind), "media": media, "file_name": as_text(name)}


def _place(given: str, message: TemplateMessage) -> Place | None:
    """The place; None of the spec's own sample, whose object holds but an example text.

    It then goes out without a place, and the operator says what it makes of that.
    """
    found: LocationObject | TemplateMessage = message
    for inner in (message.location, message.LOCATION):
        if isinstance(inner, LocationObject):
            found = inner
    if given == "LOCATION" and found.latitude is None and found.longitude is None:
        return None
    return read_place(found.latitude, found.longitude, found.name, found.address, "message.location")


def _carousel(message: TemplateMessage) -> dict[str, Any]:
    kind: MediaKind | None = None
    if message.cardHeaderType:
        spelled = message.cardHeaderType.strip().lower()
        if spelled not in ("image", "video"):
            raise invalid_field("message.cardHeaderType", "one of IMAGE, VIDEO")
        kind = MediaKind(spelled)
    cards = message.cards or []
    if not cards or len(cards) > MOST_CARDS:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"message.cards must hold 1 to {MOST_CARDS} cards.")
    return {"cards": tuple(_card(at, card) for at, card in enumerate(cards)), "card_media_kind": kind}


def _card(at: int, card: CardMedium) -> CardSend:
    medium = card.image or card.video or Medium(card.id, card.link, card.url)
    media = media_ref(medium.id, medium.link or medium.url, f"cards[{at}].link", f"or message.cards[{at}].id")
    postback_texts = _by_index(card.postbackTexts, f"message.cards[{at}].postbackTexts")
    return CardSend(media, postback_texts or {})


def _sections(mpm: ProductSections | None) -> tuple[ProductSection, ...]:
    sections = (mpm.sections if mpm else None) or []
    return tuple(
        ProductSection(as_text(section.title), tuple(_product_id(one) for one in section.products or []))
        for section in sections
    )


def _product_id(given: Text | Product) -> str:
    if isinstance(given, Product):
        return as_text(given.product_retailer_id or given.productId)
    return as_text(given)
