"""One door, over HTTP or straight to the service in this process."""

import re
from collections.abc import AsyncGenerator, Mapping
from hashlib import sha256
from typing import Any, Protocol
from urllib.parse import urlencode

import msgspec

from waypost.client.responses import ApiResponseError, NotReached, Reply, read_answer
from waypost.client.streaming import PIECE_BYTES, Pieces
from waypost.client.transports import Application, InProcess, OverHttp, Transport


class Readable(Protocol):
    """A file that can be read more than once, such as one of a form that lies on disk."""

    async def read(self, size: int = -1, /) -> bytes:
        """The next bytes; none at the end."""
        ...

    async def seek(self, offset: int, /) -> Any:
        """Read on from there."""
        ...


async def pieces_of(file: bytes | Readable) -> AsyncGenerator[bytes]:
    """A file from its beginning to its end."""
    if isinstance(file, bytes):
        yield file
        return
    await file.seek(0)
    while piece := await file.read(PIECE_BYTES):
        yield piece


async def joined(*parts: bytes | Readable) -> AsyncGenerator[bytes]:
    """One after the other."""
    for part in parts:
        async for piece in pieces_of(part):
            yield piece


async def digest_of(file: bytes | Readable) -> str:
    """The SHA-256 of a file, in hex digits."""
    digest = sha256()
    async for piece in pieces_of(file):
        digest.update(piece)
    return digest.hexdigest()


__all__ = (
    "ApiClient",
    "ApiResponseError",
    "Application",
    "InProcess",
    "NotReached",
    "OverHttp",
    "Pieces",
    "Reply",
    "Transport",
)  # fmt: skip


class ApiClient:
    """Calls of one door, with its credential.

    Args:
        transport: how requests travel.
        headers: of every request, the credential among them.
    """

    def __init__(self, transport: Transport, headers: Mapping[str, str]) -> None:
        self._transport = transport
        self._headers = dict(headers)

    async def json(self, method: str, path: str, body: Any = None) -> Any:
        """A call that takes and gives JSON.

        Raises:
            DoorRefused: any answer but 2xx.
            NotReached: nobody answers.
        """
        headers = {**self._headers, "Content-Type": "application/json"}
        content = None if body is None else msgspec.json.encode(body)
        return read_answer(await self._transport(method, path, headers, content), f"{method} {path}")

    async def file(self, path: str, content: bytes | Readable, *, name: str, media_type: str) -> Any:
        """Upload a file, as the field `file` of a multipart form; gives JSON.

        Args:
            path: of the call, which is a POST.
            content: the bytes, or what gives them piece by piece.
            name: of the file.
            media_type: what they are said to be.

        Raises:
            DoorRefused: any answer but 2xx.
            NotReached: nobody answers.
        """
        boundary = f"waypost-{await digest_of(content)}"  # a text cannot hold its own digest
        told = re.sub(r'["\r\n]', "_", name)
        said = re.sub(r"[\r\n]", "", media_type)
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{told}"\r\n'
            f"Content-Type: {said}\r\n\r\n"
        )
        body = joined(head.encode(), content, f"\r\n--{boundary}--\r\n".encode())
        headers = {**self._headers, "Content-Type": f"multipart/form-data; boundary={boundary}"}
        return read_answer(await self._transport("POST", path, headers, body), f"POST {path}")

    async def plain_file(self, path: str, content: Readable) -> Any:
        """Upload a file as the body itself, piece by piece; gives JSON.

        Raises:
            DoorRefused: any answer but 2xx.
            NotReached: nobody answers.
        """
        headers = {**self._headers, "Content-Type": "application/octet-stream"}
        reply = await self._transport("POST", path, headers, pieces_of(content))
        return read_answer(reply, f"POST {path}")

    async def form(self, method: str, path: str, fields: Mapping[str, str]) -> Any:
        """A call that takes a form and gives JSON.

        Raises:
            DoorRefused: any answer but 2xx.
            NotReached: nobody answers.
        """
        headers = {**self._headers, "Content-Type": "application/x-www-form-urlencoded"}
        return read_answer(await self._transport(method, path, headers, urlencode(fields).encode()))
