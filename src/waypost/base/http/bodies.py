"""Limits of request bodies: their size while they are read, and their members before they are parsed."""

from collections.abc import AsyncIterator
from typing import Final

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
