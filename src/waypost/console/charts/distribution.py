"""A histogram on a logarithmic axis."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from waypost.console.charts.axes import LABEL_ROW_PX, ChartFrame, ReferenceLine, axis, block, svg_chart
from waypost.console.web.formatting import format_chart_number


@dataclass(frozen=True, slots=True)
class HistogramBin:
    """One bar of a histogram: the number of values from `low` up to, but not including, `high`.

    Attributes:
        bad: number of further values that failed, drawn on top.
        label: tooltip; by default the bounds.
    """

    low: float
    high: float
    count: int
    bad: int = 0
    label: str = ""


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
        bins: the bars.
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
