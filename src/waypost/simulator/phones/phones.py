"""Phones: every number exists as one as soon as it is messaged or named."""

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from waypost.simulator.live_settings import LiveSettings
from waypost.simulator.phones.fleets import Fleet, Fleets
from waypost.simulator.phones.phone import Phone
from waypost.simulator.phones.user_ids import phone_of, user_id_of
from waypost.simulator.store import Row, Statement, Store

KEEP_PHONE: Final = "INSERT OR REPLACE INTO phones VALUES (?,?,?,?)"
ADD_PHONE: Final = "INSERT OR IGNORE INTO phones VALUES (?,?,?,?)"
_KEEP_USER: Final = "INSERT OR REPLACE INTO phone_users VALUES (?,?,?,?)"
_KEEP_HABITS: Final = "INSERT OR REPLACE INTO phone_habits VALUES (?,?,?,?,?)"
_BLOCK: Final = "INSERT OR IGNORE INTO phone_blocks VALUES (?,?)"
_UNBLOCK: Final = "DELETE FROM phone_blocks WHERE phone_number_id=? AND phone=?"
_STOP: Final = "INSERT OR IGNORE INTO marketing_stops VALUES (?,?)"
_RESUME: Final = "DELETE FROM marketing_stops WHERE phone_number_id=? AND phone=?"
KEEP_WINDOW: Final = "INSERT OR REPLACE INTO windows VALUES (?,?,?)"
WINDOW_MS: Final = 24 * 3600 * 1000  # Source: facts 4.1
_PUNCTUATION: Final = str.maketrans("", "", "+ -()")


class Phones:
    """Every phone and every open window; kept in memory, written through to the file."""

    def __init__(self, store: Store, settings: LiveSettings, fleets: Fleets) -> None:
        self._store = store
        self._settings = settings
        self._fleets = fleets
        self._wrote_ms: dict[tuple[str, str], int] = {}
        self._stops: set[tuple[str, str]] = set()
        self._blocked: set[tuple[str, str]] = set()
        self._by_user_id: dict[str, str] = {}
        self.all: dict[str, Phone] = {}

    async def open(self) -> None:
        """Read everything from the file."""
        for row in await self._store.rows("SELECT * FROM phones ORDER BY rowid"):
            self.all[row[0]] = Phone(*row)
        for phone, condition, *flags in await self._store.rows("SELECT * FROM phone_habits"):
            sends_read_receipts, has_chat_open, is_offline = map(bool, flags)
            self.all[phone] = replace(
                self.all[phone],
                condition=condition,
                sends_read_receipts=sends_read_receipts,
                has_chat_open=has_chat_open,
                is_offline=is_offline,
            )
        for phone, user_id, username, shows_number in await self._store.rows("SELECT * FROM phone_users"):
            if phone in self.all:
                self.learn(
                    replace(self.all[phone], user_id=user_id, username=username, shows_number=bool(shows_number))
                )
        for number_id, phone in await self._store.rows("SELECT * FROM marketing_stops"):
            self._stops.add((number_id, phone))
        for number_id, phone in await self._store.rows("SELECT * FROM phone_blocks"):
            self._blocked.add((number_id, phone))
        for number_id, phone, wrote_ms in await self._store.rows("SELECT * FROM windows"):
            self._wrote_ms[number_id, phone] = wrote_ms

    def meet(self, phone: str) -> tuple[Phone, bool]:
        """The phone of a number as businesses see it, and whether it is new: then its row is to be written."""
        known = self.all.get(phone) or self._fleets.phone_of(phone)
        if known is not None:
            return self.seen(known), False
        new = self.all[phone] = Phone(phone, f"Phone {phone[-4:]}")
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
        await self._store.run(keeping(changed))
        return self.seen(changed)

    def of_user_id(self, user_id: str) -> Phone | None:
        """The phone with a business-scoped user id, of its own or from its number."""
        digits = self._by_user_id.get(user_id) or phone_of(user_id) or ""
        phone = self.all.get(digits) or (self._fleets.phone_of(digits) if digits else None)
        seen = None if phone is None else self.seen(phone)
        return seen if seen is not None and seen.user_id == user_id else None

    def want_marketing(self, phone_number_id: str, phone: str, *, wants: bool) -> Statement:
        """The owner wants a number's marketing, or does not: the statement that keeps it.

        Everybody does until they say so.
        """
        pair = (phone_number_id, phone)
        (self._stops.discard if wants else self._stops.add)(pair)
        return (_RESUME if wants else _STOP, pair)

    def block(self, phone_number_id: str, phone: str, *, blocks: bool) -> Statement:
        """The owner blocks a business number, or takes that back: the statement that keeps it."""
        pair = (phone_number_id, phone)
        (self._blocked.add if blocks else self._blocked.discard)(pair)
        return (_BLOCK if blocks else _UNBLOCK, pair)

    def has_blocked(self, phone_number_id: str, phone: str) -> bool:
        """Whether the phone's owner has blocked the number."""
        return (phone_number_id, phone) in self._blocked

    def blocked_by(self, phone: str) -> list[str]:
        """The ids of the numbers that the phone's owner has blocked."""
        return sorted(number_id for number_id, blocked_by in self._blocked if blocked_by == phone)

    def stopped_by(self, phone: str) -> list[str]:
        """The ids of the numbers whose marketing the phone's owner has stopped."""
        return sorted(number_id for number_id, stopped_by in self._stops if stopped_by == phone)

    def wants_marketing(self, phone_number_id: str, phone: str) -> bool:
        """Whether the number's marketing reaches the phone."""
        return (phone_number_id, phone) not in self._stops

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
        self._wrote_ms[phone_number_id, phone] = at_ms

    def window_until_ms(self, phone_number_id: str, phone: str) -> int | None:
        """When the window that the phone opened closes, or has closed; None where it never wrote."""
        wrote_ms = self._wrote_ms.get((phone_number_id, phone))
        made_ms = self._fleets.wrote_ms(phone_number_id, phone)
        times_ms = [one for one in (wrote_ms, made_ms) if one is not None]
        return max(times_ms) + WINDOW_MS if times_ms else None

    def window_is_open(self, phone_number_id: str, phone: str, at_ms: int) -> bool:
        """Whether the phone wrote to the number in the last 24 hours."""
        wrote_ms = self._wrote_ms.get((phone_number_id, phone))
        since_ms = at_ms - WINDOW_MS
        if wrote_ms is not None and wrote_ms > since_ms:
            return True
        made_ms = self._fleets.wrote_ms(phone_number_id, phone)
        return made_ms is not None and made_ms > since_ms

    def forget(self) -> None:
        """Drop everything from memory; the file is the caller's matter."""
        self.all.clear()
        self._wrote_ms.clear()
        self._stops.clear()
        self._blocked.clear()
        self._by_user_id.clear()

    def forget_fleet(self, fleet: Fleet) -> None:
        """Drop from memory what the phones of a fleet had become."""
        first, last, size = fleet.range

        def is_of(phone: str) -> bool:
            return len(phone) == size and first <= phone <= last

        for phone in [phone for phone in self.all if is_of(phone)]:
            self._by_user_id.pop(self.all.pop(phone).user_id, None)
        self._wrote_ms = {key: ms for key, ms in self._wrote_ms.items() if not is_of(key[1])}
        self._stops = {key for key in self._stops if not is_of(key[1])}
        self._blocked = {key for key in self._blocked if not is_of(key[1])}

    def learn(self, phone: Phone) -> None:
        """A phone is as given from now on; writing it is the caller's matter."""
        before = self.all.get(phone.phone)
        if before is not None:
            self._by_user_id.pop(before.user_id, None)
        self.all[phone.phone] = phone
        if phone.user_id:
            self._by_user_id[phone.user_id] = phone.phone


def row_of(phone: Phone) -> Row:
    """A phone's row, for `ADD_PHONE`."""
    return (phone.phone, phone.name, phone.deliver_after_ms, phone.read_after_ms)


def keeping(phone: Phone) -> list[Statement]:
    """The statements that keep all of a phone."""
    digits = phone.phone
    habits: Row = (
        digits, phone.condition, phone.sends_read_receipts, phone.has_chat_open, phone.is_offline,
    )  # fmt: skip
    user: Row = (digits, phone.user_id, phone.username, int(phone.shows_number))
    return [(KEEP_PHONE, row_of(phone)), (_KEEP_USER, user), (_KEEP_HABITS, habits)]


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
