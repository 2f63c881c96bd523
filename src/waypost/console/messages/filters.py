"""Filters of the lists of messages, parsed from the query string, with validation errors."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from waypost.console.web.zones import ZONE_FIELD, DisplayZone, read_time_field
from waypost.domain.message import MessageState
from waypost.domain.session_messages import SESSION_KINDS
from waypost.store.encoding import MIN_WORD_CHARS, can_be_searched_hidden
from waypost.store.messages.lists import MessageCursor
from waypost.store.messages.search import MIN_NUMBER_DIGITS, MessageFilter

# fmt: off
MESSAGE_KINDS: Final = (
    # query value     stored kinds                           label
    ("template",    ("template", "template_passthrough", "marketing_template", "marketing_passthrough"),  "Template"),
    *((kind.stored_as, (kind.stored_as,), kind.kind_label) for kind in SESSION_KINDS),
    ("passthrough", ("passthrough",),                      "Passthrough"),
)
FILTER_TIMES: Final = (
    # query value     label            milliseconds; None: not a fixed length
    ("",       "Any time",     None),
    ("hour",   "Last hour",    3_600_000),
    ("today",  "Today",        None),
    ("week",   "Last 7 days",  7 * 86_400_000),
    ("custom", "Custom range", None),
)
# fmt: on
MESSAGE_STATES: Final = tuple(one.value for one in MessageState)
MESSAGE_FILTER_FIELDS: Final = ("q", "state", "template", "code", "kind", "time", "from", "until", "zone", "text")
MAX_FILTER_CHARS: Final = 200
HIDDEN_TEXT_HINT: Final = (
    f"Texts are hidden: enter whole words of {MIN_WORD_CHARS} or more characters. Each search is audited."
)
MESSAGE_ID: Final = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F-]{27}|wamid\.\S+|[A-Z]{2}\.[A-Za-z0-9.]*[0-9][A-Za-z0-9.]*", re.ASCII
)
"""Ids of messages, ours and the operator's, and business-scoped ids of recipients, such as `US.1349`."""
_CURSOR: Final = re.compile(r"([0-9]{1,15})\.([!-~]{0,500})")


@dataclass(frozen=True, slots=True)
class MessageListFilter:
    """Filter of a list of messages.

    Attributes:
        given: values of the form fields.
        search: conditions of the search.
        wrong: validation errors by field; if there are any, nothing is searched.
        before: cursor at which the page begins.
    """

    given: Mapping[str, str]
    search: MessageFilter
    wrong: Mapping[str, str]
    before: MessageCursor | None = None

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
        return any(self.given[name] for name in ("template", "code", "kind", "from", "until"))

    @property
    def is_id_alone(self) -> bool:
        """True if the only condition is a message id."""
        return self.search.name is not None and self.search == MessageFilter(name=self.search.name)


def read_filter(fields: Mapping[str, str], now_ms: int, zone: DisplayZone, *, show_text: bool) -> MessageListFilter:
    """Return the filter of a query string.

    Args:
        fields: query parameters; unknown ones are ignored.
        now_ms: end of "last hour".
        zone: the reader's: of "today", and of times without a zone of their own.
        show_text: false: only whole words are found.
    """
    given = {name: fields.get(name, "").strip()[:MAX_FILTER_CHARS].replace("\0", "") for name in MESSAGE_FILTER_FIELDS}
    wrong: dict[str, str] = {}
    number, name, person = _parse_recipient(given["q"], wrong)
    from_ms, until_ms = _parse_times(given, now_ms, zone, wrong)
    if given["state"] and given["state"] not in MESSAGE_STATES:
        wrong["state"] = "Unknown status."
    if given["code"] and not re.fullmatch(r"\d{1,9}", given["code"], re.ASCII):
        wrong["code"] = "Enter a number, such as 131049."
    kinds = {kind: stored for kind, stored, _ in MESSAGE_KINDS}
    if given["kind"] and given["kind"] not in kinds:
        wrong["kind"] = "Unknown message type."
    check_searched_text(given["text"], wrong, show_text=show_text)
    search = (
        MessageFilter()
        if wrong
        else MessageFilter(
            number=number,
            name=name,
            person=person,
            state=given["state"] or None,
            template_id=given["template"] or None,
            code=int(given["code"]) if given["code"] else None,
            kinds=kinds.get(given["kind"], ()),
            text=given["text"] or None,
            whole_words=bool(given["text"]) and not show_text,
            from_ms=from_ms,
            until_ms=until_ms,
        )
    )
    return MessageListFilter(given, search, wrong, parse_cursor(fields.get("before", "")))


def check_searched_text(text: str, wrong: dict[str, str], *, show_text: bool) -> None:
    """Add an error if a text may not be searched for in hidden texts: short words would reveal them step by step."""
    if text and not show_text and not can_be_searched_hidden(text):
        wrong["text"] = HIDDEN_TEXT_HINT


def parse_cursor(text: str) -> MessageCursor | None:
    """Return the cursor of a query parameter; None if it is not a cursor."""
    match = _CURSOR.fullmatch(text)
    return MessageCursor(int(match[1]), match[2]) if match else None


def encode_cursor(cursor: MessageCursor) -> str:
    """Return a cursor as a query parameter."""
    return f"{cursor.accepted_on_ms}.{cursor.id}"


def _parse_recipient(text: str, wrong: dict[str, str]) -> tuple[str | None, str | None, str | None]:
    """Return the digits of a phone number, or the id of a message or recipient, or part of a recipient's name."""
    if not text:
        return None, None, None
    digits = re.sub(r"[\s+().-]", "", text)
    if not (digits.isascii() and digits.isdecimal()):
        return (None, text, None) if MESSAGE_ID.fullmatch(text) else (None, None, text)
    if len(digits) < MIN_NUMBER_DIGITS:
        wrong["q"] = f"Enter at least {MIN_NUMBER_DIGITS} digits of a number, a name, or a complete ID."
        return None, None, None
    return digits, None, None


def _parse_times(
    given: dict[str, str], now_ms: int, zone: DisplayZone, wrong: dict[str, str]
) -> tuple[int | None, int | None]:
    """Return the time range; in `given` its times are changed to the reader's zone."""
    from_ms, until_ms = (_parse_time(given, name, zone, wrong) for name in ("from", "until"))
    given[ZONE_FIELD] = zone.name if given["from"] or given["until"] else ""
    time = given["time"]
    if time == "today":
        return zone.day_start_ms(now_ms), None
    if time == "custom" or (not time and given[ZONE_FIELD]):
        if from_ms is not None and until_ms is not None and from_ms >= until_ms:
            wrong["until"] = "The end must be after the start."
        return from_ms, until_ms
    lengths = {name: length_ms for name, _, length_ms in FILTER_TIMES}
    if time not in lengths:
        wrong["time"] = "Unknown time range."
    length_ms = lengths.get(time)
    return (None if length_ms is None else now_ms - length_ms), None


def _parse_time(given: dict[str, str], name: str, zone: DisplayZone, wrong: dict[str, str]) -> int | None:
    try:
        at_ms, given[name] = read_time_field(given, name, zone, is_end=name == "until")
    except ValueError:
        wrong[name] = "Use the format 2026-11-22T14:05."
        return None
    return at_ms
