"""Which phones are shown side by side, and which chat is open on each: what the page's address says."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from waypost.console.web.not_found import NotMeant
from waypost.console.web.page_request import PageRequest

MOST: Final = 6
"""Handsets side by side; three fit on most screens."""
LIST: Final = "-"
"""In place of a chat: the phone shows its list."""
_PUNCTUATION: Final = str.maketrans("", "", "+ -().\u00a0\u202f")


@dataclass(frozen=True, slots=True)
class Place:
    """One handset.

    Attributes:
        phone: its digits.
        chat: the digits of the business number whose chat is open; `LIST`, or empty: nobody has said.
    """

    phone: str
    chat: str = ""


@dataclass(frozen=True, slots=True)
class Places:
    """All handsets of the page, left to right."""

    all: tuple[Place, ...] = ()

    @classmethod
    def of(cls, visit: PageRequest) -> Self:
        """What the query says; what it cannot mean is left out."""
        shown = visit.request.query_params.getlist("show")
        phones = [digits_of(one) for one in ",".join(shown).split(",") if one.strip()]
        chats = [one.strip() for one in visit.query("chats").split(",")]
        found: dict[str, Place] = {}
        for at, phone in enumerate(phones):
            chat = chats[at] if at < len(chats) else ""
            if phone and phone not in found and len(found) < MOST:
                known = chat == LIST or (chat.isascii() and chat.isdigit() and len(chat) <= 15)
                found[phone] = Place(phone, chat if known else "")
        return cls(tuple(found.values()))

    @property
    def phones(self) -> tuple[str, ...]:
        """Their digits."""
        return tuple(place.phone for place in self.all)

    @property
    def query(self) -> str:
        """For an address: `show=…&chats=…`."""
        chats = ",".join(place.chat for place in self.all)
        return f"show={','.join(self.phones)}" + (f"&chats={chats}" if chats.strip(",") else "")

    @property
    def address(self) -> str:
        """Of the page."""
        return f"/phones?{self.query}" if self.all else "/phones"

    def chat_of(self, phone: str) -> str:
        """What is open on a phone."""
        return next((place.chat for place in self.all if place.phone == phone), "")

    def showing(self, phone: str, chat: str) -> Self:
        """With another chat open on a phone, which is added where it is not there yet."""
        if phone in self.phones:
            return type(self)(tuple(Place(phone, chat) if one.phone == phone else one for one in self.all))
        return type(self)((*self.all, Place(phone, chat))[-MOST:])

    def without(self, phone: str) -> Self:
        """With one phone put away."""
        return type(self)(tuple(one for one in self.all if one.phone != phone))


def digits_of(text: str) -> str:
    """The digits of what somebody has typed as a phone number; empty where it is none.

    Source: decision 0084.
    """
    digits = text.translate(_PUNCTUATION)
    return digits if digits.isascii() and digits.isdigit() and 8 <= len(digits) <= 15 else ""


def needed(text: str) -> str:
    """The same, where there has to be one.

    Raises:
        NotMeant: it is no number.
    """
    digits = digits_of(text)
    if not digits:
        raise NotMeant(
            f"“{text.strip()[:40]}” is not a phone number.",
            "Type 8 to 15 digits, with the country's code first, such as +1 555 000 2009.",
        )
    return digits


def asked(number_ids: Sequence[str]) -> str:
    """Business numbers as the control door takes them in a query."""
    return "&".join(f"phone_number_id={one}" for one in number_ids)
