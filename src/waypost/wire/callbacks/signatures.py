"""The headers of callbacks: ours, the partner's own, and signatures by Standard Webhooks.

Source: Standard Webhooks 1.0, "Signature scheme": `v1` is HMAC-SHA256 over id, time stamp and body,
joined by full stops; several signatures are separated by spaces.
"""

from base64 import b64encode
from binascii import b2a_base64
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from operator import methodcaller
from typing import Any, Final

from waypost import __version__
from waypost.domain.callbacks import CALLBACK_CONTENT_TYPE

BLOCK_BYTES: Final = 64  # of SHA-256. Source: FIPS 180-4, section 1
_CONSTANT_HEADERS: Final = {"Content-Type": CALLBACK_CONTENT_TYPE, "User-Agent": f"Waypost/{__version__}"}


def signature_headers(id: str, at_s: int, body: bytes, keys: Sequence[bytes]) -> dict[str, str]:
    """Return the three signature headers of a request, with one signature for each key.

    Args:
        id: of the callback, the same for every attempt.
        at_s: the real time of this attempt, seconds since the epoch.
        body: the exact bytes that are sent.
        keys: newest first.
    """
    signed = f"{id}.{at_s}.".encode() + body
    signatures = ""
    for key in keys:
        inner, outer = map(_copy_hash, _padded_keys(key))
        inner.update(signed)
        outer.update(inner.digest())
        signatures += f" v1,{b2a_base64(outer.digest(), newline=False).decode()}"
    return {"webhook-id": id, "webhook-timestamp": str(at_s), "webhook-signature": signatures[1:]}


_copy_hash: Final = methodcaller("copy")


@lru_cache(maxsize=1024)
def _padded_keys(key: bytes) -> tuple[Any, Any]:
    """Return the inner and the outer hash of an HMAC, begun with a key: a copy takes half the time of `hmac.digest`.

    Args:
        key: at most 64 bytes, as ours are.

    Source: RFC 2104, section 2.
    """
    if len(key) > BLOCK_BYTES:
        raise ValueError("the key is longer than a block of the hash")
    padded = key.ljust(BLOCK_BYTES, b"\0")
    return sha256(bytes(byte ^ 0x36 for byte in padded)), sha256(bytes(byte ^ 0x5C for byte in padded))


def merge_headers(theirs: Mapping[str, str], ours: Mapping[str, str]) -> dict[str, str]:
    """Return the partner's own headers and ours, which replace theirs of the same name in any case."""
    all_ours = {**_CONSTANT_HEADERS, **ours}
    if not theirs:
        return all_ours
    reserved = {name.lower() for name in all_ours}
    return {name: text for name, text in theirs.items() if name.lower() not in reserved} | all_ours


def key_text(key: bytes) -> str:
    """Return a key as shown to receivers, in the format of the Standard Webhooks libraries."""
    return "whsec_" + b64encode(key).decode()
