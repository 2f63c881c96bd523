"""What charts stand in: a frame with its words, axes, rules and labels; and the blocks that they are built of.

Places across are percentages and heights are pixels, so that a chart fills whatever width it has while its
words keep their size. Colours are classes of `charts.css`. Whoever shows a chart loads that sheet.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from waypost.console.web.formatting import plain

TOP: Final = 18
"""The height that words above a chart take, in pixels."""
_FOOT: Final = 22


@dataclass(frozen=True, slots=True)
class Frame:
    """What a chart is called, and the room that it has.

    Attributes:
        id: of the element, once on a page.
        title: what it shows.
        description: what is to be seen, in a sentence.
        height: in pixels.
        spell: writes a value of the axis that has numbers.
    """

    id: str
    title: str
    description: str
    height: int = 180
    spell: Callable[[float], str] = plain

    @property
    def floor(self) -> int:
        """Where the axis lies, in pixels from above."""
        return self.height - _FOOT

    @property
    def room(self) -> int:
        """How high the highest value may stand over the axis, in pixels."""
        return self.floor - TOP


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


def picture(frame: Frame, kind: str, drawn: Sequence[Markup]) -> Markup:
    """The chart around what is drawn; `kind` is a class of the sheet."""
    return Markup(
        '<svg id="{0}" class="chart {1}" width="100%" height="{2}" role="img" aria-labelledby="{0}-title {0}-desc">'
        '<title id="{0}-title">{3}</title><desc id="{0}-desc">{4}</desc>{5}</svg>'
    ).format(frame.id, kind, frame.height, frame.title, frame.description, Markup("").join(drawn))


def block(tone: str, left: float, top: float, wide: float, tall: float) -> Markup:
    """One piece of a bar: across in percent, up and down in pixels."""
    return Markup('<rect class="tone-{}" x="{:.3f}%" y="{:.2f}" width="{:.3f}%" height="{:.2f}"/>').format(
        tone, left, top, wide, tall
    )


def grid(frame: Frame, most: float) -> Markup:
    """Rules at `most`, which stands at the top, and in the middle; and the axis."""
    floor, room = frame.floor, frame.room
    ruled = rules(frame, [most / 2, most], lambda value: floor - room * value / most)
    return ruled + axis(frame)


def rules(frame: Frame, steps: Sequence[float], up: Callable[[float], float]) -> Markup:
    """A thin line at each step, with its value; `up` says where a value stands."""
    return Markup("").join(
        Markup(
            '<line class="chart-rule" x1="0" x2="100%" y1="{0:.2f}" y2="{0:.2f}"/>'
            '<text class="chart-label" x="2" y="{1:.2f}">{2}</text>'
        ).format(up(step), up(step) - 4, frame.spell(step))
        for step in steps
    )


def axis(frame: Frame) -> Markup:
    """The line that values stand on."""
    return Markup('<line class="chart-axis" x1="0" x2="100%" y1="{0}" y2="{0}"/>').format(frame.floor)


def limit(mark: Mark, y: float) -> Markup:
    """A mark that lies across, with its words over its right end."""
    return Markup(
        '<line class="chart-mark tone-{0}" x1="0" x2="100%" y1="{1:.2f}" y2="{1:.2f}"/>'
        '<text class="chart-label tone-{0}" x="100%" dx="-2" y="{2:.2f}" text-anchor="end">{3}</text>'
    ).format(mark.tone, y, y - 4, mark.label)


def labels_below(frame: Frame, labels: Sequence[str], about: int = 4) -> Markup:
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
            Markup('<text class="chart-label{}" x="{:.3f}%" y="{}" text-anchor="{}">{}</text>').format(
                between, x, frame.height - 6, anchor, labels[at]
            )
        )
    return Markup("").join(drawn)


def across(at: float, count: int) -> float:
    """How far to the right the place `at` of so many begins, in percent."""
    return 100 * at / max(count, 1)


def round_up(number: float) -> float:
    """The next of 2, 4, 6, 10, 20, 40, …: a top whose half is a whole number too."""
    if number <= 2:
        return 2
    power = 10 ** math.floor(math.log10(number))
    for step in (1, 2, 4, 6, 10):
        if number <= step * power:
            return step * power
    return 10 * power
