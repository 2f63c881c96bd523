"""The steps of a message's trace in order of time, with consecutive failed attempts combined."""

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
"""Minimum number of equal attempts that are combined into a fold."""
LISTED: Final = 50
"""Maximum number of attempts listed between the first and the last of a fold."""
MOST_LISTED: Final = 200
"""Maximum number listed in all folds of a run of attempts together."""
MOST_RUNS: Final = 20
"""If the errors of a run change more often, the run is one fold, and each attempt has its own text."""


def folded(steps: Sequence[Step]) -> list[Step]:
    """Return the steps with consecutive attempts with the same error combined into one step.

    A fold has the id of its first attempt, so that an open page keeps it while it grows.
    """
    result: list[Step] = []
    for are_attempts, group in groupby(steps, key=lambda step: step.number > 0):
        run = list(group)
        result += _of_row(run) if are_attempts else run
    return result


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
        [_try(step, is_alike=is_alike) for step in between],
        len(tries) - 2 - len(between),
    )
    title = f"{grouped(len(tries))} failed attempts"
    text = f"{_span(fold.first.at_ms, fold.last.at_ms)}, {says}"
    return replace(first, title=title, text=text, fold=fold)


def _try(step: Step, *, is_alike: bool) -> Try:
    text = "" if is_alike else step.text
    return Try(f"{step.id}-try", step.number, step.at_ms or 0, step.gap_ms, text)


def _answers(tries: Iterable[Step]) -> str:
    counted = Counter(step.text for step in tries)
    [(most, times)] = counted.most_common(1)
    return f"{grouped(len(counted))} different errors. Most frequent, {grouped(times)} times: {most}"


def _span(from_ms: int, to_ms: int) -> str:
    """Return a time span in UTC, to the second; with dates if they differ."""
    begin, end = exact(from_ms), exact(to_ms)
    shown = slice(11, 19) if begin[:10] == end[:10] else slice(0, 19)
    return f"From {begin[shown]} to {end[shown]} UTC"


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
NEWS: Final = {  # Source: domain/lifecycle.py; events that change no state: events/statuses.py, store/trace_events.py
    # event       actor      tone     title
    "enqueued":  _Word(_OPERATOR, "info",  "Accepted by operator"),
    "sent":      _Word(_OPERATOR, "info",  "Sent to recipient"),
    "delivered": _Word(_OPERATOR, "good",  "Delivered"),
    "read":      _Word(_OPERATOR, "good",  "Read"),
    "deleted":   _Word(_OPERATOR, "quiet", "Deleted by the recipient"),
    "failed":    _Word(_OPERATOR, "bad",   "Failed"),
    "uncertain": _Word(_WAYPOST,  "warn",  "Unconfirmed: may have been sent"),
    TRIED:       _Word(_OPERATOR, "warn",  "Attempt failed"),
    "billed":    _Word(_OPERATOR, "quiet", "Pricing received"),
    "payment":   _Word(_OPERATOR, "info",  "Payment updated"),
    "status":    _Word(_OPERATOR, "quiet", "Status ignored"),
}
# fmt: on


def steps_of(trace: Mapping[str, Any]) -> list[Step]:
    """Return the steps of a trace from the store, oldest first, with a future step last.

    Their number is limited, however many attempts there were.
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
    yield Step("s-request", at_ms, "You", "quiet", "Request received", kind="request")
    text = "Responded with 200 and the message ID after the message and its outbound job were on disk."
    yield Step("s-accepted", at_ms, _WAYPOST, "quiet", "Accepted", text)


def _news(trace: Mapping[str, Any]) -> Iterator[Step]:
    attempts = 0
    for line in trace["news"]:
        event, detail = line["news"], line["detail"]
        texts = NEWS.get(event) or _Word(_OPERATOR, "quiet", event)
        who, tone, title, text = texts.who, texts.tone, texts.title, detail
        if event == TRIED:
            attempts += 1
            title, text = (f"Attempt {grouped(attempts)} failed", _with_meaning(detail))
        elif not line["moved"] and detail.startswith("behind "):
            state = detail.removeprefix("behind ")
            tone, title = "quiet", f"Late status \u201c{event}\u201d"
            text = f"The message was already {state}, so this status changed nothing and caused no callback."
        elif event == "enqueued" and trace["operator_message_id"]:
            text = f"Operator message ID: {trace['operator_message_id']}"
        elif event == "failed" and trace["unconfirmed"]:
            who = _WAYPOST
        number = attempts if event == TRIED else 0
        yield Step(f"s-news-{line['id']}", line["at_ms"], who, tone, title, text, number=number)


def _callbacks(trace: Mapping[str, Any]) -> Iterator[Step]:
    for callback in trace["callbacks"]:
        tone, title = _ended(callback)
        yield Step(
            f"s-callback-{callback['id']}",
            callback["created_on_ms"],
            _RECEIVER,
            tone,
            f"Callback \u201c{callback['news']}\u201d: {title}",
            kind="callback",
            of=callback,
        )


def _ended(told: Mapping[str, Any]) -> tuple[str, str]:
    replays = sum(attempt["kind"] == AttemptKind.REPLAY for attempt in told["attempts"])
    attempts = len(told["attempts"]) - replays
    suffix = ", replayed later" if replays else ""
    at_attempt = "" if attempts < 2 else f" at attempt {attempts}"
    count = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    if told["ended_on_ms"] is not None:
        if told["delivered"]:
            return "good", f"delivered{at_attempt}{suffix}"
        return "bad", f"not delivered after {count}"
    return ("warn", f"{count} so far") if attempts else ("info", "pending")


def _waiting(trace: Mapping[str, Any]) -> Iterator[Step]:
    job = trace["waiting"]
    if job is None:
        return
    if job["queue"] == "unconfirmed":
        text = (
            "The message is not sent again automatically. If no status arrives in time, it fails with a reason "
            "that says it may have arrived."
        )
        title = "Waiting for a status from the operator"
    elif job["state"].startswith("dead_letter"):
        title = "Dead letter after internal errors"
        text = f"The administrator can retry or delete it. {job['note'] or ''}".strip()
    elif job["state"] == "in_flight":
        title, text = "Sending to the operator", ""
    else:
        title = f"Waiting for attempt {grouped(job['attempt'] + 1)}" if job["attempt"] else "Queued"
        text = job["note"] or "Messages to one recipient are sent in order, and each number has a throughput limit."
    yield Step("s-waiting", None, _WAYPOST, "info", title, text, of=job)


def _with_meaning(detail: str) -> str:
    """Return the error text of an attempt, with the meaning of its code."""
    match = _CODE.match(detail)
    failure = FAILURES.get(int(match[1])) if match else None
    if match is None or failure is None:
        return detail
    return f"{failure.what} (code {match[1]}): {detail[match.end() :]}"


def _time_of(step: Step) -> int:
    return step.at_ms or 0
