"""The loop every stage runs: claim what there is room for, work it side by side, stop in order."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from waypost.base.telemetry.logs import log
from waypost.queue.concurrency_groups import PaceCheck
from waypost.queue.job import Job
from waypost.queue.queue import AWAY_S, JobQueue
from waypost.store.contract import StoreAway
from waypost.store.queue.jobs import QueueName

Work = Callable[[], Awaitable[None]]
Prepared = Sequence[tuple[Job, Work]]
Prepare = Callable[[Sequence[Job]], Awaitable[Prepared]]
"""Gets a batch ready with few look-ups, and gives the work of each entry. Each piece of work ends its
entry itself, by `settle` or `release`; entries left out have been ended already."""


def failing(error: BaseException) -> Work:
    """The work of an entry on which its preparation failed already: the defect is that entry's alone."""

    async def work() -> None:
        raise error

    return work


class StageWorker:
    """Works one queue until told to stop.

    A defect belongs to its entry: that one is released with a delay and the loop goes on.
    """

    def __init__(
        self, queue: JobQueue, queue_name: QueueName, prepare: Prepare, *, pace: PaceCheck | None = None
    ) -> None:
        self._queue = queue
        self._queue_name = queue_name
        self._prepare = prepare
        self._pace = pace
        self._in_flight = queue.plans[queue_name].in_flight
        self._busy = 0
        self._freed = asyncio.Event()  # set when an entry has ended
        self._working: set[asyncio.Task[None]] = set()
        self._stopping = False
        self._since_s: float | None = None
        self.failures = 0
        """How many turns in a row have failed."""
        self._log = log(queue_name.name.lower())

    @property
    def queue_name(self) -> QueueName:
        """The one it works."""
        return self._queue_name

    @property
    def at_it_for_s(self) -> float:
        """How long the loop has been at what it does now; 0 while it waits for something to do.

        While every place is taken it is the time since one became free.
        """
        return 0 if self._since_s is None else time.monotonic() - self._since_s

    @property
    def busy(self) -> int:
        """How many entries are being worked."""
        return self._busy

    @property
    def is_idle(self) -> bool:
        """Whether nothing is being worked, and what was appended has been looked at."""
        return self._busy == 0 and self._queue.is_idle(self._queue_name)

    @property
    def next_due_ms(self) -> int | None:
        """When the next entry of the queue is due; None when there is none."""
        return self._queue.next_due_ms(self._queue_name)

    async def run(self) -> None:
        """Work until `stop`; a store that cannot be reached makes it wait, not end."""
        while not self._stopping:
            try:
                await self._claim_and_start()
                self.failures = 0
            except asyncio.CancelledError:
                raise
            except Exception:  # noqa: BLE001  logged; the loop must outlive a store that is away
                self.failures += 1
                self._log.exception("the store did not answer; trying again")
                await asyncio.sleep(1)

    async def stop(self, *, within_s: float) -> None:
        """Claim nothing more, and return when what is being worked has ended, or is cut off."""
        self._stopping = True
        self._freed.set()
        self._queue.wake_worker(self._queue_name)
        try:
            async with asyncio.timeout(within_s):
                while self._working:  # a batch that is being prepared starts more
                    await asyncio.wait(self._working)
        except TimeoutError:
            while self._working:
                for task in self._working:
                    task.cancel()
                await asyncio.wait(self._working)

    async def _claim_and_start(self) -> None:
        self._since_s = time.monotonic()
        room = self._in_flight - self._busy
        if room <= 0:
            # Whatever is due or appended now, nothing can be claimed before an entry ends.
            self._freed.clear()
            await self._freed.wait()
            return
        jobs = await self._queue.claim(self._queue_name, at_most=room, pace=self._pace)
        if self._stopping:
            for job in jobs:
                self._queue.abandon(job)
            return
        if not jobs:
            self._since_s = None
            await self._queue.wait(self._queue_name)
            return
        self._busy += len(jobs)
        # One batch is prepared at a time; what becomes due meanwhile is the next batch, so that the
        # look-ups and the mark of a batch are shared by more entries the more there is to do.
        await asyncio.wait([self._start(self._begin(jobs))])

    async def _begin(self, jobs: Sequence[Job]) -> None:
        try:
            prepared = await self._prepare(jobs)
        except StoreAway:  # nobody's defect, and nothing of it has been sent
            for job in jobs:
                self._start(self._abandon(job))
            return
        except Exception as error:  # noqa: BLE001  a defect belongs to its entries
            for job in jobs:
                self._start(self._retry_after_defect(job, error))
            return
        working = {id(job) for job, _ in prepared}
        self._busy -= sum(id(job) not in working for job in jobs)
        for job, work in prepared:
            self._start(self._work(job, work))

    async def _work(self, job: Job, work: Work) -> None:
        try:
            await work()
        except StoreAway:
            await self._abandon(job)
        except Exception as error:  # noqa: BLE001  a defect belongs to its entry
            await self._retry_after_defect(job, error)
        else:
            self._done()

    async def _abandon(self, job: Job) -> None:
        """Give back an entry that a store which is away kept from being worked."""
        await asyncio.sleep(AWAY_S)
        self._queue.abandon(job)
        self._done()

    async def _retry_after_defect(self, job: Job, error: BaseException) -> None:
        try:
            await self._queue.retry_after_defect(job, error)
        except Exception:  # noqa: BLE001  logged; the entry is still in the store
            self._log.exception("an entry could not be given back", position=job.position)
            await asyncio.sleep(1)
            self._queue.abandon(job)
        finally:
            self._done()

    def _done(self) -> None:
        self._busy -= 1
        if self._since_s is not None:
            self._since_s = time.monotonic()
        self._freed.set()
        self._queue.wake_worker(self._queue_name)

    def _start(self, work: Awaitable[None]) -> asyncio.Future[None]:
        task = asyncio.ensure_future(work)
        self._working.add(task)
        task.add_done_callback(self._working.discard)
        return task
