"""One POST of one callback."""

from collections.abc import Mapping
from typing import Final

from waypost import __version__
from waypost.base.clock import Clock
from waypost.domain.callback import Attempt, Callback
from waypost.outbound.vetted import VettedClient

CONTENT_TYPE: Final = "application/json; charset=utf-8"  # Source: facts 4.6


def callback_headers(callback: Callback) -> Mapping[str, str]:
    """The headers of a callback: the partner's own from `meta`, then ours.

    `Waypost-Callback-Id` stays the same over all tries; `Waypost-Sequence` counts up per
    subscription and recipient.
    """
    return {
        **callback.headers,
        "Content-Type": CONTENT_TYPE,
        "User-Agent": f"Waypost/{__version__}",
        "Waypost-Callback-Id": callback.id,
        "Waypost-Sequence": str(callback.sequence),
    }


async def deliver(client: VettedClient, clock: Clock, callback: Callback) -> Attempt:
    """Post a callback's bytes and say what came of it; never raises for what the receiver does."""
    at_ms = clock.now_ms()
    answer = await client.post(callback.url, callback.body, callback_headers(callback))
    return Attempt(at_ms, answer.duration_ms, answer.status, answer.body, answer.error)
