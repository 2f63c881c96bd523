"""Retries of outbound jobs that the operator cannot accept now: which wait, how long, and when they fail."""

from typing import Final

from waypost.admission.schedules import operator_retry_ms
from waypost.base.backoff import TRAVEL_SHARE, travel_due_ms
from waypost.dispatch.uploads import UploadFailure
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable
from waypost.queue.context import StageContext
from waypost.queue.job import Job
from waypost.store.trace_events import SEND_ATTEMPTED, MessageTraceEvent

MAX_DETAIL_CHARS: Final = 500
"""Maximum length of an attempt's detail: the operator's text may have any length."""
TRACED_ATTEMPTS: Final = 32
"""Number of attempts of a message of which each is in its trace; after that, only each power of two is.

Where a single message waits for an operator that is away, it is attempted every few seconds.
"""


def is_traced(attempt: int) -> bool:
    """True if an attempt, by its number, is stored in the trace of its message."""
    return attempt <= TRACED_ATTEMPTS or attempt & (attempt - 1) == 0


class OutboundRetries:
    """Retries outbound jobs later, as long as their lifetime is not over.

    Attributes:
        message_ttl_ms: a job that stays unavailable so long after acceptance fails.
        is_travelling: the clock is being advanced: meanwhile retries share its stops.
        upload_failures: of uploads that a job has waited for, until it is claimed again.
    """

    def __init__(self, context: StageContext, *, message_ttl_ms: int) -> None:
        self._queue, self._clock, self._chance = context.queue, context.clock, context.chance
        self.message_ttl_ms = message_ttl_ms
        self.is_travelling = False
        self.upload_failures: dict[Job, UploadFailure] = {}

    def resume_after_uploads(self, job: Job, failure: UploadFailure | None) -> None:
        """Let a parked job be claimed again: the uploads that it has waited for are done, or one has failed."""
        if self._queue.unpark(job) and failure is not None:
            self.upload_failures[job] = failure

    async def retry_after(
        self, job: Job, message_id: str, outcome: OperatorUnavailable | OperatorRejected, wait_ms: int
    ) -> None:
        """Retry a message after a time, whatever its lifetime."""
        now_ms = self._clock.now_ms()
        trace_event = make_attempt_event(message_id, now_ms, outcome)
        await self._queue.retry_later(job, due_ms=now_ms + wait_ms, note=outcome.text, trace_event=trace_event)

    async def retry(
        self,
        job: Job,
        since_ms: int,
        outcome: OperatorUnavailable,
        *,
        message_id: str | None = None,
        in_outage: bool = False,
    ) -> bool:
        """Retry a job later; return False if it has been unavailable for too long, and fails.

        Args:
            since_ms: when its lifetime began.
            message_id: the message that it sends; its trace shows the attempt.
            in_outage: the circuit of its operator account is open, and decides when it is tried again: it is due after
                the first delay, so that it does not wait for long once the operator is back.
        """
        now_ms = self._clock.now_ms()
        due_ms = now_ms + operator_retry_ms(outcome, 1 if in_outage else job.attempt + 1, self._chance)
        if self.is_travelling:  # no coarser than the delay itself: the next attempt may be after the advance
            due_ms = travel_due_ms(due_ms, TRAVEL_SHARE * (due_ms - now_ms))
        if due_ms >= since_ms + self.message_ttl_ms:
            return False
        trace_event = None
        if message_id is not None and is_traced(job.attempt + 1):
            trace_event = make_attempt_event(message_id, now_ms, outcome)
        await self._queue.retry_later(job, due_ms=due_ms, note=outcome.text, trace_event=trace_event)
        return True


def make_attempt_event(
    message_id: str, at_ms: int, outcome: OperatorUnavailable | OperatorRejected
) -> MessageTraceEvent:
    """Return the trace event of an attempt after which a message is retried: the operator's code and text."""
    own = outcome.operator_code if isinstance(outcome, OperatorRejected) else None
    code = own or outcome.code
    detail = f"{code}: {outcome.text}" if code else outcome.text
    return MessageTraceEvent(message_id, SEND_ATTEMPTED, at_ms, is_applied=False, detail=detail[:MAX_DETAIL_CHARS])
