"""Signed links to files of this server; most of them expire.

The key is a credential of the account, so links stay valid over a restart without being stored.
"""

import hashlib
import hmac
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode

NEVER_MS: Final = 0


def signed_link(origin: str, path: str, key: str, subject: str, until_ms: int = NEVER_MS) -> str:
    """Return a signed link.

    Args:
        subject: the id of the file; part of the link.
        until_ms: the expiry; `NEVER_MS`: none.
    """
    query = urlencode({"mid": subject, "ext": until_ms, "hash": _hash(key, subject, until_ms)})
    return f"{origin}{path}?{query}"


def is_valid_link(query: Mapping[str, str], key: str, subject: str, now_ms: int) -> bool:
    """True if the query of a URL was created by `link` for this subject, and has not expired."""
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
