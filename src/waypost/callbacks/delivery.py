"""The POST of one callback."""

from collections.abc import Callable, Mapping
from typing import Final

from waypost.base.clock import Clock, machine_ms
from waypost.domain.callbacks import Callback, CallbackAttempt
from waypost.outbound.vetted_client import VettedClient
from waypost.wire.callbacks.signatures import merge_headers, signature_headers

HIDDEN_HEADER_VALUE: Final = "(not kept)"
"""Replaces in an attempt the value of a header that the partner chose: it may be a secret."""


def callback_headers(callback: Callback, at_s: int) -> Mapping[str, str]:
    """Return the headers of a callback: the partner's own from `meta`, then ours, which override them.

    `Waypost-Callback-Id` and `webhook-id` stay the same over all attempts; `Waypost-Sequence` counts up
    per subscription and recipient.

    Args:
        callback: which.
        at_s: the real time of this attempt, for its signature.
    """
    return merge_headers(
        callback.headers,
        {
            "Waypost-Callback-Id": callback.id,
            "Waypost-Sequence": str(callback.sequence),
            **signature_headers(callback.id, at_s, callback.body, callback.keys),
        },
    )


async def deliver(
    client: VettedClient, clock: Clock, callback: Callback, *, may_send: Callable[[], bool]
) -> CallbackAttempt:
    """Post a callback's bytes and return the attempt; never raise for what the receiver does.

    Args:
        client: open.
        clock: for the attempt's time.
        callback: which.
        may_send: checked just before it is sent: an older callback must not come after a newer one.
    """
    at_ms = clock.now_ms()
    headers = callback_headers(callback, machine_ms() // 1000)
    response = await client.post(callback.url, callback.body, headers, may_send=may_send)
    theirs = callback.headers
    if theirs:
        headers = {name: HIDDEN_HEADER_VALUE if name in theirs else text for name, text in headers.items()}
    return CallbackAttempt(
        at_ms, response.duration_ms, response.status, response.body, response.error, headers, response.headers or {}
    )
