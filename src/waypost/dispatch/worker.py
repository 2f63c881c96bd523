"""Claims outbound jobs, marks them in flight, and passes each to its sender."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from waypost.base.telemetry.counters import CallCounts
from waypost.base.telemetry.tracing import TraceStep, tracer
from waypost.dispatch.batch import Batch, look_up, still_to_send
from waypost.dispatch.message_outcomes import MessageOutcomes, UnconfirmedEnd, app_of_message
from waypost.dispatch.message_sender import MessageSender
from waypost.dispatch.retries import Waiting
from waypost.dispatch.template_actions import TemplateActs
from waypost.queue.job import Job
from waypost.queue.queue import JobQueue
from waypost.queue.worker import Prepared, failing
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.messages.messages import FRESH, MessageRow, messages_by_ids
from waypost.store.queue.job_subjects import TEMPLATE_KINDS, SubjectKind


class Dispatch:
    """The work of the queue `outbound`."""

    def __init__(
        self,
        *,
        database: Database,
        queue: JobQueue,
        sender: MessageSender,
        template_acts: TemplateActs,
        waiting: Waiting,
    ) -> None:
        self._database = database
        self._queue = queue
        self._sender = sender
        self._template_acts = template_acts
        self._waiting = waiting

    @property
    def counts(self) -> CallCounts:
        """Messages sent to the operator, by outcome and class of the operator's code."""
        return self._sender.counts

    async def prepare(self, jobs: Sequence[Job]) -> Prepared:
        """Mark the jobs to be sent as in flight, on disk, and return the work of each job.

        A claim is only a lease. A job that was in flight when it is claimed again may already have been
        read by its recipient and is not sent again; one that was merely claimed was never sent (decision
        0006).
        """
        ids = {job.subject.id for job in jobs}
        untouched = {job.subject.id for job in jobs if _is_untouched(job)}
        known = self._database.fresh.take(FRESH, untouched)
        batch = await self._database.read(look_up, ids, known)
        to_send = [
            job
            for job in jobs
            if job.subject.kind is SubjectKind.MESSAGE
            and not job.was_in_flight
            and still_to_send(batch.messages.get(job.subject.id))
        ]
        # Errors on our side are found before the mark: after it, the outcome would be uncertain.
        unready = await self._sender.find_lines(to_send, batch)
        for job in jobs:
            failure = self._waiting.pop_failure(job)
            if failure is not None:
                batch.failures[job.position] = failure
        ready = [
            job
            for job in to_send
            if job.position not in unready and job.position not in batch.failures and job.position not in batch.quiet
        ]
        await self._sender.find_media(ready, batch)
        # A job whose media must be uploaded first is not being sent: its work is the upload, and then
        # it is claimed again.
        ready = [job for job in ready if not batch.media[job.position].missing]
        if ready:
            marked = await self._queue.mark_in_flight(ready)
            batch.lost.update(job.position for job in ready if job not in marked)
            if tracer.on:
                for job in marked:
                    tracer.record(TraceStep.IN_FLIGHT, job.subject.id, position=job.position, attempt=job.attempt)
        return [
            (job, failing(unready[job.position]) if job.position in unready else self._work_of(job, batch))
            for job in jobs
        ]

    def _work_of(self, job: Job, batch: Batch) -> Callable[[], Awaitable[None]]:
        if job.position in batch.lost:
            return partial(self._leave_to_another, job)
        if job.subject.kind in TEMPLATE_KINDS:
            failure = batch.failures.get(job.position)
            return lambda: self._template_acts.carry(job, batch.templates[job.subject.id], failure)
        return lambda: self._sender.carry(job, batch)

    async def _leave_to_another(self, job: Job) -> None:
        """Abandon a job that another process works now: the lease ran out before it could be sent."""
        self._queue.abandon(job)


class UnconfirmedMessages:
    """The work of the queue `unconfirmed`: messages that may have been sent."""

    def __init__(self, *, database: Database, queue: JobQueue, directory: Directory, messages: MessageOutcomes) -> None:
        self._database = database
        self._queue = queue
        self._directory = directory
        self._messages = messages

    async def prepare(self, jobs: Sequence[Job]) -> Prepared:
        """Return the work that fails each message that is still uncertain."""
        rows = await self._database.read(messages_by_ids, {job.subject.id for job in jobs})
        return [(job, lambda job=job: self._end(job, rows[job.subject.id])) for job in jobs]

    async def _end(self, job: Job, row: MessageRow) -> None:
        app = await app_of_message(self._directory, row)
        await self._queue.complete(job, self._messages.end_unconfirmed, UnconfirmedEnd(job.position, row.id, app))


def _is_untouched(job: Job) -> bool:
    """True if nothing can have changed since the job was enqueued."""
    return not (job.attempt or job.defects or job.was_in_flight)
