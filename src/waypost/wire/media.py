"""Uploads and downloads: declared types, responses and errors."""

import re
from typing import Final
from urllib.parse import quote, urlsplit

from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.media import ACCEPTED_TYPES

MAX_MEDIA_URL_CHARS: Final = 2000
_URL: Final = re.compile(r"https?://|[a-z][a-z0-9+.-]*://\S+\Z", re.IGNORECASE)

# fmt: off
TYPE_ALIASES: Final = {  # other names of accepted types, as clients and tools write them
    "image/jpg":         "image/jpeg",
    "image/pjpeg":       "image/jpeg",
    "audio/mp3":         "audio/mpeg",
    "audio/m4a":         "audio/mp4",
    "audio/x-m4a":       "audio/mp4",
    "audio/x-aac":       "audio/aac",
    "video/3gp":         "video/3gpp",
    "application/x-pdf": "application/pdf",
}
# fmt: on


def read_type(text: str) -> str:
    """Return a declared MIME type in canonical form: lower case, without parameters; empty where there is none."""
    plain = text.partition(";")[0].strip().lower()
    return TYPE_ALIASES.get(plain, plain)


def choose_type(detected: tuple[str, ...], declared: str, hint: str, *, for_handle: bool) -> str:
    """Return the type of an upload: the declared one if the bytes agree, else the likeliest.

    Args:
        detected: possible types of the bytes, likeliest first.
        declared: by `file_type`; an error if the bytes do not agree.
        hint: the part's own Content-Type; ignored if the bytes do not agree.
        for_handle: only types for which the operator has handles.

    Raises:
        ApiError: neither is accepted, or they disagree.

    Source: facts 8, the documented text.
    """
    accepted = accepted_types(for_handle=for_handle)
    if declared:
        if declared in accepted and declared in detected:
            return declared
        if declared in accepted:
            raise wrong_type(detected[0], (declared,))
        raise wrong_type(declared, accepted)
    for candidate in (hint, *detected):
        if candidate in accepted and candidate in detected:
            return candidate
    raise wrong_type(detected[0], accepted)


def accepted_types(*, for_handle: bool) -> tuple[str, ...]:
    """Return the types that may be uploaded, in the documented order."""
    return tuple(name for name, row in ACCEPTED_TYPES.items() if row.for_handle or not for_handle)


def wrong_type(received: str, accepted: tuple[str, ...]) -> ApiError:
    """Return the documented error of a file's type.

    Args:
        received: the declared type, or the type of the bytes.
        accepted: the accepted types; only the declared one if the bytes do not agree with it.
    """
    plain = "".join(char for char in received if " " <= char <= "~" and char != "'")[:100]
    return ApiError(
        ErrorCode.WRONG_FILE_TYPE,
        f"Param file must be a file with one of the following types: {', '.join(accepted)}. "
        f"Received file of type '{plain}'.",
    )


def file_too_large(max_bytes: int, purpose: str) -> ApiError:
    """Return the documented error of a file's size; the explanation has the accepted size."""
    return ApiError(ErrorCode.FILE_TOO_LARGE, f"file must be at most {max_bytes} bytes for {purpose}.")


def fetch_error(field: str, reason: str) -> ApiError:
    """Return the error of a file URL."""
    return ApiError(
        ErrorCode.MEDIA_NOT_FETCHED,
        f"{field} must be {'a file, or ' if field == 'file' else ''}the public http or https address "
        f"of a file, which responds with 200 within 10 s, after at most three redirects; {reason}.",
    )


def is_url(text: str) -> bool:
    """True if a text is a URL of any scheme, and not the bytes of a file."""
    return _URL.match(text) is not None


def check_media_url(url: str, field: str) -> None:
    """Raise an error if a URL is not an absolute http or https URL.

    Raises:
        ApiError: it is not.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        usable = False
    if not usable or len(url) > MAX_MEDIA_URL_CHARS or not url.isprintable() or " " in url:
        raise fetch_error(field, f"it is not an http or https address of at most {MAX_MEDIA_URL_CHARS} characters")


def content_disposition(file_name: str, kind: str = "attachment") -> str:
    """Return a Content-Disposition with the file name in any script.

    Args:
        file_name: empty: it has none.
        kind: `attachment` to save the file, `inline` to show it.

    Source: RFC 6266.
    """
    if not file_name:
        return kind
    plain = "".join(char if " " <= char <= "~" and char not in '"\\%' else "_" for char in file_name)
    text = f'{kind}; filename="{plain}"'
    if plain != file_name:
        text += f"; filename*=UTF-8''{quote(file_name, safe='')}"
    return text


def content_type(text: str) -> str:
    """Return a type for a header; an invalid one becomes `application/octet-stream`."""
    plain = text.strip()
    usable = "/" in plain and plain.isascii() and plain.isprintable()
    return plain if usable else "application/octet-stream"


def disk_full_error() -> ApiError:
    """Return the error of an upload when our disk is full."""
    return ApiError(
        ErrorCode.NO_ROOM, "There is no room for files: what is left on the disk is kept for messages; try again later."
    )
