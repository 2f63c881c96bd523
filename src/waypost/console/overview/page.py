"""View models of the overview: the last hour as a chart, today's totals, and the queues."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from waypost.base.clock import DAY_MS, HOUR_MS, MINUTE_MS
from waypost.console.charts import ChartFrame, ChartSeries, bar_chart, legend, value_table
from waypost.console.overview.attention import attention_items
from waypost.console.overview.first_steps import find_first_message
from waypost.console.overview.queries import NEWEST_MESSAGES, AppOverview, MinuteCounts, count_in_states, read_overview
from waypost.console.page_request import PageRequest
from waypost.console.web.errors import NotFound
from waypost.console.web.formatting import state_kind
from waypost.console.web.streams import PageElement
from waypost.console.web.zones import DisplayZone, time_element
from waypost.domain.app import App
from waypost.store.console.overview import AppQueueDepth, dead_letters_of_app, receivers_of_app
from waypost.store.queue.job_subjects import QueueName

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


def hour_chart(overview: AppOverview, zone: DisplayZone) -> dict[str, Any]:
    """Return chart, legend and table of the last hour's messages, per minute by outcome."""
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
    return {
        "is_empty": not total,
        "chart": bar_chart(ChartFrame("hour-chart", title, description, height=270), series, labels),
        "key": legend(series),
        "table": value_table(heads, rows or [("No messages", *(0 for _ in series))], caption=title, id="hour-table"),
    }


def _count_minute(counts: MinuteCounts, minute: int, states: Sequence[str], known_from: int) -> int | None:
    if minute < known_from:
        return None
    counted = counts.minutes.get(minute)
    return count_in_states(counted, states) if counted else 0


def status_tiles(overview: AppOverview, zone: DisplayZone) -> list[dict[str, Any]]:
    """Return today's totals, each with `label`, `kind`, `count` and `state`; without "Uncertain" if it is 0."""
    today = overview.counts.count_between(zone.day_start_ms(overview.now_ms), overview.now_ms + HOUR_MS)
    counted = [(label, count_in_states(today, states), state) for label, states, state in TILES]
    return [
        {"label": label, "kind": state_kind(state), "count": count, "state": state}
        for label, count, state in counted
        if count or label != "Uncertain"
    ]


def counted_since_ms(counts: MinuteCounts, now_ms: int, zone: DisplayZone) -> int | None:
    """Return the start of the counted time; None if the whole day is counted."""
    return None if counts.counted_from_ms <= zone.day_start_ms(now_ms) else counts.counted_from_ms


def summarize_queues(
    waiting: Sequence[AppQueueDepth], waits: Sequence[Mapping[str, Any]], now_ms: int
) -> list[dict[str, Any]]:
    """Return each queue with its texts and how long its oldest job has been due; two only if they are not empty.

    Args:
        waits: why due jobs are not worked, as the admin API explains it.
    """
    summaries: list[dict[str, Any]] = []
    by_queue = {queue.queue: queue for queue in waiting}
    for queue_name, (name, what) in QUEUE_LABELS.items():
        queue = by_queue[queue_name]
        if not queue.jobs and queue_name in (QueueName.MEDIA, QueueName.UNCONFIRMED):
            continue
        due = queue.oldest_due_ms
        waits_ms = None if due is None or due > now_ms else now_ms - due
        summaries.append(
            {
                "name": name,
                "what": what,
                "jobs": queue.jobs,
                "is_longer": queue.is_longer,
                "waits": waits_ms and format_span(waits_ms),
                "waits_ms": waits_ms,
                "reasons": [wait["text"] for wait in waits if wait["queue"] == queue_name.name.lower()],
                "is_late": waits_ms is not None and waits_ms > QUEUE_LATE_MS,
            }
        )
    return summaries


def format_span(span_ms: int) -> str:
    """Return a duration in its largest unit, such as `3 min`."""
    for size_ms, unit in ((DAY_MS, "d"), (HOUR_MS, "h"), (MINUTE_MS, "min"), (1000, "s")):
        if span_ms >= size_ms:
            return f"{span_ms // size_ms} {unit}"
    return f"{span_ms} ms"


OVERVIEW_MACROS: Final = "overview/parts.html"
OVERVIEW_REST_S: Final = 2.0
"""Minimum time between two updates, to spare a busy store."""
OVERVIEW_POLL_S: Final = 5.0


async def show_overview(request: PageRequest) -> Response:
    """Show the overview."""
    overview = await read_overview(request)
    values = await _values(request, overview)
    return await request.page("overview/page.html", app=request.app, **values)


async def live_overview(request: PageRequest) -> Response:
    """Stream the changes of the overview, more often while the first steps are open."""
    is_beginning = not _has_completed_steps(await read_overview(request))

    async def render() -> Sequence[PageElement]:
        values = await _values(request, await read_overview(request))
        part = partial(request.macro, OVERVIEW_MACROS)
        return [
            PageElement(
                macro.replace("_", "-"), part(macro, request, request.app, **{name: values[name] for name in names})
            )
            for macro, names in _MACROS.items()
        ]

    pace = {"rest_s": 0.5, "at_least_s": 2.0} if is_beginning else {}
    return request.live(render, **{"rest_s": OVERVIEW_REST_S, "at_least_s": OVERVIEW_POLL_S, **pace})


async def retry_dead_letter(request: PageRequest) -> Response:
    """Retry a dead letter of the app."""
    position = str(request.path_params["position"])
    positions = await request.read(_dead_letter_positions, request.partner.id, request.app)
    if position not in positions:
        raise NotFound("Dead letter not found.")
    await request.services.apis.admin.json("POST", f"/admin/dead-letters/{position}/retry", {})
    return request.redirect(f"/apps/{request.app.id}", "The job will be retried.")


def _dead_letter_positions(connection: Any, partner_id: int, app: App) -> set[str]:
    ids = [receiver["id"] for receiver in receivers_of_app(connection, partner_id, app.id)]
    return {str(letter.position) for letter in dead_letters_of_app(connection, app, ids)}


# fmt: off
_MACROS: Final = {  # macro of parts.html, and its arguments
    "steps":     ("steps", "first", "has_phones"),
    "totals":    ("tiles", "since_ms"),
    "traffic":   ("hour",),
    "needs":     ("needs",),
    "queues":    ("queues",),
    "operator":  ("operator",),
    "receivers": ("receivers",),
    "newest":    ("newest",),
}
# fmt: on


async def _values(request: PageRequest, overview: AppOverview) -> dict[str, Any]:
    is_past = _has_completed_steps(overview)
    needs_send = not is_past and not overview.progress.has_message
    waits = (await request.services.apis.admin.call("GET /admin/waits", app_id=request.app.id))["waits"]
    return {
        "steps": None if is_past else overview.progress,
        "first": await find_first_message(request) if needs_send else None,
        "has_phones": request.services.apis.control is not None,
        "tiles": status_tiles(overview, request.zone),
        "since_ms": counted_since_ms(overview.counts, overview.now_ms, request.zone),
        "hour": hour_chart(overview, request.zone),
        "needs": attention_items(overview),
        "queues": summarize_queues(overview.queues, waits, overview.now_ms),
        "operator": overview.operator,
        "receivers": overview.receivers,
        "newest": overview.newest,
    }


def _has_completed_steps(overview: AppOverview) -> bool:
    begun = overview.progress
    is_through = begun.has_message and begun.has_inbound and begun.has_callback
    return is_through or len(overview.newest) >= NEWEST_MESSAGES
