"""Tables: the schedules of retries, of outbound jobs and of callbacks; and what the other side requires instead."""

import random
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Final

from waypost.base.backoff import delay_ms
from waypost.domain.outcome import OperatorUnavailable, RetryReason

# Which code is which row: `operators/cloud/error_codes.py`.
OPERATOR_RETRY_SCHEDULES_S: Final = {  # Source: operator's facts 5.2, 5.3, 8
    # cause               delays in seconds; the last repeats
    RetryReason.NOT_REACHED: (1, 2, 5, 10, 30, 60),
    RetryReason.OUTAGE: (1, 2, 5, 10, 30, 60, 120, 300),
    RetryReason.THROUGHPUT: (1, 2, 4, 8, 16, 30),
    RetryReason.PAIR: (1, 4, 16, 64, 256),  # 4^n
    RetryReason.SPAM: (60, 300, 900, 3600),
    RetryReason.MAINTENANCE: (10, 20, 30, 60),  # it takes about a minute
    RetryReason.CALLS: (5, 10, 30, 60, 300),
    RetryReason.ACCOUNT_CALLS: (30, 60, 300, 900),  # counted by the hour
    RetryReason.CREDENTIAL: (60, 120, 300),  # until a new token is set
    RetryReason.ONCE: (1,),  # tried once more, then final
}
ONBOARDING_RETRY_SCHEDULE_S: Final = (5, 30)  # of each step; clients wait five minutes. Source: decision 0125
CALLBACK_RETRY_SCHEDULE_S: Final = (  # Source: facts 4.6 leave it open; a day long is ours
    *(1, 5, 30, 120, 300, 900, 1800),
    *(3600, 7200, 14400, 21600, 28800, 36000),
)
MAX_OPERATOR_RETRY_AFTER_S: Final = 3600
"""A longer `Retry-After` is cut to an hour, and the job is tried then: it may have been a mistake, or be over."""
MAX_RECEIVER_RETRY_AFTER_S: Final = 86_400
"""A longer `Retry-After` of a receiver is cut to a day. Source: decision 0042."""
MAX_INTERRUPTED_PAUSE_MS: Final = 900_000
"""Maximum pause after an attempt that was cut short, unless the callback's own schedule is longer."""


def operator_retry_ms(outcome: OperatorUnavailable, attempt: int, chance: random.Random) -> int:
    """Return how long to wait before the next attempt; the operator's own delay counts when it is longer.

    Args:
        attempt: how many attempts there have been.
        chance: where the jitter comes from.
    """
    scheduled_ms = delay_ms(OPERATOR_RETRY_SCHEDULES_S[outcome.retry_reason], attempt, chance)
    return max(scheduled_ms, operator_retry_after_ms(outcome))


def operator_retry_after_ms(outcome: OperatorUnavailable) -> int:
    """Return how long the operator requires to wait; 0 where it does not."""
    return round(1000 * min(outcome.retry_after_s or 0, MAX_OPERATOR_RETRY_AFTER_S))


def callback_retry_ms(attempt: int, chance: random.Random) -> int | None:
    """Return how long to wait after attempt number `attempt`; None when the callback is given up.

    The schedule with its first attempt spans about 32 hours.
    """
    return delay_ms(CALLBACK_RETRY_SCHEDULE_S, attempt, chance) if attempt <= len(CALLBACK_RETRY_SCHEDULE_S) else None


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
