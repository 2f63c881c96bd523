"""A failing run is shrunk to few decisions, also if they go together, or need an order of steps that rarely comes."""

import hashlib
from collections.abc import Callable, Iterable, Iterator

from simulation.choices import Decision
from simulation.configuration import FIFO, Configuration
from simulation.runs import Result, Run
from simulation.shrink import Shrunk, shrink

ACTORS = ("partner 1", "partner 2", "phone 1", "administrator")
DECISIONS = [(f"{actor} pause", nth) for nth in range(10) for actor in ACTORS]
NEEDED = {("partner 2 pause", 3), ("administrator pause", 7)}
FAILED = "the message 1234 is lost"


class FakeRunner:
    """Runs nothing: a run has the decisions that it may have, and breaks the promise if a function says so."""

    jobs = 1

    def __init__(self, breaks: Callable[[Run], bool]) -> None:
        self._breaks = breaks

    def run_all(self, runs: Iterable[Run]) -> Iterator[Result]:
        for run in runs:
            made = [key for key in DECISIONS if run.only is None or key in run.only]
            decisions = [Decision(*key, "1.5", float(at_s), []) for at_s, key in enumerate(made)]
            yield Result(run, broken=[FAILED] if self._breaks(run) else [], decisions=decisions)

    def shrink_seed(self, within_s: float = 1e9) -> Shrunk:
        run = Run(7, Configuration(messages=8))
        (failed,) = self.run_all([run])
        return shrink(self, Result(run, [FAILED], decisions=failed.decisions), print, within_s)


def kept(run: Run) -> set[tuple[str, int]]:
    return set(DECISIONS) if run.only is None else set(run.only)


def has_needed(run: Run) -> bool:
    return kept(run) >= NEEDED


def comes_in_an_order(run: Run) -> bool:
    """Tell whether the steps come in an order that one in sixteen schedules has, and first in, first out never."""
    schedule = run.configuration.schedule
    name = f"{schedule} {sorted(kept(run))} {run.configuration.messages}"
    return schedule != FIFO and hashlib.sha256(name.encode()).digest()[0] % 16 == 0


def test_what_is_not_needed_is_left_out() -> None:
    shrunk = FakeRunner(has_needed).shrink_seed()

    assert shrunk.result.run.only == NEEDED
    assert shrunk.result.run.configuration == Configuration(messages=1, schedule=FIFO)
    assert shrunk.is_minimal
    assert not shrunk.is_order_needed


def test_decisions_of_one_actor_that_need_each_other_are_left_out_together() -> None:
    phone = {key for key in DECISIONS if key[0] == "phone 1 pause"}

    shrunk = FakeRunner(lambda run: has_needed(run) and (kept(run) & phone) in (set(), phone)).shrink_seed()

    assert shrunk.result.run.only == NEEDED


def test_order_of_steps_that_rarely_comes_is_looked_for() -> None:
    shrunk = FakeRunner(lambda run: has_needed(run) and comes_in_an_order(run)).shrink_seed()

    assert len(shrunk.result.decisions) <= len(NEEDED) + 1
    assert shrunk.is_order_needed


def test_decision_is_tried_again_once_another_one_is_left_out() -> None:
    """Of a chain each one can be left out only after the one before it, which comes earlier."""
    chain = [key for key in DECISIONS if key not in NEEDED]

    def breaks(run: Run) -> bool:
        held = [key in kept(run) for key in chain]
        return has_needed(run) and held == sorted(held)

    shrunk = FakeRunner(breaks).shrink_seed()

    assert shrunk.result.run.only == NEEDED


def test_run_names_the_decisions_that_it_makes() -> None:
    """A run of which nothing can be left out depends on no decision beside its own."""
    shrunk = FakeRunner(lambda run: run.only in (None, frozenset(DECISIONS))).shrink_seed()

    assert shrunk.result.run.only == frozenset(DECISIONS)


def test_run_whose_process_was_ended_keeps_its_decisions() -> None:
    """It tells none of them."""
    only = frozenset(DECISIONS)

    shrunk = shrink(FakeRunner(lambda _: False), Result(Run(7, Configuration(), only), [FAILED]), print)

    assert shrunk.result.run.only == only


def test_no_run_is_repeated() -> None:
    ran: list[Run] = []

    def breaks(run: Run) -> bool:
        ran.append(run)
        return has_needed(run) and comes_in_an_order(run)

    shrunk = FakeRunner(breaks).shrink_seed()

    assert len(set(ran)) == len(ran) == shrunk.tried + 1


def test_smallest_run_so_far_is_returned_when_time_is_up() -> None:
    shrunk = FakeRunner(has_needed).shrink_seed(within_s=0)

    assert shrunk.result.run.only == frozenset(DECISIONS)
    assert shrunk.tried == 0
    assert not shrunk.is_minimal
