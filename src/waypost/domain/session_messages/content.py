"""What every kind of session message has, and the parts that several kinds are made of."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final, NamedTuple

from waypost.domain.coercion import Text, as_text, read_number
from waypost.domain.errors import ApiError, ErrorCode

Body = dict[str, Any]

_HTTP: Final = ("http://", "https://")


class MediaKind(StrEnum):
    """The kinds of media, in the operator's words; the wire's `file` is a document.

    A GIF is only a template's header, and never uploaded.
    """

    IMAGE = "image"
    VIDEO = "video"
    AUDIO = "audio"
    DOCUMENT = "document"
    STICKER = "sticker"
    GIF = "gif"


@dataclass(frozen=True, slots=True)
class MediaRow:
    """What a session message of one medium may have.

    Attributes:
        sent_as: the values of the wire's `type`; none: it is never sent alone.
        address: the wire's name of its address.
        has_caption: whether the operator takes a caption with it.
        has_file_name: whether it takes a file name.
    """

    sent_as: tuple[str, ...] = ()
    address: str = "url"
    has_caption: bool = False
    has_file_name: bool = False


MEDIA_ROWS: Final[Mapping[MediaKind, MediaRow]] = {  # Source: facts 9.1; operator's facts 4.1
    MediaKind.IMAGE: MediaRow(("image",), address="originalUrl", has_caption=True),
    MediaKind.VIDEO: MediaRow(("video",), has_caption=True),
    MediaKind.AUDIO: MediaRow(("audio",)),
    MediaKind.DOCUMENT: MediaRow(("file", "document"), has_caption=True, has_file_name=True),
    MediaKind.STICKER: MediaRow(("sticker",)),
    MediaKind.GIF: MediaRow(),
}


@dataclass(frozen=True, slots=True)
class MediaRef:
    """Where a message's medium is: exactly one of the two.

    Attributes:
        id: a media id, ours or the operator's own.
        link: fetched by the operator, not by us.
    """

    id: str | None = None
    link: str | None = None


NO_MEDIUM: Final = MediaRef()
"""Where there is none; one for all, because making one costs as much as reading a short field."""


@dataclass(frozen=True, slots=True)
class Place:
    """A location. Degrees; names may be empty."""

    latitude: float
    longitude: float
    name: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class ProductSection:
    """A titled part of a product list; products by their id in the catalogue."""

    title: str
    product_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One option that the recipient can choose.

    Attributes:
        postback_text: what its choice calls back; None where the sender gave none.
    """

    title: str
    postback_text: str | None = None
    description: str = ""


@dataclass(frozen=True, slots=True)
class Limit:
    """How long the values of a field may be; the operator checks it, and a strict service before it.

    Attributes:
        field: as the wire names it.
        values: gives every value that it holds; a text has characters, a tuple has members.
    """

    field: str
    values: Callable[[Any], Iterable[str | tuple[object, ...]]]
    at_most: int


class SendContext(NamedTuple):
    """What a request body is made from, other than the content.

    Attributes:
        message_id: ours; choices refer to it.
        reply_to: the operator's id of the message that this one answers or reacts to.
        copies: the operator's media ids by ours.
    """

    message_id: str
    reply_to: str | None
    copies: Mapping[str, str]


class SessionContent(ABC):
    """A kind of session message: one subclass for each, and the class is its row.

    Attributes:
        wire_types: the values of the wire's `type` that it is sent as.
        stored_as: its name in the store and in the console's filter. Stored; never change one.
        kind_label: what the console calls it.
        shape: the members of the wire's `message` that it reads.
        limits: of its fields, by the operator. Source: operator's facts 2.3, "MPM at send", and 4.1.
        reply_to: id of the message this one answers: ours, or the operator's.
    """

    __slots__ = ()

    wire_types: ClassVar[tuple[str, ...]] = ()
    stored_as: ClassVar[str]
    kind_label: ClassVar[str]
    shape: ClassVar[type[Any]]
    limits: ClassVar[tuple[Limit, ...]] = ()
    reply_to: str | None

    @classmethod
    @abstractmethod
    def read(cls, given: Any, wire_type: str, reply_to: str | None) -> "SessionContent":
        """Return the content that the members of a message say.

        Args:
            given: of the kind's `shape`.
            wire_type: one of `wire_types`.
            reply_to: from the message's context.

        Raises:
            Refused: a member is missing or broken.
        """

    @abstractmethod
    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        """Return the operator's `type` and the member of that name. Source: operator's facts 4.1."""

    @property
    def answered_id(self) -> str | None:
        """The id of the message that this one answers or reacts to."""
        return self.reply_to

    def media_refs(self) -> tuple[MediaRef, ...]:
        """Return its media, by id or address."""
        return ()

    def numbered_choices(self) -> tuple[Choice, ...]:
        """Return what the recipient can choose, in the order of their numbers."""
        return ()

    def operator_error(self) -> str | None:
        """Return what the operator will refuse beyond `limits`: field and rule; None where nothing."""
        return None


@dataclass(slots=True)
class TextObject:
    """A text in an object of its own."""

    text: Text | None = None


@dataclass(slots=True)
class HeaderMediumObject:
    """The medium of a header."""

    id: Text | None = None
    link: str | None = None


@dataclass(slots=True)
class HeaderObject(TextObject):
    """A header: a text, or a medium, either next to its type or under the type's name."""

    type: Text | None = None
    id: Text | None = None
    url: str | None = None
    originalUrl: str | None = None  # noqa: N815
    image: HeaderMediumObject | None = None
    video: HeaderMediumObject | None = None


def is_http_address(text: str) -> bool:
    """Return whether a text is an address that the operator can open."""
    return any(text.startswith(scheme) and len(text) > len(scheme) for scheme in _HTTP)


def missing(name: str, accepted: str) -> ApiError:
    """Return the error of a required member that is not there."""
    return ApiError(ErrorCode.FIELD_BROKEN, f"message.{name} is required: {accepted}.")


def text_of(given: Text | TextObject | None) -> str:
    """Return a text that may stand in an object."""
    return as_text(given.text if isinstance(given, TextObject) else given)


def media_ref(id: Text | None, link: str | None, name: str, accepted: str) -> MediaRef:
    """Return a medium by its id, else by its address.

    Raises:
        Refused: neither.
    """
    if id is not None and as_text(id).strip():
        return MediaRef(id=as_text(id).strip())
    if link and link.strip():
        return MediaRef(link=link.strip())
    raise missing(name, accepted)


def read_place(
    latitude: Text | None, longitude: Text | None, name: Text | None, address: Text | None, at: str
) -> Place:
    """Return a place; degrees may be texts.

    Raises:
        Refused: a degree is missing, or is none.
    """
    degrees: list[float] = []
    for field, value in (("latitude", latitude), ("longitude", longitude)):
        if value is None or value == "":
            raise ApiError(ErrorCode.FIELD_BROKEN, f"{at}.{field} is required: degrees.")
        degrees.append(read_number(value, f"{at}.{field}"))
    return Place(degrees[0], degrees[1], as_text(name), as_text(address))


def medium_body(media: MediaRef, copies: Mapping[str, str], file_name: str = "") -> Body:
    """Return a medium by the operator's id, or by its address."""
    body: Body = {"link": media.link} if media.id is None else {"id": copies.get(media.id, media.id)}
    if file_name:
        body["filename"] = file_name
    return body


def place_body(place: Place) -> Body:
    """Return a place; there is no caption. Source: operator's facts 4.1: numbers."""
    body: Body = {"latitude": place.latitude, "longitude": place.longitude}
    for name, text in (("name", place.name), ("address", place.address)):
        if text:
            body[name] = text
    return body


def product_section_body(section: ProductSection) -> Body:
    """Return a titled part of a product list."""
    made: Body = {"title": section.title} if section.title else {}
    return made | {"product_items": [{"product_retailer_id": one} for one in section.product_ids]}


def interactive_body(kind: str, action: Body, header: Body | None, body: str, footer: str) -> tuple[str, Body]:
    """Return an interactive message of a kind."""
    made: Body = {"type": kind}
    if header:
        made["header"] = header
    if body:
        made["body"] = {"text": body}
    if footer:
        made["footer"] = {"text": footer}
    return "interactive", made | {"action": action}


def text_header(text: str) -> Body | None:
    """Return a header of text; None where it is empty."""
    return {"type": "text", "text": text} if text else None


def media_header(kind: MediaKind, media: MediaRef, copies: Mapping[str, str], file_name: str = "") -> Body:
    """Return a header of a medium; only a document has a file name."""
    name = file_name if kind is MediaKind.DOCUMENT else ""
    return {"type": kind.value, kind.value: medium_body(media, copies, name)}
