"""Session messages without choices: text, media, location, contacts, reaction, and products."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Final, cast

from waypost.domain.coercion import Text, coerce_text
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.session_messages.content import (
    MEDIA_ROWS,
    Body,
    FieldLimit,
    HeaderObject,
    Location,
    MediaKind,
    MediaRef,
    ProductSection,
    SendContext,
    SessionContent,
    TextObject,
    interactive_body,
    location_body,
    location_error,
    medium_body,
    missing_member,
    product_section_body,
    read_location,
    read_media_ref,
    text_header,
    unwrap_text,
)

MAX_TEXT_CHARS: Final = 4096  # Source: facts 9.1; operator's facts 4.1


@dataclass(slots=True)
class TextShape:
    """Members of a text message; `preview_url` requests a preview of a link in it."""

    text: Text | None = None
    preview_url: bool = False


@dataclass(frozen=True, slots=True)
class SessionText(SessionContent):
    """A free-form text. Source: spec, "Send session text message", message object."""

    wire_types: ClassVar = ("text",)
    stored_as: ClassVar = "text"
    kind_label: ClassVar = "Text"
    shape: ClassVar = TextShape

    text: str
    preview_url: bool = False
    reply_to: str | None = None

    @classmethod
    def read(cls, members: TextShape, wire_type: str, reply_to: str | None) -> "SessionText":
        text = coerce_text(members.text)
        if not text or not text.strip():
            raise ApiError(ErrorCode.FIELD_BROKEN, "message.text is required: at least one character.")
        if len(text) > MAX_TEXT_CHARS:
            rule = f"message.text must be at most {MAX_TEXT_CHARS} characters; it has {len(text)}."
            raise ApiError(ErrorCode.FIELD_BROKEN, rule)
        return cls(text, members.preview_url, reply_to)

    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        return "text", {"body": self.text, "preview_url": self.preview_url}


@dataclass(slots=True)
class MediaShape:
    """Members of a media message: a medium by id, or by one of two URLs."""

    id: Text | None = None
    url: str | None = None
    originalUrl: str | None = None  # noqa: N815  the wire's name, as below
    caption: Text | None = None
    filename: Text | None = None


_MEDIA_KINDS: Final = {name: kind for kind, row in MEDIA_ROWS.items() for name in row.sent_as}


@dataclass(frozen=True, slots=True)
class SessionMedia(SessionContent):
    """A medium of one of the kinds in `MEDIA_ROWS`. Source: facts 9.1."""

    wire_types: ClassVar = tuple(_MEDIA_KINDS)
    stored_as: ClassVar = "media"
    kind_label: ClassVar = "Media"
    shape: ClassVar = MediaShape
    limits: ClassVar = (FieldLimit("caption", lambda c: [c.caption], 1024),)

    kind: MediaKind
    media: MediaRef
    caption: str = ""
    file_name: str = ""
    reply_to: str | None = None

    @classmethod
    def read(cls, members: MediaShape, wire_type: str, reply_to: str | None) -> "SessionMedia":
        kind = _MEDIA_KINDS[wire_type]
        link = members.originalUrl or members.url
        return cls(
            kind,
            read_media_ref(members.id, link, MEDIA_ROWS[kind].address, f"an address, or message.id, of the {kind}"),
            caption=coerce_text(members.caption),
            file_name=coerce_text(members.filename),
            reply_to=reply_to,
        )

    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        row = MEDIA_ROWS[self.kind]
        body = medium_body(self.media, context.copies, self.file_name if row.has_file_name else "")
        if self.caption and row.has_caption:
            body["caption"] = self.caption
        return self.kind.value, body

    def media_refs(self) -> tuple[MediaRef, ...]:
        return (self.media,)


@dataclass(slots=True)
class LocationShape:
    """Members of a location message."""

    longitude: Text | None = None
    latitude: Text | None = None
    name: Text | None = None
    address: Text | None = None


@dataclass(frozen=True, slots=True)
class SessionLocation(SessionContent):
    """A location. Source: facts 9.1."""

    wire_types: ClassVar = ("location",)
    stored_as: ClassVar = "location"
    kind_label: ClassVar = "Location"
    shape: ClassVar = LocationShape

    place: Location
    reply_to: str | None = None

    @classmethod
    def read(cls, members: LocationShape, wire_type: str, reply_to: str | None) -> "SessionLocation":
        return cls(
            read_location(members.latitude, members.longitude, members.name, members.address, "message"), reply_to
        )

    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        return "location", location_body(self.place)

    def operator_error(self) -> str | None:
        return location_error(self.place, "message")


@dataclass(slots=True)
class ContactShape:
    """Members of a contacts message: one card, or several."""

    contact: dict[str, Any] | list[dict[str, Any]] | None = None


# fmt: off
_OPERATOR_NAMES: Final = {  # Source: facts 9.1, `contact`; operator's facts 4.1
    "firstName":     "first_name",
    "middleName":    "middle_name",
    "lastName":      "last_name",
    "formattedName": "formatted_name",
    "countryCode":   "country_code",
    "waId":          "wa_id",
}
# fmt: on


@dataclass(frozen=True, slots=True)
class SessionContacts(SessionContent):
    """Contact cards, in the operator's format. Source: facts 9.1, `contact`; operator's facts 4.1."""

    wire_types: ClassVar = ("contact",)
    stored_as: ClassVar = "contacts"
    kind_label: ClassVar = "Contacts"
    shape: ClassVar = ContactShape

    contacts: list[dict[str, Any]]
    reply_to: str | None = None

    @classmethod
    def read(cls, members: ContactShape, wire_type: str, reply_to: str | None) -> "SessionContacts":
        cards = members.contact if isinstance(members.contact, list) else [members.contact or {}]
        if not cards or not all(cards):
            raise missing_member("contact", '{"name":{"formattedName":"..."},"phones":[...]}')
        return cls([cast("dict[str, Any]", _rename_members(card)) for card in cards], reply_to)

    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        return "contacts", self.contacts


def _rename_members(value: object) -> object:
    match value:
        case dict():
            members = cast("dict[str, object]", value)
            return {
                _OPERATOR_NAMES.get(name, name): _rename_members(member)
                for name, member in members.items()
                if member is not None
            }
        case list():
            return [_rename_members(item) for item in cast("list[object]", value)]
        case _:
            return value


@dataclass(slots=True)
class ReactionShape:
    """Members of a reaction."""

    emoji: Text | None = None
    msgId: Text | None = None  # noqa: N815


@dataclass(frozen=True, slots=True)
class SessionReaction(SessionContent):
    """A reaction to a message.

    Source: public page "Session messages", `reaction`.
    """

    wire_types: ClassVar = ("reaction",)
    stored_as: ClassVar = "reaction"
    kind_label: ClassVar = "Reaction"
    shape: ClassVar = ReactionShape

    emoji: str  # empty removes the reaction
    message_id: str  # of the message that it reacts to: ours, or the operator's

    @classmethod
    def read(cls, members: ReactionShape, wire_type: str, reply_to: str | None) -> "SessionReaction":
        message_id = coerce_text(members.msgId).strip()
        if not message_id:
            raise missing_member("msgId", "the id of the message reacted to, ours or the operator's")
        if members.emoji is None:
            raise missing_member("emoji", "one emoji, or an empty text to remove the reaction")
        return cls(coerce_text(members.emoji).strip(), message_id)

    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        return "reaction", {"message_id": context.reply_to, "emoji": self.emoji}

    @property
    def reply_target_id(self) -> str | None:
        return self.message_id


@dataclass(slots=True)
class ProductObject:
    """One product of a section."""

    productId: Text | None = None  # noqa: N815
    product_retailer_id: Text | None = None


@dataclass(slots=True)
class ProductSectionObject:
    """A section of a product list."""

    title: Text | None = None
    productList: list[Text | ProductObject] | None = None  # noqa: N815


@dataclass(slots=True)
class ProductsShape:
    """Members of a message about products."""

    subType: str | None = None  # noqa: N815
    sub_type: str | None = None
    catalogId: Text | None = None  # noqa: N815
    productId: Text | None = None  # noqa: N815
    header: Text | HeaderObject | None = None
    body: Text | TextObject | None = None
    footer: Text | TextObject | None = None
    sections: list[ProductSectionObject] | None = None
    thumbnailId: Text | None = None  # noqa: N815


# fmt: off
_REQUIRED_MEMBERS: Final = {  # required members of each kind of product message; Source: facts 9.1, `product_details`
    "product":         (("catalog_id", "catalogId"), ("product_id", "productId")),
    "product_list":    (("catalog_id", "catalogId"), ("body", "body.text"), ("sections", "sections")),
    "catalog_message": (("body", "body.text"),),
}
# fmt: on


@dataclass(frozen=True, slots=True)
class SessionProducts(SessionContent):
    """A message about one product, a list of products, or the catalogue.

    Source: facts 9.1, `product_details`.
    """

    wire_types: ClassVar = ("product_details",)
    stored_as: ClassVar = "products"
    kind_label: ClassVar = "Products"
    shape: ClassVar = ProductsShape
    # fmt: off
    limits: ClassVar = (
        FieldLimit("header.text",          lambda c: [c.header],                                60),
        FieldLimit("body.text",            lambda c: [c.body],                                  1024),
        FieldLimit("footer.text",          lambda c: [c.footer],                                60),
        FieldLimit("sections",             lambda c: [c.sections],                              10),
        FieldLimit("sections.title",       lambda c: [section.title for section in c.sections], 24),
        FieldLimit("sections.productList", lambda c: [all_products(c.sections)],                30),
    )
    # fmt: on

    sub_type: str  # `product`, `product_list` or `catalog_message`
    catalog_id: str = ""
    product_id: str = ""
    header: str = ""
    body: str = ""
    footer: str = ""
    sections: tuple[ProductSection, ...] = ()
    thumbnail_id: str = ""
    reply_to: str | None = None

    @classmethod
    def read(cls, members: ProductsShape, wire_type: str, reply_to: str | None) -> "SessionProducts":
        sub_type = (members.subType or members.sub_type or "").strip().lower()
        needed = _REQUIRED_MEMBERS.get(sub_type)
        if needed is None:
            raise ApiError(ErrorCode.FIELD_BROKEN, f"message.subType must be one of {', '.join(_REQUIRED_MEMBERS)}.")
        products = cls(
            sub_type,
            catalog_id=coerce_text(members.catalogId),
            product_id=coerce_text(members.productId),
            header=unwrap_text(members.header),
            body=unwrap_text(members.body),
            footer=unwrap_text(members.footer),
            sections=tuple(
                ProductSection(coerce_text(section.title), tuple(map(_product_id, section.productList or [])))
                for section in members.sections or []
            ),
            thumbnail_id=coerce_text(members.thumbnailId),
            reply_to=reply_to,
        )
        for field, name in needed:
            value: object = getattr(products, field)
            if not (value.strip() if isinstance(value, str) else value):
                raise missing_member(name, f"a message of subType {sub_type} has it")
        return products

    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        action: Body
        match self.sub_type:
            case "product":
                action = {"catalog_id": self.catalog_id, "product_retailer_id": self.product_id}
            case "product_list":
                sections = [product_section_body(section) for section in self.sections]
                action = {"catalog_id": self.catalog_id, "sections": sections}
            case _:
                action = {"name": "catalog_message"}
                if self.thumbnail_id:
                    action["parameters"] = {"thumbnail_product_retailer_id": self.thumbnail_id}
        header = text_header(self.header) if self.sub_type == "product_list" else None
        return interactive_body(self.sub_type, action, header, self.body, self.footer)


def all_products(sections: Iterable[ProductSection]) -> tuple[object, ...]:
    """Return the products of all sections."""
    return tuple(product for section in sections for product in section.product_ids)


def _product_id(product: Text | ProductObject) -> str:
    if isinstance(product, ProductObject):
        return coerce_text(product.productId or product.product_retailer_id)
    return coerce_text(product)
