"""Marks of callbacks on disk while they are being posted, so that an attempt that a kill cuts short counts.

A write for each callback would be the dearest part of it. A receiver that has responded to this process will do so
again within milliseconds, and only what takes longer is marked, all of it together. Before its first response nothing
is known of a receiver, which may be what killed the process before: then the mark comes before the request
(decision 0042).
"""

import asyncio
from typing import Final

from waypost.queue.job import Job
from waypost.queue.queue import JobQueue
from waypost.store.contract import StoreUnavailable

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

    async def mark(self, job: Job) -> bool:
        """Mark a callback before it is posted; return False where another process works it."""
        return bool(await self._queue.mark_in_flight([job]))

    def begin(self, job: Job) -> None:
        """Note that a callback is being posted; it is marked if that takes long."""
        loop = asyncio.get_running_loop()
        self._unmarked[job] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(MARK_AFTER_S, self._mark_slow)

    async def end(self, job: Job) -> None:
        """Note that a callback's request has ended; return when no mark of it is being written any more."""
        self._unmarked.pop(job, None)
        marking = self._marking.pop(job, None)
        if marking is not None:
            await asyncio.wait([marking])

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
