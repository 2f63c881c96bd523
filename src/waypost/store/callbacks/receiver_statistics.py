"""Statistics of receivers: response times, and the newest attempts of a subscription."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, Row, and_, case, func, select

from waypost.store.callbacks.receivers import SubscriptionFilter
from waypost.store.tables import attempts, subscriptions


def response_times(
    connection: Connection, query: SubscriptionFilter, from_ms: int, to_ms: int
) -> Sequence[Row[Any, Any, Any, int]]:
    """Return attempts of a time range, from `from_ms` on and before `to_ms`.

    An attempt takes ten seconds at most, so that there are about ten thousand different durations, however
    many attempts there are.

    Returns:
        Rows of subscription_id, status, duration_ms and tries, shortest first.
    """
    times = (attempts.c.subscription_id, attempts.c.status, attempts.c.duration_ms)
    subscription_ids = select(subscriptions.c.id).where(*query.conditions)
    return connection.execute(
        select(*times, func.count().label("tries"))
        .where(attempts.c.subscription_id.in_(subscription_ids), attempts.c.at_ms >= from_ms, attempts.c.at_ms < to_ms)
        .group_by(*times)
        .order_by(attempts.c.subscription_id, attempts.c.duration_ms)
    ).all()


MAX_COUNTED_ATTEMPTS: Final = 20_000
"""Maximum attempts counted of a time range, the newest; a busy receiver has more of them in a day."""

_MAX_SCANNED_ATTEMPTS: Final = 200
_IS_DELIVERED: Final = and_(attempts.c.status >= 200, attempts.c.status < 300)


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
    return connection.execute(
        select(attempts.c.at_ms, attempts.c.duration_ms, attempts.c.status, attempts.c.error)
        .where(attempts.c.subscription_id == subscription_id)
        .order_by(attempts.c.at_ms.desc(), attempts.c.id.desc())
        .limit(at_most)
    ).all()


def last_delivery_ms(connection: Connection, subscription_id: int, failing_since_ms: int | None) -> int | None:
    """Return when a callback was last delivered to a receiver; None if none of the newest attempts succeeded."""
    newest = select(attempts.c.at_ms, attempts.c.status).where(attempts.c.subscription_id == subscription_id)
    if failing_since_ms is not None:
        newest = newest.where(attempts.c.at_ms <= failing_since_ms)
    scanned = newest.order_by(attempts.c.at_ms.desc()).limit(_MAX_SCANNED_ATTEMPTS).subquery()
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
    newest = (
        select(((attempts.c.at_ms - from_ms) // each_ms).label("slot"), attempts.c.status, attempts.c.duration_ms)
        .where(attempts.c.subscription_id == subscription_id, attempts.c.at_ms >= from_ms, attempts.c.at_ms < to_ms)
        .order_by(attempts.c.at_ms.desc())
        .limit(at_most)
        .subquery()
    )
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
    newest = (
        select(case((_IS_DELIVERED, 1), else_=0).label("delivered"))
        .where(attempts.c.subscription_id == subscription_id, attempts.c.at_ms >= from_ms)
        .order_by(attempts.c.at_ms.desc())
        .limit(at_most)
        .subquery()
    )
    row = connection.execute(
        select(func.count(), func.coalesce(func.sum(newest.c.delivered), 0)).select_from(newest)
    ).one()
    return row[0], int(row[1])
