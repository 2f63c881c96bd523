"""Rate limits of several processes on one store: one window for all, and rejected requests are not counted."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
from sqlalchemy import Connection, func, select, update

from tests.support.manual_clock import ManualClock
from tests.support.store_locations import StoreLocation
from waypost.api.limits import RATES, SHARED_FROM_MS, SWEEP_EVERY_MS, Limiter
from waypost.base.clock import SystemClock
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.rates import change_rates, read_stored_rate
from waypost.store.database import Database
from waypost.store.requests.rates import delete_idle_windows
from waypost.store.tables import rate_windows

LONG_RATES = [name for name, rate in RATES.items() if rate.within_ms >= SHARED_FROM_MS]
LIMIT = RATES["templates"].at_most


@dataclass
class Processes:
    """Two processes that share a store, on a stopped clock."""

    databases: list[Database]
    limiters: list[Limiter]
    clock: ManualClock

    async def spend(self, times: int = 1, name: str = "templates", of: str = "a") -> list[int]:
        """Spend `times` times, at both in turn; return when each was spent."""
        return [await self.limiters[nth % 2].spend(name, of) for nth in range(times)]

    async def pass_time(self, *, ms: int) -> None:
        """Move all spending back: the clock may be the store's own, which a test cannot move."""
        await self.databases[0].write(_pass_time, ms)

    async def count(self) -> int:
        """Return how many windows there are."""
        return await self.databases[0].read(_count)


def _pass_time(connection: Connection, ms: int) -> None:
    for row in connection.execute(select(rate_windows)).all():
        times = [int(text) - ms for text in row.times_ms.strip("[]").split(",") if text]
        connection.execute(
            update(rate_windows)
            .where(rate_windows.c.name == row.name, rate_windows.c.subject == row.subject)
            .values(times_ms=str(times).replace(" ", ""), expires_on_ms=row.expires_on_ms - ms)
        )


def _count(connection: Connection) -> int:
    return connection.execute(select(func.count()).select_from(rate_windows)).scalar_one()


@pytest.fixture
async def processes(store_location: StoreLocation) -> AsyncIterator[Processes]:
    clock = ManualClock(SystemClock().now_ms())
    databases = [Database(store_location.engine(sole=False)) for _ in range(2)]
    for database in databases:
        await database.open()
    limiters = [Limiter(clock, database) for database in databases]
    yield Processes(databases, limiters, clock)
    await asyncio.gather(*(database.close() for database in databases))


async def test_every_long_rate_is_shared_by_both_processes(processes: Processes) -> None:
    for name in LONG_RATES:
        rate = RATES[name]
        await processes.spend(rate.at_most, name)

        for limiter in processes.limiters:
            with pytest.raises(ApiError) as raised:
                await limiter.spend(name, "a")

            assert raised.value.code is ErrorCode.TOO_MANY_REQUESTS
            assert raised.value.retry_after_s is not None
            assert 0 < raised.value.retry_after_s <= rate.within_ms // 1000


async def test_limit_holds_when_both_processes_spend_at_once(processes: Processes) -> None:
    calls = [limiter.spend("templates", "a") for limiter in processes.limiters for _ in range(40)]

    results = await asyncio.gather(*calls, return_exceptions=True)

    assert sum(isinstance(result, int) for result in results) == LIMIT


async def test_each_process_has_its_own_short_windows(processes: Processes) -> None:
    await processes.spend(2 * RATES["upload"].at_most, "upload")

    for limiter in processes.limiters:
        with pytest.raises(ApiError):
            await limiter.spend("upload", "a")


async def test_window_moves(processes: Processes) -> None:
    await processes.spend(LIMIT // 2)
    await processes.pass_time(ms=40_000)
    await processes.spend(LIMIT // 2)
    with pytest.raises(ApiError) as raised:
        await processes.spend()
    assert raised.value.retry_after_s is not None
    assert 15 <= raised.value.retry_after_s <= 20

    await processes.pass_time(ms=20_000)

    processes.clock.advance(ms=20_000)
    await processes.spend(LIMIT // 2)
    with pytest.raises(ApiError):
        await processes.spend()


async def test_rejected_requests_do_not_extend_the_wait(processes: Processes) -> None:
    await processes.spend(LIMIT)
    for _ in range(20):
        with pytest.raises(ApiError):
            await processes.spend()

    await processes.pass_time(ms=60_000)

    processes.clock.advance(ms=60_000)
    await processes.spend(LIMIT)


async def test_refund_of_one_process_may_be_spent_by_the_other_at_once(processes: Processes) -> None:
    limiter, other_limiter = processes.limiters
    first, *_ = await processes.spend(LIMIT)
    with pytest.raises(ApiError):
        await other_limiter.spend("templates", "a")

    await limiter.refund("templates", "a", first)

    await other_limiter.spend("templates", "a")
    with pytest.raises(ApiError):
        await limiter.spend("templates", "a")


async def test_refund_of_what_was_not_spent_changes_nothing(processes: Processes) -> None:
    limiter, _ = processes.limiters
    spent = await processes.spend(LIMIT)

    await limiter.refund("templates", "a", min(spent) - 1)
    await limiter.refund("templates", "nobody", spent[0])

    with pytest.raises(ApiError):
        await processes.spend()


async def test_windows_of_others_are_not_affected(processes: Processes) -> None:
    await processes.spend(LIMIT, of="a")

    await processes.spend(LIMIT, of="b")
    await processes.spend(LIMIT, "send_template", of="a")


async def test_idle_windows_are_deleted(processes: Processes) -> None:
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


async def test_disabled_limits_allow_everything_and_write_nothing(processes: Processes) -> None:
    limiter = Limiter(processes.clock, processes.databases[0], on=False)

    for _ in range(2 * LIMIT):
        at_ms = await limiter.spend("templates", "a")
        await limiter.refund("templates", "a", at_ms)

    assert await processes.count() == 0


async def test_changed_rate_is_shared_by_both_processes(processes: Processes) -> None:
    rates = change_rates(["templates=3/2m"])
    one, two = (Limiter(processes.clock, database, rates=rates) for database in processes.databases)
    for limiter in (one, two, one):
        await limiter.spend("templates", "a")

    for limiter in (one, two):
        with pytest.raises(ApiError, match="At most 3 requests in 120 s per app"):
            await limiter.spend("templates", "a")


async def test_own_rate_of_an_app_is_shared_by_both_processes(processes: Processes) -> None:
    own_rate = read_stored_rate("upload", "3/2m")  # of the table it is a short one, and is not shared
    spent = [await limiter.spend("upload", "a", own_rate) for limiter in (*processes.limiters, processes.limiters[0])]
    for limiter in processes.limiters:
        with pytest.raises(ApiError, match="At most 3 requests in 120 s per app"):
            await limiter.spend("upload", "a", own_rate)

    await processes.limiters[1].refund("upload", "a", spent[0], own_rate)

    await processes.limiters[0].spend("upload", "a", own_rate)
    with pytest.raises(ApiError):
        await processes.limiters[1].spend("upload", "a", own_rate)
