"""The one place that knows what time it is, and that waits for it."""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """What the rest asks about time. All readings are milliseconds.

    `now_ms` is the time that rules follow (windows, schedules, expiries); tests and `dev` may
    move it. `real_ms` never moves by hand: leases and time-outs follow it.
    """

    def now_ms(self) -> int:
        """Milliseconds since the epoch, by the clock that rules follow."""
        ...

    def real_ms(self) -> int:
        """Milliseconds of a steady clock with no fixed origin."""
        ...

    async def wait(self, event: asyncio.Event, *, until_ms: int) -> None:
        """Return when the event is set or `now_ms` has reached `until_ms`, whichever is first."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def real_ms(self) -> int:
        """Milliseconds of the machine's steady clock."""
        return time.monotonic_ns() // 1_000_000

    async def wait(self, event: asyncio.Event, *, until_ms: int) -> None:
        """Return when the event is set or the time has come."""
        delay_s = max(0, until_ms - self.now_ms()) / 1000
        try:
            async with asyncio.timeout(delay_s):
                await event.wait()
        except TimeoutError:
            return


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, at_ms: int = 1_760_000_000_000) -> None:
        self._now_ms = at_ms
        self._moved = asyncio.Event()

    def now_ms(self) -> int:
        """Where the clock stands."""
        return self._now_ms

    def real_ms(self) -> int:
        """Where the clock stands: a test moves both readings at once."""
        return self._now_ms

    def advance(self, *, ms: int) -> None:
        """Move forward and wake everything that waits for a time that has now come."""
        self._now_ms += ms
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()

    async def wait(self, event: asyncio.Event, *, until_ms: int) -> None:
        """Return when the event is set or a test has moved the clock far enough."""
        while not event.is_set() and self._now_ms < until_ms:
            waits = [asyncio.ensure_future(event.wait()), asyncio.ensure_future(self._moved.wait())]
            try:
                await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
            finally:
                for wait in waits:
                    wait.cancel()
