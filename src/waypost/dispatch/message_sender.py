"""Sends messages: the subjects of a claim, read together, and the work of each job."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.base.ids import is_uuid
from waypost.base.telemetry.counters import CallCounters, LabelLimiter
from waypost.base.telemetry.tracing import TraceStep, tracer
from waypost.dispatch.media_copies import NO_COPIES, MediaCopies, number_location
from waypost.dispatch.message_outcomes import MessageOutcome, MessageOutcomes, app_of_message
from waypost.dispatch.operator_circuits import OperatorCircuits
from waypost.dispatch.pacing import Pacer
from waypost.dispatch.retries import OutboundRetries
from waypost.dispatch.slots import OperatorSlots
from waypost.dispatch.uploads import UploadFailure
from waypost.domain.app import AppRoute
from waypost.domain.message import MessageState, media_references, reply_target_id
from waypost.domain.outcome import OperatorAccepted, OperatorRejected, OperatorUnavailable, Outcome, OutcomeUncertain
from waypost.domain.templates.template import Template
from waypost.operators.contract import Operators
from waypost.queue.job import Job
from waypost.queue.queue import JobQueue
from waypost.store.directory import Directory
from waypost.store.encoding import decode_content
from waypost.store.media.media import KnownMediaCopies, MediaReferences
from waypost.store.messages.messages import MessageRow, decode_message, messages_by_ids
from waypost.store.templates.templates import templates_by_ids

STOPPED_WHILE_SENDING = OutcomeUncertain("the service stopped while this message was being sent")


@dataclass(frozen=True, slots=True)
class OutboundBatch:
    """The subjects of the jobs of one claim."""

    messages: dict[str, MessageRow]
    templates: dict[str, Template]
    replied_to: dict[tuple[int, str], str]  # the operator's id by partner and our id of the message
    routes: dict[str, AppRoute] = field(default_factory=dict[str, AppRoute])  # by app
    media: dict[int, KnownMediaCopies] = field(default_factory=dict[int, KnownMediaCopies])  # by position
    failures: dict[int, UploadFailure] = field(default_factory=dict[int, UploadFailure])
    """By position, the failure of the uploads that the job has waited for, where they failed."""
    account_pauses: dict[int, OperatorUnavailable] = field(default_factory=dict[int, OperatorUnavailable])
    """By position, jobs whose account is paused, with the operator's outcome that caused it."""
    lost_positions: set[int] = field(default_factory=set[int])
    """Positions of jobs that another process works by now."""


def is_unsent(row: MessageRow | None) -> bool:
    """True if a message's row exists and nothing has been done with it yet."""
    return row is not None and row.state == MessageState.ACCEPTED


def read_outbound_batch(connection: Connection, ids: set[str], known: dict[str, MessageRow]) -> OutboundBatch:
    """Read the subjects of jobs.

    Args:
        connection: any.
        ids: of messages and templates, as the jobs name them.
        known: rows of messages that need not be read.
    """
    messages = {**known, **messages_by_ids(connection, ids - known.keys())}
    contents = {row.id: decode_content(row.kind, row.content) for row in messages.values() if row.content}
    replied_to = {
        reply_to for content in contents.values() if (reply_to := reply_target_id(content)) and is_uuid(reply_to)
    }
    templates = {row.template_id for row in messages.values() if row.template_id}
    return OutboundBatch(
        messages,
        templates_by_ids(connection, templates | (ids - messages.keys())),
        {
            (row.partner_id, row.id): row.operator_message_id
            for row in messages_by_ids(connection, replied_to).values()
            if row.operator_message_id
        },
    )


class MessageSender:
    """Sends messages, once each."""

    def __init__(
        self,
        *,
        queue: JobQueue,
        directory: Directory,
        operators: Operators,
        clock: Clock,
        pacer: Pacer,
        circuits: OperatorCircuits,
        slots: OperatorSlots,
        copies: MediaCopies,
        messages: MessageOutcomes,
        retries: OutboundRetries,
    ) -> None:
        self._queue = queue
        self._directory = directory
        self._operators = operators
        self._clock = clock
        self._pacer = pacer
        self._circuits = circuits
        self._slots = slots
        self._copies = copies
        self._messages = messages
        self._retries = retries
        self.counts = CallCounters()
        """Messages sent to the operator, by outcome and class of the operator's code."""
        self._code_labels = LabelLimiter()

    async def find_routes(self, jobs: Sequence[Job], batch: OutboundBatch) -> dict[int, Exception]:
        """Add the route of each message to the batch; return by position why one has none.

        The routes found here are used until the end of the batch, so that a switch of the operator meanwhile
        never sends with one's number and the other's credentials (decision 0033).
        """
        unready: dict[int, Exception] = {}
        for job in jobs:
            row = batch.messages[job.subject.id]
            try:
                route = batch.routes[row.app_id] = await self._find_route(row)
                self._slots.set_account(job, route.account.id)
                pause_cause = self._pacer.account_pause(
                    job, route.account, self._clock.now_ms(), business_account_id=route.app.business_account_id
                ) or self._circuits.blocking_cause(job, route.account)
                if pause_cause is not None:
                    batch.account_pauses[job.position] = pause_cause
            except Exception as error:  # noqa: BLE001  a defect belongs to its job
                unready[job.position] = error
        return unready

    async def find_media(self, jobs: Sequence[Job], batch: OutboundBatch) -> None:
        """Add to the batch, by position, the copies of the media that each message refers to."""
        queries: list[MediaReferences] = []
        for job in jobs:
            row = batch.messages[job.subject.id]
            route = batch.routes[row.app_id]
            references = media_references(decode_content(row.kind, row.content))
            queries.append(MediaReferences(route.app.partner_id, number_location(route), references))
        copies = await self._copies.find_copies(queries)
        batch.media.update(zip((job.position for job in jobs), copies, strict=True))

    async def send_job(self, job: Job, batch: OutboundBatch) -> None:
        """Send the message of a job whose batch is prepared, retry it later, or park it during its uploads."""
        row = batch.messages[job.subject.id]
        failure = batch.failures.get(job.position)
        if job.position in batch.account_pauses:
            await self._abandon_paused(job, row, batch.account_pauses[job.position])
        elif failure is not None and is_unsent(row):
            await self._apply_upload_failure(job, row, failure)
        elif batch.media.get(job.position, NO_COPIES).missing:
            self._upload_first(job, row, batch)
        else:
            await self._send_once(job, row, batch)

    async def _abandon_paused(self, job: Job, row: MessageRow, cause: OperatorUnavailable) -> None:
        """Abandon a job whose operator account is paused or away, or fail it if it has waited for all its lifetime.

        The pacer or the account's circuit makes its group wait. Nothing is sent to the operator, so this is
        the one place where such a message can become too old: only a few of its group are tried.
        """
        if not self._retries.is_too_old(row.accepted_on_ms):
            self._queue.abandon(job)
            return
        self._circuits.expect_expired(job)
        final_outcome = MessageOutcome(job.position, row.id, await app_of_message(self._directory, row), None)
        await self._retries.give_up(job, cause, final_outcome)

    def _upload_first(self, job: Job, row: MessageRow, batch: OutboundBatch) -> None:
        """Upload what the message needs to the operator, and park its job until that has ended.

        The job is not in flight, for nothing of it is sent, and takes no slot while it waits: however slow
        an upload is, it delays only those who need it.
        """
        missing = batch.media[job.position].missing.values()
        self._copies.upload_message_media(
            batch.routes[row.app_id], missing, partial(self._retries.resume_after_uploads, job)
        )
        self._queue.park(job)

    async def _apply_upload_failure(self, job: Job, row: MessageRow, failure: UploadFailure) -> None:
        """Apply the failure of an upload to a message that needs it."""
        match failure:
            case OperatorRejected():
                item = MessageOutcome(job.position, row.id, await app_of_message(self._directory, row), failure)
                await self._queue.complete(job, self._messages.record, item)
            case OperatorUnavailable():
                route = await self._find_route(row)
                self._circuits.record_outcome(job, route.account, failure)
                final_outcome = MessageOutcome(job.position, row.id, route.app, None)
                await self._retries.retry_or_fail(
                    job, row.accepted_on_ms, failure, final_outcome, in_outage=self._circuits.is_open(route.account)
                )
            case Exception():
                raise failure

    async def _send_once(self, job: Job, row: MessageRow, batch: OutboundBatch) -> None:
        app = await app_of_message(self._directory, row)
        outcome: Outcome | None
        if job.was_in_flight:
            outcome = STOPPED_WHILE_SENDING
        elif not job.in_flight:
            outcome = None  # a status came first: the operator has the message
        elif not self._queue.is_lease_held(job):
            # Stopped for longer than a lease since the mark: another process has found the job in flight.
            self._queue.abandon(job)
            return
        else:
            route, media = batch.routes[row.app_id], batch.media[job.position]
            self._slots.begin_call(job)
            try:
                outcome = await self._send(job, route, row, batch, media)
            finally:
                self._slots.end_call(job)
                self._pacer.record_response(job, self._clock.now_ms())
            self._circuits.record_outcome(job, route.account, outcome)
            if await self._copies.drop_lost_copies(row.id, route, media, outcome):
                await self._retries.retry_now(job, row.id, OperatorUnavailable("the operator may have lost its media"))
                return
            if isinstance(outcome, OperatorRejected) and outcome.retry_once and not job.attempt:
                await self._retries.retry_once(job, row.id, outcome)
                return
        match outcome:
            case OperatorUnavailable():
                final_outcome = MessageOutcome(job.position, row.id, app, None)
                route = batch.routes[row.app_id]
                self._retries.pause_peers(job, route, outcome)
                await self._retries.retry_or_fail(
                    job, row.accepted_on_ms, outcome, final_outcome, in_outage=self._circuits.is_open(route.account)
                )
            case OperatorAccepted() | OperatorRejected() | OutcomeUncertain() | None:
                item = MessageOutcome(job.position, row.id, app, outcome)
                await self._queue.complete(job, self._messages.record, item)
                if tracer.is_enabled:
                    tracer.record(
                        TraceStep.COMPLETED,
                        row.id,
                        position=job.position,
                        app_id=app.id,
                        outcome=_outcome_name(outcome),
                    )
        self._pacer.set_throughput(app.phone_number, app.per_second)

    async def _send(
        self, job: Job, route: AppRoute, row: MessageRow, batch: OutboundBatch, media: KnownMediaCopies
    ) -> Outcome:
        message = decode_message(row)
        content = message.content
        reply_to = reply_target_id(content)
        began_s = time.perf_counter()
        outcome = await self._operators.adapter(route.account).send(
            route.account,
            route.app,
            message,
            template=batch.templates.get(row.template_id or ""),
            reply_to=batch.replied_to.get((route.app.partner_id, reply_to), reply_to) if reply_to else None,
            copies=media.copies,
        )
        took_s = time.perf_counter() - began_s
        failed = not isinstance(outcome, OperatorAccepted)
        self.counts.add(took_s, _outcome_name(outcome), self._code_labels(_code_class(outcome)))
        if tracer.is_enabled or failed:
            tracer.record(
                TraceStep.OPERATOR_RESPONDED,
                row.id,
                failed=failed,
                took_s=took_s,
                position=job.position,
                app_id=route.app.id,
                outcome=_outcome_name(outcome),
                code=_code_of(outcome),
                request_id=row.request_id,
            )
        return outcome

    async def _find_route(self, row: MessageRow) -> AppRoute:
        route = await self._directory.app_route(row.app_id)
        if route is None:
            raise LookupError(f"message {row.id} has no app, or its app no operator account")
        return route


_OUTCOME_NAMES: Final[dict[type[Outcome], str]] = {
    OperatorAccepted: "accepted",
    OperatorRejected: "rejected",
    OperatorUnavailable: "unavailable",
    OutcomeUncertain: "uncertain",
}


def _outcome_name(outcome: Outcome | None) -> str:
    """Return the outcome's name for counters and trace records; None: a status came before the response."""
    return "known already" if outcome is None else _OUTCOME_NAMES[type(outcome)]


def _code_of(outcome: Outcome) -> int | None:
    """Return the operator's own code, where it gave one."""
    match outcome:
        case OperatorRejected(code=code, operator_code=own):
            return code if own is None else own
        case OperatorUnavailable(code=code):
            return code or None
        case OperatorAccepted() | OutcomeUncertain():
            return None


def _code_class(outcome: Outcome) -> str:
    """Return the code's thousand, `131xxx` for example: there are hundreds of codes, and a dozen of these."""
    code = _code_of(outcome)
    if code is None:
        return "none"
    return f"{code // 1000}xxx" if code >= 1000 else str(code)
