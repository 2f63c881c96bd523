"""Pages of a search, newest first: their limits, and where the next one begins."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, select, tuple_

from waypost.store.messages.lists import MAX_PAGE_ROWS, MessageCursor

_Select = Any  # of many columns

MAX_SCANNED_ROWS: Final = 20_000
"""Rows of an app that one request scans for rare matches: about 50 ms on either engine."""


@dataclass(frozen=True, slots=True)
class SearchPage:
    """The page of a search to be returned, and its limits.

    Attributes:
        before: return the page after the one that ended there; None: the first.
        at_most: how many rows; never more than `MAX_PAGE_ROWS`.
        scan_limit: how many rows are scanned at most for matches without an index.
    """

    before: MessageCursor | None = None
    at_most: int = 50
    scan_limit: int = MAX_SCANNED_ROWS

    def limit_to(self, until_ms: int | None) -> "SearchPage":
        """Return the same page restricted to rows before a time, with at most the maximum number of rows."""
        before = self.before
        if until_ms is not None and (before is None or before.accepted_on_ms >= until_ms):
            before = MessageCursor(until_ms, "")
        return replace(self, before=before, at_most=min(self.at_most, MAX_PAGE_ROWS))


FIRST_PAGE: Final = SearchPage()
"""The first page, within the default limits."""


@dataclass(frozen=True, slots=True)
class SearchResults:
    """One page of results.

    Attributes:
        rows: newest first.
        next: where the next page begins; None: everything has been scanned.
        searched_to_ms: how far back the search went, if the scan limit ended the page.
    """

    rows: list[dict[str, Any]]
    next: MessageCursor | None = None
    searched_to_ms: int | None = None


@dataclass(frozen=True, slots=True)
class TimeOrder:
    """The order in which a search scans a table, newest first.

    Attributes:
        at_ms: the column of the time.
        id: the column that orders rows of one time.
    """

    at_ms: Column[Any]
    id: Column[Any]

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

    def merge_page(
        self,
        sources: Iterable[Iterable[dict[str, Any]]],
        page: SearchPage,
        *,
        from_ms: int | None,
        horizon_ms: int | None,
    ) -> SearchResults:
        """Return one page, merged from sources that are each in this order.

        Args:
            sources: read as far as needed: one row beyond the page.
            page: which page, with its limits.
            from_ms: nothing older matches.
            horizon_ms: nothing older was scanned; None: everything was.
        """
        newest = heapq.merge(*sources, key=self._key, reverse=True)
        rows = list(islice(newest, page.at_most + 1))
        if len(rows) > page.at_most:
            rows.pop()
            return SearchResults(rows, MessageCursor(*self._key(rows[-1])))
        if horizon_ms is None or (from_ms is not None and horizon_ms <= from_ms):
            return SearchResults(rows)
        return SearchResults(rows, MessageCursor(horizon_ms, ""), horizon_ms)

    def _key(self, row: dict[str, Any]) -> tuple[int, str]:
        return row[self.at_ms.name], row[self.id.name]
