"""View models of the overview: the last hour as a chart, today's totals, and the queues."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from waypost.base.clock import DAY_MS, HOUR_MS, MINUTE_MS
from waypost.console.charts.axes import ChartFrame
from waypost.console.charts.series import ChartSeries, legend, value_table
from waypost.console.charts.time_charts import bar_chart
from waypost.console.overview.minute_counts import MinuteCounts, count_in_states
from waypost.console.overview.queries import AppOverview
from waypost.console.web.state_kinds import state_kind
from waypost.console.web.zones import DisplayZone, time_element
from waypost.store.console.overview import AppQueueDepth
from waypost.store.queue.names import QueueName

_IN_PROGRESS: Final = ("accepted", "uncertain", "enqueued", "sent")

# fmt: off
OUTCOMES: Final = (  # from the bottom of a bar upwards
    # name          states
    ("read",        ("read", "deleted")),
    ("delivered",   ("delivered",)),
    ("in progress", _IN_PROGRESS),
    ("failed",      ("failed",)),
)
TILES: Final = (
    # label       states               filter of the list of messages
    ("Accepted",  ("accepted",),       "accepted"),
    ("Enqueued",  ("enqueued",),       "enqueued"),
    ("Sent",      ("sent",),           "sent"),
    ("Delivered", ("delivered",),      "delivered"),
    ("Read",      ("read", "deleted"), "read"),
    ("Uncertain", ("uncertain",),      "uncertain"),
    ("Failed",    ("failed",),         "failed"),
)
QUEUE_LABELS: Final = {
    # queue                 name           content
    QueueName.OUTBOUND:    ("Outbound",    "Messages and templates to send to the operator."),
    QueueName.WEBHOOKS:    ("Webhooks",    "Statuses and messages received from the operator."),
    QueueName.CALLBACKS:   ("Callbacks",   "Callbacks to deliver to your endpoints."),
    QueueName.MEDIA:       ("Media",       "Received media to download."),
    QueueName.UNCONFIRMED: ("Unconfirmed", "Messages that may have been sent. A status from the operator decides."),
}
# fmt: on
QUEUE_LATE_MS: Final = 60_000
"""A job that has been due for longer is late."""


@dataclass(frozen=True, slots=True)
class StatusTile:
    """Today's number of messages with one status."""

    label: str
    kind: str
    count: int
    state: str


@dataclass(frozen=True, slots=True)
class QueueSummary:
    """Summary of one queue.

    Attributes:
        waits_ms: time since the oldest job became due; None if no job is due.
    """

    name: str
    what: str
    jobs: int
    is_longer: bool
    waits_ms: int | None
    is_late: bool


@dataclass(frozen=True, slots=True)
class HourChart:
    """Chart, legend and table of the last sixty minutes."""

    is_empty: bool
    chart: Markup
    key: Markup
    table: Markup


def hour_chart(overview: AppOverview, zone: DisplayZone) -> HourChart:
    """Return the chart of messages per minute by outcome."""
    last = overview.now_ms // MINUTE_MS
    minutes = [last - ago for ago in range(59, -1, -1)]
    known_from = overview.counts.counted_from_ms // MINUTE_MS
    series = [
        ChartSeries(
            name, state_kind(name), [_count_minute(overview.counts, minute, states, known_from) for minute in minutes]
        )
        for name, states in OUTCOMES
    ]
    labels = [f"{zone.local_time(minute * MINUTE_MS):%H:%M}" for minute in minutes]
    total = sum(int(value or 0) for layer in series for value in layer.values)
    failed = sum(int(value or 0) for value in series[-1].values)
    description = f"{total} messages accepted in the last hour; {failed} of them failed."
    rows = [
        (time_element(minute * MINUTE_MS, "minute", zone=zone), *(int(layer.values[at] or 0) for layer in series))
        for at, minute in enumerate(minutes)
        if any(layer.values[at] for layer in series)
    ]
    title = f"Messages per minute, {zone.label}"
    heads = (f"Minute ({zone.label})", *(layer.name for layer in series))
    return HourChart(
        not total,
        bar_chart(ChartFrame("hour-chart", title, description, height=270), series, labels),
        legend(series),
        value_table(heads, rows or [("No messages", *(0 for _ in series))], caption=title, id="hour-table"),
    )


def _count_minute(counts: MinuteCounts, minute: int, states: Sequence[str], known_from: int) -> int | None:
    if minute < known_from:
        return None
    counted = counts.minutes.get(minute)
    return count_in_states(counted, states) if counted else 0


def status_tiles(overview: AppOverview, zone: DisplayZone) -> list[StatusTile]:
    """Return today's totals; without "Uncertain" if it is 0."""
    today = overview.counts.count_between(zone.day_start_ms(overview.now_ms), overview.now_ms + HOUR_MS)
    all_tiles = [
        StatusTile(label, state_kind(state), count_in_states(today, states), state) for label, states, state in TILES
    ]
    return [tile for tile in all_tiles if tile.count or tile.label != "Uncertain"]


def counted_since_ms(counts: MinuteCounts, now_ms: int, zone: DisplayZone) -> int | None:
    """Return the start of the counted time; None if the whole day is counted."""
    return None if counts.counted_from_ms <= zone.day_start_ms(now_ms) else counts.counted_from_ms


def summarize_queues(waiting: Sequence[AppQueueDepth], now_ms: int) -> list[QueueSummary]:
    """Return a summary of each queue; media and unconfirmed only if they are not empty."""
    summaries: list[QueueSummary] = []
    by_queue = {queue.queue: queue for queue in waiting}
    for queue_name, (name, what) in QUEUE_LABELS.items():
        queue = by_queue[queue_name]
        if not queue.jobs and queue_name in (QueueName.MEDIA, QueueName.UNCONFIRMED):
            continue
        due = queue.oldest_due_ms
        waits_ms = None if due is None or due > now_ms else now_ms - due
        is_late = waits_ms is not None and waits_ms > QUEUE_LATE_MS
        summaries.append(QueueSummary(name, what, queue.jobs, queue.is_longer, waits_ms, is_late))
    return summaries


def format_span(span_ms: int) -> str:
    """Return a duration in its largest unit, such as `3 min`."""
    for size_ms, unit in ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (1000, "s")):
        if span_ms >= size_ms:
            return f"{span_ms // size_ms} {unit}"
    return f"{span_ms} ms"
