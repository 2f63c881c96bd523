"""The documented operations and events of the public partner API, from `docs/sources/coverage.toml`, and their page."""

import tomllib
from collections import Counter
from dataclasses import dataclass
from typing import Final

from docs.markdown import table, test_links
from docs.statements import ROOT, holders

STATES: Final = ("served", "declined")
EVENTS: Final = "Events"
"""First word of the sections that list events; all others list operations."""


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """One documented operation or event.

    Attributes:
        state: `served` or `declined`.
        subject: method and path, or the kind of event.
        note: what differs from the documents; of a declined row its reason, as text.
    """

    key: str
    section: str
    state: str
    subject: str
    note: str = ""

    @property
    def is_event(self) -> bool:
        """True for an event, False for an operation."""
        return self.section.startswith(EVENTS)


def coverage() -> list[CoverageRow]:
    """Return every row, in the order of the documents.

    Raises:
        KeyError: the reason of a declined row is not in the table of reasons.
    """
    tables = tomllib.loads((ROOT / "docs" / "sources" / "coverage.toml").read_text(encoding="utf-8"))
    reasons = tables.pop("reasons")
    return [_row(reasons, key, section, *value) for section, rows in tables.items() for key, value in rows.items()]


def coverage_parts() -> list[str]:
    """Return the parts of the page: the counts, and a table for each section."""
    rows, tests = coverage(), holders()
    counts = Counter((row.is_event, row.state) for row in rows)
    totals = [
        (name, *(str(counts[is_event, state]) for state in STATES), str(sum(row.is_event == is_event for row in rows)))
        for name, is_event in (("Operations", False), ("Events", True))
    ]
    parts = ["## Counts", table(("", *(state.capitalize() for state in STATES), "All"), totals)]
    for section in dict.fromkeys(row.section for row in rows):
        own = [row for row in rows if row.section == section]
        heading = "Event" if own[0].is_event else "Operation"
        shown = [(row.subject, _state(row), test_links(tests.get(row.key, []))) for row in own]
        parts += [f"## {section}", table((heading, "State", "Tests"), shown)]
    return parts


def _row(reasons: dict[str, str], key: str, section: str, state: str, subject: str, note: str = "") -> CoverageRow:
    return CoverageRow(key, section, state, subject, reasons[note] if state == "declined" else note)


def _state(row: CoverageRow) -> str:
    return f"{row.state}: {row.note}" if row.note else row.state
