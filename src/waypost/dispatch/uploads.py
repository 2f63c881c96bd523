"""Uploads that run beside the queue: each once, few at a time, and every waiting job is notified of the end."""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from waypost.domain.outcome import Rejected, Unavailable

# fmt: off
MOST_AT_ONCE:  Final = 8  # per process: files are large, and messages need the bandwidth too
MOST_PER_PLACE: Final = 2  # of these to one number: a slow number delays only itself
# fmt: on

Key = tuple[str, str]
"""A medium's id, and the location that it is uploaded to."""
Failure = Rejected | Unavailable | Exception
Run = Callable[[], Awaitable[Rejected | Unavailable | None]]
Tell = Callable[[Failure | None], None]


@dataclass(slots=True, eq=False)
class _Waiter:
    """A listener that needs some uploads; `remaining` of them have not ended, and at 0 it has been notified."""

    tell: Tell
    left: int


@dataclass(slots=True, eq=False)
class _Upload:
    run: Run
    waiters: list[_Waiter] = field(default_factory=list[_Waiter])


class Uploads:
    """The running uploads, and those that wait for a slot.

    All of it is in memory only. What needs an upload is a job in the queue: after a crash it is claimed
    again, and requests its uploads again.
    """

    def __init__(self, *, most_at_once: int = MOST_AT_ONCE, most_per_place: int = MOST_PER_PLACE) -> None:
        self._most_at_once = most_at_once
        self._most_per_place = most_per_place
        self._uploads: dict[Key, _Upload] = {}
        self._turns: dict[str, deque[Key]] = {}  # by location, those that have not been started
        self._begun: dict[str, int] = {}  # by location, how many are running
        self._tasks: set[asyncio.Task[None]] = set()

    def bring(self, runs: Mapping[Key, Run], tell: Tell) -> None:
        """Schedule these uploads; one that is scheduled already is shared.

        Args:
            runs: run each upload, and return its failure, or None once it is done.
            tell: called once, later: with None when all are done, or with the first failure.
        """
        waiter = _Waiter(tell, len(runs))
        for key, run in runs.items():
            upload = self._uploads.get(key)
            if upload is None:
                upload = self._uploads[key] = _Upload(run)
                self._turns.setdefault(key[1], deque()).append(key)
            upload.waiters.append(waiter)
        self._begin_more()

    @property
    def busy(self) -> bool:
        """True if anything is being uploaded, or waits for a slot."""
        return bool(self._uploads)

    async def close(self) -> None:
        """Cancel running uploads; no listener is notified."""
        self._turns.clear()
        self._uploads.clear()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _begin_more(self) -> None:
        while sum(self._begun.values()) < self._most_at_once:
            location = next((name for name in self._turns if self._has_room(name)), None)
            if location is None:
                return
            queued = self._turns.pop(location)
            key = queued.popleft()
            if queued:
                self._turns[location] = queued  # behind the other locations
            self._begun[location] = self._begun.get(location, 0) + 1
            task = asyncio.create_task(self._carry(key, self._uploads[key]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _has_room(self, place: str) -> bool:
        return self._begun.get(place, 0) < self._most_per_place

    async def _carry(self, key: Key, upload: _Upload) -> None:
        failure: Failure | None
        try:
            failure = await upload.run()
        except Exception as error:  # noqa: BLE001  a defect belongs to the jobs that need it
            failure = error
        self._uploads.pop(key, None)
        location = key[1]
        self._begun[location] -= 1
        if not self._begun[location]:
            del self._begun[location]
        self._begin_more()
        for waiter in upload.waiters:
            _ends(waiter, failure)


def _ends(waiter: _Waiter, failure: Failure | None) -> None:
    if not waiter.left:
        return
    waiter.left = 0 if failure is not None else waiter.left - 1
    if not waiter.left:
        waiter.tell(failure)
