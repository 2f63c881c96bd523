"""Rates of several processes on one store: one window for all, and no request counted that was refused."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from sqlalchemy import Connection, func, select, update

from tests.support.stores import Place
from waypost.api.limits.rate_limits import RATES, SHARED_FROM_MS, SWEEP_EVERY_MS, SharedLimiter
from waypost.base.clock import ManualClock, SystemClock
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.database import Database
from waypost.store.requests.rates import delete_idle_windows
from waypost.store.tables import rate_windows

LONG = [name for name, rate in RATES.items() if rate.within_ms >= SHARED_FROM_MS]
MOST = RATES["templates"].at_most


@dataclass
class Processes:
    """Two that share a store; each has a clock that stands still."""

    databases: list[Database]
    limiters: list[SharedLimiter]
    clock: ManualClock

    async def spend(self, times: int = 1, name: str = "templates", of: str = "a") -> list[int]:
        """Spend so often, at both in turn; when each was spent."""
        return [await self.limiters[nth % 2].spend(name, of) for nth in range(times)]

    async def pass_time(self, *, ms: int) -> None:
        """Everything was spent so much earlier: the clock may be the store's own, which nobody moves."""
        await self.databases[0].write(_pass_time, ms)

    async def count(self) -> int:
        """How many windows there are."""
        return await self.databases[0].read(_count)


def _pass_time(connection: Connection, ms: int) -> None:
    for row in connection.execute(select(rate_windows)).all():
        times = [int(one) - ms for one in row.spent_ms.strip("[]").split(",") if one]
        connection.execute(
            update(rate_windows)
            .where(rate_windows.c.name == row.name, rate_windows.c.whose == row.whose)
            .values(spent_ms=str(times).replace(" ", ""), expires_on_ms=row.expires_on_ms - ms)
        )


def _count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(rate_windows)).scalar_one()


@pytest.fixture
async def processes(place: Place) -> AsyncIterator[Processes]:
    clock = ManualClock(SystemClock().now_ms())
    databases = [Database(place.engine(sole=False)) for _ in range(2)]
    for database in databases:
        await database.open()
    limiters = [SharedLimiter(clock, database) for database in databases]
    yield Processes(databases, limiters, clock)
    await asyncio.gather(*(database.close() for database in databases))


async def test_every_long_rate_is_one_for_both_processes(processes: Processes) -> None:
    for name in LONG:
        rate = RATES[name]
        await processes.spend(rate.at_most, name)

        for limiter in processes.limiters:
            with pytest.raises(ApiError) as told:
                await limiter.spend(name, "a")

            assert told.value.code is ErrorCode.TOO_MANY_REQUESTS
            assert told.value.retry_after_s is not None
            assert 0 < told.value.retry_after_s <= rate.within_ms // 1000


async def test_no_more_are_let_through_when_both_ask_at_once(processes: Processes) -> None:
    asked = [limiter.spend("templates", "a") for limiter in processes.limiters for _ in range(40)]

    results = await asyncio.gather(*asked, return_exceptions=True)

    assert sum(isinstance(one, int) for one in results) == MOST


async def test_short_windows_are_each_processes_own(processes: Processes) -> None:
    await processes.spend(2 * RATES["upload"].at_most, "upload")

    for limiter in processes.limiters:
        with pytest.raises(ApiError):
            await limiter.spend("upload", "a")


async def test_window_moves(processes: Processes) -> None:
    await processes.spend(MOST // 2)
    await processes.pass_time(ms=40_000)
    await processes.spend(MOST // 2)
    with pytest.raises(ApiError) as told:
        await processes.spend()
    assert told.value.retry_after_s is not None
    assert 15 <= told.value.retry_after_s <= 20

    await processes.pass_time(ms=20_000)

    processes.clock.advance(ms=20_000)
    await processes.spend(MOST // 2)
    with pytest.raises(ApiError):
        await processes.spend()


async def test_refusal_does_not_put_off_the_next_chance(processes: Processes) -> None:
    await processes.spend(MOST)
    for _ in range(20):
        with pytest.raises(ApiError):
            await processes.spend()

    await processes.pass_time(ms=60_000)

    processes.clock.advance(ms=60_000)
    await processes.spend(MOST)


async def test_what_one_gives_back_the_other_may_spend_at_once(processes: Processes) -> None:
    one, two = processes.limiters
    first, *_ = await processes.spend(MOST)
    with pytest.raises(ApiError):
        await two.spend("templates", "a")

    await one.refund("templates", "a", first)

    await two.spend("templates", "a")
    with pytest.raises(ApiError):
        await one.spend("templates", "a")


async def test_giving_back_what_was_not_spent_gives_nothing(processes: Processes) -> None:
    one, _ = processes.limiters
    spent = await processes.spend(MOST)

    await one.refund("templates", "a", min(spent) - 1)
    await one.refund("templates", "nobody", spent[0])

    with pytest.raises(ApiError):
        await processes.spend()


async def test_window_of_another_is_not_touched(processes: Processes) -> None:
    await processes.spend(MOST, of="a")

    await processes.spend(MOST, of="b")
    await processes.spend(MOST, "send_template", of="a")


async def test_windows_in_which_nothing_is_spent_any_more_are_deleted(processes: Processes) -> None:
    for number in range(5):
        await processes.spend(of=f"old {number}")
    await processes.pass_time(ms=60_000)
    await processes.spend(of="new")
    assert await processes.count() == 6

    processes.clock.advance(ms=SWEEP_EVERY_MS)
    await processes.limiters[1].spend("app_token", "a")

    left = await processes.count()
    assert left <= 2  # on a clock of ours `new` has run out too
    database = processes.databases[0]
    assert await database.write(delete_idle_windows, processes.clock.now_ms(), 100) == 0


async def test_limits_that_are_off_let_everything_through_and_write_nothing(processes: Processes) -> None:
    limiter = SharedLimiter(processes.clock, processes.databases[0], on=False)

    for _ in range(2 * MOST):
        at_ms = await limiter.spend("templates", "a")
        await limiter.refund("templates", "a", at_ms)

    assert await processes.count() == 0
