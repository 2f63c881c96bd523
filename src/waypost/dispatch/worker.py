"""Claim, mark in hand, and give each entry to whoever carries it."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial

from waypost.base.telemetry.counters import CallCounts
from waypost.base.telemetry.tracing import Step, steps
from waypost.dispatch.batch import Batch, look_up, still_to_send
from waypost.dispatch.message_outcomes import Doubt, MessageOutcomes, app_of_message
from waypost.dispatch.message_sender import MessageSender
from waypost.dispatch.retries import Waiting
from waypost.dispatch.template_actions import TemplateActs
from waypost.queue.job import Entry
from waypost.queue.queue import Journal
from waypost.queue.worker import Prepared, failing
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.messages.messages import FRESH, MessageRow, messages_by_ids
from waypost.store.queue.job_subjects import TEMPLATE_KINDS, SubjectKind


class Dispatch:
    """The work of the submissions lane."""

    def __init__(
        self,
        *,
        database: Database,
        journal: Journal,
        sender: MessageSender,
        template_acts: TemplateActs,
        waiting: Waiting,
    ) -> None:
        self._database = database
        self._journal = journal
        self._sender = sender
        self._template_acts = template_acts
        self._waiting = waiting

    @property
    def counts(self) -> CallCounts:
        """Messages handed to the operator: outcome and class of the operator's code."""
        return self._sender.counts

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
        unready = await self._sender.find_lines(to_send, batch)
        for entry in entries:
            failure = self._waiting.pop_failure(entry)
            if failure is not None:
                batch.failures[entry.position] = failure
        ready = [
            entry
            for entry in to_send
            if entry.position not in unready
            and entry.position not in batch.failures
            and entry.position not in batch.quiet
        ]
        await self._sender.find_media(ready, batch)
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

    def _work_of(self, entry: Entry, batch: Batch) -> Callable[[], Awaitable[None]]:
        if entry.position in batch.lost:
            return partial(self._leave_to_another, entry)
        if entry.subject.kind in TEMPLATE_KINDS:
            failure = batch.failures.get(entry.position)
            return lambda: self._template_acts.carry(entry, batch.templates[entry.subject.id], failure)
        return lambda: self._sender.carry(entry, batch)

    async def _leave_to_another(self, entry: Entry) -> None:
        """Let go of what another process works now: this one's lease ran out before it could be sent."""
        self._journal.let_go(entry)


class UnconfirmedMessages:
    """The work of the lane of messages that may have been sent."""

    def __init__(
        self, *, database: Database, journal: Journal, directory: Directory, messages: MessageOutcomes
    ) -> None:
        self._database = database
        self._journal = journal
        self._directory = directory
        self._messages = messages

    async def prepare(self, entries: Sequence[Entry]) -> Prepared:
        """Fail each message that is still uncertain."""
        rows = await self._database.read(messages_by_ids, {entry.subject.id for entry in entries})
        return [(entry, lambda entry=entry: self._end(entry, rows[entry.subject.id])) for entry in entries]

    async def _end(self, entry: Entry, row: MessageRow) -> None:
        app = await app_of_message(self._directory, row)
        await self._journal.settle(entry, self._messages.end_doubts, Doubt(entry.position, row.id, app))


def _is_untouched(entry: Entry) -> bool:
    """Whether nothing can have become of it since it was appended."""
    return not (entry.attempt or entry.defects or entry.was_in_hand)
