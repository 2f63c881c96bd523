"""Uploads that run alongside the queue: each once, few at a time, and every waiting job is notified of the end."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from waypost.domain.outcome import OperatorRejected, OperatorUnavailable

# fmt: off
MAX_CONCURRENT_UPLOADS:   Final = 8  # per process: files are large, and messages need the bandwidth too
MAX_UPLOADS_PER_LOCATION: Final = 2  # of these to one number: a slow number delays only itself
# fmt: on

UploadKey = tuple[str, str]
"""A medium's id, and the location that it is uploaded to."""
UploadFailure = OperatorRejected | OperatorUnavailable | Exception
RunUpload = Callable[[], Awaitable[OperatorRejected | OperatorUnavailable | None]]
NotifyUploadEnd = Callable[[UploadFailure | None], None]


@dataclass(slots=True, eq=False)
class _Waiter:
    """A listener that needs some uploads; `remaining` of them have not ended, and at 0 it has been notified."""

    notify: NotifyUploadEnd
    remaining: int


@dataclass(slots=True, eq=False)
class _ScheduledUpload:
    run: RunUpload
    waiters: list[_Waiter] = field(default_factory=list[_Waiter])


class UploadScheduler:
    """The running uploads, and those that wait for a slot.

    All of it is in memory only. What needs an upload is a job in the queue: after a crash it is claimed
    again, and requests its uploads again.
    """

    def __init__(
        self, *, max_concurrent: int = MAX_CONCURRENT_UPLOADS, max_per_location: int = MAX_UPLOADS_PER_LOCATION
    ) -> None:
        self._max_concurrent = max_concurrent
        self._max_per_location = max_per_location
        self._uploads: dict[UploadKey, _ScheduledUpload] = {}
        self._queued_keys: dict[str, deque[UploadKey]] = {}  # by location, those that have not been started
        self._running_counts: dict[str, int] = {}  # by location, how many are running
        self._tasks: set[asyncio.Task[None]] = set()

    def schedule(self, uploads: Mapping[UploadKey, RunUpload], notify: NotifyUploadEnd) -> None:
        """Schedule these uploads; one that is scheduled already is shared.

        Args:
            uploads: run each upload, and return its failure, or None once it is done.
            notify: called once, later: with None when all are done, or with the first failure.
        """
        waiter = _Waiter(notify, len(uploads))
        for key, run in uploads.items():
            upload = self._uploads.get(key)
            if upload is None:
                upload = self._uploads[key] = _ScheduledUpload(run)
                self._queued_keys.setdefault(key[1], deque()).append(key)
            upload.waiters.append(waiter)
        self._start_queued()

    @property
    def is_active(self) -> bool:
        """True if anything is being uploaded, or waits for a slot."""
        return bool(self._uploads)

    async def close(self) -> None:
        """Cancel running uploads; no listener is notified."""
        self._queued_keys.clear()
        self._uploads.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _start_queued(self) -> None:
        while sum(self._running_counts.values()) < self._max_concurrent:
            location = next((name for name in self._queued_keys if self._has_room(name)), None)
            if location is None:
                return
            queued = self._queued_keys.pop(location)
            key = queued.popleft()
            if queued:
                self._queued_keys[location] = queued  # behind the other locations
            self._running_counts[location] = self._running_counts.get(location, 0) + 1
            task = asyncio.create_task(self._run_upload(key, self._uploads[key]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _has_room(self, location: str) -> bool:
        return self._running_counts.get(location, 0) < self._max_per_location

    async def _run_upload(self, key: UploadKey, upload: _ScheduledUpload) -> None:
        failure: UploadFailure | None
        try:
            failure = await upload.run()
        except Exception as error:  # noqa: BLE001  a defect belongs to the jobs that need it
            failure = error
        self._uploads.pop(key, None)
        location = key[1]
        self._running_counts[location] -= 1
        if not self._running_counts[location]:
            del self._running_counts[location]
        self._start_queued()
        for waiter in upload.waiters:
            if waiter.remaining:
                waiter.remaining = 0 if failure is not None else waiter.remaining - 1
                if not waiter.remaining:
                    waiter.notify(failure)
