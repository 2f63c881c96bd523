"""The base class of session messages, and the parts that several kinds share."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, Final, NamedTuple

from waypost.domain.coercion import Text, coerce_text, read_number
from waypost.domain.errors import ApiError, ErrorCode

Body = dict[str, Any]

_HTTP: Final = ("http://", "https://")


class MediaKind(StrEnum):
    """The kinds of media, by the operator's names; the wire's `file` is a document.

    A GIF occurs only as a template's header, and is never uploaded.
    """

    IMAGE = "image"
    VIDEO = "video"
    AUDIO = "audio"
    DOCUMENT = "document"
    STICKER = "sticker"
    GIF = "gif"


@dataclass(frozen=True, slots=True)
class MediaRow:
    """The options of a session message with one kind of medium."""

    sent_as: tuple[str, ...] = ()  # the values of the wire's `type`; empty: it is never sent alone
    address: str = "url"  # the wire's name of its URL
    has_caption: bool = False  # true if the operator accepts a caption
    has_file_name: bool = False  # true if the operator accepts a file name


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
    """A reference to a message's medium, by id or by link."""

    id: str | None = None  # a media id, ours or the operator's own
    link: str | None = None  # fetched by the operator, not by us


NO_MEDIUM: Final = MediaRef()
"""No medium. Shared, because creating one costs as much as reading a short field."""


@dataclass(frozen=True, slots=True)
class Location:
    """A location. Degrees; names may be empty."""

    latitude: float
    longitude: float
    name: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class ProductSection:
    """A section of a product list; products by their id in the catalogue."""

    title: str
    product_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """One option that the recipient can choose."""

    title: str
    postback_text: str | None = None  # for the callback when it is chosen; None: the sender gave none
    description: str = ""


@dataclass(frozen=True, slots=True)
class FieldLimit:
    """The maximum length of a field's values. The operator checks it; a strict service checks it before."""

    field: str  # name on the wire
    # returns the field's values; the length of a text is in characters, of a tuple in members
    values: Callable[[Any], Iterable[str | tuple[object, ...]]]
    max_length: int  # of each value


class SendContext(NamedTuple):
    """The inputs of a request body in addition to the content."""

    message_id: str  # ours; choices refer to it
    reply_to: str | None  # the operator's id of the message that this one replies or reacts to
    copies: Mapping[str, str]  # the operator's media ids by ours


class SessionContent(ABC):
    """The base class of the kinds of session message; each subclass is a row of the table."""

    __slots__ = ()

    wire_types: ClassVar[tuple[str, ...]] = ()  # its values of the wire's `type`
    stored_as: ClassVar[str]  # its name in the store and in the console's filter. Stored; must never change.
    kind_label: ClassVar[str]  # its name in the console
    shape: ClassVar[type[Any]]  # the members of the wire's `message` that it reads
    # the operator's, of its fields. Source: operator's facts 2.3, "MPM at send", and 4.1.
    limits: ClassVar[tuple[FieldLimit, ...]] = ()
    reply_to: str | None  # id of the message that this one replies to: ours, or the operator's

    @classmethod
    @abstractmethod
    def read(cls, members: Any, wire_type: str, reply_to: str | None) -> "SessionContent":
        """Return the content from the members of a message.

        Args:
            members: of the kind's `shape`.
            reply_to: from the message's context.

        Raises:
            ApiError: a member is missing or invalid.
        """

    @abstractmethod
    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        """Return the operator's `type` and the member of that name. Source: operator's facts 4.1."""

    @property
    def reply_target_id(self) -> str | None:
        """The id of the message that this one replies or reacts to."""
        return self.reply_to

    def media_refs(self) -> tuple[MediaRef, ...]:
        """Return its media, by id or link."""
        return ()

    def numbered_choices(self) -> tuple[Choice, ...]:
        """Return the choices, in the order of their numbers."""
        return ()

    def operator_error(self) -> str | None:
        """Return why the operator will reject it beyond `limits`: field and rule; None: it will not."""
        return None


@dataclass(slots=True)
class TextObject:
    """An object with a text."""

    text: Text | None = None


@dataclass(slots=True)
class HeaderMediumObject:
    """The medium of a header."""

    id: Text | None = None
    link: str | None = None


@dataclass(slots=True)
class HeaderObject(TextObject):
    """A header: a text, or a medium, next to its type or under the type's name."""

    type: Text | None = None
    id: Text | None = None
    url: str | None = None
    originalUrl: str | None = None  # noqa: N815
    image: HeaderMediumObject | None = None
    video: HeaderMediumObject | None = None


def is_http_url(text: str) -> bool:
    """True if a text is an http or https URL."""
    return any(text.startswith(scheme) and len(text) > len(scheme) for scheme in _HTTP)


def missing_member(name: str, accepted: str) -> ApiError:
    """Return the error of a missing required member."""
    return ApiError(ErrorCode.FIELD_BROKEN, f"message.{name} is required: {accepted}.")


def unwrap_text(value: Text | TextObject | None) -> str:
    """Return a text that may be wrapped in an object."""
    return coerce_text(value.text if isinstance(value, TextObject) else value)


def read_media_ref(id: Text | None, link: str | None, name: str, accepted: str) -> MediaRef:
    """Return a medium by its id, else by its link.

    Raises:
        ApiError: neither was given.
    """
    if id is not None and coerce_text(id).strip():
        return MediaRef(id=coerce_text(id).strip())
    if link and link.strip():
        return MediaRef(link=link.strip())
    raise missing_member(name, accepted)


def read_location(
    latitude: Text | None, longitude: Text | None, name: Text | None, address: Text | None, path: str
) -> Location:
    """Return a location; degrees may be texts.

    Raises:
        ApiError: a degree is missing or not a number.
    """
    degrees: list[float] = []
    for field, value, at_most in (("latitude", latitude, 90), ("longitude", longitude, 180)):
        if value is None or value == "":
            raise ApiError(ErrorCode.FIELD_BROKEN, f"{path}.{field} is required: degrees from -{at_most} to {at_most}.")
        degrees.append(read_number(value, f"{path}.{field}"))
    return Location(degrees[0], degrees[1], coerce_text(name), coerce_text(address))


def location_error(place: Location, path: str) -> str | None:
    """Return why the operator will reject a location; None: it will not."""
    if -90 <= place.latitude <= 90 and -180 <= place.longitude <= 180:
        return None
    return f"{path}.latitude must be -90 to 90 degrees, and {path}.longitude -180 to 180"


def medium_body(media: MediaRef, copies: Mapping[str, str], file_name: str = "") -> Body:
    """Return the operator's body of a medium, by the operator's id or by link."""
    body: Body = {"link": media.link} if media.id is None else {"id": copies.get(media.id, media.id)}
    if file_name:
        body["filename"] = file_name
    return body


def location_body(location: Location) -> Body:
    """Return the operator's body of a location, which has no caption. Source: operator's facts 4.1: numbers."""
    body: Body = {"latitude": location.latitude, "longitude": location.longitude}
    for name, text in (("name", location.name), ("address", location.address)):
        if text:
            body[name] = text
    return body


def product_section_body(section: ProductSection) -> Body:
    """Return the operator's body of a product section."""
    body: Body = {"title": section.title} if section.title else {}
    return body | {"product_items": [{"product_retailer_id": product_id} for product_id in section.product_ids]}


def interactive_body(kind: str, action: Body, header: Body | None, body: str, footer: str) -> tuple[str, Body]:
    """Return the operator's `type` and body of an interactive message."""
    message: Body = {"type": kind}
    if header:
        message["header"] = header
    if body:
        message["body"] = {"text": body}
    if footer:
        message["footer"] = {"text": footer}
    return "interactive", message | {"action": action}


def text_header(text: str) -> Body | None:
    """Return the operator's body of a text header; None where the text is empty."""
    return {"type": "text", "text": text} if text else None


def media_header(kind: MediaKind, media: MediaRef, copies: Mapping[str, str], file_name: str = "") -> Body:
    """Return the operator's body of a media header; only a document has a file name."""
    name = file_name if kind is MediaKind.DOCUMENT else ""
    return {"type": kind.value, kind.value: medium_body(media, copies, name)}
