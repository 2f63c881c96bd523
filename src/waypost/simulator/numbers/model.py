"""Business numbers: how they are saved, the restrictions of their sending, and their block lists."""

from collections.abc import Iterable
from typing import Final, NamedTuple

from msgspec.structs import replace

from waypost.base.json_values import integer_or_none, text_or_none
from waypost.simulator.state.accounts import NUMBERS, Number
from waypost.simulator.state.business_apps import BUSINESS_APPS
from waypost.simulator.state.phones import window_is_open
from waypost.simulator.state.records import SENDING_RESTRICTION
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

MAX_BLOCKED_USERS: Final = 64_000
BLOCKS: Final = StoredKind("block", int)
"""Since when a number has blocked a phone: of a number, by phone."""


def is_blocked(state: SimulatorState, phone_number_id: str, phone: str) -> bool:
    """True if a number has blocked a phone."""
    return phone in state.values(BLOCKS, phone_number_id)


def block_phones(transaction: Transaction, phone_number_id: str, phones: Iterable[str]) -> dict[str, tuple[int, str]]:
    """Block phones whose owners wrote in the last 24 hours; return the error code and details of each other one."""
    state, now_ms = transaction.state, transaction.state.clock.now_ms()
    failed: dict[str, tuple[int, str]] = {}
    blocked = set(transaction.values(BLOCKS, phone_number_id))
    for phone in phones:
        if phone not in blocked and phone in state.accounts.numbers_by_digits:
            failed[phone] = (139100, "Another WhatsApp Business account cannot be blocked.")
        elif phone not in blocked and not window_is_open(state, phone_number_id, phone, now_ms):
            failed[phone] = (131047, "Only users who have messaged in the last 24 hours can be blocked.")
        elif phone not in blocked and len(blocked) >= MAX_BLOCKED_USERS:
            failed[phone] = (139101, f"A block list has at most {MAX_BLOCKED_USERS} users.")
        else:
            transaction.save(BLOCKS, now_ms, phone, phone_number_id)
            blocked.add(phone)
    return failed


MAX_ALLOWED_PHONES: Final = 5  # Source: facts 8, "Test numbers"


class SendingRestriction(NamedTuple):
    """One row: a restriction that stops a number from sending."""

    code: int  # the error code of its messages
    status: str  # of the number's node
    details: str  # the operator's text
    fails_later: bool = False  # a status reports the error, after the message was accepted
    only_marketing: bool = False  # it stops only marketing templates


UNREGISTERED: Final = "UNREGISTERED"
NEVER_REGISTERED: Final = {"name": UNREGISTERED, "is_new": True}
"""The restriction of a number that was added and not yet registered: its node is pending."""
SENDING_RESTRICTIONS: Final = {  # Source: facts 5.2, modes S and A; the names are ours
    UNREGISTERED: SendingRestriction(
        133010, "DISCONNECTED", "The phone number is not registered on the WhatsApp Business Platform."
    ),
    "DELETED": SendingRestriction(33, "DELETED", "The business phone number has been deleted."),
    "LOCKED": SendingRestriction(
        131031, "BANNED", "The WhatsApp Business account has been restricted or disabled for violating a policy."
    ),
    "POLICY_BLOCKED": SendingRestriction(
        368, "RESTRICTED", "The WhatsApp Business account has been temporarily blocked for violating a policy."
    ),
    "ACCESS_DENIED": SendingRestriction(131005, "CONNECTED", "The permission was not granted or has been removed."),
    "MAINTENANCE": SendingRestriction(
        131057, "CONNECTED", "The account is in maintenance mode, perhaps because its throughput is being upgraded."
    ),
    "UNAVAILABLE": SendingRestriction(131016, "CONNECTED", "A service is temporarily unavailable."),
    "BAD_CERTIFICATE": SendingRestriction(
        131045, "DISCONNECTED", "The message failed because of a phone number registration error."
    ),
    "MARKETING_DISABLED": SendingRestriction(
        131063, "CONNECTED", "Marketing templates are disabled on Cloud API.", only_marketing=True
    ),
    "UNPAID": SendingRestriction(
        131042, "CONNECTED", "There was an error related to the payment method.", fails_later=True
    ),
    "NAME_NOT_APPROVED": SendingRestriction(
        131037, "CONNECTED", "The 555 number needs an approved display name before it can send.", fails_later=True
    ),
    "COUNTRY_RESTRICTED": SendingRestriction(
        130497, "CONNECTED", "The business may not message users in this country.", fails_later=True
    ),
    "SPAM_LIMITED": SendingRestriction(
        131048,
        "FLAGGED",
        "There are restrictions on how many messages can be sent from this number, because earlier ones were blocked "
        "or reported.",
        fails_later=True,
    ),
}


def find_restriction(state: SimulatorState, phone_number_id: str) -> SendingRestriction | None:
    """Return the restriction that stops the number now; None if there is none."""
    return SENDING_RESTRICTIONS.get(find_restriction_name(state, phone_number_id) or "")


def find_restriction_name(state: SimulatorState, phone_number_id: str) -> str | None:
    """Return the name of the restriction that stops the number now; None if there is none."""
    record = state.record(phone_number_id, SENDING_RESTRICTION)
    if not record:
        return None
    until_ms = integer_or_none(record.get("until_ms"))
    if until_ms is not None and until_ms <= state.clock.now_ms():
        return None
    return text_or_none(record.get("name"))


async def save_number(state: SimulatorState, number: Number) -> None:
    """Create or update a number; another one with its digits is deleted.

    Whether it is on the app is decided by its connection, if it ever had one.
    """

    def write(transaction: Transaction) -> None:
        previous = transaction.find(NUMBERS, number.phone_number_id)
        is_on_app = number.is_on_business_app
        if previous is not None and transaction.find(BUSINESS_APPS, number.phone_number_id) is not None:
            is_on_app = previous.is_on_business_app
        for known in transaction.values(NUMBERS).values():
            if known.phone_number == number.phone_number and known.phone_number_id != number.phone_number_id:
                transaction.delete(NUMBERS, known.phone_number_id)
        transaction.save(NUMBERS, replace(number, is_on_business_app=is_on_app), number.phone_number_id)

    await state.transact(write)
