"""The `message` of a session form to what it says: a table of its types."""

from collections.abc import Callable
from typing import Any, Final, cast

import msgspec

from waypost.domain.message import (
    Choice,
    Content,
    ListSection,
    MediaKind,
    MediaRef,
    Place,
    ProductSection,
    SessionContacts,
    SessionList,
    SessionLocation,
    SessionLocationRequest,
    SessionMedia,
    SessionProducts,
    SessionQuickReply,
    SessionReaction,
    SessionText,
    SessionUrlButton,
)
from waypost.domain.refusals import Reason, Refused
from waypost.wire.forms import Form, read_json
from waypost.wire.lenient import Text, as_text, read_flag, read_number
from waypost.wire.session_shapes import (
    Header,
    HeaderMedium,
    Option,
    PlainMessage,
    Product,
    QuickReplyContent,
    SessionMessage,
    Words,
)

MOST_TEXT: Final = 4096  # Source: facts 9.1; operator's facts 4.1
PRODUCTS: Final = "product_details"
_ACCEPTED: Final = '{"type":"text","text":"..."} with at most 4096 characters'


_message: Final = msgspec.json.Decoder(PlainMessage, strict=False)
_any_message: Final = msgspec.json.Decoder(SessionMessage, strict=False)


def read_session_message(form: Form) -> Content:
    """The message of a session form.

    A message that is no JSON is taken as a plain text (facts 9.1), and so is a number.

    Raises:
        Refused: missing, unreadable, of a type that there is not, or without what its type needs.
    """
    text = form.required("message", _ACCEPTED)
    if text.lstrip()[:1] not in ("{", "["):
        _refuse_json(text)
        return _text(text, False, None)
    message = read_json(text, _message, name="message", accepted=_ACCEPTED)
    reply_to = as_text(message.context.msgId) or None if message.context else None
    kind = message.type
    if kind != "text":
        kind = kind.strip().lower()
        read = _TYPES.get(kind)
        if read is not None:
            whole = read_json(text, _any_message, name="message", accepted=f"as {kind} wants it")
            return read(whole, reply_to)
        if kind != "text":
            raise Refused(Reason.FIELD_BROKEN, _unknown_type(kind))
    preview = message.previewUrl is not None and read_flag(message.previewUrl, "message.previewUrl")
    return _text(as_text(message.text), preview and not form.flag("disablePreview"), reply_to)


def _refuse_json(text: str) -> None:
    """Refuse JSON that is no object and that nobody means as a text: null, true, false, a quoted string."""
    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError):
        return
    if value is None or isinstance(value, bool | str):
        kind = "a string" if isinstance(value, str) else msgspec.json.encode(value).decode()
        raise Refused(
            Reason.FIELD_BROKEN,
            f"message must be a JSON object such as {_ACCEPTED}, or plain text without quotes; it is JSON's {kind}.",
        )


def is_about_products(form: Form) -> bool:
    """Whether a form's message is of products, whose refusals of a credential are nested (facts 10)."""
    try:
        message = read_json(form.text("message") or "", _message, name="message", accepted="JSON")
    except Refused:
        return False
    return message.type.strip().lower() == PRODUCTS


def _text(text: str, preview_url: bool, reply_to: str | None) -> SessionText:
    if not text or not text.strip():
        raise Refused(Reason.FIELD_BROKEN, "message.text is required: at least one character.")
    if len(text) > MOST_TEXT:
        raise Refused(Reason.FIELD_BROKEN, f"message.text must be at most {MOST_TEXT} characters; it has {len(text)}.")
    return SessionText(text, preview_url, reply_to)


def _missing(name: str, accepted: str) -> Refused:
    return Refused(Reason.FIELD_BROKEN, f"message.{name} is required: {accepted}.")


def media_ref(id: Text | None, link: str | None, name: str, accepted: str) -> MediaRef:
    """A medium by its id, else by its address.

    Raises:
        Refused: neither.
    """
    if id is not None and as_text(id).strip():
        return MediaRef(id=as_text(id).strip())
    if link and link.strip():
        return MediaRef(link=link.strip())
    raise _missing(name, accepted)


def _media(kind: MediaKind, address: str) -> "_Reader":
    def read(given: SessionMessage, reply_to: str | None) -> SessionMedia:
        link = given.originalUrl or given.url
        return SessionMedia(
            kind,
            media_ref(given.id, link, address, f"an address, or message.id, of the {kind}"),
            caption=as_text(given.caption),
            file_name=as_text(given.filename),
            reply_to=reply_to,
        )

    return read


def _location(given: SessionMessage, reply_to: str | None) -> SessionLocation:
    place = read_place(given.latitude, given.longitude, given.name, given.address, "message")
    return SessionLocation(place, reply_to)


def read_place(
    latitude: Text | None, longitude: Text | None, name: Text | None, address: Text | None, at: str
) -> Place:
    """A place; degrees may be texts.

    Raises:
        Refused: a degree is missing, or is none.
    """
    degrees: list[float] = []
    for field, value in (("latitude", latitude), ("longitude", longitude)):
        if value is None or value == "":
            raise Refused(Reason.FIELD_BROKEN, f"{at}.{field} is required: degrees.")
        degrees.append(read_number(value, f"{at}.{field}"))
    return Place(degrees[0], degrees[1], as_text(name), as_text(address))


# fmt: off
_SNAKE: Final = {  # Source: facts 9.1, `contact`; operator's facts 4.1
    "firstName":     "first_name",
    "middleName":    "middle_name",
    "lastName":      "last_name",
    "formattedName": "formatted_name",
    "countryCode":   "country_code",
    "waId":          "wa_id",
}
# fmt: on


def _contact(given: SessionMessage, reply_to: str | None) -> SessionContacts:
    cards = given.contact if isinstance(given.contact, list) else [given.contact or {}]
    if not cards or not all(cards):
        raise _missing("contact", '{"name":{"formattedName":"..."},"phones":[...]}')
    return SessionContacts([cast("dict[str, Any]", _snake(card)) for card in cards], reply_to)


def _snake(value: object) -> object:
    match value:
        case dict():
            members = cast("dict[str, object]", value)
            return {_SNAKE.get(name, name): _snake(member) for name, member in members.items() if member is not None}
        case list():
            return [_snake(item) for item in cast("list[object]", value)]
        case _:
            return value


def _words(given: Text | Words | None) -> str:
    return as_text(given.text if isinstance(given, Words) else given)


def _choice(given: Option, at: str) -> Choice:
    title = as_text(given.title)
    if not title.strip():
        raise _missing(f"{at}.title", "the text of the choice")
    postback = given.postbackText
    return Choice(title, None if postback is None else as_text(postback), as_text(given.description))


def _list(given: SessionMessage, reply_to: str | None) -> SessionList:
    body, button = _words(given.body), as_text((given.globalButtons or [Option()])[0].title)
    if not body.strip():
        raise _missing("body", "the text of the message")
    if not button.strip():
        raise _missing("globalButtons[0].title", "the label of the button that opens the list")
    sections = tuple(
        ListSection(
            as_text(item.title),
            as_text(item.subtitle),
            tuple(_choice(option, f"items[{at}].options[{nth}]") for nth, option in enumerate(item.options or [])),
        )
        for at, item in enumerate(given.items or [])
    )
    if not any(section.choices for section in sections):
        raise _missing("items", "at least one with options")
    return SessionList(
        body,
        button,
        sections,
        title=as_text(given.title),
        footer=_words(given.footer),
        sender_id=as_text(given.msgid),
        reply_to=reply_to,
    )


# fmt: off
_CONTENTS: Final = {  # Source: facts 9.1, `quick_reply`, content.type
    "text":     None,
    "image":    MediaKind.IMAGE,
    "video":    MediaKind.VIDEO,
    "file":     MediaKind.DOCUMENT,
    "document": MediaKind.DOCUMENT,
}
# fmt: on


def _quick_reply(given: SessionMessage, reply_to: str | None) -> SessionQuickReply:
    content = given.content or QuickReplyContent()
    kind = content.type.strip().lower()
    if kind not in _CONTENTS:
        raise Refused(Reason.FIELD_BROKEN, "message.content.type must be one of text, image, video, file.")
    text = as_text(content.text)
    if not text.strip():
        raise _missing("content.text", "the text above the buttons")
    choices = tuple(_choice(option, f"options[{nth}]") for nth, option in enumerate(given.options or []))
    if not choices:
        raise _missing("options", '[{"type":"text","title":"..."}]')
    media_kind, media = _CONTENTS[kind], MediaRef()
    if media_kind is not None:
        link = content.url or content.originalUrl
        media = media_ref(content.id, link, "content.url", f"an address, or message.content.id, of the {kind}")
    return SessionQuickReply(
        text,
        choices,
        header=as_text(content.header),
        footer=as_text(content.caption),
        media_kind=media_kind,
        media=media,
        file_name=as_text(content.filename),
        sender_id=as_text(given.msgid),
        reply_to=reply_to,
    )


def _products(given: SessionMessage, reply_to: str | None) -> SessionProducts:
    sub_type = (given.subType or given.sub_type or "").strip().lower()
    needed = _NEEDED.get(sub_type)
    if needed is None:
        raise Refused(Reason.FIELD_BROKEN, f"message.subType must be one of {', '.join(_NEEDED)}.")
    products = SessionProducts(
        sub_type,
        catalog_id=as_text(given.catalogId),
        product_id=as_text(given.productId),
        header=_words(given.header),
        body=_words(given.body),
        footer=_words(given.footer),
        sections=tuple(
            ProductSection(as_text(section.title), tuple(_product_id(one) for one in section.productList or []))
            for section in given.sections or []
        ),
        thumbnail_id=as_text(given.thumbnailId),
        reply_to=reply_to,
    )
    for field, name in needed:
        value: object = getattr(products, field)
        if not (value.strip() if isinstance(value, str) else value):
            raise _missing(name, f"for {sub_type}")
    return products


def _product_id(given: Text | Product) -> str:
    if isinstance(given, Product):
        return as_text(given.productId or given.product_retailer_id)
    return as_text(given)


def _url_button(given: SessionMessage, reply_to: str | None) -> SessionUrlButton:
    body, label, url = _words(given.body), as_text(given.display_text), (given.url or "").strip()
    if not body.strip():
        raise _missing("body", "the text of the message")
    if not label.strip():
        raise _missing("display_text", "the label of the button")
    if not url:
        raise _missing("url", "the address that the button opens")
    media_kind, media = _header_medium(given.header)
    return SessionUrlButton(body, label, url, _words(given.footer), media_kind, media, reply_to)


def _header_medium(given: Text | Header | None) -> tuple[MediaKind | None, MediaRef]:
    """Return the medium of a header; None and no medium where there is no header.

    Raises:
        Refused: a header of another type, or one without its medium.
    """
    if given is None or given == "":
        return None, MediaRef()
    header = given if isinstance(given, Header) else Header()
    kind = as_text(header.type).strip().lower()
    if kind not in ("image", "video"):
        raise Refused(Reason.FIELD_BROKEN, f'message.header.type must be image or video; it is "{kind[:20]}".')
    medium = header.image if kind == "image" else header.video
    if medium is None:
        medium = HeaderMedium(header.id, header.url or header.originalUrl)
    name = f"header.{kind}.link"
    accepted = f"an address, or message.header.{kind}.id, of the {kind}"
    return MediaKind(kind), media_ref(medium.id, medium.link, name, accepted)


def _reaction(given: SessionMessage, _reply_to: str | None) -> SessionReaction:
    message_id = as_text(given.msgId).strip()
    if not message_id:
        raise _missing("msgId", "the id of the message reacted to, ours or the operator's")
    if given.emoji is None:
        raise _missing("emoji", "one emoji, or an empty text to remove the reaction")
    return SessionReaction(as_text(given.emoji).strip(), message_id)


def _location_request(given: SessionMessage, reply_to: str | None) -> SessionLocationRequest:
    body = _words(given.body)
    if not body.strip():
        raise _missing("body.text", "the text of the message")
    name = as_text(given.action.name) if given.action else _SEND_LOCATION
    if name != _SEND_LOCATION:
        raise Refused(Reason.FIELD_BROKEN, f"message.action.name must be {_SEND_LOCATION}.")
    return SessionLocationRequest(body, reply_to)


def _unknown_type(kind: str) -> str:
    rule = f"message.type must be one of text, {', '.join(_TYPES)}."
    if kind in _OF_ORDERS:
        rule += f" {kind} is sent with POST /partner/app/<APP_ID>/v3/message, type interactive."
    return rule


_SEND_LOCATION: Final = "send_location"
_OF_ORDERS: Final = ("order_details", "order_status")
"""Types that the public API documents for version 3 only. Source: public page "Payment link message"."""

_Reader = Callable[[SessionMessage, str | None], Content]

# fmt: off
_NEEDED: Final = {  # what each kind of product message must have; Source: facts 9.1, `product_details`
    "product":         (("catalog_id", "catalogId"), ("product_id", "productId")),
    "product_list":    (("catalog_id", "catalogId"), ("body", "body.text"), ("sections", "sections")),
    "catalog_message": (("body", "body.text"),),
}
_TYPES: Final[dict[str, _Reader]] = {  # Source: facts 9.1
    "image":       _media(MediaKind.IMAGE,    "originalUrl"),
    "video":       _media(MediaKind.VIDEO,    "url"),
    "audio":       _media(MediaKind.AUDIO,    "url"),
    "file":        _media(MediaKind.DOCUMENT, "url"),
    "document":    _media(MediaKind.DOCUMENT, "url"),
    "sticker":     _media(MediaKind.STICKER,  "url"),
    "location":    _location,
    "contact":     _contact,
    "list":        _list,
    "quick_reply": _quick_reply,
    PRODUCTS:      _products,
    "cta_url":     _url_button,  # this and the two below: public page "Session messages"
    "reaction":    _reaction,
    "location_request_message": _location_request,
}
# fmt: on
