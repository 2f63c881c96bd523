"""Measurements with their targets: one row for each, one table and one JSON file for all."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Measurement:
    """One measurement of a run.

    Attributes:
        target: T1 to T11.
        least: the required value: a minimum, or a maximum if lower is better.
        aim: the desired value.
        is_ratio: relative to something in the same run, so that machines can be compared.
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

    def _reaches(self, bound: float) -> bool:
        return self.value <= bound if self.lower_is_better else self.value >= bound


def format_table(measurements: Sequence[Measurement]) -> str:
    """Return the table of all measurements."""
    lines = [f"{'':4}{'engine':<11}{'measurement':<58}{'value':>10} {'unit':<5}{'target':>8}{'aim':>7}"]
    last_target = ""
    for measurement in measurements:
        if measurement.target != last_target:
            lines.append("")
        last_target = measurement.target
        lines.append(
            f"{measurement.target:4}{measurement.engine:<11}{measurement.name:<58}{_number(measurement.value):>10} {measurement.unit:<5}"
            f"{_bound(measurement.least, measurement):>8}{_bound(measurement.aim, measurement):>7}  {measurement.verdict}"
            f"{'  ' + measurement.note if measurement.note else ''}"
        )
    return "\n".join(line.rstrip() for line in lines)


def measurements_as_json(measurements: Sequence[Measurement]) -> list[dict[str, Any]]:
    """Return all measurements as JSON values."""
    return [{**asdict(measurement), "verdict": measurement.verdict} for measurement in measurements]


def _bound(bound: float | None, measurement: Measurement) -> str:
    if bound is None:
        return ""
    return f"{'<=' if measurement.lower_is_better else '>='}{_number(bound)}"


def _number(value: float) -> str:
    if value >= 100 or value == int(value):
        return f"{value:,.0f}"
    return f"{value:.2f}" if value < 10 else f"{value:.1f}"
