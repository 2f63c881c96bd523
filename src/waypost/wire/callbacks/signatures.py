"""The headers of callbacks: ours, the partner's own, and signatures by Standard Webhooks.

Source: Standard Webhooks 1.0, "Signature scheme": `v1` is HMAC-SHA256 over id, time stamp and body,
joined by full stops; several signatures are separated by spaces.
"""

import hmac
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Final

from waypost import __version__
from waypost.domain.callbacks import CALLBACK_CONTENT_TYPE

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
    signatures = [b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys]
    return {
        "webhook-id": id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": " ".join([f"v1,{signature}" for signature in signatures]),
    }


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
