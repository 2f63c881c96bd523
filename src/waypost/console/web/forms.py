"""Forms of the console's pages: read once, within limits, with files on disk."""

import asyncio
from typing import Any, Final

from starlette.datastructures import FormData
from starlette.requests import Request

from waypost.console.web.errors import InvalidPageRequest

MAX_FORM_BYTES: Final = 1024 * 1024
"""Maximum size of a form without a file."""
MAX_UPLOAD_FORM_BYTES: Final = 101 * 1024 * 1024
"""Maximum size of a form with a file: the channel's largest document and its multipart overhead."""
MAX_FORM_FIELDS: Final = 500
MAX_FORM_FILES: Final = 16
"""Inputs without a chosen file count too; the editor of a carousel has eleven."""


def parse_number(text: str, *, max_digits: int = 18) -> int | None:
    """Return a whole number in ASCII digits, such as an ID in a path; None for any other text, or more digits."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= max_digits else None


async def read_form(request: Request, *, takes_files: bool) -> FormData:
    """Return the form, urlencoded or multipart.

    Raises:
        InvalidPageRequest: it is too large, cannot be parsed, or contains U+0000 or unpaired surrogates.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    max_bytes = MAX_UPLOAD_FORM_BYTES if takes_files and kind == "multipart/form-data" else MAX_FORM_BYTES
    too_large = InvalidPageRequest(
        f"The form is larger than {max_bytes // 1024 // 1024} MB.", "Send a smaller file or text."
    )
    length = request.headers.get("content-length", "0")
    if length.isdecimal() and (len(length) > 18 or int(length) > max_bytes):
        raise too_large
    counted, receive = 0, request.receive

    async def count() -> Any:
        nonlocal counted
        message = await receive()
        counted += len(message.get("body", b""))
        if counted > max_bytes:
            raise too_large
        return message

    counting = Request(request.scope, count)
    try:
        form = await counting.form(max_files=MAX_FORM_FILES, max_fields=MAX_FORM_FIELDS, max_part_size=MAX_FORM_BYTES)
    except (InvalidPageRequest, asyncio.CancelledError):
        raise
    except Exception as error:  # form parsers raise errors of their own
        raise InvalidPageRequest("The form cannot be read.") from error
    for name, value in form.multi_items():
        if not _is_storable(name):
            await form.close()
            raise InvalidPageRequest("The form has an unknown field.")
        texts = (value,) if isinstance(value, str) else (value.filename, value.content_type)
        if not all(_is_storable(text or "") for text in texts):
            await form.close()
            raise InvalidPageRequest(
                f"The field {name} contains a character that cannot be stored.", "Remove it and try again."
            )
    return form


def _is_storable(text: str) -> bool:
    """True if the text can be stored and shown; a form may declare any encoding."""
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:  # an unpaired surrogate
        return False
