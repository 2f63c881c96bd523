"""Conversations of an app: its recipients by their last activity, newest first, a page at a time.

No row is written for this when a message is sent. Who wrote last is read from `recipients_by_window`, and to whom
was sent last from the newest messages of the app, both step by step (decisions 0056 and 0106).
"""

import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, exists, func, select, tuple_, update

from waypost.base.ids import is_uuid
from waypost.domain.app import CUSTOMER_SERVICE_WINDOW_MS
from waypost.domain.message import MessageState
from waypost.store.messages.lists import MESSAGE_ORDER, MessageCursor, SearchPage, SearchResults, TimeOrder
from waypost.store.messages.received import INBOUND_ORDER, find_inbound_by_ids
from waypost.store.messages.recipients import names_of_persons
from waypost.store.messages.search import ascii_parts, current_messages, numbers_of_app, text_condition
from waypost.store.sql import equals_any, is_of_app, read_dicts
from waypost.store.tables import inbound_messages, messages, recipients

MAX_SCANNED_ACTIVITIES: Final = 5_000
"""Sent messages, and recipients who wrote, that one request of the list examines at most."""
MAX_FOUND_RECIPIENTS: Final = 100  # of a number or an id, of whom the list shows no more
MAX_UNREAD: Final = 100  # unread messages are counted up to here
MAX_EXAMINED_RECIPIENTS: Final = 300  # recipients whose last messages one request of the list reads at most
_ACTIVITY_BATCH: Final = 500
_CHUNK: Final = 60


@dataclass(frozen=True, slots=True)
class ConversationFilter:
    """Filter of conversations; the default matches all."""

    number: str | None = None  # consecutive digits of the recipient's number
    id: str | None = None  # a business-scoped id, or an id of a message of the conversation, ours or the operator's
    name: str | None = None  # part of the recipient's name, in any case. Only recipients who wrote have one
    open_at_ms: int | None = None  # the customer service window is open at this time
    is_unread: bool = False  # it has received messages that are not marked as read, and nothing was sent to it since
    has_failed: bool = False  # the last message sent has failed

    @property
    def is_of_writers(self) -> bool:
        """True if only recipients who wrote can match; they are ordered by when they wrote last."""
        return self.name is not None or self.open_at_ms is not None or self.is_unread


ALL_CONVERSATIONS: Final = ConversationFilter()
FIRST_CONVERSATIONS: Final = SearchPage(scan_limit=MAX_SCANNED_ACTIVITIES)


def list_conversations(
    connection: Connection,
    partner_id: int,
    app_id: str,
    query: ConversationFilter = ALL_CONVERSATIONS,
    page: SearchPage = FIRST_CONVERSATIONS,
) -> SearchResults:
    """Return one page of conversations, that of the last activity first.

    Args:
        partner_id: owner of the app; for another partner the page is empty.
        page: its cursor has the time of the last activity and the recipient's id.

    Returns:
        Rows with `id`, `phone_number`, `user_id`, `name`, `window_until_ms`, `read_until_ms`, `last_ms`: the time by
        which they are ordered, `unread` up to `MAX_UNREAD`,
        `sent`: the last message sent, as `search_messages` returns it, or None, and `received`: the last message
        received, as `search_inbound` returns it, or None.
    """
    page = page.limit_to(None)
    reader = _ConversationReader(connection, partner_id, app_id, query)
    if query.number is not None or query.id is not None:
        return reader.page_of(reader.found_ids(), page)
    return reader.page_by_activity(page)


def find_conversation(connection: Connection, partner_id: int, app_id: str, recipient_id: int) -> dict[str, Any] | None:
    """Return one conversation as `list_conversations` does, with `names`: all numbers and ids of the recipient.

    A former row of a person leads to the one that counts. None if the app has no such recipient.
    """
    reader = _ConversationReader(connection, partner_id, app_id, ALL_CONVERSATIONS)
    rows = reader.read_rows([recipient_id])
    if rows and rows[0]["same_as"] is not None:
        rows = reader.read_rows([rows[0]["same_as"]])
    names = names_of_persons(connection, [row["id"] for row in rows])
    return {**reader.add_details(rows)[0], "names": names[rows[0]["id"]]} if rows else None


def mark_conversation_read(connection: Connection, app_id: str, recipient_id: int, until_ms: int) -> None:
    """Store that what a recipient wrote until then was read; an earlier time changes nothing."""
    connection.execute(
        update(recipients)
        .where(
            recipients.c.id == recipient_id,
            recipients.c.app_id == app_id,
            func.coalesce(recipients.c.read_until_ms, 0) < until_ms,
        )
        .values(read_until_ms=until_ms)
    )


@dataclass(frozen=True, slots=True)
class _ConversationReader:
    connection: Connection
    partner_id: int
    app_id: str
    query: ConversationFilter

    def page_by_activity(self, page: SearchPage) -> SearchResults:
        """Return the page of the recipients that were active last."""
        scan = _ActivityScan(self.connection, self.partner_id, self.app_id, self.query, page)
        rows: list[dict[str, Any]] = []
        candidates = scan.candidates()
        examined = 0
        while len(rows) <= page.at_most:
            chunk = list(islice(candidates, _CHUNK))
            if not chunk:
                return self._page_of_rows(rows, page, scan.horizon_ms)
            rows += self._current(chunk)
            examined += len(chunk)
            if examined >= MAX_EXAMINED_RECIPIENTS and len(rows) <= page.at_most:
                at_ms, recipient_id = chunk[-1]
                return SearchResults(self.add_details(rows), MessageCursor(at_ms, str(recipient_id)), at_ms)
        return self._page_of_rows(rows, page, None)

    def page_of(self, ids: Sequence[int], page: SearchPage) -> SearchResults:
        """Return the page of these recipients."""
        rows = [row for row in self.read_rows(ids) if row["same_as"] is None and self._matches(row)]
        before = page.before
        if before is not None:
            rows = [row for row in rows if _position(row) < _cursor_position(before)]
        return self._page_of_rows(sorted(rows, key=_position, reverse=True), page, None)

    def _page_of_rows(self, rows: list[dict[str, Any]], page: SearchPage, horizon_ms: int | None) -> SearchResults:
        if len(rows) > page.at_most:
            rows = rows[: page.at_most]
            return SearchResults(self.add_details(rows), MessageCursor(rows[-1]["last_ms"], str(rows[-1]["id"])))
        if horizon_ms is None:
            return SearchResults(self.add_details(rows))
        # Of the activities at the horizon itself, some may not have been scanned: they are on the next page.
        return SearchResults(self.add_details(rows), MessageCursor(horizon_ms + 1, "0"), horizon_ms)

    def found_ids(self) -> list[int]:
        """Return the recipients of the filter's number or id."""
        person = func.coalesce(recipients.c.same_as, recipients.c.id)
        of_app = is_of_app(recipients, self.partner_id, self.app_id)
        if self.query.id is not None:
            has_id = select(person).where(of_app, recipients.c.user_id == self.query.id)
            return sorted({*self.connection.execute(has_id).scalars(), *self._recipients_of_message(self.query.id)})
        number, numbers = self.query.number or "", numbers_of_app(self.app_id)
        partial = select(numbers.c.id).where(numbers.c.phone_number.contains(number))
        exact = select(person).where(of_app, recipients.c.phone_number == number)
        queries = (exact, partial.limit(MAX_FOUND_RECIPIENTS))
        return sorted({one for query in queries for one in self.connection.execute(query).scalars()})

    def _recipients_of_message(self, name: str) -> set[int]:
        """Return the recipient of a message, sent or received, by any of its ids."""
        own = is_of_app(messages, self.partner_id, self.app_id)
        queries: list[Any] = [
            select(messages.c.recipient_id).where(messages.c.operator_message_id == name, own).limit(2),
            select(inbound_messages.c.recipient_id).where(
                inbound_messages.c.operator_message_id == name,
                is_of_app(inbound_messages, self.partner_id, self.app_id),
            ),
        ]
        if is_uuid(name.lower()):
            queries.append(select(messages.c.recipient_id).where(messages.c.id == name.lower(), own))
        ids = {one for query in queries for one in self.connection.execute(query).scalars() if one}
        return {row["same_as"] or row["id"] for row in self.read_rows(sorted(ids))}

    def read_rows(self, ids: Sequence[int]) -> list[dict[str, Any]]:
        """Return rows of recipients, each with its last messages and `last_ms`, unordered."""
        if not ids:
            return []
        query = _CONVERSATIONS.where(is_of_app(recipients, self.partner_id, self.app_id))
        return [{**row, "last_ms": self._last_ms(row)} for row in read_dicts(self.connection, query, ids=list(ids))]

    def add_details(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return rows with their last messages."""
        scope = (self.connection, self.partner_id, self.app_id)
        sent_ids = [row["last_sent_id"] for row in rows if row["last_sent_id"]]
        received_ids = [row["last_received_id"] for row in rows if row["last_received_id"]]
        sent = {row["id"]: row for row in (current_messages(*scope, sent_ids) if sent_ids else ())}
        received = {row["operator_message_id"]: row for row in find_inbound_by_ids(*scope, received_ids)}
        return [
            {**row, "sent": sent.get(row["last_sent_id"]), "received": received.get(row["last_received_id"])}
            for row in rows
        ]

    def _current(self, candidates: Sequence[tuple[int, int]]) -> list[dict[str, Any]]:
        """Return the rows of candidates whose last activity is that by which they were found, in the same order."""
        rows = {row["id"]: row for row in self.read_rows([recipient_id for _, recipient_id in candidates])}
        return [
            rows[recipient_id]
            for at_ms, recipient_id in candidates
            if recipient_id in rows and rows[recipient_id]["last_ms"] == at_ms and self._matches(rows[recipient_id])
        ]

    def _matches(self, row: dict[str, Any]) -> bool:
        query = self.query
        if query.open_at_ms is not None and (row["window_until_ms"] or 0) <= query.open_at_ms:
            return False
        if query.is_unread and not row["unread"]:
            return False
        if query.has_failed and row["last_sent_state"] != MessageState.FAILED:
            return False
        return query.name is None or query.name.casefold() in row["name"].casefold()

    def _last_ms(self, row: dict[str, Any]) -> int:
        wrote_ms = (row["window_until_ms"] or CUSTOMER_SERVICE_WINDOW_MS) - CUSTOMER_SERVICE_WINDOW_MS
        return wrote_ms if self.query.is_of_writers else max(wrote_ms, row["last_sent_ms"] or 0)


@dataclass(slots=True)
class _ActivityScan:
    """The recipients of an app in the order of their activities, newest first; each once."""

    connection: Connection
    partner_id: int
    app_id: str
    query: ConversationFilter
    page: SearchPage
    horizon_ms: int | None = None  # how far back the scan went, if its limit ended it

    def candidates(self) -> Iterator[tuple[int, int]]:
        """Yield `(time, recipient id)` of activities before the page's cursor; a recipient's newest only."""
        before = None if self.page.before is None else _cursor_position(self.page.before)
        known: set[int] = set()
        sources = [self._writers()]
        if not self.query.is_of_writers:
            sources.append(self._addressees())
        for _, group in groupby(heapq.merge(*sources, reverse=True), key=lambda activity: activity[0]):
            for activity in sorted(set(group), reverse=True):
                if before is not None and activity >= before:
                    continue
                if self.horizon_ms is not None and activity[0] <= self.horizon_ms:
                    return
                if activity[1] not in known:
                    known.add(activity[1])
                    yield activity

    def _writers(self) -> Iterator[tuple[int, int]]:
        """Yield recipients by the end of their window, which is a day after they wrote last."""
        window = recipients.c.window_until_ms
        conditions: list[ColumnElement[bool]] = [window.is_not(None), recipients.c.same_as.is_(None)]
        if self.query.open_at_ms is not None:
            conditions.append(window > self.query.open_at_ms)
        if self.query.is_unread:
            conditions.append(exists(_UNREAD_TIMES))
        needle = (self.query.name or "").casefold()
        if self.query.name:
            conditions.append(text_condition(self.connection, recipients.c.name, ascii_parts(self.query.name)))
        cursor = self.page.before
        until_ms = None if cursor is None else cursor.accepted_on_ms + CUSTOMER_SERVICE_WINDOW_MS
        of_app = recipients.c.app_id == self.app_id
        end = select(window).where(of_app, window.is_not(None))
        end = end if until_ms is None else end.where(window <= until_ms)
        end = end.order_by(window.desc()).offset(self.page.scan_limit).limit(1)
        end_ms = self.connection.execute(end).scalar_one_or_none()
        if end_ms is not None:
            self._limit(end_ms - CUSTOMER_SERVICE_WINDOW_MS)
            conditions.append(window > end_ms)
        before: tuple[int, int] | None = None if until_ms is None else (until_ms + 1, 0)
        while True:
            query = select(window, recipients.c.id, recipients.c.name).where(of_app, *conditions)
            if before is not None:
                query = query.where(tuple_(window, recipients.c.id) < before)
            newest = query.order_by(window.desc(), recipients.c.id.desc()).limit(_ACTIVITY_BATCH)
            rows = self.connection.execute(newest).all()
            for ends_ms, recipient_id, name in rows:
                if needle in name.casefold():
                    yield ends_ms - CUSTOMER_SERVICE_WINDOW_MS, recipient_id
            if len(rows) < _ACTIVITY_BATCH:
                return
            before = (rows[-1][0], rows[-1][1])

    def _addressees(self) -> Iterator[tuple[int, int]]:
        """Yield the recipients of the newest messages; those without a recipient yet are left out."""
        at_ms = messages.c.accepted_on_ms
        cursor = self.page.before
        before = None if cursor is None else MessageCursor(cursor.accepted_on_ms + 1, "")
        batch, scanned, first_ms = _CHUNK, 0, None
        while True:
            query: Any = select(at_ms, messages.c.id, messages.c.recipient_id).where(
                is_of_app(messages, self.partner_id, self.app_id)
            )
            rows: Any = self.connection.execute(MESSAGE_ORDER.sort_newest_first(query, before).limit(batch)).all()
            for accepted_on_ms, _, recipient_id in rows:
                if recipient_id is not None:
                    yield accepted_on_ms, recipient_id
            scanned += len(rows)
            if len(rows) < batch:
                return
            first_ms, last_ms = rows[0][0] if first_ms is None else first_ms, rows[-1][0]
            if scanned >= self.page.scan_limit:
                self._limit(last_ms if last_ms < first_ms else last_ms - 1)  # the next page has to begin further back
                return
            before, batch = MessageCursor(last_ms, rows[-1][1]), min(_ACTIVITY_BATCH, self.page.scan_limit - scanned)

    def _limit(self, horizon_ms: int) -> None:
        self.horizon_ms = horizon_ms if self.horizon_ms is None else max(self.horizon_ms, horizon_ms)


def _position(row: dict[str, Any]) -> tuple[int, int]:
    return row["last_ms"], row["id"]


def _cursor_position(cursor: MessageCursor) -> tuple[int, int]:
    """Return a cursor as a position; one that is not of this list begins before all of its time."""
    is_id = cursor.id.isascii() and cursor.id.isdecimal() and len(cursor.id) < 19
    return cursor.accepted_on_ms, int(cursor.id) if is_id else 0


def _newest_value(order: TimeOrder, column: Column[Any]) -> Any:
    newest = order.sort_newest_first(select(column).where(column.table.c.recipient_id == recipients.c.id), None)
    return newest.limit(1).correlate(recipients).scalar_subquery()


_UNREAD_TIMES: Final = (
    select(inbound_messages.c.received_on_ms)
    .where(
        inbound_messages.c.recipient_id == recipients.c.id,
        inbound_messages.c.received_on_ms > func.coalesce(recipients.c.read_until_ms, 0),
        inbound_messages.c.received_on_ms > func.coalesce(_newest_value(MESSAGE_ORDER, messages.c.accepted_on_ms), 0),
    )
    .correlate(recipients)
)
_UNREAD: Final = _UNREAD_TIMES.limit(MAX_UNREAD).subquery()
_CONVERSATIONS: Final = select(
    *(
        recipients.c[name]
        for name in ("id", "phone_number", "user_id", "name", "window_until_ms", "read_until_ms", "same_as")
    ),
    _newest_value(MESSAGE_ORDER, messages.c.id).label("last_sent_id"),
    _newest_value(MESSAGE_ORDER, messages.c.accepted_on_ms).label("last_sent_ms"),
    _newest_value(MESSAGE_ORDER, messages.c.state).label("last_sent_state"),
    _newest_value(INBOUND_ORDER, inbound_messages.c.operator_message_id).label("last_received_id"),
    select(func.count()).select_from(_UNREAD).correlate(recipients).scalar_subquery().label("unread"),
).where(equals_any(recipients.c.id, "ids"))
