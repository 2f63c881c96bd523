"""One group of a queue as this process holds it: what is read of it, and what is due.

All of this can be thrown away at any moment; the store has it. Nobody but the group itself writes
what it holds.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from waypost.queue.job import Job
from waypost.queue.plans import GROUP_WINDOW
from waypost.store.queue.jobs import GroupCursor, RunningTransactions

LATE_MS: Final = 20_000
"""Longer than a transaction that appends can last: the engines bound it."""

NUMBERED_MS: Final = 2_000
"""Longer than it takes from the moment an entry gets its position until its transaction has a number.

The two are some microseconds apart. What takes longer all the same is found once a minute.
"""

MOST_READ: Final = GROUP_WINDOW // 2
"""How many entries of a group one read gives; it is read on while it holds fewer."""


@dataclass(frozen=True, slots=True)
class NotBefore:
    """Not yet: the key, or its whole group, waits until then."""

    until_ms: int
    whole_group: bool


class PaceCheck(Protocol):
    """Says whether an entry may be worked now, and spends its slot when it may."""

    def __call__(self, job: Job, now_ms: int, in_flight: int) -> NotBefore | None:
        """None to go.

        Args:
            job: the head of its key, due.
            now_ms: by the clock that rules follow.
            in_flight: how many of its group are being worked.
        """
        ...


class Completeness:
    """How far all entries of a group are known, where positions are committed out of order."""

    __slots__ = ("_marked_before", "_marked_ms", "_marked_to", "_to")

    def __init__(self) -> None:
        self._to = self._marked_to = self._marked_ms = 0
        self._marked_before: int | None = None

    @property
    def is_known(self) -> bool:
        """Whether anything is known of it."""
        return bool(self._marked_ms)

    def reset(self) -> None:
        """Know nothing of it any more."""
        self._to = self._marked_to = 0
        self._marked_before = None

    def position(self, real_ms: int, read_to: int) -> int:
        """The position beyond which entries may still appear.

        What was read so long ago that every transaction of then has ended is complete.
        """
        if real_ms - self._marked_ms >= LATE_MS:
            self._mark(real_ms, read_to, before=None)
        return self._to

    def note(self, real_ms: int, read_to: int, transactions: RunningTransactions) -> None:
        """All that was there beyond `position` has been read, up to `read_to`."""
        if self._marked_before is None:
            self._marked_to, self._marked_ms, self._marked_before = read_to, real_ms, transactions.next
        elif transactions.oldest >= self._marked_before and real_ms - self._marked_ms >= NUMBERED_MS:
            self._mark(real_ms, read_to, before=transactions.next)

    def _mark(self, real_ms: int, read_to: int, *, before: int | None) -> None:
        self._to, self._marked_to = self._marked_to, read_to
        self._marked_ms, self._marked_before = real_ms, before


class ConcurrencyGroup:
    """The held entries of one group.

    Args:
        name: of the group.
        is_read: the store has nothing of it that is not held.

    Attributes:
        in_flight: how many of its entries are being worked.
        is_leaving: nothing more of it is begun, because another process shall work it.
        is_reading: it is being read from the store.
        ready: heads of keys that nobody works, by due time and position.
    """

    __slots__ = (
        "_complete",
        "_ended",
        "_keys",
        "_more",
        "_not_before_ms",
        "_positions",
        "_read_to",
        "in_flight",
        "is_leaving",
        "is_reading",
        "name",
        "ready",
    )

    def __init__(self, name: str, *, is_read: bool = False) -> None:
        self.name = name
        self.in_flight = 0
        self.is_leaving = self.is_reading = False
        self.ready: list[tuple[int, int, str | int]] = []
        self._keys: dict[str | int, deque[Job]] = {}
        self._positions: set[int] = set()
        self._ended: set[int] = set()  # while more was being read: what is read may still have them
        self._not_before_ms = 0
        self._read_to = 0
        self._more = not is_read
        self._complete = Completeness()

    @property
    def claimed(self) -> int:
        """How many entries of it are held."""
        return len(self._positions)

    # What the store has of it.

    @property
    def wants_more(self) -> bool:
        """Whether to read further: there may be more, and half the room is free."""
        return self._more and not self.is_reading and not self.is_leaving and len(self._positions) < MOST_READ

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it is held or to be read."""
        return not self._keys and not self._more and not self.is_reading

    @property
    def can_go(self) -> bool:
        """Whether to forget it at once when it is empty.

        Where positions are committed out of order it stays for a minute, because it knows how far it is
        complete: to read from a group's beginning again costs as much as all that was deleted there lately.
        """
        return self.is_empty and not self._complete.is_known

    def allow_read(self) -> None:
        """The store may hold entries that have not been read."""
        self._more = True

    def rescan(self) -> None:
        """Read it as if it were new, the next time that it is read."""
        self._complete.reset()

    def begin_read(self) -> None:
        """It is read from now on; what is appended meanwhile is read the next time."""
        self._more, self.is_reading = False, True

    def cursor(self, real_ms: int, *, in_order: bool) -> GroupCursor:
        """Where to read on.

        Args:
            real_ms: now.
            in_order: whether positions are committed in order.
        """
        if in_order:
            return GroupCursor(self.name, self._read_to, (), MOST_READ)
        after = self._complete.position(real_ms, self._read_to)
        known = sorted(position for position in self._positions if position > after)
        return GroupCursor(self.name, after, known, MOST_READ)

    def end_read(self, jobs: Sequence[Job], *, real_ms: int, transactions: RunningTransactions | None) -> None:
        """It has been read.

        Args:
            jobs: what was found, oldest first; what is held or has ended meanwhile is known.
            real_ms: when that was begun.
            transactions: that were running, where positions are committed out of order.
        """
        self.is_reading = False
        for job in jobs:
            self._read_to = max(self._read_to, job.position)
            self._add(job)
        self._ended.clear()
        is_all = len(jobs) < MOST_READ
        if jobs and is_all and transactions is not None:
            self._complete.note(real_ms, self._read_to, transactions)
        self._more = self._more or not is_all

    def fail_read(self) -> None:
        """It could not be read."""
        self.is_reading, self._more = False, True

    def enqueue(self, jobs: Iterable[Job]) -> bool:
        """Hold entries that were just appended; False where what is held does not reach so far."""
        if self._more or self.is_reading or len(self._positions) >= MOST_READ:
            return False
        for job in jobs:
            if job.position > self._read_to:  # else it was read before it was heard of
                self._read_to = job.position
                self._add(job)
        return True

    # What is due of it.

    @property
    def next_due_ms(self) -> int | None:
        """When the earliest ready head is due; None without one."""
        return max(self.ready[0][0], self._not_before_ms) if self.ready else None

    def rest_until(self, not_before_ms: int) -> None:
        """Begin nothing of it before then."""
        self._not_before_ms = not_before_ms

    def unhold(self) -> bool:
        """Let it be asked for again at once; False where it was not held."""
        was_held = bool(self._not_before_ms)
        self._not_before_ms = 0
        return was_held

    def leave(self) -> None:
        """Begin nothing more of it: another process shall work it."""
        self.is_leaving = True

    def claim_due(self, now_ms: int, pace: PaceCheck | None) -> Job | None:
        """The next head that is due and may go, now being worked; None when there is none."""
        while self.ready and self.ready[0][0] <= now_ms and self._not_before_ms <= now_ms:
            _, _, key = heapq.heappop(self.ready)
            job = self._keys[key][0]
            hold = pace(job, now_ms, self.in_flight) if pace else None
            if hold is None:
                self.in_flight += 1
                return job
            if hold.whole_group:
                self._not_before_ms = hold.until_ms
            else:
                job.due_ms = hold.until_ms
            self._offer(job)
        return None

    def works_on(self, job: Job) -> bool:
        """Whether this very entry is the head of its key."""
        queue = self._keys.get(job.key)
        return bool(queue) and queue[0] is job

    def complete(self, job: Job, *, again: bool) -> None:
        """End the work on a key's head: it goes, or waits for its new due time."""
        self.in_flight -= 1
        if again:
            self._offer(job)
        else:
            self._detach_from_ordering_key(job)
            if self.is_reading:
                self._ended.add(job.position)

    def park(self) -> None:
        """End the work on a key's head, and do not offer it again before `unpark`."""
        self.in_flight -= 1

    def unpark(self, job: Job) -> None:
        """Offer a parked head again."""
        self._offer(job)

    def detach(self, job: Job) -> None:
        """A head leaves its key to its followers, and waits by itself."""
        self.in_flight -= 1
        self._detach_from_ordering_key(job)
        job.is_detached = True
        self._add(job)

    def _detach_from_ordering_key(self, job: Job) -> None:
        key = job.key
        queue = self._keys[key]
        queue.popleft()
        self._positions.discard(job.position)
        if queue:
            self._offer(queue[0])
        else:
            del self._keys[key]

    def _add(self, job: Job) -> None:
        """Take in an entry of the store; one that is held or has just ended is known."""
        if job.position in self._positions or job.position in self._ended:
            return
        self._positions.add(job.position)
        key = job.key
        queue = self._keys.get(key)
        if queue is None:
            self._keys[key] = deque([job])
            self._offer(job)
        else:
            queue.append(job)

    def _offer(self, job: Job) -> None:
        heapq.heappush(self.ready, (job.due_ms, job.position, job.key))
