"""Claim, mark in hand, carry, settle."""

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.base.ids import is_uuid
from waypost.dispatch.media import NOTHING, Copies, number_place
from waypost.dispatch.messages import Doubt, MessageOutcome, MessageOutcomes
from waypost.dispatch.pacing import Pacer
from waypost.dispatch.retries import one_more_try_ms, wait_ms
from waypost.dispatch.templates import TemplateOutcome, TemplateOutcomes
from waypost.dispatch.uploads import Failure
from waypost.domain.app import App, Line, OperatorAccount
from waypost.domain.message import MessageState, TemplateSend, media_references, reply_to_of
from waypost.domain.outcome import (
    Outcome,
    Rejected,
    Sent,
    Unavailable,
    Uncertain,
)
from waypost.domain.template import Template, TemplateStatus, sample_references
from waypost.journal.entry import Entry
from waypost.journal.in_store import Journal
from waypost.journal.stage import Prepared, failing
from waypost.operators.contract import Operator
from waypost.store.contents import content_of
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.media import Found, Wanted
from waypost.store.messages import messages_by_ids
from waypost.store.rows import message_of
from waypost.store.stays import NOTHING_THERE, template_with_carrier
from waypost.store.templates import Act, templates_by_ids

_ACTS = frozenset(act.value for act in Act)
STOPPED_WHILE_SENDING = Uncertain("the service stopped while this message was being sent")
NAMES_NO_APP = Rejected(1001, "Last Mapped Bot Failed: src.name was not given")
"""What the API makes of a template message that names no app. Source: facts 9.2, 12."""


@dataclass(frozen=True, slots=True)
class _Batch:
    """What the entries of one claim are about."""

    messages: dict[str, Any]
    templates: dict[str, Template]
    replied_to: dict[
        tuple[int, str], str
    ]  # partner and our id of a message answered: the operator's
    lines: dict[str, Line] = field(default_factory=dict[str, Line])  # by app
    media: dict[int, Found] = field(default_factory=dict[int, Found])  # by position
    failures: dict[int, Failure] = field(default_factory=dict[int, Failure])
    """By position, what the uploads came to that the entry has waited for, where they failed."""
    quiet: set[int] = field(default_factory=set[int])
    """By position, entries whose operator account has been told to wait."""


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
        self._templates = templates
        self._message_ttl_ms = message_ttl_ms
        self._failures: dict[Entry, Failure] = {}  # until the entry is claimed again

    async def prepare(self, entries: Sequence[Entry]) -> Prepared:
        """Mark what will be sent in hand, on disk, and give the work of each entry.

        A claim is only a lease. An entry that comes back in hand may already be read by its
        recipient and is not sent again; one that comes back merely claimed was never sent
        (decision 0006).
        """
        ids = {entry.ref.partition(" ")[2] for entry in entries}
        batch = await self._database.read(_look_up, ids)
        to_send = [
            entry
            for entry in entries
            if entry.ref.startswith("message ")
            and not entry.was_in_hand
            and _still_to_send(batch.messages.get(entry.ref.partition(" ")[2]))
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
            await self._journal.take_in_hand(ready)
        return [
            (
                entry,
                failing(unready[entry.position])
                if entry.position in unready
                else self._work_of(entry, batch),
            )
            for entry in entries
        ]

    async def _unready(self, entries: Sequence[Entry], batch: _Batch) -> dict[int, Exception]:
        """By position, why an entry cannot be sent: its app or its operator account is not there.

        The lines found here carry the batch to its end, so that a switch of the operator meanwhile
        never sends with one's number and the other's credentials (decision 0033).
        """
        unready: dict[int, Exception] = {}
        for entry in entries:
            row = batch.messages[entry.ref.partition(" ")[2]]
            try:
                line = batch.lines[row.app_id] = await self._line_of(row)
                if self._pacer.is_quiet(entry, line.account, self._clock.now_ms()):
                    batch.quiet.add(entry.position)
            except Exception as error:  # noqa: BLE001  a defect belongs to its entry
                unready[entry.position] = error
        return unready

    async def _find_media(self, entries: Sequence[Entry], batch: _Batch) -> None:
        """Note by position what is known of the media that each message refers to."""
        wanted: list[Wanted] = []
        for entry in entries:
            row = batch.messages[entry.ref.partition(" ")[2]]
            line = batch.lines[row.app_id]
            references = media_references(content_of(row))
            wanted.append(Wanted(line.app.partner_id, number_place(line), references))
        found = await self._copies.find(wanted)
        batch.media.update(zip((entry.position for entry in entries), found, strict=True))

    async def prepare_doubts(self, entries: Sequence[Entry]) -> Prepared:
        """Fail each message that is still uncertain."""
        rows = await self._database.read(messages_by_ids, {entry.ref for entry in entries})

        def work_of(entry: Entry) -> Callable[[], Awaitable[None]]:
            async def work() -> None:
                app = await self._app_of(rows[entry.ref])
                doubt = Doubt(entry.position, entry.ref, app)
                await self._journal.settle(entry, self._messages.end_doubts, doubt)

            return work

        return [(entry, work_of(entry)) for entry in entries]

    def _work_of(self, entry: Entry, batch: _Batch) -> Callable[[], Awaitable[None]]:
        kind, _, about = entry.ref.partition(" ")
        if entry.position in batch.quiet:
            return partial(self._let_go, entry)
        if kind in _ACTS:
            return lambda: self._carry_template(
                entry, Act(kind), batch.templates[about], batch.failures.get(entry.position)
            )
        failure = batch.failures.get(entry.position)
        if failure is not None and _still_to_send(batch.messages.get(about)):
            return lambda: self._end_unsent(entry, batch.messages[about], failure)
        if batch.media.get(entry.position, NOTHING).missing:
            return lambda: self._upload_first(entry, batch.messages[about], batch)
        return lambda: self._carry_message(entry, batch.messages[about], batch)

    async def _let_go(self, entry: Entry) -> None:
        """Give back what its operator account is too busy for; the pacer keeps its group quiet."""
        self._journal.let_go(entry)

    async def _upload_first(self, entry: Entry, row: Any, batch: _Batch) -> None:
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

    async def _end_unsent(self, entry: Entry, row: Any, failure: Failure) -> None:
        """What the failure of an upload means for a message that needs it."""
        match failure:
            case Rejected():
                item = MessageOutcome(entry.position, row.id, await self._app_of(row), failure)
                await self._journal.settle(entry, self._messages.record, item)
            case Unavailable():
                end = MessageOutcome(entry.position, row.id, await self._app_of(row), None)
                await self._try_later(entry, row.accepted_on_ms, failure, end)
            case Exception():
                raise failure

    async def _carry_message(self, entry: Entry, row: Any, batch: _Batch) -> None:
        app = await self._app_of(row)
        outcome: Outcome | None
        if entry.was_in_hand:
            outcome = STOPPED_WHILE_SENDING
        elif not entry.in_hand:
            outcome = None  # a status came first: the operator has it
        else:
            line, found = batch.lines[row.app_id], batch.media[entry.position]
            try:
                outcome = await self._send(line, row, batch, found)
            finally:
                self._pacer.answered(entry, self._clock.now_ms())
            if await self._copies.has_lost(row.id, line, found, outcome):
                note = "the operator may have lost its media"
                await self._journal.release(entry, due_ms=self._clock.now_ms(), note=note)
                return
            if isinstance(outcome, Rejected) and outcome.one_more_try and not entry.attempt:
                due_ms = self._clock.now_ms() + one_more_try_ms(self._chance)
                await self._journal.release(entry, due_ms=due_ms, note=outcome.text)
                return
        match outcome:
            case Unavailable():
                end = MessageOutcome(entry.position, row.id, app, None)
                self._others_wait(entry, batch.lines[row.app_id].account, outcome)
                await self._try_later(entry, row.accepted_on_ms, outcome, end)
            case Sent() | Rejected() | Uncertain() | None:
                item = MessageOutcome(entry.position, row.id, app, outcome)
                await self._journal.settle(entry, self._messages.record, item)
        self._pacer.learn(app.phone_number, app.per_second)

    async def _send(self, line: Line, row: Any, batch: _Batch, found: Found) -> Outcome:
        message = message_of(row)
        content = message.content
        if isinstance(content, TemplateSend) and not content.names_app:
            return NAMES_NO_APP
        reply_to = reply_to_of(content)
        return await self._operator.send(
            line.account,
            line.app,
            message,
            template=batch.templates.get(row.template_id),
            reply_to=batch.replied_to.get((line.app.partner_id, reply_to), reply_to)
            if reply_to
            else None,
            copies=found.copies,
        )

    async def _carry_template(
        self, entry: Entry, act: Act, template: Template, failure: Failure | None
    ) -> None:
        app = await self._directory.app(template.app_id)
        template, account = await self._as_carried(template)
        if isinstance(failure, Exception):
            raise failure
        outcome = failure or await self._hand_over(act, template, account)
        if isinstance(outcome, Found):
            missing = outcome.missing.values()
            self._copies.bring_samples(account, missing, partial(self._uploads_ended, entry))
            self._journal.park(entry)
            return
        match outcome:
            case Uncertain(text=text):
                outcome = Unavailable(text)
            case _:
                pass
        match outcome:
            case Unavailable():
                end = TemplateOutcome(entry.position, act, template.id, app, account.id, outcome)
                self._others_wait(entry, account, outcome)
                await self._try_later(entry, template.modified_on_ms, outcome, end)
            case Sent() | Rejected() | None:
                item = TemplateOutcome(entry.position, act, template.id, app, account.id, outcome)
                await self._journal.settle(entry, self._templates.record, item)

    async def _hand_over(
        self, act: Act, template: Template, account: OperatorAccount
    ) -> Outcome | Found | None:
        """Tell the operator of a template as it is now; None where there is nothing to tell any more.

        Where it shows what the operator has not got yet, nothing is told and that is given instead.

        What an entry was appended for may be out of date: a template that has been deleted meanwhile
        is neither handed in nor edited, and its deletion has an entry of its own behind this one. What
        was deleted before a switch of the operator is not deleted at the new one.
        """
        if act is Act.DELETE:
            if template.operator_template_id == NOTHING_THERE:
                return None
            return await self._operator.delete_template(account, template)
        if template.status is TemplateStatus.DELETED:
            return None
        samples = sample_references(template.draft)
        found = await self._copies.samples(account, template.partner_id, samples)
        if found.missing:
            return found
        if act is Act.EDIT:
            return await self._operator.edit_template(account, template, found.copies)
        return await self._operator.submit_template(account, template, found.copies)

    async def _as_carried(self, template: Template) -> tuple[Template, OperatorAccount]:
        """The template as it is now, with its account's operator account: of one moment, as a line is.

        By the business account, which outlives the app that created it.
        """
        found = await self._database.read(
            template_with_carrier, template.id, self._directory.unseal
        )
        if found is None:
            raise LookupError(f"template {template.id} has no operator account")
        return found

    def _others_wait(self, entry: Entry, account: OperatorAccount, outcome: Unavailable) -> None:
        """Keep quiet who else waits, for the first wait of the schedule: what is refused then says so anew."""
        until_ms = self._clock.now_ms() + wait_ms(outcome, 1, self._chance)
        self._pacer.told_to_wait(entry, account, outcome, until_ms)

    async def _try_later(
        self,
        entry: Entry,
        since_ms: int,
        outcome: Unavailable,
        end: MessageOutcome | TemplateOutcome,
    ) -> None:
        """Release for another try, or end it when it has been unavailable for too long."""
        now_ms = self._clock.now_ms()
        due_ms = now_ms + wait_ms(outcome, entry.attempt + 1, self._chance)
        if due_ms < since_ms + self._message_ttl_ms:
            await self._journal.release(entry, due_ms=due_ms, note=outcome.text)
        elif isinstance(end, TemplateOutcome):
            await self._journal.settle(
                entry,
                self._templates.record,
                replace(end, outcome=outcome),
            )
        else:
            told = f"given up after the message's lifetime: {outcome.text}"
            rejected = Rejected(outcome.told, told)
            await self._journal.settle(
                entry,
                self._messages.record,
                MessageOutcome(end.position, end.message_id, end.app, rejected),
            )

    async def _app_of(self, row: Any) -> App:
        app = await self._directory.app(row.app_id)
        if app is None:
            raise LookupError(f"message {row.id} has no app")
        return app

    async def _line_of(self, row: Any) -> Line:
        line = await self._directory.line(row.app_id)
        if line is None:
            raise LookupError(f"message {row.id} has no app, or its app no operator account")
        return line


def _still_to_send(row: Any) -> bool:
    return row is not None and row.state == MessageState.ACCEPTED


def _look_up(connection: Connection, ids: set[str]) -> _Batch:
    messages = messages_by_ids(connection, ids)
    contents = {row.id: content_of(row) for row in messages.values()}
    answered = {
        reply_to
        for content in contents.values()
        if (reply_to := reply_to_of(content)) and is_uuid(reply_to)
    }
    templates = {row.template_id for row in messages.values() if row.template_id}
    return _Batch(
        messages,
        templates_by_ids(connection, templates | (ids - messages.keys())),
        {
            (row.partner_id, row.id): row.operator_message_id
            for row in messages_by_ids(connection, answered).values()
            if row.operator_message_id
        },
    )
