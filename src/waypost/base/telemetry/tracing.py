"""Trace steps of each message: the table of steps, and the tracer that passes them to the log and to listeners.

A successful step is recorded on request only (log level `debug`, or a listener); a failed one is a log
record at `info`. At 600 messages a second a record for each step would cost more than the step, so
callers check `tracer.is_enabled` first, which is one attribute access:

    if tracer.is_enabled:
        tracer.record(TraceStep.ACCEPTED, message.id, app_id=app.id)

A fact is an id, a position, a count, a code, a status or a duration. It is never a text, a token, a
URL or a phone number, and never the operator's message id, because it contains the recipient's number.
"""

import re
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class TraceStepRow:
    """One trace step."""

    part: str  # the folder of the code that does it
    text: str  # the text of the log record
    facts: tuple[str, ...]  # names of the values of the record


class TraceStep(Enum):
    """The steps, in pipeline order."""

    # part, text, facts
    ACCEPTED = TraceStepRow("api", "accepted", ("app_id", "partner_id", "kind", "traceparent", "request_id"))
    IN_FLIGHT = TraceStepRow("queue", "in flight", ("position", "attempt"))
    OPERATOR_RESPONDED = TraceStepRow(
        "operators", text="operator responded", facts=("position", "app_id", "outcome", "code", "request_id")
    )
    COMPLETED = TraceStepRow("dispatch", "completed", ("position", "app_id", "outcome"))
    RETRY_LATER = TraceStepRow("queue", "retried later", ("position", "attempt", "due_ms"))
    STATUS = TraceStepRow("events", "status applied", ("position", "state"))
    CALLBACK_ATTEMPTED = TraceStepRow(
        "callbacks",
        text="callback attempted",
        facts=(
            "callback_id",
            "subscription_id",
            "app_id",
            "partner_id",
            "position",
            "callback_event",
            "sequence",
            "attempt",
            "status",
        ),
    )


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """One step of one message."""

    step: TraceStep
    message_id: str
    failed: bool
    ended_ns: int  # by the machine's clock, since the epoch
    took_ns: int  # duration; 0 for a single moment
    facts: dict[str, Any]


TraceListener = Callable[[TraceRecord], None]


class Tracer:
    """Passes trace steps to the log and to listeners.

    Attributes:
        is_enabled: True if the log or a listener wants successful steps.
    """

    def __init__(self) -> None:
        self.is_enabled = False
        self._log: TraceListener | None = None
        self._listeners: list[TraceListener] = []
        self._is_logged = False

    def log_to(self, listener: TraceListener, *, include_successes: bool) -> None:
        """Set the log's listener, for failed steps or for all. Only the last one that is set is used."""
        self._log, self._is_logged = listener, include_successes
        self.is_enabled = self._is_logged or bool(self._listeners)

    def trace_to(self, listener: TraceListener) -> Callable[[], None]:
        """Add a listener for all steps; return a function that removes it."""
        self._listeners.append(listener)
        self.is_enabled = True

        def remove() -> None:
            self._listeners.remove(listener)
            self.is_enabled = self._is_logged or bool(self._listeners)

        return remove

    def record(
        self, step: TraceStep, message_id: str, *, failed: bool = False, took_s: float = 0, **facts: Any
    ) -> None:
        """Record a step of a message. Errors of listeners are suppressed.

        Args:
            message_id: ours.
            failed: True if the step failed.
            took_s: duration of the step, which ends now.
            facts: those in the table.
        """
        record = TraceRecord(step, message_id, failed, time.time_ns(), int(took_s * 1_000_000_000), facts)
        listeners = [self._log] if self._log is not None and (failed or self._is_logged) else []
        for listener in (*listeners, *self._listeners):
            with suppress(Exception):
                listener(record)


tracer: Final = Tracer()
"""The tracer of this process."""


_TRACEPARENT: Final = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-([0-9a-f]{2})(?:-.*)?")
_SAMPLED_MARK: Final = "00-0000"
_UNSAMPLED_MARK: Final = "ff-ffff"
_MARK_AT: Final = slice(21, 28)
"""The first 24 of the last 56 bits, in the text of a UUID."""
_RANDOM_BITS: Final = 56


def sampled_by_sender(traceparent: str | None) -> bool | None:
    """Return the sampled flag of a `traceparent`; None if it is absent or invalid."""
    match = _TRACEPARENT.fullmatch(traceparent or "")
    return None if match is None else bool(int(match[1], 16) & 1)


def mark_id(message_id: str, *, sampled: bool) -> str:
    """Return a new message's id with the decision of its sender in it."""
    mark = _SAMPLED_MARK if sampled else _UNSAMPLED_MARK
    return message_id[: _MARK_AT.start] + mark + message_id[_MARK_AT.stop :]


def is_sampled(message_id: str, ratio: float) -> bool:
    """True if a message is traced.

    Args:
        message_id: a UUID. One in 16 million has a mark by chance.
        ratio: of the messages whose sender has not decided, 0 to 1.
    """
    mark = message_id[_MARK_AT].lower()
    if mark in {_SAMPLED_MARK, _UNSAMPLED_MARK}:
        return mark == _SAMPLED_MARK
    return int(message_id.replace("-", ""), 16) % (1 << _RANDOM_BITS) < ratio * (1 << _RANDOM_BITS)
