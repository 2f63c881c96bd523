"""A small bar chart without axes, for a row of a list."""

import math
from collections.abc import Sequence
from typing import Final

from markupsafe import Markup

from waypost.console.charts.axes import block, slot_left

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
