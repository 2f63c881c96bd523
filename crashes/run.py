"""`make crash`: run every row on every engine, print the results, and fail if a guarantee was violated."""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from crashes import report
from crashes.fault_context import MissingRequirement
from crashes.processes import NotInTime
from crashes.row_runner import Options, RowResult, run_row
from crashes.rows import BOTH, ROWS, Engine, Row


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return the exit status."""
    parsed = parse_options(arguments)
    options = Options(parsed.rounds, parsed.seconds, parsed.per_second, parsed.seed)
    machine = report.machine()
    print(f"{machine['processor']}, {machine['cores']} cores, revision {machine['revision']}"
          f"{' and changes' if machine['changed_files'] else ''}; {options}")  # fmt: skip
    rows = [
        _run_row(row, engine, options, keep_files=parsed.keep)
        for row in ROWS
        if row.name in parsed.rows
        for engine in row.engines
        if engine in parsed.engines
    ]
    print(f"\n{report.format_table(rows)}\n\nwritten to {report.write_json(rows, options, machine)}")
    failed = [row for row in rows if row.violations]
    missing = [row for row in rows if row.missing]
    if failed:
        print(f"FAILED: {', '.join(f'{row.row.name} on {row.engine}' for row in failed)}")
    if missing and not parsed.allow_missing:
        print("not all rows were run; --allow-missing accepts that")
    return int(bool(failed or (missing and not parsed.allow_missing)))


@contextmanager
def temporary_folder(*, keep_files: bool = False) -> Generator[Path]:
    """Yield a folder that PostgreSQL's user can read too; deleted at the end unless `keep_files` is true."""
    folder = Path(tempfile.mkdtemp(prefix="waypost-crash-"))
    folder.chmod(0o711)
    if os.getuid() == 0:
        shutil.chown(folder, "nobody")
    try:
        yield folder
    finally:
        if not keep_files:
            shutil.rmtree(folder, ignore_errors=True)


def _run_row(row: Row, engine: Engine, options: Options, *, keep_files: bool) -> RowResult:
    began_s = time.monotonic()
    with temporary_folder(keep_files=keep_files) as folder:
        try:
            result = asyncio.run(run_row(row, engine, folder, options))
        except MissingRequirement as missing:
            result = RowResult(row, engine, missing=str(missing))
        except (NotInTime, AssertionError) as error:
            result = RowResult(row, engine, violations=[str(error)])
        except Exception:  # noqa: BLE001  a row that raises has failed, and the others still run
            result = RowResult(row, engine, violations=[traceback.format_exc()])
        result.took_s = time.monotonic() - began_s
        print(report.format_result(result), flush=True)
        if keep_files:
            print(f"  its stores and logs are in {folder}")
    return result


def parse_options(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return the command's options."""
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(prog="make crash", description=__doc__)
    parser.add_argument("--rows", nargs="+", choices=names, default=names)
    parser.add_argument("--engines", nargs="+", choices=BOTH, default=list(BOTH))
    parser.add_argument("--rounds", type=int, default=3, help="faults in each row")
    parser.add_argument("--seconds", type=float, default=8, help="seconds of load around each fault")
    parser.add_argument("--per-second", type=float, default=100, help="messages submitted a second")
    parser.add_argument("--seed", type=int, default=1, help="seed of the moments of the faults")
    parser.add_argument("--allow-missing", action="store_true", help="accept rows that cannot run on this machine")
    parser.add_argument("--keep", action="store_true", help="keep the stores and logs")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
