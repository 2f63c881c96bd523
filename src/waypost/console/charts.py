"""Charts as SVG: axes, series over time, distributions and sparklines."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup, escape

from waypost.console.web.formatting import format_chart_number

LABEL_ROW_PX: Final = 18
"""Height of a row of labels above a chart, in pixels."""
_AXIS_LABELS_PX: Final = 22


@dataclass(frozen=True, slots=True)
class ChartFrame:
    """Texts and size of a chart."""

    id: str  # element id, unique on the page
    title: str
    description: str  # one sentence for screen readers
    height: int = 180  # in pixels
    format_value: Callable[[float], str] = format_chart_number  # formats a value of the numeric axis

    @property
    def axis_y(self) -> int:
        """Position of the axis, in pixels from the top."""
        return self.height - _AXIS_LABELS_PX

    @property
    def plot_height(self) -> int:
        """Height available for the highest value, in pixels."""
        return self.axis_y - LABEL_ROW_PX


@dataclass(frozen=True, slots=True)
class ReferenceLine:
    """A labelled line across a chart, such as a limit."""

    at: float  # position in units of the axis
    label: str  # a word or two
    tone: str = "quiet"  # one of `TONES`


def svg_chart(frame: ChartFrame, kind: str, drawn: Sequence[Markup]) -> Markup:
    """Return the SVG around the drawn elements; `kind` is a class of `charts.css`."""
    return Markup(
        '<svg id="{0}" class="chart {1}" width="100%" height="{2}" role="img" aria-labelledby="{0}-title {0}-desc">'
        '<title id="{0}-title">{3}</title><desc id="{0}-desc">{4}</desc>{5}</svg>'
    ).format(frame.id, kind, frame.height, frame.title, frame.description, Markup("").join(drawn))


def block(tone: str, left: float, top: float, wide: float, tall: float) -> Markup:
    """Return one rectangle of a bar: `left` and `wide` in percent, `top` and `tall` in pixels."""
    return Markup('<rect class="tone-{}" x="{:.3f}%" y="{:.2f}" width="{:.3f}%" height="{:.2f}"/>').format(
        tone, left, top, wide, tall
    )


def grid(frame: ChartFrame, most: float) -> Markup:
    """Return the axis and grid lines at `limit`, the top value, and at half of it."""
    floor, room = frame.axis_y, frame.plot_height
    lines = grid_lines(frame, [most / 2, most], lambda value: floor - room * value / most)
    return lines + axis(frame)


def grid_lines(frame: ChartFrame, steps: Sequence[float], y_position: Callable[[float], float]) -> Markup:
    """Return a grid line with its value at each step; `up` maps a value to its vertical position."""
    return Markup("").join(
        Markup(
            '<line class="chart-rule" x1="0" x2="100%" y1="{0:.2f}" y2="{0:.2f}"/>'
            '<text class="chart-label" x="2" y="{1:.2f}">{2}</text>'
        ).format(y_position(step), y_position(step) - 4, frame.format_value(step))
        for step in steps
    )


def axis(frame: ChartFrame) -> Markup:
    """Return the line of the axis."""
    return Markup('<line class="chart-axis" x1="0" x2="100%" y1="{0}" y2="{0}"/>').format(frame.axis_y)


def labels_below(frame: ChartFrame, labels: Sequence[str], about: int = 4) -> Markup:
    """Return labels below the axis: the first, the last and a few between."""
    if not labels:
        return Markup("")
    last = len(labels) - 1
    shown = sorted({round(last * step / about) for step in range(about + 1)})
    drawn: list[Markup] = []
    for nth, at in enumerate(shown):
        anchor = "start" if at == 0 else "end" if at == last else "middle"
        x = 0 if at == 0 else 100 if at == last else 100 * (at + 0.5) / len(labels)
        between = " chart-between" if nth % 2 else ""  # hidden on narrow screens
        drawn.append(
            Markup('<text class="chart-label{}" x="{:.3f}%" y="{}" text-anchor="{}">{}</text>').format(
                between, x, frame.height - 6, anchor, labels[at]
            )
        )
    return Markup("").join(drawn)


def slot_left(at: float, count: int) -> float:
    """Return the left edge of slot `at` of `count`, in percent."""
    return 100 * at / max(count, 1)


def round_up(number: float) -> float:
    """Return the next of 2, 4, 6, 10, 20, 40, …: an upper bound whose half is a whole number."""
    if number <= 2:
        return 2
    power = 10 ** math.floor(math.log10(number))
    for step in (1, 2, 4, 6, 10):
        if number <= step * power:
            return step * power
    return 10 * power


TONES: Final = ("accent", "good", "warn", "bad", "info", "quiet")
"""The classes `tone-…` of the sheet."""


@dataclass(frozen=True, slots=True)
class ChartSeries:
    """One line, or one layer of stacked bars."""

    name: str  # name in the legend and the table
    tone: str  # one of `TONES`
    values: Sequence[float | None]  # one value per label; None: unknown


def legend(series: Sequence[ChartSeries]) -> Markup:
    """Return the legend."""
    items = [
        Markup('<li><span class="chart-key-colour tone-{}"></span>{}</li>').format(entry.tone, entry.name)
        for entry in series
    ]
    return Markup('<ul class="chart-key">{}</ul>').format(Markup("").join(items))


def value_table(heads: Sequence[str], rows: Sequence[Sequence[object]], *, caption: str, id: str = "") -> Markup:
    """Return a collapsed table of a chart's values."""
    head = Markup("").join(Markup('<th scope="col">{}</th>').format(text) for text in heads)
    body = Markup("").join(
        Markup('<tr><th scope="row">{}</th>{}</tr>').format(
            row[0], Markup("").join(Markup('<td class="number">{}</td>').format(value) for value in row[1:])
        )
        for row in rows
    )  # fmt: skip
    named = Markup(' id="{}" data-keep="open"').format(id) if id else ""
    return Markup(
        '<details class="chart-table"{}><summary>View as table</summary><div class="table-wrap" tabindex="0" '
        'role="group" aria-label="{}">'
        '<table><caption class="hidden">{}</caption><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div></details>'
    ).format(named, caption, caption, head, body)


_HEIGHT: Final = 28


def sparkline(
    values: Sequence[float | None], *, title: str, tones: Sequence[str] = (), logarithmic: bool = False, most: float = 0
) -> Markup:
    """Return a small bar chart without axes, such as the latest response times.

    Args:
        values: oldest first; None: a gap.
        title: text for screen readers, with the main values.
        tones: tone of each bar; by default accent.
        logarithmic: use a logarithmic axis; values below 1 are drawn at 1.
        most: minimum of the top value.
    """
    top = max([value for value in values if value is not None], default=0)
    top = max(top, most, 1)
    count = max(len(values), 1)
    drawn: list[Markup] = []
    for at, value in enumerate(values):
        if value is None:
            continue
        share = math.log10(max(value, 1) + 1) / math.log10(top + 1) if logarithmic else value / top
        tall = max(_HEIGHT * share, 2)
        tone = tones[at] if tones else "accent"
        drawn.append(block(tone, slot_left(at + 0.1, count), _HEIGHT - tall, 80 / count, tall))
    return Markup(
        '<svg class="sparkline" width="100%" height="{}" role="img" aria-label="{}"><title>{}</title>{}</svg>'
    ).format(_HEIGHT, title, title, Markup("").join(drawn))


@dataclass(frozen=True, slots=True)
class HistogramBin:
    """One bar of a histogram: the number of values from `low` up to, but not including, `high`."""

    low: float
    high: float
    count: int
    bad: int = 0  # number of further values that failed, drawn on top
    label: str = ""  # tooltip; by default the bounds


def histogram(
    frame: ChartFrame,
    bins: Sequence[HistogramBin],
    *,
    low: float,
    high: float,
    ticks: Sequence[float],
    marks: Sequence[ReferenceLine] = (),
) -> Markup:
    """Return a histogram on a logarithmic axis.

    Args:
        frame: frame of the chart; it formats the values of the horizontal axis.
        low: lower end of the axis; above 0.
        high: upper end of the axis.
        ticks: labelled values of the axis.
        marks: vertical reference lines, such as percentiles and a limit.
    """

    def across(value: float) -> float:
        share = math.log(min(max(value, low), high) / low) / math.log(high / low)
        return 100 * share

    placed: list[tuple[ReferenceLine, float, int]] = []
    ends: list[float] = []  # of each row of labels, so that none overlap on a narrow screen
    for mark in sorted(marks, key=lambda mark: mark.at):
        at = across(mark.at)
        row = next((row for row, end in enumerate(ends) if at - end >= 45), len(ends))
        ends[row : row + 1] = [at]
        placed.append((mark, at, row))
    floor, top = frame.axis_y, LABEL_ROW_PX * max(len(ends), 1) + 4
    room = floor - top
    most = max((bar.count + bar.bad for bar in bins), default=0) or 1
    drawn: list[Markup] = []
    for tick in ticks:
        at = across(tick)
        anchor = "start" if at < 5 else "end" if at > 95 else "middle"
        drawn.append(
            Markup(
                '<line class="chart-rule" x1="{0:.3f}%" x2="{0:.3f}%" y1="{1}" y2="{2}"/>'
                '<text class="chart-label" x="{0:.3f}%" y="{3}" text-anchor="{4}">{5}</text>'
            ).format(at, top, floor, frame.height - 6, anchor, frame.format_value(tick))
        )
    for bar in bins:
        if not bar.count + bar.bad:
            continue
        left, wide = across(bar.low), max(across(bar.high) - across(bar.low) - 0.15, 0.3)
        label = bar.label or f"{frame.format_value(bar.low)} to {frame.format_value(bar.high)}"
        tooltip = f"{label}: {format_chart_number(bar.count)}"
        tooltip += f", and {format_chart_number(bar.bad)} failed" if bar.bad else ""
        base = float(floor)
        drawn.append(Markup("<g><title>{}</title>").format(tooltip))
        for count, tone in ((bar.count, "accent"), (bar.bad, "bad")):
            if not count:
                continue
            tall = max(room * count / most, 2)
            base -= tall
            drawn.append(block(tone, left, base, wide, tall))
        drawn.append(Markup("</g>"))
    drawn.append(axis(frame))
    for mark, at, row in placed:
        anchor = "start" if at < 12 else "end" if at > 88 else "middle"
        drawn.append(
            Markup(
                '<line class="chart-mark tone-{0}" x1="{1:.3f}%" x2="{1:.3f}%" y1="{2}" y2="{3}"/>'
                '<text class="chart-label tone-{0}" x="{1:.3f}%" y="{2}" dy="-4" text-anchor="{4}">{5}</text>'
            ).format(mark.tone, at, LABEL_ROW_PX * (row + 1), floor, anchor, mark.label)
        )
    return svg_chart(frame, "chart-distribution", drawn)


def bar_chart(frame: ChartFrame, series: Sequence[ChartSeries], labels: Sequence[str]) -> Markup:
    """Return stacked bars, one per label, with the first series at the bottom.

    Args:
        labels: labels of the bars; some of them are shown below.
    """
    count = len(labels)
    sums = [sum(layer.values[at] or 0 for layer in series) for at in range(count)]
    most = round_up(max(sums, default=0))
    drawn = [grid(frame, most)]
    for at, label in enumerate(labels):
        base = float(frame.axis_y)
        values = ", ".join(
            f"{layer.name} {frame.format_value(layer.values[at] or 0)}" for layer in series if layer.values[at]
        )
        blocks: list[Markup] = []
        for layer in series:
            tall = frame.plot_height * (layer.values[at] or 0) / most
            if tall <= 0:
                continue
            base -= tall
            blocks.append(block(layer.tone, slot_left(at + 0.1, count), base, 80 / count, max(tall, 1)))
        drawn.append(
            Markup(
                '<g class="chart-bar"><title>{}</title><rect class="chart-hit" x="{:.3f}%" y="{}" '
                'width="{:.3f}%" height="{}"/>{}</g>'
            ).format(
                f"{label}: {values or 'none'}",
                slot_left(at, count),
                LABEL_ROW_PX,
                100 / count,
                frame.plot_height,
                Markup("").join(blocks),
            )
        )
    drawn.append(labels_below(frame, labels))
    return svg_chart(frame, "chart-bars", drawn)


def line_chart(
    frame: ChartFrame,
    series: Sequence[ChartSeries],
    labels: Sequence[str],
    *,
    marks: Sequence[ReferenceLine] = (),
    logarithmic: bool = False,
) -> Markup:
    """Return a line chart; a line has a gap at each None.

    Args:
        labels: labels of the positions; some of them are shown below.
        marks: horizontal reference lines.
        logarithmic: use a logarithmic axis; values below 1 are drawn at 1.
    """
    known = [value for line in series for value in line.values if value is not None]
    top = max([*known, *(mark.at for mark in marks)], default=0)
    floor, room = frame.axis_y, frame.plot_height
    most = max(2.5 * top, 10) if logarithmic else round_up(top)

    def y_position(value: float) -> float:
        if logarithmic:
            return floor - room * math.log10(max(value, 1)) / math.log10(most)
        return floor - room * value / most

    if logarithmic:
        steps = [float(10**power) for power in range(1, math.floor(math.log10(most)) + 1)]
        drawn = [grid_lines(frame, steps, y_position), axis(frame)]
    else:
        drawn = [grid(frame, most)]
    for mark in marks:  # with its label above the right end
        drawn.append(
            Markup(
                '<line class="chart-mark tone-{0}" x1="0" x2="100%" y1="{1:.2f}" y2="{1:.2f}"/>'
                '<text class="chart-label tone-{0}" x="100%" dx="-2" y="{2:.2f}" text-anchor="end">{3}</text>'
            ).format(mark.tone, y_position(mark.at), y_position(mark.at) - 4, mark.label)
        )
    count = max(len(labels) - 1, 1)
    paths = [
        Markup(
            '<path class="chart-line tone-{}" d="{}" vector-effect="non-scaling-stroke"/>'
        ).format(line.tone, _path([(100 * at / count, value) for at, value in enumerate(line.values)], y_position))
        for line in series
    ]  # fmt: skip
    drawn.append(
        Markup(
            '<svg x="0" y="0" width="100%" height="{0}" viewBox="0 0 100 {0}" preserveAspectRatio="none">{1}</svg>'
        ).format(frame.height, Markup("").join(paths))
    )
    for line in series:  # a single point has no line
        drawn += [
            Markup('<circle class="chart-dot tone-{}" cx="{:.3f}%" cy="{:.2f}" r="3"/>').format(
                line.tone, 100 * at / count, y_position(value)
            )
            for at, value in enumerate(line.values)
            if value is not None
            and not any(one is not None for one in (*line.values[max(at - 1, 0) : at], *line.values[at + 1 : at + 2]))
        ]
    for at, label in enumerate(labels):
        values = ", ".join(
            f"{line.name} {frame.format_value(value)}" for line in series if (value := line.values[at]) is not None
        )
        drawn.append(
            Markup(
                '<rect class="chart-hit" x="{:.3f}%" y="{}" width="{:.3f}%" height="{}"><title>{}</title></rect>'
            ).format(
                slot_left(at, len(labels)), LABEL_ROW_PX, 100 / len(labels), room, f"{label}: {values or 'none'}"
            )
        )  # fmt: skip
    drawn.append(labels_below(frame, labels))
    return svg_chart(frame, "chart-lines", drawn)


def _path(points: Sequence[tuple[float, float | None]], y_position: Callable[[float], float]) -> str:
    """Return the SVG path through the points; a new line begins after each gap."""
    drawn: list[str] = []
    is_down = False
    for x, value in points:
        if value is None:
            is_down = False
            continue
        drawn.append(f"{'L' if is_down else 'M'}{x:.2f} {y_position(value):.2f}")
        is_down = True
    return str(escape("".join(drawn)))
