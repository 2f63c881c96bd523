"""Runs the jobs that are about messages: send, then complete or retry later."""

import time
from collections.abc import Sequence
from functools import partial

from waypost.base.clock import Clock
from waypost.base.telemetry.counters import CallCounts, FewWords
from waypost.base.telemetry.tracing import TraceStep, tracer
from waypost.dispatch.batch import Batch, still_to_send
from waypost.dispatch.media_copies import NOTHING, Copies, number_place
from waypost.dispatch.message_outcomes import MessageOutcome, MessageOutcomes, app_of_message
from waypost.dispatch.pacing import Pacer
from waypost.dispatch.retries import Waiting
from waypost.dispatch.uploads import Failure
from waypost.domain.app import Line
from waypost.domain.message import media_references, reply_to_of
from waypost.domain.outcome import Outcome, Rejected, Sent, Unavailable, Uncertain
from waypost.operators.contract import Operators
from waypost.queue.job import Job
from waypost.queue.queue import JobQueue
from waypost.store.directory import Directory
from waypost.store.encoding import content_of
from waypost.store.media.media import Found, Wanted
from waypost.store.messages.messages import MessageRow, message_of

STOPPED_WHILE_SENDING = Uncertain("the service stopped while this message was being sent")


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
        copies: Copies,
        messages: MessageOutcomes,
        waiting: Waiting,
    ) -> None:
        self._queue = queue
        self._directory = directory
        self._operators = operators
        self._clock = clock
        self._pacer = pacer
        self._copies = copies
        self._messages = messages
        self._waiting = waiting
        self.counts = CallCounts()
        """Messages sent to the operator, by outcome and class of the operator's code."""
        self._few = FewWords()

    async def find_lines(self, jobs: Sequence[Job], batch: Batch) -> dict[int, Exception]:
        """Add the route of each message to the batch; return by position why one has none.

        The routes found here are used until the end of the batch, so that a switch of the operator meanwhile
        never sends with one's number and the other's credentials (decision 0033).
        """
        unready: dict[int, Exception] = {}
        for job in jobs:
            row = batch.messages[job.subject.id]
            try:
                route = batch.lines[row.app_id] = await self._line_of(row)
                pause_cause = self._pacer.is_quiet(
                    job, route.account, self._clock.now_ms(), business=route.app.business_account_id
                )
                if pause_cause is not None:
                    batch.quiet[job.position] = pause_cause
            except Exception as error:  # noqa: BLE001  a defect belongs to its job
                unready[job.position] = error
        return unready

    async def find_media(self, jobs: Sequence[Job], batch: Batch) -> None:
        """Add to the batch, by position, the copies of the media that each message refers to."""
        queries: list[Wanted] = []
        for job in jobs:
            row = batch.messages[job.subject.id]
            route = batch.lines[row.app_id]
            references = media_references(content_of(row.kind, row.content))
            queries.append(Wanted(route.app.partner_id, number_place(route), references))
        copies = await self._copies.find(queries)
        batch.media.update(zip((job.position for job in jobs), copies, strict=True))

    async def carry(self, job: Job, batch: Batch) -> None:
        """Send the message of a job whose batch is prepared, or retry it later."""
        row = batch.messages[job.subject.id]
        failure = batch.failures.get(job.position)
        if job.position in batch.quiet:
            await self._wait_longer(job, row, batch.quiet[job.position])
        elif failure is not None and still_to_send(row):
            await self._end_unsent(job, row, failure)
        elif batch.media.get(job.position, NOTHING).missing:
            self._upload_first(job, row, batch)
        else:
            await self._send_once(job, row, batch)

    async def _wait_longer(self, job: Job, row: MessageRow, why: Unavailable) -> None:
        """Abandon a job whose operator account is paused, or fail it if it has waited for all its lifetime.

        The pacer pauses its group. Nothing is sent to the operator, so this is the one place where such a
        message can become too old: only a few of its group are tried.
        """
        if not self._waiting.is_too_old(row.accepted_on_ms):
            self._queue.abandon(job)
            return
        final_outcome = MessageOutcome(job.position, row.id, await app_of_message(self._directory, row), None)
        await self._waiting.give_up(job, why, final_outcome)

    def _upload_first(self, job: Job, row: MessageRow, batch: Batch) -> None:
        """Upload what the message needs to the operator, and park its job until that has ended.

        The job is not in flight, for nothing of it is sent, and takes no slot while it waits: however slow
        an upload is, it delays only those who need it.
        """
        missing = batch.media[job.position].missing.values()
        self._copies.bring(batch.lines[row.app_id], missing, partial(self._waiting.uploads_ended, job))
        self._queue.park(job)

    async def _end_unsent(self, job: Job, row: MessageRow, failure: Failure) -> None:
        """Apply the failure of an upload to a message that needs it."""
        match failure:
            case Rejected():
                item = MessageOutcome(job.position, row.id, await app_of_message(self._directory, row), failure)
                await self._queue.complete(job, self._messages.record, item)
            case Unavailable():
                final_outcome = MessageOutcome(job.position, row.id, await app_of_message(self._directory, row), None)
                await self._waiting.try_later(job, row.accepted_on_ms, failure, final_outcome)
            case Exception():
                raise failure

    async def _send_once(self, job: Job, row: MessageRow, batch: Batch) -> None:
        app = await app_of_message(self._directory, row)
        outcome: Outcome | None
        if job.was_in_flight:
            outcome = STOPPED_WHILE_SENDING
        elif not job.in_flight:
            outcome = None  # a status came first: the operator has the message
        elif not self._queue.is_ours(job):
            # Stopped for longer than a lease since the mark: another process has found the job in flight.
            self._queue.abandon(job)
            return
        else:
            route, media = batch.lines[row.app_id], batch.media[job.position]
            try:
                outcome = await self._send(job, route, row, batch, media)
            finally:
                self._pacer.answered(job, self._clock.now_ms())
            if await self._copies.has_lost(row.id, route, media, outcome):
                await self._waiting.try_now(job, row.id, Unavailable("the operator may have lost its media"))
                return
            if isinstance(outcome, Rejected) and outcome.one_more_try and not job.attempt:
                await self._waiting.try_once_more(job, row.id, outcome)
                return
        match outcome:
            case Unavailable():
                final_outcome = MessageOutcome(job.position, row.id, app, None)
                self._waiting.others_wait(job, batch.lines[row.app_id], outcome)
                await self._waiting.try_later(job, row.accepted_on_ms, outcome, final_outcome)
            case Sent() | Rejected() | Uncertain() | None:
                item = MessageOutcome(job.position, row.id, app, outcome)
                await self._queue.complete(job, self._messages.record, item)
                if tracer.on:
                    tracer.record(
                        TraceStep.COMPLETED, row.id, position=job.position, app_id=app.id, outcome=_word(outcome)
                    )
        self._pacer.learn(app.phone_number, app.per_second)

    async def _send(self, job: Job, line: Line, row: MessageRow, batch: Batch, found: Found) -> Outcome:
        message = message_of(row)
        content = message.content
        reply_to = reply_to_of(content)
        began_s = time.perf_counter()
        outcome = await self._operators.of(line.account).send(
            line.account,
            line.app,
            message,
            template=batch.templates.get(row.template_id or ""),
            reply_to=batch.replied_to.get((line.app.partner_id, reply_to), reply_to) if reply_to else None,
            copies=found.copies,
        )
        took_s = time.perf_counter() - began_s
        failed = not isinstance(outcome, Sent)
        self.counts.add(took_s, _word(outcome), self._few(_code_class(outcome)))
        if tracer.on or failed:
            tracer.record(
                TraceStep.OPERATOR_RESPONDED,
                row.id,
                failed=failed,
                took_s=took_s,
                position=job.position,
                app_id=line.app.id,
                outcome=_word(outcome),
                code=_code_of(outcome),
            )
        return outcome

    async def _line_of(self, row: MessageRow) -> Line:
        route = await self._directory.line(row.app_id)
        if route is None:
            raise LookupError(f"message {row.id} has no app, or its app no operator account")
        return route


def _word(outcome: Outcome | None) -> str:
    """Return the outcome's name for counters and trace records; None: a status came before the response."""
    return "known already" if outcome is None else type(outcome).__name__.lower()


def _code_of(outcome: Outcome) -> int | None:
    """Return the operator's own code, where it gave one."""
    match outcome:
        case Rejected(code=code, operator_code=own):
            return code if own is None else own
        case Unavailable(code=code):
            return code or None
        case Sent() | Uncertain():
            return None


def _code_class(outcome: Outcome) -> str:
    """Return the code's thousand, `131xxx` for example: there are hundreds of codes, and a dozen of these."""
    code = _code_of(outcome)
    if code is None:
        return "none"
    return f"{code // 1000}xxx" if code >= 1000 else str(code)
