"""Handles of uploads for template samples: ours have the operator's shape.

A handle that is not ours is never taken apart; several lines of it are one handle. Ours have one line, and
clients join several of them as they do with the operator's.
"""

from base64 import b64encode, urlsafe_b64encode
from typing import Final

BEGINNING: Final = "4::"
MOST_LINES: Final = 100
"""Far more than any file of the operator's has, and than clients join; a longer text names nothing of ours."""


def handle_of(
    mime_type: str, secret: str, signature: str, *, media_id: str, size_bytes: int, expires_on_ms: int
) -> str:
    """A handle: `4::<base64 of the MIME type>:<ours>:e:<expiry>:<number>:<number>:<signature>`.

    Args:
        mime_type: of the bytes.
        secret: hex digits that nobody can guess; the handle is looked up whole.
        signature: likewise; there because readers expect a last part.
        media_id: the first number.
        size_bytes: the second.
        expires_on_ms: shown in seconds since the epoch.

    Source: facts 8, "Handle string"; operator's facts 6.2.
    """
    kind = b64encode(mime_type.encode()).decode()
    end_s = expires_on_ms // 1000
    return f"{BEGINNING}{kind}:{_opaque(secret)}:e:{end_s}:{media_id}:{size_bytes}:{_opaque(signature)}"


def lines_of(handle: str) -> tuple[str, ...]:
    """The lines of a handle, without what surrounds them; none of a text with more lines than a handle has."""
    lines = tuple(line for part in handle.splitlines() if (line := part.strip()))
    return lines if len(lines) <= MOST_LINES else ()


def _opaque(hex_digits: str) -> str:
    return "AR" + urlsafe_b64encode(bytes.fromhex(hex_digits)).decode().rstrip("=")
