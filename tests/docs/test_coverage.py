"""Every documented operation and event is served, with a case, or declined for a reason."""

import re

import pytest

from docs.coverage import STATES, CoverageRow, coverage
from docs.statements import holders, statements
from waypost.api.routes import ROUTES

ROWS = coverage()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.key)
def test_every_row_has_a_state_and_a_case_exactly_if_it_is_served(row: CoverageRow) -> None:
    assert row.state in STATES
    assert bool(holders().get(row.key)) == (row.state == "served")


def route_shape(path: str) -> str:
    return re.sub(r"\{\w+\}", "{}", path.replace("A", "/partner/app/{}", 1) if path.startswith("A") else path)


@pytest.mark.parametrize("row", [row for row in ROWS if not row.is_event], ids=lambda row: row.key)
def test_every_operation_has_a_route(row: CoverageRow) -> None:
    """One that is declined too: its route says why, because a 404 suggests that the URL is wrong (decision 0025)."""
    named = re.match(r"(?:The types of )?`(\w+) (\S+)`", row.subject)
    assert named is not None

    assert (named[1], route_shape(named[2])) in {(route.method, route_shape(route.path)) for route in ROUTES}


def test_only_what_is_declined_needs_a_reason() -> None:
    assert [row.key for row in ROWS if row.state == "declined" and not row.note] == []


def test_keys_are_unique_and_no_statement_has_the_same() -> None:
    keys = [row.key for row in ROWS]

    assert len(keys) == len(set(keys))
    assert set(keys) & {statement.key for statement in statements()} == set()
