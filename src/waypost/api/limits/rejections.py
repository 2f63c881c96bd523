"""The budget of rejected requests: bytes of requests that end in an error, by partner or, without one, by address.

A request that is rejected spends nothing of its route's rate (decision 0078). Without a budget of its own, a client
with one key could make the service read and check as much as its connections carry. It is measured in bytes, because
that is what reading and checking cost. No setting disables it: no client that works comes near it.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

from waypost.base.clock import Clock
from waypost.domain.errors import ApiError, ErrorCode

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
