"""The virtual clock: what it reads, and which waits it ends."""

import asyncio

from tests.support.polling import HANGS_AFTER_S
from waypost.base.clock import ClockSetting, VirtualClock

HOUR_MS = 3_600_000


class Machine:
    """The machine's own clock, as far as a virtual one reads it."""

    def __init__(self, at_ms: int = 1_000_000) -> None:
        self.at_ms = at_ms

    def __call__(self) -> int:
        return self.at_ms


async def test_clock_reads_as_the_machine_does_until_it_is_moved() -> None:
    machine = Machine()
    clock = VirtualClock(machine_ms=machine)

    machine.at_ms += 5

    assert clock.now_ms() == machine.at_ms
    assert clock.ahead_ms == 0


async def test_clock_continues_from_the_time_it_was_set_to() -> None:
    machine = Machine()
    clock = VirtualClock(machine_ms=machine)

    clock.set(at_ms=HOUR_MS)
    machine.at_ms += 7

    assert clock.now_ms() == HOUR_MS + 7
    assert clock.ahead_ms == HOUR_MS - 1_000_000


async def test_clock_runs_by_its_factor_and_stops_at_zero() -> None:
    machine = Machine()
    clock = VirtualClock(machine_ms=machine)

    clock.run(factor=60)
    machine.at_ms += 1000
    clock.run(factor=0)
    machine.at_ms += 1000

    assert clock.now_ms() == 1_000_000 + 60_000


async def test_held_clock_stops_and_then_continues_as_before() -> None:
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


async def test_every_setting_is_saved_so_that_a_restart_continues_from_it() -> None:
    machine = Machine()
    saved: list[ClockSetting] = []
    clock = VirtualClock(on_change=saved.append, machine_ms=machine)
    clock.run(factor=3)
    clock.hold()

    machine.at_ms += 100
    restarted = VirtualClock(saved[-1], machine_ms=machine)

    assert restarted.now_ms() == 1_000_000 + 300


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
