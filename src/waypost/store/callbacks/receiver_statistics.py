"""Statistics of receivers: response times, and the newest attempts of a subscription."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Row,
    Subquery,
    Text,
    and_,
    case,
    cast,
    func,
    literal_column,
    null,
    select,
    text,
    union_all,
)

from waypost.store.callbacks.receivers import SubscriptionFilter
from waypost.store.tables import attempts, callbacks, subscriptions


def response_times(
    connection: Connection, query: SubscriptionFilter, from_ms: int, to_ms: int
) -> Sequence[Row[Any, Any, Any, int]]:
    """Return attempts of a time range, from `from_ms` on and before `to_ms`.

    An attempt takes ten seconds at most, so that there are about ten thousand different durations, however
    many attempts there are.

    Returns:
        Rows of subscription_id, status, duration_ms and tries, shortest first.
    """
    subscription_ids = select(subscriptions.c.id).where(*query.conditions)
    in_range = union_all(
        *(
            source.where(subscription_id.in_(subscription_ids), at_ms >= from_ms, at_ms < to_ms)
            for source, subscription_id, at_ms in _SOURCES
        )
    ).subquery()
    times = (in_range.c.subscription_id, in_range.c.status, in_range.c.duration_ms)
    return connection.execute(
        select(*times, func.count().label("tries"))
        .group_by(*times)
        .order_by(in_range.c.subscription_id, in_range.c.duration_ms)
    ).all()


MAX_COUNTED_ATTEMPTS: Final = 20_000
"""Maximum attempts counted of a time range, the newest; a busy receiver has more of them in a day."""

_MAX_SCANNED_ATTEMPTS: Final = 200
_SOURCES: Final[tuple[tuple[Any, ColumnElement[Any], ColumnElement[Any]], ...]] = (
    (
        select(
            attempts.c.subscription_id, attempts.c.at_ms, attempts.c.duration_ms, attempts.c.status, attempts.c.error,
            attempts.c.id,
        ),
        attempts.c.subscription_id,
        attempts.c.at_ms,
    ),
    (
        select(
            callbacks.c.subscription_id, callbacks.c.attempted_on_ms.label("at_ms"), callbacks.c.duration_ms,
            callbacks.c.status, cast(null(), Text).label("error"), literal_column("0", Integer).label("id"),
        ).where(text("callbacks.attempted_on_ms IS NOT NULL")),
        callbacks.c.subscription_id,
        callbacks.c.attempted_on_ms,
    ),
)  # fmt: skip
"""Attempts: those with rows of their own, and first ones that delivered a callback, which are in its row.

Each is a statement, with the columns that its subscription and its time are found by."""


def _select_newest(subscription_id: int, at_most: int, *, from_ms: int = 0, to_ms: int | None = None) -> Subquery:
    """Return the newest attempts of a subscription, from a time on and before another."""
    limited = [
        select(
            source.where(column == subscription_id, at_ms >= from_ms, *(() if to_ms is None else (at_ms < to_ms,)))
            .order_by(at_ms.desc())
            .limit(at_most)
            .subquery()
        )
        for source, column, at_ms in _SOURCES
    ]
    merged = union_all(*limited).subquery()
    return select(merged).order_by(merged.c.at_ms.desc(), merged.c.id.desc()).limit(at_most).subquery()


@dataclass(frozen=True, slots=True)
class AttemptCount:
    """The number of attempts of one subscription with the same status and duration.

    Attributes:
        slot: part of the time range, counted from 0.
        status: of the response; None: there was none.
    """

    subscription_id: int
    slot: int
    status: int | None
    duration_ms: int
    tries: int


def newest_attempts(connection: Connection, subscription_id: int, at_most: int) -> Sequence[Any]:
    """Return rows of at_ms, duration_ms, status and error, newest first."""
    newest = _select_newest(subscription_id, at_most)
    return connection.execute(
        select(newest.c.at_ms, newest.c.duration_ms, newest.c.status, newest.c.error).order_by(
            newest.c.at_ms.desc(), newest.c.id.desc()
        )
    ).all()


def last_delivery_ms(connection: Connection, subscription_id: int, failing_since_ms: int | None) -> int | None:
    """Return when a callback was last delivered to a receiver; None if none of the newest attempts succeeded."""
    to_ms = None if failing_since_ms is None else failing_since_ms + 1
    scanned = _select_newest(subscription_id, _MAX_SCANNED_ATTEMPTS, to_ms=to_ms)
    return connection.execute(
        select(func.max(scanned.c.at_ms)).where(scanned.c.status >= 200, scanned.c.status < 300)
    ).scalar_one()


def count_attempts(
    connection: Connection,
    subscription_id: int,
    from_ms: int,
    to_ms: int,
    *,
    slots: int = 1,
    at_most: int = MAX_COUNTED_ATTEMPTS,
) -> list[AttemptCount]:
    """Return the newest attempts of a time range, counted; shortest first.

    Args:
        connection: any.
        subscription_id: the subscription; the caller has checked its owner.
        from_ms: attempted from then on.
        to_ms: and before then.
        slots: into how many parts the range is divided.
        at_most: how many attempts are counted.
    """
    each_ms = max((to_ms - from_ms) // slots, 1)
    chosen = _select_newest(subscription_id, at_most, from_ms=from_ms, to_ms=to_ms)
    newest = select(
        ((chosen.c.at_ms - from_ms) // each_ms).label("slot"), chosen.c.status, chosen.c.duration_ms
    ).subquery()
    kinds = (newest.c.slot, newest.c.status, newest.c.duration_ms)
    counted = select(*kinds, func.count().label("tries")).group_by(*kinds)
    return [
        AttemptCount(subscription_id, min(row.slot, slots - 1), row.status, row.duration_ms, row.tries)
        for row in connection.execute(counted.order_by(newest.c.duration_ms))
    ]


def count_deliveries(
    connection: Connection, subscription_id: int, from_ms: int, *, at_most: int = MAX_COUNTED_ATTEMPTS
) -> tuple[int, int]:
    """Return how many attempts there were since then, and how many of them succeeded; of the newest only."""
    newest = _select_newest(subscription_id, at_most, from_ms=from_ms)
    is_delivered = and_(newest.c.status >= 200, newest.c.status < 300)
    delivered = func.coalesce(func.sum(case((is_delivered, 1), else_=0)), 0)
    row = connection.execute(select(func.count(), delivered).select_from(newest)).one()
    return row[0], int(row[1])
