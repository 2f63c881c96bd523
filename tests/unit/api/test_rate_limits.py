"""Rate limits of the API: a moving window over our own clock."""

from typing import Final

import pytest

from tests.support.manual_clock import ManualClock
from waypost.api.limits import RATES, SWEEP_EVERY_MS, Limiter
from waypost.config import InvalidSettingValue, convert_settings
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.rates import change_rates, describe_rates, read_stored_rate


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


async def spend(limiter: Limiter, times: int = 1, name: str = "templates", of: str = "a") -> list[int]:
    """Spend `times` times; return when each was spent."""
    return [await limiter.spend(name, of) for _ in range(times)]


@pytest.mark.parametrize("name", RATES)
async def test_every_rate_allows_its_number_and_rejects_the_next(clock: ManualClock, name: str) -> None:
    limiter = Limiter(clock)
    await spend(limiter, RATES[name].at_most, name)

    with pytest.raises(ApiError) as raised:
        await spend(limiter, name=name)

    assert raised.value.code is ErrorCode.TOO_MANY_REQUESTS
    assert raised.value.retry_after_s == max(1, RATES[name].within_ms // 1000)


@pytest.mark.parametrize("name", RATES)
def test_every_rate_names_its_source(name: str) -> None:
    assert RATES[name].source


async def test_window_moves(clock: ManualClock) -> None:
    limiter = Limiter(clock)
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
    limiter = Limiter(clock)
    await spend(limiter, 10)
    for _ in range(50):
        with pytest.raises(ApiError):
            await spend(limiter)

    clock.advance(ms=60_000)

    await spend(limiter, 10)


async def test_each_name_and_holder_has_its_own_window(clock: ManualClock) -> None:
    limiter = Limiter(clock)
    await spend(limiter, 10, of="a")

    await spend(limiter, 10, of="b")
    await spend(limiter, 10, "send_template", of="a")


async def test_refund_may_be_spent_again(clock: ManualClock) -> None:
    limiter = Limiter(clock)
    *_, last_ms = await spend(limiter, 10)

    await limiter.refund("templates", "a", last_ms)

    await spend(limiter)
    with pytest.raises(ApiError):
        await spend(limiter)


async def test_refund_of_what_was_not_spent_changes_nothing(clock: ManualClock) -> None:
    limiter = Limiter(clock)

    await limiter.refund("templates", "a", clock.now_ms())

    await spend(limiter, 10)
    with pytest.raises(ApiError):
        await spend(limiter)


async def test_disabled_limits_allow_everything(clock: ManualClock) -> None:
    limiter = Limiter(clock, on=False)

    await spend(limiter, 1000)


CHANGES: Final = {  # an entry, and what it changes
    "templates=20/60s":   ("templates", 20, 60_000),
    " download = 3 / 2h": ("download", 3, 7_200_000),
    "upload=50/s":        ("upload", 50, 1_000),
    "mmlite=1000000/24h": ("mmlite", 1_000_000, 86_400_000),
}  # fmt: skip
INVALID_CHANGES: Final = {
    "":                        "is not a rate; write the row",
    "templates":               "is not a rate; write the row",
    "templates=20":            "is not a rate; write the row",
    "templates=-1/60s":        "is not a rate; write the row",
    "templates=1/60d":         "is not a rate; write the row",
    "template=1/60s":          "did you mean templates?",
    "login=1/60s":             "there is no rate login that can be set",
    "login_failures=1/60s":    "there is no rate login_failures that can be set",
    "admin_failures=1/60s":    "there is no rate admin_failures that can be set",
    "templates=0/60s":         "1 to 1000000 requests in 1 to 86400 seconds",
    "templates=1/0s":          "1 to 1000000 requests in 1 to 86400 seconds",
    "templates=1/25h":         "1 to 1000000 requests in 1 to 86400 seconds",
    "templates=1/s,templates=2/s": "the rate templates is set twice",
}  # fmt: skip


@pytest.mark.parametrize("entry", CHANGES)
async def test_a_changed_rate_allows_its_number_and_rejects_the_next(clock: ManualClock, entry: str) -> None:
    name, at_most, within_ms = CHANGES[entry]

    rates = change_rates([entry])

    assert (rates[name].at_most, rates[name].within_ms) == (at_most, within_ms)
    assert {other: rate for other, rate in rates.items() if other != name} == {
        other: rate for other, rate in RATES.items() if other != name
    }
    limiter = Limiter(clock, rates=rates)
    await spend(limiter, min(at_most, 60), name)
    if at_most < 60:
        with pytest.raises(ApiError, match=f"At most {at_most} requests in {within_ms // 1000} s"):
            await spend(limiter, name=name)


@pytest.mark.parametrize("entries", INVALID_CHANGES)
def test_change_that_cannot_be_applied_is_an_error_of_the_setting(entries: str) -> None:
    with pytest.raises(ValueError, match=INVALID_CHANGES[entries].replace("?", r"\?")):
        change_rates(entries.split(","))


def test_setting_of_rates_is_checked_and_accepts_a_table() -> None:
    assert convert_settings({"rate_limits": {"templates": "20/60s"}}).rate_limits == ("templates=20/60s",)
    with pytest.raises(InvalidSettingValue, match="did you mean templates"):
        convert_settings({"rate_limits": "template=20/60s"})


def test_start_says_which_rates_apply() -> None:
    assert describe_rates((), on=True) == "as documented"
    assert describe_rates(("templates=10/1m", "upload=50/s"), on=True) == "as documented, except upload=50/1s"
    assert describe_rates(("upload=50/s",), on=False).startswith("off")


async def test_own_rate_of_a_window_replaces_that_of_the_table(clock: ManualClock) -> None:
    limiter = Limiter(clock)
    low, high, long = (read_stored_rate("templates", text) for text in ("2/60s", "12/60s", "2/1h"))
    await spend(limiter, 10)
    with pytest.raises(ApiError, match="At most 2 requests in 60 s per app"):
        await limiter.spend("templates", "a", low)

    for _ in range(2):
        await limiter.spend("templates", "a", high)
    for own_rate in (high, None):
        with pytest.raises(ApiError):
            await limiter.spend("templates", "a", own_rate)

    first_ms, _ = [await limiter.spend("templates", "b", long) for _ in range(2)]
    clock.advance(ms=SWEEP_EVERY_MS * 2)  # the window is longer than that of the table, and is kept
    with pytest.raises(ApiError):
        await limiter.spend("templates", "b", long)
    await limiter.refund("templates", "b", first_ms, long)
    await limiter.spend("templates", "b", long)


async def test_idle_windows_are_deleted(clock: ManualClock) -> None:
    limiter = Limiter(clock)
    for number in range(10):
        await spend(limiter, of=f"old{number}")
    clock.advance(ms=60_001)

    await spend(limiter, of="new")

    assert len(limiter._windows) == 1  # pyright: ignore[reportPrivateUsage]
