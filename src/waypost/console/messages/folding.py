"""Folds tries at the operator that followed each other: a message tried for a day has 1,440 of them."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Final

from waypost.console.messages.step import Fold, Step, Try
from waypost.console.spelling import exact, grouped

FROM: Final = 4
"""Fewer than that with one answer stand one below the other."""
LISTED: Final = 50
"""Of those between the first and the last of a fold, the newest."""
MOST_LISTED: Final = 200
"""Of all folds of a row together."""
MOST_RUNS: Final = 20
"""Where the answers change more often, all tries of a row are one fold, and each has its own words."""


def folded(steps: Sequence[Step]) -> list[Step]:
    """Steps in their order, with runs of tries that had the same answer as one step each.

    A fold has the id of its first try, so that an open page keeps it while it grows.
    """
    found: list[Step] = []
    for are_tries, row in groupby(steps, key=lambda step: step.number > 0):
        some = list(row)
        found += _of_row(some) if are_tries else some
    return found


def _of_row(tries: Sequence[Step]) -> Iterator[Step]:
    runs = [list(run) for _, run in groupby(tries, key=lambda step: step.text)]
    if len(runs) > MOST_RUNS:
        yield _fold(tries, _answers(tries), LISTED, is_alike=False)
        return
    folds = sum(len(run) >= FROM for run in runs)
    for run in runs:
        if len(run) < FROM:
            yield from run
        else:
            listed = min(LISTED, MOST_LISTED // folds)
            yield _fold(run, f"each: {run[0].text}", listed, is_alike=True)


def _fold(tries: Sequence[Step], says: str, listed: int, *, is_alike: bool) -> Step:
    first, last = tries[0], tries[-1]
    between = tries[max(1, len(tries) - 1 - listed) : -1]
    fold = Fold(
        f"{first.id}-between",
        _try(first, is_alike=is_alike),
        _try(last, is_alike=is_alike),
        [_try(one, is_alike=is_alike) for one in between],
        len(tries) - 2 - len(between),
    )
    title = f"{grouped(len(tries))} tries: the operator did not take it"
    text = f"{_span(fold.first.at_ms, fold.last.at_ms)}, {says}"
    return replace(first, title=title, text=text, fold=fold)


def _try(step: Step, *, is_alike: bool) -> Try:
    text = "" if is_alike else step.text
    return Try(f"{step.id}-try", step.number, step.at_ms or 0, step.gap_ms, text)


def _answers(tries: Iterable[Step]) -> str:
    counted = Counter(step.text for step in tries)
    [(most, times)] = counted.most_common(1)
    return f"with {grouped(len(counted))} different answers. Most often, {grouped(times)} times: {most}"


def _span(from_ms: int, to_ms: int) -> str:
    """From when to when, in UTC, to the second; the day too where there are two."""
    begin, end = exact(from_ms), exact(to_ms)
    places = slice(11, 19) if begin[:10] == end[:10] else slice(0, 19)
    return f"From {begin[places]} to {end[places]} UTC"
