"""Signatures of callbacks by Standard Webhooks.

Source: Standard Webhooks 1.0, "Signature scheme": `v1` is HMAC-SHA256 over id, time stamp and body,
joined by full stops; several signatures stand beside each other, separated by spaces.
"""

import hmac
from base64 import b64encode
from collections.abc import Sequence


def signature_headers(id: str, at_s: int, body: bytes, keys: Sequence[bytes]) -> dict[str, str]:
    """The three headers of one request; one signature for each key.

    Args:
        id: of the callback, the same at every try.
        at_s: the real time of this try, seconds since the epoch.
        body: the exact bytes that are sent.
        keys: the newest first.
    """
    signed = f"{id}.{at_s}.".encode() + body
    signatures = [b64encode(hmac.digest(key, signed, "sha256")).decode() for key in keys]
    return {
        "webhook-id": id,
        "webhook-timestamp": str(at_s),
        "webhook-signature": " ".join([f"v1,{one}" for one in signatures]),
    }
