"""Media that partners upload or recipients send, and the handles of template samples."""

from base64 import b64encode, urlsafe_b64encode
from dataclasses import dataclass
from typing import Final

from waypost.base.clock import DAY_MS
from waypost.domain.session_messages.content import MediaKind

MEDIA_LIFE_MS: Final = 30 * DAY_MS  # Source: facts 8, "Life of media id"
INBOUND_LIFE_MS: Final = 7 * DAY_MS  # Source: facts 6.4, `urlExpiry`
MAX_UPLOAD_BYTES: Final = 100 * 1024 * 1024  # Source: facts 8, "Size"


@dataclass(frozen=True, slots=True)
class AcceptedType:
    """One MIME type that may be uploaded."""

    kind: MediaKind
    max_bytes: int
    extension: str  # what the name of such a file ends in, with its dot
    for_handle: bool = False  # true if the operator accepts it as a template's sample, as a handle


_MB: Final = 1024 * 1024
_OFFICE: Final = "application/vnd.openxmlformats-officedocument."
# fmt: off
ACCEPTED_TYPES: Final = {  # Source: facts 8, `file_type` list and per-message limits; operator's facts 6.1, 6.2
    # MIME type                                                kind                max bytes   extension  handle
    "audio/aac":                             AcceptedType(MediaKind.AUDIO,    16 * _MB,   ".aac"),
    "audio/mp4":                             AcceptedType(MediaKind.AUDIO,    16 * _MB,   ".m4a"),
    "audio/mpeg":                            AcceptedType(MediaKind.AUDIO,    16 * _MB,   ".mp3"),
    "audio/amr":                             AcceptedType(MediaKind.AUDIO,    16 * _MB,   ".amr"),
    "audio/ogg":                             AcceptedType(MediaKind.AUDIO,    16 * _MB,   ".ogg"),
    "audio/opus":                            AcceptedType(MediaKind.AUDIO,    16 * _MB,   ".opus"),
    "application/vnd.ms-powerpoint":         AcceptedType(MediaKind.DOCUMENT, 100 * _MB,  ".ppt"),
    "application/msword":                    AcceptedType(MediaKind.DOCUMENT, 100 * _MB,  ".doc"),
    f"{_OFFICE}wordprocessingml.document":   AcceptedType(MediaKind.DOCUMENT, 100 * _MB,  ".docx"),
    f"{_OFFICE}presentationml.presentation": AcceptedType(MediaKind.DOCUMENT, 100 * _MB,  ".pptx"),
    f"{_OFFICE}spreadsheetml.sheet":         AcceptedType(MediaKind.DOCUMENT, 100 * _MB,  ".xlsx"),
    "application/pdf":                       AcceptedType(MediaKind.DOCUMENT, 100 * _MB,  ".pdf",    True),
    "application/vnd.ms-excel":              AcceptedType(MediaKind.DOCUMENT, 100 * _MB,  ".xls"),
    "text/plain":                            AcceptedType(MediaKind.DOCUMENT, 100 * _MB,  ".txt"),
    "image/jpeg":                            AcceptedType(MediaKind.IMAGE,    5 * _MB,    ".jpg",    True),
    "image/png":                             AcceptedType(MediaKind.IMAGE,    5 * _MB,    ".png",    True),
    "image/webp":                            AcceptedType(MediaKind.STICKER,  500 * 1024, ".webp"),
    "video/mp4":                             AcceptedType(MediaKind.VIDEO,    16 * _MB,   ".mp4",    True),
    "video/3gpp":                            AcceptedType(MediaKind.VIDEO,    16 * _MB,   ".3gp"),
}
# fmt: on


@dataclass(frozen=True, slots=True)
class UploadedMedia:
    """One upload."""

    id: str  # 16 digits; the media id if it was uploaded for sending
    partner_id: int
    app_id: str
    handle: str | None  # of a template's sample; None: it was uploaded for sending
    mime_type: str
    size_bytes: int
    sha256: str  # of the bytes, hex; also the file's name on disk
    file_name: str
    created_on_ms: int
    expires_on_ms: int


@dataclass(frozen=True, slots=True)
class InboundMedia:
    """A medium that a recipient has sent, served at an unguessable URL."""

    key: str  # the end of its URL
    partner_id: int
    app_id: str
    operator_media_id: str  # the operator's id of it
    mime_type: str
    file_name: str
    expires_on_ms: int
    sha256: str | None = None  # of the bytes; None: not fetched yet
    failure: str | None = None  # why it cannot be fetched; None: it can


HANDLE_PREFIX: Final = "4::"
MAX_HANDLE_LINES: Final = 100
"""More than the operator's handles have, and than clients join; a text with more lines is no handle of ours."""


def build_handle(
    mime_type: str, secret: str, signature: str, *, media_id: str, size_bytes: int, expires_on_ms: int
) -> str:
    """Return a handle: `4::<base64 of the MIME type>:<ours>:e:<expiry>:<number>:<number>:<signature>`.

    Args:
        secret: unguessable hex digits; the handle is looked up as a whole.
        signature: unguessable hex digits; present because readers expect a last part.
        media_id: the first number.
        size_bytes: the second.
        expires_on_ms: written in seconds since the epoch.

    Source: facts 8, "Handle string"; operator's facts 6.2.
    """
    kind = b64encode(mime_type.encode()).decode()
    end_s = expires_on_ms // 1000
    return f"{HANDLE_PREFIX}{kind}:{_opaque(secret)}:e:{end_s}:{media_id}:{size_bytes}:{_opaque(signature)}"


def handle_lines(handle: str) -> tuple[str, ...]:
    """Return the lines of a handle, stripped; empty for a text with more lines than a handle has."""
    lines = tuple(line for part in handle.splitlines() if (line := part.strip()))
    return lines if len(lines) <= MAX_HANDLE_LINES else ()


def is_operator_handle(line: str, operator_app_id: str, now_ms: int) -> bool:
    """True if a line has the form of an unexpired handle that the operator issued to an app of its own.

    Source: operator's facts 6.2, "Handle shape": its end and its app are parts of it.
    """
    parts = line.split(":")
    is_whole = line.startswith(HANDLE_PREFIX) and len(parts) == 9 and all(parts[2:]) and parts[4] == "e"
    if not is_whole or parts[6] != operator_app_id:
        return False
    return parts[5].isascii() and parts[5].isdecimal() and len(parts[5]) < 12 and int(parts[5]) * 1000 > now_ms


def _opaque(hex_digits: str) -> str:
    return "AR" + urlsafe_b64encode(bytes.fromhex(hex_digits)).decode().rstrip("=")
