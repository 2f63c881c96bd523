"""The table of connections in the page about PostgreSQL is that of the code."""

from tests.docs.repository import ROOT
from waypost.store.postgresql_connections import MIN_CONNECTIONS, ROLE_BUDGETS

PAGE = ROOT / "docs" / "how-to" / "run-on-postgresql.md"


def test_table_of_the_page_is_that_of_the_code() -> None:
    page = PAGE.read_text(encoding="utf-8")
    *some, (_, full) = ROLE_BUDGETS
    rows = [(", ".join(f"`{stage}`" for stage in stages), budget) for stages, budget in some]

    for stages, budget in (*rows, ("all, and any other selection", full)):
        counts = (budget.writers, budget.readers, budget.background, budget.notifications, budget.total)
        assert f"| {stages} | {' | '.join(map(str, counts))} |\n" in page
    assert f"the minimum is {MIN_CONNECTIONS}." in page
    assert f"connections to PostgreSQL: {full.describe()}" in page
