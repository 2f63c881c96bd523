"""Tables: when a callback that was not delivered is retried, and how long a receiver may delay it."""

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from waypost.base.backoff import delay_ms

# fmt: off
CALLBACK_RETRY_SCHEDULE_S: Final = (  # Source: facts 4.6 leave it open; a day long is ours
    1, 5, 30, 120, 300, 900, 1800, 3600, 7200, 14400, 21600, 28800, 36000,
)
MAX_INTERRUPTED_PAUSE_MS: Final = 900_000  # unless the callback's own schedule is longer
MAX_RECEIVER_RETRY_AFTER_S: Final = 86_400  # a longer Retry-After is cut to a day. Source: decision 0042
# fmt: on


def retry_delay_ms(attempt: int, chance: random.Random) -> int | None:
    """Return how long to wait after attempt number `attempt`; None when the callback is given up.

    The schedule with its first attempt spans about 32 hours.
    """
    return delay_ms(CALLBACK_RETRY_SCHEDULE_S, attempt, chance) if attempt <= len(CALLBACK_RETRY_SCHEDULE_S) else None


def interrupted_pause_ms(delay_ms: int, failing_ms: int) -> int:
    """Return for how long a receiver is not called after an attempt to it was cut short: it may be the cause.

    Each further attempt that ends so doubles the time since it last succeeded.

    Args:
        delay_ms: of the callback's own schedule.
        failing_ms: for how long the receiver has been failing.
    """
    return max(delay_ms, min(failing_ms, MAX_INTERRUPTED_PAUSE_MS))


def parse_retry_after_ms(headers: Mapping[str, str], now_ms: int) -> int:
    """Return for how long a response wants no requests, by its `Retry-After`; 0 without one.

    A date is compared with the response's own `Date`, so that the two clocks need not agree.

    Args:
        headers: the response's headers, their names in lower case.
        now_ms: used where the response has no `Date`.

    Source: RFC 9110, section 10.2.3.
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return min(int(text[:9]), MAX_RECEIVER_RETRY_AFTER_S) * 1000
    until_ms = _parse_date_ms(text)
    if until_ms is None:
        return 0
    theirs_ms = _parse_date_ms(headers.get("date", ""))
    left_ms = until_ms - (now_ms if theirs_ms is None else theirs_ms)
    return min(max(0, left_ms), MAX_RECEIVER_RETRY_AFTER_S * 1000)


def _parse_date_ms(text: str) -> int | None:
    if not text:
        return None
    try:
        date = parsedate_to_datetime(text)
        date = date if date.tzinfo else date.replace(tzinfo=UTC)
        return int((date - datetime(1970, 1, 1, tzinfo=UTC)).total_seconds()) * 1000
    except (TypeError, ValueError, IndexError, OverflowError):
        return None
