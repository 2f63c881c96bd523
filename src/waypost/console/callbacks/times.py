"""Times that people type into forms: UTC, as pages show them."""

from datetime import UTC, datetime, timedelta
from typing import Final

from waypost.console.web.not_found import NotMeant

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
LAST_MS: Final = (datetime.max.replace(tzinfo=UTC) - _EPOCH) // timedelta(milliseconds=1)
"""The last time that can be written."""


def typed_ms(text: str, name: str) -> int | None:
    """Milliseconds since the epoch of a `datetime-local` field, from 1970 to 9999; None where it is empty.

    Raises:
        NotMeant: it is no time.
    """
    if not text:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise NotMeant(f"{name} is no time.", "Write it like 2026-11-22T10:00, in UTC, or leave it empty.") from None
    at = at if at.tzinfo else at.replace(tzinfo=UTC)
    return min(max((at - _EPOCH) // timedelta(milliseconds=1), 0), LAST_MS)


def typed(at_ms: int | None) -> str:
    """The same back again."""
    if at_ms is None:
        return ""
    return at_of(at_ms).replace(tzinfo=None).isoformat(timespec="seconds")


def at_of(at_ms: int) -> datetime:
    """A time that can be written in any way, in UTC."""
    return _EPOCH + timedelta(milliseconds=at_ms)
