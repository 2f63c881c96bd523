"""The one place that knows what time it is, and that waits for it."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
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


@dataclass(frozen=True, slots=True)
class Bearing:
    """How a virtual clock goes: where it stood at a moment of the machine's, and how fast it runs since.

    Attributes:
        virtual_ms: its reading at that moment.
        machine_ms: that moment, milliseconds since the epoch by the machine's own clock.
        factor: virtual seconds in a second of the machine's; 0 stands still.
    """

    virtual_ms: int
    machine_ms: int
    factor: float = 1


class VirtualClock:
    """The machine's clock, set ahead, stopped or sped up: for `dev`, the simulator and tests, never for `serve`.

    Without a bearing it reads as the machine does. To be moved on the loop only, where its waits are.

    Args:
        bearing: what was kept of an earlier run.
        keep: called with each new bearing.
        machine_ms: the machine's clock; tests hand in their own.
    """

    def __init__(
        self,
        bearing: Bearing | None = None,
        *,
        keep: Callable[[Bearing], None] | None = None,
        machine_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._machine_ms = machine_ms
        self._keep = keep
        now_ms = machine_ms()
        self._bearing = bearing or Bearing(now_ms, now_ms)
        self._held = False
        self._waits: dict[asyncio.Timeout, int] = {}

    @property
    def bearing(self) -> Bearing:
        """How it goes; with this it goes on after a restart."""
        return self._bearing

    @property
    def ahead_ms(self) -> int:
        """How far it is ahead of the machine's clock; negative when it is behind."""
        return self.now_ms() - self._machine_ms()

    def now_ms(self) -> int:
        """Milliseconds since the epoch, as far as rules are concerned."""
        bearing = self._bearing
        if self._held or bearing.factor == 0:
            return bearing.virtual_ms
        passed_ms = self._machine_ms() - bearing.machine_ms
        return bearing.virtual_ms + (
            passed_ms if bearing.factor == 1 else int(passed_ms * bearing.factor)
        )

    def real_ms(self) -> int:
        """Milliseconds of the machine's steady clock, which nobody moves."""
        return time.monotonic_ns() // 1_000_000

    def set(self, *, at_ms: int) -> None:
        """Put it at a time, milliseconds since the epoch; whatever has come due wakes."""
        self.take(Bearing(at_ms, self._machine_ms(), self._bearing.factor))

    def run(self, *, factor: float) -> None:
        """Go on from where it stands, so many times as fast as the machine's; 0 stops it."""
        self.take(Bearing(self.now_ms(), self._machine_ms(), factor))

    def hold(self) -> None:
        """Stand still until `release`. A restart in between goes on as if it had been released."""
        self.set(at_ms=self.now_ms())
        self._held = True
        self._reschedule()

    def release(self) -> None:
        """Go on from where it stands, as before `hold`."""
        self._held = False
        self.set(at_ms=self._bearing.virtual_ms)

    def take(self, bearing: Bearing) -> None:
        """Go as a bearing says."""
        self._bearing = bearing
        if self._keep is not None:
            self._keep(bearing)
        self._reschedule()

    async def wait(self, event: asyncio.Event, *, until_ms: int) -> None:
        """Return when the event is set, or the clock has come so far by itself or by hand."""
        while not event.is_set() and self.now_ms() < until_ms:
            timeout = asyncio.timeout_at(self._when(until_ms))
            try:
                async with timeout:
                    self._waits[timeout] = until_ms
                    try:
                        await event.wait()
                    finally:
                        del self._waits[timeout]
            except TimeoutError:
                continue

    def _reschedule(self) -> None:
        for timeout, until_ms in self._waits.items():
            if not timeout.expired():
                timeout.reschedule(self._when(until_ms))

    def _when(self, until_ms: int) -> float | None:
        """When a time will have come, as the loop counts; None when it never will by itself."""
        left_ms = until_ms - self.now_ms()
        if left_ms <= 0:
            return 0
        if self._held or self._bearing.factor == 0:
            return None
        return asyncio.get_running_loop().time() + left_ms / 1000 / self._bearing.factor
