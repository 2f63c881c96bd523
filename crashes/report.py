"""What a run prints and keeps: a line for each row as it ends, a table of all, and one JSON file."""

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

from crashes.play import Options, Played
from tests.support.postgres import binaries

KEPT: Final = Path(__file__).parent / "results" / "local"
TOLD_AT_MOST: Final = 12
HEADS: Final = (
    "fault", "engine", "times", "submitted", "acknowledged", "lost", "doubled", "uncertain (at most)",
    "callbacks lost", "out of order", "to answer s", "to deliver s", "to call back s",
)  # fmt: skip


def told(played: Played) -> str:
    """One row when it has ended: what each fault hit, and what is wrong."""
    name = f"{played.row.name} on {played.engine}"
    if played.missing:
        return f"{name}: not run: {played.missing}"
    lines = [
        f"{name}: {'FAILED' if played.faults else 'kept'}, {played.took_s:.0f} s, settled in {played.settled_s:.1f} s. {played.note}"
    ]
    lines += [f"  {nth}. {one.what}" for nth, one in enumerate(played.struck, 1)]
    lines += [f"  ! {fault}" for fault in played.faults[:TOLD_AT_MOST]]
    if len(played.faults) > TOLD_AT_MOST:
        lines.append(f"  ! and {len(played.faults) - TOLD_AT_MOST} more, in the file")
    return "\n".join(lines)


def table(rows: Sequence[Played]) -> str:
    """All rows, for people."""
    lines = [HEADS, *(_cells(played) for played in rows)]
    widths = [max(len(line[nth]) for line in lines) for nth in range(len(HEADS))]
    left = 2  # the first columns are words
    return "\n".join(
        "  ".join(
            cell.ljust(width) if nth < left else cell.rjust(width)
            for nth, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def keep(rows: Sequence[Played], options: Options, machine: dict[str, Any]) -> Path:
    """Write everything as JSON; the file's path."""
    KEPT.mkdir(parents=True, exist_ok=True)
    path = KEPT / f"crash-{datetime.now(UTC):%Y%m%dT%H%M%S}.json"
    kept = {"machine": machine, "settings": asdict(options), "rows": [_kept(one) for one in rows]}
    path.write_text(json.dumps(kept, indent=1) + "\n")
    return path


def machine() -> dict[str, Any]:
    """What the run was made on."""
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


def _cells(played: Played) -> tuple[str, ...]:
    row, counts = played.row, played.counts
    if not counts:
        why = played.missing or "; ".join(played.faults) or "?"
        return (row.title, played.engine, "not run" if played.missing else "failed", *[""] * 9, why[:60])
    return (
        row.title,
        played.engine,
        str(len(played.struck)),
        str(counts["submitted"]),
        str(counts["acknowledged"]),
        str(counts["lost"]),
        str(counts["doubled"]),
        f"{counts['uncertain ever']} ({played.bound})",
        str(counts["callbacks missing"]),
        str(counts["out of order"]),
        _worst(one.acknowledgement_s for one in played.recoveries),
        _worst(one.delivery_s for one in played.recoveries),
        _worst(one.callback_s for one in played.recoveries),
    )


def _worst(values: Iterable[float | None]) -> str:
    """The longest of them; a dash where one never came."""
    every = list(values)
    return "-" if None in every or not every else f"{max(one for one in every if one is not None):.2f}"


def _kept(played: Played) -> dict[str, Any]:
    return {
        "row": played.row.name,
        "engine": played.engine,
        "missing": played.missing,
        "note": played.note,
        "took_s": round(played.took_s, 1),
        "settled_s": round(played.settled_s, 1),
        "counts": played.counts,
        "uncertain_at_most": played.bound,
        "struck": [{"hit": one.hit, "what": one.what} for one in played.struck],
        "recoveries": [asdict(one) for one in played.recoveries],
        "faults": played.faults,
    }


def _postgresql() -> str:
    try:
        return _first_line([str(binaries() / "postgres"), "--version"])
    except RuntimeError:
        return "not installed"


def _first_line(command: Sequence[str]) -> str:
    return next(iter(_lines(command)), "?")


def _lines(command: Sequence[str]) -> list[str]:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.splitlines()
