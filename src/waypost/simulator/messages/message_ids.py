"""Message ids in the operator's format."""

import base64

from waypost.base.ids import Ids

_HEAD = b"\x1c\x18"
_MIDDLE = b"\x15\x02\x00"


def sent_wamid(ids: Ids, phone: str) -> str:
    """Return a new id for a message from a business to a phone.

    Args:
        ids: source of randomness.
        phone: the phone's digits; they are part of the id.

    Source: facts 1, "Message id", decoded samples.
    """
    return _wamid(phone, b"\x11\x18\x12", _hex(ids)[-18:])


def received_wamid(ids: Ids, phone: str) -> str:
    """Return a new id for a message from a phone to a business. Source: facts 1, "Message id"."""
    return _wamid(phone, b"\x12\x18\x14", _hex(ids)[-20:])


def _hex(ids: Ids) -> str:
    return ids.new().replace("-", "").upper()


def _wamid(phone: str, kind: bytes, chance: str) -> str:
    digits = phone.encode()
    raw = b"".join((_HEAD, bytes([len(digits)]), digits, _MIDDLE, kind, chance.encode(), b"\0"))
    return "wamid." + base64.b64encode(raw).decode()
