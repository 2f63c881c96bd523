"""Retention: a table of rules, and the statements that delete a limited number of rows at a time.

Open rows are never deleted: a message that has not been sent, an uncertain one, a callback without an
outcome, an item whose job is in the queue.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, bindparam, delete, exists, func, select, update

from waypost.domain.message import MessageState
from waypost.store.accounts.audit_log import delete_audit_entries
from waypost.store.properties import set_facts
from waypost.store.queue.jobs import QueueName, read_subject
from waypost.store.requests.idempotency import delete_expired
from waypost.store.requests.rates import delete_idle_windows
from waypost.store.retention.partitions import floor_id
from waypost.store.tables import (
    app_keys,
    attempts,
    callbacks,
    client_secrets,
    inbound_messages,
    inbound_webhooks,
    message_events,
    messages,
    queue_jobs,
    sequences,
    store_facts,
    subscriptions,
    webhook_items,
)

MOST_ROWS: Final = 200
"""Of one transaction: a few milliseconds on either engine."""
MOST_LEFT: Final = 1_000
"""How many open messages before the cleared position are remembered."""
MOST_OPEN: Final = 20_000
"""With more open webhook items than that no item is deleted: something else is wrong."""


@dataclass(frozen=True, slots=True)
class Keep:
    """Retention periods in days."""

    bodies_days: int
    messages_days: int
    dedupe_days: int
    attempts_days: int
    audit_days: int = 400


Forget = Callable[[Connection, int, str], str | None]
"""Deletes some rows that are older than a time, in the order of their ids, beyond an id.

Returns:
    Where to continue; None if there are no more.
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """The retention rule of one kind of rows.

    Attributes:
        days: how long they are retained.
        partitioned_tables: tables of which PostgreSQL drops whole partitions before other rows are deleted.
    """

    name: str
    days: Callable[[Keep], int]
    forget: Forget
    ranges: tuple[str, ...] = ()


def begin_turn(connection: Connection, now_ms: int, every_ms: int) -> bool:
    """Record the start of a run; return False if one started recently, in this process or another."""
    last_run = connection.execute(_FACT, {"property_name": TURN}).scalar_one_or_none()
    if last_run is not None and 0 <= now_ms - int(last_run) < every_ms:
        return False
    set_facts(connection, {TURN: str(now_ms)})
    return True


def clear_messages(connection: Connection, before_ms: int, piece: str) -> str | None:
    """Clear the content of messages, and the requests that they came from.

    The position up to which they are cleared is stored, so that millions are not scanned again. Open messages
    before it are stored too, and checked again each time.
    """
    progress = _noted(connection, CLEARED)
    after, open_ids = str(progress.get("after", "")), list[str](progress.get("left", []))
    if len(open_ids) >= MOST_LEFT:
        rows: Sequence[Any] = ()
    else:
        rows = connection.execute(_UNCLEARED, {"after": after, "before": floor_id(before_ms), "limit": MOST_ROWS}).all()
    checked_ids: list[str] = [] if piece else open_ids[:MOST_ROWS]
    checked_rows: Sequence[Any] = connection.execute(_THESE, {"ids": checked_ids}).all() if checked_ids else ()
    clearing = [row.id for row in (*rows, *checked_rows) if row.state not in OPEN]
    if clearing:
        connection.execute(_CLEAR, {"ids": clearing})
    still_open = {row.id for row in checked_rows if row.state in OPEN}
    remaining = open_ids[len(checked_ids) :] + [checked_id for checked_id in checked_ids if checked_id in still_open]
    remaining += [row.id for row in rows if row.state in OPEN]
    after = rows[-1].id if rows else after
    if rows or remaining != open_ids:
        set_facts(connection, {CLEARED: json.dumps({"after": after, "left": remaining})})
    return after if len(rows) == MOST_ROWS else None


def forget_messages(connection: Connection, before_ms: int, after: str) -> str | None:
    """Delete messages; their traces too, where those are not partitioned."""
    rows = connection.execute(_OLD_MESSAGES, {"after": after, "before": floor_id(before_ms), "limit": MOST_ROWS}).all()
    ids = [row.id for row in rows if row.state not in OPEN]
    if ids:
        if connection.dialect.name == "sqlite":
            connection.execute(_ITS_EVENTS, {"ids": ids})
        connection.execute(_THOSE_MESSAGES, {"ids": ids})
    return rows[-1].id if len(rows) == MOST_ROWS else None


def forget_events(connection: Connection, before_ms: int, after: str) -> str | None:
    """Delete the traces of deleted messages that no partition held."""
    return _by_ids(connection, message_events.c.message_id, _NO_MESSAGE, before_ms, after)


def forget_callbacks(connection: Connection, before_ms: int, after: str) -> str | None:
    """Delete callbacks that have an outcome."""
    return _by_ids(connection, callbacks.c.id, callbacks.c.ended_on_ms.is_not(None), before_ms, after)


def forget_attempts(connection: Connection, before_ms: int, after: str) -> str | None:
    """Delete attempts of callbacks that have an outcome or are deleted; attempts are as old as their callback."""
    return _by_ids(connection, attempts.c.callback_id, _NOT_OPEN, before_ms, after)


def delete_inbound_webhooks(connection: Connection, before_ms: int, after: str) -> str | None:
    """Delete the bodies of webhooks."""
    return _by_ids(connection, inbound_webhooks.c.id, None, before_ms, after)


def forget_items(connection: Connection, before_ms: int, after: str) -> str | None:
    """Delete webhook items, and with them the keys that detect a repeated one."""
    rows = connection.execute(_OLDEST_ITEMS, {"after": int(after or 0), "limit": MOST_ROWS}).all()
    old = [row for row in rows if row.received_on_ms < before_ms]
    if not old:
        return None
    open_refs = connection.execute(_OPEN_WEBHOOKS).scalars().all()
    if len(open_refs) > MOST_OPEN:
        return None
    open_ids = {int(read_subject(QueueName.WEBHOOKS, ref).id) for ref in open_refs}
    ids = [row.id for row in old if row.id not in open_ids]
    if ids:
        connection.execute(_THOSE_ITEMS, {"ids": ids})
    return str(old[-1].id) if len(old) == MOST_ROWS else None


def forget_inbound(connection: Connection, before_ms: int, _after: str) -> str | None:
    """Delete the records of inbound messages."""
    deleted = connection.execute(_OLD_INBOUND, {"before_ms": before_ms, "limit": MOST_ROWS})
    return "" if deleted.rowcount == MOST_ROWS else None


def forget_expired(connection: Connection, now_ms: int, _after: str) -> str | None:
    """Delete expired idempotency keys and rate windows."""
    deleted = delete_expired(connection, now_ms, MOST_ROWS)
    deleted += delete_idle_windows(connection, now_ms, MOST_ROWS)
    return "" if deleted >= MOST_ROWS else None


def forget_credentials(connection: Connection, before_ms: int, _after: str) -> str | None:
    """Delete client secrets and app keys that expired, or were revoked, before a time."""
    parameters = {"before_ms": before_ms, "limit": MOST_ROWS}
    deleted = sum(connection.execute(statement, parameters).rowcount for statement in (_OLD_SECRETS, _OLD_KEYS))
    return "" if deleted >= MOST_ROWS else None


def forget_sequences(connection: Connection, _before_ms: int, after: str) -> str | None:
    """Delete the sequence numbers of deleted subscriptions, whose ids are never reused."""
    subscription_id = int(after or 0)
    for _ in range(MOST_ROWS):
        next_id = connection.execute(_NEXT_COUNTED, {"after": subscription_id}).scalar_one()
        if next_id is None:
            return None
        if connection.execute(_SUBSCRIPTION, {"subscription_id": next_id}).one_or_none() is None:
            sequence_query = connection.execute(_COUNTED, {"subscription_id": next_id, "limit": MOST_ROWS})
            about = sequence_query.scalars().all()
            connection.execute(_UNCOUNT, {"subscription_id": next_id, "subjects": about})
            return str(next_id - 1 if len(about) == MOST_ROWS else next_id)
        subscription_id = next_id
    return str(subscription_id)


# fmt: off
RULES: Final = (  # Source: decision 0051. In this order
    #    name           days                                            delete             partitioned tables
    Rule("words",       lambda keep: keep.bodies_days,                      clear_messages),
    Rule("messages",    lambda keep: keep.messages_days,                    forget_messages),
    Rule("traces",      lambda keep: keep.messages_days,                    forget_events,    ("message_events",)),
    Rule("attempts",    lambda keep: min(keep.attempts_days, keep.bodies_days), forget_attempts, ("attempts",)),
    Rule("callbacks",   lambda keep: keep.bodies_days,                      forget_callbacks, ("callbacks",)),
    Rule("inbound_webhooks",    lambda keep: keep.bodies_days,                      delete_inbound_webhooks,  ("inbound_webhooks",)),
    Rule("items",       lambda keep: max(keep.bodies_days, keep.dedupe_days), forget_items),
    Rule("inbound",     lambda keep: keep.messages_days,                    forget_inbound),
    Rule("expired",     lambda keep: 0,                                     forget_expired),
    Rule("credentials", lambda keep: keep.bodies_days,                      forget_credentials),
    Rule("audit",       lambda keep: keep.audit_days,                       delete_audit_entries),
    Rule("sequences",   lambda keep: 0,                                     forget_sequences),
)
# fmt: on
OPEN: Final = (MessageState.ACCEPTED.value, MessageState.UNCERTAIN.value)
TURN: Final = "retention turn"
CLEARED: Final = "retention words"


def _by_ids(connection: Connection, column: Any, fits: Any | None, before_ms: int, after: str) -> str | None:
    """Delete by ids that begin with their time; rows with the same id are deleted together."""
    beyond = column > after if after else column >= after
    query = select(column).where(beyond, column < floor_id(before_ms)).order_by(column).limit(MOST_ROWS)
    ids = connection.execute(query).scalars().all()
    if not ids:
        return None
    statement = delete(column.table).where(column.in_(sorted(set(ids))))
    connection.execute(statement if fits is None else statement.where(fits))
    return str(ids[-1]) if len(ids) == MOST_ROWS else None


def _noted(connection: Connection, name: str) -> dict[str, Any]:
    stored = connection.execute(_FACT, {"property_name": name}).scalar_one_or_none()
    return {} if stored is None else json.loads(stored)


def _ids(column: Any) -> Any:
    return column.in_(bindparam("ids", expanding=True))


_FACT: Final = select(store_facts.c.value).where(store_facts.c.name == bindparam("property_name")).with_for_update()
_MESSAGE: Final = select(messages.c.id, messages.c.state).order_by(messages.c.id)
_OLD_MESSAGES: Final = _MESSAGE.where(messages.c.id > bindparam("after"), messages.c.id < bindparam("before")).limit(
    bindparam("limit")
)
_UNCLEARED: Final = _OLD_MESSAGES.with_for_update()
_THESE: Final = _MESSAGE.where(_ids(messages.c.id)).with_for_update()
_CLEAR: Final = update(messages).where(_ids(messages.c.id), messages.c.content != b"").values(content=b"", request="")
_THOSE_MESSAGES: Final = delete(messages).where(_ids(messages.c.id), messages.c.state.not_in(OPEN))
_ITS_EVENTS: Final = delete(message_events).where(_ids(message_events.c.message_id))
_NO_MESSAGE: Final = ~exists().where(messages.c.id == message_events.c.message_id)
_NOT_OPEN: Final = ~exists().where(callbacks.c.id == attempts.c.callback_id, callbacks.c.ended_on_ms.is_(None))
_OLDEST_ITEMS: Final = (
    select(webhook_items.c.id, webhook_items.c.received_on_ms)
    .where(webhook_items.c.id > bindparam("after"))
    .order_by(webhook_items.c.id)
    .limit(bindparam("limit"))
)
_OPEN_WEBHOOKS: Final = (
    select(queue_jobs.c.ref).where(queue_jobs.c.queue == int(QueueName.WEBHOOKS)).limit(MOST_OPEN + 1)
)
_THOSE_ITEMS: Final = delete(webhook_items).where(_ids(webhook_items.c.id))
_OLD_INBOUND: Final = delete(inbound_messages).where(
    inbound_messages.c.operator_message_id.in_(
        select(inbound_messages.c.operator_message_id)
        .where(inbound_messages.c.received_on_ms < bindparam("before_ms"))
        .order_by(inbound_messages.c.received_on_ms)
        .limit(bindparam("limit"))
    )
)
_OLD_SECRETS: Final = delete(client_secrets).where(
    client_secrets.c.hash.in_(
        select(client_secrets.c.hash)
        .where(client_secrets.c.expires_on_ms < bindparam("before_ms"))
        .limit(bindparam("limit"))
    )
)
_OLD_KEYS: Final = delete(app_keys).where(
    app_keys.c.id.in_(
        select(app_keys.c.id)
        .where(
            (app_keys.c.expires_on_ms < bindparam("before_ms")) | (app_keys.c.revoked_on_ms < bindparam("before_ms"))
        )
        .limit(bindparam("limit"))
    )
)
_NEXT_COUNTED: Final = select(func.min(sequences.c.subscription_id)).where(
    sequences.c.subscription_id > bindparam("after")
)
_SUBSCRIPTION: Final = select(subscriptions.c.id).where(subscriptions.c.id == bindparam("subscription_id"))
_COUNTED: Final = (
    select(sequences.c.about)
    .where(sequences.c.subscription_id == bindparam("subscription_id"))
    .limit(bindparam("limit"))
)
_UNCOUNT: Final = delete(sequences).where(
    sequences.c.subscription_id == bindparam("subscription_id"),
    sequences.c.about.in_(bindparam("subjects", expanding=True)),
)
