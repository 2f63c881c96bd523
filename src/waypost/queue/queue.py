"""The queues on a store: claims are held in memory under a lease, everything else is written.

A claim needs no write, because only the process that leases a shard works its groups. What a crash must not lose is
written: the job itself, the in-flight mark, a retry, and completion.

Jobs come into memory group by group from the store, or as they are written: where a process has the store to itself
and has scanned a queue, a new job goes straight into its group; otherwise the group is read on from its last position
(decisions 0007, 0055).
"""

import asyncio
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from waypost.base.clock import Clock
from waypost.base.telemetry.counters import QueueCounters
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.tracing import TraceStep, tracer
from waypost.queue.concurrency_groups import ConcurrencyGroup, MayStart, QueueScheduler
from waypost.queue.job import Job, NotBefore, PermanentDefect, make_jobs, read_jobs
from waypost.queue.plans import DEFECT_DELAYS_S, QUEUE_PLANS, QueuePlan, shard_of
from waypost.queue.shards import Shards
from waypost.store.contract import StoreUnavailable
from waypost.store.database import JOBS_ENQUEUED_SUBJECT, NOTIFICATIONS_MISSED, RETRIES_DUE_SUBJECT, Database
from waypost.store.queue.job_subjects import JobState, QueueName, SubjectKind
from waypost.store.queue.jobs import (
    InFlightMark,
    JobRetry,
    NewJob,
    ShardFence,
    is_live_group,
    list_groups,
    mark_in_flight,
    read_jobs_after,
    retry_jobs_later,
)
from waypost.store.trace_events import MessageTraceEvent
from waypost.store.write_through_cache import EnqueuedJobs

Item = TypeVar("Item")
Result = TypeVar("Result")

WakeListener = Callable[[str], None]

POLL_MS: Final = 5_000
"""Interval, in real time, at which the store is searched for groups that no wake-up reported: the safety net."""

KNOWN_POLL_MS: Final = 60_000
"""The same where every group is known and each commit is reported: then only a defect of ours can lose a wake-up."""

STORE_RETRY_S: Final = 0.5
"""Time to wait before a store that could not be reached is tried again."""


class JobQueue:
    """Queues of jobs, claimed in batches, one at a time per ordering key.

    Args:
        clock: `now_ms` decides what is due; leases follow `real_ms`.
        holder: names this process in leases.
        lease_ms: how long a lease lasts unless renewed; unused where the store has one process.
        plans: the limits of each queue.
        queue_names: those that this process works.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        holder: str,
        lease_ms: int = 15_000,
        plans: Mapping[QueueName, QueuePlan] = QUEUE_PLANS,
        queue_names: Sequence[QueueName] = tuple(QueueName),
    ) -> None:
        self._database = database
        self._clock = clock
        self._holder = holder
        self.plans = plans
        self._schedulers: dict[QueueName, QueueScheduler] = {queue_name: QueueScheduler() for queue_name in QueueName}
        self.shards = Shards(
            database,
            clock,
            self._schedulers,
            plans=plans,
            holder=holder,
            lease_ms=lease_ms,
            queue_names=queue_names,
            on_gained=self._rescan,
        )
        self._wake_events: dict[QueueName, asyncio.Event] = {queue_name: asyncio.Event() for queue_name in QueueName}
        self._wake_listeners: dict[QueueName, list[WakeListener]] = {}
        self._scanned_ms: dict[QueueName, int] = {}  # real time of the last scan; none where it is to be scanned again
        self._fully_known: set[QueueName] = set()
        """Queues of which every group with jobs in the store is known, and each commit is reported."""
        self.counts: dict[QueueName, QueueCounters] = {queue_name: QueueCounters() for queue_name in QueueName}
        self._log = log("queue")

    async def open(self) -> None:
        """Start to receive notices of new jobs; where the store has one process, hold every shard."""
        self._database.add_enqueue_listener(self._receive_wake_ups)
        self._database.add_notification_listener(self._receive_notification)
        await self.shards.open()

    def start(self) -> None:
        """Start to take leases: a process that only opens the store takes none."""
        self.shards.start()

    async def close(self) -> None:
        """Release the leases, so that other processes continue at once."""
        await self.shards.close()

    async def claim(self, queue_name: QueueName, *, at_most: int, may_start: MayStart | None = None) -> list[Job]:
        """Return due jobs to work now: one of each key, oldest first, no group beyond its share.

        Each must be ended by `complete`, `retry_later`, `retry_after_defect`, `park` or `abandon`.
        """
        if not self._database.is_exclusive:
            await self.shards.renew_if_due()
        self._wake_events[queue_name].clear()  # before reading: a job that is enqueued meanwhile sets it again
        await self._read_new_jobs(queue_name)
        now_ms = self._clock.now_ms()
        claimed = self._schedulers[queue_name].claim_due(
            at_most=at_most, share=self.plans[queue_name].share, now_ms=now_ms, may_start=may_start
        )
        if claimed:
            counts = self.counts[queue_name]
            counts.claimed += len(claimed)
            for job in claimed:
                counts.lag_s.add((now_ms - job.due_ms) / 1000)
        return claimed

    def count_jobs_in_memory(self, queue_name: QueueName) -> int:
        """Return how many jobs of a queue this process has read and not ended."""
        return sum(group.jobs_in_memory for group in self._schedulers[queue_name].groups.values())

    def explain_wait(self, queue_name: QueueName, group: str, position: int) -> NotBefore | None:
        """Return why a job waits; None where it is being worked or may start, or another process works its group."""
        waiting_group = self._schedulers[queue_name].groups.get(group)
        if waiting_group is None:
            return None
        return waiting_group.explain_wait(position, self._clock.now_ms(), self.plans[queue_name].share)

    def list_waits(self, queue_name: QueueName) -> Iterator[tuple[ConcurrencyGroup, NotBefore]]:
        """Yield the groups whose due jobs are not started now, as far as this process works them, each with why."""
        now_ms, share = self._clock.now_ms(), self.plans[queue_name].share
        for group in self._schedulers[queue_name].groups.values():
            wait = group.current_wait(now_ms, share)
            if wait is not None:
                yield group, wait

    def wait(self, queue_name: QueueName) -> Coroutine[Any, Any, None]:
        """Wait until there may be something to claim that was not there at the last claim."""
        due_ms = self._schedulers[queue_name].next_due_ms(self.plans[queue_name].share)
        # A clock that is moved makes due what is in memory: that is looked at every few seconds in any case
        poll_ms = self._poll_ms(queue_name) if due_ms is None else POLL_MS
        return self._clock.wait(self._wake_events[queue_name], until_ms=due_ms, poll_ms=poll_ms)

    def has_more_to_read(self, queue_name: QueueName) -> bool:
        """True if the store has more jobs of a group of which the last claim has read some."""
        for group in self._schedulers[queue_name].groups.values():  # noqa: SIM110  after each claim
            if group.more and group.needs_read:
                return True
        return False

    def is_idle(self, queue_name: QueueName) -> bool:
        """True if the queue has been scanned and nothing has been enqueued since."""
        return (
            queue_name in self._scanned_ms
            and not self._wake_events[queue_name].is_set()
            and not self._schedulers[queue_name].is_reading
        )

    def next_due_ms(self, queue_name: QueueName) -> int | None:
        """Return when the next job in memory may be worked; None when there is none."""
        return self._schedulers[queue_name].next_due_ms(self.plans[queue_name].share)

    def wake_worker(self, queue_name: QueueName) -> None:
        """Make `wait` return."""
        self._wake_events[queue_name].set()

    def add_wake_listener(self, queue_name: QueueName, listener: WakeListener) -> None:
        """Call `listener`, on the event loop, with each group of the queue that has new jobs or is notified."""
        self._wake_listeners.setdefault(queue_name, []).append(listener)

    def clear_not_before(self, queue_name: QueueName, group: str) -> None:
        """Let a group that was made to wait be claimed from at once."""
        waiting_group = self._schedulers[queue_name].groups.get(group)
        if waiting_group is not None and waiting_group.clear_not_before():
            self._wake_events[queue_name].set()

    def make_retries_due(self, queue_name: QueueName, group: str, *, with_detached: bool = True) -> None:
        """Make the jobs of a group due that wait for another attempt: what kept them from succeeding has ended.

        Nothing is written: after a crash each has its own due time again.

        Args:
            with_detached: also those that have failed while others succeeded.
        """
        waiting_group = self._schedulers[queue_name].groups.get(group)
        if waiting_group is not None:
            waiting_group.make_retries_due(self._clock.now_ms(), with_detached=with_detached)
            self._wake_events[queue_name].set()

    async def mark_in_flight(self, jobs: Sequence[Job]) -> list[Job]:
        """Mark jobs, on disk, as being sent right now; return those that are marked.

        A job that is not among them is another process's by now: it must not be sent, and is dropped. All are
        marked together: where one cannot be, the error is raised, none counts as in flight, and none may be sent.
        """
        marks = [InFlightMark(job.position, self.fence_of(job), job.callback_id) for job in jobs]
        marked: list[Job] = []
        for job, is_marked in zip(jobs, await self._database.join(mark_in_flight, marks), strict=True):
            if is_marked:
                job.in_flight = True
                marked.append(job)
            else:
                self.shards.mark_lease_lost(job.queue, [job.concurrency_group])
        return marked

    async def complete(self, job: Job, write: Callable[[Any, Sequence[Item]], Sequence[Any]], item: Item) -> bool:
        """Pass the item to a write that deletes the job with the state it changes; then free its ordering key.

        The write is repeated while the store cannot be reached: what has happened must be recorded.

        Returns:
            False if the lease was lost by then: another process may work the job again.
        """
        try:
            await self._database.join(write, item)
        except StoreUnavailable:
            await asyncio.sleep(STORE_RETRY_S)
            await self.write_until_reached(write, item)
        was_held = self.is_lease_held(job)
        self.counts[job.queue].completed += 1
        self._end_job(job, is_retry=False)
        return was_held

    async def complete_all(
        self, job_items: Sequence[tuple[Job, Item]], write: Callable[[Any, Sequence[Item]], Sequence[Any]]
    ) -> list[tuple[Job, BaseException]]:
        """Complete many jobs at once; return those that failed, each with its own error, still to be ended."""
        results = await self._database.join_all(write, [item for _, item in job_items])
        failed: list[tuple[Job, BaseException]] = []
        for (job, _), result in zip(job_items, results, strict=True):
            if isinstance(result, BaseException):
                failed.append((job, result))
            else:
                self.counts[job.queue].completed += 1
                self._end_job(job, is_retry=False)
        return failed

    def times_made_due(self, job: Job) -> int:
        """Return how often the retries of a claimed job's group were made due; for `retry_later`."""
        group = self._schedulers[job.queue].group_of(job)
        return 0 if group is None else group.times_made_due

    async def retry_later(
        self,
        job: Job,
        *,
        due_ms: int,
        note: str,
        detach: bool = False,
        trace_event: MessageTraceEvent | None = None,
        made_due: int | None = None,
    ) -> None:
        """Return a job to its queue, to be tried again from `due_ms` on.

        Args:
            due_ms: not before then.
            note: why; stored.
            detach: its followers no longer wait for it.
            trace_event: an event in the trace of the job's message; written in the same transaction.
            made_due: `times_made_due` when it failed: if the retries of its group were made due since, it is due at once.
        """
        retry = JobRetry(
            job.position,
            due_ms,
            job.attempt + 1,
            job.defects,
            JobState.OPEN,
            job.is_detached or detach,
            note,
            self.fence_of(job),
            job.callback_id,
            trace_event,
        )
        if not await self.write_until_reached(retry_jobs_later, retry):
            self.shards.mark_lease_lost(job.queue, [job.concurrency_group])
        self.counts[job.queue].retried_later += 1
        # The write may have taken as long as the store was away
        if made_due is not None and made_due != self.times_made_due(job) and not (job.is_detached or detach):
            due_ms = min(due_ms, self._clock.now_ms())
        job.due_ms = due_ms
        job.attempt += 1
        if tracer.is_enabled and job.subject.kind is SubjectKind.MESSAGE:
            tracer.record(
                TraceStep.RETRY_LATER, job.subject.id, position=job.position, attempt=job.attempt, due_ms=due_ms
            )
        job.in_flight = job.was_in_flight = False
        self._end_job(job, is_retry=True, detach=detach)

    async def retry_after_defect(self, job: Job, error: BaseException) -> None:
        """Return a job on which our own code failed to its queue; after five defects it is a dead letter.

        A permanent defect makes it one at once.

        Its followers continue once it is a dead letter. A job in flight stays in flight: whether it was
        sent is then as uncertain as after a crash.
        """
        # Set before anything can fail: a job that may have been sent never counts as unsent again.
        job.was_in_flight = job.was_in_flight or job.in_flight
        defects = job.defects + 1
        is_dead_letter = defects > len(DEFECT_DELAYS_S) or isinstance(error, PermanentDefect)
        self._log.error(
            "defect",
            queue=job.queue.name,
            position=job.position,
            ref=job.subject.ref,
            defects=defects,
            dead_letter=is_dead_letter,
            exc_info=error,
        )
        state = _STATE_AFTER_DEFECT[job.was_in_flight, is_dead_letter]
        delay_ms = 0 if is_dead_letter else 1000 * DEFECT_DELAYS_S[defects - 1]
        due_ms = self._clock.now_ms() + delay_ms
        retry = JobRetry(
            job.position,
            due_ms,
            job.attempt,
            defects,
            state,
            job.is_detached,
            repr(error),
            self.fence_of(job),
            job.callback_id,
        )
        if not await self._database.join(retry_jobs_later, retry):
            self.shards.mark_lease_lost(job.queue, [job.concurrency_group])
        counts = self.counts[job.queue]
        counts.defects += 1
        counts.dead_letters += is_dead_letter
        # Counted once it is written: an unreachable store is not a defect.
        job.due_ms, job.defects = due_ms, defects
        self._end_job(job, is_retry=not is_dead_letter)

    def park(self, job: Job) -> None:
        """Return a job that waits for something in this process, until `unpark`.

        It takes no slot, and stays the head of its key. Nothing is written: after a crash it is simply
        claimed.
        """
        job.is_parked = self._schedulers[job.queue].group_of(job) is not None
        self._end_job(job, is_retry=True)

    def unpark(self, job: Job) -> bool:
        """Let a parked job be claimed again; return False where another process works its group now."""
        job.is_parked = False
        group = self._schedulers[job.queue].group_of(job)
        if group is None:
            return False
        group.offer(job)
        self._wake_events[job.queue].set()
        return True

    def is_lease_held(self, job: Job) -> bool:
        """True if a claimed job may still be worked; checked just before anything is sent outside.

        A process that was stopped for longer than its leases last finds here that others have taken over.
        """
        if self._database.is_exclusive:
            return True
        return self.shards.are_leases_valid and self._schedulers[job.queue].group_of(job) is not None

    def lease_number(self, queue_name: QueueName, group: str) -> int:
        """Return a number that is another one once other processes may have worked a group in between."""
        taken = self.shards.taken[queue_name]
        return taken[shard_of(group)] if taken else 0

    def abandon(self, job: Job) -> None:
        """Return a job whose work was not begun, or cannot be recorded; nothing is written."""
        job.was_in_flight = job.was_in_flight or job.in_flight
        self.counts[job.queue].abandoned += 1
        self._end_job(job, is_retry=True)

    def _end_job(self, job: Job, *, is_retry: bool, detach: bool = False) -> None:
        """End the work on a job, and let the stage look for more where that may have made room."""
        scheduler = self._schedulers[job.queue]
        group = scheduler.groups.get(job.concurrency_group)
        if group is None or not group.complete(job, is_retry=is_retry, detach=detach):
            group = None
            scheduler.complete_dropped(job)
        if not self._database.is_exclusive and (group is None or not group.in_flight):
            self.shards.renew_if_leaving(job.queue, job.concurrency_group)
        if group is None or group.ready or (group.more and group.needs_read):
            self._wake_events[job.queue].set()

    def fence_of(self, job: Job) -> ShardFence:
        """Return what restricts a write to this process as long as it holds the lease of a job's shard."""
        shard = None if self._database.is_exclusive else shard_of(job.concurrency_group)
        return ShardFence(job.queue, shard, self._holder)

    async def write_until_reached(self, write: Callable[[Any, Sequence[Item]], Sequence[Result]], item: Item) -> Result:
        """Write, and retry while the store cannot be reached: no other process knows what is being written."""
        while True:
            try:
                return await self._database.join(write, item)
            except StoreUnavailable:
                await asyncio.sleep(STORE_RETRY_S)

    # Reading.

    async def _read_new_jobs(self, queue_name: QueueName) -> None:
        """Read new jobs of a queue's groups, as far as there is room; list all its groups when that is due."""
        scheduler = self._schedulers[queue_name]
        real_ms = self._clock.real_ms()
        scanned_ms = self._scanned_ms.get(queue_name)
        if scanned_ms is None or real_ms - scanned_ms >= self._poll_ms(queue_name):
            self._scanned_ms[queue_name] = real_ms
            scheduler.rescan(real_ms)
            names = await self._database.read(list_groups, queue_name)
            scheduler.wake(
                (name for name in names if shard_of(name) in self.shards.held[queue_name]),
                partial(self.shards.cooldown_end_ms, queue_name),
            )
            if self._database.is_exclusive and queue_name in self._scanned_ms:
                self._fully_known.add(queue_name)
        groups: list[ConcurrencyGroup] = []
        for group in scheduler.groups.values():
            if group.more and group.needs_read:  # nearly never: a comprehension would cost more
                groups.append(group)  # noqa: PERF401
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
                group.more, group.is_reading = True, False
            raise
        for group, jobs in jobs_by_group:
            self._correct_due(queue_name, jobs)
            group.end_read(jobs, real_ms=real_ms, transactions=read.transactions)

    def _poll_ms(self, queue_name: QueueName) -> int:
        """Return after how long a queue is searched again, in real time."""
        return KNOWN_POLL_MS if queue_name in self._fully_known else POLL_MS

    def _correct_due(self, queue_name: QueueName, jobs: Iterable[Job]) -> None:
        """Make jobs due now whose due time means nothing now.

        It comes from a clock that ran ahead, another process's or ours; or the job was in flight, and it is that of a
        retry which was made due earlier, in the memory of the process that sent it.
        """
        ahead_ms = self.plans[queue_name].ahead_ms
        now_ms = self._clock.now_ms()
        for job in jobs:
            is_ahead = ahead_ms is not None and job.due_ms > now_ms + ahead_ms and not job.attempt and not job.defects
            if is_ahead or (job.was_in_flight and job.due_ms > now_ms):
                job.due_ms = now_ms

    def _receive_wake_ups(self, appended: EnqueuedJobs) -> None:
        for (queue_name, group), new_jobs in appended.jobs.items():
            # Jobs that have to be read may come before the new ones: then all are read, in order.
            if (queue_name, group) in appended.groups or not self._enqueue_in_memory(queue_name, group, new_jobs):
                appended.groups.add((queue_name, group))
        for queue_name, group in sorted(appended.groups):
            is_change = queue_name is QueueName.CALLBACKS and not is_live_group(queue_name, group)
            if not self._wake_group(queue_name, group) or is_change:  # every process has subscriptions in memory
                self._database.notify(JOBS_ENQUEUED_SUBJECT, f"{int(queue_name)} {group}")
        for queue_name, group in sorted(appended.due_groups):
            if shard_of(group) in self.shards.held[queue_name]:
                self.make_retries_due(queue_name, group)
            else:
                self._database.notify(RETRIES_DUE_SUBJECT, f"{int(queue_name)} {group}")

    def _enqueue_in_memory(self, queue_name: QueueName, group: str, new_jobs: Sequence[tuple[int, NewJob]]) -> bool:
        """Hold new jobs without reading them; return False where the store must be read."""
        if queue_name not in self._fully_known:
            return False
        jobs = make_jobs(new_jobs)
        self._correct_due(queue_name, jobs)
        groups = self._schedulers[queue_name].groups
        group_in_memory = groups.get(group)
        if group_in_memory is None:  # every group that has jobs in the store is known, so it has no others
            group_in_memory = groups[group] = ConcurrencyGroup(group, is_read=True)
        if not group_in_memory.enqueue(jobs):
            return False
        self._wake_events[queue_name].set()
        for listener in self._wake_listeners.get(queue_name, ()):
            listener(group)
        return True

    def _receive_notification(self, subject: str, payload: str) -> None:
        if subject in (JOBS_ENQUEUED_SUBJECT, RETRIES_DUE_SUBJECT):
            number, _, group = payload.partition(" ")
            react = self._wake_group if subject == JOBS_ENQUEUED_SUBJECT else self.make_retries_due
            react(QueueName(int(number)), group)
        elif subject == NOTIFICATIONS_MISSED:
            for queue_name in QueueName:
                self._rescan(queue_name)

    def _wake_group(self, queue_name: QueueName, group: str) -> bool:
        """Have a group read; return False where another process works it.

        Listeners hear of it in any case: a change of a subscription is reported for the group of its replays, whose
        shard may be another process's than that of its callbacks.
        """
        is_ours = shard_of(group) in self.shards.held[queue_name]
        if is_ours:
            self._schedulers[queue_name].wake([group], partial(self.shards.cooldown_end_ms, queue_name))
            self._wake_events[queue_name].set()
        for listener in self._wake_listeners.get(queue_name, ()):
            listener(group)
        return is_ours

    def _rescan(self, queue_name: QueueName) -> None:
        """Search the store again for every group that this process may work."""
        self._scanned_ms.pop(queue_name, None)
        self._fully_known.discard(queue_name)
        self._wake_events[queue_name].set()


_STATE_AFTER_DEFECT: Final = {  # of a job, as stored, by: may it have been sent, is it a dead letter
    (False, False): JobState.OPEN,
    (True, False): JobState.IN_FLIGHT,
    (False, True): JobState.DEAD_LETTER,
    (True, True): JobState.DEAD_LETTER_IN_FLIGHT,
}
