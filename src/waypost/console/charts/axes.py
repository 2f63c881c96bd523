"""Building blocks of charts: frame, axes, grid lines, labels and bars.

Horizontal positions are percentages and vertical ones pixels, so that a chart fills any width and its text
keeps its size. Colours are classes of `charts.css`, which every page with a chart must load.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from waypost.console.web.formatting import format_chart_number

LABEL_ROW_PX: Final = 18
"""Height of a row of labels above a chart, in pixels."""
_AXIS_LABELS_PX: Final = 22


@dataclass(frozen=True, slots=True)
class ChartFrame:
    """Texts and size of a chart.

    Attributes:
        id: element id, unique on the page.
        title: title of the chart.
        description: one sentence for screen readers.
        height: in pixels.
        format_value: formats a value of the numeric axis.
    """

    id: str
    title: str
    description: str
    height: int = 180
    format_value: Callable[[float], str] = format_chart_number

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
    """A labelled line across a chart, such as a limit.

    Attributes:
        at: position in units of the axis.
        label: a word or two.
        tone: one of `TONES`.
    """

    at: float
    label: str
    tone: str = "quiet"


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


def reference_line(mark: ReferenceLine, y: float) -> Markup:
    """Return a horizontal reference line, with its label above the right end."""
    return Markup(
        '<line class="chart-mark tone-{0}" x1="0" x2="100%" y1="{1:.2f}" y2="{1:.2f}"/>'
        '<text class="chart-label tone-{0}" x="100%" dx="-2" y="{2:.2f}" text-anchor="end">{3}</text>'
    ).format(mark.tone, y, y - 4, mark.label)


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
