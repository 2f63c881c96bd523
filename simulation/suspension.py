"""A process that stands still as a whole for a while: a suspended virtual machine, or a thread that never lets go.

Meanwhile none of its steps runs, its connections stay open, and its timers fire late together. The others go on: they
give up waiting for it, and take over its leases, which it then finds expired; or does not, if its clock stood still too.

A host may suspend a machine with its steady clock. Source: clock_gettime(2): CLOCK_BOOTTIME counts what the machine
itself has slept.
"""

import asyncio
from typing import Any, Final

from simulation.choices import Choices, declare
from simulation.observed import Observed
from simulation.process import Process
from waypost.base.clock import Clock

SUSPENDED_FOR_S: Final = (30, 1, 12, 60)
"""A lease lasts 15 seconds, and others look for expired ones every 5; the server ends a transaction idle for 10."""
MAX_WAITS: Final = 300
"""Between two suspensions, as MAX_STEPS."""
SOON_WAITS: Final = 40
SOON_S: Final = 2
MAX_STEPS: Final = 6000
"""Between two suspensions: about as many as all messages take under faults."""
SHARE: Final = 0.4
"""Of the suspensions of each kind, for each of those that there may be."""


class ProcessClock:
    """The clock of the machine of one process: its steady one may be behind by the time for which it stood still.

    The time of day is the same on all machines: a host sets that of a machine that it lets continue.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._behind_ms = 0
        self.now_ms, self.wait = clock.now_ms, clock.wait

    def lose(self, seconds: float) -> None:
        """Let the steady clock be behind by so much more, for ever."""
        self._behind_ms += int(seconds * 1000)

    def real_ms(self) -> int:
        """Return milliseconds of the steady clock."""
        return self._clock.real_ms() - self._behind_ms


class Suspender:
    """Suspends a process at steps that the seed chooses, and lets it continue.

    Args:
        settles_s: how long after that others may still do its work, or wait for it.
    """

    def __init__(
        self, process: Process, clock: ProcessClock, choices: Choices, observed: Observed, settles_s: float
    ) -> None:
        self._process, self._clock = process, clock
        self._choices, self._observed, self._settles_s = choices, observed, settles_s
        self._stands_still = f"{process.name}: stood still"
        self._lost_time = f"{process.name}: stood still with its clock"
        declare(
            {
                self._stands_still: f"the process {process.name} stood still",
                self._lost_time: f"the process {process.name} stood still, and its machine's clock too",
            }
        )

    async def run(self, most: int, until_s: float) -> None:
        """Suspend the process at most this often; begin none after this time of the loop."""
        for _ in range(most):
            happening = [kind for kind in (self._stands_still, self._lost_time) if self._choices.happens(kind, SHARE)]
            if not happening:
                continue
            kind = happening[-1]
            after = self._choices.between("after", 0, 1, of=kind)
            is_early = self._choices.pick("is early", (False, True), of=kind)
            waits = self._choices.pick("waits for somebody", (True, False), of=kind)
            for_s = self._choices.pick("seconds", SUSPENDED_FOR_S, of=kind)
            top = MAX_WAITS if waits else MAX_STEPS
            if not await self._has_come(top**after if is_early else top * after, until_s, waits=waits):
                return
            if self._process.is_running:
                await self._suspend(for_s, loses_time=kind == self._lost_time)

    async def suspend_once(self, for_s: float) -> None:
        """Suspend the process when it has waited for somebody a few times."""
        until_s = asyncio.get_running_loop().time() + SOON_S
        waits = self._choices.between("waits before it stands still", 1, SOON_WAITS)
        if await self._has_come(waits, until_s, waits=True):
            await self._suspend(for_s, loses_time=False)

    async def _suspend(self, for_s: float, *, loses_time: bool) -> None:
        with self._observed.interruption():
            await self._process.stand_still(for_s)
            if loses_time:
                self._clock.lose(for_s)
                self._observed.lost_times.append(asyncio.get_running_loop().time())
            await asyncio.sleep(self._settles_s)

    async def _has_come(self, left: float, until_s: float, *, waits: bool) -> bool:
        """Return after so many steps of the loop, or times that the process waits; False at this time at the latest."""
        loop: Any = asyncio.get_running_loop()
        come, alarm = asyncio.Event(), 0

        def count() -> None:
            nonlocal left
            left -= 1
            if left <= 0 and not come.is_set() and self._process.is_running:
                self._process.suspend()
                come.set()

        if waits:
            self._process.on_wait = count
        else:
            alarm = loop.after_steps(left, come.set)
        try:
            async with asyncio.timeout_at(until_s):
                await come.wait()
        except TimeoutError:
            return come.is_set()
        finally:
            self._process.on_wait = None
            loop.cancel_alarm(alarm)
        return True
