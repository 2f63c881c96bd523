"""The callbacks of a message's trace, grouped by event: one branch for each subscription."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from waypost.console.callbacks.statuses import delivery_status
from waypost.console.messages.trace_step import TraceBranch, TraceStepView
from waypost.console.web.formatting import format_number
from waypost.domain.callbacks.callback import AttemptKind
from waypost.store.callbacks.deliveries import OpenCallback, SubscriptionHealth
from waypost.store.queue.names import JobState

# fmt: off
TIMED_EVENTS: Final = (  # of the summary, in the order of a message's life
    # event       words
    ("enqueued",  "accepted by operator"),
    ("sent",      "sent"),
    ("delivered", "delivered"),
    ("read",      "read"),
    ("failed",    "failed"),
)
# fmt: on


def add_branches(
    steps: Sequence[TraceStepView],
    callbacks: Sequence[Mapping[str, Any]],
    subscriptions: Mapping[int, SubscriptionHealth],
    now_ms: int,
) -> list[TraceStepView]:
    """Return the steps with the callbacks about their events; an event without a step gets one of its own.

    Args:
        steps: oldest first.
        callbacks: of the trace.
        subscriptions: of the app, by id.
        now_ms: by the service's clock.
    """
    by_event: dict[str, list[Mapping[str, Any]]] = {}
    for callback in callbacks:
        by_event.setdefault(callback["event"], []).append(callback)

    def branches(event: str, at_ms: int) -> list[TraceBranch]:
        found = [_branch(one, subscriptions.get(one["subscription_id"]), at_ms, now_ms) for one in by_event.pop(event)]
        return sorted(found, key=lambda branch: branch.tag)

    complete = [
        replace(step, branches=branches(step.event, step.at_ms or 0)) if step.event in by_event else step
        for step in steps
    ]
    for event, about in list(by_event.items()):
        at_ms = min(callback["created_on_ms"] for callback in about)
        title = f"Event \u201c{event}\u201d"
        complete.append(
            TraceStepView(
                f"s-about-{event}", at_ms, "Waypost", "quiet", title, event=event, branches=branches(event, at_ms)
            )
        )
    return complete


def summarize_timing(trace: Mapping[str, Any]) -> list[tuple[str, int | None]]:
    """Return when a message reached its states, and the slowest delivery of its callbacks: words and milliseconds.

    As long as a callback has not been delivered, the words say how many have.
    """
    reached = {line["event"]: line["at_ms"] for line in reversed(trace["events"]) if line["applied"]}
    begun_ms = trace["accepted_on_ms"]
    timing: list[tuple[str, int | None]] = [
        (words, reached[event] - begun_ms) for event, words in TIMED_EVENTS if event in reached
    ]
    waits = [one["ended_on_ms"] - one["created_on_ms"] for one in trace["callbacks"] if one["delivered"]]
    if not trace["callbacks"]:
        return timing
    count, total = len(waits), len(trace["callbacks"])
    words = (
        "callbacks delivered"
        if count == total
        else f"{format_number(count)} of {format_number(total)} callbacks delivered"
    )
    return [*timing, (f"{words} within", max(waits)) if waits else (words, None)]


def _branch(
    callback: Mapping[str, Any], subscription: SubscriptionHealth | None, at_ms: int, now_ms: int
) -> TraceBranch:
    own = [attempt for attempt in callback["attempts"] if attempt["kind"] != AttemptKind.REPLAY]
    job = None
    if callback["waiting"]:
        is_dead = callback["waiting"]["state"].startswith("dead_letter")
        state = JobState.DEAD_LETTER if is_dead else JobState.OPEN
        job = OpenCallback(callback["id"], callback["waiting"]["due_ms"], state)
    return TraceBranch(
        id=f"s-callback-{callback['id']}",
        tag=subscription.tag if subscription else "",
        status=delivery_status(callback, [attempt["status"] for attempt in own], job, subscription, now_ms),
        after_ms=max(callback["ended_on_ms"] - at_ms, 0) if callback["delivered"] else None,
        tries=len(own),
        replays=len(callback["attempts"]) - len(own),
        callback=callback,
    )
