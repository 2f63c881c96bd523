"""Persistent health of the receivers of subscriptions, and their signing keys.

The statements of the callbacks stage come first, then those of administration.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Integer,
    Row,
    Select,
    Subquery,
    Table,
    Text,
    TextClause,
    Update,
    and_,
    bindparam,
    case,
    cast,
    func,
    literal_column,
    null,
    select,
    text,
    union_all,
    update,
)

from waypost.store.bulk_statements import BulkUpdate
from waypost.store.callbacks.subscriptions import wake_callback_worker
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import live_group, open_callbacks, replay_group
from waypost.store.sql import read_dict, read_dicts, read_one, select_row
from waypost.store.tables import attempts, callbacks, queue_jobs, subscriptions
from waypost.store.write_through_cache import enqueued_jobs

MAX_COUNTED_CALLBACKS: Final = 10_000
"""How many callbacks are counted that wait for one receiver; of a longer queue it is known that it is longer."""
MAX_RETRIES_MADE_DUE: Final = 20_000
"""Of so many jobs of a group, the oldest, the retries are made due: a process has no more of them in memory."""


@dataclass(frozen=True, slots=True)
class ReceiverStatus:
    """Changes to a receiver's health after an attempt."""

    subscription_id: int
    failing_since_ms: int | None  # no callback was delivered since then; None: it is healthy
    retry_after_ms: int | None = None  # it requested no calls before then; None: it did not
    next_attempt_ms: int | None = None  # its circuit is open until the next attempt at that time; None: it is not open


def record_receiver_statuses(connection: Connection, statuses: Sequence[ReceiverStatus]) -> None:
    """Store the last status of each receiver, in the order of ids."""
    last = {status.subscription_id: status for status in statuses}
    _UPDATE_STATUSES.run(
        connection,
        [
            (status.failing_since_ms, status.retry_after_ms, status.next_attempt_ms, status.subscription_id)
            for _, status in sorted(last.items())
        ],
    )


class ReceiverRow(NamedTuple):
    """A subscription's readable names, and since when the service has paused it."""

    id: int
    app_id: str
    tag: str
    url: str
    paused_on_ms: int | None


def pause_subscription(connection: Connection, id: int, at_ms: int, reason: str) -> ReceiverRow | None:
    """Pause a subscription, and return it as it was; None if it is deleted or paused already."""
    row = read_one(connection, _LOCK_RECEIVER, ReceiverRow._make, locked_id=id)
    if row is None or row.paused_on_ms is not None:
        return None
    paused = {"paused_on_ms": at_ms, "pause_reason": reason[:500]}
    connection.execute(update(subscriptions).where(subscriptions.c.id == id).values(**paused))
    return row


def resume_subscription(connection: Connection, id: int) -> ReceiverRow | None:
    """Resume a subscription that the service has paused, and return it as it was; None if it is deleted.

    One that its partner has paused stays paused.
    """
    row = read_one(connection, _LOCK_RECEIVER, ReceiverRow._make, locked_id=id)
    if row is not None:
        ended = ("failing_since_ms", "retry_after_until_ms", "next_attempt_ms", "paused_on_ms", "pause_reason")
        connection.execute(update(subscriptions).where(subscriptions.c.id == id).values(dict.fromkeys(ended)))
        wake_callback_worker(connection, id)
    return row


def request_retry(connection: Connection, id: int, now_ms: int) -> bool:
    """Let a receiver be called at once: what waits for another attempt is due, and its `Retry-After` has ended.

    False, without changes, if the subscription is paused or deleted.
    """
    requested = connection.execute(
        update(subscriptions)
        .where(subscriptions.c.id == id, subscriptions.c.active, subscriptions.c.paused_on_ms.is_(None))
        .values(retry_requests=subscriptions.c.retry_requests + 1, retry_after_until_ms=None, next_attempt_ms=None)
    )
    if not requested.rowcount:
        return False
    values = {"of_subscription": id, "of_group": replay_group(id), "now_ms": now_ms, "limit": MAX_RETRIES_MADE_DUE}
    for statement in _MAKE_RETRIES_DUE:
        connection.execute(statement, values)
    enqueued_jobs(connection).due_groups |= {(QueueName.CALLBACKS, group(id)) for group in (live_group, replay_group)}
    wake_callback_worker(connection, id)
    return True


def make_retries_due(connection: Connection, id: int) -> None:
    """Let the process that works the callbacks of a subscription look at once at those that it would try again later."""
    enqueued_jobs(connection).due_groups.add((QueueName.CALLBACKS, live_group(id)))


def rotate_signing_key(connection: Connection, id: int, old_key_until_ms: int | None) -> bool:
    """Raise the serial of a subscription's key; return False if it is deleted."""
    statement = update(subscriptions).where(subscriptions.c.id == id).values(key_serial=subscriptions.c.key_serial + 1)
    return connection.execute(statement.values(old_key_until_ms=old_key_until_ms)).rowcount == 1


@dataclass(frozen=True, slots=True)
class SubscriptionFilter:
    """Filter of subscriptions: all given conditions must match."""

    id: int | None = None  # of one subscription
    app_id: str | None = None  # of an app
    partner_id: int | None = None  # of a partner

    @property
    def conditions(self) -> tuple[ColumnElement[bool], ...]:
        """Return conditions on rows of subscriptions."""
        named = (("id", self.id), ("app_id", self.app_id), ("partner_id", self.partner_id))
        return tuple(subscriptions.c[name] == value for name, value in named if value is not None)


def list_receivers(
    connection: Connection, query: SubscriptionFilter, *, max_counted: int = MAX_COUNTED_CALLBACKS
) -> list[dict[str, Any]]:
    """Return subscriptions by id, each with how many callbacks wait for it and since when; without secrets.

    Args:
        max_counted: how many of each are counted. `waiting` and `replaying` are never more, and
            `waiting_is_longer` and `replaying_is_longer` say that there are more: millions may wait
            for a failing receiver, and open pages query this every second.
    """
    rows = read_dicts(connection, _SELECT_RECEIVERS.where(*query.conditions).order_by(subscriptions.c.id))
    return [row | _count_queued(connection, row["id"], max_counted) for row in rows]


def receiver_failure(connection: Connection, id: int) -> dict[str, int | None]:
    """Return since when a receiver has been failing, and when the next attempt is due; None: it is not failing."""
    columns = (subscriptions.c.failing_since_ms, subscriptions.c.next_attempt_ms)
    failing = select(*columns).where(subscriptions.c.id == id, subscriptions.c.failing_since_ms.is_not(None))
    return read_dict(connection, failing) or {"failing_since_ms": None, "next_attempt_ms": None}


def list_paused_or_failing(connection: Connection) -> list[Row[Any]]:
    """Return subscriptions that the service has paused, and those whose receiver is failing."""
    query = _SELECT_RECEIVERS.where(
        subscriptions.c.paused_on_ms.is_not(None) | subscriptions.c.failing_since_ms.is_not(None)
    )
    return list(connection.execute(query.order_by(subscriptions.c.id)).all())


def _count_queued(connection: Connection, id: int, max_counted: int) -> dict[str, Any]:
    """Return how many jobs wait in its groups, and since when. The index finds them group by group."""
    counted: dict[str, Any] = {}
    for name, statement in (("waiting", _COUNT_OPEN), ("replaying", _COUNT_REPLAYS)):
        jobs = connection.execute(
            statement, {"id": id, "group": replay_group(id), "limit": max_counted + 1}
        ).scalar_one()
        counted[name] = min(jobs, max_counted)
        counted[f"{name}_is_longer"] = jobs > max_counted
    counted["waiting_since_ms"] = connection.execute(_OLDEST_OPEN, {"id": id}).scalar_one_or_none()
    return counted


# Unordered: with an order, PostgreSQL may sort all of them before it stops
_of_subscription = open_callbacks.c.subscription_id == bindparam("id")
_COUNT_OPEN: Final = select(func.count()).select_from(
    select(open_callbacks.c.position)
    .where(_of_subscription)
    .order_by(open_callbacks.c.position)  # so that the index of open callbacks is read, and no further than the limit
    .limit(bindparam("limit"))
    .subquery()
)
_COUNT_REPLAYS: Final = select(func.count()).select_from(
    select(queue_jobs.c.position)
    .where(
        queue_jobs.c.queue == literal_column(str(int(QueueName.CALLBACKS))),
        queue_jobs.c.concurrency_group == bindparam("group"),
    )
    .limit(bindparam("limit"))
    .subquery()
)
_OLDEST_OPEN: Final = (
    select(open_callbacks.c.created_on_ms).where(_of_subscription).order_by(open_callbacks.c.position).limit(1)
)


def _make_retries_due(jobs: Table, key: ColumnElement[Any], *of_group: ColumnElement[bool] | TextClause) -> Update:
    """Return the statement for jobs that other transactions are not changing: those are being tried now."""
    oldest = select(key).where(*of_group).order_by(jobs.c.position).limit(bindparam("limit")).scalar_subquery()
    is_retry = jobs.c.attempt > 0, jobs.c.due_ms > bindparam("now_ms")
    chosen = select(key).where(key.in_(oldest), *is_retry).with_for_update(skip_locked=True).scalar_subquery()
    return update(jobs).where(key.in_(chosen)).values(due_ms=bindparam("now_ms"))


_MAKE_RETRIES_DUE: Final = (
    _make_retries_due(
        callbacks,
        callbacks.c.id,
        text("callbacks.ended_on_ms IS NULL"),  # as in the partial index
        callbacks.c.subscription_id == bindparam("of_subscription"),
    ),
    _make_retries_due(
        queue_jobs,
        queue_jobs.c.position,
        queue_jobs.c.queue == literal_column(str(int(QueueName.CALLBACKS))),
        queue_jobs.c.concurrency_group == bindparam("of_group"),
    ),
)
_LOCK_RECEIVER: Final = (
    select_row(subscriptions, ReceiverRow).where(subscriptions.c.id == bindparam("locked_id")).with_for_update()
)
_UPDATE_STATUSES: Final = BulkUpdate(subscriptions, "id", "failing_since_ms", "retry_after_until_ms", "next_attempt_ms")
_RECEIVER_COLUMNS: Final = (
    *("id", "partner_id", "app_id", "tag", "url", "version", "modes", "active", "created_on_ms", "key_serial"),
    *(
        "old_key_until_ms",
        "failing_since_ms",
        "retry_after_until_ms",
        "paused_on_ms",
        "pause_reason",
        "next_attempt_ms",
    ),
)
_SELECT_RECEIVERS: Final[Select[Any]] = select(*(subscriptions.c[name] for name in _RECEIVER_COLUMNS))


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
            *(attempts.c[name] for name in ("subscription_id", "at_ms", "duration_ms", "status", "error", "id")),
            attempts.c.callback_id,
        ),
        attempts.c.subscription_id,
        attempts.c.at_ms,
    ),
    (
        select(
            callbacks.c.subscription_id,
            callbacks.c.attempted_on_ms.label("at_ms"),
            *(callbacks.c.duration_ms, callbacks.c.status),
            *(cast(null(), Text).label("error"), literal_column("0", Integer).label("id")),
            callbacks.c.id.label("callback_id"),
        ).where(text("callbacks.attempted_on_ms IS NOT NULL")),
        callbacks.c.subscription_id,
        callbacks.c.attempted_on_ms,
    ),
)
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
    """The number of attempts of one subscription with the same status and duration."""

    subscription_id: int
    slot: int  # part of the time range, counted from 0
    status: int | None  # of the response; None: there was none
    duration_ms: int
    tries: int


def newest_attempts(connection: Connection, subscription_id: int, at_most: int) -> Sequence[Any]:
    """Return rows of callback_id, at_ms, duration_ms, status and error, newest first."""
    newest = _select_newest(subscription_id, at_most)
    return connection.execute(
        select(newest.c.callback_id, newest.c.at_ms, newest.c.duration_ms, newest.c.status, newest.c.error).order_by(
            newest.c.at_ms.desc(), newest.c.id.desc()
        )
    ).all()


def last_delivery_ms(connection: Connection, subscription_id: int, failing_since_ms: int | None) -> int | None:
    """Return when a callback was last delivered to a receiver; None if none of the newest attempts succeeded."""
    to_ms = None if failing_since_ms is None else failing_since_ms + 1
    scanned = _select_newest(subscription_id, _MAX_SCANNED_ATTEMPTS, to_ms=to_ms)
    ended_on_ms = scanned.c.at_ms + scanned.c.duration_ms
    delivered = select(func.max(ended_on_ms)).where(scanned.c.status >= 200, scanned.c.status < 300)
    return connection.execute(delivered).scalar_one()


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
        subscription_id: the caller has checked its owner.
        from_ms: attempted from then on, and before `to_ms`.
        slots: into how many parts the range is divided.
    """
    each_ms = max((to_ms - from_ms) // slots, 1)
    chosen = _select_newest(subscription_id, at_most, from_ms=from_ms, to_ms=to_ms)
    slot = ((chosen.c.at_ms - from_ms) // each_ms).label("slot")
    newest = select(slot, chosen.c.status, chosen.c.duration_ms).subquery()
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
