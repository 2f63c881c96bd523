"""Session messages with one button: a URL to open, or a request for a location."""

from dataclasses import dataclass
from typing import Any, ClassVar, Final

from waypost.domain.coercion import Text, coerce_text
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.session_messages.content import (
    NO_MEDIUM,
    Body,
    FieldLimit,
    HeaderMediumObject,
    HeaderObject,
    MediaKind,
    MediaRef,
    SendContext,
    SessionContent,
    TextObject,
    interactive_body,
    is_http_url,
    media_header,
    missing_member,
    read_media_ref,
    unwrap_text,
)


@dataclass(slots=True)
class UrlButtonShape:
    """Members of a message with a URL button."""

    body: Text | TextObject | None = None
    header: Text | HeaderObject | None = None
    footer: Text | TextObject | None = None
    display_text: Text | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class SessionUrlButton(SessionContent):
    """A text with one button that opens a URL.

    Attributes:
        label: of the button.
        media_kind: of the header, image or video; None: no medium.

    Source: public page "Session messages", `cta_url`.
    """

    wire_types: ClassVar = ("cta_url",)
    stored_as: ClassVar = "cta_url"
    kind_label: ClassVar = "URL button"
    shape: ClassVar = UrlButtonShape
    # fmt: off
    limits: ClassVar = (
        FieldLimit("body",         lambda c: [c.body],   1024),
        FieldLimit("footer",       lambda c: [c.footer], 60),
        FieldLimit("display_text", lambda c: [c.label],  20),
        FieldLimit("url",          lambda c: [c.url],    2000),
    )
    # fmt: on

    body: str
    label: str
    url: str
    footer: str = ""
    media_kind: MediaKind | None = None
    media: MediaRef = NO_MEDIUM
    reply_to: str | None = None

    @classmethod
    def read(cls, members: UrlButtonShape, wire_type: str, reply_to: str | None) -> "SessionUrlButton":
        body, label, url = unwrap_text(members.body), coerce_text(members.display_text), (members.url or "").strip()
        if not body.strip():
            raise missing_member("body", "the text of the message")
        if not label.strip():
            raise missing_member("display_text", "the label of the button")
        if not url:
            raise missing_member("url", "the address that the button opens")
        media_kind, media = _header_medium(members.header)
        return cls(body, label, url, unwrap_text(members.footer), media_kind, media, reply_to)

    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        header: Body | None = None
        if self.media_kind is not None:
            header = media_header(self.media_kind, self.media, context.copies)
        parameters = {"display_text": self.label, "url": self.url}
        action: Body = {"name": "cta_url", "parameters": parameters}
        return interactive_body("cta_url", action, header, self.body, self.footer)

    def media_refs(self) -> tuple[MediaRef, ...]:
        return (self.media,)

    def operator_error(self) -> str | None:
        return None if is_http_url(self.url) else "message.url must begin with http:// or https://"


@dataclass(slots=True)
class LocationActionObject:
    """The action of a location request's button."""

    name: Text | None = None


@dataclass(slots=True)
class LocationRequestShape:
    """Members of a location request."""

    body: Text | TextObject | None = None
    action: LocationActionObject | None = None


_SEND_LOCATION: Final = "send_location"


@dataclass(frozen=True, slots=True)
class SessionLocationRequest(SessionContent):
    """A text with a button that shares the recipient's location.

    Source: public page "Session messages", `location_request_message`.
    """

    wire_types: ClassVar = ("location_request_message",)
    stored_as: ClassVar = "location_request"
    kind_label: ClassVar = "Location request"
    shape: ClassVar = LocationRequestShape
    limits: ClassVar = (FieldLimit("body.text", lambda c: [c.body], 1024),)

    body: str
    reply_to: str | None = None

    @classmethod
    def read(cls, members: LocationRequestShape, wire_type: str, reply_to: str | None) -> "SessionLocationRequest":
        body = unwrap_text(members.body)
        if not body.strip():
            raise missing_member("body.text", "the text of the message")
        name = coerce_text(members.action.name) if members.action else _SEND_LOCATION
        if name != _SEND_LOCATION:
            raise ApiError(ErrorCode.FIELD_BROKEN, f"message.action.name must be {_SEND_LOCATION}.")
        return cls(body, reply_to)

    def operator_body(self, context: SendContext) -> tuple[str, Any]:
        return interactive_body("location_request_message", {"name": _SEND_LOCATION}, None, self.body, "")


def _header_medium(header: Text | HeaderObject | None) -> tuple[MediaKind | None, MediaRef]:
    """Return kind and medium of a header; None and no medium where there is no header.

    Raises:
        ApiError: the header has another type, or lacks its medium.
    """
    if header is None or header == "":
        return None, NO_MEDIUM
    header_object = header if isinstance(header, HeaderObject) else HeaderObject()
    kind = coerce_text(header_object.type).strip().lower()
    if kind not in ("image", "video"):
        raise ApiError(ErrorCode.FIELD_BROKEN, f'message.header.type must be image or video; it is "{kind[:20]}".')
    medium = header_object.image if kind == "image" else header_object.video
    if medium is None:
        medium = HeaderMediumObject(header_object.id, header_object.url or header_object.originalUrl)
    name = f"header.{kind}.link"
    accepted = f"an address, or message.header.{kind}.id, of the {kind}"
    return MediaKind(kind), read_media_ref(medium.id, medium.link, name, accepted)
