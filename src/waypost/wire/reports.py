"""Reports in the formats of the partner API: the log of a message, and the deliveries of a subscription."""

import datetime
import re
from collections.abc import Iterable, Sequence
from typing import Final, Protocol

from msgspec import Struct

from waypost.base.clock import DAY_MS, HOUR_MS
from waypost.domain.errors import invalid_field
from waypost.domain.message import LoggedEvent

MAX_WINDOW_MS: Final = 600_000  # Source: ledger 1.2, `event/incoming`
POINTS: Final = 24
"""Intervals of a series, the newest last."""
DEFAULT_INTERVAL: Final = "1hr"
INTERVALS_MS: Final = {  # Source: ledger 1.4, `analytics`
    "15m": HOUR_MS // 4, "1hr": HOUR_MS, "6hr": 6 * HOUR_MS, "12hr": 12 * HOUR_MS, "1d": DAY_MS, "3d": 3 * DAY_MS,
}  # fmt: skip

_DAY: Final = re.compile(r"([0-9]{2})-([0-9]{2})-([0-9]{4})", re.ASCII)
_DESCRIPTIONS: Final = {  # of the steps of a message; the first and that of `sent` are documented
    "accepted": "Send message request received",
    "attempted": "Send message attempted",
    "enqueued": "Message enqueued",
    "sent": "Send message completed",
    "delivered": "Message delivered",
    "read": "Message read",
}
_CALLBACK_OUTCOMES: Final = {
    True: "sent to the Callback URL",
    False: "not accepted by the Callback URL",
    None: "waiting for the Callback URL",
}


class CountedAttempts(Protocol):
    """Attempts to deliver callbacks with the same interval, status and duration."""

    @property
    def slot(self) -> int:
        """The interval, counted from 0."""
        ...

    @property
    def status(self) -> int | None:
        """The status of the responses; None: there were none."""
        ...

    @property
    def duration_ms(self) -> int:
        """The duration of each."""
        ...

    @property
    def tries(self) -> int:
        """The number of attempts."""
        ...


def read_day(text: str) -> tuple[int, int]:
    """Return the beginning and the end of the day in the field `date`, UTC, in milliseconds since the epoch.

    Raises:
        ApiError: it is no day.

    Source: ledger 1.2, `event/outgoing`.
    """
    parts = _DAY.fullmatch(text)
    if parts is not None:
        try:
            day = datetime.datetime(int(parts[3]), int(parts[2]), int(parts[1]), tzinfo=datetime.UTC)
            from_ms = int(day.timestamp()) * 1000
            return from_ms, from_ms + DAY_MS
        except ValueError:
            pass
    raise invalid_field("date", "a day as DD-MM-YYYY")


def check_window(start_ms: int, end_ms: int) -> None:
    """Raise an error if the fields `start` and `end` are in the wrong order or too far apart.

    Source: ledger 1.2, `event/incoming`.
    """
    if not 0 <= start_ms <= end_ms <= start_ms + MAX_WINDOW_MS:
        raise invalid_field("end", f"start, or at most {MAX_WINDOW_MS} milliseconds after it")


class EventItem(Struct, rename="camel"):
    """An event of the log of a message."""

    delay: int  # in milliseconds
    dest: str
    end_time: int | None
    event_description: str
    event_id: str
    source: str
    start_time: int | None  # in milliseconds since the epoch; likewise the end


class DeliveryPoint(Struct, rename="camel"):
    """The attempts of one interval. Latencies are in milliseconds, the rate is a share of 100."""

    average_latency: int
    failure_count: int
    failure_rate: float
    max_latency: int
    success_count: int
    timestamp: int


class DeliveryAnalytics(Struct):
    """The deliveries of a subscription: a point for each interval with attempts, and all together."""

    series: list[DeliveryPoint]
    summary: DeliveryPoint


def message_event_items(events: Iterable[LoggedEvent], message_id: str, source: str) -> list[EventItem]:
    """Return the steps of a message as events of its log. Source: ledger 1.2, `event/outgoing`."""
    return [
        _event_item(event, message_id, source, _DESCRIPTIONS.get(event.name, f"Message {event.name}"))
        for event in events
    ]


def callback_event_items(events: Iterable[LoggedEvent], message_id: str, app_name: str) -> list[EventItem]:
    """Return callbacks as events of the log of a message. Source: ledger 1.2, `event/incoming`."""
    return [
        _event_item(
            event, message_id, app_name, f"{event.name.capitalize()} event {_CALLBACK_OUTCOMES[event.delivered]}"
        )
        for event in events
    ]


def _event_item(event: LoggedEvent, message_id: str, source: str, description: str) -> EventItem:
    is_span = event.start_ms is not None and event.end_ms is not None
    return EventItem(
        delay=max((event.end_ms or 0) - (event.start_ms or 0), 0) if is_span else 0,
        dest=event.destination,
        end_time=event.end_ms,
        event_description=description,
        event_id=message_id,
        source=source,
        start_time=event.start_ms,
    )


def read_interval(text: str) -> int:
    """Return the length of the intervals of a series, in milliseconds.

    Raises:
        ApiError: the text names none.
    """
    interval_ms = INTERVALS_MS.get(text or DEFAULT_INTERVAL)
    if interval_ms is None:
        raise invalid_field("aggBy", f"one of {', '.join(INTERVALS_MS)}")
    return interval_ms


def delivery_analytics(
    counts: Sequence[CountedAttempts], *, from_ms: int, interval_ms: int, now_ms: int
) -> DeliveryAnalytics:
    """Return the deliveries of a subscription.

    Rates are shares of 100; the documents do not say what they are shares of.

    Source: ledger 1.4, `analytics`.
    """
    slots = sorted({count.slot for count in counts})
    series = [_point([count for count in counts if count.slot == slot], from_ms + slot * interval_ms) for slot in slots]
    return DeliveryAnalytics(series, _point(counts, now_ms))


def _point(counts: Sequence[CountedAttempts], at_ms: int) -> DeliveryPoint:
    attempts = sum(count.tries for count in counts)
    delivered = sum(count.tries for count in counts if count.status is not None and 200 <= count.status < 300)
    failed = attempts - delivered
    return DeliveryPoint(
        average_latency=round(sum(count.duration_ms * count.tries for count in counts) / attempts) if attempts else 0,
        failure_count=failed,
        failure_rate=round(100 * failed / attempts, 2) if attempts else 0,
        max_latency=max((count.duration_ms for count in counts), default=0),
        success_count=delivered,
        timestamp=at_ms,
    )
