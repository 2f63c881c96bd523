"""Brings jobs into memory: reads them from the store group by group, or takes them over as they are written.

Where a process has the store to itself and has scanned a queue, a new job goes straight into its
group; otherwise the group is read on from its last position (decisions 0007, 0055).
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final

from waypost.base.clock import Clock
from waypost.queue.concurrency_groups import QueueScheduler
from waypost.queue.job import Job, make_job, read_jobs
from waypost.queue.plans import QueuePlan, shard_of
from waypost.queue.shards import Shards
from waypost.store.database import JOBS_ENQUEUED_SUBJECT, NOTIFICATIONS_MISSED, RETRIES_DUE_SUBJECT, Database
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import NewJob, list_groups, read_jobs_after
from waypost.store.write_through_cache import EnqueuedJobs

POLL_MS: Final = 5_000
"""Interval, in real time, at which the store is searched for groups that no wake-up reported: the safety net."""

WakeListener = Callable[[str], None]


class QueueReader:
    """Fills the queues of one process.

    It alone adds groups and jobs; completed work and lost shards remove them. Its own state is when each
    queue was last scanned, and of which queues every group is known.

    Args:
        database: open.
        clock: `now_ms` decides what cannot be due so late; the scans follow `real_ms`.
        schedulers: the scheduler of each queue; filled here.
        shards: whose groups may be read.
        plans: how far ahead a job of a queue may be due.
        wake_worker: called with each queue in which there may be something to claim.
        make_retries_due: makes the jobs of a group due that wait for another attempt.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        schedulers: Mapping[QueueName, QueueScheduler],
        shards: Shards,
        *,
        plans: Mapping[QueueName, QueuePlan],
        wake_worker: Callable[[QueueName], None],
        make_retries_due: Callable[[QueueName, str], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._schedulers = schedulers
        self._shards = shards
        self._plans = plans
        self._wake_worker = wake_worker
        self._make_retries_due = make_retries_due
        self._polled_ms: dict[QueueName, int] = {}
        self._fully_known: set[QueueName] = set()
        """Queues of which every group with jobs in the store is known, and each commit is reported."""
        self._wake_listeners: dict[QueueName, list[WakeListener]] = {}

    def open(self) -> None:
        """Start to receive notices of new jobs, and of shards that are gained."""
        self._database.add_enqueue_listener(self._receive_wake_ups)
        self._database.add_notification_listener(self._receive_notification)
        self._shards.add_shards_gained_listener(self._rescan)

    def add_wake_listener(self, queue_name: QueueName, listener: WakeListener) -> None:
        """Call `listener`, on the event loop, with each group of the queue that has new jobs or is notified."""
        self._wake_listeners.setdefault(queue_name, []).append(listener)

    def has_scanned(self, queue_name: QueueName) -> bool:
        """True if the queue has been scanned since it last had to be."""
        return queue_name in self._polled_ms

    async def read_new_jobs(self, queue_name: QueueName) -> None:
        """Read new jobs of a queue's groups, as far as there is room; list all its groups when that is due."""
        scheduler = self._schedulers[queue_name]
        real_ms = self._clock.real_ms()
        polled_ms = self._polled_ms.get(queue_name)
        if polled_ms is None or real_ms - polled_ms >= POLL_MS:
            self._polled_ms[queue_name] = real_ms
            scheduler.rescan(real_ms)
            names = await self._database.read(list_groups, queue_name)
            scheduler.wake(
                (name for name in names if shard_of(name) in self._shards.held[queue_name]),
                partial(self._shards.cooldown_end_ms, queue_name),
            )
            if self._database.is_exclusive and queue_name in self._polled_ms:
                self._fully_known.add(queue_name)
        groups = scheduler.groups_to_read()
        if not groups:
            return
        for group in groups:
            group.begin_read()
        real_ms = self._clock.real_ms()
        cursors = [group.cursor(real_ms, in_order=self._database.commits_in_order) for group in groups]
        try:
            read = await self._database.read(read_jobs_after, queue_name, cursors)
            jobs_by_group = [(group, read_jobs(queue_name, group.name, read.rows[group.name])) for group in groups]
        except BaseException:
            for group in groups:
                group.fail_read()
            raise
        for group, jobs in jobs_by_group:
            self._clamp_future_due(queue_name, jobs)
            group.end_read(jobs, real_ms=real_ms, transactions=read.transactions)

    def _clamp_future_due(self, queue_name: QueueName, jobs: Iterable[Job]) -> None:
        """Make jobs due now whose due time must come from a clock that ran ahead: another process's, or ours."""
        ahead_ms = self._plans[queue_name].ahead_ms
        if ahead_ms is None:
            return
        now_ms = self._clock.now_ms()
        for job in jobs:
            if job.due_ms > now_ms + ahead_ms and not job.attempt and not job.defects:
                job.due_ms = now_ms

    def _receive_wake_ups(self, appended: EnqueuedJobs) -> None:
        for (queue_name, group), new_jobs in appended.jobs.items():
            # Jobs that have to be read may come before the new ones: then all are read, in order.
            if (queue_name, group) in appended.groups or not self._enqueue_in_memory(queue_name, group, new_jobs):
                appended.groups.add((queue_name, group))
        for queue_name, group in appended.groups:
            if not self._wake_group(queue_name, group):
                self._database.notify(JOBS_ENQUEUED_SUBJECT, f"{int(queue_name)} {group}")
        for queue_name, group in appended.due_groups:
            if shard_of(group) in self._shards.held[queue_name]:
                self._make_retries_due(queue_name, group)
            else:
                self._database.notify(RETRIES_DUE_SUBJECT, f"{int(queue_name)} {group}")

    def _enqueue_in_memory(self, queue_name: QueueName, group: str, new_jobs: Sequence[tuple[int, NewJob]]) -> bool:
        """Hold new jobs without reading them; return False where the store must be read."""
        if queue_name not in self._fully_known:
            return False
        jobs = [make_job(position, job) for position, job in new_jobs]
        self._clamp_future_due(queue_name, jobs)
        if not self._schedulers[queue_name].enqueue(group, jobs):
            return False
        self._notify_new_jobs(queue_name, group)
        return True

    def _receive_notification(self, subject: str, payload: str) -> None:
        if subject in (JOBS_ENQUEUED_SUBJECT, RETRIES_DUE_SUBJECT):
            number, _, group = payload.partition(" ")
            react = self._wake_group if subject == JOBS_ENQUEUED_SUBJECT else self._make_retries_due
            react(QueueName(int(number)), group)
        elif subject == NOTIFICATIONS_MISSED:
            for queue_name in QueueName:
                self._rescan(queue_name)

    def _wake_group(self, queue_name: QueueName, group: str) -> bool:
        """Have a group read; return False where another process works it."""
        if shard_of(group) not in self._shards.held[queue_name]:
            return False
        self._schedulers[queue_name].wake([group], partial(self._shards.cooldown_end_ms, queue_name))
        self._notify_new_jobs(queue_name, group)
        return True

    def _notify_new_jobs(self, queue_name: QueueName, group: str) -> None:
        self._wake_worker(queue_name)
        for listener in self._wake_listeners.get(queue_name, ()):
            listener(group)

    def _rescan(self, queue_name: QueueName) -> None:
        """Search the store again for every group that this process may work."""
        self._polled_ms.pop(queue_name, None)
        self._fully_known.discard(queue_name)
        self._wake_worker(queue_name)
