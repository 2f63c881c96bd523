"""Clocks: the only place that reads the time and waits for it."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol

MINUTE_MS: Final = 60_000
HOUR_MS: Final = 60 * MINUTE_MS
DAY_MS: Final = 24 * HOUR_MS


class Clock(Protocol):
    """The interface for time. All readings are milliseconds.

    `now_ms` is the time for rules (windows, schedules, expiries); tests and `dev` may move it.
    `real_ms` cannot be moved: leases and timeouts follow it.
    """

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, by the clock for rules."""
        ...

    def real_ms(self) -> int:
        """Return milliseconds of a steady clock without a fixed origin; it includes the machine's sleep."""
        ...

    async def wait(self, event: asyncio.Event, *, until_ms: int | None, poll_ms: int | None = None) -> None:
        """Return when the event is set or `now_ms` has reached `until_ms`, whichever is first.

        Args:
            event: set by another task.
            until_ms: by the clock for rules; None: never.
            poll_ms: maximum real time to wait, however the clock is moved; None: no limit.
        """
        ...


def machine_ms() -> int:
    """Return the machine's own time, milliseconds since the epoch: for values that others compare with their clock."""
    return time.time_ns() // 1_000_000


steady_ns: Final[Callable[[], int]] = (
    partial(time.clock_gettime_ns, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic_ns
)
"""Returns the machine's steady clock in nanoseconds, without a fixed origin; on Linux it includes sleep.

On Linux the clock of `time.monotonic` stops while the machine sleeps, but other machines' clocks
go on: a process that wakes up would trust leases that others have taken over long ago.

Source: clock_gettime(2), CLOCK_BOOTTIME.
"""


class SystemClock:
    """The machine's clock, but never set back.

    It follows the machine's clock forward at once. If that is set back, ours goes on, a tenth slower
    than real time, until the machine's has caught up: waits for a time of ours, stored or in memory,
    do not take hours longer.

    Args:
        machine_ns, steady_ns: the machine's clocks; tests pass their own.

    Source: decision 0054.
    """

    def __init__(
        self, *, machine_ns: Callable[[], int] = time.time_ns, steady_ns: Callable[[], int] = steady_ns
    ) -> None:
        self._machine_ns = machine_ns
        self._steady_ns = steady_ns
        self._last = (machine_ns(), steady_ns())

    def now_ms(self) -> int:
        """Return milliseconds since the epoch."""
        last_ns, last_steady_ns = self._last
        steady_ns = self._steady_ns()
        min_now_ns = last_ns + (steady_ns - last_steady_ns) * 9 // 10
        now_ns = self._machine_ns()
        if now_ns < min_now_ns:
            now_ns = min_now_ns
        self._last = (now_ns, steady_ns)
        return now_ns // 1_000_000

    def real_ms(self) -> int:
        """Return milliseconds of the machine's steady clock."""
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


@dataclass(frozen=True, slots=True)
class ClockSetting:
    """The setting of a virtual clock: its reading at a moment of the machine's clock, and its speed since then."""

    virtual_ms: int  # its reading at that moment
    machine_ms: int  # that moment, milliseconds since the epoch by the machine's own clock
    factor: float = 1  # virtual seconds per second of the machine's clock; 0: stopped


class VirtualClock:
    """The machine's clock, set ahead, stopped or sped up: for `dev`, the simulator and tests, never for `serve`.

    Without a setting it reads like the machine's clock. Move it on the event loop only, where its waits are.

    Args:
        setting: the stored setting of an earlier run.
        on_change: called with each new setting.
        machine_ms: the machine's clock; tests pass their own.
    """

    def __init__(
        self,
        setting: ClockSetting | None = None,
        *,
        on_change: Callable[[ClockSetting], None] | None = None,
        machine_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._machine_ms = machine_ms
        self._on_change = on_change
        now_ms = machine_ms()
        self.setting = setting or ClockSetting(now_ms, now_ms)
        """The current setting; with it the clock continues after a restart."""
        self._is_held = False
        self._waits: dict[asyncio.Timeout, int] = {}

    @property
    def ahead_ms(self) -> int:
        """The difference to the machine's clock; negative when the virtual clock is behind."""
        return self.now_ms() - self._machine_ms()

    def now_ms(self) -> int:
        """Return milliseconds since the epoch, for rules."""
        setting = self.setting
        if self._is_held or setting.factor == 0:
            return setting.virtual_ms
        passed_ms = self._machine_ms() - setting.machine_ms
        return setting.virtual_ms + (passed_ms if setting.factor == 1 else int(passed_ms * setting.factor))

    def real_ms(self) -> int:
        """Return milliseconds of the machine's steady clock, which cannot be moved."""
        return steady_ns() // 1_000_000

    def set(self, *, at_ms: int) -> None:
        """Set the clock to a time, milliseconds since the epoch, and wake every wait that is due."""
        self.apply(ClockSetting(at_ms, self._machine_ms(), self.setting.factor))

    def run(self, *, factor: float) -> None:
        """Continue from the current reading at this multiple of the machine's speed; 0 stops the clock."""
        self.apply(ClockSetting(self.now_ms(), self._machine_ms(), factor))

    def hold(self) -> None:
        """Stop the clock until `release`. After a restart in between it continues as if released."""
        self.set(at_ms=self.now_ms())
        self._is_held = True
        self._reschedule()

    def release(self) -> None:
        """Continue from the current reading, at the speed before `hold`."""
        self._is_held = False
        self.set(at_ms=self.setting.virtual_ms)

    def catch_up(self) -> None:
        """End a `hold` as if it had not happened: continue with the reading without it."""
        self._is_held = False
        self.apply(self.setting)

    def apply(self, setting: ClockSetting) -> None:
        """Apply a setting."""
        self.setting = setting
        if self._on_change is not None:
            self._on_change(setting)
        self._reschedule()

    async def wait(self, event: asyncio.Event, *, until_ms: int | None, poll_ms: int | None = None) -> None:
        """Return when the event is set, or the clock has reached the time by itself or by hand."""
        try:
            async with asyncio.timeout(None if poll_ms is None else poll_ms / 1000):
                await (event.wait() if until_ms is None else self._wait_until(event, until_ms))
        except TimeoutError:
            return

    async def _wait_until(self, event: asyncio.Event, until_ms: int) -> None:
        while not event.is_set() and self.now_ms() < until_ms:
            timeout = asyncio.timeout_at(self._loop_time(until_ms))
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
                timeout.reschedule(self._loop_time(until_ms))

    def _loop_time(self, until_ms: int) -> float | None:
        """Return the loop time at which a time will come; None if it never comes by itself."""
        remaining_ms = until_ms - self.now_ms()
        if remaining_ms <= 0:
            return 0
        if self._is_held or self.setting.factor == 0:
            return None
        return asyncio.get_running_loop().time() + remaining_ms / 1000 / self.setting.factor
