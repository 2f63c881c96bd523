"""View models of the overview: the last hour as a chart, today's totals, and the queues."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from markupsafe import Markup

from waypost.base.clock import DAY_MS, HOUR_MS, MINUTE_MS
from waypost.console.charts.axes import Frame
from waypost.console.charts.over_time import bars
from waypost.console.charts.series import Series, key, table
from waypost.console.overview.minute_counts import Tally, of_states
from waypost.console.overview.queries import Scene
from waypost.store.console.overview import Waiting
from waypost.store.queue.jobs import QueueName

_ON_THE_WAY: Final = ("accepted", "uncertain", "enqueued", "sent")

# fmt: off
OUTCOMES: Final = (  # from the bottom of a bar upwards
    # name          tone      states
    ("read",        "accent", ("read", "deleted")),
    ("delivered",   "info",   ("delivered",)),
    ("in progress", "quiet",  _ON_THE_WAY),
    ("failed",      "bad",    ("failed",)),
)
TILES: Final = (
    # label         tone      states                          filter of the list of messages
    ("Accepted",    "quiet",  ("accepted",),                  "accepted"),
    ("Enqueued",    "quiet",  ("enqueued",),                  "enqueued"),
    ("Sent",        "quiet",  ("sent",),                      "sent"),
    ("Delivered",   "info",   ("delivered",),                 "delivered"),
    ("Read",        "accent", ("read", "deleted"),            "read"),
    ("Uncertain",   "warn",   ("uncertain",),                 "uncertain"),
    ("Failed",      "bad",    ("failed",),                    "failed"),
)
LANES: Final = {
    # queue                 name           content
    QueueName.OUTBOUND:    ("Outbound",    "Messages and templates to send to the operator."),
    QueueName.WEBHOOKS:    ("Webhooks",    "Statuses and messages received from the operator."),
    QueueName.CALLBACKS:   ("Callbacks",   "Callbacks to deliver to your endpoints."),
    QueueName.MEDIA:       ("Media",       "Received media to download."),
    QueueName.UNCONFIRMED: ("Unconfirmed", "Messages that may have been sent. A status from the operator decides."),
}
# fmt: on
LATE_MS: Final = 60_000
"""A job that has been due for longer is late."""


@dataclass(frozen=True, slots=True)
class Tile:
    """Today's number of messages with one status."""

    label: str
    kind: str
    count: int
    state: str


@dataclass(frozen=True, slots=True)
class Queue:
    """Summary of one queue.

    Attributes:
        waits_ms: time since the oldest job became due; None if no job is due.
    """

    name: str
    what: str
    entries: int
    is_longer: bool
    waits_ms: int | None
    is_late: bool


@dataclass(frozen=True, slots=True)
class Hour:
    """Chart, legend and table of the last sixty minutes."""

    is_empty: bool
    chart: Markup
    key: Markup
    table: Markup


def hour_of(scene: Scene) -> Hour:
    """Return the chart of messages per minute by outcome."""
    last = scene.now_ms // MINUTE_MS
    minutes = [last - ago for ago in range(59, -1, -1)]
    known_from = scene.tally.counted_from_ms // MINUTE_MS
    series = [
        Series(name, tone, [_count(scene.tally, minute, states, known_from) for minute in minutes])
        for name, tone, states in OUTCOMES
    ]
    labels = [clock(minute) for minute in minutes]
    total = sum(int(value or 0) for layer in series for value in layer.values)
    failed = sum(int(value or 0) for value in series[-1].values)
    description = f"{total} messages accepted in the last hour; {failed} of them failed."
    rows = [
        (label, *(int(layer.values[at] or 0) for layer in series))
        for at, label in enumerate(labels)
        if any(layer.values[at] for layer in series)
    ]
    title = "Messages per minute"
    heads = ("Minute (UTC)", *(layer.name for layer in series))
    return Hour(
        not total,
        bars(Frame("hour-chart", title, description, height=270), series, labels),
        key(series),
        table(heads, rows or [("No messages", *(0 for _ in series))], caption=title, id="hour-table"),
    )


def _count(tally: Tally, minute: int, states: Sequence[str], known_from: int) -> int | None:
    if minute < known_from:
        return None
    counted = tally.minutes.get(minute)
    return of_states(counted, states) if counted else 0


def tiles(scene: Scene) -> list[Tile]:
    """Return today's totals; without "Uncertain" if it is 0."""
    today = scene.tally.between(scene.now_ms // DAY_MS * DAY_MS, scene.now_ms + HOUR_MS)
    all_tiles = [Tile(label, kind, of_states(today, states), state) for label, kind, states, state in TILES]
    return [tile for tile in all_tiles if tile.count or tile.label != "Uncertain"]


def counted_since(tally: Tally, now_ms: int) -> str:
    """Return the start of the counted time as `14:03`; empty if the whole day is counted."""
    return "" if tally.is_whole(now_ms) else clock(tally.counted_from_ms // MINUTE_MS)


def queues(waiting: Sequence[Waiting], now_ms: int) -> list[Queue]:
    """Return a summary of each queue; media and unconfirmed only if they are not empty."""
    summaries: list[Queue] = []
    by_queue = {queue.queue: queue for queue in waiting}
    for queue_name, (name, what) in LANES.items():
        queue = by_queue[queue_name]
        if not queue.entries and queue_name in (QueueName.MEDIA, QueueName.UNCONFIRMED):
            continue
        due = queue.oldest_due_ms
        waits_ms = None if due is None or due > now_ms else now_ms - due
        is_late = waits_ms is not None and waits_ms > LATE_MS
        summaries.append(Queue(name, what, queue.entries, queue.is_longer, waits_ms, is_late))
    return summaries


def clock(minute: int) -> str:
    """Return a minute since the epoch as `14:03`, in UTC."""
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%H:%M")


def span(span_ms: int) -> str:
    """Return a duration in its largest unit, such as `3 min`."""
    for size_ms, unit in ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (1000, "s")):
        if span_ms >= size_ms:
            return f"{span_ms // size_ms} {unit}"
    return f"{span_ms} ms"
