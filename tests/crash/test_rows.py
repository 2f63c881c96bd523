"""A row of `make crash`, once and short: a kill of PostgreSQL. What a kill leaves on SQLite is in `test_kill.py`."""

import sys

from crashes.play import Options, play
from crashes.report import told
from crashes.rows import ROWS
from crashes.run import folder

ONCE = Options(rounds=1, seconds=2, per_second=60, seed=20260101)


async def test_kill_of_the_database_under_load_loses_nothing_and_doubles_nothing() -> None:
    row = next(row for row in ROWS if row.name == "database")

    with folder() as at:
        played = await play(row, "postgresql", at, ONCE)

    sys.stdout.write(told(played))
    assert not played.faults
    assert played.counts["acknowledged"] > 0
    assert len(played.struck) == 1
