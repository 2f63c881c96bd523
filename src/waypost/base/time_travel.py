"""Travelling in time: from due time to due time, waiting at each until everything due has happened.

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

SETTLE_WITHIN_S: Final = 60
"""Real time for what is due at one moment; longer than any HTTP time-out of either side."""
FURTHEST_MS: Final = 10 * 366 * 24 * 3600 * 1000
"""How far one journey goes."""
FASTEST: Final = 100_000
_LOOK_AGAIN_S: Final = 0.001
_TURN_S: Final = 2
_BETWEEN_TURNS_S: Final = 0.05


class Side(Protocol):
    """A party that lives by the clock: the service, or the simulator."""

    @property
    def name(self) -> str:
        """What it is called in a refusal."""
        ...

    @property
    def busy(self) -> bool:
        """Whether anything is claimed, being written, or on its way over HTTP."""
        ...

    @property
    def moves(self) -> int:
        """How much it has begun to write since it was opened; never falls."""
        ...

    async def next_due_ms(self) -> int | None:
        """When the next thing will happen by itself; None when nothing waits."""
        ...

    async def in_flight(self) -> list[str]:
        """Name what keeps it busy, each with its number: `3 callbacks to crm`."""
        ...

    def set_travelling(self, is_travelling: bool) -> None:
        """Time begins to be moved by hand, or has been: what only asks somebody outside may be done less often."""
        ...


@dataclass(frozen=True, slots=True)
class Journey:
    """How far the clock has been moved.

    Attributes:
        stops: at how many due times it has stopped.
        left_ms: how far it still is to where it was to go.
        is_complete: it has arrived there, and nothing is due or under way.
    """

    stops: int
    left_ms: int
    is_complete: bool


class NotSettled(Exception):
    """What was due did not come to an end; the text says on which side, and at which time."""


def counted(count: int, what: str, rest: str = "") -> str:
    """A number of things, for an error: `1 callback to crm`, `3 callbacks to crm`."""
    return f"{count} {what}{'' if count == 1 else 's'}{rest}"


class Travel:
    """Moves a virtual clock for all sides that follow it.

    Args:
        clock: theirs.
        sides: everybody who follows it; may be exchanged while nothing travels.
    """

    def __init__(self, clock: VirtualClock, sides: Sequence[Side] = ()) -> None:
        self.clock = clock
        self.sides = sides
        self._moving = asyncio.Lock()
        self._waited_s = 0.0  # for the stop at which the clock stands

    async def advance(self, *, to_ms: int, within_s: float = SETTLE_WITHIN_S, at_most_s: float = math.inf) -> Journey:
        """Go to a time, stopping wherever something is due; return when it has been reached.

        The clock stands still between two stops, and afterwards goes on as it did before: also when
        this is cancelled, wherever it has come to.

        Args:
            to_ms: milliseconds since the epoch; a time that has passed already is reached at once.
            within_s: real time allowed for each stop.
            at_most_s: real time for all of them; then it returns from wherever it is, and may be asked
                to go on.

        Raises:
            NotSettled: a stop took longer; the clock stays there, and goes on as it did before.
        """
        ends_s = _real_s() + at_most_s
        stops = 0
        async with self._held():
            self._set_travelling(True)
            try:
                is_at_rest, due_ms = await self._rest(within_s, ends_s)
                while is_at_rest and due_ms is not None and due_ms <= to_ms and _real_s() < ends_s:
                    self.clock.set(at_ms=due_ms)
                    stops += 1
                    is_at_rest, due_ms = await self._rest(within_s, ends_s)
            finally:
                self._set_travelling(False)
            if is_at_rest and (due_ms is None or due_ms > to_ms):
                self.clock.set(at_ms=max(to_ms, self.clock.now_ms()))
                is_at_rest, due_ms = await self._rest(within_s, ends_s)
            left_ms = max(0, to_ms - self.clock.now_ms())
            return Journey(stops, left_ms, is_complete=is_at_rest and not left_ms)

    async def at_rest(
        self,
        look: Callable[[], Awaitable[None]],
        *,
        within_s: float,
        pause_traffic: Callable[[], AbstractAsyncContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        """Call `look` while nothing moves on any side; afterwards the clock reads as if it had never stopped.

        Args:
            look: is called again when something has moved meanwhile.
            within_s: real time for all of it.
            pause_traffic: makes requests from outside wait. It is left for a moment after each turn
                that found no rest, because what is in flight may need a request to be answered.

        Raises:
            NotSettled: there was no such moment; it names what was in flight.
        """
        async with self._moving:
            self.clock.hold()
            try:
                async with asyncio.timeout(within_s):
                    await self._take_turns(look, pause_traffic)
            except TimeoutError:
                who = await self._in_flight() or "requests from outside kept coming"
                raise NotSettled(f"there was no moment of rest within {within_s:g} s: {who}") from None
            finally:
                self.clock.catch_up()

    async def _take_turns(
        self, look: Callable[[], Awaitable[None]], pause_traffic: Callable[[], AbstractAsyncContextManager[None]]
    ) -> None:
        while True:
            async with pause_traffic():
                with contextlib.suppress(NotSettled):
                    await self._settle(_TURN_S)
                    before = self.moves
                    await look()
                    if before == self.moves and not any(side.busy for side in self.sides):
                        return
            await asyncio.sleep(_BETWEEN_TURNS_S)

    async def _in_flight(self) -> str:
        named = [one for side in self.sides for one in await side.in_flight()]
        return f"{', '.join(named)} in flight" if named else ""

    async def run(self, *, factor: float) -> None:
        """Let the clock go on from where it stands, at another speed; 0 stops it."""
        async with self._moving:
            self.clock.run(factor=factor)

    @contextlib.asynccontextmanager
    async def _held(self) -> AsyncGenerator[None]:
        async with self._moving:
            self.clock.hold()
            try:
                yield
            finally:
                self.clock.release()

    @property
    def moves(self) -> int:
        """How much all sides have begun to write."""
        return sum(side.moves for side in self.sides)

    def _set_travelling(self, is_travelling: bool) -> None:
        for side in self.sides:
            side.set_travelling(is_travelling)

    async def _rest(self, within_s: float, ends_s: float) -> tuple[bool, int | None]:
        """Settle: whether there was time enough for it, and when the next thing is due."""
        began_s = _real_s()
        try:
            due_ms = await self._settle(min(within_s - self._waited_s, max(0.0, ends_s - began_s)))
        except NotSettled:
            self._waited_s += _real_s() - began_s
            if self._waited_s < within_s:
                return False, None
            self._waited_s = 0
            raise
        self._waited_s = 0
        return True, due_ms

    async def _settle(self, within_s: float) -> int | None:
        """Wait until nothing is due or under way anywhere; say when the next thing is due.

        Whatever one side hands the other is on its way in a call that the giver is busy with, so that
        there is no moment in which neither of them has it.
        """
        try:
            async with asyncio.timeout(within_s):
                while True:
                    before = self.moves
                    if not any(side.busy for side in self.sides):
                        dues = [await side.next_due_ms() for side in self.sides]
                        due_ms = min((due for due in dues if due is not None), default=None)
                        is_still = not any(side.busy for side in self.sides)
                        if is_still and before == self.moves and not self._is_due(due_ms):
                            return due_ms
                    await asyncio.sleep(_LOOK_AGAIN_S)
        except TimeoutError:
            raise NotSettled(await self._why(within_s)) from None

    def _is_due(self, due_ms: int | None) -> bool:
        return due_ms is not None and due_ms <= self.clock.now_ms()

    async def _why(self, within_s: float) -> str:
        names = [side.name for side in self.sides if side.busy]
        if not names:
            names = [side.name for side in self.sides if self._is_due(await side.next_due_ms())]
        who = " and ".join(names) or "traffic from outside"
        what = await self._in_flight()
        return (
            f"at {self.clock.now_ms()} ms {who} had not come to rest after {within_s:g} s"
            f"{f' ({what})' if what else ''}; the clock stays there"
        )


def _real_s() -> float:
    return asyncio.get_running_loop().time()
