"""Depths of the queues, backlogs and quotas of partners, and dead letters."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    Connection,
    FromClause,
    bindparam,
    case,
    delete,
    func,
    insert,
    literal_column,
    select,
    text,
    update,
)

from waypost.domain.partner import PartnerQuotas
from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.queue.jobs import end_dead_callback, live_group, open_callbacks, reopen_dead_callback
from waypost.store.sql import read_one, select_row
from waypost.store.tables import partners, queue_jobs, subscriptions
from waypost.store.write_through_cache import enqueued_jobs

MAX_SHOWN: Final = 10_000_000  # how many of one source or receiver are counted to be shown


@dataclass(frozen=True, slots=True)
class PartnerBacklog:
    """The backlog of one partner, dead letters included; replays of callbacks do not count."""

    messages: int  # that wait for the operator, those in flight included
    callbacks: int  # likewise for its receivers, also for those that are paused
    quotas: PartnerQuotas  # that apply to the partner: its own, or those of the settings


class OwnQuotas(NamedTuple):
    """The quotas that a partner has of its own; None: the setting's applies."""

    messages: int | None = None
    callbacks: int | None = None


def read_own_quotas(connection: Connection, partner_id: int) -> OwnQuotas:
    """Return the quotas that a partner has of its own."""
    return read_one(connection, _OWN_QUOTAS, OwnQuotas._make, partner=partner_id) or OwnQuotas()


def change_own_quotas(connection: Connection, partner_id: int, values: dict[str, int | None]) -> None:
    """Set the columns `message_quota` and `callback_quota` of a partner, those of them that are present."""
    if values:
        connection.execute(update(partners).where(partners.c.id == partner_id).values(values))


def count_backlog(
    connection: Connection, partner_id: int, default: PartnerQuotas, *, up_to_quotas: bool = False
) -> PartnerBacklog:
    """Count what a partner has waiting.

    Args:
        default: quotas of a partner without its own.
        up_to_quotas: True to count no more of each source or receiver than the quota, and nothing that has
            none: its number is then 0.
    """
    own = read_own_quotas(connection, partner_id)
    quotas = PartnerQuotas(
        default.messages if own.messages is None else own.messages,
        default.callbacks if own.callbacks is None else own.callbacks,
    )
    waiting: list[int] = []
    for statement, quota in ((_COUNT_MESSAGES, quotas.messages), (_COUNT_CALLBACKS, quotas.callbacks)):
        at_most = quota if up_to_quotas else MAX_SHOWN
        counted = connection.execute(statement, {"partner": partner_id, "at_most": at_most}) if at_most else None
        waiting.append(0 if counted is None else int(counted.scalar_one()))
    return PartnerBacklog(waiting[0], waiting[1], quotas)


_OWN_QUOTAS: Final = select(partners.c.message_quota, partners.c.callback_quota).where(
    partners.c.id == bindparam("partner")
)
# Correlated, so that each source and subscription is one range of an index, whatever a planner knows of the tables.
_COUNT_MESSAGES: Final = text(
    "SELECT coalesce(sum(waiting), 0) FROM (SELECT (SELECT count(*) FROM (SELECT 1 FROM queue_jobs "  # noqa: S608
    f"WHERE queue = {int(QueueName.OUTBOUND)} AND concurrency_group = apps.phone_number LIMIT :at_most) AS jobs) "
    "AS waiting FROM apps WHERE partner_id = :partner) AS counts"
)
_COUNT_CALLBACKS: Final = text(
    "SELECT coalesce(sum(waiting), 0) FROM (SELECT (SELECT count(*) FROM (SELECT 1 FROM callbacks "
    "WHERE ended_on_ms IS NULL AND subscription_id = subscriptions.id LIMIT :at_most) AS jobs) AS waiting "
    "FROM apps JOIN subscriptions ON subscriptions.app_id = apps.id WHERE apps.partner_id = :partner) AS counts"
)


class DeadLetter(NamedTuple):
    """A job that waits for a person, with the reason why it was parked."""

    position: int
    queue: int
    concurrency_group: str
    ref: str
    defects: int
    note: str | None


def read_dead_letters(connection: Connection, *, at_most: int = 100) -> list[DeadLetter]:
    """Return dead letters by queue and position, as in their index."""
    found = [
        dead_letter
        for statement in (_OLDEST_DEAD_LETTERS, _OLDEST_DEAD_CALLBACKS)
        for dead_letter in map(DeadLetter._make, connection.execute(statement.limit(at_most)))
    ]
    return sorted(found, key=lambda dead_letter: (dead_letter.queue, dead_letter.position))[:at_most]


def reopen_dead_letter(connection: Connection, position: int, due_ms: int) -> bool:
    """Move a dead letter to the end of its queue, to be worked again.

    One that may have been sent becomes in flight, so that it is not sent again.
    """
    taken = delete(queue_jobs).where(queue_jobs.c.position == position, IS_DEAD_LETTER).returning(queue_jobs)
    row = connection.execute(taken).mappings().one_or_none()
    if row is None:
        subscription_id = reopen_dead_callback(connection, position, due_ms)
        if subscription_id is None:
            return False
        enqueued_jobs(connection).add_group(QueueName.CALLBACKS, live_group(subscription_id))
        return True
    was_in_flight = row["state"] == JobState.DEAD_LETTER_IN_FLIGHT
    kept = {name: row[name] for name in ("queue", "concurrency_group", "ordering_key", "ref", "detached", "replay")}
    state = int(JobState.IN_FLIGHT if was_in_flight else JobState.OPEN)
    connection.execute(insert(queue_jobs), {**kept, "due_ms": due_ms, "state": state})
    enqueued_jobs(connection).add_group(QueueName(row["queue"]), row["concurrency_group"])
    return True


def remove_dead_letter(connection: Connection, position: int, now_ms: int) -> bool:
    """Delete a dead letter; its work is not done. A callback stays, as one that was not delivered."""
    deleted = connection.execute(delete(queue_jobs).where(queue_jobs.c.position == position, IS_DEAD_LETTER))
    return deleted.rowcount == 1 or end_dead_callback(connection, position, now_ms)


IS_DEAD_LETTER: Final = queue_jobs.c.state >= literal_column(str(int(JobState.DEAD_LETTER)))
"""As in the partial index: with a parameter instead, a planner does not know that it may use the index."""
_OLDEST_DEAD_LETTERS: Final = (
    select_row(queue_jobs, DeadLetter).where(IS_DEAD_LETTER).order_by(queue_jobs.c.queue, queue_jobs.c.position)
)
_OLDEST_DEAD_CALLBACKS: Final = (
    select(*(open_callbacks.c[name] for name in DeadLetter._fields))
    .where(open_callbacks.c.state >= literal_column(str(int(JobState.DEAD_LETTER))))
    .order_by(open_callbacks.c.position)
)


MAX_COUNTED_PER_QUEUE: Final = 20_000  # how many jobs of a queue are counted; a longer queue is only known to be longer


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """Depth of one queue."""

    jobs: Mapping[JobState, int]  # by state, of those that were counted
    oldest_due_ms: int | None  # of jobs that may be worked; None if there are none
    is_longer: bool  # there are more jobs than were counted


@dataclass(frozen=True, slots=True)
class QueueDepths:
    """Depths of all queues."""

    queues: Mapping[QueueName, QueueDepth]
    paused: Mapping[str, int]  # subscriptions, by who paused them


def read_queue_depths(connection: Connection) -> QueueDepths:
    """Count waiting jobs, reading at most `MAX_COUNTED_PER_QUEUE` jobs of each queue."""
    paused_row = connection.execute(_COUNT_PAUSED, {"limit": MAX_COUNTED_PER_QUEUE}).one()
    paused = {"service": paused_row.by_service, "partner": paused_row.by_partner}
    return QueueDepths({queue_name: _read_depth(connection, queue_name) for queue_name in QueueName}, paused)


def _read_depth(connection: Connection, queue_name: QueueName) -> QueueDepth:
    parameters = {"queue": int(queue_name), "limit": MAX_COUNTED_PER_QUEUE}
    sources = _SOURCES if queue_name is QueueName.CALLBACKS else _SOURCES[:1]
    counted, dead_letters, dues = Counter[JobState](), Counter[JobState](), list[int]()
    for count_by_state, count_dead_letters in sources:
        for row in connection.execute(count_by_state, parameters):
            counted[JobState(row.state)] += row.jobs
            if row.state < JobState.DEAD_LETTER:
                dues.append(row.oldest_due_ms)
        # Dead letters have a small index of their own, so that none is missed in a long queue.
        for row in connection.execute(count_dead_letters, parameters):
            dead_letters[JobState(row.state)] += row.jobs
    return QueueDepth(
        {state: counted[state] for state in _WORKABLE_STATES}
        | {state: dead_letters[state] for state in _DEAD_LETTER_STATES},
        min(dues, default=None),
        sum(counted.values()) >= MAX_COUNTED_PER_QUEUE,
    )


_WORKABLE_STATES: Final = (JobState.OPEN, JobState.IN_FLIGHT)
_DEAD_LETTER_STATES: Final = (JobState.DEAD_LETTER, JobState.DEAD_LETTER_IN_FLIGHT)


def _count_statements(jobs: FromClause, group_column: str, is_dead_letter: Any) -> tuple[Any, Any]:
    """Return the statements that count the first jobs of a source by state, and its dead letters."""
    of_queue = jobs.c.queue == bindparam("queue")
    counted = (
        select(jobs.c.state, jobs.c.due_ms)
        .where(of_queue)
        .order_by(jobs.c[group_column], jobs.c.position)
        .limit(bindparam("limit"))
        .subquery()
    )
    dead_letters = select(jobs.c.state).where(of_queue, is_dead_letter).limit(bindparam("limit")).subquery()
    return (
        select(counted.c.state, func.count().label("jobs"), func.min(counted.c.due_ms).label("oldest_due_ms")).group_by(
            counted.c.state
        ),
        select(dead_letters.c.state, func.count().label("jobs")).group_by(dead_letters.c.state),
    )


_SOURCES: Final = (
    _count_statements(queue_jobs, "concurrency_group", IS_DEAD_LETTER),
    _count_statements(
        open_callbacks, "subscription_id", open_callbacks.c.state >= literal_column(str(int(JobState.DEAD_LETTER)))
    ),
)

_scanned_subscriptions = (
    select(subscriptions.c.active, subscriptions.c.paused_on_ms).limit(bindparam("limit")).subquery()
)
_COUNT_PAUSED: Final = select(
    func.count(_scanned_subscriptions.c.paused_on_ms).label("by_service"),
    func.count(case((_scanned_subscriptions.c.active.is_(False), 1))).label("by_partner"),
)
