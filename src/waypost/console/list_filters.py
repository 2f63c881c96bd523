"""Filters of lists, read from the query string. A wrong text is no error page: its field says what is accepted."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import date, timedelta
from typing import Any, Final
from urllib.parse import urlencode

from waypost.base.clock import DAY_MS, HOUR_MS
from waypost.console.web.zones import ZONE_FIELD, DisplayZone, read_time_field
from waypost.store.encoding import MIN_WORD_CHARS, can_be_searched_hidden
from waypost.store.messages.lists import MessageCursor
from waypost.store.messages.search import MIN_NUMBER_DIGITS

MAX_FILTER_CHARS: Final = 200
HIDDEN_TEXT_HINT: Final = (
    f"Texts are hidden: enter whole words of {MIN_WORD_CHARS} or more characters. Each search is audited."
)
MESSAGE_ID: Final = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|wamid\.\S+|[A-Z]{2}\.[A-Za-z0-9.]*[0-9][A-Za-z0-9.]*", re.ASCII
)
"""Ids of messages, ours and the operator's, and business-scoped ids of recipients, such as `US.1349`."""
FILTER_TIMES: Final = {  # query value: label and length; None: days of the reader's zone, or no fixed length
    "": ("Any time", None),
    "hour": ("Last hour", HOUR_MS),
    "today": ("Today", None),
    "yesterday": ("Yesterday", None),
    "week": ("Last 7 days", 7 * DAY_MS),
    "custom": ("Custom range", None),
}
_CURSOR: Final = re.compile(r"([0-9]{1,15})\.([!-~]{0,500})")
_PUNCTUATION: Final = re.compile(r"[\s+().-]")

Options = Sequence[tuple[str, str]]
Members = Mapping[str, Any]
"""Members of the store's filter."""


@dataclass(frozen=True, slots=True)
class FilterContext:
    """Time, zone and right to see texts that the meaning of a filter depends on."""

    now_ms: int  # end of "last hour"
    zone: DisplayZone  # the reader's: of "today", and of times without a zone of their own
    show_text: bool  # false: only whole words are found


@dataclass(frozen=True, slots=True)
class FilterField:
    """One field of a filter."""

    name: str  # in the query
    label: str
    parse: str | Callable[[str, FilterContext], Members]  # a member; or its ValueError says what is accepted
    _: KW_ONLY
    kind: str = "text"  # of the input: search, text, number, date, select, or suggestions
    options: Options = ()  # values and labels of a select; texts that a field suggests
    placeholder: str = ""
    title: str = ""
    is_more: bool = False  # shown under "More filters"


@dataclass(frozen=True, slots=True)
class ListFilter:
    """The filter of one request."""

    given: Mapping[str, str]  # values of the form's fields, with times in the reader's zone
    search: Any  # the store's filter; that of everything if any field is wrong
    wrong: Mapping[str, str]  # errors by field; if there are any, nothing is searched
    before: str = ""  # cursor at which the page begins; empty: the newest page
    more: frozenset[str] = frozenset()

    @property
    def query(self) -> str:
        """The fields with a value, as a query string."""
        return urlencode({name: text for name, text in self.given.items() if text})

    @property
    def is_set(self) -> bool:
        """True if any field has a value."""
        return bool(self.query)

    @property
    def has_more(self) -> bool:
        """True if a field under "More filters" has a value."""
        return any(self.given[name] for name in self.more)


@dataclass(frozen=True, slots=True)
class FilterForm:
    """The fields of a filter, and the store's filter that they make."""

    fields: tuple[FilterField, ...]
    make: Callable[..., Any]  # called with the members that the fields return
    times: Mapping[str, str]  # fields of a range beside `time`: members of the store's filter; empty: no range

    @property
    def has_more(self) -> bool:
        """True if it has fields under "More filters"."""
        return any(field.is_more for field in self.fields)

    def read(self, query: Mapping[str, str], context: FilterContext) -> ListFilter:
        """Return the filter of a query string; unknown fields are ignored."""
        names = [*(field.name for field in self.fields), *(("time", *self.times, ZONE_FIELD) if self.times else ())]
        given = {name: query.get(name, "").strip()[:MAX_FILTER_CHARS].replace("\0", "") for name in names}
        wrong: dict[str, str] = {}
        members: dict[str, Any] = {}
        for field in self.fields:
            text = given[field.name]
            try:
                if text:
                    members |= {field.parse: text} if isinstance(field.parse, str) else field.parse(text, context)
            except ValueError as error:
                wrong[field.name] = str(error)
        if self.times:
            members |= self._read_range(given, context, wrong)
        more = {field.name for field in self.fields if field.is_more} | set(self.times)
        search = self.make() if wrong else self.make(**members)
        return ListFilter(given, search, wrong, query.get("before", ""), frozenset(more))

    def _read_range(self, given: dict[str, str], context: FilterContext, wrong: dict[str, str]) -> Members:
        """Return the time range; in `given` its times are changed to the reader's zone."""
        zone = context.zone
        start, end = self.times
        bounds: list[int | None] = []
        for name in self.times:
            at_ms = None
            try:
                at_ms, given[name] = read_time_field(given, name, zone, is_end=name == end)
            except ValueError:
                wrong[name] = "Use the format 2026-11-22T14:05."
            bounds.append(at_ms)
        given[ZONE_FIELD] = zone.name if given[start] or given[end] else ""
        today_ms = zone.day_start_ms(context.now_ms)
        match given["time"]:
            case "today":
                bounds = [today_ms, None]
            case "yesterday":
                bounds = [zone.day_start_ms(today_ms - 1), today_ms]
            case "" | "custom":
                if bounds[0] is not None and bounds[1] is not None and bounds[0] >= bounds[1]:
                    wrong[end] = "The end must be after the start."
            case time if time in FILTER_TIMES:
                bounds = [context.now_ms - (FILTER_TIMES[time][1] or 0), None]
            case _:
                wrong["time"] = unknown_value("time range", [label for label, _ in FILTER_TIMES.values()])
        return dict(zip(self.times.values(), bounds, strict=True))


def one_of(
    noun: str, options: Options, member: str, stored: Mapping[str, Any] = {}
) -> Callable[[str, FilterContext], Members]:
    """Return the parser of a select: the member of the store's filter is the chosen value, or what is stored for it."""

    def parse(text: str, _context: FilterContext) -> Members:
        values = {value: value for value, _ in options}
        if text not in values:
            raise ValueError(unknown_value(noun, [label for value, label in options if value]))
        return {member: stored.get(text, values[text])}

    return parse


def unknown_value(noun: str, accepted: Sequence[str]) -> str:
    """Return the error of a text that is none of the accepted ones."""
    return f"Unknown {noun}. Accepted: {', '.join(accepted)}."


def person_as(number: str, id: str, name: str) -> Callable[[str, FilterContext], Members]:
    """Return the parser of one field for a number, an id or a name.

    Args:
        number: member for consecutive digits of a phone number.
        id: member for the whole id of a message or recipient.
        name: member for a part of a recipient's name.
    """

    def parse(text: str, _context: FilterContext) -> Members:
        digits = _PUNCTUATION.sub("", text)
        if not (digits.isascii() and digits.isdecimal()):
            return {id if MESSAGE_ID.fullmatch(text) else name: text}
        if len(digits) < MIN_NUMBER_DIGITS:
            raise ValueError(f"Enter at least {MIN_NUMBER_DIGITS} digits of a number, a name, or a complete ID.")
        return {number: digits}

    return parse


def parse_searched_text(text: str, context: FilterContext) -> Members:
    """Return the search for a text; in hidden texts, short words would reveal them step by step."""
    if not context.show_text and not can_be_searched_hidden(text):
        raise ValueError(HIDDEN_TEXT_HINT)
    return {"text": text, "whole_words": not context.show_text}


def parse_day(text: str, context: FilterContext) -> Members:
    """Return the beginning and the end of a day; with a change of summer time it has 23 or 25 hours."""
    try:
        day = date.fromisoformat(text)
        return {"from_ms": context.zone.midnight_ms(day), "until_ms": context.zone.midnight_ms(day + timedelta(days=1))}
    except (ValueError, OverflowError):
        raise ValueError("Use the format 2026-11-22.") from None


def parse_cursor(text: str) -> MessageCursor | None:
    """Return the cursor of a query parameter; None if it is not a cursor."""
    match = _CURSOR.fullmatch(text)
    return MessageCursor(int(match[1]), match[2]) if match else None


def encode_cursor(cursor: MessageCursor | None) -> str:
    """Return a cursor as a query parameter; empty for None."""
    return "" if cursor is None else f"{cursor.accepted_on_ms}.{cursor.id}"
