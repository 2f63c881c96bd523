"""Claim, mark in hand, carry, settle."""

import random
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from waypost.base.clock import Clock
from waypost.base.counts import CallCounts, FewWords
from waypost.base.steps import Step, steps
from waypost.dispatch.batch import Batch, look_up, still_to_send
from waypost.dispatch.media import NOTHING, Copies, number_place
from waypost.dispatch.messages import Doubt, MessageOutcome, MessageOutcomes
from waypost.dispatch.pacing import Pacer
from waypost.dispatch.retries import one_more_try_ms
from waypost.dispatch.template_acts import TemplateActs
from waypost.dispatch.templates import TemplateOutcomes
from waypost.dispatch.uploads import Failure
from waypost.dispatch.waiting import Waiting, tried
from waypost.domain.app import App, Line
from waypost.domain.message import media_references, reply_to_of
from waypost.domain.outcome import Outcome, Rejected, Sent, Unavailable, Uncertain
from waypost.journal.entry import Entry
from waypost.journal.in_store import Journal
from waypost.journal.stage import Prepared, failing
from waypost.operators.contract import Operator
from waypost.store.contents import content_of
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.job_subjects import TEMPLATE_KINDS, SubjectKind
from waypost.store.media import Found, Wanted
from waypost.store.messages import FRESH, MessageRow, message_of, messages_by_ids

STOPPED_WHILE_SENDING = Uncertain("the service stopped while this message was being sent")


class Dispatch:
    """The work of the submissions lane, and of the doubts it leaves.

    Args:
        message_ttl_ms: a submission that stays unavailable so long after acceptance fails.
    """

    def __init__(
        self,
        *,
        database: Database,
        journal: Journal,
        directory: Directory,
        operator: Operator,
        clock: Clock,
        chance: random.Random,
        pacer: Pacer,
        copies: Copies,
        messages: MessageOutcomes,
        templates: TemplateOutcomes,
        message_ttl_ms: int,
    ) -> None:
        self._database = database
        self._journal = journal
        self._directory = directory
        self._operator = operator
        self._clock = clock
        self._chance = chance
        self._pacer = pacer
        self._copies = copies
        self._messages = messages
        self._waiting = Waiting(
            journal=journal,
            clock=clock,
            chance=chance,
            pacer=pacer,
            messages=messages,
            templates=templates,
            message_ttl_ms=message_ttl_ms,
        )
        self._template_acts = TemplateActs(
            database=database,
            journal=journal,
            directory=directory,
            operator=operator,
            copies=copies,
            outcomes=templates,
            waiting=self._waiting,
            uploads_ended=self._uploads_ended,
        )
        self.counts = CallCounts()
        """Messages handed to the operator: outcome and class of the operator's code."""
        self._few = FewWords()
        self._failures: dict[Entry, Failure] = {}  # until the entry is claimed again

    async def prepare(self, entries: Sequence[Entry]) -> Prepared:
        """Mark what will be sent in hand, on disk, and give the work of each entry.

        A claim is only a lease. An entry that comes back in hand may already be read by its
        recipient and is not sent again; one that comes back merely claimed was never sent
        (decision 0006).
        """
        ids = {entry.subject.id for entry in entries}
        untouched = {entry.subject.id for entry in entries if _is_untouched(entry)}
        known = self._database.fresh.take(FRESH, untouched)
        batch = await self._database.read(look_up, ids, known)
        to_send = [
            entry
            for entry in entries
            if entry.subject.kind is SubjectKind.MESSAGE
            and not entry.was_in_hand
            and still_to_send(batch.messages.get(entry.subject.id))
        ]
        # What can go wrong on our side is found before the mark: after it, it would be a doubt.
        unready = await self._unready(to_send, batch)
        for entry in entries:
            failure = self._failures.pop(entry, None)
            if failure is not None:
                batch.failures[entry.position] = failure
        ready = [
            entry
            for entry in to_send
            if entry.position not in unready
            and entry.position not in batch.failures
            and entry.position not in batch.quiet
        ]
        await self._find_media(ready, batch)
        # What still has to be uploaded is not being sent: its work is the upload, and then it is
        # claimed again.
        ready = [entry for entry in ready if not batch.media[entry.position].missing]
        if ready:
            marked = await self._journal.take_in_hand(ready)
            batch.lost.update(entry.position for entry in ready if entry not in marked)
            if steps.on:
                for entry in marked:
                    steps.tell(Step.IN_HAND, entry.subject.id, position=entry.position, attempt=entry.attempt)
        return [
            (entry, failing(unready[entry.position]) if entry.position in unready else self._work_of(entry, batch))
            for entry in entries
        ]

    async def _unready(self, entries: Sequence[Entry], batch: Batch) -> dict[int, Exception]:
        """By position, why an entry cannot be sent: its app or its operator account is not there.

        The lines found here carry the batch to its end, so that a switch of the operator meanwhile
        never sends with one's number and the other's credentials (decision 0033).
        """
        unready: dict[int, Exception] = {}
        for entry in entries:
            row = batch.messages[entry.subject.id]
            try:
                line = batch.lines[row.app_id] = await self._line_of(row)
                why = self._pacer.is_quiet(
                    entry, line.account, self._clock.now_ms(), business=line.app.business_account_id
                )
                if why is not None:
                    batch.quiet[entry.position] = why
            except Exception as error:  # noqa: BLE001  a defect belongs to its entry
                unready[entry.position] = error
        return unready

    async def _find_media(self, entries: Sequence[Entry], batch: Batch) -> None:
        """Note by position what is known of the media that each message refers to."""
        wanted: list[Wanted] = []
        for entry in entries:
            row = batch.messages[entry.subject.id]
            line = batch.lines[row.app_id]
            references = media_references(content_of(row.kind, row.content))
            wanted.append(Wanted(line.app.partner_id, number_place(line), references))
        found = await self._copies.find(wanted)
        batch.media.update(zip((entry.position for entry in entries), found, strict=True))

    async def prepare_doubts(self, entries: Sequence[Entry]) -> Prepared:
        """Fail each message that is still uncertain."""
        rows = await self._database.read(messages_by_ids, {entry.subject.id for entry in entries})

        def work_of(entry: Entry) -> Callable[[], Awaitable[None]]:
            async def work() -> None:
                app = await self._app_of(rows[entry.subject.id])
                doubt = Doubt(entry.position, entry.subject.id, app)
                await self._journal.settle(entry, self._messages.end_doubts, doubt)

            return work

        return [(entry, work_of(entry)) for entry in entries]

    def _work_of(self, entry: Entry, batch: Batch) -> Callable[[], Awaitable[None]]:
        about = entry.subject.id
        if entry.position in batch.lost:
            return partial(self._leave_to_another, entry)
        if entry.position in batch.quiet:
            return partial(self._wait_longer, entry, batch.messages[about], batch.quiet[entry.position])
        if entry.subject.kind in TEMPLATE_KINDS:
            return lambda: self._template_acts.carry(entry, batch.templates[about], batch.failures.get(entry.position))
        failure = batch.failures.get(entry.position)
        if failure is not None and still_to_send(batch.messages.get(about)):
            return lambda: self._end_unsent(entry, batch.messages[about], failure)
        if batch.media.get(entry.position, NOTHING).missing:
            return lambda: self._upload_first(entry, batch.messages[about], batch)
        return lambda: self._carry_message(entry, batch.messages[about], batch)

    async def _leave_to_another(self, entry: Entry) -> None:
        """Let go of what another process works now: this one's lease ran out before it could be sent."""
        self._journal.let_go(entry)

    async def _wait_longer(self, entry: Entry, row: MessageRow, why: Unavailable) -> None:
        """Give back what its operator account is too busy for, unless it has waited for all its lifetime.

        The pacer keeps its group quiet. Nothing is asked of the operator, so that this is the one place
        where such a message can become too old: the few that ask are not all of them.
        """
        if not self._waiting.is_too_old(row.accepted_on_ms):
            self._journal.let_go(entry)
            return
        end = MessageOutcome(entry.position, row.id, await self._app_of(row), None)
        await self._waiting.give_up(entry, why, end)

    async def _upload_first(self, entry: Entry, row: MessageRow, batch: Batch) -> None:
        """Have brought to the operator what the message needs, and let it wait for that.

        The entry is not in hand, for nothing of it is sent, and takes no place while it waits: however
        slow an upload is, it holds up only those who need it.
        """
        missing = batch.media[entry.position].missing.values()
        self._copies.bring(batch.lines[row.app_id], missing, partial(self._uploads_ended, entry))
        self._journal.park(entry)

    def _uploads_ended(self, entry: Entry, failure: Failure | None) -> None:
        if self._journal.unpark(entry) and failure is not None:
            self._failures[entry] = failure

    async def _end_unsent(self, entry: Entry, row: MessageRow, failure: Failure) -> None:
        """What the failure of an upload means for a message that needs it."""
        match failure:
            case Rejected():
                item = MessageOutcome(entry.position, row.id, await self._app_of(row), failure)
                await self._journal.settle(entry, self._messages.record, item)
            case Unavailable():
                end = MessageOutcome(entry.position, row.id, await self._app_of(row), None)
                await self._waiting.try_later(entry, row.accepted_on_ms, failure, end)
            case Exception():
                raise failure

    async def _carry_message(self, entry: Entry, row: MessageRow, batch: Batch) -> None:
        app = await self._app_of(row)
        outcome: Outcome | None
        if entry.was_in_hand:
            outcome = STOPPED_WHILE_SENDING
        elif not entry.in_hand:
            outcome = None  # a status came first: the operator has it
        elif not self._journal.is_ours(entry):
            # Stopped for longer than a lease since the mark: another process has found it in hand.
            await self._leave_to_another(entry)
            return
        else:
            line, found = batch.lines[row.app_id], batch.media[entry.position]
            try:
                outcome = await self._send(entry, line, row, batch, found)
            finally:
                self._pacer.answered(entry, self._clock.now_ms())
            if await self._copies.has_lost(row.id, line, found, outcome):
                note, now_ms = "the operator may have lost its media", self._clock.now_ms()
                news = tried(row.id, now_ms, Unavailable(note))
                await self._journal.release(entry, due_ms=now_ms, note=note, news=news)
                return
            if isinstance(outcome, Rejected) and outcome.one_more_try and not entry.attempt:
                now_ms = self._clock.now_ms()
                due_ms, news = (now_ms + one_more_try_ms(self._chance), tried(row.id, now_ms, outcome))
                await self._journal.release(entry, due_ms=due_ms, note=outcome.text, news=news)
                return
        match outcome:
            case Unavailable():
                end = MessageOutcome(entry.position, row.id, app, None)
                self._waiting.others_wait(entry, batch.lines[row.app_id], outcome)
                await self._waiting.try_later(entry, row.accepted_on_ms, outcome, end)
            case Sent() | Rejected() | Uncertain() | None:
                item = MessageOutcome(entry.position, row.id, app, outcome)
                await self._journal.settle(entry, self._messages.record, item)
                if steps.on:
                    steps.tell(Step.SETTLED, row.id, position=entry.position, app_id=app.id, outcome=_word(outcome))
        self._pacer.learn(app.phone_number, app.per_second)

    async def _send(self, entry: Entry, line: Line, row: MessageRow, batch: Batch, found: Found) -> Outcome:
        message = message_of(row)
        content = message.content
        reply_to = reply_to_of(content)
        began_s = time.perf_counter()
        outcome = await self._operator.send(
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
        if steps.on or failed:
            steps.tell(
                Step.ANSWERED,
                row.id,
                failed=failed,
                took_s=took_s,
                position=entry.position,
                app_id=line.app.id,
                outcome=_word(outcome),
                code=_code_of(outcome),
            )
        return outcome

    async def _app_of(self, row: MessageRow) -> App:
        app = await self._directory.app(row.app_id)
        if app is None:
            raise LookupError(f"message {row.id} has no app")
        return app

    async def _line_of(self, row: MessageRow) -> Line:
        line = await self._directory.line(row.app_id)
        if line is None:
            raise LookupError(f"message {row.id} has no app, or its app no operator account")
        return line


def _is_untouched(entry: Entry) -> bool:
    """Whether nothing can have become of it since it was appended."""
    return not (entry.attempt or entry.defects or entry.was_in_hand)


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
