"""`make crash`: play every row on every engine, print what came of it, and fail where a promise was broken."""

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
from crashes.play import Options, Played, play
from crashes.processes import NotInTime
from crashes.rows import BOTH, ROWS, Engine, Row
from crashes.scene import Missing


def main(words: Sequence[str] | None = None) -> int:
    """Run the command; the exit status."""
    chosen = options_of(words)
    options = Options(chosen.rounds, chosen.seconds, chosen.per_second, chosen.seed)
    machine = report.machine()
    print(f"{machine['processor']}, {machine['cores']} cores, revision {machine['revision']}"
          f"{' and changes' if machine['changed_files'] else ''}; {options}")  # fmt: skip
    rows = [
        _play(row, engine, options, keeps=chosen.keep)
        for row in ROWS
        if row.name in chosen.rows
        for engine in row.engines
        if engine in chosen.engines
    ]
    print(f"\n{report.table(rows)}\n\nkept in {report.keep(rows, options, machine)}")
    broken = [one for one in rows if one.faults]
    missing = [one for one in rows if one.missing]
    if broken:
        print(f"FAILED: {', '.join(f'{one.row.name} on {one.engine}' for one in broken)}")
    if missing and not chosen.allow_missing:
        print("not all rows were run; --allow-missing accepts that")
    return int(bool(broken or (missing and not chosen.allow_missing)))


@contextmanager
def folder(*, keeps: bool = False) -> Generator[Path]:
    """A folder that PostgreSQL's user reaches too; gone at the end unless it is to be kept."""
    at = Path(tempfile.mkdtemp(prefix="waypost-crash-"))
    at.chmod(0o711)
    if os.getuid() == 0:
        shutil.chown(at, "nobody")
    try:
        yield at
    finally:
        if not keeps:
            shutil.rmtree(at, ignore_errors=True)


def _play(row: Row, engine: Engine, options: Options, *, keeps: bool) -> Played:
    began_s = time.monotonic()
    with folder(keeps=keeps) as at:
        try:
            played = asyncio.run(play(row, engine, at, options))
        except Missing as missing:
            played = Played(row, engine, missing=str(missing))
        except (NotInTime, AssertionError) as error:
            played = Played(row, engine, faults=[str(error)])
        except Exception:  # noqa: BLE001  one row that breaks is a row that failed, and the others go on
            played = Played(row, engine, faults=[traceback.format_exc()])
        played.took_s = time.monotonic() - began_s
        print(report.told(played), flush=True)
        if keeps:
            print(f"  its stores and logs stay in {at}")
    return played


def options_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    """The command's options."""
    names = [row.name for row in ROWS]
    parser = argparse.ArgumentParser(prog="make crash", description=__doc__)
    parser.add_argument("--rows", nargs="+", choices=names, default=names)
    parser.add_argument("--engines", nargs="+", choices=BOTH, default=list(BOTH))
    parser.add_argument("--rounds", type=int, default=3, help="faults in each row")
    parser.add_argument("--seconds", type=float, default=8, help="of load around each fault")
    parser.add_argument("--per-second", type=float, default=100, help="messages submitted")
    parser.add_argument("--seed", type=int, default=1, help="of the moments of the faults")
    parser.add_argument("--allow-missing", action="store_true", help="rows that cannot run are no failure")
    parser.add_argument("--keep", action="store_true", help="keep the stores and logs")
    return parser.parse_args(words)


if __name__ == "__main__":
    sys.exit(main())
