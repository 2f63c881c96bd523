"""What becomes of a submission that the operator does not take now: who waits, how long, and when it ends."""

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
    # what keeps it       waits in seconds; the last repeats
    Again.NOT_REACHED:   (1, 2, 5, 10, 30, 60),
    Again.OUTAGE:        (1, 2, 5, 10, 30, 60, 120, 300),
    Again.THROUGHPUT:    (1, 2, 4, 8, 16, 30),
    Again.PAIR:          (1, 4, 16, 64, 256),     # 4^n
    Again.SPAM:          (60, 300, 900, 3600),
    Again.MAINTENANCE:   (10, 20, 30, 60),        # it takes about a minute
    Again.CALLS:         (5, 10, 30, 60, 300),
    Again.ACCOUNT_CALLS: (30, 60, 300, 900),      # counted by the hour
    Again.CREDENTIAL:    (60, 120, 300),          # until somebody puts in a new token
    Again.ONCE:          (1,),                    # tried once more, then final
}
# fmt: on
LONGEST_WISH_S: Final = 3600
"""A longer wish is asked about again after an hour: it may have been a mistake, or be over."""


def wait_ms(outcome: Unavailable, attempt: int, chance: random.Random) -> int:
    """How long to wait before the next try; the operator's own wish, when it is longer, counts.

    Args:
        outcome: of the last try.
        attempt: how many tries there have been.
        chance: where the jitter comes from.
    """
    wait = delay_ms(SCHEDULES_S[outcome.again], attempt, chance)
    wish_s = min(outcome.retry_after_s or 0, LONGEST_WISH_S)
    return max(wait, round(wish_s * 1000))


def one_more_try_ms(chance: random.Random) -> int:
    """How long to wait before the one more try that some refusals are given."""
    return delay_ms(SCHEDULES_S[Again.ONCE], 1, chance)


MOST_DETAIL: Final = 500
"""Characters of what a try says: the operator's words are a stranger's."""


class Waiting:
    """Has submissions wait, and ends those that have waited for all their lifetime.

    Args:
        message_ttl_ms: a submission that stays unavailable so long after acceptance fails.
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
        self._failures: dict[Job, Failure] = {}  # of uploads, until the entry is claimed again

    def uploads_ended(self, job: Job, failure: Failure | None) -> None:
        """What a parked entry has waited for has been uploaded, or has failed: let it be claimed again."""
        if self._queue.unpark(job) and failure is not None:
            self._failures[job] = failure

    def pop_failure(self, job: Job) -> Failure | None:
        """What the uploads came to that an entry has waited for, where they failed; given once."""
        return self._failures.pop(job, None)

    def is_too_old(self, accepted_on_ms: int) -> bool:
        """Whether a message has waited for all its lifetime."""
        return self._clock.now_ms() >= accepted_on_ms + self._message_ttl_ms

    def others_wait(self, job: Job, who: Line | OperatorAccount, outcome: Unavailable) -> None:
        """Keep quiet who else waits, for the first wait of the schedule: what is refused then says so anew."""
        until_ms = self._clock.now_ms() + wait_ms(outcome, 1, self._chance)
        account, business = (who.account, who.app.business_account_id) if isinstance(who, Line) else (who, "")
        self._pacer.told_to_wait(job, account, outcome, until_ms, business=business)

    async def try_now(self, job: Job, message_id: str, outcome: Unavailable) -> None:
        """Release a message for another try at once."""
        await self._release(job, message_id, outcome, wait_ms=0)

    async def try_once_more(self, job: Job, message_id: str, outcome: Rejected) -> None:
        """Release a message that may be accepted at a second try."""
        await self._release(job, message_id, outcome, wait_ms=one_more_try_ms(self._chance))

    async def _release(self, job: Job, message_id: str, outcome: Unavailable | Rejected, *, wait_ms: int) -> None:
        now_ms = self._clock.now_ms()
        news = tried(message_id, now_ms, outcome)
        await self._queue.retry_later(job, due_ms=now_ms + wait_ms, note=outcome.text, news=news)

    async def try_later(
        self, job: Job, since_ms: int, outcome: Unavailable, end: MessageOutcome | TemplateOutcome
    ) -> None:
        """Release for another try, or end it when it has been unavailable for too long."""
        now_ms = self._clock.now_ms()
        due_ms = now_ms + wait_ms(outcome, job.attempt + 1, self._chance)
        if due_ms < since_ms + self._message_ttl_ms:
            news = tried(end.message_id, now_ms, outcome) if isinstance(end, MessageOutcome) else None
            await self._queue.retry_later(job, due_ms=due_ms, note=outcome.text, news=news)
        elif isinstance(end, TemplateOutcome):
            await self._queue.complete(job, self._templates.record, replace(end, outcome=outcome))
        else:
            await self.give_up(job, outcome, end)

    async def give_up(self, job: Job, outcome: Unavailable, end: MessageOutcome) -> None:
        """End a message that has been unavailable for all its lifetime."""
        told = f"given up after the message's lifetime: {outcome.text}"
        rejected = replace(end, outcome=Rejected(outcome.told, told))
        await self._queue.complete(job, self._messages.record, rejected)


def tried(message_id: str, at_ms: int, outcome: Unavailable | Rejected) -> MessageTraceEvent:
    """The line of a message's trace for a try after which it waits for another: the operator's code and words."""
    own = outcome.operator_code if isinstance(outcome, Rejected) else None
    code = own or outcome.code
    detail = f"{code}: {outcome.text}" if code else outcome.text
    return MessageTraceEvent(message_id, TRIED, at_ms, moved=False, detail=detail[:MOST_DETAIL])
