"""View models of media, locations and contact cards in bubbles."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from waypost.base.json_values import integer_or_none, object_of, objects_in
from waypost.console.bubbles.formatting import safe_link
from waypost.console.bubbles.json_fields import degrees_of, text_of

MEDIA_LABELS: Final = {  # label of each kind
    "image": "Photo", "video": "Video", "audio": "Audio", "document": "Document", "sticker": "Sticker", "gif": "GIF",
}  # fmt: skip
_PICTURES: Final = ("image", "sticker")
_MB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class MediaView:
    """A file.

    Attributes:
        kind: key of `MEDIA_LABELS`; anything but an image, audio or document is a video.
        url: console path of its bytes; empty if there is none.
        name: file name.
        detail: type, pages and size as text.
        external_host: host of an external file; pages load nothing from other hosts.
        is_voice: True for a voice message.
        is_moving: True for a GIF or an animated sticker.
    """

    kind: str
    url: str = ""
    name: str = ""
    detail: str = ""
    external_host: str = ""
    is_voice: bool = False
    is_moving: bool = False

    @property
    def label(self) -> str:
        """Label of the kind."""
        return MEDIA_LABELS[self.kind]

    @property
    def is_picture(self) -> bool:
        """True if it is drawn as an image, not as a video."""
        return self.kind in _PICTURES


@dataclass(frozen=True, slots=True)
class LocationView:
    """A location; `shift` moves the drawn map, so that different locations look different."""

    name: str
    address: str
    coordinates: str
    shift: int


@dataclass(frozen=True, slots=True)
class Contact:
    """A contact card."""

    name: str
    company: str
    lines: tuple[tuple[str, str], ...]


def media_view(kind: str, value: object) -> MediaView:
    """Return the view of a media object from a send, webhook or draft; the page may add `url`, `size_bytes`, `pages`."""
    content = object_of(value)
    url, link = text_of(content.get("url")), safe_link(text_of(content.get("link")))
    name = text_of(content.get("filename"))
    if not name and link is not None:
        name = PurePosixPath(link.path.partition("?")[0]).name
    mime_type = text_of(content.get("mime_type"))
    return MediaView(
        kind=kind if kind in MEDIA_LABELS else "document",
        url=url if _is_local_url(url) else "",
        name=name,
        detail=_detail(name, mime_type, content),
        external_host=link.host if link else "",
        is_voice=content.get("voice") is True,
        is_moving=kind == "gif" or content.get("animated") is True or mime_type == "image/gif",
    )


def location_view(value: object) -> LocationView:
    """Return the view of a location."""
    content = object_of(value)
    latitude = degrees_of(content.get("latitude"), 90)
    longitude = degrees_of(content.get("longitude"), 180)
    known = latitude is not None and longitude is not None
    return LocationView(
        name=text_of(content.get("name")),
        address=text_of(content.get("address")),
        coordinates=f"{latitude:.5f}, {longitude:.5f}" if known else "",
        shift=int(((latitude or 0) * 7919 + (longitude or 0) * 104729) % 60),
    )


def contact_views(value: object) -> tuple[Contact, ...]:
    """Return the views of contact cards."""
    return tuple(_contact(card) for card in objects_in(value))


def _contact(card: dict[str, Any]) -> Contact:
    lines = [
        *((text_of(one.get("type")) or "Phone", text_of(one.get("phone")) or text_of(one.get("wa_id")))
          for one in objects_in(card.get("phones"))),
        *((text_of(one.get("type")) or "E-mail", text_of(one.get("email"))) for one in objects_in(card.get("emails"))),
        *((text_of(one.get("type")) or "Web", text_of(one.get("url"))) for one in objects_in(card.get("urls"))),
        *((text_of(one.get("type")) or "Address", _address(one)) for one in objects_in(card.get("addresses"))),
        ("Birthday", text_of(card.get("birthday"))),
    ]  # fmt: skip
    company = object_of(card.get("org"))
    return Contact(
        name=text_of(object_of(card.get("name")).get("formatted_name")) or "Contact",
        company=", ".join(filter(None, (text_of(company.get("title")), text_of(company.get("company"))))),
        lines=tuple((name.capitalize(), value) for name, value in lines if value),
    )


def _address(address: dict[str, Any]) -> str:
    members = ("street", "zip", "city", "state", "country")
    return ", ".join(filter(None, (text_of(address.get(name)) for name in members)))


def _detail(name: str, mime_type: str, content: dict[str, Any]) -> str:
    ending = PurePosixPath(name).suffix[1:] or mime_type.partition(";")[0].rpartition("/")[2]
    pages, size = integer_or_none(content.get("pages")), integer_or_none(content.get("size_bytes"))
    details = [
        ending.upper()[:12],
        f"{pages} {'page' if pages == 1 else 'pages'}" if pages else "",
        format_size(size) if size is not None else "",
    ]
    return " · ".join(filter(None, details))


def format_size(size_bytes: int) -> str:
    """Return a size as `12 kB` or `1.4 MB`."""
    if size_bytes < 1024:
        return f"{size_bytes} B"
    if size_bytes < _MB:
        return f"{size_bytes / 1024:.0f} kB"
    return f"{size_bytes / _MB:.1f} MB"


def _is_local_url(url: str) -> bool:
    """True if a URL is a path of this console, or a blob of the page itself."""
    return (url.startswith("/") and not url.startswith(("//", "/\\"))) or url.startswith("blob:")
