"""Bodies: of requests that are sent in chunks, whatever a caller produces, and of streams read up to a limit."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from dataclasses import dataclass
from typing import IO, Final, NamedTuple

CHUNK_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class ChunkedBody:
    """A body in chunks."""

    chunks: AsyncIterable[bytes]
    size_bytes: int | None = None  # of all chunks together; None: not known, each is sent with its own length


RequestBody = bytes | ChunkedBody | None


class FormPart(NamedTuple):
    """A field of a multipart form."""

    name: str
    content: str | bytes | IO[bytes]  # a text, or a file that is read from its current position to its end
    file_name: str | None = None  # None: the field is no file
    content_type: str = ""  # empty: not sent


def file_body(file: IO[bytes]) -> ChunkedBody:
    """Return the body that is a file, from its current position to its end."""
    return ChunkedBody(_read_chunks(file), _remaining_bytes(file))


def form_body(parts: Sequence[FormPart]) -> tuple[str, ChunkedBody]:
    """Return the content type and the body of a multipart form.

    Source: RFC 7578.
    """
    boundary = f"waypost-{secrets.token_hex(16)}"
    pieces: list[bytes | IO[bytes]] = []
    for part in parts:
        pieces += [_part_head(part, boundary)]
        pieces += [part.content.encode() if isinstance(part.content, str) else part.content, b"\r\n"]
    pieces.append(f"--{boundary}--\r\n".encode())
    size_bytes = sum(len(piece) if isinstance(piece, bytes) else _remaining_bytes(piece) for piece in pieces)
    return f"multipart/form-data; boundary={boundary}", ChunkedBody(_join(pieces), size_bytes)


def _part_head(part: FormPart, boundary: str) -> bytes:
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(part.name)}"'
    if part.file_name is not None:
        head += f'; filename="{_quoted(part.file_name)}"'
    if part.content_type:
        head += f"\r\nContent-Type: {part.content_type.translate(_WITHOUT_BREAKS)}"
    return f"{head}\r\n\r\n".encode()


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').translate(_WITHOUT_BREAKS)


async def _join(pieces: Sequence[bytes | IO[bytes]]) -> AsyncIterator[bytes]:
    for piece in pieces:
        if isinstance(piece, bytes):
            yield piece
        else:
            async for chunk in _read_chunks(piece):
                yield chunk


async def _read_chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await asyncio.to_thread(file.read, CHUNK_BYTES):
        yield chunk


def _remaining_bytes(file: IO[bytes]) -> int:
    position = file.seek(0, os.SEEK_CUR)
    end = file.seek(0, os.SEEK_END)
    file.seek(position)
    return end - position


_WITHOUT_BREAKS: Final = str.maketrans("\r\n\0", "___")


MAX_JSON_BRACKETS: Final = 20_000
MAX_JSON_COMMAS: Final = 200_000
"""Members of a JSON text: parsed, each takes up to fifty times the memory of its text."""


async def read_limited_body(chunks: AsyncIterator[bytes], max_bytes: int) -> bytes | None:
    """Return the whole body; None as soon as it is longer than it may be."""
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > max_bytes:
            return None
        parts.append(chunk)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def has_too_many_members(text: bytes) -> bool:
    """True if a JSON text has more lists, objects and members than any request of a client."""
    return text.count(b"[") + text.count(b"{") > MAX_JSON_BRACKETS or text.count(b",") > MAX_JSON_COMMAS
