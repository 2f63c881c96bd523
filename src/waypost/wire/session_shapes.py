"""What the `message` of a session form may hold, as shapes. Source: spec, message object; facts 9.1."""

from typing import Any

import msgspec

from waypost.wire.lenient import Flag, Text


class Context(msgspec.Struct):
    """Which message this one answers. Source: spec, "Send session text message", message object."""

    msgId: Text | None = None  # noqa: N815  the wire's name


class PlainMessage(msgspec.Struct):
    """What every type has, and all that a text has; the busiest shape there is."""

    type: str = "text"
    text: Text | None = None
    previewUrl: Flag | None = None  # noqa: N815  the wire's name; of an image an address
    context: Context | None = None


class SessionMessage(msgspec.Struct):
    """The message object, all types in one. Source: spec, message object; facts 9.1."""

    type: str = "text"
    text: Text | None = None
    previewUrl: Flag | None = None  # noqa: N815  the wire's name, as all below
    isHSM: Flag | None = None  # noqa: N815
    context: Context | None = None
    msgid: Text | None = None
    id: Text | None = None
    url: str | None = None
    originalUrl: str | None = None  # noqa: N815
    caption: Text | None = None
    filename: Text | None = None
    longitude: Text | None = None
    latitude: Text | None = None
    name: Text | None = None
    address: Text | None = None
    contact: dict[str, Any] | list[dict[str, Any]] | None = None
    title: Text | None = None
    body: "Text | Words | None" = None
    header: "Text | Header | None" = None
    footer: "Text | Words | None" = None
    globalButtons: "list[Option] | None" = None  # noqa: N815
    items: "list[Item] | None" = None
    content: "QuickReplyContent | None" = None
    options: "list[Option] | None" = None
    subType: str | None = None  # noqa: N815
    sub_type: str | None = None
    catalogId: Text | None = None  # noqa: N815
    productId: Text | None = None  # noqa: N815
    sections: "list[ProductsOf] | None" = None
    thumbnailId: Text | None = None  # noqa: N815
    display_text: Text | None = None
    emoji: Text | None = None
    msgId: Text | None = None  # noqa: N815  of the message reacted to
    action: "Action | None" = None


class Words(msgspec.Struct):
    """A text in an object of its own."""

    text: Text | None = None


class Header(Words):
    """A header: a text, or a medium, either beside its type or under the type's name."""

    type: Text | None = None
    id: Text | None = None
    url: str | None = None
    originalUrl: str | None = None  # noqa: N815
    image: "HeaderMedium | None" = None
    video: "HeaderMedium | None" = None


class HeaderMedium(msgspec.Struct):
    """The medium of a header."""

    id: Text | None = None
    link: str | None = None


class Action(msgspec.Struct):
    """What the button of a location request does."""

    name: Text | None = None


class Option(msgspec.Struct):
    """What a recipient can choose, or the label of a list's button."""

    title: Text | None = None
    description: Text | None = None
    postbackText: Text | None = None  # noqa: N815


class Item(msgspec.Struct):
    """A section of a list."""

    title: Text | None = None
    subtitle: Text | None = None
    options: list[Option] | None = None


class QuickReplyContent(msgspec.Struct):
    """What stands above quick replies."""

    type: str = "text"
    header: Text | None = None
    text: Text | None = None
    caption: Text | None = None
    url: str | None = None
    originalUrl: str | None = None  # noqa: N815
    id: Text | None = None
    filename: Text | None = None


class Product(msgspec.Struct):
    """One product of a section."""

    productId: Text | None = None  # noqa: N815
    product_retailer_id: Text | None = None


class ProductsOf(msgspec.Struct):
    """A section of a product list."""

    title: Text | None = None
    productList: list[Text | Product] | None = None  # noqa: N815
