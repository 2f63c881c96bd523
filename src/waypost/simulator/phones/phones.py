"""Phones: every number exists as one as soon as it is messaged or named."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

from msgspec.structs import replace

from waypost.simulator.keyed_store import LoadedKind
from waypost.simulator.phones.fleets import Fleet, Fleets
from waypost.simulator.phones.phone import Phone
from waypost.simulator.phones.user_ids import phone_of, user_id_of
from waypost.simulator.settings import LiveSettings
from waypost.simulator.store import Statement, Store

PHONE: Final = "phone"
"""Their kind in the table of what is found by its key."""
WINDOW_MS: Final = 24 * 3600 * 1000  # Source: facts 4.1
_PUNCTUATION: Final = str.maketrans("", "", "+ -()")


class Phones:
    """Every phone and every open window; kept in memory, written through to the file."""

    def __init__(self, store: Store, settings: LiveSettings, fleets: Fleets) -> None:
        self._store = store
        self._settings = settings
        self._fleets = fleets
        self._wrote_ms = LoadedKind(store, "window", int)  # of a business number, by phone
        self._phones = LoadedKind(store, PHONE, Phone)
        self._by_user_id = self._phones.index(lambda phone: (phone.user_id,) if phone.user_id else ())
        self.all = self._phones.all

    def meet(self, phone: str) -> tuple[Phone, bool]:
        """The phone of a number as businesses see it, and whether it is new: then it is to be added."""
        known = self.all.get(phone) or self._fleets.phone_of(phone)
        if known is not None:
            return self.seen(known), False
        new = Phone(phone, f"Phone {phone[-4:]}")
        self.learn(new)
        return self.seen(new), True

    def known(self, phone: str) -> Phone:
        """The phone as it is kept, or as it would be made; makes none."""
        known = self.all.get(phone) or self._fleets.phone_of(phone)
        return known or Phone(phone, f"Phone {phone[-4:]}")

    def seen(self, phone: Phone) -> Phone:
        """The phone with the user id that businesses see, which most have from their number."""
        if phone.user_id or not self._settings.value.user_ids:
            return phone
        return _with_user_id(phone)

    async def change(self, phone: str, changes: Mapping[str, Any]) -> Phone:
        """Set a phone's name, habits or identity; makes the phone if it is new."""
        changed = replace(self.known(phone), **changes)
        self.learn(changed)
        await self._store.run([self.save_statement(changed)])
        return self.seen(changed)

    def of_user_id(self, user_id: str) -> Phone | None:
        """The phone with a business-scoped user id, of its own or from its number."""
        digits = phone_of(user_id) or ""
        phone = self._by_user_id.get(user_id) or self.all.get(digits)
        phone = phone or (self._fleets.phone_of(digits) if digits else None)
        seen = None if phone is None else self.seen(phone)
        return seen if seen is not None and seen.user_id == user_id else None

    def listed(self, phone: str, member: str, phone_number_id: str, *, is_listed: bool) -> Phone:
        """The phone with a business number in one of its lists of them, or without."""
        known = self.known(phone)
        others = set(getattr(known, member)) - {phone_number_id}
        return replace(known, **{member: tuple(sorted({*others, phone_number_id} if is_listed else others))})

    def habits_ms(self, phone: Phone) -> tuple[int, int | None]:
        """After how long the phone gets a message, and after how long it reads it, if by itself."""
        settings = self._settings.value
        deliver = phone.deliver_after_ms
        read = phone.read_after_ms
        return (
            settings.deliver_after_ms if deliver is None else deliver,
            settings.read_after_ms if read is None else None if read < 0 else read,
        )

    def wrote(self, phone_number_id: str, phone: str, at_ms: int) -> None:
        """The phone has written to the number: its window is open."""
        self._wrote_ms.put(at_ms, phone, phone_number_id)

    def window_statement(self, phone_number_id: str, phone: str, at_ms: int) -> Statement:
        """The statement that keeps that the phone has written to the number."""
        return self._wrote_ms.save_statement(at_ms, phone, phone_number_id)

    def window_until_ms(self, phone_number_id: str, phone: str) -> int | None:
        """When the window that the phone opened closes, or has closed; None where it never wrote."""
        wrote_ms = self._wrote_ms.of(phone_number_id).get(phone)
        made_ms = self._fleets.wrote_ms(phone_number_id, phone)
        times_ms = [one for one in (wrote_ms, made_ms) if one is not None]
        return max(times_ms) + WINDOW_MS if times_ms else None

    def window_is_open(self, phone_number_id: str, phone: str, at_ms: int) -> bool:
        """Whether the phone wrote to the number in the last 24 hours."""
        wrote_ms = self._wrote_ms.of(phone_number_id).get(phone)
        since_ms = at_ms - WINDOW_MS
        if wrote_ms is not None and wrote_ms > since_ms:
            return True
        made_ms = self._fleets.wrote_ms(phone_number_id, phone)
        return made_ms is not None and made_ms > since_ms

    def forget_fleet(self, fleet: Fleet) -> None:
        """Drop from memory what the phones of a fleet had become."""
        for collection in (self._phones, self._wrote_ms):
            collection.pop_range(*fleet.range)

    def forget_fleet_statements(self, fleet: Fleet) -> list[Statement]:
        """The statements that drop from the file what the phones of a fleet had become."""
        return [one.delete_range_statement(*fleet.range) for one in (self._phones, self._wrote_ms)]

    def learn(self, phone: Phone) -> None:
        """A phone is as given from now on; writing it is the caller's matter."""
        self._phones.put(phone, phone.phone)

    def save_statement(self, phone: Phone) -> Statement:
        """The statement that keeps a phone."""
        return self._phones.save_statement(phone, phone.phone)

    def add_statement(self, phone: str) -> Statement:
        """The statement that keeps a new phone."""
        return self._phones.add_statement(self.known(phone), phone)


@lru_cache(maxsize=16_384)
def _with_user_id(phone: Phone) -> Phone:
    return replace(phone, user_id=user_id_of(phone.phone))


def phone_digits(text: object) -> str | None:
    """The digits of a phone number, or None when it is not 8 to 15 of them.

    Spaces, hyphens, brackets and a plus are taken out. Source: facts 4.1.
    """
    if not isinstance(text, str):
        return None
    if 8 <= len(text) <= 15 and text.isascii() and text.isdigit():
        return text
    digits = text.translate(_PUNCTUATION)
    return digits if 8 <= len(digits) <= 15 and digits.isascii() and digits.isdigit() else None
