"""The one place that knows what time it is, and that waits for it."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS

_BOOT_TIME: Final[int | None] = getattr(time, "CLOCK_BOOTTIME", None)


class Clock(Protocol):
    """What the rest asks about time. All readings are milliseconds.

    `now_ms` is the time that rules follow (windows, schedules, expiries); tests and `dev` may
    move it. `real_ms` never moves by hand: leases and time-outs follow it.
    """

    def now_ms(self) -> int:
        """Milliseconds since the epoch, by the clock that rules follow."""
        ...

    def real_ms(self) -> int:
        """Milliseconds of a steady clock with no fixed origin, which counts the machine's sleep too."""
        ...

    async def wait(self, event: asyncio.Event, *, until_ms: int | None, poll_ms: int | None = None) -> None:
        """Return when the event is set or `now_ms` has reached `until_ms`, whichever is first.

        Args:
            event: set by somebody else.
            until_ms: by the clock that rules follow; None: never.
            poll_ms: return after so much real time at the latest, however the clock is moved; None: no limit.
        """
        ...


def machine_ms() -> int:
    """The machine's own time, milliseconds since the epoch: for what others compare with their clock."""
    return time.time_ns() // 1_000_000


def steady_ns() -> int:
    """The machine's steady clock, nanoseconds with no fixed origin; asleep it goes on, where the system has such a one.

    While a machine sleeps, the clock that `time.monotonic` reads stands still on Linux, and the other
    processes' do not: whoever wakes by that one believes in leases that others have taken up long ago.

    Source: clock_gettime(2), CLOCK_BOOTTIME.
    """
    return time.monotonic_ns() if _BOOT_TIME is None else time.clock_gettime_ns(_BOOT_TIME)


class SystemClock:
    """The machine's own clock, but one that never goes back.

    It follows the machine's forward at once. Where that one is put back, ours goes on, a tenth
    slower than true time, until the machine's has come up: whoever waits for a time of ours, written
    down or in memory, waits no hours for it.

    Args:
        machine_ns, steady_ns: the machine's clocks; tests hand in their own.

    Source: decision 0054.
    """

    def __init__(
        self, *, machine_ns: Callable[[], int] = time.time_ns, steady_ns: Callable[[], int] = steady_ns
    ) -> None:
        self._machine_ns = machine_ns
        self._steady_ns = steady_ns
        self._last = (machine_ns(), steady_ns())

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        last_ns, then_ns = self._last
        steady_ns = self._steady_ns()
        least_ns = last_ns + (steady_ns - then_ns) * 9 // 10
        now_ns = max(self._machine_ns(), least_ns)
        self._last = (now_ns, steady_ns)
        return now_ns // 1_000_000

    def real_ms(self) -> int:
        """Milliseconds of the machine's steady clock."""
        return self._steady_ns() // 1_000_000

    async def wait(self, event: asyncio.Event, *, until_ms: int | None, poll_ms: int | None = None) -> None:
        """Return when the event is set or the time has come."""
        delays_ms = [] if until_ms is None else [max(0, until_ms - self.now_ms())]
        if poll_ms is not None:
            delays_ms.append(poll_ms)
        try:
            async with asyncio.timeout(min(delays_ms) / 1000 if delays_ms else None):
                await event.wait()
        except TimeoutError:
            return


class ManualClock:
    """A clock that stands still until a test moves it."""

    def __init__(self, at_ms: int = 1_760_000_000_000) -> None:
        self._now_ms = at_ms
        self._waits: dict[asyncio.Timeout, int] = {}

    def now_ms(self) -> int:
        """Where the clock stands."""
        return self._now_ms

    def real_ms(self) -> int:
        """Where the clock stands: a test moves both readings at once."""
        return self._now_ms

    def advance(self, *, ms: int) -> None:
        """Move forward and wake everything that waits for a time that has now come."""
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
        return bearing.virtual_ms + (passed_ms if bearing.factor == 1 else int(passed_ms * bearing.factor))

    def real_ms(self) -> int:
        """Milliseconds of the machine's steady clock, which nobody moves."""
        return steady_ns() // 1_000_000

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

    def catch_up(self) -> None:
        """End a `hold` as if it had not been: read what the clock would read now without it."""
        self._held = False
        self.take(self._bearing)

    def take(self, bearing: Bearing) -> None:
        """Go as a bearing says."""
        self._bearing = bearing
        if self._keep is not None:
            self._keep(bearing)
        self._reschedule()

    async def wait(self, event: asyncio.Event, *, until_ms: int | None, poll_ms: int | None = None) -> None:
        """Return when the event is set, or the clock has come so far by itself or by hand."""
        try:
            async with asyncio.timeout(None if poll_ms is None else poll_ms / 1000):
                await (event.wait() if until_ms is None else self._wait_until(event, until_ms))
        except TimeoutError:
            return

    async def _wait_until(self, event: asyncio.Event, until_ms: int) -> None:
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
