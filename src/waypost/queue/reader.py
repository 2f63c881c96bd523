"""Brings jobs into memory: reads them from the store group by group, or takes them over as they are written.

Where a process has the store to itself and has scanned a queue, a new job goes straight into its
group; otherwise the group is read on from its last position (decisions 0007, 0055).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from waypost.base.clock import Clock
from waypost.queue.job import Job, make_job, read_jobs
from waypost.queue.plans import QueuePlan, shard_of
from waypost.queue.scheduling import QueueScheduler
from waypost.queue.shards import Shards
from waypost.store.database import APPENDED_TO, MISSED, Database
from waypost.store.queue.jobs import NewJob, QueueName, list_groups, read_jobs_after
from waypost.store.write_through_cache import EnqueuedJobs

POLL_MS: Final = 5_000
"""Interval, in real time, at which the store is searched for groups that no wake-up reported: the safety net."""

Heard = Callable[[str], None]


class QueueReader:
    """Fills the queues of one process.

    It alone adds groups and jobs; completed work and lost shards remove them. Its own state is when each
    queue was last scanned, and of which queues every group is known.

    Args:
        database: open.
        clock: `now_ms` decides what cannot be due so late; the scans follow `real_ms`.
        waiting: the scheduler of each queue; filled here.
        shards: whose groups may be read.
        plans: how far ahead a job of a queue may be due.
        rouse: called with each queue in which there may be something to claim.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        waiting: Mapping[QueueName, QueueScheduler],
        shards: Shards,
        *,
        plans: Mapping[QueueName, QueuePlan],
        rouse: Callable[[QueueName], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._waiting = waiting
        self._shards = shards
        self._plans = plans
        self._rouse = rouse
        self._polled_ms: dict[QueueName, int] = {}
        self._surveyed: set[QueueName] = set()
        """Queues of which every group with jobs in the store is known, and each commit is reported."""
        self._hearers: dict[QueueName, list[Heard]] = {}

    def open(self) -> None:
        """Start to receive notices of new jobs, and of shards that are gained."""
        self._database.on_append(self._receive_wake_ups)
        self._database.on_notification(self._on_notification)
        self._shards.on_gained(self._rescan)

    def on_wake(self, queue_name: QueueName, heard: Heard) -> None:
        """Call `listener`, on the event loop, with each group of the queue that has new jobs or is notified."""
        self._hearers.setdefault(queue_name, []).append(heard)

    def has_scanned(self, queue_name: QueueName) -> bool:
        """True if the queue has been scanned since it last had to be."""
        return queue_name in self._polled_ms

    async def read_on(self, queue_name: QueueName) -> None:
        """Read new jobs of a queue's groups, as far as there is room; list all its groups when that is due."""
        scheduler = self._waiting[queue_name]
        real_ms = self._clock.real_ms()
        polled_ms = self._polled_ms.get(queue_name)
        if polled_ms is None or real_ms - polled_ms >= POLL_MS:
            self._polled_ms[queue_name] = real_ms
            scheduler.rescan(real_ms)
            names = await self._database.read(list_groups, queue_name)
            scheduler.wake(
                (name for name in names if shard_of(name) in self._shards.held[queue_name]),
                partial(self._shards.not_before_ms, queue_name),
            )
            if self._database.sole and queue_name in self._polled_ms:
                self._surveyed.add(queue_name)
        groups = scheduler.to_read()
        if not groups:
            return
        for group in groups:
            group.begin_read()
        real_ms = self._clock.real_ms()
        cursors = [group.cursor(real_ms, in_order=self._database.in_order) for group in groups]
        try:
            read = await self._database.read(read_jobs_after, queue_name, cursors)
            jobs_by_group = [(group, read_jobs(queue_name, group.name, read.rows[group.name])) for group in groups]
        except BaseException:
            for group in groups:
                group.fail_read()
            raise
        for group, jobs in jobs_by_group:
            for job in jobs:
                self._clamp_future_due(job)
            group.end_read(jobs, real_ms=real_ms, transactions=read.transactions)

    def _clamp_future_due(self, job: Job) -> None:
        """Make a job due now if its due time must come from a clock that ran ahead: another process's, or ours."""
        ahead_ms = self._plans[job.queue].ahead_ms
        if ahead_ms is None or job.attempt or job.defects:
            return
        now_ms = self._clock.now_ms()
        if job.due_ms > now_ms + ahead_ms:
            job.due_ms = now_ms

    def _receive_wake_ups(self, appended: EnqueuedJobs) -> None:
        for (number, group), new_jobs in appended.jobs.items():
            # Jobs that have to be read may come before the new ones: then all are read, in order.
            if (number, group) in appended.groups or not self._hand_on(QueueName(number), group, new_jobs):
                appended.look_at(number, group)
        for number, group in appended.groups:
            if not self._wake(QueueName(number), group):
                self._database.notify(APPENDED_TO, f"{number} {group}")

    def _hand_on(self, queue_name: QueueName, group: str, told: Sequence[tuple[int, NewJob]]) -> bool:
        """Hold new jobs without reading them; return False where the store must be read."""
        if queue_name not in self._surveyed:
            return False
        jobs = [make_job(position, job) for position, job in told]
        for job in jobs:
            self._clamp_future_due(job)
        if not self._waiting[queue_name].enqueue(group, jobs):
            return False
        self._has_grown(queue_name, group)
        return True

    def _on_notification(self, subject: str, words: str) -> None:
        if subject == APPENDED_TO:
            number, _, group = words.partition(" ")
            self._wake(QueueName(int(number)), group)
        elif subject == MISSED:
            for queue_name in QueueName:
                self._rescan(queue_name)

    def _wake(self, queue_name: QueueName, group: str) -> bool:
        """Have a group read; return False where another process works it."""
        if shard_of(group) not in self._shards.held[queue_name]:
            return False
        self._waiting[queue_name].wake([group], partial(self._shards.not_before_ms, queue_name))
        self._has_grown(queue_name, group)
        return True

    def _has_grown(self, queue_name: QueueName, group: str) -> None:
        self._rouse(queue_name)
        for listener in self._hearers.get(queue_name, ()):
            listener(group)

    def _rescan(self, queue_name: QueueName) -> None:
        """Search the store again for every group that this process may work."""
        self._polled_ms.pop(queue_name, None)
        self._surveyed.discard(queue_name)
        self._rouse(queue_name)
