"""Time travel: moves a virtual clock from due time to due time, and waits at each until all due work is done.

Source: decision 0039.
"""

import asyncio
import contextlib
import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from waypost.base.clock import VirtualClock

IDLE_TIMEOUT_S: Final = 60
"""Real time for the work that is due at one moment; longer than any HTTP timeout of either side."""
MAX_ADVANCE_MS: Final = 10 * 366 * 24 * 3600 * 1000
"""Maximum distance of one advance."""
MAX_CLOCK_FACTOR: Final = 100_000
_POLL_INTERVAL_S: Final = 0.001
_TURN_TIMEOUT_S: Final = 2
_TURN_PAUSE_S: Final = 0.05


class ClockFollower(Protocol):
    """A component that follows the clock: the service, or the simulator."""

    @property
    def name(self) -> str:
        """Its name in an error."""
        ...

    @property
    def busy(self) -> bool:
        """True while anything is claimed, being written, or in flight over HTTP."""
        ...

    @property
    def moves(self) -> int:
        """Number of writes begun since it was opened; never falls."""
        ...

    async def next_due_ms(self) -> int | None:
        """Return the time of the next scheduled work; None if there is none."""
        ...

    async def describe_in_flight(self) -> list[str]:
        """Return the work that keeps it busy, each with its number: `3 callbacks to crm`."""
        ...

    def set_travelling(self, is_travelling: bool) -> None:
        """Start or end time travel: during it, polls of external systems may be less frequent."""
        ...


@dataclass(frozen=True, slots=True)
class ClockAdvance:
    """The result of moving the clock."""

    stops: int  # number of due times at which it stopped
    left_ms: int  # remaining distance to the target time
    is_complete: bool  # the target time is reached, and nothing is due or in flight


class ClockNotIdle(Exception):
    """Due work did not end in time; the text has the side and the time."""


def format_count(count: int, noun: str, suffix: str = "") -> str:
    """Return a number with its noun, for an error: `1 callback to crm`, `3 callbacks to crm`."""
    return f"{count} {noun}{'' if count == 1 else 's'}{suffix}"


class TimeTravel:
    """Moves a virtual clock for all components that follow it.

    Args:
        sides: all components that follow it; may be replaced while no travel runs.
    """

    def __init__(self, clock: VirtualClock, sides: Sequence[ClockFollower] = ()) -> None:
        self.clock = clock
        self.sides = sides
        self._moving = asyncio.Lock()
        self._waited_s = 0.0  # at the current stop

    async def advance(
        self, *, to_ms: int, stop_timeout_s: float = IDLE_TIMEOUT_S, max_real_s: float = math.inf
    ) -> ClockAdvance:
        """Advance to a time with a stop at each due time; return when it has been reached.

        The clock is stopped between two stops, and afterwards continues at its previous speed, also
        when this is cancelled.

        Args:
            to_ms: milliseconds since the epoch; a time in the past is reached at once.
            stop_timeout_s: real time allowed for each stop.
            max_real_s: real time for all of them; then it returns where it is, and may be called again
                to continue.

        Raises:
            ClockNotAtRest: a stop took longer; the clock continues from there at its previous speed.
        """
        ends_s = _real_s() + max_real_s
        stops = 0
        async with self._hold_clock():
            self._set_travelling(True)
            try:
                is_idle, due_ms = await self._try_wait_until_idle(stop_timeout_s, ends_s)
                while is_idle and due_ms is not None and due_ms <= to_ms and _real_s() < ends_s:
                    self.clock.set(at_ms=due_ms)
                    stops += 1
                    is_idle, due_ms = await self._try_wait_until_idle(stop_timeout_s, ends_s)
            finally:
                self._set_travelling(False)
            if is_idle and (due_ms is None or due_ms > to_ms):
                self.clock.set(at_ms=max(to_ms, self.clock.now_ms()))
                is_idle, due_ms = await self._try_wait_until_idle(stop_timeout_s, ends_s)
            left_ms = max(0, to_ms - self.clock.now_ms())
            return ClockAdvance(stops, left_ms, is_complete=is_idle and not left_ms)

    async def run_when_idle(
        self,
        action: Callable[[], Awaitable[None]],
        *,
        timeout_s: float,
        pause_traffic: Callable[[], AbstractAsyncContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        """Call `action` while nothing changes on any side; afterwards the clock reads as if it had never stopped.

        Args:
            action: called again if anything changed meanwhile.
            timeout_s: real time for all of it.
            pause_traffic: makes incoming requests wait. It is released briefly after each turn
                without rest, because work in flight may need an incoming request.

        Raises:
            ClockNotAtRest: it did not become idle; the text has what was in flight.
        """
        async with self._moving:
            self.clock.hold()
            try:
                async with asyncio.timeout(timeout_s):
                    await self._repeat_until_quiet(action, pause_traffic)
            except TimeoutError:
                causes = await self._describe_in_flight() or "requests kept coming"
                raise ClockNotIdle(f"the service did not become idle within {timeout_s:g} s: {causes}") from None
            finally:
                self.clock.catch_up()

    async def _repeat_until_quiet(
        self, action: Callable[[], Awaitable[None]], pause_traffic: Callable[[], AbstractAsyncContextManager[None]]
    ) -> None:
        while True:
            async with pause_traffic():
                with contextlib.suppress(ClockNotIdle):
                    await self._wait_until_idle(_TURN_TIMEOUT_S)
                    before = self.moves
                    await action()
                    if before == self.moves and not any(side.busy for side in self.sides):
                        return
            await asyncio.sleep(_TURN_PAUSE_S)

    async def _describe_in_flight(self) -> str:
        texts = [text for side in self.sides for text in await side.describe_in_flight()]
        return f"{', '.join(texts)} in flight" if texts else ""

    async def run(self, *, factor: float) -> None:
        """Continue the clock from its current reading at another speed; 0 stops it."""
        async with self._moving:
            self.clock.run(factor=factor)

    @contextlib.asynccontextmanager
    async def _hold_clock(self) -> AsyncGenerator[None]:
        async with self._moving:
            self.clock.hold()
            try:
                yield
            finally:
                self.clock.release()

    @property
    def moves(self) -> int:
        """Number of writes begun on all sides."""
        return sum(side.moves for side in self.sides)

    def _set_travelling(self, is_travelling: bool) -> None:
        for side in self.sides:
            side.set_travelling(is_travelling)

    async def _try_wait_until_idle(self, stop_timeout_s: float, ends_s: float) -> tuple[bool, int | None]:
        """Wait for rest; return False if the time was not enough, and the next due time."""
        began_s = _real_s()
        try:
            due_ms = await self._wait_until_idle(min(stop_timeout_s - self._waited_s, max(0.0, ends_s - began_s)))
        except ClockNotIdle:
            self._waited_s += _real_s() - began_s
            if self._waited_s < stop_timeout_s:
                return False, None
            self._waited_s = 0
            raise
        self._waited_s = 0
        return True, due_ms

    async def _wait_until_idle(self, timeout_s: float) -> int | None:
        """Wait until nothing is due or in flight anywhere; return the next due time.

        Work that one side passes to the other is in a call that keeps the sender busy, so there is no
        moment in which neither side has it.
        """
        try:
            async with asyncio.timeout(timeout_s):
                while True:
                    before = self.moves
                    if not any(side.busy for side in self.sides):
                        due_times = [await side.next_due_ms() for side in self.sides]
                        due_ms = min((time_ms for time_ms in due_times if time_ms is not None), default=None)
                        is_still = not any(side.busy for side in self.sides)
                        if is_still and before == self.moves and not self._is_due(due_ms):
                            return due_ms
                    await asyncio.sleep(_POLL_INTERVAL_S)
        except TimeoutError:
            raise ClockNotIdle(await self._describe_busy(timeout_s)) from None

    def _is_due(self, due_ms: int | None) -> bool:
        return due_ms is not None and due_ms <= self.clock.now_ms()

    async def _describe_busy(self, timeout_s: float) -> str:
        names = [side.name for side in self.sides if side.busy]
        if not names:
            names = [side.name for side in self.sides if self._is_due(await side.next_due_ms())]
        causes = " and ".join(names) or "incoming traffic"
        in_flight = await self._describe_in_flight()
        return (
            f"at {self.clock.now_ms()} ms {causes} had not become idle after {timeout_s:g} s"
            f"{f' ({in_flight})' if in_flight else ''}; the clock stays there"
        )


def _real_s() -> float:
    return asyncio.get_running_loop().time()
