"""A report card of the app's receivers: how long they take to answer, against the limit, and what they answer."""

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
"""Bars of the distribution for each power of ten."""
_LIMIT: Final = duration(LATE_MS)
_SLOW_MS: Final = 1_000
_LOW_MS: Final = 1
_HIGH_MS: Final = 20_000
_TICKS: Final = (1, 10, 100, 1_000, 10_000)

# fmt: off
RANGES: Final = (  # what may be looked at, and how its places in time are written
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
    """The page."""
    chosen = next((one for one in RANGES if one[0] == visit.query("range", "day")), RANGES[1])
    name, _, length_ms, written = chosen
    now_ms = desk.parts.clock.now_ms()
    from_ms = now_ms + 1 - length_ms
    standing = await standing_of_all(desk, visit)

    def look(connection: Connection) -> dict[int, _Read]:
        return {
            one["id"]: _Read(
                answered(connection, one["id"], from_ms, now_ms + 1, slots=SLOTS),
                taken_of(connection, one["id"], now_ms - HOUR_MS),
                taken_of(connection, one["id"], now_ms - DAY_MS),
            )
            for one in standing
        }

    found = await desk.parts.database.read(look)
    labels = _labels(from_ms, length_ms, written)
    return await desk.page(
        visit, "callbacks/answers.html",
        cards=[_card(one, found[one["id"]], labels) for one in standing],
        ranges=[(one[0], one[1]) for one in RANGES], chosen=name, root=base_of(visit), most=MOST_TRIES,
    )  # fmt: skip


def _card(one: dict[str, Any], read: _Read, labels: Sequence[str]) -> dict[str, Any]:
    card: dict[str, Any] = {
        "id": one["id"],
        "tag": one["tag"],
        "url": one["url"],
        "hour": _share(read.hour),
        "day": _share(read.day),
        "line": None,
    }
    lines = report_of(read.rows)
    if not lines:
        return card
    [line] = lines
    return {
        **card,
        "line": line,
        "is_cut": line["attempts"] >= MOST_TRIES,
        "verdict": _verdict(line),
        "distribution": _distribution(one, read.rows, line),
        "over_time": _over_time(one, read.rows, labels),
    }


def _share(counted: tuple[int, int]) -> str:
    tries, taken = counted
    if not tries:
        return "no tries"
    return f"{_percent((tries - taken) / tries)} of {plain(tries)}"


def _percent(share: float) -> str:
    if 0 < share < 0.001:
        return "under 0.1 %"
    return f"{100 * share:.1f} %".replace(".0 %", " %")


def _verdict(line: dict[str, Any]) -> str:
    """What the figures say, in two sentences."""
    half, most = (duration(max(line[name], 1)) for name in ("p50_ms", "p99_ms"))
    first = f"Half of the answers came within {half}, 99 of 100 within {most}."
    lost = 1 - line["by_status"].get("2xx", 0) / line["attempts"]
    if line["over_10_s"]:
        late = _percent(line["over_10_s"])
        return f"{first} {late} took longer than {_LIMIT} and count as not received."
    if lost:
        return f"{first} But {_percent(lost)} were not taken, whatever their time."
    if line["p99_ms"] >= QUICK_MS:
        return f"{first} That is near the limit of {_LIMIT}: answer first, and work after."
    if line["p50_ms"] >= _SLOW_MS:
        return f"{first} That is slow: what follows for the same recipient waits so long each time."
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
        f"Answer times of {one['tag']}",
        f"{_verdict(line)} The axis is logarithmic.",
        spell=duration,
    )
    picture = distribution(frame, bins, low=_LOW_MS, high=_HIGH_MS, ticks=_TICKS, marks=marks)
    told = [(one.label, plain(one.count), plain(one.bad)) for one in bins if one.count or one.bad]
    behind = table(
        ("Answer time", "Taken", "Not taken"), told,
        caption=f"Answer times of {one['tag']}", id=f"spread-table-{one['id']}",
    )  # fmt: skip
    return picture + behind


def _over_time(one: dict[str, Any], rows: Sequence[Answered], labels: Sequence[str]) -> Markup:
    slots: dict[int, list[Answered]] = defaultdict(list)
    for row in rows:
        slots[row.slot].append(row)
    lines = [report_of(slots[at])[0] if at in slots else None for at in range(SLOTS)]
    series = [
        Series("half within", "accent", _of("p50_ms", lines)),
        Series("99 of 100 within", "info", _of("p99_ms", lines)),
    ]
    frame = Frame(
        f"times-{one['id']}",
        f"Answer times of {one['tag']} over time",
        "Half of the answers and 99 of 100 came within these times; the limit is 10 s. The axis is logarithmic.",
        spell=duration,
    )
    limit = Mark(LATE_MS, f"limit {_LIMIT}", "bad")
    picture = lines_over_time(frame, series, labels, marks=[limit], logarithmic=True)
    told = [
        (label, line["attempts"], duration(line["p50_ms"]), duration(line["p99_ms"]))
        for label, line in zip(labels, lines, strict=True)
        if line
    ]
    behind = table(
        ("From (UTC)", "Tries", "Half within", "99 of 100 within"), told,
        caption=f"Answer times of {one['tag']} over time", id=f"times-table-{one['id']}",
    )  # fmt: skip
    return key(series) + picture + behind


def _of(name: str, lines: Sequence[dict[str, Any] | None]) -> list[float | None]:
    return [None if line is None else line[name] for line in lines]


def _labels(from_ms: int, length_ms: int, written: str) -> list[str]:
    return [at_of(from_ms + at * (length_ms // SLOTS)).strftime(written) for at in range(SLOTS)]


def _bin_of(ms: int) -> int:
    return math.floor(STEPS * math.log10(min(max(ms, _LOW_MS), _HIGH_MS - 1)) + 1e-9)


def _spelt(at: int) -> str:
    """The whole milliseconds of a bar."""
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
