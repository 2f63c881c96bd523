"""The messages of one conversation, sent and received, newest first, a page at a time.

Both directions follow an index of the recipient, so that a page costs the same whatever else is stored. A text is
searched for step by step (decision 0056). A message that still waits to be sent has no recipient yet: it is found
through its job in the queue.
"""

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, select

from waypost.domain.message import MessageState
from waypost.store.encoding import has_part
from waypost.store.messages.lists import (
    FIRST_PAGE,
    LIST_COLUMNS,
    MAX_PAGE_ROWS,
    MAX_SCANNED_ROWS,
    MessageCursor,
    SearchPage,
    SearchResults,
)
from waypost.store.messages.messages import add_code_flags
from waypost.store.messages.received import INBOUND_ORDER, newest_inbound_of_recipient
from waypost.store.messages.search import MAX_SCANNED_TEXTS, MESSAGE_ORDER, contains_text
from waypost.store.queue.job_subjects import QueueName, SubjectKind
from waypost.store.queue.jobs import read_subject
from waypost.store.tables import inbound_messages, messages, queue_jobs, recipients

_THREAD_BATCH: Final = 500


class ThreadPart(StrEnum):
    """The messages of a conversation that are shown."""

    ALL = ""
    SENT = "sent"
    RECEIVED = "received"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class ThreadFilter:
    """Filter of the messages of one conversation; the default matches all."""

    part: ThreadPart = ThreadPart.ALL
    text: str = ""  # part of a text, in any case; a message with a one-time code is not found by its text
    whole_words: bool = False  # the text is found as whole words only; the reader may not see the texts
    from_ms: int | None = None  # accepted or received then or later
    until_ms: int | None = None  # before then


ALL_OF_THREAD: Final = ThreadFilter()


@dataclass(frozen=True, slots=True)
class ThreadRecipient:
    """The recipient of a conversation."""

    id: int  # of the row that counts
    # the numbers and the business-scoped ids, as far as known: messages that wait are found by them
    names: tuple[str, ...]
    source: str  # the app's number


def search_thread(
    connection: Connection,
    partner_id: int,
    app_id: str,
    recipient: ThreadRecipient,
    query: ThreadFilter = ALL_OF_THREAD,
    page: SearchPage = FIRST_PAGE,
) -> SearchResults:
    """Return one page of a conversation, newest first.

    Args:
        partner_id: owner of the app; for another partner the page is empty.
        recipient: of this app, or the page is empty.
        page: its cursor is the time and the id of a message, sent or received.

    Returns:
        Rows with `at_ms`, `id`, and either `sent`: as `search_messages` returns it, with `recipient_id`, or
        `received`: as `search_inbound` does. The other one is None.
    """
    own = (recipients.c.app_id == app_id, recipients.c.partner_id == partner_id)
    if connection.execute(select(recipients.c.id).where(recipients.c.id == recipient.id, *own)).one_or_none() is None:
        return SearchResults([])
    page = page.limit_to(query.until_ms)
    thread = _Thread(connection, partner_id, app_id, recipient, query, page)
    horizon_ms = thread.horizon_ms() if query.text or query.part is ThreadPart.FAILED else None
    sources: list[Iterator[dict[str, Any]]] = []
    if query.part is not ThreadPart.RECEIVED:
        sources += [thread.read_sent(horizon_ms), thread.read_waiting(horizon_ms)]
    if query.part in (ThreadPart.ALL, ThreadPart.RECEIVED):
        sources.append(thread.read_received(horizon_ms))
    rows = list(islice(heapq.merge(*sources, key=_position, reverse=True), page.at_most + 1))
    if len(rows) > page.at_most:
        rows.pop()
        return SearchResults(rows, MessageCursor(*_position(rows[-1])))
    if horizon_ms is None or (query.from_ms is not None and horizon_ms <= query.from_ms):
        return SearchResults(rows)
    return SearchResults(rows, MessageCursor(horizon_ms, ""), horizon_ms)


class _Thread:
    def __init__(
        self,
        connection: Connection,
        partner_id: int,
        app_id: str,
        recipient: ThreadRecipient,
        query: ThreadFilter,
        page: SearchPage,
    ) -> None:
        self._connection = connection
        self._partner_id = partner_id
        self._app_id = app_id
        self._recipient = recipient
        self._query = query
        self._page = page
        self._sent_condition = messages.c.recipient_id == recipient.id
        self._received_condition = inbound_messages.c.recipient_id == recipient.id

    def horizon_ms(self) -> int | None:
        """Return how far back is searched; None if nothing is older."""
        limit = MAX_SCANNED_TEXTS if self._query.text else MAX_SCANNED_ROWS
        found = (
            order.find_horizon_ms(self._connection, [condition], self._page.before, limit // 2)
            for order, condition in ((MESSAGE_ORDER, self._sent_condition), (INBOUND_ORDER, self._received_condition))
        )
        return max((horizon for horizon in found if horizon is not None), default=None)

    def read_sent(self, horizon_ms: int | None) -> Iterator[dict[str, Any]]:
        """Yield messages sent to the recipient, newest first."""
        yield from self._select_sent(self._sent_condition, horizon_ms)

    def read_waiting(self, horizon_ms: int | None) -> Iterator[dict[str, Any]]:
        """Yield messages to the recipient that wait in the queue and have no recipient yet, newest first."""
        keys = [f"{self._recipient.source} {name}" for name in self._recipient.names]
        oldest = (
            select(queue_jobs.c.ref, queue_jobs.c.ordering_key)
            .where(
                queue_jobs.c.queue == int(QueueName.OUTBOUND), queue_jobs.c.concurrency_group == self._recipient.source
            )
            .order_by(queue_jobs.c.position)
            .limit(MAX_SCANNED_ROWS)
            .subquery()
        )
        refs = self._connection.execute(
            select(oldest.c.ref).where(oldest.c.ordering_key.in_(keys)).limit(MAX_PAGE_ROWS)
        ).scalars()
        jobs = [read_subject(QueueName.OUTBOUND, ref) for ref in refs]
        ids = [job.id for job in jobs if job.kind is SubjectKind.MESSAGE]
        if ids:
            waits = and_(messages.c.id.in_(ids), messages.c.recipient_id.is_(None), messages.c.app_id == self._app_id)
            yield from self._select_sent(waits, horizon_ms)

    def read_received(self, horizon_ms: int | None) -> Iterator[dict[str, Any]]:
        """Yield messages that the recipient sent, newest first."""
        before, batch = self._page.before, self._page.at_most + 1
        conditions = INBOUND_ORDER.time_conditions(self._query.from_ms, horizon_ms)
        text, whole_words = self._query.text, self._query.whole_words
        while True:
            rows = newest_inbound_of_recipient(
                self._connection, self._partner_id, self._recipient.id, conditions, before, batch
            )
            for row in rows:
                if not text or (not row["holds_code"] and has_part(row["text"] or "", text, whole_words=whole_words)):
                    yield _entry(row["received_on_ms"], row["operator_message_id"], received=row)
            if len(rows) < batch:
                return
            before, batch = MessageCursor(rows[-1]["received_on_ms"], rows[-1]["operator_message_id"]), _THREAD_BATCH

    def _select_sent(self, condition: ColumnElement[bool], horizon_ms: int | None) -> Iterator[dict[str, Any]]:
        before, batch = self._page.before, self._page.at_most + 1
        text, whole_words = self._query.text, self._query.whole_words
        conditions = [
            condition,
            messages.c.partner_id == self._partner_id,
            *MESSAGE_ORDER.time_conditions(self._query.from_ms, horizon_ms),
        ]
        if self._query.part is ThreadPart.FAILED:
            conditions.append(messages.c.state == MessageState.FAILED.value)
        while True:
            query = MESSAGE_ORDER.sort_newest_first(select(*_SENT_COLUMNS).where(*conditions), before).limit(batch)
            decoded = [dict(row) for row in self._connection.execute(query).mappings()]
            rows = add_code_flags(self._connection, self._partner_id, decoded)
            for row in rows:
                if not text or (not row["holds_code"] and contains_text(row["content"], text, whole_words=whole_words)):
                    yield _entry(row["accepted_on_ms"], row["id"], sent=row)
            if len(rows) < batch:
                return
            before, batch = MessageCursor(rows[-1]["accepted_on_ms"], rows[-1]["id"]), _THREAD_BATCH


def _entry(
    at_ms: int, id: str, sent: dict[str, Any] | None = None, received: dict[str, Any] | None = None
) -> dict[str, Any]:
    return {"at_ms": at_ms, "id": id, "sent": sent, "received": received}


def _position(row: dict[str, Any]) -> tuple[int, str]:
    return row["at_ms"], row["id"]


_SENT_COLUMNS: Final = (*LIST_COLUMNS, messages.c.content, messages.c.recipient_id)
