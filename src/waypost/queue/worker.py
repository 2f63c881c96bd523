"""The loop of every stage: claim as many jobs as there are free slots, work them concurrently, stop in order."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from waypost.base.telemetry.logs import log
from waypost.queue.concurrency_groups import MayStart
from waypost.queue.job import Job
from waypost.queue.queue import STORE_RETRY_S, JobQueue
from waypost.store.contract import StoreUnavailable
from waypost.store.queue.job_subjects import QueueName

JobWork = Callable[[], Awaitable[None]]
PreparedJobs = Sequence[tuple[Job, JobWork]]
PrepareJobs = Callable[[Sequence[Job]], Awaitable[PreparedJobs]]
"""Prepares a batch with few queries, and returns the work of each job. The work ends its job itself, by
`complete` or `retry_later`; jobs that are left out have been ended already.
"""


def failing_work(error: BaseException) -> JobWork:
    """Return work that raises the error with which a job's preparation failed: the defect is that job's alone."""

    async def work() -> None:
        raise error

    return work


class StageWorker:
    """Works one queue until it is stopped.

    A defect belongs to its job: that job is retried later and the loop continues.

    Args:
        queue_name: the one that it works.
        prepare: prepares a batch.
        may_start: decides whether a job may start; None: every one may.
        release: called with each job that has been started, once its work has ended.

    Attributes:
        active_jobs: number of jobs being worked.
    """

    def __init__(
        self,
        queue: JobQueue,
        queue_name: QueueName,
        prepare: PrepareJobs,
        *,
        may_start: MayStart | None = None,
        release: Callable[[Job], None] = lambda _: None,
    ) -> None:
        self._queue = queue
        self.queue_name = queue_name
        self._prepare = prepare
        self._may_start = may_start
        self._release = release
        self._max_in_flight = queue.plans[queue_name].in_flight
        self.active_jobs = 0
        self._slot_freed = asyncio.Event()  # set when a job has ended
        self._tasks: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._step_began_s: float | None = None
        self.failures = 0
        """How many turns of the loop in a row have failed."""
        self._log = log(queue_name.name.lower())

    @property
    def loop_busy_s(self) -> float:
        """Seconds that the loop has spent on its current step; 0 while it waits for jobs.

        While every slot is in use, it is the time since one became free.
        """
        return 0 if self._step_began_s is None else time.monotonic() - self._step_began_s

    @property
    def is_idle(self) -> bool:
        """True if no job is being claimed or worked, and every job that was enqueued has been read."""
        # A claim on several processes first renews leases, and meanwhile nothing else shows that a job is due.
        return self._step_began_s is None and self.active_jobs == 0 and self._queue.is_idle(self.queue_name)

    @property
    def next_due_ms(self) -> int | None:
        """Due time of the queue's next job; None when there is none."""
        return self._queue.next_due_ms(self.queue_name)

    async def run(self) -> None:
        """Work until `stop`; a store that cannot be reached makes it wait, not end."""
        while not self._stopping:
            try:
                self._step_began_s = time.monotonic()
                room = self._max_in_flight - self.active_jobs
                if room <= 0:
                    # Whatever is due or enqueued now, nothing can be claimed before a job ends.
                    self._slot_freed.clear()
                    await self._slot_freed.wait()
                    self.failures = 0
                    continue
                jobs = await self._queue.claim(self.queue_name, at_most=room, may_start=self._may_start)
                if self._stopping:
                    for job in jobs:
                        self._queue.abandon(job)
                    return
                if jobs:
                    self.active_jobs += len(jobs)
                    # One batch is prepared at a time; what becomes due meanwhile is the next batch, so that the
                    # queries and the mark of a batch are shared by more jobs the more there is to do.
                    batch = asyncio.create_task(self._run_batch(jobs))
                    self._tasks.add(batch)
                    batch.add_done_callback(self._tasks.discard)
                    await asyncio.wait([batch])
                if len(jobs) < room and not self._queue.has_more_to_read(self.queue_name):
                    self._step_began_s = None
                    await self._queue.wait(self.queue_name)
                self.failures = 0
            except asyncio.CancelledError:
                raise
            except Exception:  # noqa: BLE001  logged; the loop must outlive an unreachable store
                self.failures += 1
                self._log.exception("the store did not respond; trying again")
                await asyncio.sleep(1)

    async def stop(self, *, timeout_s: float) -> None:
        """Claim nothing more, and return when all running work has ended, or is cancelled."""
        self._stopping = True
        self._slot_freed.set()
        self._queue.wake_worker(self.queue_name)
        try:
            async with asyncio.timeout(timeout_s):
                while self._tasks:  # a batch that is being prepared starts more
                    await asyncio.wait(self._tasks)
        except TimeoutError:
            while self._tasks:
                for task in self._tasks:
                    task.cancel()
                await asyncio.wait(self._tasks)

    async def _run_batch(self, jobs: Sequence[Job]) -> None:
        try:
            prepared = await self._prepare(jobs)
        except Exception as error:  # noqa: BLE001  it belongs to each of these jobs
            prepared = [(job, failing_work(error)) for job in jobs]
        except BaseException:
            for job in jobs:
                self._release(job)
            raise
        self.active_jobs -= len(jobs) - len(prepared)
        loop, ended = asyncio.get_running_loop(), self._tasks.discard
        for job, work in prepared:
            task = loop.create_task(self._run_job(job, work))
            self._tasks.add(task)
            task.add_done_callback(ended)

    async def _run_job(self, job: Job, work: JobWork) -> None:
        failure: Exception | None = None
        try:
            await work()
        except Exception as error:  # noqa: BLE001  a defect belongs to its job
            failure = error
        finally:
            self._release(job)
        if failure is not None:
            await self._return_failed(job, failure)
        if self.active_jobs == self._max_in_flight:  # else nobody waits for a slot
            self._slot_freed.set()
        self.active_jobs -= 1
        if self._step_began_s is not None:
            self._step_began_s = time.monotonic()

    async def _return_failed(self, job: Job, error: Exception) -> None:
        """Return a job to its queue whose work has raised an error: a store that is away is not a defect."""
        try:
            if isinstance(error, StoreUnavailable):
                await asyncio.sleep(STORE_RETRY_S)
                self._queue.abandon(job)
            else:
                await self._queue.retry_after_defect(job, error)
        except Exception:  # noqa: BLE001  logged; the job is still in the store
            self._log.exception("a job could not be returned to its queue", position=job.position)
            await asyncio.sleep(1)
            self._queue.abandon(job)
