"""Filters of the list of conversations and of one conversation, parsed from the query string."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Final
from urllib.parse import urlencode

from waypost.console.messages.filters import MAX_FILTER_CHARS, MESSAGE_ID, check_searched_text, parse_cursor
from waypost.console.web.zones import DisplayZone
from waypost.store.console.conversations import ConversationFilter
from waypost.store.messages.lists import MessageCursor
from waypost.store.messages.search import MIN_NUMBER_DIGITS
from waypost.store.messages.threads import ThreadFilter, ThreadPart

# fmt: off
CONVERSATION_STATES: Final = (
    # query value  label
    ("",           "All"),
    ("unread",     "Unread"),
    ("open",       "Window open"),
    ("failed",     "Last message failed"),
)
THREAD_PARTS: Final = (
    (ThreadPart.ALL,      "All messages"),
    (ThreadPart.SENT,     "Sent"),
    (ThreadPart.RECEIVED, "Received"),
    (ThreadPart.FAILED,   "Failed"),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class ConversationListFilter:
    """Filter of the list of conversations.

    Attributes:
        given: values of the form fields.
        search: conditions of the search.
        wrong: validation errors by field; if there are any, nothing is searched.
        before: cursor at which the page begins.
    """

    given: Mapping[str, str]
    search: ConversationFilter
    wrong: Mapping[str, str]
    before: MessageCursor | None

    @property
    def query(self) -> str:
        """The fields with a value, as a query string."""
        return urlencode({name: text for name, text in self.given.items() if text})


@dataclass(frozen=True, slots=True)
class ThreadPageFilter:
    """Filter of one conversation; the attributes are those of `ConversationListFilter`."""

    given: Mapping[str, str]
    search: ThreadFilter
    wrong: Mapping[str, str]
    before: MessageCursor | None

    @property
    def query(self) -> str:
        """The fields with a value, as a query string."""
        return urlencode({name: text for name, text in self.given.items() if text})

    @property
    def is_newest(self) -> bool:
        """True if the page shows the newest messages, unfiltered: then it is updated live."""
        return self.before is None and not self.query and not self.wrong


def read_conversation_filter(fields: Mapping[str, str], now_ms: int) -> ConversationListFilter:
    """Return the filter of the list from a query string; unknown fields are ignored.

    Digits are a part of a number, an id of a message or a recipient is that, and anything else is part of a name.
    """
    given = _texts(fields, "q", "state")
    wrong: dict[str, str] = {}
    text, state = given["q"], given["state"]
    number = name = found_id = None
    digits = re.sub(r"[\s+().-]", "", text)
    if digits.isascii() and digits.isdecimal():
        number = digits
        if len(digits) < MIN_NUMBER_DIGITS:
            wrong["q"] = f"Enter at least {MIN_NUMBER_DIGITS} digits of a number, a name, or a complete ID."
    elif MESSAGE_ID.fullmatch(text):
        found_id = text
    elif text:
        name = text
    if state not in {value for value, _ in CONVERSATION_STATES}:
        wrong["state"] = "Unknown filter."
    search = ConversationFilter(
        number=number,
        id=found_id,
        name=name,
        open_at_ms=now_ms if state == "open" else None,
        is_unread=state == "unread",
        has_failed=state == "failed",
    )
    return ConversationListFilter(given, search, wrong, parse_cursor(fields.get("before", "")))


def read_thread_filter(fields: Mapping[str, str], zone: DisplayZone, *, show_text: bool) -> ThreadPageFilter:
    """Return the filter of one conversation from a query string; unknown fields are ignored.

    Args:
        fields: query parameters.
        zone: that a day is of.
        show_text: false: only whole words are found.
    """
    given = _texts(fields, "text", "part", "day")
    wrong: dict[str, str] = {}
    if given["part"] not in set(ThreadPart):
        wrong["part"] = "Unknown filter."
    check_searched_text(given["text"], wrong, show_text=show_text)
    from_ms, until_ms = _parse_day(given["day"], zone, wrong)
    search = ThreadFilter(
        part=ThreadPart.ALL if "part" in wrong else ThreadPart(given["part"]),
        text=given["text"],
        whole_words=bool(given["text"]) and not show_text,
        from_ms=from_ms,
        until_ms=until_ms,
    )
    return ThreadPageFilter(given, search, wrong, parse_cursor(fields.get("before", "")))


def _texts(fields: Mapping[str, str], *names: str) -> dict[str, str]:
    return {name: fields.get(name, "").strip()[:MAX_FILTER_CHARS].replace("\0", "") for name in names}


def _parse_day(text: str, zone: DisplayZone, wrong: dict[str, str]) -> tuple[int | None, int | None]:
    """Return the beginning and the end of a day; with a change of summer time it has 23 or 25 hours."""
    if not text:
        return None, None
    try:
        day = date.fromisoformat(text)
        return zone.midnight_ms(day), zone.midnight_ms(day + timedelta(days=1))
    except (ValueError, OverflowError):
        wrong["day"] = "Use the format 2026-11-22."
        return None, None
