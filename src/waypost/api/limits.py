"""Limits of requests: the windows of the table of rates, failed logins, and requests that end in an error."""

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from waypost.base.clock import Clock
from waypost.base.telemetry.counters import LimitedRequests
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.rates import RATES as RATES
from waypost.domain.rates import Rate
from waypost.store.database import Database
from waypost.store.requests.rates import (
    RateRefund,
    RateRequest,
    count_rate_requests,
    delete_idle_windows,
    rate_wait_ms,
    refund_rates,
)

SWEEP_EVERY_MS: Final = 60_000
"""The interval at which empty windows are deleted."""
SHARED_FROM_MS: Final = 60_000
"""The shortest window that all processes with a common store share; shorter ones are per process."""
_MAX_SWEPT: Final = 1000


class Limiter:
    """Sliding windows. Requests that end in an error do not count: what they spent is refunded.

    Windows are in memory, of this process alone. If several processes share a store, long ones are rows of it
    (decision 0045). One of those that this process knows to be exhausted is first checked by a read, so that a client
    that keeps sending does not slow down the others' writes.

    Args:
        clock: the clock of the windows, if the store has no clock of its own.
        database: the store that the processes share; None: there is one process.
        on: False disables all rates.
        rates: the rows of the table of rates, with those that a setting changes.

    Attributes:
        limited: counts the requests of apps that it has limited.
    """

    def __init__(
        self, clock: Clock, database: Database | None = None, *, on: bool = True, rates: Mapping[str, Rate] = RATES
    ) -> None:
        self._clock = clock
        self._database = database
        self._on = on
        self._rates = rates
        self.limited = LimitedRequests(clock)
        self._windows: dict[tuple[str, str], _LocalWindow] = {}
        self._exhausted: dict[tuple[str, str], _ExhaustedWindow] = {}
        self._swept_ms = clock.now_ms()

    async def spend(self, name: str, owner: str, own_rate: Rate | None = None) -> int:
        """Spend one request of a rate.

        Args:
            name: the row of the table.
            owner: the window's route and app, address or other owner.
            own_rate: the owner's own numbers; None: those of the table.

        Returns:
            The time it was spent, for `refund`.

        Raises:
            ApiError: the rate is used up; with the seconds to wait.
        """
        if not self._on:
            return 0
        rate, now_ms = own_rate or self._rates[name], self._clock.now_ms()
        if now_ms - self._swept_ms >= SWEEP_EVERY_MS:
            await self._sweep(now_ms)
        database = self._database_of(rate)
        if database is not None:
            return await self._spend_in_store(database, name, owner, rate, now_ms)
        window = self._windows.get((name, owner))
        if window is None:
            window = self._windows[name, owner] = _LocalWindow()
        window.within_ms, times = rate.within_ms, window.times
        while times and times[0] <= now_ms - rate.within_ms:
            times.popleft()
        if len(times) >= rate.at_most:  # more, if the rate was higher before
            raise _rate_exceeded_error(rate, times[-rate.at_most] + rate.within_ms - now_ms)
        times.append(now_ms)
        return now_ms

    async def _spend_in_store(self, database: Database, name: str, owner: str, rate: Rate, now_ms: int) -> int:
        spending = RateRequest(name, owner, rate.at_most, rate.within_ms, now_ms)
        full = self._exhausted.get((name, owner))
        if full is not None and now_ms < full.until_ms:
            wait_ms = await database.read(rate_wait_ms, replace(spending, at_ms=now_ms + full.ahead_ms))
            if wait_ms:
                raise _rate_exceeded_error(rate, wait_ms)
        spent = await database.join_from_request(count_rate_requests, spending)
        if spent.wait_ms:
            self._exhausted[name, owner] = _ExhaustedWindow(now_ms + spent.wait_ms, spent.at_ms - now_ms)
            raise _rate_exceeded_error(rate, spent.wait_ms)
        self._exhausted.pop((name, owner), None)
        return spent.at_ms

    async def check(self, name: str, owner: str) -> None:
        """Check that the rate is not used up; spend nothing. Uses our clock, which is close to the store's.

        Raises:
            ApiError: it is used up.
        """
        if not self._on:
            return
        rate, now_ms = self._rates[name], self._clock.now_ms()
        database, wait_ms = self._database_of(rate), 0
        if database is not None:
            spending = RateRequest(name, owner, rate.at_most, rate.within_ms, now_ms)
            wait_ms = await database.read(rate_wait_ms, spending)
        elif window := self._windows.get((name, owner)):
            alive = [at_ms for at_ms in window.times if at_ms > now_ms - rate.within_ms]
            wait_ms = alive[0] + rate.within_ms - now_ms if len(alive) >= rate.at_most else 0
        if wait_ms:
            raise _rate_exceeded_error(rate, wait_ms)

    async def refund(self, name: str, owner: str, at_ms: int, own_rate: Rate | None = None) -> None:
        """Return the request spent at that time, with the same numbers: it ended in another error."""
        rate = own_rate or self._rates[name]
        database = self._database_of(rate)
        if self._on and database is not None:
            await database.join_from_request(refund_rates, RateRefund(name, owner, rate.within_ms, at_ms))
        elif (window := self._windows.get((name, owner))) and at_ms in window.times:
            window.times.remove(at_ms)

    def _database_of(self, rate: Rate) -> Database | None:
        """Return the store that has the windows of a rate; None if they are in memory."""
        return self._database if rate.within_ms >= SHARED_FROM_MS else None

    async def _sweep(self, now_ms: int) -> None:
        """Delete empty windows."""
        self._swept_ms = now_ms
        self._windows = {
            key: window
            for key, window in self._windows.items()
            if window.times and window.times[-1] > now_ms - window.within_ms
        }
        self._exhausted = {key: full for key, full in self._exhausted.items() if full.until_ms > now_ms}
        if self._database is not None:
            await self._database.write(delete_idle_windows, now_ms, _MAX_SWEPT)


@dataclass(slots=True)
class _LocalWindow:
    """The times of requests within a window, oldest first, and its length at the newest one."""

    times: deque[int] = field(default_factory=deque[int])
    within_ms: int = 0


@dataclass(frozen=True, slots=True)
class _ExhaustedWindow:
    """An exhausted window."""

    until_ms: int  # its end by our clock, unless something is refunded
    ahead_ms: int  # how far the store's clock is ahead of ours


def _rate_exceeded_error(rate: Rate, wait_ms: int) -> ApiError:
    wait_s = max(1, -(-wait_ms // 1000))
    return ApiError(
        ErrorCode.TOO_MANY_REQUESTS,
        f"At most {rate.at_most} {rate.counts} in {rate.within_ms // 1000} s per {rate.per}; try again in {wait_s} s.",
        retry_after_s=wait_s,
    )


_WINDOWS: Final = ("login_failures", "login_failures_address", "login_failures_email")


@dataclass(frozen=True, slots=True)
class LoginAttempt:
    """One attempt, which counts as a failure until it is refunded."""

    limiter: Limiter
    spent: tuple[tuple[str, str, int], ...]

    async def refund(self) -> None:
        """Stop counting the attempt: it succeeded."""
        for name, key, at_ms in self.spent:
            await self.limiter.refund(name, key, at_ms)


class LoginLimits:
    """Counts failed attempts at the API and in the console together.

    Args:
        limiter: one that is always on, whatever the settings of rates.
    """

    def __init__(self, limiter: Limiter) -> None:
        self._limiter = limiter

    async def spend(self, email: str, address: str) -> LoginAttempt:
        """Count an attempt as failed before it is checked, so that concurrent attempts cannot exceed the limit.

        Args:
            email: in lower case.
            address: the address that the client is counted by.

        Raises:
            ApiError: too many failures; this attempt is then not counted.
        """
        return await self._spend(zip(_WINDOWS, (f"{email} {address}", address, email), strict=True))

    async def check_admin_attempts(self, address: str) -> None:
        """Check that an admin token from this address may be verified.

        Raises:
            ApiError: too many wrong tokens; the right one is then rejected too.
        """
        await self._limiter.check("admin_failures", address)

    async def may_audit_rejection(self) -> bool:
        """True if a rejected request without a valid credential gets an entry in the audit log.

        Their number is limited, so that outsiders cannot fill the log.
        """
        try:
            await self._limiter.spend("audited_rejections", "")
        except ApiError:
            return False
        return True

    async def count_wrong_admin_token(self, address: str) -> LoginAttempt:
        """Count an attempt to use the admin API as failed.

        Raises:
            ApiError: too many failures.
        """
        return await self._spend([("admin_failures", address)])

    async def _spend(self, windows: Iterable[tuple[str, str]]) -> LoginAttempt:
        spent: tuple[tuple[str, str, int], ...] = ()
        for name, key in windows:
            try:
                spent = (*spent, (name, key, await self._limiter.spend(name, key)))
            except ApiError:
                await LoginAttempt(self._limiter, spent).refund()
                raise
        return LoginAttempt(self._limiter, spent)


BUDGET_BYTES: Final = 20_000_000
REFILLED_IN_S: Final = 60
MIN_REQUEST_BYTES: Final = 1_000
"""What the smallest request counts as: 20,000 at once, and then 333 a second."""
SPENT_DELAY_S: Final = 1.0
"""How much later the rejection of an owner without a budget is sent: reading a large body costs something too."""
MAX_OWNERS: Final = 10_000
"""Owners whose budgets are kept; beyond, the one that was rejected longest ago is dropped."""


@dataclass(slots=True)
class _Account:
    spent: float
    at_ms: int


class RejectionBudgets:
    """The budgets of one process.

    Args:
        clock: its steady clock refills them.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._accounts: dict[Hashable, _Account] = {}  # the least recently rejected first

    def check(self, owner: Hashable) -> None:
        """Check that an owner, a partner's id or an address, has some budget left.

        Raises:
            ApiError: 429, it has none; with the seconds to wait.
        """
        account = self._accounts.get(owner)
        if account is None:
            return
        over = self._spent_now(account) - BUDGET_BYTES
        if over >= 0:
            wait_s = int(over / BUDGET_BYTES * REFILLED_IN_S) + 1
            per = "partner" if isinstance(owner, int) else "address"
            raise ApiError(
                ErrorCode.TOO_MANY_REQUESTS,
                f"At most {BUDGET_BYTES // 1_000_000} MB of requests that end in an error in {REFILLED_IN_S} s per "
                f"{per}; correct them, and try again in {wait_s} s.",
                retry_after_s=wait_s,
            )

    def is_spent(self, owner: Hashable) -> bool:
        """True if an owner has no budget left."""
        account = self._accounts.get(owner)
        return account is not None and self._spent_now(account) >= BUDGET_BYTES

    def spend(self, owner: Hashable, size_bytes: int) -> None:
        """Count a rejected request."""
        account = self._accounts.pop(owner, None)
        spent = 0.0 if account is None else self._spent_now(account)
        self._accounts[owner] = _Account(spent + max(size_bytes, MIN_REQUEST_BYTES), self._clock.real_ms())
        if len(self._accounts) > MAX_OWNERS:
            del self._accounts[next(iter(self._accounts))]

    def _spent_now(self, account: _Account) -> float:
        elapsed_ms = max(self._clock.real_ms() - account.at_ms, 0)
        return max(account.spent - elapsed_ms * BUDGET_BYTES / (REFILLED_IN_S * 1000), 0.0)
