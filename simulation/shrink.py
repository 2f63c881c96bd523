"""Shrinking: the fewest decisions with which a failing seed still breaks the same promise.

A seed that needs its own order of steps is tried with several orders each time: with fewer decisions the same order
does not come again.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import batched
from typing import Final

from simulation.configuration import FIFO
from simulation.search import Result, Run, Search

WITHIN_S: Final = 180
MESSAGES: Final = (1, 2, 4, 8)
ORDERS: Final = 4
"""Orders of steps that are tried for each set of decisions, if the order matters."""


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


class _Shrinking:
    def __init__(self, search: Search, failed: Result, print_progress: Callable[[str], None]) -> None:
        self._search, self._print = search, print_progress
        self._wanted = promises(failed.broken)
        self._until_s = time.monotonic() + WITHIN_S
        self._orders: tuple[str, ...] = (failed.run.configuration.schedule,)
        self.tried = 0
        self.best = failed

    def shrink(self) -> Shrunk:
        if self._try([self._changed(schedule=FIFO)]):
            self._orders = (FIFO,)
        else:
            own = self.best.run.configuration.schedule
            self._orders = (own, *(str(order) for order in range(1, ORDERS)))
        self._fewer_messages()
        self._fewer_decisions()
        self._fewer_messages()
        return Shrunk(self.best, self.tried, self._orders[0] != FIFO)

    def _changed(self, **changes: object) -> Run:
        run = self.best.run
        return replace(run, configuration=replace(run.configuration, **changes))  # type: ignore[arg-type]

    def _fewer_messages(self) -> None:
        self._try([self._changed(messages=count) for count in MESSAGES if count < self.best.run.configuration.messages])

    def _fewer_decisions(self) -> None:
        """Delta debugging: none, then parts and what is left without them, in ever smaller parts."""
        if self._try([replace(self.best.run, only=frozenset())]):
            return
        parts = 2
        while (kept := _decisions(self.best)) and time.monotonic() < self._until_s:
            size = -(-len(kept) // parts)
            pieces = list(batched(kept, size))
            candidates = [frozenset(piece) for piece in pieces] if parts < 8 else []
            candidates += [frozenset(kept) - frozenset(piece) for piece in pieces]
            before = len(kept)
            if self._try([replace(self.best.run, only=one) for one in dict.fromkeys(candidates)]):
                parts = max(2, min(parts, len(_decisions(self.best))) - 1)
                self._print(f"{before} decisions: {len(_decisions(self.best))} are enough")
            elif size == 1:
                return
            else:
                parts = min(2 * parts, before)

    def _try(self, runs: list[Run]) -> bool:
        """Keep the first of the runs that breaks the promise; return whether there is one."""
        if time.monotonic() >= self._until_s:
            return False
        for group in batched(self._in_orders(runs), self._search.jobs):
            results = list(self._search.run_all(group, all_events=True))
            self.tried += len(results)
            failing = [result for result in results if promises(result.broken) & self._wanted]
            if failing:
                self.best = min(failing, key=lambda result: group.index(result.run))
                return True
        return False

    def _in_orders(self, runs: list[Run]) -> Iterator[Run]:
        for run in runs:
            schedules = (run.configuration.schedule,) if run.configuration.schedule == FIFO else self._orders
            for schedule in dict.fromkeys((run.configuration.schedule, *schedules)):
                yield replace(run, configuration=replace(run.configuration, schedule=schedule))


def _decisions(result: Result) -> list[tuple[str, int]]:
    return [decision.key for decision in result.decisions]


def shrink(search: Search, failed: Result, print_progress: Callable[[str], None]) -> Shrunk:
    """Return the smallest run that breaks a promise that a failed run broke; itself if none was found."""
    return _Shrinking(search, failed, print_progress).shrink()
