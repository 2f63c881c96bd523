"""The messages of one conversation, sent and received, newest first, a page at a time.

Both directions follow an index of the recipient, so that a page costs the same whatever else is stored. A text is
searched for step by step (decision 0056). A message that still waits to be sent has no recipient yet: it is found
through its job in the queue.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, select

from waypost.domain.message import MessageState
from waypost.store.encoding import has_part
from waypost.store.messages.lists import (
    FIRST_PAGE,
    LIST_COLUMNS,
    MAX_SCANNED_ROWS,
    MESSAGE_ORDER,
    SearchPage,
    SearchResults,
    merge_page,
)
from waypost.store.messages.messages import add_code_flags
from waypost.store.messages.received import INBOUND_ORDER, add_texts, select_inbound
from waypost.store.messages.search import MAX_SCANNED_TEXTS, has_visible_text, waiting_message_ids
from waypost.store.sql import is_of_app
from waypost.store.tables import inbound_messages, messages, recipients

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
    own = is_of_app(recipients, partner_id, app_id)
    if connection.execute(select(recipients.c.id).where(recipients.c.id == recipient.id, own)).one_or_none() is None:
        return SearchResults([])
    page = page.limit_to(query.until_ms)
    thread = _Thread(connection, partner_id, app_id, recipient, query, page)
    horizon_ms = thread.horizon_ms() if query.text or query.part is ThreadPart.FAILED else None
    sources: list[Iterator[dict[str, Any]]] = []
    if query.part is not ThreadPart.RECEIVED:
        sources += [thread.read_sent(condition, horizon_ms) for condition in thread.sent_conditions()]
    if query.part in (ThreadPart.ALL, ThreadPart.RECEIVED):
        sources.append(thread.read_received(horizon_ms))
    return merge_page(
        sources, lambda row: (row["at_ms"], row["id"]), page, from_ms=query.from_ms, horizon_ms=horizon_ms
    )


@dataclass(frozen=True, slots=True)
class _Thread:
    connection: Connection
    partner_id: int
    app_id: str
    recipient: ThreadRecipient
    query: ThreadFilter
    page: SearchPage

    def horizon_ms(self) -> int | None:
        """Return how far back is searched; None if nothing is older."""
        limit = MAX_SCANNED_TEXTS if self.query.text else MAX_SCANNED_ROWS
        orders = ((MESSAGE_ORDER, messages.c.recipient_id), (INBOUND_ORDER, inbound_messages.c.recipient_id))
        found = (
            order.find_horizon_ms(self.connection, [column == self.recipient.id], self.page.before, limit // 2)
            for order, column in orders
        )
        return max((horizon for horizon in found if horizon is not None), default=None)

    def sent_conditions(self) -> Iterator[ColumnElement[bool]]:
        """Yield the conditions of messages to the recipient, and of those that wait and have no recipient yet."""
        yield messages.c.recipient_id == self.recipient.id
        keys = [f"{self.recipient.source} {name}" for name in self.recipient.names]
        if ids := waiting_message_ids(self.connection, self.recipient.source, lambda key: key.in_(keys)):
            yield and_(messages.c.id.in_(ids), messages.c.recipient_id.is_(None), messages.c.app_id == self.app_id)

    def read_sent(self, condition: ColumnElement[bool], horizon_ms: int | None) -> Iterator[dict[str, Any]]:
        """Yield the matching ones of sent messages, newest first."""
        conditions = [
            condition,
            messages.c.partner_id == self.partner_id,
            *MESSAGE_ORDER.time_conditions(self.query.from_ms, horizon_ms),
        ]
        if self.query.part is ThreadPart.FAILED:
            conditions.append(messages.c.state == MessageState.FAILED.value)
        statement = select(*_SENT_COLUMNS).where(*conditions)
        return MESSAGE_ORDER.scan(self.connection, statement, self.page, _THREAD_BATCH, self._match_sent)

    def _match_sent(self, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        for row in add_code_flags(self.connection, self.partner_id, rows):
            if has_visible_text(row, self.query.text, whole_words=self.query.whole_words):
                yield {"at_ms": row["accepted_on_ms"], "id": row["id"], "sent": row, "received": None}

    def read_received(self, horizon_ms: int | None) -> Iterator[dict[str, Any]]:
        """Yield the matching messages that the recipient sent, newest first."""
        conditions = INBOUND_ORDER.time_conditions(self.query.from_ms, horizon_ms)
        statement = select_inbound(self.partner_id).where(
            inbound_messages.c.recipient_id == self.recipient.id, *conditions
        )
        return INBOUND_ORDER.scan(self.connection, statement, self.page, _THREAD_BATCH, self._match_received)

    def _match_received(self, rows: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        text, whole_words = self.query.text, self.query.whole_words
        for row in add_texts(self.connection, self.partner_id, rows):
            if not text or (not row["holds_code"] and has_part(row["text"] or "", text, whole_words=whole_words)):
                at_ms, message_id = INBOUND_ORDER.position(row)
                yield {"at_ms": at_ms, "id": message_id, "sent": None, "received": row}


_SENT_COLUMNS: Final = (*LIST_COLUMNS, messages.c.content, messages.c.recipient_id)
