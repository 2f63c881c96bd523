"""Claim, mark in hand, carry, settle."""

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.base.ids import is_uuid
from waypost.dispatch.media import NOTHING, Copies
from waypost.dispatch.messages import Doubt, MessageOutcome, MessageOutcomes
from waypost.dispatch.pacing import Pacer
from waypost.dispatch.retries import wait_ms
from waypost.dispatch.templates import TemplateOutcome, TemplateOutcomes
from waypost.dispatch.uploads import Failure
from waypost.domain.app import App, OperatorAccount
from waypost.domain.message import MessageState, TemplateSend, media_references, reply_to_of
from waypost.domain.outcome import (
    INVALID_ANSWER,
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
    media: dict[int, Found] = field(default_factory=dict[int, Found])  # by position
    failures: dict[int, Failure] = field(default_factory=dict[int, Failure])
    """By position, what the uploads came to that the entry has waited for, where they failed."""


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
            if entry.position not in unready and entry.position not in batch.failures
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
        """By position, why an entry cannot be sent: its app or its operator account is not there."""
        unready: dict[int, Exception] = {}
        for entry in entries:
            try:
                app = await self._app_of(batch.messages[entry.ref.partition(" ")[2]])
                await self._account_of(app)
            except Exception as error:  # noqa: BLE001  a defect belongs to its entry
                unready[entry.position] = error
        return unready

    async def _find_media(self, entries: Sequence[Entry], batch: _Batch) -> None:
        """Note by position what is known of the media that each message refers to."""
        wanted: list[Wanted] = []
        for entry in entries:
            row = batch.messages[entry.ref.partition(" ")[2]]
            app = await self._app_of(row)
            references = media_references(content_of(row))
            wanted.append(Wanted(app.partner_id, app.phone_number_id, references))
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

    async def _upload_first(self, entry: Entry, row: Any, batch: _Batch) -> None:
        """Have brought to the operator what the message needs, and let it wait for that.

        The entry is not in hand, for nothing of it is sent, and takes no place while it waits: however
        slow an upload is, it holds up only those who need it.
        """
        app = await self._app_of(row)
        account = await self._account_of(app)
        missing = batch.media[entry.position].missing.values()
        self._copies.bring(account, app, missing, partial(self._uploads_ended, entry))
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
            found = batch.media[entry.position]
            outcome = await self._send(app, row, batch, found)
            if await self._copies.has_lost(row.id, app, found, outcome):
                note = "the operator may have lost its media"
                await self._journal.release(entry, due_ms=self._clock.now_ms(), note=note)
                return
        match outcome:
            case Unavailable():
                end = MessageOutcome(entry.position, row.id, app, None)
                await self._try_later(entry, row.accepted_on_ms, outcome, end)
            case Sent() | Rejected() | Uncertain() | None:
                item = MessageOutcome(entry.position, row.id, app, outcome)
                await self._journal.settle(entry, self._messages.record, item)
        self._pacer.learn(app.phone_number, app.per_second)

    async def _send(self, app: App, row: Any, batch: _Batch, found: Found) -> Outcome:
        message = message_of(row)
        content = message.content
        if isinstance(content, TemplateSend) and not content.names_app:
            return NAMES_NO_APP
        reply_to = reply_to_of(content)
        return await self._operator.send(
            await self._account_of(app),
            app,
            message,
            template=batch.templates.get(row.template_id),
            reply_to=batch.replied_to.get((app.partner_id, reply_to), reply_to)
            if reply_to
            else None,
            copies=found.copies,
        )

    async def _carry_template(
        self, entry: Entry, act: Act, template: Template, failure: Failure | None
    ) -> None:
        app = await self._directory.app(template.app_id)
        if isinstance(failure, Exception):
            raise failure
        outcome = failure or await self._hand_over(act, template)
        if isinstance(outcome, Found):
            account = await self._account_of_template(template)
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
                end = TemplateOutcome(entry.position, act, template.id, app, outcome)
                await self._try_later(entry, template.modified_on_ms, outcome, end)
            case Sent() | Rejected() | None:
                item = TemplateOutcome(entry.position, act, template.id, app, outcome)
                await self._journal.settle(entry, self._templates.record, item)

    async def _hand_over(self, act: Act, template: Template) -> Outcome | Found | None:
        """Tell the operator of a template as it is now; None where there is nothing to tell any more.

        Where it shows what the operator has not got yet, nothing is told and that is given instead.

        What an entry was appended for may be out of date: a template that has been deleted meanwhile
        is neither handed in nor edited, and its deletion has an entry of its own behind this one.
        """
        account = await self._account_of_template(template)
        if act is Act.DELETE:
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

    async def _account_of_template(self, template: Template) -> OperatorAccount:
        """The operator account by the business account, which outlives the app that created it."""
        owner = await self._directory.business_account(template.business_account_id)
        account = owner and await self._directory.operator_account(owner.operator_account_id)
        if account is None:
            raise LookupError(f"template {template.id} has no operator account")
        return account

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
            code = outcome.code if outcome.code > 999 else INVALID_ANSWER
            rejected = Rejected(code, f"given up after the message's lifetime: {outcome.text}")
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

    async def _account_of(self, app: App) -> OperatorAccount:
        account = await self._directory.operator_account_of(app)
        if account is None:
            raise LookupError(f"app {app.id} has no operator account")
        return account


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
