"""The days that a DatePicker or CalendarPicker lets a person choose.

Source: public page "Components", DatePicker and CalendarPicker: the default range, `include-days`, and milliseconds
since 1970 as a text before version 5.0.
"""

import re
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final

from waypost.base.json_values import list_of, texts_in
from waypost.flow_json.versions import Version
from waypost.flow_player.layout import LaidOutComponent

_FIRST: Final = date(1900, 1, 1)
_LAST: Final = date(2100, 12, 31)
_DAY_NAMES: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_ISO: Final = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_MILLISECONDS: Final = re.compile(r"-?\d{1,14}", re.ASCII)
_EPOCH: Final = date(1970, 1, 1)
RANGE_ENDS: Final = ("start-date", "end-date")


def read_day(value: Any) -> date | None:
    """Return the day of a text, YYYY-MM-DD or milliseconds since 1970; None if it is none."""
    text = value if isinstance(value, str) else ""
    try:
        if _ISO.fullmatch(text):
            return date.fromisoformat(text)
        if _MILLISECONDS.fullmatch(text):
            return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=int(text))).date()
    except (ValueError, OverflowError):
        return None
    return None


def write_day(day: date, component_type: str, version: Version) -> str:
    """Return a day in the form in which a version sends it: before 5.0 as milliseconds of its beginning in UTC."""
    if component_type == "DatePicker" and version < (5, 0):
        return str((day - _EPOCH).days * 24 * 3600 * 1000)
    return day.isoformat()


def find_day_problem(day: date, component: LaidOutComponent) -> tuple[str, str] | None:
    """Return the rule that a day breaks, and the rule in words; None if it can be chosen."""
    first = read_day(component.properties.get("min-date")) or _FIRST
    last = read_day(component.properties.get("max-date")) or _LAST
    if day < first:
        return "min-date", f"Choose {first} or a later day."
    if day > last:
        return "max-date", f"Choose {last} or an earlier day."
    if day in {read_day(one) for one in list_of(component.properties.get("unavailable-dates"))}:
        return "unavailable-dates", f"{day} is not available."
    names = texts_in(component.properties.get("include-days"))
    if names and _DAY_NAMES[day.weekday()] not in names:
        return "include-days", f"Choose one of {', '.join(names)}."
    return None


def find_range_problem(start: date, end: date, component: LaidOutComponent) -> tuple[str, str] | None:
    """Return the rule that a range breaks, and the rule in words; None if it can be chosen.

    Both ends count as days of the range; days between them may be unavailable.
    """
    if start > end:
        return "order", "Choose an end that is not before the start."
    days = (end - start).days + 1
    least, most = component.number("min-days"), component.number("max-days")
    if least is not None and days < least:
        return "min-days", f"Choose at least {least} days."
    if most is not None and days > most:
        return "max-days", f"Choose at most {most} days."
    return find_day_problem(start, component) or find_day_problem(end, component)
