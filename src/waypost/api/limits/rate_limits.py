"""The table of rates, and limiters with sliding windows: in memory, or in a store that several processes share."""

from collections import deque
from dataclasses import dataclass, replace
from typing import Final, Protocol

from waypost.base.clock import Clock
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.database import Database
from waypost.store.requests.rates import (
    RateRefund,
    RateRequest,
    count_rate_requests,
    delete_idle_windows,
    rate_wait_ms,
    refund_rates,
)


@dataclass(frozen=True, slots=True)
class Rate:
    """A limit of requests within a time, and the scope that it applies to."""

    at_most: int
    within_ms: int
    per: str
    source: str
    counts: str = "requests"


# fmt: off
RATES: Final = {  # Source: spec, "Limits"; facts 11; decision 0078. One window per route, never shared between routes.
    # name                   at most  within        per                 source
    "login":                  Rate(10,  60_000,    "e-mail and address", "facts 1.2, 11"),
    "login_address":          Rate(60,  60_000,    "address or /64",     "decision 0072"),
    "login_failures":         Rate(10,  60_000,    "e-mail and address", "decision 0072; always on", "failed logins"),
    "login_failures_address": Rate(60,  60_000,    "address or /64",     "decision 0072; always on", "failed logins"),
    "login_failures_email":   Rate(200, 60_000,    "e-mail",             "decision 0072; always on", "failed logins"),
    "admin_failures":         Rate(10,  60_000,    "address or /64",     "decision 0072; always on", "wrong admin tokens"),
    "audited_rejections":     Rate(100, 60_000,    "service",            "decision 0074; always on", "entries of the audit log without a valid credential"),
    "app_token":              Rate(10,  60_000,    "app",                "facts 11, with health and capping"),
    "templates":              Rate(10,  60_000,    "app",                "spec, Limits; facts 11: create, list, edit"),
    "send_template":          Rate(10,  60_000,    "app",                "spec, Limits"),
    "session":                Rate(20,  1_000,     "source",             "facts 11; decision 0078"),
    "subscription":           Rate(5,   60_000,    "app",                "facts 4.1, 11"),
    "create_app":             Rate(10,  60_000,    "partner",            "facts 11, `/partner/app`"),
    "delete_app":             Rate(20,  60_000,    "partner",            "facts 11"),
    "analytics":              Rate(10,  60_000,    "app",                "facts 11, template/analytics"),
    "template_sync":          Rate(1,   3_600_000, "app",                "facts 11"),
    "ratings":                Rate(10,  60_000,    "app",                "facts 11: the refresh and its response are ours"),
    "upload":                 Rate(10,  1_000,     "app",                "facts 11"),
    "download":               Rate(5,   3_600_000, "app",                "facts 11"),
    "mmlite":                 Rate(2,   3_600_000, "app",                "facts 11"),
    "partner_call":           Rate(10,  1_000,     "app or partner",     "facts 11, every other partner API"),
}
# fmt: on

SWEEP_EVERY_MS: Final = 60_000
"""The interval at which empty windows are deleted."""
SHARED_FROM_MS: Final = 60_000
"""The shortest window that all processes with a common store share; shorter ones are per process."""
_MAX_SWEPT: Final = 1000


class Limiter(Protocol):
    """Sliding windows. Requests that end in an error do not count: what they spent is refunded."""

    async def spend(self, name: str, owner: str) -> int:
        """Spend one request of a rate.

        Args:
            name: the row of the table.
            owner: the window's route and app, address or other owner.

        Returns:
            The time it was spent, for `refund`.

        Raises:
            ApiError: the rate is used up; with the seconds to wait.
        """
        ...

    async def check(self, name: str, owner: str) -> None:
        """Check that the rate is not used up; spend nothing.

        Raises:
            ApiError: it is used up.
        """
        ...

    async def refund(self, name: str, owner: str, at_ms: int) -> None:
        """Return the request spent at that time: it ended in another error."""
        ...


class LocalLimiter:
    """Windows in memory, of this process alone.

    Args:
        clock: the clock of the windows.
        on: False disables all rates.
    """

    def __init__(self, clock: Clock, *, on: bool = True) -> None:
        self._clock = clock
        self._on = on
        self._windows: dict[tuple[str, str], deque[int]] = {}
        self._swept_ms = clock.now_ms()

    async def spend(self, name: str, owner: str) -> int:
        """See `Limiter`. Does not block."""
        if not self._on:
            return 0
        rate = RATES[name]
        now_ms = self._clock.now_ms()
        if now_ms - self._swept_ms >= SWEEP_EVERY_MS:
            self._sweep(now_ms)
        window = self._windows.setdefault((name, owner), deque())
        while window and window[0] <= now_ms - rate.within_ms:
            window.popleft()
        if len(window) >= rate.at_most:
            raise _rate_exceeded_error(rate, window[0] + rate.within_ms - now_ms)
        window.append(now_ms)
        return now_ms

    async def check(self, name: str, owner: str) -> None:
        """See `Limiter`. Does not block."""
        rate, now_ms = RATES[name], self._clock.now_ms()
        window = self._windows.get((name, owner), ())
        alive = [at_ms for at_ms in window if at_ms > now_ms - rate.within_ms]
        if self._on and len(alive) >= rate.at_most:
            raise _rate_exceeded_error(rate, alive[0] + rate.within_ms - now_ms)

    async def refund(self, name: str, owner: str, at_ms: int) -> None:
        """See `Limiter`. Does not block."""
        window = self._windows.get((name, owner))
        if window and at_ms in window:
            window.remove(at_ms)

    def _sweep(self, now_ms: int) -> None:
        self._swept_ms = now_ms
        for key in [
            key for key, window in self._windows.items() if not window or window[-1] <= now_ms - RATES[key[0]].within_ms
        ]:
            del self._windows[key]


class SharedLimiter:
    """Long windows as rows of a store that several processes share, short ones in memory (decision 0045).

    A window that this process knows to be exhausted is first checked by a read, so that a client that
    keeps sending does not slow down the others' writes.

    Args:
        clock: the clock of the windows, if the store has no clock of its own.
        database: the store that the processes share.
        on: False disables all rates.
    """

    def __init__(self, clock: Clock, database: Database, *, on: bool = True) -> None:
        self._clock = clock
        self._database = database
        self._on = on
        self._local = LocalLimiter(clock, on=on)
        self._exhausted: dict[tuple[str, str], _ExhaustedWindow] = {}
        self._swept_ms = clock.now_ms()

    async def spend(self, name: str, owner: str) -> int:
        """See `Limiter`."""
        rate = RATES[name]
        if not self._on or rate.within_ms < SHARED_FROM_MS:
            return await self._local.spend(name, owner)
        now_ms = self._clock.now_ms()
        if now_ms - self._swept_ms >= SWEEP_EVERY_MS:
            await self._sweep(now_ms)
        spending = RateRequest(name, owner, rate.at_most, rate.within_ms, now_ms)
        full = self._exhausted.get((name, owner))
        if full is not None and now_ms < full.until_ms:
            by_store = replace(spending, at_ms=now_ms + full.ahead_ms)
            wait_ms = await self._database.read(rate_wait_ms, by_store)
            if wait_ms:
                raise _rate_exceeded_error(rate, wait_ms)
        spent = await self._database.join_from_request(count_rate_requests, spending)
        if spent.wait_ms:
            self._exhausted[name, owner] = _ExhaustedWindow(now_ms + spent.wait_ms, spent.at_ms - now_ms)
            raise _rate_exceeded_error(rate, spent.wait_ms)
        self._exhausted.pop((name, owner), None)
        return spent.at_ms

    async def check(self, name: str, owner: str) -> None:
        """See `Limiter`. Uses our clock, which is close to the store's."""
        rate = RATES[name]
        if not self._on or rate.within_ms < SHARED_FROM_MS:
            await self._local.check(name, owner)
            return
        spending = RateRequest(name, owner, rate.at_most, rate.within_ms, self._clock.now_ms())
        wait_ms = await self._database.read(rate_wait_ms, spending)
        if wait_ms:
            raise _rate_exceeded_error(rate, wait_ms)

    async def refund(self, name: str, owner: str, at_ms: int) -> None:
        """See `Limiter`."""
        rate = RATES[name]
        if not self._on or rate.within_ms < SHARED_FROM_MS:
            await self._local.refund(name, owner, at_ms)
            return
        await self._database.join_from_request(refund_rates, RateRefund(name, owner, rate.within_ms, at_ms))

    async def _sweep(self, now_ms: int) -> None:
        self._swept_ms = now_ms
        self._exhausted = {key: full for key, full in self._exhausted.items() if full.until_ms > now_ms}
        await self._database.write(delete_idle_windows, now_ms, _MAX_SWEPT)


@dataclass(frozen=True, slots=True)
class _ExhaustedWindow:
    """An exhausted window.

    Attributes:
        until_ms: its end by our clock, unless something is refunded.
        ahead_ms: how far the store's clock is ahead of ours.
    """

    until_ms: int
    ahead_ms: int


def _rate_exceeded_error(rate: Rate, wait_ms: int) -> ApiError:
    wait_s = max(1, -(-wait_ms // 1000))
    return ApiError(
        ErrorCode.TOO_MANY_REQUESTS,
        f"At most {rate.at_most} {rate.counts} in {rate.within_ms // 1000} s per {rate.per}; try again in {wait_s} s.",
        retry_after_s=wait_s,
    )
