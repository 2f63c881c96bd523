"""Sampling of traces: a share of the messages, or as the sender of a message has decided.

A trace's id is the message's id. The share is decided by its last 56 bits, which are random, so that each process
decides alike. What the sender has decided is written into the first 24 of these bits, so that nothing is stored for it.

Source: W3C Trace Context, level 2, "trace-id", "random-trace-id" and "sampled flag".
"""

import re
from typing import Final

_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(?:-.*)?")
_SAMPLED_MARK: Final = "00-0000"
_UNSAMPLED_MARK: Final = "ff-ffff"
_MARK_AT: Final = slice(21, 28)
"""The first 24 of the last 56 bits, in the text of a UUID."""
_RANDOM_BITS: Final = 56


def sampled_by_sender(traceparent: str | None) -> bool | None:
    """Return the sampled flag of a `traceparent`; None if it is absent or invalid."""
    match = _TRACEPARENT.fullmatch(traceparent or "")
    return None if match is None else bool(int(match[1], 16) & 1)


def mark_id(message_id: str, *, sampled: bool) -> str:
    """Return a new message's id with the decision of its sender in it."""
    mark = _SAMPLED_MARK if sampled else _UNSAMPLED_MARK
    return message_id[: _MARK_AT.start] + mark + message_id[_MARK_AT.stop :]


def is_sampled(message_id: str, ratio: float) -> bool:
    """True if a message is traced.

    Args:
        message_id: a UUID. One in 16 million has a mark by chance.
        ratio: of the messages whose sender has not decided, 0 to 1.
    """
    mark = message_id[_MARK_AT].lower()
    if mark in {_SAMPLED_MARK, _UNSAMPLED_MARK}:
        return mark == _SAMPLED_MARK
    return int(message_id.replace("-", ""), 16) % (1 << _RANDOM_BITS) < ratio * (1 << _RANDOM_BITS)
