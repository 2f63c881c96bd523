"""The concurrency groups of a queue in memory: what has been read of each, what is due, and which job is next.

All of this can be discarded at any moment; the store has it. Only the group itself changes what it
holds.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Final, Protocol

from waypost.domain.wait_reasons import WaitReason
from waypost.queue.job import Job, NotBefore
from waypost.queue.plans import GROUP_WINDOW
from waypost.store.queue.jobs import GroupCursor, RunningTransactions

MAX_ENQUEUE_MS: Final = 20_000
"""Longer than a transaction that enqueues jobs can last: the engines bound it."""

MAX_NUMBERING_MS: Final = 2_000
"""Longer than it takes from the moment a job gets its position until its transaction has a number.

The two are some microseconds apart. A job that takes longer all the same is found once a minute.
"""

MAX_JOBS_PER_READ: Final = GROUP_WINDOW // 2
"""Maximum number of jobs of a group in one read; a group is read on while it holds fewer."""


class MayStart(Protocol):
    """Decides whether a job may be worked now, and takes its slot if it may."""

    def __call__(self, job: Job, now_ms: int, in_flight: int, /) -> NotBefore | None:
        """Return None to start the job, or how long it waits, and why.

        Args:
            job: the head of its key, due.
            now_ms: by the clock that due times follow.
            in_flight: how many jobs of its group are being worked.
        """
        ...


class Completeness:
    """The position up to which all jobs of a group are known, where positions are committed out of order."""

    __slots__ = ("_marked_before", "_marked_ms", "_marked_to", "_to")

    def __init__(self) -> None:
        self._to = self._marked_to = self._marked_ms = 0
        self._marked_before: int | None = None

    @property
    def is_known(self) -> bool:
        """True if a read has been recorded."""
        return bool(self._marked_ms)

    def reset(self) -> None:
        """Discard what is known."""
        self._to = self._marked_to = 0
        self._marked_before = None

    def position(self, real_ms: int, read_to: int) -> int:
        """Return the position beyond which jobs may still appear.

        What was read so long ago that every transaction of that time has ended is complete.
        """
        if real_ms - self._marked_ms >= MAX_ENQUEUE_MS:
            self._mark(real_ms, read_to, before=None)
        return self._to

    def record_read(self, real_ms: int, read_to: int, transactions: RunningTransactions) -> None:
        """Record that all jobs then in the store beyond this position have been read, up to `read_to`."""
        if self._marked_before is None:
            self._marked_to, self._marked_ms, self._marked_before = read_to, real_ms, transactions.next
        elif transactions.oldest >= self._marked_before and real_ms - self._marked_ms >= MAX_NUMBERING_MS:
            self._mark(real_ms, read_to, before=transactions.next)

    def _mark(self, real_ms: int, read_to: int, *, before: int | None) -> None:
        self._to, self._marked_to = self._marked_to, read_to
        self._marked_ms, self._marked_before = real_ms, before


class ConcurrencyGroup:
    """The jobs of one group that are in memory.

    Args:
        is_read: all jobs of it in the store are in memory.

    Attributes:
        in_flight: how many of its jobs are being worked; a parked one is not.
        more: the store may hold jobs that have not been read.
        not_before_ms: none of its jobs is started before this time.
        wait_reason: of the last such wait.
        is_leaving: no more of its jobs are started, because another process is to work it.
        is_reading: it is being read from the store.
        ready: heads of keys that are not being worked, by due time and position.
        times_made_due: how often `make_retries_due` was called.
    """

    __slots__ = (
        "_complete",
        "_ended",
        "_keys",
        "_positions",
        "_read_to",
        "_retries_due",
        "in_flight",
        "is_leaving",
        "is_reading",
        "more",
        "name",
        "not_before_ms",
        "ready",
        "times_made_due",
        "wait_reason",
    )

    def __init__(self, name: str, *, is_read: bool = False) -> None:
        self.name = name
        self.in_flight = 0
        self.is_leaving = self.is_reading = False
        self.ready: list[tuple[int, int, str | int]] = []
        self._keys: dict[str | int, deque[Job]] = {}
        self._positions: set[int] = set()
        self._ended: set[int] = set()  # while it was being read: what is read may still contain them
        self.not_before_ms = 0
        self.wait_reason = WaitReason.HANDED_OVER
        self._read_to = 0
        self._retries_due: tuple[int, bool] | None = None  # arguments of `make_retries_due` during a read
        self.times_made_due = 0
        self.more = not is_read
        self._complete = Completeness()

    @property
    def jobs_in_memory(self) -> int:
        """Number of its jobs in memory."""
        return len(self._positions)

    # Reading it from the store.

    @property
    def needs_read(self) -> bool:
        """True if more should be read: there may be more, and half the window is free."""
        return self.more and not self.is_reading and not self.is_leaving and len(self._positions) < MAX_JOBS_PER_READ

    @property
    def is_empty(self) -> bool:
        """True if none of its jobs is in memory or left to be read."""
        return not self._keys and not self.more and not self.is_reading

    @property
    def can_be_dropped(self) -> bool:
        """True if it is empty and need not remember how far it is complete.

        Where positions are committed out of order it stays for a minute, because it knows how far it is
        complete: to read from a group's beginning again costs as much as all that was deleted there lately.
        """
        return not (self._keys or self.more or self.is_reading or self._complete.is_known)

    def rescan(self) -> None:
        """Make the next read treat it as if it were new."""
        self._complete.reset()

    def begin_read(self) -> None:
        """Mark it as being read; jobs that are enqueued meanwhile are read the next time."""
        self.more, self.is_reading = False, True

    def cursor(self, real_ms: int, *, in_order: bool) -> GroupCursor:
        """Return where to continue reading.

        Args:
            in_order: whether positions are committed in order.
        """
        if in_order:
            return GroupCursor(self.name, self._read_to, (), MAX_JOBS_PER_READ)
        after = self._complete.position(real_ms, self._read_to)
        known = sorted(position for position in self._positions if position > after)
        return GroupCursor(self.name, after, known, MAX_JOBS_PER_READ)

    def end_read(self, jobs: Sequence[Job], *, real_ms: int, transactions: RunningTransactions | None) -> None:
        """Add the jobs that have been read.

        Args:
            jobs: oldest first; those that are in memory already or have ended meanwhile are skipped.
            real_ms: when the read was begun.
            transactions: that were running, where positions are committed out of order.
        """
        self.is_reading = False
        for job in jobs:
            self._read_to = max(self._read_to, job.position)
            self._add(job)
        self._ended.clear()
        if self._retries_due is not None:
            now_ms, with_detached = self._retries_due
            self.make_retries_due(now_ms, with_detached=with_detached)
            self._retries_due = None
        is_all = len(jobs) < MAX_JOBS_PER_READ
        if jobs and is_all and transactions is not None:
            self._complete.record_read(real_ms, self._read_to, transactions)
        self.more = self.more or not is_all

    def enqueue(self, jobs: Iterable[Job]) -> bool:
        """Hold jobs that were just enqueued, in the order of their positions; return False where it must be read.

        Call this only where every commit is reported, in order. What is in memory may not reach so far.
        """
        if self.more or self.is_reading or len(self._positions) >= MAX_JOBS_PER_READ:
            return False
        for job in jobs:
            if job.position > self._read_to:  # else it was read before it was reported
                self._read_to = job.position
                self._add(job)
        return True

    # Scheduling its jobs.

    @property
    def next_due_ms(self) -> int | None:
        """Due time of the earliest ready head; None without one."""
        return max(self.ready[0][0], self.not_before_ms) if self.ready else None

    def clear_not_before(self) -> bool:
        """Let it be claimed from at once; return False where it was not waiting."""
        was_waiting = bool(self.not_before_ms)
        self.not_before_ms = 0
        return was_waiting

    def make_retries_due(self, now_ms: int, *, with_detached: bool) -> None:
        """Make the heads due that wait for another attempt; also those that a running read may return as they were.

        Args:
            with_detached: also those that have failed while others succeeded.
        """
        self.times_made_due += 1
        if self.is_reading:
            was_with_detached = self._retries_due is not None and self._retries_due[1]
            self._retries_due = (now_ms, with_detached or was_with_detached)
        for due_ms, _, key in self.ready:
            job = self._keys[key][0]
            if due_ms > now_ms and job.attempt and (with_detached or not job.is_detached):
                job.due_ms = now_ms
        self.ready = [(self._keys[key][0].due_ms, position, key) for _, position, key in self.ready]
        heapq.heapify(self.ready)

    def claim_due(self, now_ms: int, may_start: MayStart | None) -> Job | None:
        """Claim and return the next head that is due and may start; None when there is none."""
        while self.ready and self.ready[0][0] <= now_ms and self.not_before_ms <= now_ms:
            _, _, key = heapq.heappop(self.ready)
            job = self._keys[key][0]
            wait = may_start(job, now_ms, self.in_flight) if may_start else None
            if wait is None:
                self.in_flight += 1
                return job
            if wait.whole_group:
                self.not_before_ms, self.wait_reason = wait.until_ms, wait.reason
            else:
                job.due_ms, job.not_before = wait.until_ms, wait
            self.offer(job)
        return None

    def explain_wait(self, position: int, now_ms: int, share: int) -> NotBefore | None:
        """Return why a job of the group waits; None where it is being worked, or may start."""
        if position not in self._positions:
            return NotBefore(now_ms, WaitReason.BACKLOG, whole_group=True) if self.more else None
        jobs = next(jobs for jobs in self._keys.values() if any(job.position == position for job in jobs))
        job = jobs[0]
        if job.position != position:
            return NotBefore(now_ms, WaitReason.ORDER, whole_group=False)
        if job.is_parked:
            return NotBefore(now_ms, WaitReason.UPLOAD, whole_group=False)
        if all(ready_position != position for _, ready_position, _ in self.ready):
            return None
        if job.due_ms > now_ms:
            if job.not_before is not None and job.not_before.until_ms == job.due_ms:
                return job.not_before
            reason = WaitReason.RETRY if job.attempt or job.defects else WaitReason.NOT_DUE
            return NotBefore(job.due_ms, reason, whole_group=False)
        return self.current_wait(now_ms, share)

    def current_wait(self, now_ms: int, share: int) -> NotBefore | None:
        """Return why none of its jobs that are due is started; None where they are, or none is due."""
        if not self.ready or self.ready[0][0] > now_ms:
            return None
        if self.not_before_ms > now_ms:
            return NotBefore(self.not_before_ms, self.wait_reason, whole_group=True)
        return NotBefore(now_ms, WaitReason.SLOTS, whole_group=True) if self.in_flight >= share else None

    def is_head(self, job: Job) -> bool:
        """True if this very job is the head of its key."""
        queue = self._keys.get(job.key)
        return bool(queue) and queue[0] is job

    def complete(self, job: Job, *, is_retry: bool, detach: bool = False) -> bool:
        """End the work on a key's head: remove it, or offer it again for its new due time, unless it is parked.

        Args:
            detach: it waits by itself from now on, and its followers continue.

        Returns:
            False where this very job is not the head of its key: it was lost meanwhile, and nothing is done.
        """
        key = job.key
        queue = self._keys.get(key)
        if not queue or queue[0] is not job:
            return False
        self.in_flight -= 1
        if is_retry and not detach:
            if not job.is_parked:
                heapq.heappush(self.ready, (job.due_ms, job.position, key))
            return True
        queue.popleft()
        self._positions.discard(job.position)
        if queue:
            following = queue[0]
            heapq.heappush(self.ready, (following.due_ms, following.position, key))
        else:
            del self._keys[key]
        if detach:
            job.detach()
            self._add(job)
        elif self.is_reading:
            self._ended.add(job.position)
        return True

    def _add(self, job: Job) -> None:
        """Add a job from the store, unless it is in memory or has just ended."""
        position, key = job.position, job.key
        if position in self._positions or position in self._ended:
            return
        self._positions.add(position)
        queue = self._keys.get(key)
        if queue is None:
            self._keys[key] = deque((job,))
            heapq.heappush(self.ready, (job.due_ms, position, key))
        else:
            queue.append(job)

    def offer(self, job: Job) -> None:
        """Offer a head of a key that is not being worked, or not any more."""
        heapq.heappush(self.ready, (job.due_ms, job.position, job.key))


GROUP_RESCAN_MS: Final = 60_000
"""Interval at which groups are read again from their first job on."""


class QueueScheduler:
    """The concurrency groups of one queue, and the choice of the jobs that are due."""

    def __init__(self) -> None:
        self.groups: dict[str, ConcurrencyGroup] = {}
        self._rescanned_ms = 0
        self.dropped_groups: dict[str, list[ConcurrencyGroup]] = {}
        """Dropped groups of which jobs are still being worked here; their shards may not come back before these end."""

    def wake(self, names: Iterable[str], not_before_ms: Callable[[str], int] | None = None) -> None:
        """Note that the store may hold new jobs of these groups.

        Args:
            names: of the groups.
            not_before_ms: gives the time until which a group waits that has not been in memory so far.
        """
        for name in names:
            group = self.groups.get(name)
            if group is None:
                group = self.groups[name] = ConcurrencyGroup(name)
                group.not_before_ms = not_before_ms(name) if not_before_ms else 0
            group.more = True

    def rescan(self, real_ms: int) -> None:
        """Once a minute, read each group as if it were new, so that a job that was missed is found.

        None should be missed. This is done because a commit that waits for a standby can hide jobs for long.
        """
        if real_ms - self._rescanned_ms < GROUP_RESCAN_MS:
            return
        self._rescanned_ms = real_ms
        for name in [name for name, group in self.groups.items() if group.is_empty]:
            del self.groups[name]
        for group in self.groups.values():
            group.rescan()

    def drop_groups(self, names: Iterable[str]) -> None:
        """Drop groups that another process works now, or may work."""
        for name in list(names):
            group = self.groups.pop(name, None)
            if group is not None and group.in_flight:
                self.dropped_groups.setdefault(name, []).append(group)

    def group_of(self, job: Job) -> ConcurrencyGroup | None:
        """Return the group in which this very job is the head of its key; None when the group was dropped."""
        group = self.groups.get(job.concurrency_group)
        return group if group is not None and group.is_head(job) else None

    def complete_dropped(self, job: Job) -> None:
        """End the work on a job whose group was dropped: its lease was lost meanwhile."""
        dropped = self.dropped_groups.get(job.concurrency_group, ())
        for group in dropped:
            group.complete(job, is_retry=True)
        remaining = [group for group in dropped if group.in_flight]
        if remaining:
            self.dropped_groups[job.concurrency_group] = remaining
        else:
            self.dropped_groups.pop(job.concurrency_group, None)

    @property
    def is_reading(self) -> bool:
        """True if something is being read from the store, or is about to be."""
        return any(group.is_reading or group.needs_read for group in self.groups.values())

    def claim_due(self, *, at_most: int, share: int, now_ms: int, may_start: MayStart | None) -> list[Job]:
        """Return due heads, one of each group in turn, no group beyond its share.

        Where not all that is due can be claimed, the groups that were claimed from are last the next time.
        """
        claimed: list[Job] = []
        open_groups: list[ConcurrencyGroup] = []
        unused: list[str] = []
        for group in self.groups.values():
            if group.ready:
                if not group.is_leaving:
                    open_groups.append(group)
            elif group.can_be_dropped:
                unused.append(group.name)
        while open_groups and len(claimed) < at_most:
            still_open: list[ConcurrencyGroup] = []
            for group in open_groups:
                if len(claimed) >= at_most:
                    break
                job = group.claim_due(now_ms, may_start) if group.ready and group.in_flight < share else None
                if job is not None:
                    claimed.append(job)
                    still_open.append(group)
            open_groups = still_open
        if len(claimed) >= at_most:
            for name in {job.concurrency_group: None for job in claimed}:
                self.groups[name] = self.groups.pop(name)
        for name in unused:
            del self.groups[name]
        return claimed

    def next_due_ms(self, share: int) -> int | None:
        """Return when the next head is due, among the groups that have free slots."""
        earliest_ms: int | None = None
        for group in self.groups.values():
            if group.ready and group.in_flight < share and not group.is_leaving:
                due_ms = group.next_due_ms
                if due_ms is not None and (earliest_ms is None or due_ms < earliest_ms):
                    earliest_ms = due_ms
        return earliest_ms
