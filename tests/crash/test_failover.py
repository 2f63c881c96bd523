"""One short row of `make crash`: the primary is killed, its synchronous standby promoted, found by a URL with two hosts.

The fault itself waits until `/readyz` responds with 503, before the standby is promoted.
"""

import sys

from crashes.report import format_result
from crashes.row_runner import Options, run_row
from crashes.rows import ROWS
from crashes.run import temporary_folder

OPTIONS = Options(rounds=1, seconds=2, per_second=60, seed=20260101)


async def test_promoted_standby_has_every_acknowledged_message_and_nothing_is_sent_twice() -> None:
    row = next(row for row in ROWS if row.name == "standby")

    with temporary_folder() as at:
        result = await run_row(row, "postgresql", at, OPTIONS)

    sys.stdout.write(format_result(result))
    assert not result.violations
    assert result.counts["acknowledged"] > 0
    assert len(result.fault_results) == 1
