"""Response times and results of the app's receivers, compared with the limit."""

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from markupsafe import Markup
from sqlalchemy import Connection
from starlette.responses import Response

from waypost.base.clock import DAY_MS, HOUR_MS
from waypost.console.callbacks.lookup import callbacks_path, list_subscriptions
from waypost.console.callbacks.subscriptions import is_delivered_status
from waypost.console.charts import ChartFrame, ChartSeries, HistogramBin, ReferenceLine, histogram, legend, value_table
from waypost.console.charts import line_chart as lines_over_time
from waypost.console.page_request import PageRequest
from waypost.console.web.formatting import format_chart_number, format_duration
from waypost.console.web.zones import DisplayZone, time_element
from waypost.domain.callbacks import RECEIVER_DEADLINE_MS, RECEIVER_TARGET_MS, build_receiver_report
from waypost.store.callbacks.receivers import MAX_COUNTED_ATTEMPTS, AttemptCount, count_attempts, count_deliveries

TIME_SLOTS: Final = 48
BINS_PER_DECADE: Final = 6
"""Bars of the distribution per power of ten."""
_LIMIT: Final = format_duration(RECEIVER_DEADLINE_MS)
_SLOW_MS: Final = 1_000
_LOW_MS: Final = 1
_HIGH_MS: Final = 20_000
_TICKS: Final = (1, 10, 100, 1_000, 10_000)

TIME_RANGES: Final = (  # value in the URL, label, length, time format of the labels, form of times in the table
    ("hour", "Last hour", HOUR_MS, "%H:%M", "minute"),
    ("day", "Last 24 hours", DAY_MS, "%H:%M", "moment"),
    ("week", "Last 7 days", 7 * DAY_MS, "%d %b %H:%M", "moment"),
)


class _TimeSlots(NamedTuple):
    """The slots of the charts over time, in the reader's zone, and how their times are shown."""

    zone: DisplayZone
    begins_ms: Sequence[int]
    time_format: str
    form: str


async def show_response_times(request: PageRequest) -> Response:
    """Return the page."""
    chosen = next((row for row in TIME_RANGES if row[0] == request.query("range", "day")), TIME_RANGES[1])
    name, _, length_ms, time_format, form = chosen
    now_ms = request.now_ms()
    from_ms = now_ms + 1 - length_ms
    begins_ms = [from_ms + at * (length_ms // TIME_SLOTS) for at in range(TIME_SLOTS)]
    slots = _TimeSlots(request.zone, begins_ms, time_format, form)
    subscriptions = await list_subscriptions(request)

    def read(connection: Connection) -> list[dict[str, Any]]:
        return [
            {
                **subscription,
                "attempts": count_attempts(connection, subscription["id"], from_ms, now_ms + 1, slots=TIME_SLOTS),
                "hour": _share(*count_deliveries(connection, subscription["id"], now_ms - HOUR_MS)),
                "day": _share(*count_deliveries(connection, subscription["id"], now_ms - DAY_MS)),
            }
            for subscription in subscriptions
        ]

    return await request.page(
        "callbacks/response_times.html",
        cards=[{**card, **_charts(card, slots)} for card in await request.read(read)],
        ranges=[(range_name, label) for range_name, label, *_ in TIME_RANGES], chosen=name,
        root=callbacks_path(request), most=MAX_COUNTED_ATTEMPTS,
    )  # fmt: skip


def _charts(card: dict[str, Any], slots: _TimeSlots) -> dict[str, Any]:
    reports = build_receiver_report(card["attempts"])
    if not reports:
        return {"report": None}
    [report] = reports
    return {
        "report": report,
        "is_cut": report["attempts"] >= MAX_COUNTED_ATTEMPTS,
        "verdict": _verdict(report),
        "distribution": _distribution_chart(card, card["attempts"], report),
        "over_time": _times_chart(card, card["attempts"], slots),
    }


def _share(attempts: int, delivered: int) -> str:
    if not attempts:
        return "no attempts"
    return f"{_percent((attempts - delivered) / attempts)} of {format_chart_number(attempts)}"


def _percent(share: float) -> str:
    if 0 < share < 0.001:
        return "under 0.1 %"
    return f"{100 * share:.1f} %".replace(".0 %", " %")


def _verdict(report: dict[str, Any]) -> str:
    half, most = (format_duration(max(report[name], 1)) for name in ("p50_ms", "p99_ms"))
    first = f"Half of the responses took {half} or less, 99 % took {most} or less."
    failed = 1 - report["by_status"].get("2xx", 0) / report["attempts"]
    if report["over_10_s"]:
        late = _percent(report["over_10_s"])
        return f"{first} {late} took longer than {_LIMIT} and count as failed."
    if failed:
        return f"{first} But {_percent(failed)} of the attempts failed, whatever their duration."
    if report["p99_ms"] >= RECEIVER_TARGET_MS:
        return f"{first} That is close to the limit of {_LIMIT}: respond before you process the callback."
    if report["p50_ms"] >= _SLOW_MS:
        return f"{first} That is slow: callbacks about the same recipient wait for each other."
    return f"{first} The limit is {_LIMIT}."


def _distribution_chart(subscription: dict[str, Any], rows: Sequence[AttemptCount], report: dict[str, Any]) -> Markup:
    counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        counts[_bin_index(row.duration_ms)][0 if is_delivered_status(row.status) else 1] += row.tries
    last = _bin_index(_HIGH_MS - 1)
    bins = [
        HistogramBin(_bin_edge(at), min(_bin_edge(at + 1), _HIGH_MS), *counts[at], label=_bin_label(at))
        for at in range(last + 1)
    ]
    marks = [
        ReferenceLine(report["p50_ms"], f"p50 {format_duration(report['p50_ms'])}", "quiet"),
        ReferenceLine(report["p99_ms"], f"p99 {format_duration(report['p99_ms'])}", "quiet"),
        ReferenceLine(RECEIVER_DEADLINE_MS, "limit", "bad"),
    ]
    frame = ChartFrame(
        f"spread-{subscription['id']}",
        f"Response times of {subscription['tag']}",
        f"{_verdict(report)} The axis is logarithmic.",
        format_value=format_duration,
    )
    chart = histogram(frame, bins, low=_LOW_MS, high=_HIGH_MS, ticks=_TICKS, marks=marks)
    cells = [
        (each.label, format_chart_number(each.count), format_chart_number(each.bad))
        for each in bins
        if each.count or each.bad
    ]
    data_table = value_table(
        ("Response time", "Delivered", "Failed"), cells,
        caption=f"Response times of {subscription['tag']}", id=f"spread-table-{subscription['id']}",
    )  # fmt: skip
    return chart + data_table


def _times_chart(subscription: dict[str, Any], rows: Sequence[AttemptCount], slots: _TimeSlots) -> Markup:
    by_slot: dict[int, list[AttemptCount]] = defaultdict(list)
    for row in rows:
        by_slot[row.slot].append(row)
    reports = [build_receiver_report(by_slot[at])[0] if at in by_slot else None for at in range(TIME_SLOTS)]
    series = [
        ChartSeries(label, tone, [None if report is None else report[f"{label}_ms"] for report in reports])
        for label, tone in (("p50", "accent"), ("p99", "info"))
    ]
    frame = ChartFrame(
        f"times-{subscription['id']}",
        f"Response times of {subscription['tag']} over time, {slots.zone.label}",
        "Response times at p50 and p99; the limit is 10 s. The axis is logarithmic.",
        format_value=format_duration,
    )
    limit = ReferenceLine(RECEIVER_DEADLINE_MS, f"limit {_LIMIT}", "bad")
    labels = [slots.zone.local_time(at_ms).strftime(slots.time_format) for at_ms in slots.begins_ms]
    chart = lines_over_time(frame, series, labels, marks=[limit], logarithmic=True)
    cells = [
        (
            time_element(at_ms, slots.form, slots.begins_ms[-1], slots.zone),
            report["attempts"],
            format_duration(report["p50_ms"]),
            format_duration(report["p99_ms"]),
        )
        for at_ms, report in zip(slots.begins_ms, reports, strict=True)
        if report
    ]
    data_table = value_table(
        (f"From ({slots.zone.label})", "Attempts", "p50", "p99"), cells,
        caption=f"Response times of {subscription['tag']} over time", id=f"times-table-{subscription['id']}",
    )  # fmt: skip
    return legend(series) + chart + data_table


def _bin_index(duration_ms: int) -> int:
    return math.floor(BINS_PER_DECADE * math.log10(min(max(duration_ms, _LOW_MS), _HIGH_MS - 1)) + 1e-9)


def _bin_label(index: int) -> str:
    """Return the range of a bar in whole milliseconds."""
    first, last = math.ceil(_bin_edge(index)), math.ceil(_bin_edge(index + 1)) - 1
    if index == 0:
        return f"{format_duration(1)} or less"
    if first >= RECEIVER_DEADLINE_MS:
        return f"{_LIMIT} or more"
    if first == last:
        return format_duration(first)
    return f"{format_duration(first)} to {format_duration(last)}"


def _bin_edge(index: int) -> float:
    return 10 ** (index / BINS_PER_DECADE)
