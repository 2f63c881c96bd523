"""The forms that the page of a preview posts: a step of the person, perhaps with a file."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import parse_qsl

from starlette.requests import Request

from waypost.flow_json.components import MAX_FILE_KB
from waypost.simulator.apis.errors import GraphApiError
from waypost.simulator.apis.requests import MultipartForm

_MAX_FORM_BYTES: Final = 128 * 1024
_MAX_FIELDS: Final = 20
_MAX_FILE_BYTES: Final = MAX_FILE_KB * 1024
_MAX_NAME_CHARS: Final = 240


class InvalidPreview(Exception):
    """The link, a parameter or a form of a preview cannot be used; the text says why."""

    def __init__(self, status: int, text: str) -> None:
        """Remember the status of the response, and the text."""
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class PreviewFile:
    """A file of a form."""

    file_name: str
    mime_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class PreviewForm:
    """The fields of a form, and its file; None without one."""

    fields: dict[str, str]
    file: PreviewFile | None = None


async def read_preview_form(request: Request) -> PreviewForm:
    """Return a form, urlencoded or in parts.

    Raises:
        InvalidPreview: it is too large, has too many fields, or cannot be read.
    """
    content_type = request.headers.get("content-type", "")
    if content_type[:10].lower() == "multipart/":
        return await _read_parts(content_type, request.stream())
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_FORM_BYTES:
            raise InvalidPreview(413, f"A step has at most {_MAX_FORM_BYTES} bytes.")
    try:
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MAX_FIELDS)
    except ValueError:  # more fields
        raise InvalidPreview(400, f"A step has at most {_MAX_FIELDS} fields.") from None
    return PreviewForm(dict(pairs))


async def _read_parts(content_type: str, chunks: AsyncIterator[bytes]) -> PreviewForm:
    fields: dict[str, str] = {}
    file: PreviewFile | None = None
    try:
        form = MultipartForm(content_type, aiter(chunks))
        while (head := await form.next_part()) is not None:
            if head.file_name is None:
                fields[head.name] = await form.text(max_bytes=_MAX_FORM_BYTES)
                if len(fields) > _MAX_FIELDS:
                    raise InvalidPreview(400, f"A step has at most {_MAX_FIELDS} fields.")
                continue
            content = bytearray()
            async for chunk in form.chunks():
                content += chunk
                if len(content) > _MAX_FILE_BYTES:
                    raise InvalidPreview(413, f"A file has at most {_MAX_FILE_BYTES} bytes.")
            kind = head.content_type or "application/octet-stream"
            file = PreviewFile(head.file_name[-_MAX_NAME_CHARS:], kind.partition(";")[0].strip(), bytes(content))
    except GraphApiError as error:
        raise InvalidPreview(400, "The form cannot be read.") from error
    return PreviewForm(fields, file)
