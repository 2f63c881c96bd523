"""Keeps each source under the operator's throughput and each pair under its rate, by due time.

Also pauses a source, or all of an operator account, when the operator requires it.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from waypost.domain.app import OperatorAccount
from waypost.domain.outcome import OperatorUnavailable, RetryScope
from waypost.domain.wait_reasons import WaitReason
from waypost.queue.job import Job, NotBefore
from waypost.store.queue.job_subjects import SubjectKind

PAIR_EVERY_MS: Final = 6_000  # Source: operator's facts 8: one message per 6 s to the same recipient …
PAIR_BURST: Final = 44  # … and a burst of 45, borrowed from the future; one is reserved, since network delays differ
SECOND_MS: Final = 1_000  # Source: operator's facts 8: throughput is counted by the second
MAX_PAIRS: Final = 200_000  # in memory; beyond it all are dropped and the operator's own limit applies
PAUSE_RECHECK_MS: Final = (
    5_000  # a group of a paused account checks again after this time: the account may have been fixed
)


@dataclass(slots=True)
class _SourcePace:
    """The throughput of one source: a token bucket, and the messages that the operator may count within a second.

    The operator counts a message at a moment that we do not know, between the request and its response. So the
    messages in flight and those that had a response within a second together stay under the throughput: then no second
    that the operator can count has more, however long the network delays are and however they differ.
    """

    per_second: int | None = None  # its own throughput; None: the default
    free_ms: float = 0  # when its bucket would be full again if nothing more were taken
    started: int = 0  # the group's jobs in flight, as far as they were started here
    responded: int = 0  # how many of those have had a response, and only have to be completed
    response_times_ms: deque[int] = field(default_factory=deque[int])  # when responses came

    def take_one(self, now_ms: int, in_flight: int, per_second: int) -> int:
        """Use up a part of the throughput and return 0, or return how long until there is one."""
        for _ in range(self.started - in_flight):
            if self.responded:
                self.responded -= 1
            else:  # it ended without a response, perhaps after the operator had counted it
                self.response_times_ms.append(now_ms)
        self.started = in_flight
        while self.response_times_ms and self.response_times_ms[0] <= now_ms - SECOND_MS:
            self.response_times_ms.popleft()
        if in_flight - self.responded + len(self.response_times_ms) >= per_second:
            first_ms = self.response_times_ms[0] if self.response_times_ms else now_ms
            return max(1, first_ms + SECOND_MS - now_ms)
        every_ms, debt_ms = SECOND_MS / per_second, max(0.0, self.free_ms - now_ms)
        over_ms = debt_ms + every_ms - max(1.0, per_second / 10) * every_ms
        if over_ms > 0:
            return max(1, round(over_ms))
        self.free_ms = now_ms + debt_ms + every_ms
        self.started += 1
        return 0


@dataclass(frozen=True, slots=True)
class _AccountPause:
    """A pause: until when, and the operator's outcome that caused it."""

    until_ms: int
    cause: OperatorUnavailable


class Pacer:
    """Decides for each message whether it may be sent now.

    Args:
        per_second: throughput of a source that has none of its own.
    """

    def __init__(self, *, per_second: int) -> None:
        self._default_per_second = per_second
        self._sources: dict[str, _SourcePace] = {}
        self._pair_free_ms: dict[str, float] = {}  # when a pair's bucket would be full again, by ordering key
        self._paused_groups: dict[str, int] = {}  # the end of the pause, by group
        # For messages, by operator account and one business account, or '' for all of them.
        self.paused_accounts: dict[tuple[OperatorAccount, str], _AccountPause] = {}

    def set_throughput(self, source: str, per_second: int | None) -> None:
        """Set the throughput of a source; None for the default."""
        self._source_pace(source).per_second = per_second

    def record_response(self, job: Job, now_ms: int) -> None:
        """Record that the operator has responded to a message, in whatever way, or will not any more."""
        source = self._source_pace(job.concurrency_group)
        source.responded += 1
        source.response_times_ms.append(now_ms)

    def pause_account(
        self,
        job: Job,
        account: OperatorAccount,
        outcome: OperatorUnavailable,
        until_ms: int,
        *,
        business_account_id: str = "",
    ) -> None:
        """Pause the jobs that the operator may mean besides the one that it did not accept.

        Messages and templates are paused apart, for the operator counts them apart: the templates of a
        business account are one group. What one business account has used up pauses no other of the
        operator account. An account that has been changed, by a new token for example, is another one,
        and its messages do not wait.

        Args:
            job: which was not accepted; it has a due time of its own.
            account: through which it was sent.
            outcome: with the scope of the pause.
            until_ms: how long the others wait.
            business_account_id: whose message it is.
        """
        if outcome.retry_scope is RetryScope.JOB:
            return
        if outcome.retry_scope is not RetryScope.SOURCE and job.subject.kind is SubjectKind.MESSAGE:
            business_account = business_account_id if outcome.retry_scope is RetryScope.BUSINESS else ""
            self.paused_accounts[account, business_account] = _AccountPause(until_ms, outcome)
        else:
            self._paused_groups[job.concurrency_group] = until_ms

    def account_pause(
        self, job: Job, account: OperatorAccount, now_ms: int, *, business_account_id: str = ""
    ) -> OperatorUnavailable | None:
        """Return why the account of a message is paused, and pause its source too; None where it is not."""
        for key in ((account, ""), (account, business_account_id)):
            pause = self.paused_accounts.get(key)
            if pause is None:
                continue
            if pause.until_ms > now_ms:
                self._paused_groups[job.concurrency_group] = min(pause.until_ms, now_ms + PAUSE_RECHECK_MS)
                return pause.cause
            del self.paused_accounts[key]
        return None

    def check(self, job: Job, now_ms: int, in_flight: int) -> NotBefore | None:
        """Return None to send now, with its part of the rates used up. Templates are paused, but not paced."""
        group = job.concurrency_group
        paused_until_ms = self._paused_groups.get(group)
        if paused_until_ms is not None:
            if paused_until_ms > now_ms:
                return NotBefore(paused_until_ms, WaitReason.OPERATOR_PAUSE, whole_group=True)
            del self._paused_groups[group]
        if job.subject.kind is not SubjectKind.MESSAGE:
            return None
        pair_debt_ms = max(0.0, self._pair_free_ms.get(job.ordering_key, 0) - now_ms)
        over_ms = pair_debt_ms + PAIR_EVERY_MS - PAIR_BURST * PAIR_EVERY_MS
        if over_ms > 0:
            return NotBefore(now_ms + max(1, round(over_ms)), WaitReason.PAIR_PACE, whole_group=False)
        source = self._sources.get(group) or self._source_pace(group)
        wait_ms = source.take_one(now_ms, in_flight, source.per_second or self._default_per_second)
        if wait_ms:
            return NotBefore(now_ms + wait_ms, WaitReason.SOURCE_PACE, whole_group=True)
        if len(self._pair_free_ms) >= MAX_PAIRS and job.ordering_key not in self._pair_free_ms:
            self._pair_free_ms.clear()
        self._pair_free_ms[job.ordering_key] = now_ms + pair_debt_ms + PAIR_EVERY_MS
        return None

    def _source_pace(self, source: str) -> _SourcePace:
        return self._sources.setdefault(source, _SourcePace())
