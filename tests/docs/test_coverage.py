"""Every documented operation and event is served, with a case, or declined for a reason."""

import pytest

from docs.coverage import STATES, CoverageRow, coverage
from docs.statements import holders, statements

ROWS = coverage()
HOLDERS = holders()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_every_row_has_a_state_and_a_case_exactly_if_it_is_served(row: CoverageRow) -> None:
    assert row.state in STATES
    assert bool(HOLDERS.get(row.key)) == (row.state == "served")


def test_only_what_is_declined_needs_a_reason() -> None:
    assert [row.key for row in ROWS if row.state == "declined" and not row.note] == []


def test_keys_are_unique_and_no_statement_has_the_same() -> None:
    keys = [row.key for row in ROWS]

    assert len(keys) == len(set(keys))
    assert set(keys) & {statement.key for statement in statements()} == set()
