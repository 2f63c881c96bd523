"""A message's trace as steps in the order of time: what happened, who did it, and what came of it."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

from waypost.console.messages.failure_explanations import FAILURES
from waypost.console.messages.trace_step import Fold, Step, Try
from waypost.console.web.formatting import exact, grouped
from waypost.domain.callbacks.callback import AttemptKind
from waypost.store.trace_events import TRIED

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


@dataclass(frozen=True, slots=True)
class _Word:
    who: str
    tone: str
    title: str
    text: str = ""


_OPERATOR: Final = "Operator"
_WAYPOST: Final = "Waypost"
_RECEIVER: Final = "Callback"
_CODE: Final = re.compile(r"(\d+): ")

# fmt: off
NEWS: Final = {  # Source: domain/lifecycle.py; the words that move nothing: events/statuses.py, store/trace_events.py
    # news        who        tone     title
    "enqueued":  _Word(_OPERATOR, "info",  "The operator took it"),
    "sent":      _Word(_OPERATOR, "info",  "Sent to the phone"),
    "delivered": _Word(_OPERATOR, "good",  "Arrived on the phone"),
    "read":      _Word(_OPERATOR, "good",  "Read"),
    "deleted":   _Word(_OPERATOR, "quiet", "Deleted by the recipient"),
    "failed":    _Word(_OPERATOR, "bad",   "Failed"),
    "uncertain": _Word(_WAYPOST,  "warn",  "Not known whether the operator has it"),
    TRIED:       _Word(_OPERATOR, "warn",  "Tried; the operator did not take it"),
    "billed":    _Word(_OPERATOR, "quiet", "Priced"),
    "payment":   _Word(_OPERATOR, "info",  "A payment went on"),
    "status":    _Word(_OPERATOR, "quiet", "A status that has no meaning here"),
}
# fmt: on


def steps_of(trace: Mapping[str, Any]) -> list[Step]:
    """The steps of a trace, as `way_of_app` gives it, oldest first; what is still to come stands last.

    However often the operator was tried, they are few.
    """
    past = sorted([*_accepted(trace), *_news(trace), *_callbacks(trace)], key=_time_of)
    before_ms = None
    steps: list[Step] = []
    for step in past:
        gap_ms = None if before_ms is None or step.at_ms is None else step.at_ms - before_ms
        before_ms = step.at_ms
        steps.append(replace(step, gap_ms=gap_ms))
    return [*folded(steps), *_waiting(trace)]


def _accepted(trace: Mapping[str, Any]) -> Iterator[Step]:
    at_ms = trace["accepted_on_ms"]
    yield Step("s-request", at_ms, "You", "quiet", "Your request came", kind="request")
    answer = "Answered 200 with the message\u2019s id, once it was on disk with the entry that carries it."
    yield Step("s-accepted", at_ms, _WAYPOST, "quiet", "Accepted", answer)


def _news(trace: Mapping[str, Any]) -> Iterator[Step]:
    tries = 0
    for line in trace["news"]:
        news, detail = line["news"], line["detail"]
        word = NEWS.get(news) or _Word(_OPERATOR, "quiet", news)
        who, tone, title, text = word.who, word.tone, word.title, detail
        if news == TRIED:
            tries += 1
            title, text = (f"Try {grouped(tries)}: the operator did not take it", _with_meaning(detail))
        elif not line["moved"] and detail.startswith("behind "):
            behind = detail.removeprefix("behind ")
            tone, title = "quiet", f"Late: \u201c{news}\u201d"
            text = f"It came when the message was {behind} already, so it moved nothing and was called back to nobody."
        elif news == "enqueued" and trace["operator_message_id"]:
            text = f"It calls it {trace['operator_message_id']}."
        elif news == "failed" and trace["unconfirmed"]:
            who = _WAYPOST
        number = tries if news == TRIED else 0
        yield Step(f"s-news-{line['id']}", line["at_ms"], who, tone, title, text, number=number)


def _callbacks(trace: Mapping[str, Any]) -> Iterator[Step]:
    for told in trace["callbacks"]:
        tone, title = _ended(told)
        yield Step(
            f"s-callback-{told['id']}",
            told["created_on_ms"],
            _RECEIVER,
            tone,
            f"Callback \u201c{told['news']}\u201d: {title}",
            kind="callback",
            of=told,
        )


def _ended(told: Mapping[str, Any]) -> tuple[str, str]:
    replays = sum(one["kind"] == AttemptKind.REPLAY for one in told["attempts"])
    tries = len(told["attempts"]) - replays
    replayed = ", replayed since" if replays else ""
    times = "" if tries < 2 else f" at try {tries}"
    how_often = "once" if tries == 1 else f"{tries} times"
    if told["ended_on_ms"] is not None:
        return ("good", f"taken{times}{replayed}") if told["delivered"] else ("bad", f"given up, tried {how_often}")
    return ("warn", f"tried {how_often} so far") if tries else ("info", "waits")


def _waiting(trace: Mapping[str, Any]) -> Iterator[Step]:
    entry = trace["waiting"]
    if entry is None:
        return
    if entry["queue"] == "unconfirmed":
        text = (
            "It is not sent again on a guess. If no status comes until then, it fails with a reason that says "
            "that it may have arrived."
        )
        title = "Waits for a status that says whether the operator has it"
    elif entry["state"].startswith("dead_letter"):
        title = "Set aside after errors of Waypost\u2019s own"
        text = f"Whoever runs the service releases or drops it. {entry['note'] or ''}".strip()
    elif entry["state"] == "in_flight":
        title, text = "Being handed to the operator now", ""
    else:
        title = f"Waits for try {grouped(entry['attempt'] + 1)}" if entry["attempt"] else "Waits for its turn"
        text = entry["note"] or "Messages to one recipient go one after the other, and a number sends so many a second."
    yield Step("s-waiting", None, _WAYPOST, "info", title, text, of=entry)


def _with_meaning(detail: str) -> str:
    """The words of a try, with what its code means."""
    found = _CODE.match(detail)
    known = FAILURES.get(int(found[1])) if found else None
    if found is None or known is None:
        return detail
    return f"{known.what} (code {found[1]}): {detail[found.end() :]}"


def _time_of(step: Step) -> int:
    return step.at_ms or 0
