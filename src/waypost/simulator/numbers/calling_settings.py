"""Checks of the setting `calling` of a number: status, icon, hours and SIP.

Source: the operator's page "Calling API", Settings.
"""

import re
from collections import defaultdict
from datetime import date
from itertools import pairwise
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from waypost.base.json_values import list_or_none, object_of, object_or_none
from waypost.simulator.apis.errors import GraphApiError, bad_parameter
from waypost.simulator.apis.parameters import one_of

ON, OFF = "ENABLED", "DISABLED"
_ICON_VISIBILITIES: Final = ("DEFAULT", "DISABLE_ALL")
_DAYS: Final = ("MONDAY", "TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY", "SUNDAY")
_MAX_HOURS_A_DAY: Final = 2
_MAX_HOLIDAYS: Final = 20
_TIME: Final = re.compile(r"([01][0-9]|2[0-3])[0-5][0-9]", re.ASCII)
_DATE: Final = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_Interval = tuple[str, str]


def merge_calling(stored: dict[str, Any], changes: dict[str, Any], *, today: date) -> dict[str, Any]:
    """Return the setting after a change: absent members stay, and each other one is replaced as a whole.

    Raises:
        GraphApiError: 100, a member is invalid.
    """
    for name in ("status", "callback_permission_status"):
        one_of(ON, OFF)(name, changes.get(name, OFF))
    one_of(*_ICON_VISIBILITIES)("call_icon_visibility", changes.get("call_icon_visibility", "DEFAULT"))
    if "call_hours" in changes:
        _check_hours(changes["call_hours"], today)
    if "sip" in changes:
        _check_sip(changes["sip"])
    return {**stored, **changes}


def is_calling_enabled(settings: dict[str, Any]) -> bool:
    """True if a number's settings enable calls."""
    return object_of(settings.get("calling")).get("status") == ON


def is_sip_enabled(settings: dict[str, Any]) -> bool:
    """True if a number's calls go by SIP: then it has no webhooks about calls and no calls of the Calling API."""
    return object_of(object_of(settings.get("calling")).get("sip")).get("status") == ON


def _check_hours(value: Any, today: date) -> None:
    hours = object_or_none(value)
    if hours is None:
        raise bad_parameter("Param call_hours must be an object.")
    one_of(ON, OFF)("call_hours.status", hours.get("status"))
    if not _is_timezone(hours.get("timezone_id")):
        raise bad_parameter("Param call_hours.timezone_id must be the name of a time zone.")
    weekly = list_or_none(hours.get("weekly_operating_hours"))
    if not weekly:
        raise bad_parameter("Param call_hours.weekly_operating_hours must not be empty.")
    by_day: dict[str, list[_Interval]] = defaultdict(list)
    for item in map(object_of, weekly):
        one_of(*_DAYS)("day_of_week", item.get("day_of_week"))
        by_day[item["day_of_week"]].append(_interval(item, "open_time", "close_time"))
    for day, intervals in by_day.items():
        if len(intervals) > _MAX_HOURS_A_DAY:
            raise bad_parameter(f"More than {_MAX_HOURS_A_DAY} entries of call_hours for {day} are not allowed.")
        ordered = sorted(intervals)
        if any(later[0] < earlier[1] for earlier, later in pairwise(ordered)):
            raise bad_parameter(f"Overlapping entries of call_hours for {day} are not allowed.")
    _check_holidays(hours.get("holiday_schedule"), today)


def _check_holidays(value: Any, today: date) -> None:
    holidays = [] if value is None else list_or_none(value)
    if holidays is None or len(holidays) > _MAX_HOLIDAYS:
        raise bad_parameter(f"Param holiday_schedule must be a list of at most {_MAX_HOLIDAYS} entries.")
    for item in map(object_of, holidays):
        if _date(item.get("date")) < today:
            raise bad_parameter("A holiday of call_hours cannot be a past date.")
        _interval(item, "start_time", "end_time")


def _check_sip(value: Any) -> None:
    sip = object_or_none(value)
    if sip is None:
        raise bad_parameter("Param sip must be an object.")
    one_of(ON, OFF)("sip.status", sip.get("status"))
    servers = list_or_none(sip.get("servers", []))
    if servers is None or (sip["status"] == ON and not servers):
        raise bad_parameter("Param sip.servers must be a list of at least one server.")
    for server in map(object_of, servers):
        hostname, port = server.get("hostname"), server.get("port", 5061)
        if not isinstance(hostname, str) or not hostname or type(port) is not int or not 1 <= port <= 65535:
            raise bad_parameter("Each server of sip must have a hostname, and a port from 1 to 65535.")


def _interval(item: dict[str, Any], first: str, last: str) -> _Interval:
    start, end = item.get(first), item.get(last)
    if not (isinstance(start, str) and isinstance(end, str) and _TIME.fullmatch(start) and _TIME.fullmatch(end)):
        raise bad_parameter(f"Params {first} and {last} must be times of 24 hours as HHMM.")
    if end <= start:
        raise bad_parameter(f"Param {last} must be later than {first}.")
    return start, end


def _date(value: Any) -> date:
    error: GraphApiError = bad_parameter("Param date of a holiday must be a date as YYYY-MM-DD.")
    if not isinstance(value, str) or not _DATE.fullmatch(value):
        raise error
    try:
        return date.fromisoformat(value)
    except ValueError:
        raise error from None


def _is_timezone(value: Any) -> bool:
    if not isinstance(value, str) or not value:
        return False
    try:
        ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True
