"""One attempt to deliver a callback: its request, its mark on disk while it is in flight, and its counters.

A write for each callback would be the dearest part of it. A receiver that has responded to this process will do so
again within milliseconds, and only what takes longer is marked, all of it together. Before its first response nothing
is known of a receiver, which may be what killed the process before: then the mark comes before the request
(decision 0042).
"""

import asyncio
from typing import Final

from waypost.base.clock import machine_ms
from waypost.base.telemetry.counters import CallCounters
from waypost.base.telemetry.tracing import TraceStep, tracer
from waypost.domain.callbacks import CallbackAttempt, Subscription
from waypost.outbound.vetted_client import OutboundResponse
from waypost.queue.job import Job
from waypost.queue.queue import JobQueue
from waypost.store.callbacks.callbacks import CallbackRow
from waypost.store.contract import StoreUnavailable
from waypost.wire.callbacks.signatures import merge_headers, signature_headers

HIDDEN_HEADER_VALUE: Final = "(not kept)"
"""Replaces in an attempt the value of a header that the partner chose: it may be a secret."""


def make_headers(row: CallbackRow, subscription: Subscription, keys: tuple[bytes, ...]) -> dict[str, str]:
    """Return the headers of a callback's request: the partner's own from `meta`, which ours override.

    Args:
        keys: that sign it, the newest first.
    """
    return merge_headers(
        subscription.headers,
        {
            "Waypost-Callback-Id": row.id,  # the same over all attempts
            "Waypost-Sequence": str(row.sequence),  # counts up per subscription and recipient
            **signature_headers(row.id, machine_ms() // 1000, row.body, keys),
        },
    )


def make_attempt(
    at_ms: int, headers: dict[str, str], subscription: Subscription, response: OutboundResponse
) -> CallbackAttempt:
    """Return the attempt of a request that has ended."""
    theirs = subscription.headers
    if theirs:
        headers = {name: HIDDEN_HEADER_VALUE if name in theirs else text for name, text in headers.items()}
    return CallbackAttempt(
        at_ms, response.duration_ms, response.status, response.body, response.error, headers, response.headers or {}
    )


MARK_AFTER_S: Final = 0.25
"""A callback that has been in flight for so long is marked."""


class InFlightMarks:
    """The callbacks of one process that are being posted.

    Args:
        queue: writes the marks.
    """

    def __init__(self, queue: JobQueue) -> None:
        self._queue = queue
        self._unmarked: dict[Job, float] = {}  # with the loop's time of the request; the oldest first
        self._marking: dict[Job, asyncio.Task[None]] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, job: Job) -> None:
        """Note that a callback is being posted; it is marked if that takes long."""
        loop = asyncio.get_running_loop()
        self._unmarked[job] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(MARK_AFTER_S, self._mark_slow)

    def end(self, job: Job) -> asyncio.Task[None] | None:
        """Note that a callback's request has ended; return what writes its mark now, to be waited for."""
        self._unmarked.pop(job, None)
        return self._marking.pop(job, None)

    def _mark_slow(self) -> None:
        loop = asyncio.get_running_loop()
        slow = [job for job, began_s in self._unmarked.items() if began_s <= loop.time() - MARK_AFTER_S]
        if slow:
            task = loop.create_task(self._write_marks(slow))
            for job in slow:
                del self._unmarked[job]
                self._marking[job] = task
        self._timer = loop.call_later(MARK_AFTER_S, self._mark_slow) if self._unmarked else None

    async def _write_marks(self, jobs: list[Job]) -> None:
        try:
            await self._queue.mark_in_flight(jobs)
        except StoreUnavailable:
            return  # the outcome of the attempts is written once it can be


_RESULTS: Final = {True: "delivered", False: "given up", None: "retried"}


def record_attempt(
    counts: CallCounters, job: Job, row: CallbackRow, attempt: CallbackAttempt, *, ended: bool | None
) -> None:
    """Count an attempt, and trace it where it is about a message.

    Args:
        ended: True when it was delivered, False when it is given up, None when it is retried.
    """
    took_s = attempt.duration_ms / 1000
    counts.add(took_s, "none" if attempt.status is None else f"{attempt.status // 100}xx", _RESULTS[ended])
    if row.message_id is not None and (tracer.is_enabled or not ended):
        tracer.record(
            TraceStep.CALLBACK_ATTEMPTED,
            row.message_id,
            failed=not ended,
            took_s=took_s,
            callback_id=row.id,
            subscription_id=row.subscription_id,
            app_id=row.app_id,
            partner_id=row.partner_id,
            position=job.position,
            callback_event=row.event,
            sequence=row.sequence,
            attempt=job.attempt + 1,
            status=attempt.status,
        )
