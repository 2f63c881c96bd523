"""`python -m simulation --seeds 1-100`: run seeds on all cores, and tell what broke, with the command that repeats it."""

import argparse
import itertools
import json
import resource
import shlex
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from simulation.choices import KINDS
from simulation.configuration import Configuration
from simulation.delays import delay_at_random
from simulation.environment import ROOT
from simulation.runs import Result, Run
from simulation.search import Search
from simulation.shrink import WITHIN_S, Shrunk, promises, shrink
from simulation.story import write_story

REGRESSIONS: Final = Path(__file__).with_name("regressions.toml")
PLAIN_EVERY_S: Final = 10
SHOWN_PROBLEMS: Final = 5


def main(options: argparse.Namespace) -> int:
    """Run the seeds; return 1 if a promise was broken, or a seed did not repeat."""
    configuration = Configuration.from_values(vars(options))
    only = _read_decisions(options.only)
    with_digest = options.twice or options.verbose or options.digests is not None
    if options.delays:
        delay_at_random(options.delays)
    with Search(options.jobs, with_digest=with_digest, on_postgresql=configuration.postgresql) as search:
        report = _Report(options)
        until_s = time.monotonic() + options.seconds
        wanted = read_regressions() if options.regressions else _seeds(options.seeds, configuration, only)
        begun = itertools.takewhile(lambda _: report.goes_on and time.monotonic() < until_s, wanted)
        runs = (run for run in begun for _ in range(2 if options.twice else 1))
        for result in search.run_all(runs, all_events=options.verbose):
            report.add(result)
        report.print_end()
        if report.first_failure is not None and options.shrink and not options.json:
            shrunk = shrink(search, report.first_failure, print, options.shrink_for)
            _print_shrunk(shrunk, report.print_line)
    return 1 if report.failed else 0


class _Report:
    """What is printed: progress, failures, and the coverage at the end."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._file = sys.stderr if options.json else sys.stdout
        self._is_rewritten = self._file.isatty()
        self._began_s = self._printed_s = time.monotonic()
        self._digests = _read_digests(options.digests) if options.digests else {}
        self._compared = self._repeated = 0
        self._count = self._steps = 0
        self._kinds: Counter[str] = Counter()
        self._states: Counter[str] = Counter()
        self.failed: dict[int, list[str]] = {}
        self.first_failure: Result | None = None

    @property
    def goes_on(self) -> bool:
        """False if the search ends with the first failure, and there is one."""
        return not (self.failed and self._options.until_failure)

    def add(self, result: Result) -> None:
        """Count a result, and print what broke."""
        seed, problems = result.run.seed, list(result.broken)
        if not self._repeats(result):
            problems.append("the seed did not repeat")
        self._count += 1
        self._steps += result.steps
        self._kinds += result.kinds
        self._states += result.states
        if problems and seed not in self.failed:
            self.failed[seed] = problems
            if result.broken and seed == min(self.failed):
                self.first_failure = result
        if problems or self._options.verbose:
            self._print_run(result, problems)
        self._print_progress()

    def _repeats(self, result: Result) -> bool:
        """Return False if a run did not take the steps that the same one took before; remember them."""
        name = shlex.join([str(result.run.seed), *result.run.configuration.arguments()])
        known = self._digests.get(name)
        if known is not None:
            self._compared += 1
            self._repeated += known == result.digest
            return known == result.digest
        if self._options.twice or self._options.digests:
            self._digests[name] = result.digest
        if self._options.digests:
            with self._options.digests.open("a", encoding="utf-8") as file:
                file.write(f"{result.digest} {name}\n")
        return True

    def _print_run(self, result: Result, problems: list[str]) -> None:
        self.print_line(f"seed {result.run.seed}: {result.summary or 'failed'} {result.digest[:16]}")
        if self._options.verbose:
            for line in write_story(result.events, result.decisions, problems):
                self.print_line(line)
        else:
            for problem in problems[:SHOWN_PROBLEMS]:
                self.print_line("  " + problem.replace("\n", "\n  "))
            if len(problems) > SHOWN_PROBLEMS:
                self.print_line(f"  … and {len(problems) - SHOWN_PROBLEMS} more")
        if problems:
            self.print_line(f"  repeat it with: {command(result.run)}")

    def _print_progress(self) -> None:
        took_s = time.monotonic() - self._began_s
        line = f"{self._count} runs, {self._count / took_s:.1f} a second, {len(self.failed)} failed"
        if self._is_rewritten:
            print(f"\r{line}\033[K", end="", file=self._file, flush=True)
        elif time.monotonic() - self._printed_s >= PLAIN_EVERY_S:
            self._printed_s = time.monotonic()
            print(line, file=self._file, flush=True)

    def print_end(self) -> None:
        """Print what was reached, and what was not."""
        never = sorted(kind for kind in KINDS if not self._kinds[kind])
        took_s = time.monotonic() - self._began_s
        repeated = ", each twice" if self._options.twice else ""
        seeds = self._count // (2 if self._options.twice else 1)
        if self._options.json:
            first = min(self.failed, default=None)
            values: dict[str, Any] = {
                "seeds": seeds,
                "seconds": round(took_s, 3),
                "core_seconds": round(_core_s(), 1),
                "steps": self._steps,
                "repeated": self._repeated,
                "compared": self._compared,
                "first_failure": first,
                "broken": self.failed.get(first, []) if first is not None else [],
                "failed": {str(seed): problems for seed, problems in sorted(self.failed.items())},
                "kinds": dict(sorted(self._kinds.items())),
                "never": never,
                "states": dict(sorted(self._states.items())),
            }
            print(json.dumps(values))
        if not self._options.quiet:
            self._print_table("happened", self._kinds)
            self._print_table("ended as", self._states)
            if never:
                self.print_line(f"never happened: {', '.join(never)}")
        if self._compared:
            self.print_line(f"same seed, same steps: {self._repeated:,} of {self._compared:,}")
        rate = self._count / took_s if took_s else 0
        self.print_line(
            f"{seeds} seeds{repeated}, {self._steps} steps in {took_s:.1f} s, {rate:.1f} runs a second: "
            f"{len(self.failed)} failed"
        )

    def _print_table(self, title: str, counts: Counter[str]) -> None:
        for name, count in sorted(counts.items()):
            self.print_line(f"{count:9} {title} {name}")

    def print_line(self, line: str) -> None:
        """Print a line above the progress."""
        print(f"\r\033[K{line}" if self._is_rewritten else line, file=self._file, flush=True)


def _read_digests(path: Path) -> dict[str, str]:
    """Return the digests of a file, by seed and configuration; it need not be there."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return {name: digest for digest, _, name in (line.partition(" ") for line in lines)}


def _core_s() -> float:
    """Return the processor time of this process and of all its runs, in seconds."""
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def command(one: Run) -> str:
    """Return the command that repeats a run."""
    arguments = ["--seeds", str(one.seed), *one.configuration.arguments(), "--verbose"]
    if one.only is not None:
        arguments += ["--only", _write_decisions(one.only)]
    return f'make simulate ARGS="{shlex.join(arguments)}"'


def _write_decisions(decisions: Iterable[tuple[str, int]]) -> str:
    return ",".join(f"{name}#{nth}" for name, nth in sorted(decisions))


def _read_decisions(text: str | None) -> frozenset[tuple[str, int]] | None:
    if text is None:
        return None
    pairs = [one.rpartition("#") for one in text.split(",") if one]
    return frozenset((name, int(nth)) for name, _, nth in pairs)


def _seeds(text: str, configuration: Configuration, only: frozenset[tuple[str, int]] | None) -> Iterator[Run]:
    first, dash, last = text.partition("-")
    seeds = range(int(first), int(last or first) + 1) if last or not dash else itertools.count(int(first))
    return (Run(seed, configuration, only) for seed in seeds)


def read_regressions() -> Iterator[Run]:
    """Return the runs of the file of regressions: each once broke a promise, and breaks none now."""
    for line in tomllib.loads(REGRESSIONS.read_text(encoding="utf-8")).get("regression", []):
        only = _read_decisions(line.get("only"))
        yield Run(line["seed"], Configuration.from_values(line), only)


def _print_shrunk(shrunk: Shrunk, print_line: Callable[[str], None]) -> None:
    result = shrunk.result
    run, order = result.run, "in the order of their seed" if shrunk.is_order_needed else "first in, first out"
    count = f"{len(result.decisions)} decisions, {run.configuration.messages} messages"
    print_line(f"\nseed {run.seed}, shrunk to {count} in {shrunk.tried} runs; steps {order}:")
    if not shrunk.is_minimal:
        print_line("time was up before each decision was left out once; --shrink-for gives more")
    for line in write_story(result.events, result.decisions, result.broken):
        print_line(line)
    print_line(f"repeat it with: {command(run)}")
    print_line(f"once it is mended, add to {REGRESSIONS.relative_to(ROOT)}:\n\n{_regression(result)}")


def _regression(result: Result) -> str:
    git = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    values: dict[str, Any] = {
        "promise": min(promises(result.broken))[:200],
        "revision": git.stdout.strip(),
        "seed": result.run.seed,
        **result.run.configuration.changed(),
    }
    if result.run.only is not None:
        values["only"] = _write_decisions(result.run.only)
    return "\n".join(
        ["[[regression]]", *(f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items())]
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make simulate ARGS=...", description=__doc__)
    parser.add_argument("--seeds", default="1-100", help="One, the first and the last, or the first: 7, 1-100, 1-.")
    parser.add_argument("--jobs", type=int, help="Runs at once; one on each core if it is left out.")
    parser.add_argument("--for", dest="seconds", type=float, default=float("inf"), help="Begin no run after seconds.")
    parser.add_argument("--until-failure", action="store_true", help="Begin no run after the first failure.")
    parser.add_argument("--twice", action="store_true", help="Run each seed again, and compare the steps.")
    parser.add_argument(
        "--delays", type=float, default=0, help="Real ones at random, with PostgreSQL: at most so many ms."
    )
    parser.add_argument(
        "--digests", type=Path, help="A file to compare with the steps of earlier runs; it is added to."
    )
    parser.add_argument("--only", help="The decisions that may happen: NAME#NUMBER, with commas between them.")
    parser.add_argument("--regressions", action="store_true", help="Run the lines of regressions.toml, not seeds.")
    parser.add_argument("--shrink", action=argparse.BooleanOptionalAction, default=True, help="The first that fails.")
    parser.add_argument("--shrink-for", type=float, default=WITHIN_S, metavar="SECONDS", help="Shrink no longer.")
    parser.add_argument("--verbose", action="store_true", help="Print what each seed did.")
    parser.add_argument("--quiet", action="store_true", help="Print no coverage.")
    parser.add_argument("--json", action="store_true", help="Print one JSON object; all else goes to standard error.")
    Configuration.add_options(parser)
    sys.exit(main(parser.parse_args()))
