"""Addresses of this server that let a file be fetched: signed, and most of them only for a while.

The key is a credential of the account, so nothing has to be remembered over a restart.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

NEVER_MS: Final = 0


def link(origin: str, path: str, key: str, subject: str, until_ms: int = NEVER_MS) -> str:
    """An address that is good until a time.

    Args:
        origin: the beginning of the server's addresses.
        path: with its leading slash.
        key: what signs.
        subject: what is fetched; part of the address.
        until_ms: `NEVER_MS`: for good.
    """
    query = urlencode({"mid": subject, "ext": until_ms, "hash": _hash(key, subject, until_ms)})
    return f"{origin}{path}?{query}"


def is_good(query: Mapping[str, str], key: str, subject: str, now_ms: int) -> bool:
    """Whether the query of an address was made by `link` for this, and its time is not over."""
    until = query.get("ext", "")
    if not (until.isascii() and until.isdigit() and len(until) < 16):
        return False
    until_ms = int(until)
    if until_ms != NEVER_MS and until_ms <= now_ms:
        return False
    expected = _hash(key, subject, until_ms)
    return hmac.compare_digest(expected.encode(), query.get("hash", "").encode())


def _hash(key: str, subject: str, until_ms: int) -> str:
    text = f"{subject}.{until_ms}".encode()
    return hmac.new(key.encode(), text, hashlib.sha256).hexdigest()[:32]
