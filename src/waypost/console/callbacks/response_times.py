"""Response times and results of the app's receivers, compared with the limit."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from markupsafe import Markup
from sqlalchemy import Connection
from starlette.responses import Response

from waypost.base.clock import DAY_MS, HOUR_MS
from waypost.console.callbacks.lookup import base_of, standing_of_all
from waypost.console.callbacks.subscriptions import is_taken
from waypost.console.callbacks.times import at_of
from waypost.console.charts.axes import Frame, Mark
from waypost.console.charts.distribution import Bin, distribution
from waypost.console.charts.over_time import lines as lines_over_time
from waypost.console.charts.series import Series, key, table
from waypost.console.page_tools import PageTools
from waypost.console.web.formatting import duration, plain
from waypost.console.web.page_request import PageRequest
from waypost.domain.callbacks.receiver_statistics import LATE_MS, QUICK_MS, report_of
from waypost.store.callbacks.receiver_statistics import MOST_TRIES, Answered, answered, taken_of

SLOTS: Final = 48
STEPS: Final = 6
"""Bars of the distribution per power of ten."""
_LIMIT: Final = duration(LATE_MS)
_SLOW_MS: Final = 1_000
_LOW_MS: Final = 1
_HIGH_MS: Final = 20_000
_TICKS: Final = (1, 10, 100, 1_000, 10_000)

# fmt: off
RANGES: Final = (  # value in the URL, label, length, time format of the labels
    ("hour", "Last hour",     HOUR_MS,    "%H:%M"),
    ("day",  "Last 24 hours", DAY_MS,     "%H:%M"),
    ("week", "Last 7 days",   7 * DAY_MS, "%d %b %H:%M"),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class _Read:
    rows: list[Answered]
    hour: tuple[int, int]
    day: tuple[int, int]


async def show_answer_times(desk: PageTools, visit: PageRequest) -> Response:
    """Return the page."""
    chosen = next((row for row in RANGES if row[0] == visit.query("range", "day")), RANGES[1])
    name, _, length_ms, time_format = chosen
    now_ms = desk.parts.clock.now_ms()
    from_ms = now_ms + 1 - length_ms
    subscriptions = await standing_of_all(desk, visit)

    def read(connection: Connection) -> dict[int, _Read]:
        return {
            subscription["id"]: _Read(
                answered(connection, subscription["id"], from_ms, now_ms + 1, slots=SLOTS),
                taken_of(connection, subscription["id"], now_ms - HOUR_MS),
                taken_of(connection, subscription["id"], now_ms - DAY_MS),
            )
            for subscription in subscriptions
        }

    attempts = await desk.parts.database.read(read)
    labels = _labels(from_ms, length_ms, time_format)
    return await desk.page(
        visit, "callbacks/response_times.html",
        cards=[_card(subscription, attempts[subscription["id"]], labels) for subscription in subscriptions],
        ranges=[(range_name, label) for range_name, label, _, _ in RANGES], chosen=name, root=base_of(visit), most=MOST_TRIES,
    )  # fmt: skip


def _card(one: dict[str, Any], read: _Read, labels: Sequence[str]) -> dict[str, Any]:
    card: dict[str, Any] = {
        "id": one["id"],
        "tag": one["tag"],
        "url": one["url"],
        "hour": _share(read.hour),
        "day": _share(read.day),
        "report": None,
    }
    reports = report_of(read.rows)
    if not reports:
        return card
    [report] = reports
    return {
        **card,
        "report": report,
        "is_cut": report["attempts"] >= MOST_TRIES,
        "verdict": _verdict(report),
        "distribution": _distribution(one, read.rows, report),
        "over_time": _over_time(one, read.rows, labels),
    }


def _share(counted: tuple[int, int]) -> str:
    attempts, delivered = counted
    if not attempts:
        return "no attempts"
    return f"{_percent((attempts - delivered) / attempts)} of {plain(attempts)}"


def _percent(share: float) -> str:
    if 0 < share < 0.001:
        return "under 0.1 %"
    return f"{100 * share:.1f} %".replace(".0 %", " %")


def _verdict(line: dict[str, Any]) -> str:
    """Return the statistics in two sentences."""
    half, most = (duration(max(line[name], 1)) for name in ("p50_ms", "p99_ms"))
    first = f"Half of the responses took {half} or less, 99 % took {most} or less."
    failed = 1 - line["by_status"].get("2xx", 0) / line["attempts"]
    if line["over_10_s"]:
        late = _percent(line["over_10_s"])
        return f"{first} {late} took longer than {_LIMIT} and count as failed."
    if failed:
        return f"{first} But {_percent(failed)} of the attempts failed, whatever their duration."
    if line["p99_ms"] >= QUICK_MS:
        return f"{first} That is close to the limit of {_LIMIT}: respond before you process the callback."
    if line["p50_ms"] >= _SLOW_MS:
        return f"{first} That is slow: callbacks about the same recipient wait for each other."
    return f"{first} The limit is {_LIMIT}."


def _distribution(one: dict[str, Any], rows: Sequence[Answered], line: dict[str, Any]) -> Markup:
    counts: dict[int, list[int]] = defaultdict(lambda: [0, 0])
    for row in rows:
        counts[_bin_of(row.duration_ms)][0 if is_taken(row.status) else 1] += row.tries
    last = _bin_of(_HIGH_MS - 1)
    bins = [Bin(_edge(at), min(_edge(at + 1), _HIGH_MS), *counts[at], label=_spelt(at)) for at in range(last + 1)]
    marks = [
        Mark(line["p50_ms"], f"p50 {duration(line['p50_ms'])}", "quiet"),
        Mark(line["p99_ms"], f"p99 {duration(line['p99_ms'])}", "quiet"),
        Mark(LATE_MS, "limit", "bad"),
    ]
    frame = Frame(
        f"spread-{one['id']}",
        f"Response times of {one['tag']}",
        f"{_verdict(line)} The axis is logarithmic.",
        spell=duration,
    )
    chart = distribution(frame, bins, low=_LOW_MS, high=_HIGH_MS, ticks=_TICKS, marks=marks)
    cells = [(each.label, plain(each.count), plain(each.bad)) for each in bins if each.count or each.bad]
    data_table = table(
        ("Response time", "Delivered", "Failed"), cells,
        caption=f"Response times of {one['tag']}", id=f"spread-table-{one['id']}",
    )  # fmt: skip
    return chart + data_table


def _over_time(one: dict[str, Any], rows: Sequence[Answered], labels: Sequence[str]) -> Markup:
    slots: dict[int, list[Answered]] = defaultdict(list)
    for row in rows:
        slots[row.slot].append(row)
    reports = [report_of(slots[at])[0] if at in slots else None for at in range(SLOTS)]
    series = [Series("p50", "accent", _of("p50_ms", reports)), Series("p99", "info", _of("p99_ms", reports))]
    frame = Frame(
        f"times-{one['id']}",
        f"Response times of {one['tag']} over time",
        "Response times at p50 and p99; the limit is 10 s. The axis is logarithmic.",
        spell=duration,
    )
    limit = Mark(LATE_MS, f"limit {_LIMIT}", "bad")
    chart = lines_over_time(frame, series, labels, marks=[limit], logarithmic=True)
    cells = [
        (label, report["attempts"], duration(report["p50_ms"]), duration(report["p99_ms"]))
        for label, report in zip(labels, reports, strict=True)
        if report
    ]
    data_table = table(
        ("From (UTC)", "Attempts", "p50", "p99"), cells,
        caption=f"Response times of {one['tag']} over time", id=f"times-table-{one['id']}",
    )  # fmt: skip
    return key(series) + chart + data_table


def _of(name: str, lines: Sequence[dict[str, Any] | None]) -> list[float | None]:
    return [None if line is None else line[name] for line in lines]


def _labels(from_ms: int, length_ms: int, written: str) -> list[str]:
    return [at_of(from_ms + at * (length_ms // SLOTS)).strftime(written) for at in range(SLOTS)]


def _bin_of(ms: int) -> int:
    return math.floor(STEPS * math.log10(min(max(ms, _LOW_MS), _HIGH_MS - 1)) + 1e-9)


def _spelt(at: int) -> str:
    """Return the range of a bar in whole milliseconds."""
    first, last = math.ceil(_edge(at)), math.ceil(_edge(at + 1)) - 1
    if at == 0:
        return f"{duration(1)} or less"
    if first >= LATE_MS:
        return f"{_LIMIT} or more"
    if first == last:
        return duration(first)
    return f"{duration(first)} to {duration(last)}"


def _edge(at: int) -> float:
    return 10 ** (at / STEPS)
