"""The work of outbound jobs: take them, ask whether each may be sent, mark it in flight, send it, record it."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import Final

from sqlalchemy import Connection

from waypost.admission.operators import OperatorAdmission
from waypost.admission.schedules import OPERATOR_RETRY_SCHEDULES_S
from waypost.base.backoff import delay_ms
from waypost.base.encryption import SecretBox
from waypost.base.ids import is_uuid
from waypost.base.telemetry.counters import CallCounters, LabelLimiter
from waypost.base.telemetry.tracing import TraceStep, tracer
from waypost.dispatch.app_onboarding import AppOnboarding
from waypost.dispatch.media_copies import NO_COPIES, MediaCopies, number_location
from waypost.dispatch.message_outcomes import MessageOutcome, MessageOutcomes, UnconfirmedTimeout, app_of_message
from waypost.dispatch.retries import OutboundRetries
from waypost.dispatch.template_actions import TemplateActions
from waypost.dispatch.uploads import UploadFailure
from waypost.domain.app import App, AppRoute
from waypost.domain.message import Message, MessageState, media_references, reply_target_id
from waypost.domain.outcome import (
    OperatorAccepted,
    OperatorRejected,
    OperatorUnavailable,
    Outcome,
    OutcomeUncertain,
    RetryReason,
)
from waypost.domain.templates.template import Template
from waypost.queue.context import StageContext
from waypost.queue.job import Job
from waypost.queue.worker import JobWork, PreparedJobs, failing_work
from waypost.store.media.media import KnownMediaCopies, MediaReferences
from waypost.store.messages.messages import CACHED_MESSAGES, MessageRow, decode_message, messages_by_ids
from waypost.store.queue.job_subjects import TEMPLATE_KINDS, QueueName, SubjectKind
from waypost.store.templates.templates import templates_by_ids

STOPPED_WHILE_SENDING: Final = OutcomeUncertain("the service stopped while this message was being sent")
MEDIA_LOST: Final = OperatorUnavailable("the operator may have lost its media")


@dataclass(frozen=True, slots=True)
class OutboundBatch:
    """The subjects of the jobs of one claim."""

    rows: dict[str, MessageRow]
    messages: dict[str, Message]  # decoded; those that have their content
    templates: dict[str, Template]
    replied_to: dict[tuple[int, str], str]  # the operator's id by partner and our id of the message
    # by app, as found for the first message of the batch: a switch of the operator meanwhile never sends with one's
    # number and the other's credentials (decision 0033)
    routes: dict[str, AppRoute]


@dataclass(slots=True)
class _Sending:
    """A message that may be sent now."""

    job: Job
    row: MessageRow
    message: Message
    route: AppRoute
    media: KnownMediaCopies = NO_COPIES


class OutboundDispatcher:
    """The work of the queues `outbound` and `unconfirmed`.

    Args:
        in_flight: number of slots.
        per_second: throughput of a source that has none of its own.
        message_ttl_ms: a job that stays unavailable so long after acceptance fails.
        uncertain_for_ms: how long an uncertain message waits for a status that carries our id.
        webhook_url: of the service, to which the id of an operator account is added.
        onboarding_step_ms: minimum duration of a step of an app's onboarding.

    Attributes:
        counts: messages sent to the operator, by outcome and class of the operator's code.
        may_start: decides when a job may start, and says why not yet.
    """

    def __init__(
        self,
        context: StageContext,
        secret_box: SecretBox,
        *,
        in_flight: int,
        per_second: int,
        message_ttl_ms: int,
        uncertain_for_ms: int,
        webhook_url: str,
        onboarding_step_ms: int,
    ) -> None:
        self._context = context
        self._queue, self._directory, self._clock = context.queue, context.directory, context.clock
        self._admission = OperatorAdmission(
            context.clock,
            context.chance,
            in_flight=in_flight,
            per_second=per_second,
            clear_not_before=partial(context.queue.clear_not_before, QueueName.OUTBOUND),
        )
        self.may_start, self.release = self._admission.may_start, self._admission.release
        self._copies = MediaCopies(context)
        self._outcomes = MessageOutcomes(
            context.clock, context.ids, uncertain_for_ms=uncertain_for_ms, hold_ms=context.hold_ms
        )
        self._retries = OutboundRetries(context, message_ttl_ms=message_ttl_ms)
        self._template_actions = TemplateActions(context, self._copies, self._retries, self._admission)
        self._onboarding = AppOnboarding(
            context, self._admission, secret_box, webhook_url=webhook_url, step_ms=onboarding_step_ms
        )
        self.counts = CallCounters()
        self._code_labels = LabelLimiter()

    @property
    def is_uploading(self) -> bool:
        """True if any medium is being uploaded to the operator."""
        return self._copies.uploads.is_active

    def set_travelling(self, is_travelling: bool) -> None:
        """Note that the clock is being advanced, or no longer: meanwhile retries and probes share its stops."""
        self._admission.set_travelling(is_travelling)
        self._retries.is_travelling = is_travelling

    async def close(self) -> None:
        """Cancel running uploads."""
        await self._copies.uploads.close()

    async def prepare(self, jobs: Sequence[Job]) -> PreparedJobs:
        """Mark the messages to be sent as in flight, on disk, and return the work of each job.

        A claim is only a lease. A job that was in flight when it is claimed again may already have been read by its
        recipient and is not sent again; one that was merely claimed was never sent (decision 0006). Errors on our side
        are found before the mark: after it, the outcome would be uncertain.
        """
        batch = await self._read_batch(jobs)
        work: dict[Job, JobWork] = {}
        sendings: list[_Sending] = []
        references: list[tuple[str, ...]] = []  # of each message, the media that it refers to
        for job in jobs:
            failure = self._retries.upload_failures.pop(job, None)
            row = batch.rows.get(job.subject.id)
            if job.subject.kind in TEMPLATE_KINDS:
                work[job] = partial(self._template_actions.run_job, job, batch.templates, failure)
            elif job.subject.kind is SubjectKind.APP_ONBOARDING:
                work[job] = partial(self._onboarding.run_job, job)
            elif row is None or row.state != MessageState.ACCEPTED or job.was_in_flight:
                work[job] = partial(self._record_sent_before, job, row)
            else:
                try:
                    route = await self._find_route(row, batch)
                    block = self._admission.find_block(job, route)
                    message = batch.messages.get(row.id) or decode_message(row)
                except Exception as error:  # noqa: BLE001  a defect belongs to its job
                    work[job] = failing_work(error)
                    continue
                if block is not None:
                    work[job] = partial(self._abandon_blocked, job, row, route, block)
                elif failure is not None:
                    work[job] = partial(self._apply_upload_failure, job, row, route, failure)
                else:
                    sendings.append(_Sending(job, row, message, route))
                    references.append(media_references(message.content))
        if any(references):  # most refer to none
            await self._find_media(sendings, references)
            # A job whose media must be uploaded first is not being sent, and takes no slot while it waits: however slow
            # an upload is, it delays only those who need it. Then the job is claimed again.
            for sending in sendings:
                if sending.media.missing:
                    work[sending.job] = partial(self._upload_first, sending)
            sendings = [sending for sending in sendings if not sending.media.missing]
        if sendings:
            marked = set(await self._queue.mark_in_flight(list(map(attrgetter("job"), sendings))))
            for sending in sendings:
                job = sending.job
                if job not in marked:  # another process works it now: the lease ran out
                    work[job] = partial(self._abandon, job)
                    continue
                work[job] = partial(self._send, sending, batch)
                if tracer.is_enabled:
                    tracer.record(TraceStep.IN_FLIGHT, job.subject.id, position=job.position, attempt=job.attempt)
        return list(zip(jobs, map(work.__getitem__, jobs), strict=True))

    async def _read_batch(self, jobs: Sequence[Job]) -> OutboundBatch:
        """Read what jobs are about; nothing where all is in memory, as after the acceptance of messages."""
        ids, untouched = set[str](), set[str]()
        for job in jobs:
            ids.add(job.subject.id)
            if not (job.attempt or job.defects or job.was_in_flight):  # nothing can have changed since it was enqueued
                untouched.add(job.subject.id)
        rows = self._context.database.cache.pop_rows(CACHED_MESSAGES, untouched)
        messages = {row.id: decode_message(row) for row in rows.values() if row.content}
        if len(rows) == len(ids) and not any(reply_target_id(message.content) for message in messages.values()):
            templates: dict[str, Template] = {}
            for template_id in {row.template_id for row in rows.values() if row.template_id}:
                template = await self._directory.template_by_id(template_id)
                if template is None:
                    break
                templates[template_id] = template
            else:
                return OutboundBatch(rows, messages, templates, {}, {})
        return await self._context.database.read(_read_batch, ids, rows, messages)

    async def _find_route(self, row: MessageRow, batch: OutboundBatch) -> AppRoute:
        route = batch.routes.get(row.app_id)
        if route is None:
            route = await self._directory.app_route(row.app_id)
            if route is None:
                raise LookupError(f"message {row.id} has no app, or its app no operator account")
            batch.routes[row.app_id] = route
        return route

    async def _find_media(self, sendings: Sequence[_Sending], references: Sequence[tuple[str, ...]]) -> None:
        """Find the copies of the media that each message refers to."""
        queries = [
            MediaReferences(sending.route.app.partner_id, number_location(sending.route), names)
            for sending, names in zip(sendings, references, strict=True)
        ]
        for sending, media in zip(sendings, await self._copies.find_copies(queries), strict=True):
            sending.media = media

    # The work of one job.

    async def _abandon(self, job: Job) -> None:
        self._queue.abandon(job)

    async def _record_sent_before(self, job: Job, row: MessageRow | None) -> None:
        """Record that a message may have been sent, or that there is nothing to send: a status came first."""
        # Read, and then erased with its recipient, before the response came: the job only ends
        if row is None and job.subject.kind is SubjectKind.MESSAGE:
            ended = UnconfirmedTimeout(job.position, job.subject.id, None)
            await self._queue.complete(job, self._outcomes.end_unconfirmed, ended)
            return
        if row is None:
            raise LookupError(f"message {job.subject.id} is not in the store")
        app = await app_of_message(self._directory, row)
        await self._complete(job, row, app, STOPPED_WHILE_SENDING if job.was_in_flight else None)

    async def _abandon_blocked(self, job: Job, row: MessageRow, route: AppRoute, cause: OperatorUnavailable) -> None:
        """Abandon a job whose operator account is paused or away, or fail it if it has waited for all its lifetime.

        The admission makes its group wait. Nothing is sent to the operator, so this is the one
        place where such a message can become too old: only a few of its group are tried.
        """
        if self._clock.now_ms() < row.accepted_on_ms + self._retries.message_ttl_ms:
            self._queue.abandon(job)
            return
        self._admission.expect_expired(job)
        await self._give_up(job, row, route.app, cause)

    async def _upload_first(self, sending: _Sending) -> None:
        missing, job = sending.media.missing.values(), sending.job
        resume = partial(self._retries.resume_after_uploads, job)
        self._copies.upload_message_media(sending.route, missing, resume)
        self._queue.park(job)

    async def _apply_upload_failure(self, job: Job, row: MessageRow, route: AppRoute, failure: UploadFailure) -> None:
        match failure:
            case OperatorRejected():
                await self._complete(job, row, route.app, failure)
            case OperatorUnavailable():
                self._admission.record_outcome(job, route.account, failure)
                await self._retry_or_fail(job, row, route, failure)
            case Exception():
                raise failure

    async def _send(self, sending: _Sending, batch: OutboundBatch) -> None:
        """Send a message that is marked in flight, and record the outcome or retry it later."""
        job, row, route = sending.job, sending.row, sending.route
        if not self._queue.is_lease_held(job):
            # Stopped for longer than a lease since the mark: another process has found the job in flight.
            self._queue.abandon(job)
            return
        reply_to = reply_target_id(sending.message.content)
        adapter = self._context.operators.adapter(route.account)
        began_s = time.perf_counter()
        self._admission.begin_call(job)
        try:
            outcome = await adapter.send(
                route.account,
                route.app,
                sending.message,
                template=batch.templates.get(row.template_id or ""),
                reply_to=batch.replied_to.get((route.app.partner_id, reply_to), reply_to) if reply_to else None,
                copies=sending.media.copies,
            )
        finally:
            self._admission.end_call(job)
        self._count_response(sending, outcome, time.perf_counter() - began_s)
        self._admission.record_outcome(job, route.account, outcome)
        if await self._copies.drop_lost_copies(row.id, route, sending.media, outcome):
            await self._retries.retry_after(job, row.id, MEDIA_LOST, 0)
        elif isinstance(outcome, OperatorRejected) and outcome.retry_once and not job.attempt:
            wait_ms = delay_ms(OPERATOR_RETRY_SCHEDULES_S[RetryReason.ONCE], 1, self._context.chance)
            await self._retries.retry_after(job, row.id, outcome, wait_ms)
        elif isinstance(outcome, OperatorUnavailable):
            self._admission.pause_peers(job, route.account, outcome, route.app.business_account_id)
            await self._retry_or_fail(job, row, route, outcome)
        else:
            await self._complete(job, row, route.app, outcome)

    def _count_response(self, sending: _Sending, outcome: Outcome, took_s: float) -> None:
        """Count a response, and trace it."""
        failed, name, code = not isinstance(outcome, OperatorAccepted), OUTCOME_NAMES[type(outcome)], _code_of(outcome)
        self.counts.add(took_s, name, self._code_labels(_code_class(code)))
        if tracer.is_enabled or failed:
            tracer.record(
                TraceStep.OPERATOR_RESPONDED,
                sending.row.id,
                failed=failed,
                took_s=took_s,
                position=sending.job.position,
                app_id=sending.route.app.id,
                outcome=name,
                code=code,
                request_id=sending.row.request_id,
            )

    async def _retry_or_fail(self, job: Job, row: MessageRow, route: AppRoute, outcome: OperatorUnavailable) -> None:
        in_outage = self._admission.is_open(route.account)
        if not await self._retries.retry(job, row.accepted_on_ms, outcome, message_id=row.id, in_outage=in_outage):
            await self._give_up(job, row, route.app, outcome)

    async def _give_up(self, job: Job, row: MessageRow, app: App, outcome: OperatorUnavailable) -> None:
        """Fail a message that has been unavailable for all its lifetime."""
        reason = f"given up after the message's lifetime: {outcome.text}"
        await self._complete(job, row, app, OperatorRejected(outcome.partner_code, reason))

    async def _complete(
        self,
        job: Job,
        row: MessageRow,
        app: App,
        outcome: OperatorAccepted | OperatorRejected | OutcomeUncertain | None,
    ) -> None:
        await self._queue.complete(job, self._outcomes.record, MessageOutcome(job.position, row.id, app, outcome))
        if tracer.is_enabled:
            name = OUTCOME_NAMES[type(outcome)]
            tracer.record(TraceStep.COMPLETED, row.id, position=job.position, app_id=app.id, outcome=name)

    # The queue of messages that may have been sent.

    async def prepare_unconfirmed(self, jobs: Sequence[Job]) -> PreparedJobs:
        """Return the work that fails each message that is still uncertain."""
        rows = await self._context.database.read(messages_by_ids, {job.subject.id for job in jobs})

        async def fail(job: Job) -> None:
            row = rows.get(job.subject.id)  # None: its recipient was erased meanwhile, and the job only ends
            app = None if row is None else await app_of_message(self._directory, row)
            timeout = UnconfirmedTimeout(job.position, job.subject.id, app)
            await self._queue.complete(job, self._outcomes.end_unconfirmed, timeout)

        return [(job, partial(fail, job)) for job in jobs]


def _read_batch(
    connection: Connection, ids: set[str], known: dict[str, MessageRow], decoded: dict[str, Message]
) -> OutboundBatch:
    """Read the subjects of jobs, messages and templates; the messages that are known need not be read."""
    read = messages_by_ids(connection, ids - known.keys())
    rows = known | read
    messages = decoded | {row.id: decode_message(row) for row in read.values() if row.content}
    replied_to = {
        reply_to
        for message in messages.values()
        if (reply_to := reply_target_id(message.content)) and is_uuid(reply_to)
    }
    template_ids = {row.template_id for row in rows.values() if row.template_id}
    return OutboundBatch(
        rows,
        messages,
        templates_by_ids(connection, template_ids | (ids - rows.keys())),
        {
            (row.partner_id, row.id): row.operator_message_id
            for row in messages_by_ids(connection, replied_to).values()
            if row.operator_message_id
        },
        {},
    )


OUTCOME_NAMES: Final[dict[type[Outcome | None], str]] = {  # of counters and trace records
    OperatorAccepted: "accepted",
    OperatorRejected: "rejected",
    OperatorUnavailable: "unavailable",
    OutcomeUncertain: "uncertain",
    type(None): "known already",  # a status came before the response
}


def _code_of(outcome: Outcome) -> int | None:
    """Return the operator's own code, where it gave one."""
    match outcome:
        case OperatorRejected(code=code, operator_code=own):
            return code if own is None else own
        case OperatorUnavailable(code=code):
            return code or None
        case OperatorAccepted() | OutcomeUncertain():
            return None


def _code_class(code: int | None) -> str:
    """Return the code's thousand, `131xxx` for example: there are hundreds of codes, and a dozen of these."""
    if code is None:
        return "none"
    return f"{code // 1000}xxx" if code >= 1000 else str(code)
