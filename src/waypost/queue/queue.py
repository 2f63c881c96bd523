"""The journal on a store: claims are held in memory under a lease, everything else is written.

A claim needs no write, because only the process that leases a shard works its groups. What a crash
must not lose is written: the entry itself, the in-hand mark, a release, and settling.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from waypost.base.clock import Clock
from waypost.base.telemetry.counters import QueueCounters
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.tracing import TraceStep, tracer
from waypost.queue.concurrency_groups import ConcurrencyGroup, PaceCheck
from waypost.queue.job import Job
from waypost.queue.plans import DEFECT_DELAYS_S, QUEUE_PLANS, QueuePlan, shard_of
from waypost.queue.reader import POLL_MS, Heard, QueueReader
from waypost.queue.scheduling import QueueScheduler
from waypost.queue.shards import Shards
from waypost.store.contract import StoreAway
from waypost.store.database import Database
from waypost.store.queue.job_subjects import SubjectKind
from waypost.store.queue.jobs import (
    InFlightMark,
    JobRetry,
    JobState,
    QueueName,
    ShardFence,
    mark_in_flight,
    retry_jobs_later,
)
from waypost.store.trace_events import MessageTraceEvent

Item = TypeVar("Item")
Result = TypeVar("Result")

AWAY_S: Final = 0.5
"""How long after a store could not be reached it is asked again."""


class JobQueue:
    """Queues of entries, claimed in batches, one at a time per order key.

    Args:
        database: open.
        clock: `now_ms` decides what is due; leases follow `real_ms`.
        holder: names this process in leases.
        lease_ms: how long a lease lasts unless renewed; unused where the store has one process.
        plans: how each queue is shared out.
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
        self._waiting: dict[QueueName, QueueScheduler] = {queue_name: QueueScheduler() for queue_name in QueueName}
        self.shards = Shards(
            database, clock, self._waiting, plans=plans, holder=holder, lease_ms=lease_ms, queue_names=queue_names
        )
        self._woken: dict[QueueName, asyncio.Event] = {queue_name: asyncio.Event() for queue_name in QueueName}
        self._feed = QueueReader(database, clock, self._waiting, self.shards, plans=plans, rouse=self.wake_worker)
        self.counts: dict[QueueName, QueueCounters] = {queue_name: QueueCounters() for queue_name in QueueName}
        self._log = log("queue")

    async def open(self) -> None:
        """Begin to hear of what is appended; where the store has one process, hold every shard."""
        self._feed.open()
        await self.shards.open()

    def start(self) -> None:
        """Begin to take work: a process that only opens the store takes none."""
        self.shards.start()

    async def close(self) -> None:
        """Give the leases back, so that others go on at once."""
        await self.shards.close()

    async def claim(self, queue_name: QueueName, *, at_most: int, pace: PaceCheck | None = None) -> list[Job]:
        """Due entries to work now: one of each key, oldest first, no group beyond its share.

        Each must be ended by `settle`, `release`, `retry_after_defect` or `abandoned`.
        """
        await self.shards.keep()
        self._woken[queue_name].clear()  # before reading: what is appended meanwhile sets it again
        await self._feed.read_on(queue_name)
        now_ms = self._clock.now_ms()
        taken = self._waiting[queue_name].claim_due(
            at_most=at_most, share=self.plans[queue_name].share, now_ms=now_ms, pace=pace
        )
        counts = self.counts[queue_name]
        counts.claimed += len(taken)
        for job in taken:
            counts.lag_s.add((now_ms - job.due_ms) / 1000)
        return taken

    def count_claimed(self, queue_name: QueueName) -> int:
        """How many entries of a queue this process has read and not ended."""
        return sum(group.claimed for group in self._waiting[queue_name].groups.values())

    async def wait(self, queue_name: QueueName) -> None:
        """Return when there may be something to claim."""
        due_ms = self._waiting[queue_name].next_due_ms(self.plans[queue_name].share)
        await self._clock.wait(self._woken[queue_name], until_ms=due_ms, poll_ms=POLL_MS)

    def is_idle(self, queue_name: QueueName) -> bool:
        """Whether the queue has been looked through and nothing has been appended since."""
        return (
            self._feed.has_scanned(queue_name)
            and not self._woken[queue_name].is_set()
            and not self._waiting[queue_name].is_reading
        )

    def next_due_ms(self, queue_name: QueueName) -> int | None:
        """When the next entry that this process holds may be worked; None when it holds none."""
        return self._waiting[queue_name].next_due_ms(self.plans[queue_name].share)

    def wake_worker(self, queue_name: QueueName) -> None:
        """Let `wait` return."""
        self._woken[queue_name].set()

    def on_wake(self, queue_name: QueueName, heard: Heard) -> None:
        """Call this, on the loop, with each group of the queue that something was appended to, or told of."""
        self._feed.on_wake(queue_name, heard)

    def end_hold(self, queue_name: QueueName, group: str) -> None:
        """Let a group that was held be asked for again at once."""
        held = self._waiting[queue_name].groups.get(group)
        if held is not None and held.unhold():
            self._woken[queue_name].set()

    async def mark_in_flight(self, jobs: Sequence[Job]) -> list[Job]:
        """Mark entries, on disk, as being sent right now; give those that are marked.

        One that is not among them is another process's by now: it may not be sent, and is let go.
        When a mark cannot be written, that is raised once all have been tried. None counts as in
        hand then, and none may be sent.
        """
        marks = [InFlightMark(job.position, self._fence(job)) for job in jobs]
        written = await self._database.join_all(mark_in_flight, marks)
        for mark in written:
            if isinstance(mark, BaseException):
                raise mark
        marked = [job for job, mark in zip(jobs, written, strict=True) if mark]
        if len(marked) < len(jobs):
            lost = [job for job, mark in zip(jobs, written, strict=True) if not mark]
            self.shards.mark_lease_lost(lost[0].queue, {job.concurrency_group for job in lost})
        for job in marked:
            job.in_flight = True
        return marked

    async def complete(self, job: Job, work: Callable[[Any, Sequence[Item]], Sequence[Any]], item: Item) -> None:
        """Hand the item to a write that deletes the entry with the state it changes; then let the key go on.

        What has happened is written down however long the store is away.
        """
        await self._until_written(work, item)
        self.counts[job.queue].completed += 1
        self._end(job, again=False)

    async def complete_all(
        self, pieces: Sequence[tuple[Job, Item]], work: Callable[[Any, Sequence[Item]], Sequence[Any]]
    ) -> list[tuple[Job, BaseException]]:
        """Settle many at once; give those that failed, each with its own error, still to be ended."""
        results = await self._database.join_all(work, [item for _, item in pieces])
        failed: list[tuple[Job, BaseException]] = []
        for (job, _), result in zip(pieces, results, strict=True):
            if isinstance(result, BaseException):
                failed.append((job, result))
            else:
                self.counts[job.queue].completed += 1
                self._end(job, again=False)
        return failed

    async def retry_later(
        self, job: Job, *, due_ms: int, note: str, detach: bool = False, news: MessageTraceEvent | None = None
    ) -> None:
        """Give an entry back, to be tried again from `due_ms` on.

        Args:
            job: claimed.
            due_ms: not before then.
            note: why; kept.
            detach: its followers wait for it no longer.
            news: a line of the trace of the message that it carries; written in the same transaction.
        """
        release = JobRetry(
            job.position,
            due_ms,
            job.attempt + 1,
            job.defects,
            JobState.OPEN,
            job.is_detached or detach,
            note,
            self._fence(job),
            news,
        )
        if not await self._until_written(retry_jobs_later, release):
            self.shards.mark_lease_lost(job.queue, [job.concurrency_group])
        self.counts[job.queue].retried_later += 1
        job.due_ms = due_ms
        job.attempt += 1
        if tracer.on and job.subject.kind is SubjectKind.MESSAGE:
            tracer.record(
                TraceStep.RETRY_LATER, job.subject.id, position=job.position, attempt=job.attempt, due_ms=due_ms
            )
        job.in_flight = job.was_in_flight = False
        group = self._waiting[job.queue].group_of(job)
        if detach and group is not None:
            group.detach(job)
            self._has_ended(job, group)
        else:
            self._end(job, again=True)

    async def retry_after_defect(self, job: Job, error: BaseException) -> None:
        """Give back an entry on which our own code failed; after five times, set it aside.

        Its followers go on once it is set aside. An entry in hand stays in hand: whether it was
        sent is then as uncertain as after a crash.
        """
        # Set before anything can fail: what may have been sent is never taken for unsent again.
        job.was_in_flight = job.was_in_flight or job.in_flight
        defects = job.defects + 1
        is_dead_letter = defects > len(DEFECT_DELAYS_S)
        self._log.error(
            "defect",
            queue=job.queue.name,
            position=job.position,
            ref=job.subject.ref,
            defects=defects,
            set_aside=is_dead_letter,
            exc_info=error,
        )
        state = _LEFT[job.was_in_flight, is_dead_letter]
        delay_ms = 0 if is_dead_letter else 1000 * DEFECT_DELAYS_S[defects - 1]
        due_ms = self._clock.now_ms() + delay_ms
        release = JobRetry(
            job.position, due_ms, job.attempt, defects, state, job.is_detached, repr(error), self._fence(job)
        )
        if not await self._database.join(retry_jobs_later, release):
            self.shards.mark_lease_lost(job.queue, [job.concurrency_group])
        counts = self.counts[job.queue]
        counts.defects += 1
        counts.dead_letters += is_dead_letter
        # Counted once it is written: a store that is away is nobody's defect.
        job.due_ms, job.defects = due_ms, defects
        self._end(job, again=not is_dead_letter)

    def park(self, job: Job) -> None:
        """Give back an entry that waits for something of this process, until `unpark`.

        It takes no place, and stays the head of its key. Nothing is written: after a crash it is
        simply claimed.
        """
        group = self._waiting[job.queue].group_of(job)
        if group is None:
            self._end(job, again=True)
            return
        group.park()
        self._has_ended(job, group)

    def unpark(self, job: Job) -> bool:
        """Let a parked entry be claimed again; false where another process works its group now."""
        group = self._waiting[job.queue].group_of(job)
        if group is None:
            return False
        group.unpark(job)
        self._woken[job.queue].set()
        return True

    def is_ours(self, job: Job) -> bool:
        """Whether a claimed entry may still be worked: asked just before something leaves for outside.

        A process that was stopped for longer than its leases last finds here that others went on.
        """
        if self._database.sole:
            return True
        return self.shards.is_kept and self._waiting[job.queue].group_of(job) is not None

    def abandon(self, job: Job) -> None:
        """Give back an entry whose work was not begun, or cannot be written down; nothing is written."""
        job.was_in_flight = job.was_in_flight or job.in_flight
        self.counts[job.queue].abandoned += 1
        self._end(job, again=True)

    def _end(self, job: Job, *, again: bool) -> None:
        group = self._waiting[job.queue].group_of(job)
        if group is None:  # its lease was lost meanwhile
            self._waiting[job.queue].ended_elsewhere(job)
        else:
            group.complete(job, again=again)
        self._has_ended(job, group)

    def _has_ended(self, job: Job, group: ConcurrencyGroup | None) -> None:
        if group is None or not group.in_flight:
            self.shards.has_ended(job.queue, job.concurrency_group)
        self._woken[job.queue].set()

    def _fence(self, job: Job) -> ShardFence:
        shard = None if self._database.sole else shard_of(job.concurrency_group)
        return ShardFence(job.queue, shard, self._holder)

    async def _until_written(self, work: Callable[[Any, Sequence[Item]], Sequence[Result]], item: Item) -> Result:
        """Write, however often the store is away meanwhile: nobody else knows what is being written."""
        while True:
            try:
                return await self._database.join(work, item)
            except StoreAway:
                await asyncio.sleep(AWAY_S)


# fmt: off
_LEFT: Final = {  # how an entry with a defect is left in the store: may it have been sent, is it set aside
    (False, False): JobState.OPEN,
    (True,  False): JobState.IN_FLIGHT,
    (False, True):  JobState.DEAD_LETTER,
    (True,  True):  JobState.DEAD_LETTER_IN_FLIGHT,
}
# fmt: on
