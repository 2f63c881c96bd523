"""How one try was signed, with its real values, step by step; and which key it was made with."""

from collections.abc import Mapping
from typing import Any, Final

from waypost.base.seals import Seals, same
from waypost.domain.subscription import Subscription
from waypost.wire.signatures import signature_headers

_OLD_KEYS: Final = 5
"""So many keys that came before are tried."""


def signing_of(
    seals: Seals, held: Subscription | None, body: bytes, sent: Mapping[str, str], now_ms: int
) -> dict[str, Any] | None:
    """What a page explains of a try's signature; None where it carried none.

    Args:
        seals: give the keys.
        held: the subscription; None where it is gone.
        body: the exact bytes.
        sent: the headers of the try.
        now_ms: by the clock that rules follow.
    """
    headers = {name.lower(): text for name, text in sent.items()}
    callback_id, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    signatures = headers.get("webhook-signature", "").split()
    if not (callback_id and stamp.isdecimal() and signatures):
        return None
    return {
        "id": callback_id,
        "timestamp": int(stamp),
        "signed": f"{callback_id}.{stamp}." + body.decode("utf-8", "replace"),
        "signatures": [
            {"text": one, "made_with": _made_with(seals, held, callback_id, int(stamp), body, one, now_ms)}
            for one in signatures
        ],
    }


def _made_with(
    seals: Seals, held: Subscription | None, id: str, at_s: int, body: bytes, signature: str, now_ms: int
) -> str:  # fmt: skip
    if held is None:
        return "a key of a subscription that is gone"
    for serial in range(held.key_serial, max(held.key_serial - _OLD_KEYS, 0), -1):
        key = seals.callback_key(held.id, serial)
        if same(signature_headers(id, at_s, body, [key])["webhook-signature"], signature):
            if serial == held.key_serial:
                return "the key that signs now"
            signs_too = serial in held.serials(now_ms)
            return "the key before, which signs too" if signs_too else "an old key, which has ended"
    return "a key from long ago"
