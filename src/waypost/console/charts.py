"""Charts as SVG made here: pictures with a title and a description, and the same figures as a table behind each.

Places across are percentages and heights are pixels, so that a chart fills whatever width it has while its
words keep their size. Colours are classes of `charts.css`. Whoever shows a chart loads that sheet.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

TONES: Final = ("accent", "good", "warn", "bad", "info", "quiet")
"""The classes `tone-…` of the sheet."""

_TOP: Final = 18
_FOOT: Final = 22
_SPARK_HEIGHT: Final = 28


@dataclass(frozen=True, slots=True)
class Series:
    """One line, or one layer of stacked bars.

    Attributes:
        name: as the key of the chart and the table name it.
        tone: one of `TONES`.
        values: one for each label; None: nothing is known there.
    """

    name: str
    tone: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Mark:
    """A line across a chart that says something, such as a limit.

    Attributes:
        at: in the units of the axis.
        label: what it is, in a word or two.
        tone: one of `TONES`.
    """

    at: float
    label: str
    tone: str = "quiet"


@dataclass(frozen=True, slots=True)
class Bin:
    """One bar of a distribution: how many lie from `low` on and below `high`.

    Attributes:
        bad: how many more there are that went wrong; they stand on top of the others.
        label: what it says when it is pointed at; its bounds unless given.
    """

    low: float
    high: float
    count: int
    bad: int = 0
    label: str = ""


def plain(number: float) -> str:
    """A number with its thousands apart."""
    text = f"{number:,.0f}" if number >= 10 or number == int(number) else f"{number:.1f}"
    return text.replace(",", "\u202f")


def duration(ms: float) -> str:
    """Milliseconds as people say them: `35 ms`, `1.2 s`, `10 s`; number and unit stay on one line."""
    if ms < 1:
        return "under 1\u00a0ms"
    if ms < 1000:
        return f"{ms:.0f}\u00a0ms"
    return (
        f"{ms / 1000:.0f}\u00a0s" if ms >= 10_000 or ms % 1000 == 0 else f"{ms / 1000:.1f}\u00a0s"
    )


def bars(
    id: str,
    series: Sequence[Series],
    labels: Sequence[str],
    *,
    title: str,
    description: str,
    height: int = 180,
    spell: Callable[[float], str] = plain,
) -> Markup:
    """Stacked bars, one for each label, the first series at the bottom.

    Args:
        id: of the element, once on a page.
        series: the layers.
        labels: of the bars; some of them stand below.
        title: what it shows.
        description: what is to be seen, in a sentence.
        height: in pixels.
        spell: writes a value.
    """
    count = len(labels)
    sums = [sum(one.values[at] or 0 for one in series) for at in range(count)]
    most = _round_up(max(sums, default=0))
    floor, room = height - _FOOT, height - _FOOT - _TOP
    drawn = [_grid(most, floor, room, spell)]
    for at, label in enumerate(labels):
        base = float(floor)
        told = ", ".join(
            f"{one.name} {spell(one.values[at] or 0)}" for one in series if one.values[at]
        )
        pieces: list[Markup] = []
        for one in series:
            tall = room * (one.values[at] or 0) / most
            if tall <= 0:
                continue
            base -= tall
            pieces.append(
                Markup('<rect class="tone-{}" x="{:.3f}%" y="{:.2f}" width="{:.3f}%" height="{:.2f}"/>').format(
                    one.tone, _across(at + 0.1, count), base, 80 / count, max(tall, 1)
                )
            )  # fmt: skip
        drawn.append(
            Markup(
                '<g class="chart-bar"><title>{}</title><rect class="chart-hit" x="{:.3f}%" y="{}" '
                'width="{:.3f}%" height="{}"/>{}</g>'
            ).format(
                f"{label}: {told or 'nothing'}",
                _across(at, count),
                _TOP,
                100 / count,
                room,
                Markup("").join(pieces),
            )
        )
    drawn.append(_labels_below(labels, height))
    return _picture(id, "chart-bars", title, description, height, drawn)


def lines(
    id: str,
    series: Sequence[Series],
    labels: Sequence[str],
    *,
    title: str,
    description: str,
    height: int = 180,
    marks: Sequence[Mark] = (),
    logarithmic: bool = False,
    spell: Callable[[float], str] = plain,
) -> Markup:
    """Lines over labels; where a value is None the line breaks.

    Args:
        id: of the element, once on a page.
        series: the lines.
        labels: of the places; some of them stand below.
        title: what it shows.
        description: what is to be seen, in a sentence.
        height: in pixels.
        marks: limits, drawn across.
        logarithmic: each step up is ten times the one before; values below 1 stand at 1.
        spell: writes a value.
    """
    known = [value for one in series for value in one.values if value is not None]
    top = max([*known, *(mark.at for mark in marks)], default=0)
    floor, room = height - _FOOT, height - _FOOT - _TOP
    most = max(2.5 * top, 10) if logarithmic else _round_up(top)

    def up(value: float) -> float:
        if logarithmic:
            return floor - room * math.log10(max(value, 1)) / math.log10(most)
        return floor - room * value / most

    if logarithmic:
        steps = [float(10**power) for power in range(1, math.floor(math.log10(most)) + 1)]
        drawn = [_rules(steps, up, spell), _axis(floor)]
    else:
        drawn = [_grid(most, floor, room, spell)]
    drawn += [_limit(mark, up(mark.at)) for mark in marks]
    count = max(len(labels) - 1, 1)
    paths = [
        Markup(
            '<path class="chart-line tone-{}" d="{}" vector-effect="non-scaling-stroke"/>'
        ).format(one.tone, _path([(100 * at / count, value) for at, value in enumerate(one.values)], up))
        for one in series
    ]  # fmt: skip
    drawn.append(
        Markup(
            '<svg x="0" y="0" width="100%" height="{0}" viewBox="0 0 100 {0}" preserveAspectRatio="none">{1}</svg>'
        ).format(height, Markup("").join(paths))
    )
    for one in series:  # what stands alone is no line
        drawn += [
            Markup('<circle class="chart-dot tone-{}" cx="{:.3f}%" cy="{:.2f}" r="3"/>').format(
                one.tone, 100 * at / count, up(value)
            )
            for at, value in enumerate(one.values)
            if value is not None and _is_alone(one.values, at)
        ]
    for at, label in enumerate(labels):
        told = ", ".join(
            f"{one.name} {spell(value)}" for one in series if (value := one.values[at]) is not None
        )
        drawn.append(
            Markup(
                '<rect class="chart-hit" x="{:.3f}%" y="{}" width="{:.3f}%" height="{}"><title>{}</title></rect>'
            ).format(
                _across(at, len(labels)), _TOP, 100 / len(labels), room, f"{label}: {told or 'nothing'}"
            )
        )  # fmt: skip
    drawn.append(_labels_below(labels, height))
    return _picture(id, "chart-lines", title, description, height, drawn)


def sparkline(
    values: Sequence[float | None],
    *,
    title: str,
    tones: Sequence[str] = (),
    logarithmic: bool = False,
    most: float = 0,
) -> Markup:
    """A small row of bars without axes, such as the newest answer times.

    Args:
        values: oldest first; None: a gap.
        title: what it shows, with its figures in words.
        tones: of each bar; accent unless given.
        logarithmic: as with `lines`.
        most: the top of it at least.
    """
    top = max([value for value in values if value is not None], default=0)
    top = max(top, most, 1)
    count = max(len(values), 1)
    drawn: list[Markup] = []
    for at, value in enumerate(values):
        if value is None:
            continue
        share = math.log10(max(value, 1) + 1) / math.log10(top + 1) if logarithmic else value / top
        tall = max(_SPARK_HEIGHT * share, 2)
        drawn.append(
            Markup(
                '<rect class="tone-{}" x="{:.3f}%" y="{:.2f}" width="{:.3f}%" height="{:.2f}"/>'
            ).format(
                tones[at] if tones else "accent",
                _across(at + 0.1, count),
                _SPARK_HEIGHT - tall,
                80 / count,
                tall,
            )
        )
    return Markup(
        '<svg class="sparkline" width="100%" height="{}" role="img" aria-label="{}"><title>{}</title>{}</svg>'
    ).format(_SPARK_HEIGHT, title, title, Markup("").join(drawn))


def distribution(
    id: str,
    bins: Sequence[Bin],
    *,
    title: str,
    description: str,
    low: float,
    high: float,
    ticks: Sequence[float],
    marks: Sequence[Mark] = (),
    height: int = 180,
    spell: Callable[[float], str] = plain,
) -> Markup:
    """How values are spread over an axis on which each step is ten times the one before.

    Args:
        id: of the element, once on a page.
        bins: the bars.
        title: what it shows.
        description: what is to be seen, in a sentence.
        low: where the axis begins; above 0.
        high: where it ends.
        ticks: what stands below it.
        marks: lines upright, such as percentiles and a limit.
        height: in pixels.
        spell: writes a value of the axis.
    """

    def across(value: float) -> float:
        share = math.log(min(max(value, low), high) / low) / math.log(high / low)
        return 100 * share

    placed: list[tuple[Mark, float, int]] = []
    ends: list[float] = []  # of each row of words, so that none covers another on a narrow screen
    for mark in sorted(marks, key=lambda one: one.at):
        at = across(mark.at)
        row = next((row for row, end in enumerate(ends) if at - end >= 45), len(ends))
        ends[row : row + 1] = [at]
        placed.append((mark, at, row))
    floor, top = height - _FOOT, _TOP * max(len(ends), 1) + 4
    room = floor - top
    most = max((one.count + one.bad for one in bins), default=0) or 1
    drawn: list[Markup] = []
    for tick in ticks:
        at = across(tick)
        anchor = "start" if at < 5 else "end" if at > 95 else "middle"
        drawn.append(
            Markup(
                '<line class="chart-rule" x1="{0:.3f}%" x2="{0:.3f}%" y1="{1}" y2="{2}"/>'
                '<text class="chart-label" x="{0:.3f}%" y="{3}" text-anchor="{4}">{5}</text>'
            ).format(at, top, floor, height - 6, anchor, spell(tick))
        )
    for one in bins:
        if not one.count + one.bad:
            continue
        left, wide = across(one.low), max(across(one.high) - across(one.low) - 0.15, 0.3)
        told = f"{one.label or f'{spell(one.low)} to {spell(one.high)}'}: {plain(one.count)}"
        told += f", and {plain(one.bad)} not taken" if one.bad else ""
        base = float(floor)
        drawn.append(Markup("<g><title>{}</title>").format(told))
        for count, tone in ((one.count, "accent"), (one.bad, "bad")):
            if not count:
                continue
            tall = max(room * count / most, 2)
            base -= tall
            drawn.append(
                Markup(
                    '<rect class="tone-{}" x="{:.3f}%" y="{:.2f}" width="{:.3f}%" height="{:.2f}"/>'
                ).format(tone, left, base, wide, tall)
            )
        drawn.append(Markup("</g>"))
    drawn.append(_axis(floor))
    for mark, at, row in placed:
        anchor = "start" if at < 12 else "end" if at > 88 else "middle"
        drawn.append(
            Markup(
                '<line class="chart-mark tone-{0}" x1="{1:.3f}%" x2="{1:.3f}%" y1="{2}" y2="{3}"/>'
                '<text class="chart-label tone-{0}" x="{1:.3f}%" y="{2}" dy="-4" text-anchor="{4}">{5}</text>'
            ).format(mark.tone, at, _TOP * (row + 1), floor, anchor, mark.label)
        )
    return _picture(id, "chart-distribution", title, description, height, drawn)


def key(series: Sequence[Series]) -> Markup:
    """Which colour is what."""
    items = [
        Markup('<li><span class="chart-key-colour tone-{}"></span>{}</li>').format(
            one.tone, one.name
        )
        for one in series
    ]
    return Markup('<ul class="chart-key">{}</ul>').format(Markup("").join(items))


def table(
    heads: Sequence[str], rows: Sequence[Sequence[object]], *, caption: str, id: str = ""
) -> Markup:
    """The figures behind a chart, for whoever would rather read them; folded until it is opened."""
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(one) for one in heads)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            row[0], Markup("").join(Markup('<td class="number">{}</td>').format(one) for one in row[1:])
        )
        for row in rows
    )  # fmt: skip
    named = Markup(' id="{}" data-keep="open"').format(id) if id else ""
    return Markup(
        '<details class="chart-table"{}><summary>As a table</summary><div class="table-wrap" tabindex="0">'
        '<table><caption class="hidden">{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div></details>'
    ).format(named, caption, head, body)


def _picture(
    id: str, kind: str, title: str, description: str, height: int, drawn: Sequence[Markup]
) -> Markup:
    return Markup(
        '<svg id="{0}" class="chart {1}" width="100%" height="{2}" role="img" aria-labelledby="{0}-title {0}-desc">'
        '<title id="{0}-title">{3}</title><desc id="{0}-desc">{4}</desc>{5}</svg>'
    ).format(id, kind, height, title, description, Markup("").join(drawn))


def _grid(most: float, floor: float, room: float, spell: Callable[[float], str]) -> Markup:
    """Rules at the top and in the middle, and the axis."""
    ruled = _rules([most / 2, most], lambda value: floor - room * value / most, spell)
    return ruled + _axis(floor)


def _rules(
    steps: Sequence[float], up: Callable[[float], float], spell: Callable[[float], str]
) -> Markup:
    return Markup("").join(
        Markup(
            '<line class="chart-rule" x1="0" x2="100%" y1="{0:.2f}" y2="{0:.2f}"/>'
            '<text class="chart-label" x="2" y="{1:.2f}">{2}</text>'
        ).format(up(step), up(step) - 4, spell(step))
        for step in steps
    )


def _limit(mark: Mark, y: float) -> Markup:
    return Markup(
        '<line class="chart-mark tone-{0}" x1="0" x2="100%" y1="{1:.2f}" y2="{1:.2f}"/>'
        '<text class="chart-label tone-{0}" x="100%" dx="-2" y="{2:.2f}" text-anchor="end">{3}</text>'
    ).format(mark.tone, y, y - 4, mark.label)


def _labels_below(labels: Sequence[str], height: int, about: int = 4) -> Markup:
    """Some of the labels: the first, the last, and a few between."""
    if not labels:
        return Markup("")
    last = len(labels) - 1
    shown = sorted({round(last * step / about) for step in range(about + 1)})
    drawn: list[Markup] = []
    for nth, at in enumerate(shown):
        anchor = "start" if at == 0 else "end" if at == last else "middle"
        x = 0 if at == 0 else 100 if at == last else 100 * (at + 0.5) / len(labels)
        between = " chart-between" if nth % 2 else ""  # gives way where there is no room
        drawn.append(
            Markup(
                '<text class="chart-label{}" x="{:.3f}%" y="{}" text-anchor="{}">{}</text>'
            ).format(between, x, height - 6, anchor, labels[at])
        )
    return Markup("").join(drawn)


def _path(points: Sequence[tuple[float, float | None]], up: Callable[[float], float]) -> str:
    """Lines from point to point; one begins anew after each gap."""
    drawn: list[str] = []
    is_down = False
    for x, value in points:
        if value is None:
            is_down = False
            continue
        drawn.append(f"{'L' if is_down else 'M'}{x:.2f} {up(value):.2f}")
        is_down = True
    return str(escape("".join(drawn)))


def _is_alone(values: Sequence[float | None], at: int) -> bool:
    beside = (values[at - 1] if at else None, values[at + 1] if at + 1 < len(values) else None)
    return all(value is None for value in beside)


def _axis(floor: float) -> Markup:
    return Markup('<line class="chart-axis" x1="0" x2="100%" y1="{0}" y2="{0}"/>').format(floor)


def _across(at: float, count: int) -> float:
    return 100 * at / max(count, 1)


def _round_up(number: float) -> float:
    """The next of 2, 4, 6, 10, 20, 40, …: a top whose half is a whole number too."""
    if number <= 2:
        return 2
    power = 10 ** math.floor(math.log10(number))
    for step in (1, 2, 4, 6, 10):
        if number <= step * power:
            return step * power
    return 10 * power
