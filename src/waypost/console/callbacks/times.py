"""Times in form fields, in UTC: parsed and formatted."""

from datetime import UTC, datetime, timedelta
from typing import Final

from waypost.console.web.errors import InvalidPageRequest

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MAX_TIME_MS: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
"""The last time that can be formatted."""


def parse_time_ms(text: str, name: str) -> int | None:
    """Return a `datetime-local` value in ms since the epoch, limited to 1970 to 9999; None if it is empty.

    Raises:
        InvalidPageRequest: the text is not a time.
    """
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise InvalidPageRequest(
            f"{name} is not a valid time.", "Use a UTC time such as 2026-11-22T10:00, or leave it empty."
        ) from None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return min(max((at - _EPOCH) // timedelta(milliseconds=1), 0), MAX_TIME_MS)


def format_time(at_ms: int | None) -> str:
    """Return the value of a `datetime-local` field; empty for None."""
    if at_ms is None:
        return ""
    return utc_datetime(at_ms).replace(tzinfo=None).isoformat(timespec="seconds")


def utc_datetime(at_ms: int) -> datetime:
    """Return a time in ms since the epoch as a UTC datetime."""
    return _EPOCH + timedelta(milliseconds=at_ms)
