"""Phones: every number exists as one as soon as it is messaged or named."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from waypost.simulator.live_settings import LiveSettings
from waypost.simulator.store import Row, Store

KEEP_PHONE: Final = "INSERT OR REPLACE INTO phones VALUES (?,?,?,?)"
ADD_PHONE: Final = "INSERT OR IGNORE INTO phones VALUES (?,?,?,?)"
_KEEP_USER: Final = "INSERT OR REPLACE INTO phone_users VALUES (?,?,?,?)"
_STOP: Final = "INSERT OR IGNORE INTO marketing_stops VALUES (?,?)"
_RESUME: Final = "DELETE FROM marketing_stops WHERE phone_number_id=? AND phone=?"
KEEP_WINDOW: Final = "INSERT OR REPLACE INTO windows VALUES (?,?,?)"
WINDOW_MS: Final = 24 * 3600 * 1000  # Source: facts 4.1
ONLY_WHEN_TOLD: Final = -1
_PUNCTUATION: Final = str.maketrans("", "", "+ -()")


@dataclass(frozen=True)
class Phone:
    """One handset.

    Args:
        name: the profile name; what its owner calls himself.
        deliver_after_ms: from `sent` to `delivered`; None: as the settings say.
        read_after_ms: from `delivered` to `read`; None: as the settings say; `ONLY_WHEN_TOLD`.
        user_id: the business-scoped user id; empty: businesses see none.
        username: shown beside the profile name; may be empty.
        shows_number: whether businesses see the number; without it there is a user id.
    """

    phone: str
    name: str
    deliver_after_ms: int | None = None
    read_after_ms: int | None = None
    user_id: str = ""
    username: str = ""
    shows_number: bool = True

    def contact(self) -> dict[str, Any]:
        """The phone's owner, as webhooks name a sender. Source: facts 7.2, 7.5."""
        profile = {"name": self.name} | ({"username": self.username} if self.username else {})
        return {"profile": profile, **self.named("wa_id", "user_id")}

    def named(self, number: str, user_id: str) -> dict[str, str]:
        """Who this is: the number and the user id, under the given names, as far as seen."""
        who = {number: self.phone} if self.shows_number else {}
        return who | ({user_id: self.user_id} if self.user_id else {})

    def row(self) -> Row:
        """The phone's row, for `KEEP_PHONE` and `ADD_PHONE`."""
        return (self.phone, self.name, self.deliver_after_ms, self.read_after_ms)


class Phones:
    """Every phone and every open window; kept in memory, written through to the file."""

    def __init__(self, store: Store, settings: LiveSettings) -> None:
        self._store = store
        self._settings = settings
        self._wrote_ms: dict[tuple[str, str], int] = {}
        self._stops: set[tuple[str, str]] = set()
        self._by_user_id: dict[str, str] = {}
        self.all: dict[str, Phone] = {}

    async def open(self) -> None:
        """Read everything from the file."""
        for row in await self._store.rows("SELECT * FROM phones ORDER BY rowid"):
            self.all[row[0]] = Phone(*row)
        for phone, user_id, username, shows_number in await self._store.rows(
            "SELECT * FROM phone_users"
        ):
            if phone in self.all:
                self._learn(
                    replace(
                        self.all[phone],
                        user_id=user_id,
                        username=username,
                        shows_number=bool(shows_number),
                    )
                )
        for number_id, phone in await self._store.rows("SELECT * FROM marketing_stops"):
            self._stops.add((number_id, phone))
        for number_id, phone, wrote_ms in await self._store.rows("SELECT * FROM windows"):
            self._wrote_ms[number_id, phone] = wrote_ms

    def meet(self, phone: str) -> tuple[Phone, bool]:
        """The phone of a number, and whether it is new; then the caller writes its row."""
        known = self.all.get(phone)
        if known is not None:
            return known, False
        new = self.all[phone] = Phone(phone, f"Phone {phone[-4:]}")
        return new, True

    async def change(self, phone: str, changes: Mapping[str, Any]) -> Phone:
        """Set a phone's name, habits or identity; makes the phone if it is new."""
        known, _ = self.meet(phone)
        changed = replace(known, **changes)
        user: Row = (phone, changed.user_id, changed.username, int(changed.shows_number))
        await self._store.run([(KEEP_PHONE, changed.row()), (_KEEP_USER, user)])
        self._learn(changed)
        return changed

    def of_user_id(self, user_id: str) -> Phone | None:
        """The phone with a business-scoped user id."""
        return self.all.get(self._by_user_id.get(user_id, ""))

    async def want_marketing(self, phone_number_id: str, phone: str, *, wants: bool) -> None:
        """Whether the phone's owner wants a number's marketing; everybody does until they say so."""
        pair = (phone_number_id, phone)
        await self._store.run([(_RESUME if wants else _STOP, pair)])
        (self._stops.discard if wants else self._stops.add)(pair)

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

    def window_is_open(self, phone_number_id: str, phone: str, at_ms: int) -> bool:
        """Whether the phone wrote to the number in the last 24 hours."""
        return self._wrote_ms.get((phone_number_id, phone), -WINDOW_MS) > at_ms - WINDOW_MS

    def forget(self) -> None:
        """Drop everything from memory; the file is the caller's matter."""
        self.all.clear()
        self._wrote_ms.clear()
        self._stops.clear()
        self._by_user_id.clear()

    def _learn(self, phone: Phone) -> None:
        before = self.all.get(phone.phone)
        if before is not None:
            self._by_user_id.pop(before.user_id, None)
        self.all[phone.phone] = phone
        if phone.user_id:
            self._by_user_id[phone.user_id] = phone.phone


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
