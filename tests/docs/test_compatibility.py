"""Every statement of the specification is held by a case, and cases hold only existing statements."""

from functools import cache

import pytest

from docs.coverage import coverage
from docs.statements import VERDICTS, Statement, holders, statements
from tests.support.wire_cases import read_cases

STATEMENTS = statements()
LIMITS = [statement for statement in STATEMENTS if statement.section == "Limits"]


@cache
def statuses_of_cases() -> dict[str, int]:
    """Return the status of each case's response, by its name among the holders."""
    return {
        "tests/wire/cases/{}.toml#{}".format(*name.split("/")): case.response.status
        for name, case in read_cases().items()
    }


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.key)
def test_every_statement_is_held_by_a_case_or_a_journey(statement: Statement) -> None:
    assert holders().get(statement.key)


@pytest.mark.parametrize("statement", STATEMENTS, ids=lambda statement: statement.key)
def test_every_statement_has_a_verdict_and_describes_differences(statement: Statement) -> None:
    assert statement.verdict in VERDICTS
    assert statement.verdict == "kept" or statement.does


@pytest.mark.parametrize("statement", LIMITS, ids=lambda statement: statement.key)
def test_every_limit_is_held_on_both_sides(statement: Statement) -> None:
    by_case = statuses_of_cases()
    statuses = [by_case[name] for name in holders()[statement.key] if name in by_case]

    assert min(statuses) < 300
    assert max(statuses) >= 400


def test_cases_hold_only_known_statements() -> None:
    known = {statement.key for statement in STATEMENTS} | {row.key for row in coverage()}

    assert set(holders()) - known == set()


def test_keys_of_statements_are_unique() -> None:
    keys = [statement.key for statement in STATEMENTS]

    assert len(keys) == len(set(keys))
