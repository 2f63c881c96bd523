"""Rate limits of the API: a moving window over our own clock."""

import pytest

from waypost.api.limits.rate_limits import RATES, Limiter, LocalLimiter
from waypost.base.clock import ManualClock
from waypost.domain.errors import ApiError, ErrorCode


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def spend(limiter: Limiter, times: int = 1, name: str = "templates", of: str = "a") -> list[int]:
    """Spend `times` times; return when each was spent."""
    return [await limiter.spend(name, of) for _ in range(times)]


@pytest.mark.parametrize("name", RATES)
async def test_every_rate_allows_its_number_and_rejects_the_next(clock: ManualClock, name: str) -> None:
    limiter = LocalLimiter(clock)
    await spend(limiter, RATES[name].at_most, name)

    with pytest.raises(ApiError) as raised:
        await spend(limiter, name=name)

    assert raised.value.code is ErrorCode.TOO_MANY_REQUESTS
    assert raised.value.retry_after_s == max(1, RATES[name].within_ms // 1000)


@pytest.mark.parametrize("name", RATES)
def test_every_rate_names_its_source(name: str) -> None:
    assert RATES[name].source


async def test_window_moves(clock: ManualClock) -> None:
    limiter = LocalLimiter(clock)
    await spend(limiter, 5)
    clock.advance(ms=30_000)
    await spend(limiter, 5)
    clock.advance(ms=29_999)
    with pytest.raises(ApiError) as raised:
        await spend(limiter)
    assert raised.value.retry_after_s == 1

    clock.advance(ms=1)

    await spend(limiter, 5)
    with pytest.raises(ApiError):
        await spend(limiter)


async def test_rejected_requests_do_not_extend_the_wait(clock: ManualClock) -> None:
    limiter = LocalLimiter(clock)
    await spend(limiter, 10)
    for _ in range(50):
        with pytest.raises(ApiError):
            await spend(limiter)

    clock.advance(ms=60_000)

    await spend(limiter, 10)


async def test_each_name_and_holder_has_its_own_window(clock: ManualClock) -> None:
    limiter = LocalLimiter(clock)
    await spend(limiter, 10, of="a")

    await spend(limiter, 10, of="b")
    await spend(limiter, 10, "send_template", of="a")


async def test_refund_may_be_spent_again(clock: ManualClock) -> None:
    limiter = LocalLimiter(clock)
    *_, last_ms = await spend(limiter, 10)

    await limiter.refund("templates", "a", last_ms)

    await spend(limiter)
    with pytest.raises(ApiError):
        await spend(limiter)


async def test_refund_of_what_was_not_spent_changes_nothing(clock: ManualClock) -> None:
    limiter = LocalLimiter(clock)

    await limiter.refund("templates", "a", clock.now_ms())

    await spend(limiter, 10)
    with pytest.raises(ApiError):
        await spend(limiter)


async def test_disabled_limits_allow_everything(clock: ManualClock) -> None:
    limiter = LocalLimiter(clock, on=False)

    await spend(limiter, 1000)


async def test_idle_windows_are_deleted(clock: ManualClock) -> None:
    limiter = LocalLimiter(clock)
    for number in range(10):
        await spend(limiter, of=f"old{number}")
    clock.advance(ms=60_001)

    await spend(limiter, of="new")

    assert len(limiter._windows) == 1  # pyright: ignore[reportPrivateUsage]
