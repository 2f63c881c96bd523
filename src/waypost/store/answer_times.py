"""How long receivers took to answer: counted by subscription, status and milliseconds."""

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Row, func, select

from waypost.store.receivers import Whose
from waypost.store.tables import attempts, subscriptions


def answer_times(connection: Connection, whose: Whose, from_ms: int, to_ms: int) -> Sequence[Row[Any, Any, Any, int]]:
    """Attempts of a time range, from `from_ms` on and before `to_ms`.

    An attempt takes ten seconds at most, so that there are some ten thousand different times, however
    many attempts.

    Returns:
        Rows of subscription_id, status, duration_ms and tries, shortest first.
    """
    times = (attempts.c.subscription_id, attempts.c.status, attempts.c.duration_ms)
    wanted = select(subscriptions.c.id).where(*whose.fits)
    return connection.execute(
        select(*times, func.count().label("tries"))
        .where(attempts.c.subscription_id.in_(wanted), attempts.c.at_ms >= from_ms, attempts.c.at_ms < to_ms)
        .group_by(*times)
        .order_by(attempts.c.subscription_id, attempts.c.duration_ms)
    ).all()
