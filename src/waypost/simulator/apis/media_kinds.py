"""The media types that the operator accepts and their maximum sizes: the table and its checks."""

import re
from dataclasses import dataclass
from typing import Final

from waypost.simulator.apis.errors import GraphApiError, bad_parameter, message_error

_KB: Final = 1024
_MB: Final = 1024 * 1024
MAX_MEDIA_BYTES: Final = 100 * _MB
_MAX_STATIC_STICKER_BYTES: Final = 100 * _KB
_OOXML: Final = "application/vnd.openxmlformats-officedocument."


@dataclass(frozen=True)
class SupportedMediaKind:
    """One kind of media: its name in messages, its MIME types, and its maximum size."""

    name: str
    mime_types: tuple[str, ...]
    max_bytes: int


# fmt: off
SUPPORTED_MEDIA_KINDS: Final = (  # Source: facts 6.1; audio/opus is in the operator's own error text
    SupportedMediaKind("audio",    ("audio/aac", "audio/mp4", "audio/mpeg", "audio/amr", "audio/ogg",
                           "audio/opus"),                                          16 * _MB),
    SupportedMediaKind("document", ("application/vnd.ms-powerpoint", "application/msword",
                           _OOXML + "wordprocessingml.document",
                           _OOXML + "presentationml.presentation",
                           _OOXML + "spreadsheetml.sheet",
                           "application/pdf", "text/plain", "application/vnd.ms-excel"),
                                                                                   100 * _MB),
    SupportedMediaKind("image",   ("image/jpeg", "image/png"), 5 * _MB),
    SupportedMediaKind("sticker", ("image/webp",),             500 * _KB),
    SupportedMediaKind("video",   ("video/mp4", "video/3gpp"), 16 * _MB),
)
# fmt: on
INBOUND_MEDIA_KIND: Final = SupportedMediaKind("file", (), MAX_MEDIA_BYTES)
"""What people send. Source: facts 5.2 (131052): a file of more than 100 MB cannot be downloaded."""
_MAX_MIME_TYPE_CHARS: Final = 100
_WORD: Final = r"[A-Za-z0-9!#$&^_.+-]+"
_MIME_TYPE: Final = re.compile(rf'{_WORD}/{_WORD}(?:; ?{_WORD}=(?:{_WORD}|"[ !#-\[\]-~]*"))*')
KIND_BY_MIME_TYPE: Final = {mime: kind for kind in SUPPORTED_MEDIA_KINDS for mime in kind.mime_types}


def find_media_kind(mime_type: str) -> SupportedMediaKind:
    """Return the kind of a MIME type.

    Args:
        mime_type: in lower case, without parameters.

    Raises:
        GraphApiError: the type is unsupported.

    Source: facts 6.1, "wrong type".
    """
    kind = KIND_BY_MIME_TYPE.get(mime_type)
    if kind is None:
        raise bad_parameter(
            "Param file must be a file with one of the following types: "
            f"{', '.join(KIND_BY_MIME_TYPE)}. Received file of type '{mime_type}'."
        )
    return kind


def read_inbound_type(mime_type: str) -> str:
    """Return the MIME type of a file from a phone as it was sent, parameters included: people send any file.

    Raises:
        GraphApiError: it is no MIME type.

    Source: facts 7.4 (`voice`); RFC 2046.
    """
    if len(mime_type) > _MAX_MIME_TYPE_CHARS or not _MIME_TYPE.fullmatch(mime_type):
        raise bad_parameter(f"Param mime_type must be a MIME type, such as text/csv. Received {mime_type!r}.")
    return mime_type


def check_size(kind: SupportedMediaKind, size_bytes: int, beginning: bytes) -> None:
    """Check that a file is neither empty nor too large for its kind.

    Args:
        kind: the file's kind.
        size_bytes: of the whole file.
        beginning: its first bytes, at least 21 if there are as many: they show whether a sticker is animated.

    Raises:
        GraphApiError: the file is empty or too large.
    """
    if size_bytes == 0:
        raise bad_parameter("Param file must not be empty.")
    # Source: WebP container specification, "VP8X"
    is_animated = beginning[12:16] == b"VP8X" and len(beginning) > 20 and bool(beginning[20] & 2)
    limit = _MAX_STATIC_STICKER_BYTES if kind.name == "sticker" and not is_animated else kind.max_bytes
    if size_bytes > limit:
        raise too_large_error(kind, limit)


def too_large_error(kind: SupportedMediaKind, limit_bytes: int) -> GraphApiError:
    """Return the error of a file with too many bytes. Source: facts 5.2, code 131053; the sentence is ours."""
    details = f"Media file size too big. A file of kind {kind.name} may have at most {limit_bytes} bytes."
    return message_error(131053, details)
