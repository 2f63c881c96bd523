"""Replays: the selection of callbacks to be sent again, and their jobs."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import ColumnElement, Connection, and_, func, or_, select

from waypost.store.callbacks.receivers import SubscriptionFilter
from waypost.store.messages.recipients import recipient_ids
from waypost.store.queue.callback_jobs import replay_group
from waypost.store.queue.job_subjects import JobSubject, SubjectKind
from waypost.store.queue.jobs import NewJob, enqueue_jobs
from waypost.store.queue.names import QueueName
from waypost.store.tables import callbacks, recipients, subscriptions

REPLAY_BATCH_JOBS: Final = 500
"""How many jobs one transaction enqueues, so that no other write waits long for it."""


@dataclass(frozen=True, slots=True)
class ReplayFilter:
    """Filter of callbacks: all given conditions must match. A callback that still waits never matches.

    Attributes:
        subscriptions: the subscriptions; callbacks of a deleted one cannot be replayed.
        callback_id: one callback.
        recipient: a phone number or business-scoped id.
        event: as named in the trace, such as `delivered`.
        delivered: True those that were, False those that failed for good, None both.
        from_ms: rendered from then on.
        to_ms: and before then.
        message_ids: about one of these messages; empty: about any, or none.
    """

    subscriptions: SubscriptionFilter
    callback_id: str | None
    recipient: str | None
    event: str | None
    delivered: bool | None
    from_ms: int
    to_ms: int
    message_ids: tuple[str, ...] = ()


ReplayCursor = tuple[int, int, str, int]
"""Subscription, time, subject and sequence number of the last callback that was read."""


def count_replays(connection: Connection, query: ReplayFilter) -> dict[str, int]:
    """Return how many match, and how many more still wait for their first delivery."""
    fits = _filter_condition(connection, query)
    ended, waiting = callbacks.c.ended_on_ms.is_not(None), callbacks.c.ended_on_ms.is_(None)
    counted = select(func.count())
    return {
        "callbacks": connection.execute(counted.where(fits, ended, *_outcome_conditions(query))).scalar_one(),
        "waiting": connection.execute(counted.where(fits, waiting)).scalar_one(),
    }


def enqueue_replays(
    connection: Connection, query: ReplayFilter, after: ReplayCursor | None, due_ms: int
) -> tuple[int, ReplayCursor | None]:
    """Enqueue jobs for the next callbacks, oldest first for each subscription.

    Returns:
        How many, and where to continue; None after the last.
    """
    order = (callbacks.c.subscription_id, callbacks.c.created_on_ms, callbacks.c.subject, callbacks.c.sequence)
    statement = select(callbacks.c.id, *order).where(
        _filter_condition(connection, query), callbacks.c.ended_on_ms.is_not(None), *_outcome_conditions(query)
    )
    if after is not None:
        statement = statement.where(_cursor_condition(after))
    rows = connection.execute(statement.order_by(*order).limit(REPLAY_BATCH_JOBS)).all()
    enqueue_jobs(
        connection,
        [
            NewJob(
                QueueName.CALLBACKS,
                concurrency_group=replay_group(row.subscription_id),
                ordering_key=f"replay {row.subscription_id} {row.subject}",
                subject=JobSubject(SubjectKind.CALLBACK, row.id),
                due_ms=due_ms,
                is_replay=True,
            )
            for row in rows
        ],
    )
    if len(rows) < REPLAY_BATCH_JOBS:
        return len(rows), None
    last = rows[-1]
    return REPLAY_BATCH_JOBS, (last.subscription_id, last.created_on_ms, last.subject, last.sequence)


def _filter_condition(connection: Connection, query: ReplayFilter) -> ColumnElement[bool]:
    statement = select(subscriptions.c.id, subscriptions.c.app_id, subscriptions.c.partner_id)
    statement = statement.where(*query.subscriptions.conditions)
    if query.callback_id is not None:
        subscription_id = select(callbacks.c.subscription_id).where(callbacks.c.id == query.callback_id)
        statement = statement.where(subscriptions.c.id == subscription_id.scalar_subquery())
    chosen = connection.execute(statement).all()
    conditions: list[ColumnElement[bool]] = [
        callbacks.c.subscription_id.in_([row.id for row in chosen]),
        callbacks.c.partner_id.in_({row.partner_id for row in chosen}),
        callbacks.c.created_on_ms >= query.from_ms,
        callbacks.c.created_on_ms < query.to_ms,
    ]
    if query.callback_id is not None:
        conditions.append(callbacks.c.id == query.callback_id)
    if query.message_ids:
        conditions.append(callbacks.c.message_id.in_(query.message_ids))
    if query.event is not None:
        conditions.append(callbacks.c.event == query.event)
    if query.recipient is not None:
        known = recipient_ids(
            connection,
            and_(
                recipients.c.app_id.in_({row.app_id for row in chosen}),
                or_(recipients.c.phone_number == query.recipient, recipients.c.user_id == query.recipient),
            ),
        )
        # Before the operator has identified a recipient, its callbacks are about the destination.
        conditions.append(callbacks.c.subject.in_([query.recipient, *map(str, known)]))
    return and_(*conditions)


def _outcome_conditions(query: ReplayFilter) -> tuple[ColumnElement[bool], ...]:
    return () if query.delivered is None else (callbacks.c.delivered.is_(query.delivered),)


def _cursor_condition(after: ReplayCursor) -> ColumnElement[bool]:
    subscription_id, created_on_ms, subject, sequence = after
    same_subscription = callbacks.c.subscription_id == subscription_id
    same_time = callbacks.c.created_on_ms == created_on_ms
    return or_(
        callbacks.c.subscription_id > subscription_id,
        and_(same_subscription, callbacks.c.created_on_ms > created_on_ms),
        and_(same_subscription, same_time, callbacks.c.subject > subject),
        and_(same_subscription, same_time, callbacks.c.subject == subject, callbacks.c.sequence > sequence),
    )
