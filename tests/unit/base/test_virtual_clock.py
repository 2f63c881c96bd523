"""The clock that may be moved: what it reads, and whom it wakes."""

import asyncio

from tests.support.waiting import HANGS_AFTER_S
from waypost.base.clock import ClockSetting, VirtualClock

HOUR_MS = 3_600_000


class Machine:
    """The machine's own clock, as far as a virtual one asks it."""

    def __init__(self, at_ms: int = 1_000_000) -> None:
        self.at_ms = at_ms

    def __call__(self) -> int:
        return self.at_ms


async def test_it_reads_as_the_machine_does_until_it_is_moved() -> None:
    machine = Machine()
    clock = VirtualClock(machine_ms=machine)

    machine.at_ms += 5

    assert clock.now_ms() == machine.at_ms
    assert clock.ahead_ms == 0


async def test_it_goes_on_from_where_it_was_put() -> None:
    machine = Machine()
    clock = VirtualClock(machine_ms=machine)

    clock.set(at_ms=HOUR_MS)
    machine.at_ms += 7

    assert clock.now_ms() == HOUR_MS + 7
    assert clock.ahead_ms == HOUR_MS - 1_000_000


async def test_it_runs_as_fast_as_it_is_told_and_stands_when_it_is_told() -> None:
    machine = Machine()
    clock = VirtualClock(machine_ms=machine)

    clock.run(factor=60)
    machine.at_ms += 1000
    clock.run(factor=0)
    machine.at_ms += 1000

    assert clock.now_ms() == 1_000_000 + 60_000


async def test_it_stands_while_it_is_held_and_then_goes_on_as_before() -> None:
    machine = Machine()
    clock = VirtualClock(machine_ms=machine)
    clock.run(factor=2)

    clock.hold()
    machine.at_ms += 500
    held_ms = clock.now_ms()
    clock.release()
    machine.at_ms += 500

    assert held_ms == 1_000_000
    assert clock.now_ms() == 1_001_000


async def test_every_bearing_is_kept_so_that_a_restart_goes_on_from_it() -> None:
    machine = Machine()
    kept: list[ClockSetting] = []
    clock = VirtualClock(on_change=kept.append, machine_ms=machine)
    clock.run(factor=3)
    clock.hold()

    machine.at_ms += 100
    again = VirtualClock(kept[-1], machine_ms=machine)

    assert again.now_ms() == 1_000_000 + 300


async def test_a_wait_ends_when_its_event_is_set() -> None:
    clock = VirtualClock(machine_ms=Machine())
    event = asyncio.Event()
    waiting = asyncio.create_task(clock.wait(event, until_ms=clock.now_ms() + HOUR_MS))
    await asyncio.sleep(0)

    event.set()

    await asyncio.wait_for(waiting, HANGS_AFTER_S)


async def test_a_wait_ends_when_the_clock_is_moved_past_it_and_not_before() -> None:
    clock = VirtualClock(machine_ms=Machine())
    start_ms = clock.now_ms()
    waiting = asyncio.create_task(clock.wait(asyncio.Event(), until_ms=start_ms + HOUR_MS))
    await asyncio.sleep(0)

    clock.set(at_ms=start_ms + HOUR_MS - 1)
    await asyncio.sleep(0.005)
    was_done = waiting.done()
    clock.set(at_ms=start_ms + HOUR_MS)

    await asyncio.wait_for(waiting, HANGS_AFTER_S)
    assert not was_done


async def test_a_wait_of_an_hour_takes_a_moment_when_the_clock_runs_fast() -> None:
    clock = VirtualClock()
    clock.run(factor=1_000_000)

    await asyncio.wait_for(clock.wait(asyncio.Event(), until_ms=clock.now_ms() + HOUR_MS), timeout=HANGS_AFTER_S)


async def test_a_wait_on_a_stopped_clock_ends_once_it_runs_again() -> None:
    clock = VirtualClock()
    clock.run(factor=0)
    waiting = asyncio.create_task(clock.wait(asyncio.Event(), until_ms=clock.now_ms() + 5))
    await asyncio.sleep(0.02)

    was_done = waiting.done()
    clock.run(factor=1)

    await asyncio.wait_for(waiting, HANGS_AFTER_S)
    assert not was_done
