"""A file that is sent as it is read, so that only a piece of it is held."""

from collections.abc import AsyncGenerator
from hashlib import sha256
from typing import Any, Protocol

from waypost.client.pieces import PIECE_BYTES


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
