"""Retries of outbound jobs that the operator cannot accept now: which wait, how long, and when they fail."""

import random
from typing import Final

from waypost.base.backoff import TRAVEL_SHARE, delay_ms, travel_due_ms
from waypost.dispatch.pacing import Pacer
from waypost.dispatch.uploads import UploadFailure
from waypost.domain.app import OperatorAccount
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable, RetryReason
from waypost.queue.context import StageContext
from waypost.queue.job import Job
from waypost.store.trace_events import SEND_ATTEMPTED, MessageTraceEvent

# Which code is which row: `operators/cloud/error_codes.py`.
OPERATOR_RETRY_SCHEDULES_S: Final = {  # Source: operator's facts 5.2, 5.3, 8
    # cause               delays in seconds; the last repeats
    RetryReason.NOT_REACHED: (1, 2, 5, 10, 30, 60),
    RetryReason.OUTAGE: (1, 2, 5, 10, 30, 60, 120, 300),
    RetryReason.THROUGHPUT: (1, 2, 4, 8, 16, 30),
    RetryReason.PAIR: (1, 4, 16, 64, 256),  # 4^n
    RetryReason.SPAM: (60, 300, 900, 3600),
    RetryReason.MAINTENANCE: (10, 20, 30, 60),  # it takes about a minute
    RetryReason.CALLS: (5, 10, 30, 60, 300),
    RetryReason.ACCOUNT_CALLS: (30, 60, 300, 900),  # counted by the hour
    RetryReason.CREDENTIAL: (60, 120, 300),  # until a new token is set
    RetryReason.ONCE: (1,),  # tried once more, then final
}
MAX_OPERATOR_RETRY_AFTER_S: Final = 3600
"""A longer `Retry-After` is cut to an hour, and the job is tried then: it may have been a mistake, or be over."""


def retry_delay_ms(outcome: OperatorUnavailable, attempt: int, chance: random.Random) -> int:
    """Return how long to wait before the next attempt; the operator's own delay counts when it is longer.

    Args:
        attempt: how many attempts there have been.
        chance: where the jitter comes from.
    """
    scheduled_ms = delay_ms(OPERATOR_RETRY_SCHEDULES_S[outcome.retry_reason], attempt, chance)
    retry_after_s = min(outcome.retry_after_s or 0, MAX_OPERATOR_RETRY_AFTER_S)
    return max(scheduled_ms, round(retry_after_s * 1000))


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

    def __init__(self, context: StageContext, pacer: Pacer, *, message_ttl_ms: int) -> None:
        self._queue, self._clock, self._chance = context.queue, context.clock, context.chance
        self._pacer = pacer
        self.message_ttl_ms = message_ttl_ms
        self.is_travelling = False
        self.upload_failures: dict[Job, UploadFailure] = {}

    def resume_after_uploads(self, job: Job, failure: UploadFailure | None) -> None:
        """Let a parked job be claimed again: the uploads that it has waited for are done, or one has failed."""
        if self._queue.unpark(job) and failure is not None:
            self.upload_failures[job] = failure

    def pause_peers(
        self, job: Job, account: OperatorAccount, outcome: OperatorUnavailable, business_account_id: str = ""
    ) -> None:
        """Pause the jobs that wait besides this one, for the first delay of the schedule.

        A job that is rejected after that pauses them again.
        """
        until_ms = self._clock.now_ms() + retry_delay_ms(outcome, 1, self._chance)
        self._pacer.pause_account(job, account, outcome, until_ms, business_account_id=business_account_id)

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
        due_ms = now_ms + retry_delay_ms(outcome, 1 if in_outage else job.attempt + 1, self._chance)
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
