"""Phones: every number becomes one when it is first messaged or named; block lists, and messages that fail."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from msgspec.structs import replace

from waypost.base.clock import DAY_MS
from waypost.simulator.state.fleets import Fleet, find_fleet, find_fleet_phone, fleet_window_ms
from waypost.simulator.state.phone import SimulatedPhone, decode_user_id, encode_user_id
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind
from waypost.simulator.storage.store import Statement

PHONE_KIND: Final = "phone"
"""The kind of phones in the table `state`."""
NUMBER_KNOWN_MS: Final = 30 * DAY_MS  # Source: facts 7.5
WINDOW_MS: Final = DAY_MS  # Source: facts 4.1
PHONES: Final = StoredKind(
    PHONE_KIND,
    SimulatedPhone,
    keys_of=lambda phone: [(name, key) for name in ("user_id", "wa_id") if (key := getattr(phone, name))],
)
WINDOWS: Final = StoredKind("window", int)
"""When a phone last wrote: of a business number, by phone."""
_PUNCTUATION: Final = str.maketrans("", "", "+ -()")


def find_number(state: SimulatorState, digits: str) -> str:
    """Return the number of the phone with a WhatsApp id, or the digits if no phone has such an id."""
    known = state.cached(PHONES).by_further_key.get(("wa_id", digits))
    return digits if known is None else known.phone


def find_or_create_phone(state: SimulatorState, phone: str) -> SimulatedPhone:
    """Return a number's phone as businesses see it; a new one is on disk before what the caller writes next.

    A number that no country has gets no phone: the result is not kept.
    """
    known = find_phone(state, phone)
    if phone not in state.values(PHONES) and find_fleet(state, phone) is None and is_phone_number(phone):
        state.cached(PHONES).put(known, phone)
        state.store.write_soon([PHONES.add_statement(known, phone)])
    return fill_user_id(state, known)


def find_phone(state: SimulatorState, phone: str) -> SimulatedPhone:
    """Return the stored phone, or the phone as it would be created; creates none."""
    known = state.values(PHONES).get(phone) or find_fleet_phone(state, phone)
    return known or SimulatedPhone(phone, f"Phone {phone[-4:]}")


def fill_user_id(state: SimulatorState, phone: SimulatedPhone) -> SimulatedPhone:
    """Return the phone with the user id that businesses see, by default derived from the number."""
    if phone.user_id or not state.settings.value.user_ids:
        return phone
    return _fill_user_id(phone)


def show_to_business(state: SimulatorState, phone: SimulatedPhone, phone_number_id: str, at_ms: int) -> SimulatedPhone:
    """Return a phone as one business number sees it: with a hidden number too, if the business knows it.

    It knows it for 30 days after contact by the number, and for ever with a contact book.

    Source: facts 7.5; the operator's page "Business-scoped user IDs".
    """
    known_ms = None if phone.shows_number else dict(phone.number_known).get(phone_number_id)
    if known_ms is None:
        return phone
    is_known = state.settings.value.contact_book or at_ms - known_ms < NUMBER_KNOWN_MS
    return replace(phone, shows_number=True) if is_known else phone


def note_contact(state: SimulatorState, phone: str, phone_number_id: str, at_ms: int) -> None:
    """Record a send to a phone by its number, if that is hidden; on disk before what the caller writes next."""
    known = state.values(PHONES).get(phone)
    if known is not None and not known.shows_number:
        numbers = tuple(sorted((dict(known.number_known) | {phone_number_id: at_ms}).items()))
        state.store.write_soon([set_phone_members(state, phone, {"number_known": numbers})])


def set_phone_members(state: SimulatorState, phone: str, changes: Mapping[str, Any]) -> Statement:
    """Set members of a phone in memory, new or known; return the statement that stores it."""
    changed = replace(find_phone(state, phone), **changes)
    state.cached(PHONES).put(changed, phone)
    return PHONES.save_statement(changed, phone)


def find_phone_by_user_id(state: SimulatorState, user_id: str) -> SimulatedPhone | None:
    """Return the phone with a user id, its own or derived from its number; None if there is none."""
    digits = decode_user_id(user_id) or ""
    phone = state.cached(PHONES).by_further_key.get(("user_id", user_id)) or state.values(PHONES).get(digits)
    phone = phone or (find_fleet_phone(state, digits) if digits else None)
    visible = None if phone is None else fill_user_id(state, phone)
    return visible if visible is not None and visible.user_id == user_id else None


def change_phone_list(
    state: SimulatorState, phone: str, member: str, phone_number_id: str, *, is_listed: bool
) -> Statement:
    """Change one of a phone's lists of business numbers in memory; return the statement that stores it."""
    others = set(getattr(find_phone(state, phone), member)) - {phone_number_id}
    return set_phone_members(state, phone, {member: tuple(sorted({*others, phone_number_id} if is_listed else others))})


def delivery_delays_ms(state: SimulatorState, phone: SimulatedPhone) -> tuple[int, int | None]:
    """Return the delays until delivery and until reading; None if the phone does not read automatically."""
    settings = state.settings.value
    deliver_after_ms = phone.deliver_after_ms
    read_after_ms = phone.read_after_ms
    return (
        settings.deliver_after_ms if deliver_after_ms is None else deliver_after_ms,
        settings.read_after_ms if read_after_ms is None else None if read_after_ms < 0 else read_after_ms,
    )


def window_until_ms(state: SimulatorState, phone_number_id: str, phone: str) -> int | None:
    """Return when the phone's window closes, or has closed; None if it never wrote."""
    wrote_ms = state.values(WINDOWS, phone_number_id).get(phone)
    made_ms = fleet_window_ms(state, phone_number_id, phone)
    times_ms = [time_ms for time_ms in (wrote_ms, made_ms) if time_ms is not None]
    return max(times_ms) + WINDOW_MS if times_ms else None


def window_is_open(state: SimulatorState, phone_number_id: str, phone: str, at_ms: int) -> bool:
    """True if the phone wrote to the number in the last 24 hours."""
    until_ms = window_until_ms(state, phone_number_id, phone)
    return until_ms is not None and until_ms > at_ms


def reset_fleet_phones(transaction: Transaction, fleet: Fleet) -> None:
    """Delete the changes of a fleet's phones, and their windows."""
    for kind in (PHONES, WINDOWS):
        transaction.delete_range(kind, *fleet.range)


@lru_cache(maxsize=16_384)
def _fill_user_id(phone: SimulatedPhone) -> SimulatedPhone:
    return replace(phone, user_id=encode_user_id(phone.phone))


def is_phone_number(digits: str) -> bool:
    """True if a country may have a number of these digits: no country code begins with 0. Source: facts 4.1, E.164."""
    return not digits.startswith("0")


def phone_digits(text: object) -> str | None:
    """Return the digits of a number that a phone may have: 8 to 15, the first not 0; None for any other text."""
    digits = recipient_digits(text)
    return digits if digits is not None and is_phone_number(digits) else None


def recipient_digits(text: object) -> str | None:
    """Return the digits of a recipient; None if they are not 8 to 15.

    Spaces, hyphens, brackets and plus signs are removed. Source: facts 4.1.
    """
    if not isinstance(text, str):
        return None
    if 8 <= len(text) <= 15 and text.isascii() and text.isdigit():
        return text
    digits = text.translate(_PUNCTUATION)
    return digits if 8 <= len(digits) <= 15 and digits.isascii() and digits.isdigit() else None
