"""Carries the entries that are about messages: send, settle, or have it wait."""

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
        """Messages handed to the operator: outcome and class of the operator's code."""
        self._few = FewWords()

    async def find_lines(self, jobs: Sequence[Job], batch: Batch) -> dict[int, Exception]:
        """Note the line of each message; by position, why one cannot be sent: its app or account is not there.

        The lines found here carry the batch to its end, so that a switch of the operator meanwhile
        never sends with one's number and the other's credentials (decision 0033).
        """
        unready: dict[int, Exception] = {}
        for job in jobs:
            row = batch.messages[job.subject.id]
            try:
                line = batch.lines[row.app_id] = await self._line_of(row)
                why = self._pacer.is_quiet(
                    job, line.account, self._clock.now_ms(), business=line.app.business_account_id
                )
                if why is not None:
                    batch.quiet[job.position] = why
            except Exception as error:  # noqa: BLE001  a defect belongs to its entry
                unready[job.position] = error
        return unready

    async def find_media(self, jobs: Sequence[Job], batch: Batch) -> None:
        """Note by position what is known of the media that each message refers to."""
        wanted: list[Wanted] = []
        for job in jobs:
            row = batch.messages[job.subject.id]
            line = batch.lines[row.app_id]
            references = media_references(content_of(row.kind, row.content))
            wanted.append(Wanted(line.app.partner_id, number_place(line), references))
        found = await self._copies.find(wanted)
        batch.media.update(zip((job.position for job in jobs), found, strict=True))

    async def carry(self, job: Job, batch: Batch) -> None:
        """Send the message of an entry whose batch is prepared, or have it wait."""
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
        """Give back what its operator account is too busy for, unless it has waited for all its lifetime.

        The pacer keeps its group quiet. Nothing is asked of the operator, so that this is the one place
        where such a message can become too old: the few that ask are not all of them.
        """
        if not self._waiting.is_too_old(row.accepted_on_ms):
            self._queue.abandon(job)
            return
        end = MessageOutcome(job.position, row.id, await app_of_message(self._directory, row), None)
        await self._waiting.give_up(job, why, end)

    def _upload_first(self, job: Job, row: MessageRow, batch: Batch) -> None:
        """Have brought to the operator what the message needs, and let it wait for that.

        The entry is not in hand, for nothing of it is sent, and takes no place while it waits: however
        slow an upload is, it holds up only those who need it.
        """
        missing = batch.media[job.position].missing.values()
        self._copies.bring(batch.lines[row.app_id], missing, partial(self._waiting.uploads_ended, job))
        self._queue.park(job)

    async def _end_unsent(self, job: Job, row: MessageRow, failure: Failure) -> None:
        """What the failure of an upload means for a message that needs it."""
        match failure:
            case Rejected():
                item = MessageOutcome(job.position, row.id, await app_of_message(self._directory, row), failure)
                await self._queue.complete(job, self._messages.record, item)
            case Unavailable():
                end = MessageOutcome(job.position, row.id, await app_of_message(self._directory, row), None)
                await self._waiting.try_later(job, row.accepted_on_ms, failure, end)
            case Exception():
                raise failure

    async def _send_once(self, job: Job, row: MessageRow, batch: Batch) -> None:
        app = await app_of_message(self._directory, row)
        outcome: Outcome | None
        if job.was_in_flight:
            outcome = STOPPED_WHILE_SENDING
        elif not job.in_flight:
            outcome = None  # a status came first: the operator has it
        elif not self._queue.is_ours(job):
            # Stopped for longer than a lease since the mark: another process has found it in hand.
            self._queue.abandon(job)
            return
        else:
            line, found = batch.lines[row.app_id], batch.media[job.position]
            try:
                outcome = await self._send(job, line, row, batch, found)
            finally:
                self._pacer.answered(job, self._clock.now_ms())
            if await self._copies.has_lost(row.id, line, found, outcome):
                await self._waiting.try_now(job, row.id, Unavailable("the operator may have lost its media"))
                return
            if isinstance(outcome, Rejected) and outcome.one_more_try and not job.attempt:
                await self._waiting.try_once_more(job, row.id, outcome)
                return
        match outcome:
            case Unavailable():
                end = MessageOutcome(job.position, row.id, app, None)
                self._waiting.others_wait(job, batch.lines[row.app_id], outcome)
                await self._waiting.try_later(job, row.accepted_on_ms, outcome, end)
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
        line = await self._directory.line(row.app_id)
        if line is None:
            raise LookupError(f"message {row.id} has no app, or its app no operator account")
        return line


def _word(outcome: Outcome | None) -> str:
    """For counts and records; nothing is said where a status came before the answer."""
    return "known already" if outcome is None else type(outcome).__name__.lower()


def _code_of(outcome: Outcome) -> int | None:
    """The operator's own code, where it gave one."""
    match outcome:
        case Rejected(code=code, operator_code=own):
            return code if own is None else own
        case Unavailable(code=code):
            return code or None
        case Sent() | Uncertain():
            return None


def _code_class(outcome: Outcome) -> str:
    """The code by its thousand, `131xxx` for example: there are hundreds of codes, and a dozen of these."""
    code = _code_of(outcome)
    if code is None:
        return "none"
    return f"{code // 1000}xxx" if code >= 1000 else str(code)
