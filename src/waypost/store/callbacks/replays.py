"""Callbacks to be sent again: which they are, and their entries in the queue."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from waypost.store.callbacks.receivers import Whose
from waypost.store.callbacks.subscriptions import replay_group
from waypost.store.queue.job_subjects import JobSubject, SubjectKind
from waypost.store.queue.jobs import NewJob, QueueName, enqueue_jobs
from waypost.store.tables import callbacks, recipients, subscriptions

BATCH: Final = 500
"""How many entries one transaction appends, so that nobody waits long for it."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which callbacks; those that fit everything that is given. What still waits is never among them.

    Attributes:
        whose: of which subscriptions; what was told to one that is gone cannot be told again.
        callback_id: one callback.
        recipient: a phone number or business-scoped id.
        news: the word of the trace, such as `delivered`.
        delivered: True those that were, False those that were given up, None both.
        from_ms: rendered from then on.
        to_ms: and before then.
    """

    whose: Whose
    callback_id: str | None
    recipient: str | None
    news: str | None
    delivered: bool | None
    from_ms: int
    to_ms: int


Cursor = tuple[int, int, str, int]
"""Subscription, time, what it is about and sequence number of the last callback that was seen."""


def count_wanted(connection: Connection, wanted: Wanted) -> dict[str, int]:
    """How many there are, and how many more still wait to be delivered for the first time."""
    fits = _fits(connection, wanted)
    ended, waiting = callbacks.c.ended_on_ms.is_not(None), callbacks.c.ended_on_ms.is_(None)
    counted = select(func.count())
    return {
        "callbacks": connection.execute(counted.where(fits, ended, *_ended_so(wanted))).scalar_one(),
        "waiting": connection.execute(counted.where(fits, waiting)).scalar_one(),
    }


def append_replays(
    connection: Connection, wanted: Wanted, after: Cursor | None, due_ms: int
) -> tuple[int, Cursor | None]:
    """Append entries for the next ones, oldest first for each subscription.

    Returns:
        How many, and where to go on; None where these were the last.
    """
    order = (callbacks.c.subscription_id, callbacks.c.created_on_ms, callbacks.c.about, callbacks.c.sequence)
    found = select(callbacks.c.id, *order).where(
        _fits(connection, wanted), callbacks.c.ended_on_ms.is_not(None), *_ended_so(wanted)
    )
    if after is not None:
        found = found.where(_beyond(after))
    rows = connection.execute(found.order_by(*order).limit(BATCH)).all()
    enqueue_jobs(
        connection,
        [
            NewJob(
                QueueName.CALLBACKS,
                concurrency_group=replay_group(row.subscription_id),
                ordering_key=f"replay {row.subscription_id} {row.about}",
                subject=JobSubject(SubjectKind.CALLBACK, row.id),
                due_ms=due_ms,
                is_replay=True,
            )
            for row in rows
        ],
    )
    if len(rows) < BATCH:
        return len(rows), None
    last = rows[-1]
    return BATCH, (last.subscription_id, last.created_on_ms, last.about, last.sequence)


def _fits(connection: Connection, wanted: Wanted) -> ColumnElement[bool]:
    of = select(subscriptions.c.id, subscriptions.c.app_id, subscriptions.c.partner_id)
    of = of.where(*wanted.whose.fits)
    if wanted.callback_id is not None:
        told = select(callbacks.c.subscription_id).where(callbacks.c.id == wanted.callback_id)
        of = of.where(subscriptions.c.id == told.scalar_subquery())
    chosen = connection.execute(of).all()
    fits: list[ColumnElement[bool]] = [
        callbacks.c.subscription_id.in_([row.id for row in chosen]),
        callbacks.c.partner_id.in_({row.partner_id for row in chosen}),
        callbacks.c.created_on_ms >= wanted.from_ms,
        callbacks.c.created_on_ms < wanted.to_ms,
    ]
    if wanted.callback_id is not None:
        fits.append(callbacks.c.id == wanted.callback_id)
    if wanted.news is not None:
        fits.append(callbacks.c.news == wanted.news)
    if wanted.recipient is not None:
        known = connection.execute(
            select(recipients.c.id).where(
                recipients.c.app_id.in_({row.app_id for row in chosen}),
                or_(recipients.c.phone_number == wanted.recipient, recipients.c.user_id == wanted.recipient),
            )
        ).scalars()
        # Before the operator has named a recipient, its callbacks are about the destination.
        fits.append(callbacks.c.about.in_([wanted.recipient, *map(str, known)]))
    return and_(*fits)


def _ended_so(wanted: Wanted) -> tuple[ColumnElement[bool], ...]:
    return () if wanted.delivered is None else (callbacks.c.delivered.is_(wanted.delivered),)


def _beyond(after: Cursor) -> ColumnElement[bool]:
    subscription_id, created_on_ms, about, sequence = after
    own = callbacks.c.subscription_id == subscription_id
    then = callbacks.c.created_on_ms == created_on_ms
    return or_(
        callbacks.c.subscription_id > subscription_id,
        and_(own, callbacks.c.created_on_ms > created_on_ms),
        and_(own, then, callbacks.c.about > about),
        and_(own, then, callbacks.c.about == about, callbacks.c.sequence > sequence),
    )
