"""Charts of series over labels, usually times: stacked bars and lines."""

import math
from collections.abc import Callable, Sequence

from markupsafe import Markup, escape

from waypost.console.charts.axes import (
    LABEL_ROW_PX,
    ChartFrame,
    ReferenceLine,
    axis,
    block,
    grid,
    grid_lines,
    labels_below,
    reference_line,
    round_up,
    slot_left,
    svg_chart,
)
from waypost.console.charts.series import ChartSeries


def bar_chart(frame: ChartFrame, series: Sequence[ChartSeries], labels: Sequence[str]) -> Markup:
    """Return stacked bars, one per label, with the first series at the bottom.

    Args:
        frame: frame of the chart.
        series: the layers.
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
        frame: frame of the chart.
        series: the lines.
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
    drawn += [reference_line(mark, y_position(mark.at)) for mark in marks]
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
            if value is not None and _is_alone(line.values, at)
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


def _is_alone(values: Sequence[float | None], at: int) -> bool:
    neighbours = (values[at - 1] if at else None, values[at + 1] if at + 1 < len(values) else None)
    return all(value is None for value in neighbours)
