"""The overview's numbers: the hour as a chart, the day as totals, what waits and how long."""

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
OUTCOMES: Final = (  # from the foot of a bar upwards
    # name          tone      states
    ("read",        "accent", ("read", "deleted")),
    ("delivered",   "info",   ("delivered",)),
    ("on the way",  "quiet",  _ON_THE_WAY),
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
    # queue                what waits in it
    QueueName.OUTBOUND: ("To the operator",   "Messages and templates that are to be sent."),
    QueueName.WEBHOOKS:    ("From the operator", "Statuses and answers that have come in."),
    QueueName.CALLBACKS:   ("To your receivers", "Callbacks that are to be delivered."),
    QueueName.MEDIA:       ("Media",             "What people have sent, to be fetched."),
    QueueName.UNCONFIRMED:      ("In doubt",          "Messages that wait for a status, since nobody knows whether they went."),
}
# fmt: on
LATE_MS: Final = 60_000
"""Work that has been due for longer than that is late."""


@dataclass(frozen=True, slots=True)
class Tile:
    """A number of today's."""

    label: str
    kind: str
    count: int
    state: str


@dataclass(frozen=True, slots=True)
class Queue:
    """What waits in one queue, in words.

    Attributes:
        waits_ms: for how long the oldest has been due; None where nothing is due yet.
    """

    name: str
    what: str
    entries: int
    is_longer: bool
    waits_ms: int | None
    is_late: bool


@dataclass(frozen=True, slots=True)
class Hour:
    """The last sixty minutes: a picture, what its colours are, and its figures."""

    is_empty: bool
    chart: Markup
    key: Markup
    table: Markup


def hour_of(scene: Scene) -> Hour:
    """Messages of each minute, by what has become of them."""
    last = scene.now_ms // MINUTE_MS
    minutes = [last - ago for ago in range(59, -1, -1)]
    known_from = scene.tally.counted_from_ms // MINUTE_MS
    series = [
        Series(name, tone, [_count(scene.tally, one, states, known_from) for one in minutes])
        for name, tone, states in OUTCOMES
    ]
    labels = [clock(one) for one in minutes]
    total = sum(int(value or 0) for one in series for value in one.values)
    failed = sum(int(value or 0) for value in series[-1].values)
    says = f"{total} messages were accepted in the last hour; {failed} of them have failed."
    rows = [
        (label, *(int(one.values[at] or 0) for one in series))
        for at, label in enumerate(labels)
        if any(one.values[at] for one in series)
    ]
    title = "Messages a minute"
    heads = ("Minute (UTC)", *(one.name for one in series))
    return Hour(
        not total,
        bars(Frame("hour-chart", title, says, height=270), series, labels),
        key(series),
        table(heads, rows or [("none yet", *(0 for _ in series))], caption=title, id="hour-table"),
    )


def _count(tally: Tally, minute: int, states: Sequence[str], known_from: int) -> int | None:
    if minute < known_from:
        return None
    counted = tally.minutes.get(minute)
    return of_states(counted, states) if counted else 0


def tiles(scene: Scene) -> list[Tile]:
    """Today's totals; what is in doubt stands there only when something is."""
    today = scene.tally.between(scene.now_ms // DAY_MS * DAY_MS, scene.now_ms + HOUR_MS)
    found = [Tile(label, kind, of_states(today, states), state) for label, kind, states, state in TILES]
    return [one for one in found if one.count or one.label != "Uncertain"]


def counted_since(tally: Tally, now_ms: int) -> str:
    """How far back the totals reach, while they do not yet reach the beginning of the day."""
    return "" if tally.is_whole(now_ms) else clock(tally.counted_from_ms // MINUTE_MS)


def queues(waiting: Sequence[Waiting], now_ms: int) -> list[Queue]:
    """Each queue; those of which one hears seldom only when something is in them."""
    found: list[Queue] = []
    by_queue = {one.queue: one for one in waiting}
    for queue_name, (name, what) in LANES.items():
        one = by_queue[queue_name]
        if not one.entries and queue_name in (QueueName.MEDIA, QueueName.UNCONFIRMED):
            continue
        due = one.oldest_due_ms
        waits_ms = None if due is None or due > now_ms else now_ms - due
        is_late = waits_ms is not None and waits_ms > LATE_MS
        found.append(Queue(name, what, one.entries, one.is_longer, waits_ms, is_late))
    return found


def clock(minute: int) -> str:
    """A minute since the epoch as `14:03`, in UTC."""
    return datetime.fromtimestamp(minute * 60, UTC).strftime("%H:%M")


def span(span_ms: int) -> str:
    """How long, in the one unit that says most."""
    for size_ms, unit in ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (1000, "s")):
        if span_ms >= size_ms:
            return f"{span_ms // size_ms} {unit}"
    return f"{span_ms} ms"
