"""Block lists of numbers: neither the number nor a blocked phone receives messages from the other.

Source: the operator's page "Block users".
"""

from collections.abc import Iterable
from typing import Final

from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

MAX_BLOCKED_USERS: Final = 64_000
BLOCKS: Final = StoredKind("block", int)
"""Since when a number has blocked a phone: of a number, by phone."""


def is_blocked(state: SimulatorState, phone_number_id: str, phone: str) -> bool:
    """True if a number has blocked a phone."""
    return phone in state.values(BLOCKS, phone_number_id)


async def block_phones(
    state: SimulatorState, phone_number_id: str, phones: Iterable[str]
) -> dict[str, tuple[int, str]]:
    """Block phones whose owners wrote in the last 24 hours; return the error code and details of each other one."""
    now_ms = state.clock.now_ms()

    def write(transaction: Transaction) -> dict[str, tuple[int, str]]:
        failed: dict[str, tuple[int, str]] = {}
        blocked = set(transaction.values(BLOCKS, phone_number_id))
        for phone in phones:
            if phone not in blocked and phone in state.accounts.numbers_by_digits:
                failed[phone] = (139100, "Another WhatsApp Business account cannot be blocked.")
            elif phone not in blocked and not state.phones.window_is_open(phone_number_id, phone, now_ms):
                failed[phone] = (131047, "Only users who have messaged in the last 24 hours can be blocked.")
            elif phone not in blocked and len(blocked) >= MAX_BLOCKED_USERS:
                failed[phone] = (139101, f"A block list has at most {MAX_BLOCKED_USERS} users.")
            else:
                transaction.save(BLOCKS, now_ms, phone, phone_number_id)
                blocked.add(phone)
        return failed

    return await state.transact(write)


async def unblock_phones(state: SimulatorState, phone_number_id: str, phones: Iterable[str]) -> None:
    """Unblock phones; those that are not blocked are ignored."""

    def write(transaction: Transaction) -> None:
        for phone in phones:
            transaction.delete(BLOCKS, phone, phone_number_id)

    await state.transact(write)
