"""Circuits and retries: whether a receiver is called at all, by its recent responses, and when a callback is due again.

Tables: the states of a circuit, and the events that move it from one to another. A circuit lives in
memory. What has to outlive the process is in the store: since when a receiver has been failing, until
when it wants no requests, and that it is paused. Source: decision 0042.
"""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from enum import StrEnum
from typing import Final

from waypost.base.backoff import delay_ms, travel_grid_ms


class CircuitState(StrEnum):
    """The state of one receiver's circuit."""

    CLOSED = "closed"  # callbacks are sent
    OPEN = "open"  # nothing is sent before a time
    HALF_OPEN = "half-open"  # one callback tests it
    PAUSED = "paused"  # nothing is sent before a person resumes it


class CircuitEvent(StrEnum):
    """The events that move a circuit."""

    DELIVERED = "a callback was delivered"
    TRIPPED = "as many failed in a row as open the circuit"
    PROBE_FAILED = "the one that tested a half-open circuit failed"
    RETRY_AFTER = "the receiver sent Retry-After"
    DUE = "the time to test it has come"
    PAUSED = "the subscription was paused"
    RESUMED = "it was resumed, has another URL, or someone requested a retry"


OPEN_AFTER_FAILURES: Final = 3
"""Number of failures in a row after which a circuit opens."""

FREQUENT_PROBES: Final = 75
"""Number of probes at a few seconds from each other: for five minutes, longer than a receiver's restart takes."""

PROBE_DELAYS_S: Final = (1, 2, *FREQUENT_PROBES * (4,), 8, 16, 32, 60)
"""How long a circuit stays open, by the number of failed probes; the last one repeats."""

# fmt: off
CIRCUIT_TRANSITIONS: Final = {  # an event without a row leaves a circuit as it is
    (CircuitState.CLOSED,    CircuitEvent.TRIPPED):      CircuitState.OPEN,
    (CircuitState.CLOSED,    CircuitEvent.RETRY_AFTER):        CircuitState.OPEN,
    (CircuitState.CLOSED,    CircuitEvent.PAUSED):       CircuitState.PAUSED,
    (CircuitState.OPEN,      CircuitEvent.DUE):          CircuitState.HALF_OPEN,
    (CircuitState.OPEN,      CircuitEvent.DELIVERED):        CircuitState.CLOSED,  # of a callback that was begun before
    (CircuitState.OPEN,      CircuitEvent.RESUMED):      CircuitState.HALF_OPEN,
    (CircuitState.OPEN,      CircuitEvent.PAUSED):       CircuitState.PAUSED,
    (CircuitState.HALF_OPEN, CircuitEvent.DELIVERED):        CircuitState.CLOSED,
    (CircuitState.HALF_OPEN, CircuitEvent.PROBE_FAILED): CircuitState.OPEN,
    (CircuitState.HALF_OPEN, CircuitEvent.RETRY_AFTER):        CircuitState.OPEN,
    (CircuitState.HALF_OPEN, CircuitEvent.PAUSED):       CircuitState.PAUSED,
    (CircuitState.PAUSED,    CircuitEvent.RESUMED):      CircuitState.HALF_OPEN,
}
# fmt: on


@dataclass(slots=True)
class Circuit:
    """The circuit of one receiver.

    Attributes:
        failures: in a row.
        probes: how often an open circuit was tested and failed.
        until_ms: while it is open, when it may be tested.
        travel_until_ms: the same while the clock is being advanced: never before `until_ms`.
        delivered_ms: when a callback was last delivered.
        failing_since_ms: nothing has been delivered since then; None while it succeeds.
        is_paused_by_receiver: it is open because of a `Retry-After`.
    """

    state: CircuitState = CircuitState.CLOSED
    failures: int = 0
    probes: int = 0
    until_ms: int = 0
    travel_until_ms: int = 0
    delivered_ms: int = 0
    failing_since_ms: int | None = None
    is_paused_by_receiver: bool = False

    def apply(self, event: CircuitEvent) -> CircuitState:
        """Move to the state that the table gives, and return it."""
        self.state = CIRCUIT_TRANSITIONS.get((self.state, event), self.state)
        return self.state

    def record_delivered(self, now_ms: int) -> None:
        """Record that a callback was delivered."""
        self.failures = self.probes = self.travel_until_ms = 0
        self.is_paused_by_receiver = False
        self.delivered_ms, self.failing_since_ms = now_ms, None
        self.apply(CircuitEvent.DELIVERED)

    def record_failed(self, now_ms: int, chance: random.Random, *, is_probe: bool, retry_after_ms: int) -> None:
        """Record that a callback was not delivered.

        Args:
            now_ms: by the clock that due times follow.
            chance: where the jitter comes from.
            is_probe: it was sent to test the circuit.
            retry_after_ms: the receiver's `Retry-After`; 0 without one.
        """
        self.failures += 1
        if self.failing_since_ms is None:
            self.failing_since_ms = now_ms
        if retry_after_ms:
            self.until_ms = max(self.until_ms, now_ms + retry_after_ms)
            self.is_paused_by_receiver = True
            self.apply(CircuitEvent.RETRY_AFTER)
        elif is_probe and self.state is CircuitState.HALF_OPEN:
            self._open(now_ms, chance, CircuitEvent.PROBE_FAILED)
        elif self.state is CircuitState.CLOSED and self.failures >= OPEN_AFTER_FAILURES:
            self._open(now_ms, chance, CircuitEvent.TRIPPED)

    def _open(self, now_ms: int, chance: random.Random, event: CircuitEvent) -> None:
        self.probes += 1
        self.is_paused_by_receiver = False
        self.until_ms = now_ms + delay_ms(PROBE_DELAYS_S, self.probes, chance)
        grid_ms = travel_grid_ms(now_ms - (self.failing_since_ms or now_ms))
        if grid_ms is not None:
            self.travel_until_ms = (now_ms // grid_ms + 1) * grid_ms
        self.apply(event)

    def restore(self, now_ms: int, *, failing_since_ms: int | None, retry_after_until_ms: int | None) -> None:
        """Continue from what the store has of an earlier process."""
        self.failing_since_ms = failing_since_ms
        if retry_after_until_ms is not None and retry_after_until_ms > now_ms:
            self.state, self.until_ms, self.is_paused_by_receiver = CircuitState.OPEN, retry_after_until_ms, True
        elif failing_since_ms is not None:
            self.state = CircuitState.HALF_OPEN


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
