"""Shrinking: the fewest decisions with which a failing seed still breaks the same promise.

Most decisions of a run only shift times, and leaving one out moves each step after it. So what belongs together is left
out together, the latest decisions first, and a seed that needs its own order of steps is tried in other orders too: with
fewer decisions the same order does not come again.
"""

import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Final, Protocol

from simulation.choices import KINDS, Decision
from simulation.configuration import FIFO
from simulation.runs import Result, Run

WITHIN_S: Final = 180
MESSAGES: Final = (1, 2, 4, 8)
ORDERS: Final = (1, 4, 16)
"""In how many orders of steps each set of decisions is tried, if the order matters: in more once no other set breaks it."""

_Keys = frozenset[tuple[str, int]]


class Runner(Protocol):
    """What runs seeds: a `Search`."""

    jobs: int

    def run_all(self, runs: Iterable[Run]) -> Iterator[Result]:
        """Yield the results of runs as they end."""
        ...


def promises(broken: Iterable[str]) -> set[str]:
    """Return what broke without ids and numbers; of an exception, its type and where it was raised."""
    return {re.sub(r"[0-9a-f]{8}[0-9a-f-]*|\d+", "…", _core(problem)) for problem in broken}


def _core(problem: str) -> str:
    if not problem.startswith("Traceback"):
        return re.sub(r"['\"\[{(].*", "", problem)
    *above, last = problem.splitlines()
    places = re.findall(r'([^/"]+)", line \d+, in (\w+)', "\n".join(above))
    return f"{last.partition(':')[0]} in {' of '.join(reversed(places[-1])) if places else 'nowhere'}"


@dataclass
class Shrunk:
    """The smallest run that was found, and how."""

    result: Result
    tried: int
    is_order_needed: bool
    is_minimal: bool  # no decision can be left out of it; False if time was up before that was known


class _Shrinking:
    def __init__(self, runner: Runner, failed: Result, print_progress: Callable[[str], None], within_s: float) -> None:
        self._runner, self._print = runner, print_progress
        self._wanted = promises(failed.broken)
        self._until_s = time.monotonic() + within_s
        self._orders = ORDERS[0]
        self._tried = {failed.run}
        self._count = 0
        self._keep(failed)

    def shrink(self) -> Shrunk:
        for self._orders in ORDERS:
            while self._leave_out_some():
                pass
        is_minimal = time.monotonic() < self._until_s
        return Shrunk(self._best, self._count, self._best.run.configuration.schedule != FIFO, is_minimal)

    def _leave_out_some(self) -> bool:
        """Try once to leave out each decision, with others and alone; return whether the run became smaller."""
        before = self._best
        self._try([self._changed(schedule=FIFO)])
        self._try([self._changed(messages=few) for few in MESSAGES if few < before.run.configuration.messages])
        size = len(self._best.decisions)
        while size:
            latest_first = [decision.key for decision in reversed(self._best.decisions)]
            self._leave_out([frozenset(latest_first[nth : nth + size]) for nth in range(0, len(latest_first), size)])
            self._leave_out([group for group in _groups(self._best.decisions) if size <= len(group) <= 2 * size])
            size //= 2
        return self._best is not before

    def _changed(self, **changes: object) -> Run:
        run = self._best.run
        return replace(run, configuration=replace(run.configuration, **changes))

    def _leave_out(self, pieces: Sequence[_Keys]) -> None:
        """Leave out each piece without which the promise still breaks."""
        while (nth := self._try([self._without(piece) for piece in pieces])) is not None:
            pieces = pieces[nth + 1 :]
            self._print(f"{len(self._best.decisions)} decisions are enough")

    def _without(self, piece: _Keys) -> Run:
        kept = {decision.key for decision in self._best.decisions}
        return replace(self._best.run, only=frozenset(kept - piece))

    def _try(self, runs: Sequence[Run]) -> int | None:
        """Keep the first of the runs that breaks the promise; return its number, or None."""
        waiting = ((nth, each) for nth, run in enumerate(runs) for each in self._in_orders(run))
        new = ((nth, each) for nth, each in waiting if each not in self._tried)
        while time.monotonic() < self._until_s and (group := list(islice(new, self._runner.jobs))):
            self._tried.update(run for _, run in group)
            self._count += len(group)
            results = {result.run: result for result in self._runner.run_all(run for _, run in group)}
            for nth, run in group:
                if promises(results[run].broken) & self._wanted:
                    self._keep(results[run])
                    return nth
        return None

    def _in_orders(self, run: Run) -> Iterator[Run]:
        if run == self._best.run:
            return
        own = run.configuration.schedule
        others = (str(order) for order in count(1) if str(order) != own) if own != FIFO else ()
        for schedule in (own, *islice(others, self._orders - 1)):
            yield replace(run, configuration=replace(run.configuration, schedule=schedule))

    def _keep(self, result: Result) -> None:
        """Keep a result with the decisions that had an effect: without the others, its run takes the same steps."""
        self._best = result
        # A run whose process was ended tells none
        if result.decisions:
            only = frozenset(decision.key for decision in result.decisions)
            self._best = replace(result, run=replace(result.run, only=only))
        self._tried.add(self._best.run)


def _groups(decisions: Sequence[Decision]) -> list[_Keys]:
    """Return what may be left out together, the largest first: all values, or those of one actor or one name."""
    groups = defaultdict[str, set[tuple[str, int]]](set)
    for decision in decisions:
        actor = re.match(r"[\w-]+(?: \d+)?", decision.name)
        values = () if decision.name in KINDS else ("values",)
        for group in (*values, actor[0] if actor else "", decision.name):
            groups[group].add(decision.key)
    return sorted({frozenset(group) for group in groups.values()}, key=lambda group: (-len(group), sorted(group)))


def shrink(runner: Runner, failed: Result, print_progress: Callable[[str], None], within_s: float = WITHIN_S) -> Shrunk:
    """Return the smallest run that breaks a promise that a failed run broke; itself if none was found."""
    return _Shrinking(runner, failed, print_progress, within_s).shrink()
