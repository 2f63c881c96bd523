"""Claims outbound jobs, marks them in flight, and passes each to its sender."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from waypost.base.telemetry.counters import CallCounters
from waypost.base.telemetry.tracing import TraceStep, tracer
from waypost.dispatch.message_outcomes import MessageOutcomes, UnconfirmedTimeout, app_of_message
from waypost.dispatch.message_sender import MessageSender, OutboundBatch, is_unsent, read_outbound_batch
from waypost.dispatch.operator_circuits import OperatorCircuits
from waypost.dispatch.retries import OutboundRetries
from waypost.dispatch.slots import OperatorSlots
from waypost.dispatch.template_actions import TemplateActions
from waypost.domain.message import reply_target_id
from waypost.domain.templates.template import Template
from waypost.queue.job import Job
from waypost.queue.queue import JobQueue
from waypost.queue.worker import PreparedJobs, failing_work
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.encoding import decode_content
from waypost.store.messages.messages import CACHED_MESSAGES, MessageRow, messages_by_ids
from waypost.store.queue.job_subjects import TEMPLATE_KINDS, SubjectKind


class OutboundDispatcher:
    """The work of the queue `outbound`."""

    def __init__(
        self,
        *,
        database: Database,
        queue: JobQueue,
        directory: Directory,
        sender: MessageSender,
        circuits: OperatorCircuits,
        slots: OperatorSlots,
        template_actions: TemplateActions,
        retries: OutboundRetries,
    ) -> None:
        self._database = database
        self._queue = queue
        self._directory = directory
        self._sender = sender
        self._circuits = circuits
        self._slots = slots
        self._template_actions = template_actions
        self._retries = retries

    @property
    def counts(self) -> CallCounters:
        """Messages sent to the operator, by outcome and class of the operator's code."""
        return self._sender.counts

    def release(self, job: Job) -> None:
        """Return what a job took when it was admitted: it has ended, or is parked."""
        if not job.is_parked:
            self._circuits.release(job)
        self._slots.release(job)

    async def prepare(self, jobs: Sequence[Job]) -> PreparedJobs:
        """Mark the jobs to be sent as in flight, on disk, and return the work of each job.

        A claim is only a lease. A job that was in flight when it is claimed again may already have been
        read by its recipient and is not sent again; one that was merely claimed was never sent (decision
        0006).
        """
        ids = {job.subject.id for job in jobs}
        # Nothing can have changed since these were enqueued.
        untouched = {job.subject.id for job in jobs if not (job.attempt or job.defects or job.was_in_flight)}
        known = self._database.cache.pop_rows(CACHED_MESSAGES, untouched)
        batch = await self._cached_batch(ids, known)
        if batch is None:
            batch = await self._database.read(read_outbound_batch, ids, known)
        to_send = [
            job
            for job in jobs
            if job.subject.kind is SubjectKind.MESSAGE
            and not job.was_in_flight
            and is_unsent(batch.messages.get(job.subject.id))
        ]
        # Errors on our side are found before the mark: after it, the outcome would be uncertain.
        unready = await self._sender.find_routes(to_send, batch)
        for job in jobs:
            failure = self._retries.pop_failure(job)
            if failure is not None:
                batch.failures[job.position] = failure
        ready = [
            job
            for job in to_send
            if job.position not in unready
            and job.position not in batch.failures
            and job.position not in batch.account_pauses
        ]
        await self._sender.find_media(ready, batch)
        # A job whose media must be uploaded first is not being sent: its work is the upload, and then
        # it is claimed again.
        ready = [job for job in ready if not batch.media[job.position].missing]
        if ready:
            marked = await self._queue.mark_in_flight(ready)
            batch.lost_positions.update(job.position for job in ready if job not in marked)
            if tracer.is_enabled:
                for job in marked:
                    tracer.record(TraceStep.IN_FLIGHT, job.subject.id, position=job.position, attempt=job.attempt)
        return [
            (job, failing_work(unready[job.position]) if job.position in unready else self._work_of(job, batch))
            for job in jobs
        ]

    async def _cached_batch(self, ids: set[str], known: dict[str, MessageRow]) -> OutboundBatch | None:
        """Return the batch of messages that are all in memory, with templates as the API has just used them.

        None if the store has to be read: for other messages, for templates to be submitted, for replies.
        """
        if len(known) < len(ids):
            return None
        templates: dict[str, Template] = {}
        for template_id in {row.template_id for row in known.values() if row.template_id}:
            template = await self._directory.template_by_id(template_id)
            if template is None:
                return None
            templates[template_id] = template
        if any(reply_target_id(decode_content(row.kind, row.content)) for row in known.values() if row.content):
            return None
        return OutboundBatch(known, templates, {})

    def _work_of(self, job: Job, batch: OutboundBatch) -> Callable[[], Awaitable[None]]:
        if job.position in batch.lost_positions:
            return partial(self._abandon_lost, job)
        if job.subject.kind in TEMPLATE_KINDS:
            failure = batch.failures.get(job.position)
            return lambda: self._template_actions.run_job(job, batch.templates[job.subject.id], failure)
        return partial(self._sender.send_job, job, batch)

    async def _abandon_lost(self, job: Job) -> None:
        """Abandon a job that another process works now: the lease ran out before it could be sent."""
        self._queue.abandon(job)


class UnconfirmedExpiry:
    """The work of the queue `unconfirmed`: messages that may have been sent."""

    def __init__(self, *, database: Database, queue: JobQueue, directory: Directory, messages: MessageOutcomes) -> None:
        self._database = database
        self._queue = queue
        self._directory = directory
        self._messages = messages

    async def prepare(self, jobs: Sequence[Job]) -> PreparedJobs:
        """Return the work that fails each message that is still uncertain."""
        rows = await self._database.read(messages_by_ids, {job.subject.id for job in jobs})
        return [(job, lambda job=job: self._fail_unconfirmed(job, rows[job.subject.id])) for job in jobs]

    async def _fail_unconfirmed(self, job: Job, row: MessageRow) -> None:
        app = await app_of_message(self._directory, row)
        await self._queue.complete(job, self._messages.end_unconfirmed, UnconfirmedTimeout(job.position, row.id, app))
