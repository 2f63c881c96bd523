"""Retention: a table of rules, and the statements that delete a limited number of rows at a time.

Open rows are never deleted: a message that has not been sent, an uncertain one, a callback without an
outcome, an item whose job is in the queue.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Delete,
    bindparam,
    delete,
    exists,
    func,
    or_,
    select,
    true,
    update,
)

from waypost.domain.message import MessageState
from waypost.store.properties import set_properties
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import read_subject
from waypost.store.requests.idempotency import delete_expired
from waypost.store.requests.rates import delete_idle_windows
from waypost.store.requests.request_log import delete_request_entries
from waypost.store.retention.columns import Period, RetentionPeriods, emptied
from waypost.store.retention.partitions import floor_id
from waypost.store.schema import POSTGRESQL
from waypost.store.tables import (
    app_keys,
    app_links,
    attempts,
    audit_log,
    callbacks,
    client_secrets,
    inbound_messages,
    inbound_webhooks,
    message_events,
    messages,
    queue_jobs,
    sequences,
    store_properties,
    subscriptions,
    universal_tokens,
    webhook_items,
)

MAX_BATCH_ROWS: Final = 200  # of one transaction: a few milliseconds on either engine
MAX_REMEMBERED_OPEN: Final = 1_000  # how many open messages before the cleared position are remembered
MAX_OPEN_WEBHOOKS: Final = 20_000  # with more open webhook items than that no item is deleted: something else is wrong


DeleteBatch = Callable[[Connection, int, str], str | None]
"""Deletes some rows that are older than a time, in the order of their ids, beyond an id.

Returns:
    Where to continue; None if there are no more.
"""


@dataclass(frozen=True, slots=True)
class RetentionRule:
    """The retention rule of one kind of rows."""

    name: str
    period: Period  # how long they are retained
    delete_batch: DeleteBatch
    # tables of which PostgreSQL drops whole partitions before other rows are deleted
    partitioned_tables: tuple[str, ...] = ()
    is_due: Callable[[RetentionPeriods], bool] = lambda _: True  # whether it has anything to do with these periods


def begin_retention_run(connection: Connection, now_ms: int, every_ms: int) -> bool:
    """Record the start of a run; return False if one started recently, in this process or another."""
    last_run = connection.execute(_PROPERTY, {"property_name": LAST_RUN_PROPERTY}).scalar_one_or_none()
    if last_run is not None and 0 <= now_ms - int(last_run) < every_ms:
        return False
    set_properties(connection, {LAST_RUN_PROPERTY: str(now_ms)})
    return True


def clear_message_contents(connection: Connection, before_ms: int, position: str) -> str | None:
    """Clear the content of messages, and the requests that they came from.

    The position up to which they are cleared is stored, so that millions are not scanned again. Open messages
    before it are stored too, and checked again each time.
    """
    progress = read_progress(connection, CLEARED_PROPERTY)
    after, open_ids = str(progress.get("after", "")), list[str](progress.get("left", []))
    rows: Sequence[Any] = ()
    if len(open_ids) < MAX_REMEMBERED_OPEN:
        parameters = {"after": after, "before": floor_id(before_ms), "limit": MAX_BATCH_ROWS}
        rows = connection.execute(_UNCLEARED, parameters).all()
    checked_ids: list[str] = [] if position else open_ids[:MAX_BATCH_ROWS]
    checked_rows = connection.execute(_MESSAGES_BY_IDS, {"ids": checked_ids}).all() if checked_ids else ()
    clearing = [row.id for row in (*rows, *checked_rows) if row.state not in OPEN_MESSAGE_STATES]
    if clearing:
        clear_contents(connection, clearing)
    still_open = {row.id for row in checked_rows if row.state in OPEN_MESSAGE_STATES}
    remaining = open_ids[len(checked_ids) :] + [checked_id for checked_id in checked_ids if checked_id in still_open]
    remaining += [row.id for row in rows if row.state in OPEN_MESSAGE_STATES]
    after = rows[-1].id if rows else after
    if rows or remaining != open_ids:
        set_properties(connection, {CLEARED_PROPERTY: json.dumps({"after": after, "left": remaining})})
    return after if len(rows) == MAX_BATCH_ROWS else None


def delete_old_messages(connection: Connection, before_ms: int, after: str) -> str | None:
    """Delete messages; their traces too, where those are not partitioned."""
    parameters = {"after": after, "before": floor_id(before_ms), "limit": MAX_BATCH_ROWS}
    rows = connection.execute(_OLD_MESSAGES, parameters).all()
    ids = [row.id for row in rows if row.state not in OPEN_MESSAGE_STATES]
    if ids:
        delete_messages(connection, ids, with_traces=connection.dialect.name != POSTGRESQL)
    return rows[-1].id if len(rows) == MAX_BATCH_ROWS else None


def clear_first_attempts(connection: Connection, before_ms: int, _after: str) -> str | None:
    """Clear the attempts in the rows of callbacks; up to where they are cleared is stored, as for contents."""
    after = str(read_progress(connection, ATTEMPTS_CLEARED_PROPERTY).get("after", ""))
    parameters = {"after": after, "before": floor_id(before_ms), "limit": MAX_BATCH_ROWS}
    ids = connection.execute(_OLD_CALLBACKS, parameters).scalars().all()
    if not ids:
        return None
    connection.execute(_CLEAR_ATTEMPTS, {"ids": ids})
    set_properties(connection, {ATTEMPTS_CLEARED_PROPERTY: json.dumps({"after": ids[-1]})})
    return ids[-1] if len(ids) == MAX_BATCH_ROWS else None


def delete_webhook_items(connection: Connection, before_ms: int, after: str) -> str | None:
    """Delete webhook items, and with them the keys that detect a repeated one."""
    rows = connection.execute(_OLDEST_ITEMS, {"after": int(after or 0), "limit": MAX_BATCH_ROWS}).all()
    old = [row for row in rows if row.received_on_ms < before_ms]
    if not old:
        return None
    open_ids = read_open_items(connection)
    if open_ids is None:
        return None
    ids = [row.id for row in old if row.id not in open_ids]
    if ids:
        connection.execute(_DELETE_ITEMS, {"ids": ids})
    return str(old[-1].id) if len(old) == MAX_BATCH_ROWS else None


def read_open_items(connection: Connection) -> set[int] | None:
    """Return the ids of the webhook items whose jobs are in the queue; None if there are too many."""
    open_refs = connection.execute(_OPEN_WEBHOOK_JOBS).scalars().all()
    if len(open_refs) > MAX_OPEN_WEBHOOKS:
        return None
    return {int(read_subject(QueueName.WEBHOOKS, ref).id) for ref in open_refs}


def clear_contents(connection: Connection, ids: Sequence[str]) -> None:
    """Clear the content of messages, and the requests that they came from."""
    connection.execute(_CLEAR_MESSAGES, {"ids": ids})


def delete_messages(connection: Connection, ids: Sequence[str], *, with_traces: bool = True) -> None:
    """Delete messages that are not open, and their traces."""
    if with_traces:
        connection.execute(_DELETE_TRACE_EVENTS, {"ids": ids})
    connection.execute(_DELETE_MESSAGES, {"ids": ids})


def delete_expired_request_state(connection: Connection, now_ms: int, _after: str) -> str | None:
    """Delete expired idempotency keys and rate windows."""
    deleted = delete_expired(connection, now_ms, MAX_BATCH_ROWS)
    deleted += delete_idle_windows(connection, now_ms, MAX_BATCH_ROWS)
    return "" if deleted >= MAX_BATCH_ROWS else None


def delete_orphan_sequences(connection: Connection, _before_ms: int, after: str) -> str | None:
    """Delete the sequence numbers of deleted subscriptions, whose ids are never reused."""
    subscription_id = int(after or 0)
    for _ in range(MAX_BATCH_ROWS):
        next_id = connection.execute(_NEXT_SUBSCRIPTION_ID, {"after": subscription_id}).scalar_one()
        if next_id is None:
            return None
        if connection.execute(_SUBSCRIPTION_BY_ID, {"subscription_id": next_id}).one_or_none() is None:
            limited = {"subscription_id": next_id, "limit": MAX_BATCH_ROWS}
            subjects = connection.execute(_SEQUENCE_SUBJECTS, limited).scalars().all()
            connection.execute(_DELETE_SEQUENCES, {"subscription_id": next_id, "subjects": subjects})
            return str(next_id - 1 if len(subjects) == MAX_BATCH_ROWS else next_id)
        subscription_id = next_id
    return str(subscription_id)


OPEN_MESSAGE_STATES: Final = (MessageState.ACCEPTED.value, MessageState.UNCERTAIN.value)
LAST_RUN_PROPERTY: Final = "retention turn"
CLEARED_PROPERTY: Final = "retention words"
ATTEMPTS_CLEARED_PROPERTY: Final = "retention attempts"


def _delete_by_ids(
    column: Column[Any], condition: ColumnElement[bool], connection: Connection, before_ms: int, after: str
) -> str | None:
    """Delete rows that satisfy a condition, by ids that begin with their time; those of one id together."""
    beyond = column > after if after else column >= after
    query = select(column).where(beyond, column < floor_id(before_ms)).order_by(column).limit(MAX_BATCH_ROWS)
    ids = connection.execute(query).scalars().all()
    if not ids:
        return None
    connection.execute(delete(column.table).where(column.in_(sorted(set(ids))), condition))
    return str(ids[-1]) if len(ids) == MAX_BATCH_ROWS else None


def _delete_limited(statements: Sequence[Delete], connection: Connection, before_ms: int, _after: str) -> str | None:
    parameters = {"before_ms": before_ms, "limit": MAX_BATCH_ROWS}
    deleted = sum(connection.execute(statement, parameters).rowcount for statement in statements)
    return "" if deleted >= MAX_BATCH_ROWS else None


def _delete_ended(key: Column[Any], *times: Column[Any]) -> Delete:
    """Return the statement that deletes a limited number of rows that ended at one of these times, the oldest first."""
    has_ended = or_(*(time < bindparam("before_ms") for time in times))
    return delete(key.table).where(key.in_(select(key).where(has_ended).order_by(times[0]).limit(bindparam("limit"))))


def read_progress(connection: Connection, name: str) -> dict[str, Any]:
    """Return the stored position of a rule; empty if there is none."""
    stored = connection.execute(_PROPERTY, {"property_name": name}).scalar_one_or_none()
    return {} if stored is None else json.loads(stored)


def _has_id(column: Any) -> Any:
    return column.in_(bindparam("ids", expanding=True))


_PROPERTY: Final = (
    select(store_properties.c.value).where(store_properties.c.name == bindparam("property_name")).with_for_update()
)
_MESSAGE: Final = select(messages.c.id, messages.c.state).order_by(messages.c.id)
_OLD_MESSAGES: Final = _MESSAGE.where(messages.c.id > bindparam("after"), messages.c.id < bindparam("before")).limit(
    bindparam("limit")
)
_UNCLEARED: Final = _OLD_MESSAGES.with_for_update()
_MESSAGES_BY_IDS: Final = _MESSAGE.where(_has_id(messages.c.id)).with_for_update()
_CLEAR_MESSAGES: Final = (
    update(messages).where(_has_id(messages.c.id), messages.c.content != b"").values(emptied(messages, Period.BODIES))
)
_OLD_CALLBACKS: Final = (
    select(callbacks.c.id)
    .where(callbacks.c.id > bindparam("after"), callbacks.c.id < bindparam("before"))
    .order_by(callbacks.c.id)
    .limit(bindparam("limit"))
)
_ATTEMPT_TIMES: Final = dict.fromkeys((callbacks.c.attempted_on_ms, callbacks.c.duration_ms, callbacks.c.status))
_CLEAR_ATTEMPTS: Final = (
    update(callbacks)
    .where(_has_id(callbacks.c.id), callbacks.c.attempted_on_ms.is_not(None))
    .values({**_ATTEMPT_TIMES, **emptied(callbacks, Period.FIRST_ATTEMPTS)})
)
_DELETE_MESSAGES: Final = delete(messages).where(_has_id(messages.c.id), messages.c.state.not_in(OPEN_MESSAGE_STATES))
_DELETE_TRACE_EVENTS: Final = delete(message_events).where(_has_id(message_events.c.message_id))
_NO_MESSAGE: Final = ~exists().where(messages.c.id == message_events.c.message_id)
_HAS_ENDED: Final = callbacks.c.ended_on_ms.is_not(None)
_NO_OPEN_CALLBACK: Final = ~exists().where(callbacks.c.id == attempts.c.callback_id, callbacks.c.ended_on_ms.is_(None))
_OLDEST_ITEMS: Final = (
    select(webhook_items.c.id, webhook_items.c.received_on_ms)
    .where(webhook_items.c.id > bindparam("after"))
    .order_by(webhook_items.c.id)
    .limit(bindparam("limit"))
)
_OPEN_WEBHOOK_JOBS: Final = (
    select(queue_jobs.c.ref).where(queue_jobs.c.queue == int(QueueName.WEBHOOKS)).limit(MAX_OPEN_WEBHOOKS + 1)
)
_DELETE_ITEMS: Final = delete(webhook_items).where(_has_id(webhook_items.c.id))
_DELETE_OLD_INBOUND: Final = _delete_ended(inbound_messages.c.operator_message_id, inbound_messages.c.received_on_ms)
_DELETE_OLD_AUDIT: Final = _delete_ended(audit_log.c.id, audit_log.c.at_ms)
_DELETE_OLD_CREDENTIALS: Final = (  # that expired, or were revoked
    _delete_ended(client_secrets.c.hash, client_secrets.c.expires_on_ms),
    _delete_ended(universal_tokens.c.hash, universal_tokens.c.expires_on_ms, universal_tokens.c.revoked_on_ms),
    _delete_ended(app_keys.c.id, app_keys.c.expires_on_ms, app_keys.c.revoked_on_ms),
    _delete_ended(app_links.c.id, app_links.c.expires_on_ms, app_links.c.decided_on_ms),
)
_NEXT_SUBSCRIPTION_ID: Final = select(func.min(sequences.c.subscription_id)).where(
    sequences.c.subscription_id > bindparam("after")
)
_SUBSCRIPTION_BY_ID: Final = select(subscriptions.c.id).where(subscriptions.c.id == bindparam("subscription_id"))
_SEQUENCE_SUBJECTS: Final = (
    select(sequences.c.subject)
    .where(sequences.c.subscription_id == bindparam("subscription_id"))
    .limit(bindparam("limit"))
)
_DELETE_SEQUENCES: Final = delete(sequences).where(
    sequences.c.subscription_id == bindparam("subscription_id"),
    sequences.c.subject.in_(bindparam("subjects", expanding=True)),
)
RETENTION_RULES: Final = (  # Source: decision 0051. In this order
    # name, period, delete, partitioned tables
    RetentionRule("words", Period.BODIES, clear_message_contents),
    RetentionRule("messages", Period.MESSAGES, delete_old_messages),
    RetentionRule(  # of deleted messages, that no partition held
        "traces",
        Period.MESSAGES,
        partial(_delete_by_ids, message_events.c.message_id, _NO_MESSAGE),
        ("message_events",),
    ),
    RetentionRule(  # of callbacks that have an outcome or are deleted; attempts are as old as their callback
        "attempts", Period.ATTEMPTS, partial(_delete_by_ids, attempts.c.callback_id, _NO_OPEN_CALLBACK), ("attempts",)
    ),
    RetentionRule(
        "first attempts",
        period=Period.FIRST_ATTEMPTS,
        delete_batch=clear_first_attempts,
        is_due=lambda keep: keep.attempts_days < keep.bodies_days,
    ),
    RetentionRule("callbacks", Period.BODIES, partial(_delete_by_ids, callbacks.c.id, _HAS_ENDED), ("callbacks",)),
    RetentionRule(
        "inbound_webhooks", Period.BODIES, partial(_delete_by_ids, inbound_webhooks.c.id, true()), ("inbound_webhooks",)
    ),
    RetentionRule("items", Period.ITEMS, delete_webhook_items),
    RetentionRule("inbound", Period.MESSAGES, partial(_delete_limited, [_DELETE_OLD_INBOUND])),
    RetentionRule("expired", Period.EXPIRY, delete_expired_request_state),
    RetentionRule("credentials", Period.BODIES, partial(_delete_limited, _DELETE_OLD_CREDENTIALS)),
    RetentionRule("audit", Period.AUDIT, partial(_delete_limited, [_DELETE_OLD_AUDIT])),
    RetentionRule("requests", Period.REQUESTS, delete_request_entries),
    RetentionRule("sequences", Period.EXPIRY, delete_orphan_sequences),
)
