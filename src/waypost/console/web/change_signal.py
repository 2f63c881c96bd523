"""Signal to live streams that the store may have changed: after a commit, or after some time."""

import asyncio
import contextlib
from collections.abc import Generator
from typing import Final

from waypost.store.database import Database

DEFAULT_REST_S: Final = 0.2
"""Minimum time between two renderings, so that a busy store is not read for every commit."""

DEFAULT_POLL_S: Final = 1.0
"""Maximum time between two renderings: other processes commit too, and the simulator changes with its clock."""


class ChangeSignal:
    """One signal for all streams of a process. Without an open stream, commits have no extra cost."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._event = asyncio.Event()
        self._listener_count = 0
        self._closing = asyncio.Event()

    @property
    def is_closing(self) -> bool:
        """True if streams must end."""
        return self._closing.is_set()

    @property
    def listener_count(self) -> int:
        """Number of open streams."""
        return self._listener_count

    @contextlib.contextmanager
    def listen(self) -> Generator[None]:
        """Listen for commits while a stream is open."""
        if not self._listener_count:
            self._database.add_commit_listener(self.signal)
        self._listener_count += 1
        try:
            yield
        finally:
            self._listener_count -= 1
            if not self._listener_count:
                self._database.remove_commit_listener(self.signal)

    def signal(self) -> None:
        """Signal that something may have changed."""
        event, self._event = self._event, asyncio.Event()
        event.set()

    def next_event(self) -> asyncio.Event:
        """Return the event of the next signal. Get it before rendering, so that later commits count."""
        return self._event

    async def wait(
        self, event: asyncio.Event, *, rest_s: float = DEFAULT_REST_S, at_least_s: float = DEFAULT_POLL_S
    ) -> None:
        """Return after a signal, but not before `rest_s` and not after `at_least_s`."""
        await _wait_for_event(self._closing, rest_s)
        if not self.is_closing:
            await _wait_for_event(event, max(0, at_least_s - rest_s))

    def close(self) -> None:
        """End every stream."""
        self._closing.set()
        self.signal()


async def _wait_for_event(event: asyncio.Event, timeout_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()
