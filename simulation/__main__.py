"""`python -m simulation --seeds 1-100`: run seeds on all cores, and tell what broke, with the command that repeats it."""

import argparse
import itertools
import json
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from simulation.choices import KINDS
from simulation.configuration import Configuration
from simulation.search import Result, Run, Search
from simulation.story import write_story

PLAIN_EVERY_S: Final = 10
SHOWN_PROBLEMS: Final = 5


def main(options: argparse.Namespace) -> int:
    """Run the seeds; return 1 if a promise was broken, or a seed did not repeat."""
    configuration = Configuration.from_values(vars(options))
    only = _read_decisions(options.only)
    with Search(options.jobs, with_digest=options.twice or options.verbose) as search:
        report = _Report(options)
        until_s = time.monotonic() + options.seconds
        seeds = itertools.takewhile(lambda _: report.goes_on and time.monotonic() < until_s, _seeds(options.seeds))
        runs = (Run(seed, configuration, only) for seed in seeds for _ in range(2 if options.twice else 1))
        for result in search.run_all(runs, all_events=options.verbose):
            report.add(result)
        report.print_end()
    return 1 if report.failed else 0


class _Report:
    """What is printed: progress, failures, and the coverage at the end."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._file = sys.stderr if options.json else sys.stdout
        self._is_rewritten = self._file.isatty()
        self._began_s = self._printed_s = time.monotonic()
        self._digests: dict[int, str] = {}
        self._count = self._steps = 0
        self._kinds: Counter[str] = Counter()
        self._states: Counter[str] = Counter()
        self.failed: dict[int, list[str]] = {}

    @property
    def goes_on(self) -> bool:
        """False if the search ends with the first failure, and there is one."""
        return not (self.failed and self._options.until_failure)

    def add(self, result: Result) -> None:
        """Count a result, and print what broke."""
        seed, problems = result.run.seed, list(result.broken)
        if self._options.twice and self._digests.setdefault(seed, result.digest) != result.digest:
            problems.append("the seed did not repeat")
        self._count += 1
        self._steps += result.steps
        self._kinds += result.kinds
        self._states += result.states
        if problems and seed not in self.failed:
            self.failed[seed] = problems
        if problems or self._options.verbose:
            self._print_run(result, problems)
        self._print_progress()

    def _print_run(self, result: Result, problems: list[str]) -> None:
        self._print(f"seed {result.run.seed}: {result.summary or 'failed'} {result.digest[:16]}")
        if self._options.verbose:
            for line in write_story(result.events, result.decisions, problems):
                self._print(line)
        else:
            for problem in problems[:SHOWN_PROBLEMS]:
                self._print("  " + problem.replace("\n", "\n  "))
            if len(problems) > SHOWN_PROBLEMS:
                self._print(f"  … and {len(problems) - SHOWN_PROBLEMS} more")
        if problems:
            self._print(f"  repeat it with: {command(result.run)}")

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
                "steps": self._steps,
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
                self._print(f"never happened: {', '.join(never)}")
        rate = self._count / took_s if took_s else 0
        self._print(
            f"{seeds} seeds{repeated}, {self._steps} steps in {took_s:.1f} s, {rate:.1f} runs a second: "
            f"{len(self.failed)} failed"
        )

    def _print_table(self, title: str, counts: Counter[str]) -> None:
        for name, count in sorted(counts.items()):
            self._print(f"{count:9} {title} {name}")

    def _print(self, line: str) -> None:
        print(f"\r\033[K{line}" if self._is_rewritten else line, file=self._file, flush=True)


def command(one: Run) -> str:
    """Return the command that repeats a run."""
    arguments = ["--seeds", str(one.seed), *one.configuration.arguments(), "--verbose"]
    if one.only is not None:
        arguments += ["--only", ",".join(f"{name}#{nth}" for name, nth in sorted(one.only))]
    return f"make simulate ARGS={shlex.quote(shlex.join(arguments))}"


def _read_decisions(text: str | None) -> frozenset[tuple[str, int]] | None:
    if text is None:
        return None
    pairs = [one.rpartition("#") for one in text.split(",") if one]
    return frozenset((name, int(nth)) for name, _, nth in pairs)


def _seeds(text: str) -> Iterator[int]:
    first, dash, last = text.partition("-")
    return (
        iter(range(int(first), int(last) + 1)) if last else itertools.count(int(first)) if dash else iter([int(first)])
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="make simulate ARGS=...", description=__doc__)
    parser.add_argument("--seeds", default="1-100", help="One, the first and the last, or the first: 7, 1-100, 1-.")
    parser.add_argument("--jobs", type=int, help="Runs at once; one on each core if it is left out.")
    parser.add_argument("--for", dest="seconds", type=float, default=float("inf"), help="Begin no run after seconds.")
    parser.add_argument("--until-failure", action="store_true", help="Begin no run after the first failure.")
    parser.add_argument("--twice", action="store_true", help="Run each seed again, and compare the steps.")
    parser.add_argument("--only", help="The decisions that may happen: NAME#NUMBER, with commas between them.")
    parser.add_argument("--verbose", action="store_true", help="Print what each seed did.")
    parser.add_argument("--quiet", action="store_true", help="Print no coverage.")
    parser.add_argument("--json", action="store_true", help="Print one JSON object; all else goes to standard error.")
    Configuration.add_options(parser)
    sys.exit(main(parser.parse_args()))
