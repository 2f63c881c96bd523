"""Time zones of readers: times of pages in the reader's zone, times of form fields, and days.

A script stores the browser's zone in a cookie, because a request does not name it. Everything that shows a time
is rendered with it on the server: pages, their live updates, charts and filters. Without the cookie it is UTC.
"""

import re
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any, Final, cast
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from markupsafe import Markup

ZONE_COOKIE: Final = "waypost_zone"
"""The zone of the browser, set by `zone.js`."""
TIMES_COOKIE: Final = "waypost_times"
"""The reader's choice: `utc`, or the zone of the browser."""
TIME_CHOICES: Final = ("local", "utc")
ZONE_FIELD: Final = "zone"
"""Field of a form or query: the zone that its times are in, so that a link means the same to every reader."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MS: Final = timedelta(milliseconds=1)
MAX_TIME_MS: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // _MS
"""The last time that can be formatted."""
_TIME_MEMBER: Final = re.compile(r"(.*(?:^at|_at|_on|due|since|until|next_attempt))_ms")
_ZONE_NAME: Final = re.compile(r"[A-Za-z0-9_+-]{1,32}(/[A-Za-z0-9_+-]{1,32}){0,2}")


@dataclass(frozen=True, slots=True)
class DisplayZone:
    """A time zone that pages show times in."""

    name: str  # in the time zone database, such as `Asia/Kolkata`
    info: tzinfo  # its rules

    @property
    def label(self) -> str:
        """The name as pages write it: `America/New York`."""
        return self.name.replace("_", " ")

    def local_time(self, at_ms: int) -> datetime:
        """Return a time in this zone; at the end of the year 9999 in UTC, where the zone has no date."""
        at = _EPOCH + at_ms * _MS
        try:
            return at.astimezone(self.info)
        except OverflowError:
            return at

    def offset(self, at_ms: int) -> str:
        """Return the difference to UTC at a time, as `UTC+05:30`; `UTC` if there is none."""
        return _offset_text(self.local_time(at_ms))

    def exact(self, at_ms: int) -> str:
        """Return a time to the millisecond with its difference to UTC."""
        return _exact_text(self.local_time(at_ms))

    def midnight_ms(self, day: date) -> int:
        """Return the beginning of a day: its first moment, if summer time begins at midnight.

        Raises:
            OverflowError: the day is at an end of the calendar.
        """
        return (datetime(day.year, day.month, day.day, tzinfo=self.info).astimezone(UTC) - _EPOCH) // _MS

    def day_start_ms(self, at_ms: int) -> int:
        """Return the beginning of the day that a time is in."""
        return self.midnight_ms(self.local_time(at_ms).date())

    def field_value(self, at_ms: int | None) -> str:
        """Return the value of a `datetime-local` field, to the second; empty for None."""
        return "" if at_ms is None else self.local_time(at_ms).replace(tzinfo=None).isoformat(timespec="seconds")

    def parse_field_ms(self, text: str, *, is_end: bool = False) -> int:
        """Return the value of a `datetime-local` field in ms since the epoch, limited to 1970 to 9999.

        Args:
            text: with a difference to UTC, or else in this zone.
            is_end: of a range. A time that exists twice, when summer time ends, is the second then.

        Raises:
            ValueError: the text is not a time.
        """
        at = datetime.fromisoformat(text)
        at = at if at.tzinfo else at.replace(tzinfo=self.info, fold=int(is_end))
        try:
            return min(max((at.astimezone(UTC) - _EPOCH) // _MS, 0), MAX_TIME_MS)
        except OverflowError:
            return MAX_TIME_MS if at.year > _EPOCH.year else 0


UTC_ZONE: Final = DisplayZone("UTC", UTC)
_current: ContextVar[DisplayZone] = ContextVar("zone", default=UTC_ZONE)


@lru_cache(maxsize=512)
def find_zone(name: str) -> DisplayZone | None:
    """Return a zone of the time zone database; None for any other text."""
    if name == UTC_ZONE.name:
        return UTC_ZONE
    if not _ZONE_NAME.fullmatch(name):
        return None
    try:
        return DisplayZone(name, ZoneInfo(name))
    except (ZoneInfoNotFoundError, ValueError, OSError):  # a folder of the database, or a file that is no zone
        return None


def reader_zone(cookies: Mapping[str, str]) -> DisplayZone:
    """Return the zone that a reader's pages show: the browser's, or UTC if it is chosen or the browser's is unknown."""
    if cookies.get(TIMES_COOKIE) == "utc":
        return UTC_ZONE
    return find_zone(cookies.get(ZONE_COOKIE, "")) or UTC_ZONE


def read_time_field(
    fields: Mapping[str, str], name: str, zone: DisplayZone, *, is_end: bool = False
) -> tuple[int | None, str]:
    """Return a time of a form or query, and the value of its field in the reader's zone; None and empty without one.

    Args:
        fields: with `zone` if its times are in another zone than the reader's, as in a colleague's link.
        zone: the reader's.
        is_end: the time ends a range.

    Raises:
        ValueError: the text is not a time.
    """
    text = fields.get(name, "").strip()
    if not text:
        return None, ""
    at_ms = (find_zone(fields.get(ZONE_FIELD, "")) or zone).parse_field_ms(text, is_end=is_end)
    return at_ms, zone.field_value(at_ms)


@contextmanager
def zone_context(zone: DisplayZone) -> Generator[None]:
    """Render templates with a reader's zone: imported macros have no context of their own."""
    token = _current.set(zone)
    try:
        yield
    finally:
        _current.reset(token)


# fmt: off
TIME_FORMS: Final[dict[str, Callable[[datetime, datetime], str]]] = {
    # name       text, of a time and of now
    "relative": lambda at, now: _moment_text(at, now),  # a script replaces it by `5 min ago`
    "exact":    lambda at, _: _exact_text(at),
    "second":   lambda at, _: f"{at.replace(tzinfo=None).isoformat(' ', 'seconds')} {_offset_text(at)}",
    "clock":    lambda at, _: at.time().isoformat("milliseconds"),
    "minute":   lambda at, _: at.time().isoformat("minutes"),
    "day":      lambda at, _: at.date().isoformat(),
    "moment":   lambda at, now: _moment_text(at, now),
}
# fmt: on


def time_element(at_ms: int | None, form: str = "relative", now_ms: int = 0, zone: DisplayZone | None = None) -> Markup:
    """Return `<time>` in the reader's zone, with the exact time in the zone and in UTC as its tooltip.

    Every time of a page is one of these.

    Args:
        at_ms: the time; None: return nothing.
        form: one of `TIME_FORMS`.
        now_ms: for `relative` and `moment`, which leave out today's date.
        zone: the reader's; None: of the page that is being rendered.
    """
    if at_ms is None:
        return Markup("")
    zone = zone or _current.get()
    text = TIME_FORMS[form](zone.local_time(at_ms), zone.local_time(now_ms))
    live = Markup(' data-at-ms="{}"').format(at_ms) if form == "relative" else ""
    exact, utc = zone.exact(at_ms), UTC_ZONE.exact(at_ms)
    tooltip = exact if exact == utc else f"{exact} ({zone.label}), {utc}"
    return Markup('<time datetime="{}" title="{}"{}>{}</time>').format(iso_time(at_ms), tooltip, live, text)


def time_text(at_ms: int | None) -> str:
    """Return an exact time in the reader's zone, for attributes that name an element."""
    return "" if at_ms is None else _current.get().exact(at_ms)


def day_text(at_ms: int) -> str:
    """Return the day that a time is in, in the reader's zone."""
    return _current.get().local_time(at_ms).date().isoformat()


def iso_time(at_ms: int | None) -> str:
    """Return a time in UTC for programs: attributes, exports and JSON; empty for None."""
    return "" if at_ms is None else (_EPOCH + at_ms * _MS).isoformat(timespec="milliseconds")


def write_times_in_utc(value: Any) -> Any:
    """Return JSON in which every time, such as `accepted_on_ms`, is a text in UTC, `accepted_on`."""
    if isinstance(value, dict):
        written: dict[str, Any] = {}
        for name, member in cast("dict[Any, Any]", value).items():
            time = _TIME_MEMBER.fullmatch(str(name))
            if time and member is None:
                written[time[1]] = None
            elif time and isinstance(member, int):
                written[time[1]] = iso_time(member)
            else:
                written[str(name)] = write_times_in_utc(member)
        return written
    if isinstance(value, (list, tuple)):
        return [write_times_in_utc(item) for item in cast("list[Any]", value)]
    return value


def _moment_text(at: datetime, now: datetime) -> str:
    """Return a time to the minute, without the date if that is today's."""
    time = at.time().isoformat("minutes")
    if at.date() == now.date():
        return time
    return f"{at.day} {at:%b} {time}" if at.year == now.year else f"{at.day} {at:%b} {at.year} {time}"


def _exact_text(at: datetime) -> str:
    return f"{at.replace(tzinfo=None).isoformat(' ', 'milliseconds')} {_offset_text(at)}"


def _offset_text(at: datetime) -> str:
    minutes = int((at.utcoffset() or timedelta()).total_seconds() // 60)
    if not minutes:
        return "UTC"
    return f"UTC{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
