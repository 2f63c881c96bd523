"""Uploads and downloads: what is declared, and what is answered."""

from typing import Any, Final
from urllib.parse import quote, urlsplit

from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.media import ACCEPTED

MOST_URL_CHARS: Final = 2000

# fmt: off
SPELLINGS: Final = {  # other names of accepted types that clients and tools write
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
    """A declared MIME type in its one spelling: lower case, without parameters; empty where none is given."""
    plain = text.partition(";")[0].strip().lower()
    return SPELLINGS.get(plain, plain)


def choose_type(found: tuple[str, ...], declared: str, hint: str, *, for_handle: bool) -> str:
    """The type an upload has: what is declared, where the bytes may be that; else the likeliest.

    Args:
        found: what the bytes may be, the likeliest first.
        declared: by `file_type`; refused where the bytes are something else.
        hint: the part's own Content-Type; passed over where the bytes are something else.
        for_handle: only what the operator makes handles of.

    Raises:
        Refused: neither is accepted, or they disagree.

    Source: facts 8, the documented text.
    """
    accepted = accepted_types(for_handle=for_handle)
    if declared:
        if declared in accepted and declared in found:
            return declared
        if declared in accepted:
            raise wrong_type(found[0], (declared,))
        raise wrong_type(declared, accepted)
    for one in (hint, *found):
        if one in accepted and one in found:
            return one
    raise wrong_type(found[0], accepted)


def accepted_types(*, for_handle: bool) -> tuple[str, ...]:
    """What may be uploaded, in the documented order."""
    return tuple(name for name, row in ACCEPTED.items() if row.for_handle or not for_handle)


def wrong_type(received: str, accepted: tuple[str, ...]) -> ApiError:
    """The documented refusal of a type.

    Args:
        received: what was declared, or what the bytes are.
        accepted: what would be accepted: where a type is declared that the bytes are not, that one.
    """
    plain = "".join(char for char in received if " " <= char <= "~" and char != "'")[:100]
    return ApiError(
        ErrorCode.WRONG_FILE_TYPE,
        f"Param file must be a file with one of the following types: {', '.join(accepted)}. "
        f"Received file of type '{plain}'.",
    )


def too_large(most_bytes: int, what: str) -> ApiError:
    """The documented refusal of a size; the header says how much is accepted."""
    return ApiError(ErrorCode.FILE_TOO_LARGE, f"file must be at most {most_bytes} bytes for {what}.")


def not_fetched(field: str, why: str) -> ApiError:
    """The refusal of an address."""
    return ApiError(
        ErrorCode.MEDIA_NOT_FETCHED,
        f"{field} must be {'a file, or ' if field == 'file' else ''}the public http or https address "
        f"of a file, which answers 200 within 10 s, after at most three redirects; {why}.",
    )


def is_address(text: str) -> bool:
    """Whether a text is meant as an address, and not as the bytes of a file."""
    return text[:8].lower().startswith(("http://", "https://"))


def check_address(url: str, field: str) -> None:
    """Refuse what is no absolute http or https address.

    Raises:
        Refused: it is not.
    """
    try:
        parts = urlsplit(url)
        usable = parts.scheme.lower() in ("http", "https") and bool(parts.hostname)
        _ = parts.port
    except ValueError:
        usable = False
    if not usable or len(url) > MOST_URL_CHARS or not url.isprintable() or " " in url:
        raise not_fetched(field, f"this is no address of at most {MOST_URL_CHARS} characters")


def handle_answer(handle: str | None) -> dict[str, Any]:
    """Source: spec, "Upload media, handle id"."""
    return {"handleId": {"message": handle}, "status": "success"}


def media_id_answer(media_id: str) -> dict[str, Any]:
    """Source: spec, "Upload media, media id"."""
    return {"mediaId": media_id, "status": "success"}


def stored_answer(media_id: str, file_name: str, url: str) -> dict[str, Any]:
    """Source: facts 8, the messaging API's upload."""
    return {"status": "success", "media": {"fileName": file_name, "id": media_id, "url": url}}


def disposition(file_name: str, kind: str = "attachment") -> str:
    """A Content-Disposition that offers the file under its name, whatever letters it has.

    Args:
        file_name: empty where it has none.
        kind: `attachment` to be saved, `inline` to be shown.

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
    """A type as a header may carry it; what is none is a stream of bytes."""
    plain = text.strip()
    usable = "/" in plain and plain.isascii() and plain.isprintable()
    return plain if usable else "application/octet-stream"


def no_room() -> ApiError:
    """The refusal of a file for which there is no room on our disk."""
    return ApiError(
        ErrorCode.NO_ROOM, "There is no room for files: what is left on the disk is kept for messages; try again later."
    )
