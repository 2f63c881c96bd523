"""The output of a run: a text for each row when it ends, a table of all rows, and one JSON file."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from crashes.row_runner import Options, RowResult
from tests.support.postgres import binaries

RESULTS_FOLDER: Final = Path(__file__).parent / "results" / "local"
MAX_VIOLATIONS_SHOWN: Final = 12
COLUMNS: Final = (
    "fault", "engine", "times", "submitted", "acknowledged", "lost", "duplicated", "uncertain (at most)",
    "callbacks lost", "out of order", "to respond s", "to deliver s", "to call back s",
)  # fmt: skip


def format_result(result: RowResult) -> str:
    """Return the text of one finished row: the effect of each fault, and the violations."""
    name = f"{result.row.name} on {result.engine}"
    if result.missing:
        return f"{name}: not run: {result.missing}"
    lines = [
        f"{name}: {'FAILED' if result.violations else 'passed'}, {result.took_s:.0f} s, idle after {result.idle_after_s:.1f} s. {result.note}"
    ]
    lines += [f"  {nth}. {fault.description}" for nth, fault in enumerate(result.fault_results, 1)]
    lines += [f"  ! {fault}" for fault in result.violations[:MAX_VIOLATIONS_SHOWN]]
    if len(result.violations) > MAX_VIOLATIONS_SHOWN:
        lines.append(f"  ! and {len(result.violations) - MAX_VIOLATIONS_SHOWN} more in the JSON file")
    return "\n".join(lines)


def format_table(rows: Sequence[RowResult]) -> str:
    """Return the table of all rows."""
    lines = [COLUMNS, *(_cells(result) for result in rows)]
    widths = [max(len(line[nth]) for line in lines) for nth in range(len(COLUMNS))]
    text_columns = 2  # the first columns are text
    return "\n".join(
        "  ".join(
            cell.ljust(width) if nth < text_columns else cell.rjust(width)
            for nth, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def write_json(rows: Sequence[RowResult], options: Options, machine: dict[str, Any]) -> Path:
    """Write everything as JSON; return the file's path."""
    RESULTS_FOLDER.mkdir(parents=True, exist_ok=True)
    path = RESULTS_FOLDER / f"crash-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    content = {"machine": machine, "settings": asdict(options), "rows": [_result_as_json(row) for row in rows]}
    path.write_text(json.dumps(content, indent=1) + "\n")
    return path


def machine() -> dict[str, Any]:
    """Return a description of the machine and the revision."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.partition(":")[2].strip() for line in lines if "model name" in line), "?")
    return {
        "processor": model,
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "postgresql": _postgresql(),
        "load_before": os.getloadavg()[0],
        "revision": _first_line(["git", "rev-parse", "--short", "HEAD"]),
        "changed_files": len(_lines(["git", "status", "--porcelain", "--", "src", "crashes"])),
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _cells(result: RowResult) -> tuple[str, ...]:
    row, counts = result.row, result.counts
    if not counts:
        why = result.missing or "; ".join(result.violations) or "?"
        return (row.title, result.engine, "not run" if result.missing else "failed", *[""] * 9, why[:60])
    return (
        row.title,
        result.engine,
        str(len(result.fault_results)),
        str(counts["submitted"]),
        str(counts["acknowledged"]),
        str(counts["lost"]),
        str(counts["duplicated"]),
        f"{counts['uncertain ever']} ({result.max_uncertain})",
        str(counts["callbacks missing"]),
        str(counts["out of order"]),
        _longest(recovery.acknowledgement_s for recovery in result.recoveries),
        _longest(recovery.delivery_s for recovery in result.recoveries),
        _longest(recovery.callback_s for recovery in result.recoveries),
    )


def _longest(values: Iterable[float | None]) -> str:
    """Return the longest time, or a dash if one is missing."""
    times = list(values)
    return "-" if None in times or not times else f"{max(seconds for seconds in times if seconds is not None):.2f}"


def _result_as_json(result: RowResult) -> dict[str, Any]:
    return {
        "row": result.row.name,
        "engine": result.engine,
        "missing": result.missing,
        "note": result.note,
        "took_s": round(result.took_s, 1),
        "settled_s": round(result.idle_after_s, 1),
        "counts": result.counts,
        "uncertain_at_most": result.max_uncertain,
        "struck": [{"hit": fault.hit, "what": fault.description} for fault in result.fault_results],
        "recoveries": [asdict(recovery) for recovery in result.recoveries],
        "faults": result.violations,
    }


def _postgresql() -> str:
    try:
        return _first_line([str(binaries() / "postgres"), "--version"])
    except RuntimeError:
        return "not installed"


def _first_line(command: Sequence[str]) -> str:
    return next(iter(_lines(command)), "?")


def _lines(command: Sequence[str]) -> list[str]:
    completed_process = subprocess.run(command, capture_output=True, text=True, check=False)
    return completed_process.stdout.splitlines()
