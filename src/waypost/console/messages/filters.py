"""What the address of the list asks for: a filter, and what is wrong with it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlencode

from waypost.base.clock import DAY_MS
from waypost.domain.message import MessageState
from waypost.domain.session_messages import SESSION_KINDS
from waypost.store.messages.lists import Place
from waypost.store.messages.search import LEAST_DIGITS, Wanted

# fmt: off
KINDS: Final = (
    # in the address  in the store                           label
    ("template",    ("template", "template_passthrough"),  "Template"),
    *((kind.stored_as, (kind.stored_as,), kind.kind_label) for kind in SESSION_KINDS),
    ("passthrough", ("passthrough",),                      "In the operator's words"),
)
TIMES: Final = (
    # in the address  label            as milliseconds; None: not so many
    ("",              "Any time",      None),
    ("hour",          "Last hour",     3_600_000),
    ("today",         "Today (UTC)",   None),
    ("week",          "Last 7 days",   7 * 86_400_000),
    ("custom",        "From … to …",   None),
)
# fmt: on
STATES: Final = tuple(one.value for one in MessageState)
FIELDS: Final = ("q", "state", "template", "code", "kind", "time", "from", "until", "text")
MOST_TEXT: Final = 200
_PLACE: Final = re.compile(r"([0-9]{1,15})\.([!-~]{0,500})")


@dataclass(frozen=True, slots=True)
class Filter:
    """One.

    Attributes:
        given: what the fields of the form hold.
        wanted: what is searched for.
        wrong: by field, what is wrong with it; then nothing is searched for.
        before: where the page begins.
    """

    given: Mapping[str, str]
    wanted: Wanted
    wrong: Mapping[str, str]
    before: Place | None = None

    @property
    def query(self) -> str:
        """The fields that are set, as a query."""
        return urlencode({name: text for name, text in self.given.items() if text})

    @property
    def is_set(self) -> bool:
        """Whether anything is filtered."""
        return bool(self.query)

    @property
    def has_more(self) -> bool:
        """Whether a field beyond the first three is set."""
        return any(self.given[name] for name in ("template", "code", "kind", "from", "until", "text"))

    @property
    def is_id_alone(self) -> bool:
        """Whether it asks for one message by its id and for nothing else."""
        return self.wanted.name is not None and self.wanted == Wanted(name=self.wanted.name)


def read_filter(fields: Mapping[str, str], now_ms: int) -> Filter:
    """A filter from the fields of an address.

    Args:
        fields: as they came; what is unknown is left out.
        now_ms: what "last hour" ends at.
    """
    given = {name: fields.get(name, "").strip()[:MOST_TEXT].replace("\0", "") for name in FIELDS}
    wrong: dict[str, str] = {}
    number, name = _sought(given["q"], wrong)
    from_ms, until_ms = _times(given, now_ms, wrong)
    if given["text"] and from_ms is None and "from" not in wrong:
        wrong["text"] = "Choose a time too: words are looked for in the messages of a time only."
    if given["state"] and given["state"] not in STATES:
        wrong["state"] = "There is no such state."
    if given["code"] and not re.fullmatch(r"\d{1,9}", given["code"], re.ASCII):
        wrong["code"] = "An error code is a number, such as 131049."
    kinds = {kind: stored for kind, stored, _ in KINDS}
    if given["kind"] and given["kind"] not in kinds:
        wrong["kind"] = "There is no such kind."
    wanted = (
        Wanted()
        if wrong
        else Wanted(
            number=number,
            name=name,
            state=given["state"] or None,
            template_id=given["template"] or None,
            code=int(given["code"]) if given["code"] else None,
            kinds=kinds.get(given["kind"], ()),
            text=given["text"] or None,
            from_ms=from_ms,
            until_ms=until_ms,
        )
    )
    return Filter(given, wanted, wrong, read_place(fields.get("before", "")))


def read_place(text: str) -> Place | None:
    """Where a page begins, from an address; None where it says nothing of the kind."""
    found = _PLACE.fullmatch(text)
    return Place(int(found[1]), found[2]) if found else None


def written_place(place: Place) -> str:
    """As it stands in an address."""
    return f"{place.accepted_on_ms}.{place.id}"


def _sought(text: str, wrong: dict[str, str]) -> tuple[str | None, str | None]:
    """A number's digits, or the name of a message or a recipient."""
    if not text:
        return None, None
    digits = re.sub(r"[\s+().-]", "", text)
    if not (digits.isascii() and digits.isdecimal()):
        return None, text
    if len(digits) < LEAST_DIGITS:
        wrong["q"] = f"Give at least {LEAST_DIGITS} digits of a number, or a whole id."
        return None, None
    return digits, None


def _times(given: Mapping[str, str], now_ms: int, wrong: dict[str, str]) -> tuple[int | None, int | None]:
    time = given["time"]
    if time == "today":
        return now_ms - now_ms % DAY_MS, None
    if time == "custom" or (not time and (given["from"] or given["until"])):
        from_ms, until_ms = (_moment(given, name, wrong) for name in ("from", "until"))
        if from_ms is not None and until_ms is not None and from_ms >= until_ms:
            wrong["until"] = "The end is not after the beginning."
        return from_ms, until_ms
    lengths = {name: length_ms for name, _, length_ms in TIMES}
    if time not in lengths:
        wrong["time"] = "There is no such time."
    length_ms = lengths.get(time)
    return (None if length_ms is None else now_ms - length_ms), None


def _moment(given: Mapping[str, str], name: str, wrong: dict[str, str]) -> int | None:
    if not given[name]:
        return None
    try:
        moment = datetime.fromisoformat(given[name])
        aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        return int(aware.timestamp() * 1000)
    except (ValueError, OverflowError):
        wrong[name] = "Write a time as 2026-11-22T14:05, in UTC."
        return None
