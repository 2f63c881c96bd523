"""Keeps each source under the operator's throughput and each pair under its rate, by due time.

And keeps quiet whatever the operator has told to wait: a source, or all of an operator account.
"""

from collections import deque
from dataclasses import dataclass, field
from typing import Final

from waypost.domain.app import OperatorAccount
from waypost.domain.outcome import Unavailable, Waits
from waypost.queue.concurrency_groups import NotBefore
from waypost.queue.job import Job
from waypost.store.queue.job_subjects import SubjectKind

# fmt: off
PAIR_EVERY_MS: Final = 6_000  # Source: operator's facts 8: one message per 6 s to the same recipient …
PAIR_BURST: Final = 44        # … and a burst of 45, borrowed from the future; one is kept back, since ways differ in length
SECOND_MS: Final = 1_000      # Source: operator's facts 8: throughput is counted by the second
MOST_PAIRS: Final = 200_000   # remembered; the oldest are forgotten and the operator's own limit holds
QUIET_MS: Final = 5_000       # a group of a quiet account looks again after so long: perhaps somebody has mended it
# fmt: on


@dataclass(slots=True)
class _Bucket:
    """`free_ms` is when the bucket would be full again if nothing more were taken."""

    free_ms: float = 0

    def wait_ms(self, now_ms: int, every_ms: float, burst: float) -> int:
        """0 and one taken, or how long until one can be."""
        debt = max(0.0, self.free_ms - now_ms)
        over = debt + every_ms - burst * every_ms
        if over > 0:
            return max(1, round(over))
        self.free_ms = now_ms + debt + every_ms
        return 0


@dataclass(slots=True)
class _Second:
    """What the operator may have counted within the last second.

    It counts a message at a moment that we do not know, between its going and its answer. So what is
    under way and what was answered within a second together stay under the throughput: then no second
    that the operator can count has more, however long the ways are and however they differ.

    Attributes:
        let_through: the group's entries under way, as far as they were let through here.
        told: how many of those have been answered, and are only to be settled.
        ended_ms: when messages were answered.
    """

    let_through: int = 0
    told: int = 0
    ended_ms: deque[int] = field(default_factory=deque[int])

    def wait_ms(self, now_ms: int, in_flight: int, per_second: int) -> int:
        """0, or how long until one more can go."""
        for _ in range(self.let_through - in_flight):
            if self.told:
                self.told -= 1
            else:  # it ended in another way, perhaps after the operator had counted it
                self.ended_ms.append(now_ms)
        self.let_through = in_flight
        while self.ended_ms and self.ended_ms[0] <= now_ms - SECOND_MS:
            self.ended_ms.popleft()
        if in_flight - self.told + len(self.ended_ms) < per_second:
            return 0
        first_ms = self.ended_ms[0] if self.ended_ms else now_ms
        return max(1, first_ms + SECOND_MS - now_ms)

    def answered(self, now_ms: int) -> None:
        """One that is under way has been answered."""
        self.told += 1
        self.ended_ms.append(now_ms)


@dataclass(frozen=True, slots=True)
class _Quiet:
    """Until when, and what the operator said."""

    until_ms: int
    why: Unavailable


class Pacer:
    """Says of each message whether it may go now.

    Args:
        per_second: throughput of a source that has none of its own.
    """

    def __init__(self, *, per_second: int) -> None:
        self._default = per_second
        self._per_second: dict[str, int] = {}
        self._sources: dict[str, _Bucket] = {}
        self._seconds: dict[str, _Second] = {}
        self._pairs: dict[str, _Bucket] = {}
        self._quiet: dict[str, int] = {}  # groups, and until when
        # For messages: operator accounts, each with one business account or with '', all of them.
        self._quiet_accounts: dict[tuple[OperatorAccount, str], _Quiet] = {}

    def learn(self, source: str, per_second: int | None) -> None:
        """A source has a throughput of its own, or has it no longer."""
        if per_second is None:
            self._per_second.pop(source, None)
        else:
            self._per_second[source] = per_second

    def answered(self, job: Job, now_ms: int) -> None:
        """The operator has answered a message, whatever it said, or will not any more."""
        self._seconds.setdefault(job.concurrency_group, _Second()).answered(now_ms)

    def told_to_wait(
        self, job: Job, account: OperatorAccount, outcome: Unavailable, until_ms: int, *, business: str = ""
    ) -> None:
        """The operator has not taken an entry, and may mean its whole source or account by that.

        Messages and templates wait apart, for the operator counts them apart: the templates of a
        business account are one group. What one business account has used up holds up no other of the
        operator account. An account that has been changed, by a new token for one, is
        another one, and its messages wait for nothing.

        Args:
            job: which was not taken; it has a due time of its own.
            account: through which it was sent.
            outcome: says who waits.
            until_ms: how long the others wait.
            business: whose message it is.
        """
        if outcome.waits is Waits.ENTRY:
            return
        if outcome.waits is not Waits.SOURCE and _is_message(job):
            who = business if outcome.waits is Waits.BUSINESS else ""
            self._quiet_accounts[account, who] = _Quiet(until_ms, outcome)
        else:
            self._quiet[job.concurrency_group] = until_ms

    def is_quiet(self, job: Job, account: OperatorAccount, now_ms: int, *, business: str = "") -> Unavailable | None:
        """Why the account through which a message would go has been told to wait; its source then waits.

        Args:
            job: the message's.
            account: the operator account.
            now_ms: by the clock.
            business: the business account.
        """
        if not self._quiet_accounts:
            return None
        for key in ((account, ""), (account, business)):
            quiet = self._quiet_accounts.get(key)
            if quiet is None:
                continue
            if quiet.until_ms > now_ms:
                self._quiet[job.concurrency_group] = min(quiet.until_ms, now_ms + QUIET_MS)
                return quiet.why
            del self._quiet_accounts[key]
        return None

    def __call__(self, job: Job, now_ms: int, in_flight: int) -> NotBefore | None:
        """None to go now, and its slot is spent. Templates are not paced, but kept quiet they are."""
        quiet_until_ms = self._quiet.get(job.concurrency_group)
        if quiet_until_ms is not None:
            if quiet_until_ms > now_ms:
                return NotBefore(quiet_until_ms, whole_group=True)
            del self._quiet[job.concurrency_group]
        if not _is_message(job):
            return None
        pair = self._pairs.get(job.ordering_key)
        if pair is None:
            if len(self._pairs) >= MOST_PAIRS:
                self._pairs.clear()
            pair = self._pairs[job.ordering_key] = _Bucket()
        before = pair.free_ms
        wait = pair.wait_ms(now_ms, PAIR_EVERY_MS, PAIR_BURST)
        if wait:
            return NotBefore(now_ms + wait, whole_group=False)
        rate = self._per_second.get(job.concurrency_group, self._default)
        second = self._seconds.setdefault(job.concurrency_group, _Second())
        source = self._sources.setdefault(job.concurrency_group, _Bucket())
        wait = second.wait_ms(now_ms, in_flight, rate) or source.wait_ms(now_ms, 1000 / rate, max(1.0, rate / 10))
        if wait:
            pair.free_ms = before
            return NotBefore(now_ms + wait, whole_group=True)
        second.let_through = in_flight + 1
        return None


def _is_message(job: Job) -> bool:
    return job.subject.kind is SubjectKind.MESSAGE
