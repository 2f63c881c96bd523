"""Advancing the clock from due time to due time."""

import asyncio

import pytest

from waypost.base.clock import VirtualClock
from waypost.base.time_travel import ClockAdvance, ClockNotIdle, TimeTravel

MINUTE_MS = 60_000


class Sleeper:
    """A component with work to do at given times, each of which takes a while."""

    name = "the sleeper"

    def __init__(self, clock: VirtualClock, dues_ms: list[int], *, never_ends: bool = False) -> None:
        self.clock = clock
        self.dues_ms = dues_ms
        self.ran_ms: list[int] = []
        self.busy = False
        self.travelled: list[bool] = []
        self.moves = 0
        self.woken = asyncio.Event()
        self.started = asyncio.Event()
        self.never_ends = never_ends

    def set_travelling(self, is_travelling: bool) -> None:
        self.travelled.append(is_travelling)

    async def next_due_ms(self) -> int | None:
        return min(self.dues_ms, default=None)

    async def describe_in_flight(self) -> list[str]:
        return ["1 nap"] if self.busy else []

    async def run(self) -> None:
        while True:
            due_ms = min(self.dues_ms, default=self.clock.now_ms() + 10**9)
            self.woken.clear()
            await self.clock.wait(self.woken, until_ms=due_ms)
            if due_ms > self.clock.now_ms():
                continue
            self.busy = True
            self.moves += 1
            self.dues_ms.remove(due_ms)
            self.ran_ms.append(self.clock.now_ms())
            self.started.set()
            await asyncio.sleep(3600 if self.never_ends else 0.002)
            self.busy = False


async def test_everything_happens_at_its_own_time_in_order() -> None:
    clock = VirtualClock()
    start_ms = clock.now_ms()
    dues_ms = [start_ms + minutes * MINUTE_MS for minutes in (30, 1, 10)]
    sleeper = Sleeper(clock, list(dues_ms))
    running = asyncio.create_task(sleeper.run())

    advance = await TimeTravel(clock, [sleeper]).advance(to_ms=start_ms + 15 * MINUTE_MS)

    assert sleeper.ran_ms == [start_ms + MINUTE_MS, start_ms + 10 * MINUTE_MS]
    assert advance == ClockAdvance(stops=2, left_ms=0, is_complete=True)
    assert start_ms + 15 * MINUTE_MS <= clock.now_ms() < start_ms + 16 * MINUTE_MS
    running.cancel()


async def test_what_one_stop_leads_to_happens_before_the_next() -> None:
    clock = VirtualClock()
    start_ms = clock.now_ms()
    first = Sleeper(clock, [start_ms + MINUTE_MS])
    second = Sleeper(clock, [start_ms + 5 * MINUTE_MS])
    running = [asyncio.create_task(sleeper.run()) for sleeper in (first, second)]

    async def add_due() -> None:
        await first.started.wait()
        second.dues_ms.append(start_ms + 2 * MINUTE_MS)
        second.woken.set()

    adding = asyncio.create_task(add_due())
    await TimeTravel(clock, [first, second]).advance(to_ms=start_ms + 6 * MINUTE_MS)

    assert second.ran_ms == [start_ms + 2 * MINUTE_MS, start_ms + 5 * MINUTE_MS]
    for task in (*running, adding):
        task.cancel()


async def test_stopped_clock_stays_stopped_after_an_advance() -> None:
    clock = VirtualClock()
    clock.run(factor=0)
    there_ms = clock.now_ms() + MINUTE_MS

    await TimeTravel(clock).advance(to_ms=there_ms)
    await asyncio.sleep(0.005)

    assert clock.now_ms() == there_ms
    assert clock.setting.factor == 0


async def test_component_that_does_not_come_to_rest_is_named() -> None:
    clock = VirtualClock()
    sleeper = Sleeper(clock, [clock.now_ms() + MINUTE_MS], never_ends=True)
    running = asyncio.create_task(sleeper.run())

    with pytest.raises(ClockNotIdle, match="the sleeper had not become idle"):
        await TimeTravel(clock, [sleeper]).advance(to_ms=clock.now_ms() + 2 * MINUTE_MS, stop_timeout_s=0.05)

    running.cancel()


async def test_run_at_rest_is_repeated_when_something_moved_meanwhile() -> None:
    clock = VirtualClock()
    sleeper = Sleeper(clock, [])
    runs = 0

    async def count_run() -> None:
        nonlocal runs
        runs += 1
        if runs == 1:
            sleeper.moves += 1

    await TimeTravel(clock, [sleeper]).run_when_idle(count_run, timeout_s=5)

    assert runs == 2


async def test_run_at_rest_gives_up_where_nothing_comes_to_rest() -> None:
    clock = VirtualClock()
    sleeper = Sleeper(clock, [])
    sleeper.busy = True

    async def fail() -> None:
        raise AssertionError("it must not run: the sleeper never rests")

    with pytest.raises(ClockNotIdle):
        await TimeTravel(clock, [sleeper]).run_when_idle(fail, timeout_s=0.05)


async def test_advance_that_takes_too_long_reports_what_is_left_and_can_be_continued() -> None:
    clock = VirtualClock()
    clock.run(factor=0)
    start_ms = clock.now_ms()
    sleeper = Sleeper(clock, [start_ms + minutes * MINUTE_MS for minutes in range(1, 200)])
    running = asyncio.create_task(sleeper.run())
    travel, to_ms = TimeTravel(clock, [sleeper]), start_ms + 200 * MINUTE_MS

    partial = await travel.advance(to_ms=to_ms, max_real_s=0.05)
    reached_ms = clock.now_ms()
    rest = await travel.advance(to_ms=to_ms)

    assert not partial.is_complete
    assert partial.left_ms == to_ms - reached_ms > 0
    assert partial.stops + rest.stops == 199
    assert rest == ClockAdvance(rest.stops, left_ms=0, is_complete=True)
    assert sleeper.travelled == [True, False, True, False]
    running.cancel()


async def test_cancelled_advance_leaves_the_clock_where_it_is() -> None:
    clock = VirtualClock()
    start_ms = clock.now_ms()
    sleeper = Sleeper(clock, [start_ms + minutes * MINUTE_MS for minutes in range(1, 10_000)])
    running = asyncio.create_task(sleeper.run())
    travelling = asyncio.create_task(TimeTravel(clock, [sleeper]).advance(to_ms=start_ms + 10_000 * MINUTE_MS))
    await sleeper.started.wait()

    travelling.cancel()
    await asyncio.gather(travelling, return_exceptions=True)
    running.cancel()

    assert start_ms + MINUTE_MS <= clock.now_ms() < start_ms + 9_000 * MINUTE_MS
    assert clock.setting.factor == 1
    assert sleeper.travelled[-1] is False
