"""Media that a partner has uploaded, and what a recipient has sent."""

from dataclasses import dataclass
from typing import Final

from waypost.domain.session_messages.content import MediaKind

DAY_MS: Final = 24 * 60 * 60 * 1000
MEDIA_LIFE_MS: Final = 30 * DAY_MS  # Source: facts 8, "Life of media id"
INBOUND_LIFE_MS: Final = 7 * DAY_MS  # Source: facts 6.4, `urlExpiry`
MOST_UPLOAD_BYTES: Final = 100 * 1024 * 1024  # Source: facts 8, "Size"


@dataclass(frozen=True, slots=True)
class Accepted:
    """One MIME type that may be uploaded.

    Attributes:
        for_handle: whether the operator makes a handle of it, for a template's sample.
    """

    kind: MediaKind
    max_bytes: int
    for_handle: bool = False


_MB: Final = 1024 * 1024
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
# fmt: off
ACCEPTED: Final = {  # Source: facts 8, `file_type` list and per-message limits; operator's facts 6.1, 6.2
    # MIME type                                                kind                most bytes         handle
    "audio/aac":                                      Accepted(MediaKind.AUDIO,    16 * _MB),
    "audio/mp4":                                      Accepted(MediaKind.AUDIO,    16 * _MB),
    "audio/mpeg":                                     Accepted(MediaKind.AUDIO,    16 * _MB),
    "audio/amr":                                      Accepted(MediaKind.AUDIO,    16 * _MB),
    "audio/ogg":                                      Accepted(MediaKind.AUDIO,    16 * _MB),
    "audio/opus":                                     Accepted(MediaKind.AUDIO,    16 * _MB),
    "application/vnd.ms-powerpoint":                  Accepted(MediaKind.DOCUMENT, 100 * _MB),
    "application/msword":                             Accepted(MediaKind.DOCUMENT, 100 * _MB),
    f"{_OFFICE}wordprocessingml.document":            Accepted(MediaKind.DOCUMENT, 100 * _MB),
    f"{_OFFICE}presentationml.presentation":          Accepted(MediaKind.DOCUMENT, 100 * _MB),
    f"{_OFFICE}spreadsheetml.sheet":                  Accepted(MediaKind.DOCUMENT, 100 * _MB),
    "application/pdf":                                Accepted(MediaKind.DOCUMENT, 100 * _MB, True),
    "application/vnd.ms-excel":                       Accepted(MediaKind.DOCUMENT, 100 * _MB),
    "text/plain":                                     Accepted(MediaKind.DOCUMENT, 100 * _MB),
    "image/jpeg":                                     Accepted(MediaKind.IMAGE,    5 * _MB,   True),
    "image/png":                                      Accepted(MediaKind.IMAGE,    5 * _MB,   True),
    "image/webp":                                     Accepted(MediaKind.STICKER,  500 * 1024),
    "video/mp4":                                      Accepted(MediaKind.VIDEO,    16 * _MB,  True),
    "video/3gpp":                                     Accepted(MediaKind.VIDEO,    16 * _MB),
}
# fmt: on


@dataclass(frozen=True, slots=True)
class Media:
    """One upload.

    Attributes:
        id: 16 digits; the media id where it was uploaded for sending.
        handle: where it was uploaded for a template's sample; else None.
        sha256: of the bytes, hex; also their name on disk.
    """

    id: str
    partner_id: int
    app_id: str
    handle: str | None
    mime_type: str
    size_bytes: int
    sha256: str
    file_name: str
    created_on_ms: int
    expires_on_ms: int


@dataclass(frozen=True, slots=True)
class InboundMedia:
    """A medium that a recipient has sent, kept behind an address that nobody can guess.

    Attributes:
        key: the end of its address.
        operator_media_id: the operator's id of it.
        sha256: once its bytes are here; None until then.
        failed: why they will never be here; None otherwise.
    """

    key: str
    partner_id: int
    app_id: str
    operator_media_id: str
    mime_type: str
    file_name: str
    expires_on_ms: int
    sha256: str | None = None
    failed: str | None = None
