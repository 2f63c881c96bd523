"""The block lists of business numbers: the phones that each has blocked."""

from dataclasses import dataclass
from typing import Final

from waypost.base.clock import Clock
from waypost.simulator.accounts.accounts import Accounts
from waypost.simulator.keyed_store import CachedKeyedValues
from waypost.simulator.phones.phones import Phones
from waypost.simulator.store import Store

MAX_BLOCKED_USERS: Final = 64_000  # Source: the operator's page "Block users"


@dataclass(frozen=True)
class BlockFailure:
    """The reason why a phone could not be blocked: an error code and its details."""

    code: int
    details: str


class BlockLists:
    """The block list of every number; in memory, and written through to the file."""

    def __init__(self, store: Store, clock: Clock, accounts: Accounts, phones: Phones) -> None:
        self._store = store
        self._clock = clock
        self._accounts = accounts
        self._phones = phones
        self._blocked_ms = CachedKeyedValues(store, "block", int)  # of a business number, by phone

    def is_blocked(self, phone_number_id: str, phone: str) -> bool:
        """True if a number has blocked a phone: then neither receives messages from the other."""
        return phone in self._blocked_ms.values_of(phone_number_id)

    def blocked_phones(self, phone_number_id: str) -> list[str]:
        """Return the phones that a number has blocked."""
        return list(self._blocked_ms.values_of(phone_number_id))

    async def add(self, phone_number_id: str, phones: list[str]) -> dict[str, BlockFailure]:
        """Block phones; return those that could not be blocked, each with its reason.

        Source: the operator's page "Block users": only users who wrote in the last 24 hours.
        """
        now_ms = self._clock.now_ms()
        failed = {
            phone: failure
            for phone in phones
            if (failure := self._find_failure(phone_number_id, phone, now_ms)) is not None
        }
        blocked = [phone for phone in phones if phone not in failed]
        await self._store.run([self._blocked_ms.save_statement(now_ms, phone, phone_number_id) for phone in blocked])
        for phone in blocked:
            self._blocked_ms.put(now_ms, phone, phone_number_id)
        return failed

    async def remove(self, phone_number_id: str, phones: list[str]) -> None:
        """Unblock phones; those that are not blocked are ignored."""
        await self._store.run([self._blocked_ms.delete_statement(phone, phone_number_id) for phone in phones])
        for phone in phones:
            self._blocked_ms.pop(phone, phone_number_id)

    def _find_failure(self, phone_number_id: str, phone: str, now_ms: int) -> BlockFailure | None:
        if self.is_blocked(phone_number_id, phone):
            return None
        if phone in self._accounts.numbers_by_digits:
            return BlockFailure(139100, "Another WhatsApp Business account cannot be blocked.")
        if not self._phones.window_is_open(phone_number_id, phone, now_ms):
            return BlockFailure(131047, "Only users who have messaged in the last 24 hours can be blocked.")
        if len(self._blocked_ms.values_of(phone_number_id)) >= MAX_BLOCKED_USERS:
            return BlockFailure(139101, f"A block list has at most {MAX_BLOCKED_USERS} users.")
        return None
