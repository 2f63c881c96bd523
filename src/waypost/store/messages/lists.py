"""Lists of an app's messages, newest first, a page at a time: for people to browse.

A page begins where the last one ended, so that the thousandth costs what the first does; and it is
read from an index in its order, so that its cost does not depend on what else is stored.
"""

import heapq
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, func, select, tuple_

from waypost.store.sql import equals_any, is_of_app, read_all, read_dicts
from waypost.store.tables import messages, recipients, templates

MAX_PAGE_ROWS: Final = 200  # maximum number of rows on a page

LIST_COLUMNS: Final = (  # without the content of the message, which a list does not show
    messages.c.id, messages.c.source, messages.c.destination, messages.c.kind, messages.c.template_id,
    messages.c.state, messages.c.code, messages.c.reason, messages.c.operator_message_id,
    messages.c.sandbox, messages.c.unconfirmed, messages.c.accepted_on_ms, messages.c.changed_on_ms,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class MessageCursor:
    """The end of a page: its last message."""

    accepted_on_ms: int
    id: str


def messages_of_app(
    connection: Connection,
    partner_id: int,
    app_id: str,
    *,
    destination: str | None = None,
    before: MessageCursor | None = None,
    at_most: int = 50,
) -> list[dict[str, Any]]:
    """Return one page of the messages that an app has sent, newest first, with their content.

    Args:
        partner_id: owner of the app; for another partner the list is empty.
        destination: only messages to this number, digits as stored, or to this business-scoped id. A
            message is included once its state has changed for the first time: an index on messages
            that are merely accepted would be written at a random place for each message, which halves
            the rate at five million stored (decision 0049).
        at_most: never more than `MAX_PAGE_ROWS`.
    """
    query = select(*LIST_COLUMNS, messages.c.content).where(is_of_app(messages, partner_id, app_id))
    if destination is not None:
        name = recipients.c.phone_number if destination.isdecimal() else recipients.c.user_id
        person = func.coalesce(recipients.c.same_as, recipients.c.id)  # a former or a parent id leads to it too
        recipient_id = select(person).where(recipients.c.app_id == app_id, name == destination)
        query = query.where(messages.c.recipient_id == recipient_id.scalar_subquery())
    newest = MESSAGE_ORDER.sort_newest_first(query, before)
    return read_dicts(connection, newest.limit(min(at_most, MAX_PAGE_ROWS)))


def template_names(connection: Connection, partner_id: int, app_id: str, at_most: int = 1000) -> dict[str, str]:
    """Return the names of an app's templates by id, newest first; deleted ones too, as messages outlive them."""
    of_app = _TEMPLATES.where(is_of_app(templates, partner_id, app_id))
    return dict(read_all(connection, of_app.order_by(templates.c.id.desc()).limit(at_most), _name_by_id))


def template_names_by_ids(connection: Connection, partner_id: int, ids: Iterable[str | None]) -> dict[str, str]:
    """Return the names of a partner's templates by id, of any of its apps, deleted or not."""
    template_ids = sorted({template_id for template_id in ids if template_id})
    if not template_ids:
        return {}
    named = _TEMPLATES.where(equals_any(templates.c.id, "ids"), templates.c.partner_id == partner_id)
    return dict(read_all(connection, named, _name_by_id, ids=template_ids))


def _name_by_id(row: Any) -> tuple[str, str]:
    return row.id, f"{row.element_name} ({row.language_code})"


_TEMPLATES: Final = select(templates.c.id, templates.c.element_name, templates.c.language_code)


_Select = Any  # of many columns

MAX_SCANNED_ROWS: Final = 20_000  # rows of an app that one request scans for rare matches: about 50 ms on either engine


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The page of a search to be returned, and its limits."""

    before: MessageCursor | None = None  # return the page after the one that ended there; None: the first
    at_most: int = 50  # how many rows; never more than `MAX_PAGE_ROWS`
    scan_limit: int = MAX_SCANNED_ROWS  # how many rows are scanned at most for matches without an index

    def limit_to(self, until_ms: int | None) -> "SearchPage":
        """Return the same page restricted to rows before a time, with at most the maximum number of rows."""
        before = self.before
        if until_ms is not None and (before is None or before.accepted_on_ms >= until_ms):
            before = MessageCursor(until_ms, "")
        return replace(self, before=before, at_most=min(self.at_most, MAX_PAGE_ROWS))


FIRST_PAGE: Final = SearchPage()  # the first page, within the default limits


@dataclass(frozen=True, slots=True)
class SearchResults:
    """One page of results."""

    rows: list[dict[str, Any]]  # newest first
    next: MessageCursor | None = None  # where the next page begins; None: everything has been scanned
    searched_to_ms: int | None = None  # how far back the search went, if the scan limit ended the page


@dataclass(frozen=True, slots=True)
class TimeOrder:
    """The order in which a search scans a table, newest first."""

    at_ms: Column[Any]  # the column of the time
    id: Column[Any]  # the column that orders rows of one time

    def sort_newest_first(self, query: _Select, before: MessageCursor | None) -> _Select:
        """Return the query in this order, from a cursor on."""
        if before is not None:
            query = query.where(tuple_(self.at_ms, self.id) < (before.accepted_on_ms, before.id))
        return query.order_by(self.at_ms.desc(), self.id.desc())

    def time_conditions(self, from_ms: int | None, horizon_ms: int | None) -> list[ColumnElement[bool]]:
        """Return conditions that exclude rows older than the filter or the horizon."""
        bounds = [bound for bound in (from_ms, horizon_ms) if bound is not None]
        return [self.at_ms >= max(bounds)] if bounds else []

    def find_horizon_ms(
        self,
        connection: Connection,
        conditions: Iterable[ColumnElement[bool]],
        before: MessageCursor | None,
        scan_limit: int,
    ) -> int | None:
        """Return how far an index is followed: the time of the row after the last one to be scanned.

        None if the index ends before.
        """
        query = select(self.at_ms).where(*conditions)
        if before is not None:
            # A cursor without id follows a horizon, whose whole millisecond was scanned.
            is_left = self.at_ms <= before.accepted_on_ms if before.id else self.at_ms < before.accepted_on_ms
            query = query.where(is_left)
        query = query.order_by(self.at_ms.desc()).offset(scan_limit).limit(1)
        return connection.execute(query).scalar_one_or_none()

    def scan(
        self,
        connection: Connection,
        query: _Select,
        page: SearchPage,
        batch: int,
        match: Callable[[list[dict[str, Any]]], Iterable[dict[str, Any]]],
    ) -> Iterator[dict[str, Any]]:
        """Yield the matches among a query's rows, newest first, read as far as the caller iterates.

        Args:
            batch: how many rows are read at once, after as many as fill the page.
            match: returns those of the rows that match, completed.
        """
        before, limit = page.before, page.at_most + 1
        while True:
            rows = read_dicts(connection, self.sort_newest_first(query, before).limit(limit))
            yield from match(rows)
            if len(rows) < limit:
                return
            before, limit = MessageCursor(*self.position(rows[-1])), batch

    def position(self, row: dict[str, Any]) -> tuple[int, str]:
        """Return where a row is in this order."""
        return row[self.at_ms.name], row[self.id.name]


def merge_page(
    sources: Iterable[Iterable[dict[str, Any]]],
    position: Callable[[dict[str, Any]], tuple[int, str]],
    page: SearchPage,
    *,
    from_ms: int | None,
    horizon_ms: int | None,
) -> SearchResults:
    """Return one page, merged from sources that are each sorted by a position, newest first.

    Args:
        sources: read as far as needed: one row beyond the page.
        from_ms: nothing older matches.
        horizon_ms: nothing older was scanned; None: everything was.
    """
    rows = list(islice(heapq.merge(*sources, key=position, reverse=True), page.at_most + 1))
    if len(rows) > page.at_most:
        rows.pop()
        return SearchResults(rows, MessageCursor(*position(rows[-1])))
    if horizon_ms is None or (from_ms is not None and horizon_ms <= from_ms):
        return SearchResults(rows)
    return SearchResults(rows, MessageCursor(horizon_ms, ""), horizon_ms)


MESSAGE_ORDER: Final = TimeOrder(messages.c.accepted_on_ms, messages.c.id)
