"""Handles of uploads for template samples: ours have the operator's shape.

A handle that is not ours is never taken apart; several lines of it are one handle.
"""

from base64 import b64encode, urlsafe_b64encode
from typing import Final

BEGINNING: Final = "4::"


def handle_of(
    mime_type: str,
    secret: str,
    signature: str,
    *,
    media_id: str,
    size_bytes: int,
    expires_on_ms: int,
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


def _opaque(hex_digits: str) -> str:
    return "AR" + urlsafe_b64encode(bytes.fromhex(hex_digits)).decode().rstrip("=")
