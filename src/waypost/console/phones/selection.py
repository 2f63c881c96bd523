"""The phones that are shown side by side and the chat that is open on each, as the page's URL has them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from waypost.console.web.not_found import NotMeant
from waypost.console.web.page_request import PageRequest

MOST: Final = 6
"""Handsets side by side; three fit on most screens."""
LIST: Final = "-"
"""Value instead of a chat: the phone shows its list of chats."""
_PUNCTUATION: Final = str.maketrans("", "", "+ -().\u00a0\u202f")


@dataclass(frozen=True, slots=True)
class Place:
    """One selected phone.

    Attributes:
        phone: its digits.
        chat: the digits of the business number whose chat is open; `LIST`; or empty: not chosen.
    """

    phone: str
    chat: str = ""


@dataclass(frozen=True, slots=True)
class Places:
    """All phones of the page, left to right."""

    all: tuple[Place, ...] = ()

    @classmethod
    def of(cls, visit: PageRequest) -> Self:
        """Return the selection in the query; invalid parts are left out."""
        shown = visit.request.query_params.getlist("show")
        phones = [digits_of(text) for text in ",".join(shown).split(",") if text.strip()]
        chats = [text.strip() for text in visit.query("chats").split(",")]
        selected: dict[str, Place] = {}
        for index, phone in enumerate(phones):
            chat = chats[index] if index < len(chats) else ""
            if phone and phone not in selected and len(selected) < MOST:
                is_valid = chat == LIST or (chat.isascii() and chat.isdigit() and len(chat) <= 15)
                selected[phone] = Place(phone, chat if is_valid else "")
        return cls(tuple(selected.values()))

    @property
    def phones(self) -> tuple[str, ...]:
        """Return the digits of each phone."""
        return tuple(place.phone for place in self.all)

    @property
    def query(self) -> str:
        """Return the query of the page's URL: `show=…&chats=…`."""
        chats = ",".join(place.chat for place in self.all)
        return f"show={','.join(self.phones)}" + (f"&chats={chats}" if chats.strip(",") else "")

    @property
    def address(self) -> str:
        """Return the path and query of the page."""
        return f"/phones?{self.query}" if self.all else "/phones"

    def chat_of(self, phone: str) -> str:
        """Return the chat that is open on a phone."""
        return next((place.chat for place in self.all if place.phone == phone), "")

    def showing(self, phone: str, chat: str) -> Self:
        """Return the selection with a chat open on a phone, which is added if it is not selected."""
        if phone in self.phones:
            return type(self)(tuple(Place(phone, chat) if one.phone == phone else one for one in self.all))
        return type(self)((*self.all, Place(phone, chat))[-MOST:])

    def without(self, phone: str) -> Self:
        """Return the selection without one phone."""
        return type(self)(tuple(one for one in self.all if one.phone != phone))


def digits_of(text: str) -> str:
    """Return the digits of a phone number as typed; empty if it is not a phone number.

    Source: decision 0084.
    """
    digits = text.translate(_PUNCTUATION)
    return digits if digits.isascii() and digits.isdigit() and 8 <= len(digits) <= 15 else ""


def needed(text: str) -> str:
    """Return the digits of a required phone number.

    Raises:
        NotMeant: it is not a phone number.
    """
    digits = digits_of(text)
    if not digits:
        raise NotMeant(
            f"“{text.strip()[:40]}” is not a phone number.",
            "Enter 8 to 15 digits, starting with the country code, such as +1 555 000 2009.",
        )
    return digits


def asked(number_ids: Sequence[str]) -> str:
    """Return the query of the control API that selects business numbers."""
    return "&".join(f"phone_number_id={number_id}" for number_id in number_ids)
