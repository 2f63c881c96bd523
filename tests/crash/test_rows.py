"""One short row of `make crash`: a kill of PostgreSQL. `test_kill.py` tests kills on SQLite."""

import sys

from crashes.report import format_result
from crashes.row_runner import Options, run_row
from crashes.rows import ROWS
from crashes.run import temporary_folder

OPTIONS = Options(rounds=1, seconds=2, per_second=60, seed=20260101)


async def test_kill_of_the_database_under_load_loses_nothing_and_duplicates_nothing() -> None:
    row = next(row for row in ROWS if row.name == "database")

    with temporary_folder() as at:
        result = await run_row(row, "postgresql", at, OPTIONS)

    sys.stdout.write(format_result(result))
    assert not result.violations
    assert result.counts["acknowledged"] > 0
    assert len(result.fault_results) == 1
