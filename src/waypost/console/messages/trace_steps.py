"""View models of the steps of a message's trace."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, Final, NamedTuple

from waypost.client.simulated_events import FLOW_REQUEST, NOT_FETCHED
from waypost.console.callbacks.deliveries import delivery_status
from waypost.console.messages.failure_explanations import FAILURES
from waypost.console.web.formatting import format_number
from waypost.domain.callbacks import AttemptKind
from waypost.store.callbacks.deliveries import OpenCallback, SubscriptionHealth
from waypost.store.queue.job_subjects import JobState
from waypost.store.trace_events import SEND_ATTEMPTED


class AttemptFold(NamedTuple):
    """Consecutive attempts, shown as one step."""

    id: str  # of the element with the attempts between the first and the last
    first: "TraceStepView"
    last: "TraceStepView"
    between: Sequence["TraceStepView"]  # the newest of those, oldest first
    older: int  # number of those that are not listed


@dataclass(frozen=True, slots=True)
class TraceStepView:
    """One step of a trace."""

    id: str  # element id
    at_ms: int | None  # None for a future step
    who: str  # You, Waypost, Operator or Callback
    tone: str  # good, bad, warn, info or quiet
    title: str
    text: str = ""
    gap_ms: int | None = None  # time since the previous step; None for the first and for a future step
    event: str = ""  # that callbacks are about; empty if there are none about this step
    # those callbacks, by the tags of their subscriptions: `status` and `tag`, empty if it is deleted; `after_ms`, the
    # time from the event to the delivery, None without one; `tries` without replays; `replays`
    branches: Sequence[Mapping[str, Any]] = ()
    is_request: bool = False  # the request is attached
    job: Mapping[str, Any] | None = None  # the job that this step waits for
    number: int = 0  # number of an attempt at the operator, from 1; 0 for other steps
    fold: AttemptFold | None = None  # the attempts that this step combines; None for a single step


TIMED_EVENTS: Final = {  # of the summary, in the order of a message's life
    "enqueued": "accepted by operator",
    "sent": "sent",
    "delivered": "delivered",
    "read": "read",
    "failed": "failed",
}


def _add_branches(
    steps: Sequence[TraceStepView],
    callbacks: Sequence[Mapping[str, Any]],
    subscriptions: Mapping[int, SubscriptionHealth],
    now_ms: int,
) -> list[TraceStepView]:
    """Return the steps with the callbacks about their events; an event without a step gets one of its own."""
    by_event: dict[str, list[Mapping[str, Any]]] = {}
    for callback in callbacks:
        by_event.setdefault(callback["event"], []).append(callback)

    def branches(event: str, at_ms: int) -> list[dict[str, Any]]:
        found = [_branch(one, subscriptions.get(one["subscription_id"]), at_ms, now_ms) for one in by_event.pop(event)]
        return sorted(found, key=itemgetter("tag"))

    complete = [
        replace(step, branches=branches(step.event, step.at_ms or 0)) if step.event in by_event else step
        for step in steps
    ]
    for event, about in list(by_event.items()):
        at_ms = min(callback["created_on_ms"] for callback in about)
        title, caused = f"Event \u201c{event}\u201d", branches(event, at_ms)
        complete.append(
            TraceStepView(f"s-about-{event}", at_ms, _WAYPOST, "quiet", title, event=event, branches=caused)
        )
    return complete


def summarize_timing(trace: Mapping[str, Any]) -> list[tuple[str, int | None]]:
    """Return when a message reached its states, and the slowest delivery of its callbacks: words and milliseconds.

    As long as a callback has not been delivered, the words say how many have.
    """
    reached = {line["event"]: line["at_ms"] for line in reversed(trace["events"]) if line["applied"]}
    begun_ms = trace["accepted_on_ms"]
    timing: list[tuple[str, int | None]] = [
        (words, reached[event] - begun_ms) for event, words in TIMED_EVENTS.items() if event in reached
    ]
    waits = [one["ended_on_ms"] - one["created_on_ms"] for one in trace["callbacks"] if one["delivered"]]
    if not trace["callbacks"]:
        return timing
    count, total = len(waits), len(trace["callbacks"])
    delivered = "" if count == total else f"{format_number(count)} of {format_number(total)} "
    words = f"{delivered}callbacks delivered"
    return [*timing, (f"{words} within", max(waits)) if waits else (words, None)]


def _branch(
    callback: Mapping[str, Any], subscription: SubscriptionHealth | None, at_ms: int, now_ms: int
) -> dict[str, Any]:
    own = [attempt for attempt in callback["attempts"] if attempt["kind"] != AttemptKind.REPLAY]
    job = None
    if callback["waiting"]:
        is_dead = callback["waiting"]["state"].startswith("dead_letter")
        state = JobState.DEAD_LETTER if is_dead else JobState.OPEN
        job = OpenCallback(callback["id"], callback["waiting"]["due_ms"], state)
    return {
        "id": f"s-callback-{callback['id']}",
        "tag": subscription.tag if subscription else "",
        "status": delivery_status(callback, [attempt["status"] for attempt in own], job, subscription, now_ms),
        "after_ms": max(callback["ended_on_ms"] - at_ms, 0) if callback["delivered"] else None,
        "tries": len(own),
        "replays": len(callback["attempts"]) - len(own),
        "callback": callback,
    }


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
        counted = Counter(step.text for step in attempts)
        [(most, times)] = counted.most_common(1)
        errors = f"{format_number(len(counted))} different errors. Most frequent, {format_number(times)} times: {most}"
        yield _fold_step(attempts, errors, MAX_LISTED_PER_FOLD, is_alike=False)
        return
    folds = sum(len(run) >= MIN_FOLDED for run in runs)
    for run in runs:
        if len(run) < MIN_FOLDED:
            yield from run
        else:
            listed = min(MAX_LISTED_PER_FOLD, MAX_LISTED_PER_RUN // folds)
            yield _fold_step(run, f"Each: {run[0].text}", listed, is_alike=True)


def _fold_step(attempts: Sequence[TraceStepView], summary: str, listed: int, *, is_alike: bool) -> TraceStepView:
    between = attempts[max(1, len(attempts) - 1 - listed) : -1]
    first, last, *listed_steps = (
        replace(step, id=f"{step.id}-try", text="" if is_alike else step.text)
        for step in (attempts[0], attempts[-1], *between)
    )
    older = len(attempts) - 2 - len(between)
    fold = AttemptFold(f"{attempts[0].id}-between", first, last, listed_steps, older)
    return replace(attempts[0], title=f"{format_number(len(attempts))} failed attempts", text=summary, fold=fold)


_OPERATOR: Final = "Operator"
_WAYPOST: Final = "Waypost"
_CODE: Final = re.compile(r"(\d+): ")

TRACE_EVENT_TEXTS: Final = {
    # Source: domain/lifecycle.py; events that change no state: events/statuses.py, store/trace_events.py
    # event: actor, tone, title
    "enqueued": (_OPERATOR, "quiet", "Accepted by operator"),
    "sent": (_OPERATOR, "quiet", "Sent to recipient"),
    "delivered": (_OPERATOR, "good", "Delivered"),
    "read": (_OPERATOR, "info", "Read"),
    "deleted": (_OPERATOR, "quiet", "Deleted by the recipient"),
    "failed": (_OPERATOR, "bad", "Failed"),
    "uncertain": (_WAYPOST, "warn", "Unconfirmed: may have been sent"),
    SEND_ATTEMPTED: (_OPERATOR, "warn", "Attempt failed"),
    "billed": (_OPERATOR, "quiet", "Pricing received"),
    "payment": (_OPERATOR, "info", "Payment updated"),
    "status": (_OPERATOR, "quiet", "Status ignored"),
    NOT_FETCHED: (_OPERATOR, "quiet", "Media not fetched"),
    FLOW_REQUEST: (_OPERATOR, "quiet", "Request to the endpoint of the Flow"),
}


def build_steps(
    trace: Mapping[str, Any], subscriptions: Mapping[int, SubscriptionHealth], now_ms: int
) -> list[TraceStepView]:
    """Return the steps of a trace from the store, oldest first, with a future step last.

    The callbacks about an event are branches of its step. The number of steps is limited for any number of attempts.

    Args:
        trace: as the store returns it.
        subscriptions: of the app, by id.
    """
    past = [*_accepted_steps(trace), *_event_steps(trace)]
    past = sorted(_add_branches(past, trace["callbacks"], subscriptions, now_ms), key=lambda step: step.at_ms or 0)
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
        who, tone, title = TRACE_EVENT_TEXTS.get(event) or (_OPERATOR, "quiet", event)
        text = detail
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
        wait = job.get("wait")
        text = job["note"] or ""
        if wait:
            text = f"Waiting: {wait['text']}. {text}".strip()
        elif not text:
            text = "Messages to one recipient are sent in order, and each number has a throughput limit."
    yield TraceStepView("s-waiting", None, _WAYPOST, "info", title, text, job=job)


def _explain_error(detail: str) -> str:
    match = _CODE.match(detail)
    failure = FAILURES.get(int(match[1])) if match else None
    if match is None or failure is None:
        return detail
    return f"{failure.what} (code {match[1]}): {detail[match.end() :]}"
