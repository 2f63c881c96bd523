"""What is said of a message at each step of its way: to the log, and to whoever traces.

The table names every step. A step that goes well is for those who ask for it (log level `debug`, or a
tracer); one that fails is a record of its own at `info`. At 600 messages a second a record for each
step would cost more than the step, so a caller asks `steps.on` first, which is one look at an attribute:

    if steps.on:
        steps.tell(Step.ACCEPTED, message.id, app_id=app.id)

A fact is an id, a position, a count, a code, a status or a duration. It is never a text, a token, an
address or a phone number; and never the operator's id of a message, for the recipient's number can be read
out of it.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class TraceStepRow:
    """One step.

    Attributes:
        part: the folder of whoever does it.
        says: the record's first words.
        facts: the names of what comes with it.
    """

    part: str
    says: str
    facts: tuple[str, ...]


class TraceStep(Enum):
    """The steps, in the order of the street."""

    # fmt: off
    #                     part          says                    facts
    ACCEPTED  = TraceStepRow("api",        "accepted",             ("app_id", "partner_id", "kind", "traceparent"))
    IN_FLIGHT   = TraceStepRow("queue",    "in flight",             ("position", "attempt"))
    OPERATOR_RESPONDED  = TraceStepRow("operators",  "the operator answered", ("position", "app_id", "outcome", "code"))
    COMPLETED   = TraceStepRow("dispatch",   "completed",              ("position", "app_id", "outcome"))
    RETRY_LATER  = TraceStepRow("queue",    "retried later", ("position", "attempt", "due_ms"))
    STATUS    = TraceStepRow("events",     "status applied",       ("position", "state"))
    CALLBACK_ATTEMPTED      = TraceStepRow("callbacks",  "callback tried",       (
        "callback_id", "subscription_id", "app_id", "partner_id", "position", "news", "sequence", "attempt", "status",
    ))
    # fmt: on


@dataclass(frozen=True, slots=True)
class TraceRecord:
    """One step of one message.

    Attributes:
        ended_ns: by the machine's clock, since the epoch.
        took_ns: 0 where it is a moment.
    """

    step: TraceStep
    message_id: str
    failed: bool
    ended_ns: int
    took_ns: int
    facts: dict[str, Any]


Hear = Callable[[TraceRecord], None]


class Tracer:
    """Whom the steps are told.

    Attributes:
        on: whether anybody wants to hear of what goes well.
    """

    def __init__(self) -> None:
        self.on = False
        self._log: Hear | None = None
        self._tracers: list[Hear] = []
        self._is_logged = False

    def log_to(self, hear: Hear, *, all_of_it: bool) -> None:
        """Have the log hear what fails, or all of it. The last one that is named hears."""
        self._log, self._is_logged = hear, all_of_it
        self.on = self._is_logged or bool(self._tracers)

    def trace_to(self, hear: Hear) -> Callable[[], None]:
        """Have a tracer hear everything, until what is given back is called."""
        self._tracers.append(hear)
        self.on = True

        def no_more() -> None:
            self._tracers.remove(hear)
            self.on = self._is_logged or bool(self._tracers)

        return no_more

    def record(
        self, step: TraceStep, message_id: str, *, failed: bool = False, took_s: float = 0, **facts: Any
    ) -> None:
        """Say that a message has come so far. Nothing that goes wrong here concerns whoever says it.

        Args:
            step: of the table.
            message_id: ours.
            failed: it did not go well.
            took_s: how long the step took; it ends now.
            facts: those that the table names.
        """
        told = TraceRecord(step, message_id, failed, time.time_ns(), int(took_s * 1_000_000_000), facts)
        logs = [self._log] if self._log is not None and (failed or self._is_logged) else []
        for hear in (*logs, *self._tracers):
            with suppress(Exception):
                hear(told)


tracer: Final = Tracer()
"""The one of this process, as its log is one."""
