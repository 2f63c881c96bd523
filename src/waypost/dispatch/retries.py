"""Retries of outbound jobs that the operator cannot accept now: which wait, how long, and when they fail."""

import random
from dataclasses import replace
from typing import Final

from waypost.base.backoff import TRAVEL_SHARE, delay_ms, travel_due_ms
from waypost.base.clock import Clock
from waypost.dispatch.message_outcomes import MessageOutcome, MessageOutcomes
from waypost.dispatch.pacing import Pacer
from waypost.dispatch.template_outcomes import TemplateOutcome, TemplateOutcomes
from waypost.dispatch.uploads import UploadFailure
from waypost.domain.app import AppRoute, OperatorAccount
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable, RetryReason
from waypost.queue.job import Job
from waypost.queue.queue import JobQueue
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
        outcome: of the last attempt.
        attempt: how many attempts there have been.
        chance: where the jitter comes from.
    """
    scheduled_ms = delay_ms(OPERATOR_RETRY_SCHEDULES_S[outcome.retry_reason], attempt, chance)
    retry_after_s = min(outcome.retry_after_s or 0, MAX_OPERATOR_RETRY_AFTER_S)
    return max(scheduled_ms, round(retry_after_s * 1000))


def single_retry_delay_ms(chance: random.Random) -> int:
    """Return how long to wait before the one retry that some rejected messages get."""
    return delay_ms(OPERATOR_RETRY_SCHEDULES_S[RetryReason.ONCE], 1, chance)


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
    """Retries outbound jobs later, and fails those that have waited for all their lifetime.

    Args:
        message_ttl_ms: a job that stays unavailable so long after acceptance fails.
    """

    def __init__(
        self,
        *,
        queue: JobQueue,
        clock: Clock,
        chance: random.Random,
        pacer: Pacer,
        messages: MessageOutcomes,
        templates: TemplateOutcomes,
        message_ttl_ms: int,
    ) -> None:
        self._queue = queue
        self._clock = clock
        self._chance = chance
        self._pacer = pacer
        self._messages = messages
        self._templates = templates
        self._message_ttl_ms = message_ttl_ms
        self._is_travelling = False
        self._failures: dict[Job, UploadFailure] = {}  # of uploads, until the job is claimed again

    def set_travelling(self, is_travelling: bool) -> None:
        """Note that the clock is being advanced, or no longer: meanwhile retries share its stops."""
        self._is_travelling = is_travelling

    def resume_after_uploads(self, job: Job, failure: UploadFailure | None) -> None:
        """Let a parked job be claimed again: the uploads that it has waited for are done, or one has failed."""
        if self._queue.unpark(job) and failure is not None:
            self._failures[job] = failure

    def pop_failure(self, job: Job) -> UploadFailure | None:
        """Return the failure of the uploads that a job has waited for, where they failed; only once."""
        return self._failures.pop(job, None)

    def is_too_old(self, accepted_on_ms: int) -> bool:
        """True if a message has waited for all its lifetime."""
        return self._clock.now_ms() >= accepted_on_ms + self._message_ttl_ms

    def pause_peers(self, job: Job, route_or_account: AppRoute | OperatorAccount, outcome: OperatorUnavailable) -> None:
        """Pause the jobs that wait besides this one, for the first delay of the schedule.

        A job that is rejected after that pauses them again.
        """
        until_ms = self._clock.now_ms() + retry_delay_ms(outcome, 1, self._chance)
        account, business = (
            (route_or_account.account, route_or_account.app.business_account_id)
            if isinstance(route_or_account, AppRoute)
            else (route_or_account, "")
        )
        self._pacer.pause_account(job, account, outcome, until_ms, business_account_id=business)

    async def retry_now(self, job: Job, message_id: str, outcome: OperatorUnavailable) -> None:
        """Retry a message at once."""
        await self._retry(job, message_id, outcome, next_delay_ms=0)

    async def retry_once(self, job: Job, message_id: str, outcome: OperatorRejected) -> None:
        """Retry a message that may be accepted at a second attempt."""
        await self._retry(job, message_id, outcome, next_delay_ms=single_retry_delay_ms(self._chance))

    async def _retry(
        self, job: Job, message_id: str, outcome: OperatorUnavailable | OperatorRejected, *, next_delay_ms: int
    ) -> None:
        now_ms = self._clock.now_ms()
        trace_event = make_attempt_event(message_id, now_ms, outcome)
        await self._queue.retry_later(job, due_ms=now_ms + next_delay_ms, note=outcome.text, trace_event=trace_event)

    async def retry_or_fail(
        self,
        job: Job,
        since_ms: int,
        outcome: OperatorUnavailable,
        final_outcome: MessageOutcome | TemplateOutcome,
        *,
        in_outage: bool = False,
    ) -> None:
        """Retry a job later, or fail it when it has been unavailable for too long.

        Args:
            job: claimed.
            since_ms: when its lifetime began.
            outcome: of this attempt.
            final_outcome: to be completed with the failure.
            in_outage: the circuit of its operator account is open, and decides when it is tried again: it is
                due after the first delay, so that it does not wait for long once the operator is back.
        """
        now_ms = self._clock.now_ms()
        due_ms = now_ms + retry_delay_ms(outcome, 1 if in_outage else job.attempt + 1, self._chance)
        if self._is_travelling:  # no coarser than the delay itself: the next attempt may be after the advance
            due_ms = travel_due_ms(due_ms, TRAVEL_SHARE * (due_ms - now_ms))
        if due_ms < since_ms + self._message_ttl_ms:
            trace_event = (
                make_attempt_event(final_outcome.message_id, now_ms, outcome)
                if isinstance(final_outcome, MessageOutcome) and is_traced(job.attempt + 1)
                else None
            )
            await self._queue.retry_later(job, due_ms=due_ms, note=outcome.text, trace_event=trace_event)
        elif isinstance(final_outcome, TemplateOutcome):
            await self._queue.complete(job, self._templates.record, replace(final_outcome, outcome=outcome))
        else:
            await self.give_up(job, outcome, final_outcome)

    async def give_up(self, job: Job, outcome: OperatorUnavailable, final_outcome: MessageOutcome) -> None:
        """Fail a message that has been unavailable for all its lifetime."""
        reason = f"given up after the message's lifetime: {outcome.text}"
        rejected = final_outcome._replace(outcome=OperatorRejected(outcome.partner_code, reason))
        await self._queue.complete(job, self._messages.record, rejected)


def make_attempt_event(
    message_id: str, at_ms: int, outcome: OperatorUnavailable | OperatorRejected
) -> MessageTraceEvent:
    """Return the trace event of an attempt after which a message is retried: the operator's code and text."""
    own = outcome.operator_code if isinstance(outcome, OperatorRejected) else None
    code = own or outcome.code
    detail = f"{code}: {outcome.text}" if code else outcome.text
    return MessageTraceEvent(message_id, SEND_ATTEMPTED, at_ms, is_applied=False, detail=detail[:MAX_DETAIL_CHARS])
