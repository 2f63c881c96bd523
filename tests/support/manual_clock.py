"""Clocks that move only when a test moves them."""

import asyncio
import contextlib

from waypost.base.clock import steady_ns


class ManualClock:
    """A clock that moves only when a test moves it."""

    def __init__(self, at_ms: int = 1_760_000_000_000) -> None:
        self._now_ms = at_ms
        self._waits: dict[asyncio.Timeout, int] = {}

    def now_ms(self) -> int:
        """Return the current reading."""
        return self._now_ms

    def real_ms(self) -> int:
        """Return the current reading: a test moves both at once."""
        return self._now_ms

    def advance(self, *, ms: int) -> None:
        """Move forward and wake every wait whose time has come."""
        self._now_ms += ms
        for timeout, until_ms in self._waits.items():
            if until_ms <= self._now_ms and not timeout.expired():
                timeout.reschedule(0)

    async def wait(self, event: asyncio.Event, *, until_ms: int | None, poll_ms: int | None = None) -> None:
        """Return when the event is set or a test has moved the clock far enough."""
        if poll_ms is not None:
            poll_at_ms = self._now_ms + poll_ms
            until_ms = poll_at_ms if until_ms is None else min(until_ms, poll_at_ms)
        if until_ms is None:
            await event.wait()
            return
        if event.is_set() or until_ms <= self._now_ms:
            return
        timeout = asyncio.timeout(None)
        with contextlib.suppress(TimeoutError):
            async with timeout:
                self._waits[timeout] = until_ms
                try:
                    await event.wait()
                finally:
                    del self._waits[timeout]


class ServiceClock(ManualClock):
    """The clock of a whole service under test.

    As in the product, moving it does not move the steady clock, by which leases expire: a step that is longer than a
    lease would otherwise end one during an attempt, which then counts as cut short.
    """

    def real_ms(self) -> int:
        """Return milliseconds of the machine's steady clock."""
        return steady_ns() // 1_000_000
