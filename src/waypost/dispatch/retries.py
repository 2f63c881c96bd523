"""Retries of outbound jobs that the operator cannot accept now: which wait, how long, and when they fail."""

import random
from dataclasses import replace
from typing import Final

from waypost.base.backoff import delay_ms
from waypost.base.clock import Clock
from waypost.dispatch.message_outcomes import MessageOutcome, MessageOutcomes
from waypost.dispatch.pacing import Pacer
from waypost.dispatch.template_outcomes import TemplateOutcome, TemplateOutcomes
from waypost.dispatch.uploads import Failure
from waypost.domain.app import Line, OperatorAccount
from waypost.domain.outcome import Again, Rejected, Unavailable
from waypost.queue.job import Job
from waypost.queue.queue import JobQueue
from waypost.store.trace_events import TRIED, MessageTraceEvent

# fmt: off
SCHEDULES_S: Final = {  # Source: operator's facts 5.2, 5.3, 8. Which code is which row: `operators/cloud/error_codes.py`
    # cause               delays in seconds; the last repeats
    Again.NOT_REACHED:   (1, 2, 5, 10, 30, 60),
    Again.OUTAGE:        (1, 2, 5, 10, 30, 60, 120, 300),
    Again.THROUGHPUT:    (1, 2, 4, 8, 16, 30),
    Again.PAIR:          (1, 4, 16, 64, 256),     # 4^n
    Again.SPAM:          (60, 300, 900, 3600),
    Again.MAINTENANCE:   (10, 20, 30, 60),        # it takes about a minute
    Again.CALLS:         (5, 10, 30, 60, 300),
    Again.ACCOUNT_CALLS: (30, 60, 300, 900),      # counted by the hour
    Again.CREDENTIAL:    (60, 120, 300),          # until a new token is set
    Again.ONCE:          (1,),                    # tried once more, then final
}
# fmt: on
LONGEST_WISH_S: Final = 3600
"""A longer `Retry-After` is cut to an hour, and the job is tried then: it may have been a mistake, or be over."""


def wait_ms(outcome: Unavailable, attempt: int, chance: random.Random) -> int:
    """Return how long to wait before the next attempt; the operator's own delay counts when it is longer.

    Args:
        outcome: of the last attempt.
        attempt: how many attempts there have been.
        chance: where the jitter comes from.
    """
    scheduled_ms = delay_ms(SCHEDULES_S[outcome.again], attempt, chance)
    retry_after_s = min(outcome.retry_after_s or 0, LONGEST_WISH_S)
    return max(scheduled_ms, round(retry_after_s * 1000))


def one_more_try_ms(chance: random.Random) -> int:
    """Return how long to wait before the one retry that some rejected messages get."""
    return delay_ms(SCHEDULES_S[Again.ONCE], 1, chance)


MOST_DETAIL: Final = 500
"""Maximum length of an attempt's detail: the operator's text may have any length."""


class Waiting:
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
        self._failures: dict[Job, Failure] = {}  # of uploads, until the job is claimed again

    def uploads_ended(self, job: Job, failure: Failure | None) -> None:
        """Let a parked job be claimed again: the uploads that it has waited for are done, or one has failed."""
        if self._queue.unpark(job) and failure is not None:
            self._failures[job] = failure

    def pop_failure(self, job: Job) -> Failure | None:
        """Return the failure of the uploads that a job has waited for, where they failed; only once."""
        return self._failures.pop(job, None)

    def is_too_old(self, accepted_on_ms: int) -> bool:
        """True if a message has waited for all its lifetime."""
        return self._clock.now_ms() >= accepted_on_ms + self._message_ttl_ms

    def others_wait(self, job: Job, who: Line | OperatorAccount, outcome: Unavailable) -> None:
        """Pause the jobs that wait besides this one, for the first delay of the schedule.

        A job that is rejected after that pauses them again.
        """
        until_ms = self._clock.now_ms() + wait_ms(outcome, 1, self._chance)
        account, business = (who.account, who.app.business_account_id) if isinstance(who, Line) else (who, "")
        self._pacer.told_to_wait(job, account, outcome, until_ms, business=business)

    async def try_now(self, job: Job, message_id: str, outcome: Unavailable) -> None:
        """Retry a message at once."""
        await self._release(job, message_id, outcome, wait_ms=0)

    async def try_once_more(self, job: Job, message_id: str, outcome: Rejected) -> None:
        """Retry a message that may be accepted at a second attempt."""
        await self._release(job, message_id, outcome, wait_ms=one_more_try_ms(self._chance))

    async def _release(self, job: Job, message_id: str, outcome: Unavailable | Rejected, *, wait_ms: int) -> None:
        now_ms = self._clock.now_ms()
        trace_event = tried(message_id, now_ms, outcome)
        await self._queue.retry_later(job, due_ms=now_ms + wait_ms, note=outcome.text, news=trace_event)

    async def try_later(
        self, job: Job, since_ms: int, outcome: Unavailable, end: MessageOutcome | TemplateOutcome
    ) -> None:
        """Retry a job later, or fail it when it has been unavailable for too long."""
        now_ms = self._clock.now_ms()
        due_ms = now_ms + wait_ms(outcome, job.attempt + 1, self._chance)
        if due_ms < since_ms + self._message_ttl_ms:
            trace_event = tried(end.message_id, now_ms, outcome) if isinstance(end, MessageOutcome) else None
            await self._queue.retry_later(job, due_ms=due_ms, note=outcome.text, news=trace_event)
        elif isinstance(end, TemplateOutcome):
            await self._queue.complete(job, self._templates.record, replace(end, outcome=outcome))
        else:
            await self.give_up(job, outcome, end)

    async def give_up(self, job: Job, outcome: Unavailable, end: MessageOutcome) -> None:
        """Fail a message that has been unavailable for all its lifetime."""
        reason = f"given up after the message's lifetime: {outcome.text}"
        rejected = replace(end, outcome=Rejected(outcome.told, reason))
        await self._queue.complete(job, self._messages.record, rejected)


def tried(message_id: str, at_ms: int, outcome: Unavailable | Rejected) -> MessageTraceEvent:
    """Return the trace event of an attempt after which a message is retried: the operator's code and text."""
    own = outcome.operator_code if isinstance(outcome, Rejected) else None
    code = own or outcome.code
    detail = f"{code}: {outcome.text}" if code else outcome.text
    return MessageTraceEvent(message_id, TRIED, at_ms, moved=False, detail=detail[:MOST_DETAIL])
