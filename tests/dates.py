"""`make dates`: runs the suite under other dates, to find tests that depend on the day of the run.

Every process of a run sees the date, PostgreSQL and the browser too. Programs in Go read the clock by system calls
and do not: their only test is left out. Intervals stay real. Needs a C compiler, for the library that shifts the clock.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Date:
    """One run.

    Attributes:
        begins: the time at which it begins, UTC.
        zone: of the machine, as in `TZ`.
    """

    begins: str
    zone: str
    why: str


# fmt: off
DATES: Final = (  # each weekday at least once
    #    begins              zone             why
    Date("2026-11-23 09:00", "UTC",           "a Monday: a week of PostgreSQL's ranges begins"),
    Date("2028-02-29 12:00", "UTC",           "a leap day, a Tuesday"),
    Date("2027-03-31 23:58", "UTC",           "a month ends during the run, on a Wednesday"),
    Date("2026-12-31 23:58", "UTC",           "a year ends during the run, on a Thursday"),
    Date("2027-01-01 00:00", "Asia/Tokyo",    "a year begins, on a Friday; local time is ahead"),
    Date("2027-07-31 12:00", "America/Lima",  "a Saturday; local time is behind"),
    Date("2027-02-28 23:58", "UTC",           "a week and a month end during the run, on a Sunday"),
    Date("2027-03-28 00:58", "Europe/Berlin", "summer time begins during the run"),
    Date("2027-10-31 00:58", "Europe/Berlin", "summer time ends during the run"),
    Date("2038-01-19 03:12", "UTC",           "seconds since 1970 pass 32 bits during the run"),
)
# fmt: on


_LEFT_OUT: Final = (
    "--deselect",
    "tests/console/callbacks/test_callback_snippets.py::test_snippet_accepts_only_genuine_callbacks[go]",
)
SOURCE: Final = Path(__file__).with_name("shifted_clock.c")


def main() -> int:
    """Run the suite once for each date; arguments go to pytest. The status is 1 if any run failed."""
    if not shutil.which("cc"):
        sys.exit("needs a C compiler, as cc: it builds the library that shifts the clock")
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "shifted_clock.so"
        flags = ("-O2", "-shared", "-fPIC", "-Wno-attribute-alias")
        subprocess.run(["cc", *flags, "-o", str(library), str(SOURCE), "-ldl"], check=True)
        Path(folder).chmod(0o755)  # PostgreSQL's server runs as another user
        for date in DATES:
            failed += not _passes(date, library)
    return int(failed > 0)


def _passes(date: Date, library: Path) -> bool:
    now_s = int(datetime.now(UTC).timestamp())
    environment = {
        **os.environ,
        "TZ": date.zone,
        "LD_PRELOAD": str(library),
        "CLOCK_SHIFT_S": str(int(_start_of(date).timestamp()) - now_s),
        "CLOCK_SHIFT_SINCE_S": str(now_s),
    }
    command = [sys.executable, "-m", "pytest", "-q", "--tb=short", *_LEFT_OUT, *sys.argv[1:]]
    completed = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    *report, closing = completed.stdout.strip().splitlines() or [completed.stderr]
    if completed.returncode:
        sys.stdout.write("\n".join(report[-200:]) + "\n")
    sys.stdout.write(f"{date.begins} {date.zone}, {date.why}: {closing}\n")
    sys.stdout.flush()
    return completed.returncode == 0


def _start_of(date: Date) -> datetime:
    return datetime.strptime(date.begins, "%Y-%m-%d %H:%M").replace(tzinfo=UTC)


if __name__ == "__main__":
    sys.exit(main())
