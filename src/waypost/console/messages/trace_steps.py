"""The steps of a message's trace in order of time, with consecutive failed attempts combined."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any, Final

from waypost.client.simulated_events import NOT_FETCHED
from waypost.console.messages.failure_explanations import FAILURES
from waypost.console.messages.trace_branches import add_branches
from waypost.console.messages.trace_step import AttemptFold, FailedAttempt, TraceStepView
from waypost.console.web.formatting import format_number
from waypost.store.callbacks.deliveries import SubscriptionHealth
from waypost.store.trace_events import SEND_ATTEMPTED

MIN_FOLDED: Final = 4
"""Minimum number of equal attempts that are combined into a fold."""
MAX_LISTED_PER_FOLD: Final = 50
"""Maximum number of attempts listed between the first and the last of a fold."""
MAX_LISTED_PER_RUN: Final = 200
"""Maximum number listed in all folds of a run of attempts together."""
MAX_FOLDS: Final = 20
"""If the errors of a run change more often, the run is one fold, and each attempt has its own text."""


def fold_attempts(steps: Sequence[TraceStepView]) -> list[TraceStepView]:
    """Return the steps with consecutive attempts with the same error combined into one step.

    A fold has the id of its first attempt, so that an open page keeps it while it grows.
    """
    result: list[TraceStepView] = []
    for are_attempts, group in groupby(steps, key=lambda step: step.number > 0):
        run = list(group)
        result += _fold_run(run) if are_attempts else run
    return result


def _fold_run(attempts: Sequence[TraceStepView]) -> Iterator[TraceStepView]:
    runs = [list(run) for _, run in groupby(attempts, key=lambda step: step.text)]
    if len(runs) > MAX_FOLDS:
        yield _fold_step(attempts, _summarize_errors(attempts), MAX_LISTED_PER_FOLD, is_alike=False)
        return
    folds = sum(len(run) >= MIN_FOLDED for run in runs)
    for run in runs:
        if len(run) < MIN_FOLDED:
            yield from run
        else:
            listed = min(MAX_LISTED_PER_FOLD, MAX_LISTED_PER_RUN // folds)
            yield _fold_step(run, f"Each: {run[0].text}", listed, is_alike=True)


def _fold_step(attempts: Sequence[TraceStepView], summary: str, listed: int, *, is_alike: bool) -> TraceStepView:
    first, last = attempts[0], attempts[-1]
    between = attempts[max(1, len(attempts) - 1 - listed) : -1]
    fold = AttemptFold(
        f"{first.id}-between",
        _failed_attempt(first, is_alike=is_alike),
        _failed_attempt(last, is_alike=is_alike),
        [_failed_attempt(step, is_alike=is_alike) for step in between],
        len(attempts) - 2 - len(between),
    )
    title = f"{format_number(len(attempts))} failed attempts"
    return replace(first, title=title, text=summary, fold=fold)


def _failed_attempt(step: TraceStepView, *, is_alike: bool) -> FailedAttempt:
    text = "" if is_alike else step.text
    return FailedAttempt(f"{step.id}-try", step.number, step.at_ms or 0, step.gap_ms, text)


def _summarize_errors(attempts: Iterable[TraceStepView]) -> str:
    counted = Counter(step.text for step in attempts)
    [(most, times)] = counted.most_common(1)
    return f"{format_number(len(counted))} different errors. Most frequent, {format_number(times)} times: {most}"


@dataclass(frozen=True, slots=True)
class _EventTexts:
    who: str
    tone: str
    title: str
    text: str = ""


_OPERATOR: Final = "Operator"
_WAYPOST: Final = "Waypost"
_CODE: Final = re.compile(r"(\d+): ")

TRACE_EVENT_TEXTS: Final = {  # Source: domain/lifecycle.py; events that change no state: events/statuses.py, store/trace_events.py
    # event, actor, tone, title
    "enqueued": _EventTexts(_OPERATOR, "quiet", "Accepted by operator"),
    "sent": _EventTexts(_OPERATOR, "quiet", "Sent to recipient"),
    "delivered": _EventTexts(_OPERATOR, "good", "Delivered"),
    "read": _EventTexts(_OPERATOR, "info", "Read"),
    "deleted": _EventTexts(_OPERATOR, "quiet", "Deleted by the recipient"),
    "failed": _EventTexts(_OPERATOR, "bad", "Failed"),
    "uncertain": _EventTexts(_WAYPOST, "warn", "Unconfirmed: may have been sent"),
    SEND_ATTEMPTED: _EventTexts(_OPERATOR, "warn", "Attempt failed"),
    "billed": _EventTexts(_OPERATOR, "quiet", "Pricing received"),
    "payment": _EventTexts(_OPERATOR, "info", "Payment updated"),
    "status": _EventTexts(_OPERATOR, "quiet", "Status ignored"),
    NOT_FETCHED: _EventTexts(_OPERATOR, "quiet", "Media not fetched"),
}


def build_steps(
    trace: Mapping[str, Any], subscriptions: Mapping[int, SubscriptionHealth], now_ms: int
) -> list[TraceStepView]:
    """Return the steps of a trace from the store, oldest first, with a future step last.

    The callbacks about an event are branches of its step. The number of steps is limited, however many attempts there were.

    Args:
        trace: as the store returns it.
        subscriptions: of the app, by id.
        now_ms: by the service's clock.
    """
    past = [*_accepted_steps(trace), *_event_steps(trace)]
    past = sorted(add_branches(past, trace["callbacks"], subscriptions, now_ms), key=_time_of)
    before_ms = None
    steps: list[TraceStepView] = []
    for step in past:
        gap_ms = None if before_ms is None or step.at_ms is None else step.at_ms - before_ms
        before_ms = step.at_ms
        steps.append(replace(step, gap_ms=gap_ms))
    return [*fold_attempts(steps), *_pending_steps(trace)]


def _accepted_steps(trace: Mapping[str, Any]) -> Iterator[TraceStepView]:
    at_ms = trace["accepted_on_ms"]
    yield TraceStepView("s-request", at_ms, "You", "quiet", "Request received", is_request=True)
    text = "Responded with 200 and the message ID after the message and its outbound job were on disk."
    yield TraceStepView("s-accepted", at_ms, _WAYPOST, "quiet", "Accepted", text)


def _event_steps(trace: Mapping[str, Any]) -> Iterator[TraceStepView]:
    attempts = 0
    for line in trace["events"]:
        event, detail = line["event"], line["detail"]
        texts = TRACE_EVENT_TEXTS.get(event) or _EventTexts(_OPERATOR, "quiet", event)
        who, tone, title, text = texts.who, texts.tone, texts.title, detail
        if event == SEND_ATTEMPTED:
            attempts += 1
            title, text = (f"Attempt {format_number(attempts)} failed", _explain_error(detail))
        elif not line["applied"] and detail.startswith("behind "):
            state = detail.removeprefix("behind ")
            tone, title = "quiet", f"Late status \u201c{event}\u201d"
            text = f"The message was already {state}, so this status changed nothing and caused no callback."
        elif event == "enqueued" and trace["operator_message_id"]:
            text = f"Operator message ID: {trace['operator_message_id']}"
        elif event == "failed" and trace["unconfirmed"]:
            who = _WAYPOST
        number = attempts if event == SEND_ATTEMPTED else 0
        caused = event if line["applied"] else ""
        yield TraceStepView(f"s-event-{line['id']}", line["at_ms"], who, tone, title, text, event=caused, number=number)


def _pending_steps(trace: Mapping[str, Any]) -> Iterator[TraceStepView]:
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
        title = f"Waiting for attempt {format_number(job['attempt'] + 1)}" if job["attempt"] else "Queued"
        text = job["note"] or "Messages to one recipient are sent in order, and each number has a throughput limit."
    yield TraceStepView("s-waiting", None, _WAYPOST, "info", title, text, job=job)


def _explain_error(detail: str) -> str:
    """Return the error text of an attempt, with the meaning of its code."""
    match = _CODE.match(detail)
    failure = FAILURES.get(int(match[1])) if match else None
    if match is None or failure is None:
        return detail
    return f"{failure.what} (code {match[1]}): {detail[match.end() :]}"


def _time_of(step: TraceStepView) -> int:
    return step.at_ms or 0
