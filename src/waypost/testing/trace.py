"""A message's trace, as the service has it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from waypost.base.json_values import object_of, objects_in
from waypost.testing.formatting import clock_time, count_in_words


@dataclass(frozen=True, slots=True)
class MessageTraceStep:
    """One event of a message.

    Attributes:
        event: `accepted`, `enqueued`, `sent`, `delivered`, `read`, `failed` and so on.
        at_ms: its time, by the service's clock.
        changed_state: false if it came late and did not change the state.
    """

    event: str
    at_ms: int
    changed_state: bool = True


@dataclass(frozen=True, slots=True)
class Trace:
    """The trace of one message.

    Attributes:
        message_id: ours.
        state: `accepted`, `enqueued`, `sent`, `delivered`, `read` or `failed`.
        code: of a failure, else None.
        reason: of a failure, as text of the operator or ours.
        destination: the digits of the recipient.
        steps: its steps, oldest first.
        waiting: its job's attempts, next due time and last error; empty once it has left the service.
        raw: its record in the admin API.
    """

    message_id: str
    state: str
    code: int | None
    reason: str
    destination: str
    steps: tuple[MessageTraceStep, ...]
    waiting: str
    raw: Mapping[str, Any] = field(repr=False, compare=False)

    def __str__(self) -> str:
        """Return one line for the text of a failure."""
        steps = " → ".join(f"{step.event} {clock_time(step.at_ms)}" for step in self.steps)
        failure = f" {self.code or ''} {self.reason}".rstrip() if self.state == "failed" else ""
        waits = f"; {self.waiting}" if self.waiting else ""
        return f"{self.message_id} to {self.destination}: {self.state}{failure} ({steps}){waits}"


def parse_trace(view: Mapping[str, Any]) -> Trace:
    """Return a trace from a message's record in the admin API."""
    steps = [
        MessageTraceStep(str(step["event"]), int(step["at_ms"]), bool(step["applied"]))
        for step in objects_in(view["events"])
    ]
    return Trace(
        message_id=str(view["id"]),
        state=str(view["state"]),
        code=view.get("code"),
        reason=str(view.get("reason") or ""),
        destination=str(view["destination"]),
        steps=(MessageTraceStep("accepted", int(view["accepted_on_ms"])), *steps),
        waiting=_describe_waiting(object_of(view.get("waiting"))),
        raw=view,
    )


def _describe_waiting(job: Mapping[str, Any]) -> str:
    if not job:
        return ""
    if not job["attempt"]:
        return "no attempt yet"
    reason = f": {job['note']}" if job.get("note") else ""
    return f"tried {count_in_words(int(job['attempt']))}, next attempt at {clock_time(int(job['due_ms']))}{reason}"
