"""The phones that are shown side by side and the chat that is open on each, as the page's URL has them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from waypost.console.web.errors import InvalidPageRequest
from waypost.console.web.page_request import PageRequest

MAX_HANDSETS: Final = 6
"""Handsets side by side; three fit on most screens."""
CHAT_LIST: Final = "-"
"""Value instead of a chat: the phone shows its list of chats."""
_PUNCTUATION: Final = str.maketrans("", "", "+ -().\u00a0\u202f")


@dataclass(frozen=True, slots=True)
class SelectedPhone:
    """One selected phone.

    Attributes:
        phone: its digits.
        chat: the digits of the business number whose chat is open; `CHAT_LIST`; or empty: not chosen.
    """

    phone: str
    chat: str = ""


@dataclass(frozen=True, slots=True)
class PhoneSelection:
    """All phones of the page, left to right."""

    all: tuple[SelectedPhone, ...] = ()

    @classmethod
    def parse(cls, page_request: PageRequest) -> Self:
        """Return the selection in the query; invalid parts are left out."""
        shown = page_request.request.query_params.getlist("show")
        phones = [parse_digits(text) for text in ",".join(shown).split(",") if text.strip()]
        chats = [text.strip() for text in page_request.query("chats").split(",")]
        selected: dict[str, SelectedPhone] = {}
        for index, phone in enumerate(phones):
            chat = chats[index] if index < len(chats) else ""
            if phone and phone not in selected and len(selected) < MAX_HANDSETS:
                is_valid = chat == CHAT_LIST or (chat.isascii() and chat.isdigit() and len(chat) <= 15)
                selected[phone] = SelectedPhone(phone, chat if is_valid else "")
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

    def open_chat_of(self, phone: str) -> str:
        """Return the chat that is open on a phone."""
        return next((place.chat for place in self.all if place.phone == phone), "")

    def select(self, phone: str, chat: str) -> Self:
        """Return the selection with a chat open on a phone, which is added if it is not selected."""
        if phone in self.phones:
            return type(self)(tuple(SelectedPhone(phone, chat) if one.phone == phone else one for one in self.all))
        return type(self)((*self.all, SelectedPhone(phone, chat))[-MAX_HANDSETS:])

    def remove(self, phone: str) -> Self:
        """Return the selection without one phone."""
        return type(self)(tuple(one for one in self.all if one.phone != phone))


def parse_digits(text: str) -> str:
    """Return the digits of a phone number as typed; empty if it is not a phone number.

    Source: decision 0084.
    """
    digits = text.translate(_PUNCTUATION)
    return digits if digits.isascii() and digits.isdigit() and 8 <= len(digits) <= 15 else ""


def require_digits(text: str) -> str:
    """Return the digits of a required phone number.

    Raises:
        InvalidPageRequest: it is not a phone number.
    """
    digits = parse_digits(text)
    if not digits:
        raise InvalidPageRequest(
            f"“{text.strip()[:40]}” is not a phone number.",
            "Enter 8 to 15 digits, starting with the country code, such as +1 555 000 2009.",
        )
    return digits


def number_ids_query(number_ids: Sequence[str]) -> str:
    """Return the query of the control API that selects business numbers."""
    return "&".join(f"phone_number_id={number_id}" for number_id in number_ids)
