"""Pages of a search, newest first: which one is asked for, what it may cost, and where the next begins."""

import heapq
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, Connection, select, tuple_

from waypost.store.messages.lists import MOST, Place

_Select = Any  # of many columns

LOOKED_AT: Final = 20_000
"""Rows of an app that one request looks at for what is rare: some 50 ms on either engine."""


@dataclass(frozen=True, slots=True)
class Page:
    """Which page of a search, and within what bounds.

    Attributes:
        before: the page after the one that ended there; None: the first.
        at_most: how many rows; never more than `MOST`.
        look_at: how many rows are looked at at most for what no index leads to.
    """

    before: Place | None = None
    at_most: int = 50
    look_at: int = LOOKED_AT

    def until(self, until_ms: int | None) -> "Page":
        """The same page of what is older than a moment, with no more rows than any may have."""
        before = self.before
        if until_ms is not None and (before is None or before.accepted_on_ms >= until_ms):
            before = Place(until_ms, "")
        return replace(self, before=before, at_most=min(self.at_most, MOST))


FIRST: Final = Page()
"""The first page, within the usual bounds."""


@dataclass(frozen=True, slots=True)
class Found:
    """One page of a search.

    Attributes:
        rows: newest first.
        next: where the next page begins; None: everything has been looked at.
        back_to_ms: how far back it was looked, where that is why the page ended.
    """

    rows: list[dict[str, Any]]
    next: Place | None = None
    back_to_ms: int | None = None


@dataclass(frozen=True, slots=True)
class ByTime:
    """The order in which a search goes through a table, newest first.

    Attributes:
        at_ms: the column of the time.
        id: decides where the time is the same.
    """

    at_ms: Column[Any]
    id: Column[Any]

    def newest(self, asked: _Select, before: Place | None) -> _Select:
        """What is asked, in this order, from a place on."""
        if before is not None:
            asked = asked.where(tuple_(self.at_ms, self.id) < (before.accepted_on_ms, before.id))
        return asked.order_by(self.at_ms.desc(), self.id.desc())

    def since(self, from_ms: int | None, horizon_ms: int | None) -> list[ColumnElement[bool]]:
        """Not older than what is wanted, nor than what is looked at."""
        bounds = [one for one in (from_ms, horizon_ms) if one is not None]
        return [self.at_ms >= max(bounds)] if bounds else []

    def horizon_ms(
        self, connection: Connection, of_index: Iterable[ColumnElement[bool]], before: Place | None, look_at: int
    ) -> int | None:
        """How far an index is followed: to the time of the row after the last that is looked at.

        None where it ends before.
        """
        asked = select(self.at_ms).where(*of_index)
        if before is not None:
            asked = asked.where(self.at_ms <= before.accepted_on_ms)
        asked = asked.order_by(self.at_ms.desc()).offset(look_at).limit(1)
        return connection.execute(asked).scalar_one_or_none()

    def found(
        self, sources: Iterable[Iterable[dict[str, Any]]], page: Page, *, from_ms: int | None, horizon_ms: int | None
    ) -> Found:
        """One page, put together from sources of which each is in this order.

        Args:
            sources: read as far as they are needed: one row further than the page.
            page: which, within its bounds.
            from_ms: nothing older is wanted.
            horizon_ms: nothing older was looked at; None: everything was.
        """
        newest = heapq.merge(*sources, key=self._key, reverse=True)
        rows = list(islice(newest, page.at_most + 1))
        if len(rows) > page.at_most:
            rows.pop()
            return Found(rows, Place(*self._key(rows[-1])))
        if horizon_ms is None or (from_ms is not None and horizon_ms <= from_ms):
            return Found(rows)
        return Found(rows, Place(horizon_ms, ""), horizon_ms)

    def _key(self, row: dict[str, Any]) -> tuple[int, str]:
        return row[self.at_ms.name], row[self.id.name]
