"""The chart of a distribution: how values are spread over an axis of powers of ten."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from waypost.console.charts.axes import TOP, Frame, Mark, axis, block, picture
from waypost.console.web.formatting import plain


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


def distribution(
    frame: Frame, bins: Sequence[Bin], *, low: float, high: float, ticks: Sequence[float], marks: Sequence[Mark] = ()
) -> Markup:
    """How values are spread over an axis on which each step is ten times the one before.

    Args:
        frame: of the chart; it spells the values of the axis below.
        bins: the bars.
        low: where the axis begins; above 0.
        high: where it ends.
        ticks: what stands below it.
        marks: lines upright, such as percentiles and a limit.
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
    floor, top = frame.floor, TOP * max(len(ends), 1) + 4
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
            ).format(at, top, floor, frame.height - 6, anchor, frame.spell(tick))
        )
    for one in bins:
        if not one.count + one.bad:
            continue
        left, wide = across(one.low), max(across(one.high) - across(one.low) - 0.15, 0.3)
        spelt = one.label or f"{frame.spell(one.low)} to {frame.spell(one.high)}"
        told = f"{spelt}: {plain(one.count)}"
        told += f", and {plain(one.bad)} not taken" if one.bad else ""
        base = float(floor)
        drawn.append(Markup("<g><title>{}</title>").format(told))
        for count, tone in ((one.count, "accent"), (one.bad, "bad")):
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
            ).format(mark.tone, at, TOP * (row + 1), floor, anchor, mark.label)
        )
    return picture(frame, "chart-distribution", drawn)
