"""Planted faults: how many seeds the simulation needs to find mistakes that an engineer could make.

`python -m simulation.planted [NAME ...] --seeds 500` applies each row of `planted.toml` to a copy of the source, and
runs seeds until a promise breaks. The checkout is never changed. With `--json simulation/planted.json` the result is
kept: rows that were not run stay as they are there, each with the revision at which it was run.
"""

import argparse
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

from simulation.environment import NO_PYTHON, ROOT, find_python, make_environment

SOURCE: Final = ROOT / "src" / "waypost"
TABLE: Final = Path(__file__).with_suffix(".toml")
MAX_MESSAGE_CHARS: Final = 160
RANDOM_NAME: Final = re.compile(r"\b(tmp|simulation-|incoming-)[a-z0-9_]{8}\b")  # of temporary files and folders


@dataclass(frozen=True, slots=True)
class PlantedFault:
    """One mistake: in a file below src/waypost, `old` is replaced by `new`."""

    name: str
    effect: str  # what it does to a person who uses the service
    file: str
    old: str
    new: str
    promise: str  # that it should break
    arguments: tuple[str, ...] = ()  # of the simulation: the configuration that it needs
    not_found_because: str = ""  # if no seed finds it

    def apply(self, source: str) -> str:
        """Return the source with the mistake.

        Raises:
            ValueError: the old text does not occur exactly once.
        """
        count = source.count(self.old)
        if count != 1:
            raise ValueError(f"{self.name}: its old text occurs {count} times in {self.file}")
        return source.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Finding:
    """The first seed that broke a promise; None if none of the seeds that were tried did."""

    name: str
    seed: int | None
    tried: int
    message: str  # of the promise; if none broke, why not
    core_s: float


def read_faults() -> list[PlantedFault]:
    """Return the rows of the table."""
    return [PlantedFault(**row) for row in tomllib.loads(TABLE.read_text(encoding="utf-8"))["fault"]]


def plant(fault: PlantedFault, source: Path, folder: Path) -> None:
    """Copy a compiled source into a folder, with a fault."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    changed = folder / "waypost" / fault.file
    changed.write_text(fault.apply(changed.read_text(encoding="utf-8")), encoding="utf-8")


class Finder:
    """Looks for planted faults. A seed that fails without the fault too finds nothing.

    Args:
        interpreter: of the environment of the simulation.
        source: a folder for a copy of the source, compiled once.
        seeds: how many are run at most for each fault.
        arguments: of the simulation, for all of them.
    """

    def __init__(self, interpreter: str, source: Path, seeds: int, arguments: Sequence[str]) -> None:
        self._interpreter, self._source, self._seeds, self._arguments = interpreter, source, seeds, tuple(arguments)
        shutil.copytree(SOURCE, source / "waypost")
        subprocess.run([interpreter, "-m", "compileall", "-q", source], check=True)
        self._fails_anyway: dict[tuple[int, tuple[str, ...]], bool] = {}

    def find(self, fault: PlantedFault) -> Finding:
        """Run seeds with a fault until one breaks a promise."""
        core_s = 0.0
        arguments = (*self._arguments, *fault.arguments)
        first = 1
        with tempfile.TemporaryDirectory() as folder:
            plant(fault, self._source, Path(folder))
            while first <= self._seeds:
                seed, message, took_s = self._first_failure(folder, f"{first}-{self._seeds}", arguments)
                core_s += took_s
                if seed is None:
                    break
                if not self._fails_without(seed, arguments):
                    return Finding(fault.name, seed, seed, message, round(core_s, 1))
                first = seed + 1
        return Finding(fault.name, None, self._seeds, fault.not_found_because, round(core_s, 1))

    def _fails_without(self, seed: int, arguments: tuple[str, ...]) -> bool:
        if (seed, arguments) not in self._fails_anyway:
            found, _, _ = self._first_failure(str(self._source), str(seed), arguments)
            self._fails_anyway[seed, arguments] = found is not None
        return self._fails_anyway[seed, arguments]

    def _first_failure(self, source: str, seeds: str, arguments: tuple[str, ...]) -> tuple[int | None, str, float]:
        """Return the first seed that fails with a source, its first problem, and the core seconds of all that were run.

        Raises:
            RuntimeError: the simulation did not run.
        """
        search = ("--seeds", seeds, "--until-failure", "--jobs", "1", "--json", "--quiet")
        run = subprocess.run(
            [self._interpreter, "-m", "simulation", *search, *arguments],
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": source},
            capture_output=True,
            text=True,
            check=False,
        )
        if not run.stdout:
            raise RuntimeError(f"the simulation did not run: {run.stderr[-2000:]}")
        result = json.loads(run.stdout)
        message: str = result["broken"][0] if result["broken"] else ""
        if message.startswith("Traceback"):
            message = message.splitlines()[-1]  # of an exception
        message = RANDOM_NAME.sub(r"\1*", message)[:MAX_MESSAGE_CHARS]  # each count tells it in the same words
        return result["first_failure"], message, result["core_seconds"]


def keep(findings: Sequence[Finding], messages: int, path: Path) -> None:
    """Write findings to a file, beside those of other faults of the table that are there already."""
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    rows = {row["name"]: row for row in (json.loads(path.read_text("utf-8"))["faults"] if path.exists() else ())}
    for found in findings:
        rows[found.name] = {**asdict(found), "messages": messages, "revision": git.stdout.strip()}
    in_order = [rows[fault.name] for fault in read_faults() if fault.name in rows]
    needed = [row["seed"] for row in in_order if row["seed"] is not None]
    result = {
        "found": len(needed),
        "of": len(read_faults()),
        "not_run": [fault.name for fault in read_faults() if fault.name not in rows],
        "median_seeds": statistics.median(needed) if needed else None,
        "faults": in_order,
    }
    path.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def main(options: argparse.Namespace) -> int:
    """Find the faults, and print the table; return 1 if one was not found."""
    faults = [fault for fault in read_faults() if not options.names or fault.name in options.names]
    if unknown := set(options.names) - {fault.name for fault in faults}:
        print(f"There is no fault {sorted(unknown)}.", file=sys.stderr)
        return 2
    python = find_python()
    if python is None:
        print("The simulation needs Python 3.12 or newer.", file=sys.stderr)
        return NO_PYTHON
    interpreter, findings = str(make_environment(python)), list[Finding]()
    with tempfile.TemporaryDirectory() as source, ThreadPoolExecutor(options.jobs) as threads:
        finder = Finder(interpreter, Path(source), options.seeds, ["--messages", str(options.messages)])
        for task in as_completed([threads.submit(finder.find, fault) for fault in faults]):
            found = task.result()
            findings.append(found)
            seed = "-" if found.seed is None else found.seed
            message = found.message if found.seed is not None else f"not found in {found.tried} seeds: {found.message}"
            print(f"{seed:>5}  {found.core_s:6.1f} s  {found.name}: {message}", flush=True)
            if options.json:
                keep([found], options.messages, options.json)
    needed = [found.seed for found in findings if found.seed is not None]
    median = statistics.median(needed) if needed else None
    print(f"{len(needed)} of {len(findings)} found, with a median of {median} seeds")
    return 0 if len(needed) == len(findings) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make planted ARGS=...", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="Of the table; all of them if none is given.")
    parser.add_argument("--seeds", type=int, default=500, help="How many are run at most for each fault.")
    parser.add_argument("--jobs", type=int, default=2, help="How many faults are looked for at a time.")
    parser.add_argument("--messages", type=int, default=20, help="Of each seed.")
    parser.add_argument("--json", type=Path, help="A file that the result is added to.")
    sys.exit(main(parser.parse_args()))
