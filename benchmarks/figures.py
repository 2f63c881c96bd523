"""Figures with their targets: one row for each, one table and one JSON file of all of them."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of a run.

    Attributes:
        target: T1 to T7.
        least: what must be reached; of a figure that is better when lower, what must not be passed.
        aim: what is aimed at.
        is_ratio: taken against something in the same run, so that it may be compared across machines.
    """

    target: str
    engine: str
    name: str
    value: float
    unit: str = ""
    least: float | None = None
    aim: float | None = None
    lower_is_better: bool = False
    is_ratio: bool = False
    note: str = ""

    @property
    def verdict(self) -> str:
        if self.least is None and self.aim is None:
            return ""
        if self.least is not None and not self._reaches(self.least):
            return "MISSED"
        if self.aim is None:
            return "met"
        if self._reaches(self.aim):
            return "met, and the aim" if self.least is not None else "aim met"
        return "met, aim missed" if self.least is not None else "aim missed"

    def _reaches(self, wanted: float) -> bool:
        return self.value <= wanted if self.lower_is_better else self.value >= wanted


def table(figures: Sequence[Figure]) -> str:
    """All figures, as text."""
    lines = [f"{'':4}{'engine':<11}{'figure':<58}{'value':>10} {'unit':<5}{'target':>8}{'aim':>7}"]
    last = ""
    for one in figures:
        if one.target != last:
            lines.append("")
        last = one.target
        lines.append(
            f"{one.target:4}{one.engine:<11}{one.name:<58}{_number(one.value):>10} {one.unit:<5}"
            f"{_bound(one.least, one):>8}{_bound(one.aim, one):>7}  {one.verdict}"
            f"{'  ' + one.note if one.note else ''}"
        )
    return "\n".join(line.rstrip() for line in lines)


def as_json(figures: Sequence[Figure]) -> list[dict[str, Any]]:
    """All figures, to be kept."""
    return [{**asdict(one), "verdict": one.verdict} for one in figures]


def _bound(wanted: float | None, figure: Figure) -> str:
    if wanted is None:
        return ""
    return f"{'<=' if figure.lower_is_better else '>='}{_number(wanted)}"


def _number(value: float) -> str:
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"
