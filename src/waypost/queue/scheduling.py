"""The groups of one queue that this process holds.

All of this can be thrown away at any moment; the store has it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from waypost.queue.concurrency_groups import ConcurrencyGroup, PaceCheck
from waypost.queue.job import Job

AGAIN_MS: Final = 60_000
"""How often groups are read from their first entry on."""


class QueueScheduler:
    """The groups of one queue."""

    def __init__(self) -> None:
        self.groups: dict[str, ConcurrencyGroup] = {}
        self._looked_ms = 0
        self.ending: dict[str, list[ConcurrencyGroup]] = {}
        """Forgotten groups of which entries are still being worked here: their shards may not come back before."""

    def wake(self, names: Iterable[str], not_before_ms: Callable[[str], int] | None = None) -> None:
        """The store may hold new entries of these groups.

        Args:
            names: of the groups.
            not_before_ms: until when a group rests that has not been held so far.
        """
        for name in names:
            group = self.groups.get(name)
            if group is None:
                group = self.groups[name] = ConcurrencyGroup(name)
                group.rest_until(not_before_ms(name) if not_before_ms else 0)
            group.allow_read()

    def enqueue(self, name: str, jobs: Sequence[Job]) -> bool:
        """Hold entries that were just appended to a group, in the order of their positions.

        To be called only where every commit is heard of, in order, and where each group that has
        entries in the store is known: then one that is not known has no other.

        Returns:
            False where the store has to be asked: what is held of the group does not reach so far.
        """
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = ConcurrencyGroup(name, is_read=True)
        return group.enqueue(jobs)

    def rescan(self, real_ms: int) -> None:
        """Once a minute, read each group as if it were new: whatever was missed is found then.

        Nothing should be. What a commit that waits for a standby holds back for long is why it is done.
        """
        if real_ms - self._looked_ms < AGAIN_MS:
            return
        self._looked_ms = real_ms
        for name in [name for name, group in self.groups.items() if group.is_empty]:
            del self.groups[name]
        for group in self.groups.values():
            group.rescan()

    def forget(self, names: Iterable[str]) -> None:
        """Another process works these groups now, or may."""
        for name in list(names):
            group = self.groups.pop(name, None)
            if group is not None and group.in_flight:
                self.ending.setdefault(name, []).append(group)

    def group_of(self, job: Job) -> ConcurrencyGroup | None:
        """The group in which this very entry is the head of its key; None when it has been forgotten."""
        group = self.groups.get(job.concurrency_group)
        return group if group is not None and group.works_on(job) else None

    def ended_elsewhere(self, job: Job) -> None:
        """The work on an entry of a forgotten group has ended."""
        forgotten = self.ending.get(job.concurrency_group, ())
        for group in forgotten:
            if group.works_on(job):
                group.complete(job, again=True)
        still = [group for group in forgotten if group.in_flight]
        if still:
            self.ending[job.concurrency_group] = still
        else:
            self.ending.pop(job.concurrency_group, None)

    @property
    def is_reading(self) -> bool:
        """Whether something is being read from the store, or is about to be."""
        return any(group.is_reading or group.wants_more for group in self.groups.values())

    def to_read(self) -> list[ConcurrencyGroup]:
        """Groups of which more should be read."""
        return [group for group in self.groups.values() if group.wants_more]

    def claim_due(self, *, at_most: int, share: int, now_ms: int, pace: PaceCheck | None) -> list[Job]:
        """Due heads, one of each group in turn, no group beyond its share."""
        taken: list[Job] = []
        open_groups = [group for group in self.groups.values() if group.ready and not group.is_leaving]
        while open_groups and len(taken) < at_most:
            still_open: list[ConcurrencyGroup] = []
            for group in open_groups:
                if len(taken) >= at_most:
                    break
                job = group.claim_due(now_ms, pace) if group.in_flight < share else None
                if job is not None:
                    taken.append(job)
                    still_open.append(group)
            open_groups = still_open
        for name in [name for name, group in self.groups.items() if group.can_go]:
            del self.groups[name]
        return taken

    def next_due_ms(self, share: int) -> int | None:
        """When the next head is due, of the groups that have room."""
        dues = [
            group.next_due_ms
            for group in self.groups.values()
            if group.in_flight < share and group.ready and not group.is_leaving
        ]
        return min((due for due in dues if due is not None), default=None)
