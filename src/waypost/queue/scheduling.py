"""The concurrency groups of one queue that this process holds.

All of this can be discarded at any moment; the store has it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from waypost.queue.concurrency_groups import ConcurrencyGroup, PaceCheck
from waypost.queue.job import Job

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
                group.set_not_before(not_before_ms(name) if not_before_ms else 0)
            group.allow_read()

    def enqueue(self, name: str, jobs: Sequence[Job]) -> bool:
        """Hold jobs that were just enqueued to a group, in the order of their positions.

        Call this only where every commit is reported, in order, and where each group that has jobs in the
        store is known: then an unknown group has no other jobs.

        Returns:
            False where the store must be read: what is in memory of the group does not reach so far.
        """
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = ConcurrencyGroup(name, is_read=True)
        return group.enqueue(jobs)

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
        """End the work on a job of a dropped group."""
        dropped = self.dropped_groups.get(job.concurrency_group, ())
        for group in dropped:
            if group.is_head(job):
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

    def groups_to_read(self) -> list[ConcurrencyGroup]:
        """Return the groups of which more should be read."""
        return [group for group in self.groups.values() if group.needs_read]

    @property
    def has_more_to_read(self) -> bool:
        """True if another read is to be made before what is in memory is all that can be claimed."""
        return any(group.needs_read for group in self.groups.values())

    def claim_due(self, *, at_most: int, share: int, now_ms: int, pace: PaceCheck | None) -> list[Job]:
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
                job = group.claim_due(now_ms, pace) if group.in_flight < share else None
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
