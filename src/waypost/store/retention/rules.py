"""What is forgotten when: tables of rules, and the statements that forget a bounded part at a time.

Nothing that is still open is forgotten: a message that has not been sent, an uncertain one, a callback
that has not ended, an item whose entry is in the journal.
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
"""How many open rows are remembered behind the place up to which words are cleared."""
MOST_OPEN: Final = 20_000
"""With more open arrivals than that none of their items is forgotten: something else is wrong."""


@dataclass(frozen=True, slots=True)
class Keep:
    """For how many days what is kept."""

    bodies_days: int
    messages_days: int
    dedupe_days: int
    attempts_days: int
    audit_days: int = 400


Forget = Callable[[Connection, int, str], str | None]
"""Forgets some rows that are older than a time, in the order of their ids, beyond an id.

Returns:
    Where to go on; None when there is nothing more.
"""


@dataclass(frozen=True, slots=True)
class Rule:
    """One kind of thing that is forgotten.

    Attributes:
        days: for how long it is kept.
        ranges: the tables of which PostgreSQL drops whole ranges before the rest is looked at.
    """

    name: str
    days: Callable[[Keep], int]
    forget: Forget
    ranges: tuple[str, ...] = ()


def begin_turn(connection: Connection, now_ms: int, every_ms: int) -> bool:
    """Note that a turn begins; False when one has begun lately, in this process or another."""
    found = connection.execute(_FACT, {"its_name": TURN}).scalar_one_or_none()
    if found is not None and 0 <= now_ms - int(found) < every_ms:
        return False
    set_facts(connection, {TURN: str(now_ms)})
    return True


def clear_messages(connection: Connection, before_ms: int, piece: str) -> str | None:
    """Clear the words of messages, and the request that brought them.

    How far they have been cleared is remembered, so that it is not looked for again among millions.
    Open ones are remembered too, and looked at again each time.
    """
    noted = _noted(connection, CLEARED)
    after, left = str(noted.get("after", "")), list[str](noted.get("left", []))
    if len(left) >= MOST_LEFT:
        found: Sequence[Any] = ()
    else:
        found = connection.execute(_UNCLEARED, {"after": after, "before": floor_id(before_ms), "most": MOST_ROWS}).all()
    looked_at: list[str] = [] if piece else left[:MOST_ROWS]
    again: Sequence[Any] = connection.execute(_THESE, {"ids": looked_at}).all() if looked_at else ()
    clearing = [row.id for row in (*found, *again) if row.state not in OPEN]
    if clearing:
        connection.execute(_CLEAR, {"ids": clearing})
    still = {row.id for row in again if row.state in OPEN}
    kept = left[len(looked_at) :] + [one for one in looked_at if one in still]
    kept += [row.id for row in found if row.state in OPEN]
    after = found[-1].id if found else after
    if found or kept != left:
        set_facts(connection, {CLEARED: json.dumps({"after": after, "left": kept})})
    return after if len(found) == MOST_ROWS else None


def forget_messages(connection: Connection, before_ms: int, after: str) -> str | None:
    """Delete messages; their traces too, where those do not go by ranges."""
    found = connection.execute(_OLD_MESSAGES, {"after": after, "before": floor_id(before_ms), "most": MOST_ROWS}).all()
    ids = [row.id for row in found if row.state not in OPEN]
    if ids:
        if connection.dialect.name == "sqlite":
            connection.execute(_ITS_EVENTS, {"ids": ids})
        connection.execute(_THOSE_MESSAGES, {"ids": ids})
    return found[-1].id if len(found) == MOST_ROWS else None


def forget_events(connection: Connection, before_ms: int, after: str) -> str | None:
    """Delete the traces of messages that are gone, where ranges have not taken them along."""
    return _by_ids(connection, message_events.c.message_id, _NO_MESSAGE, before_ms, after)


def forget_callbacks(connection: Connection, before_ms: int, after: str) -> str | None:
    """Delete callbacks that have ended."""
    return _by_ids(connection, callbacks.c.id, callbacks.c.ended_on_ms.is_not(None), before_ms, after)


def forget_attempts(connection: Connection, before_ms: int, after: str) -> str | None:
    """Delete attempts of callbacks that have ended or are gone; a callback's attempts have its age."""
    return _by_ids(connection, attempts.c.callback_id, _NOT_OPEN, before_ms, after)


def delete_inbound_webhooks(connection: Connection, before_ms: int, after: str) -> str | None:
    """Delete the bodies of webhooks."""
    return _by_ids(connection, inbound_webhooks.c.id, None, before_ms, after)


def forget_items(connection: Connection, before_ms: int, after: str) -> str | None:
    """Delete items of webhooks, and with them the keys by which one that comes again is known."""
    found = connection.execute(_OLDEST_ITEMS, {"after": int(after or 0), "most": MOST_ROWS}).all()
    old = [row for row in found if row.received_on_ms < before_ms]
    if not old:
        return None
    working = connection.execute(_OPEN_WEBHOOKS).scalars().all()
    if len(working) > MOST_OPEN:
        return None
    kept = {int(read_subject(QueueName.WEBHOOKS, ref).id) for ref in working}
    ids = [row.id for row in old if row.id not in kept]
    if ids:
        connection.execute(_THOSE_ITEMS, {"ids": ids})
    return str(old[-1].id) if len(old) == MOST_ROWS else None


def forget_inbound(connection: Connection, before_ms: int, _after: str) -> str | None:
    """Delete who wrote which message."""
    gone = connection.execute(_OLD_INBOUND, {"before_ms": before_ms, "most": MOST_ROWS})
    return "" if gone.rowcount == MOST_ROWS else None


def forget_expired(connection: Connection, now_ms: int, _after: str) -> str | None:
    """Delete idempotency keys and windows of rates whose time is over."""
    gone = delete_expired(connection, now_ms, MOST_ROWS)
    gone += delete_idle_windows(connection, now_ms, MOST_ROWS)
    return "" if gone >= MOST_ROWS else None


def forget_credentials(connection: Connection, before_ms: int, _after: str) -> str | None:
    """Delete client secrets and app keys that have run out, or were revoked, before a time."""
    given = {"before_ms": before_ms, "most": MOST_ROWS}
    gone = sum(connection.execute(one, given).rowcount for one in (_OLD_SECRETS, _OLD_KEYS))
    return "" if gone >= MOST_ROWS else None


def forget_sequences(connection: Connection, _before_ms: int, after: str) -> str | None:
    """Delete how far was counted for subscriptions that are gone; no other ever gets their ids."""
    at = int(after or 0)
    for _ in range(MOST_ROWS):
        found = connection.execute(_NEXT_COUNTED, {"after": at}).scalar_one()
        if found is None:
            return None
        if connection.execute(_SUBSCRIPTION, {"its_id": found}).one_or_none() is None:
            counted = connection.execute(_COUNTED, {"its_id": found, "most": MOST_ROWS})
            about = counted.scalars().all()
            connection.execute(_UNCOUNT, {"its_id": found, "about_whom": about})
            return str(found - 1 if len(about) == MOST_ROWS else found)
        at = found
    return str(at)


# fmt: off
RULES: Final = (  # Source: decision 0051. In this order
    #    what           for how many days                               how                ranges
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
    """Delete by ids that begin with their time; several rows may have one id, and go together."""
    beyond = column > after if after else column >= after
    found = select(column).where(beyond, column < floor_id(before_ms)).order_by(column).limit(MOST_ROWS)
    seen = connection.execute(found).scalars().all()
    if not seen:
        return None
    gone = delete(column.table).where(column.in_(sorted(set(seen))))
    connection.execute(gone if fits is None else gone.where(fits))
    return str(seen[-1]) if len(seen) == MOST_ROWS else None


def _noted(connection: Connection, name: str) -> dict[str, Any]:
    found = connection.execute(_FACT, {"its_name": name}).scalar_one_or_none()
    return {} if found is None else json.loads(found)


def _ids(column: Any) -> Any:
    return column.in_(bindparam("ids", expanding=True))


_FACT: Final = select(store_facts.c.value).where(store_facts.c.name == bindparam("its_name")).with_for_update()
_MESSAGE: Final = select(messages.c.id, messages.c.state).order_by(messages.c.id)
_OLD_MESSAGES: Final = _MESSAGE.where(messages.c.id > bindparam("after"), messages.c.id < bindparam("before")).limit(
    bindparam("most")
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
    .limit(bindparam("most"))
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
        .limit(bindparam("most"))
    )
)
_OLD_SECRETS: Final = delete(client_secrets).where(
    client_secrets.c.hash.in_(
        select(client_secrets.c.hash)
        .where(client_secrets.c.expires_on_ms < bindparam("before_ms"))
        .limit(bindparam("most"))
    )
)
_OLD_KEYS: Final = delete(app_keys).where(
    app_keys.c.id.in_(
        select(app_keys.c.id)
        .where(
            (app_keys.c.expires_on_ms < bindparam("before_ms")) | (app_keys.c.revoked_on_ms < bindparam("before_ms"))
        )
        .limit(bindparam("most"))
    )
)
_NEXT_COUNTED: Final = select(func.min(sequences.c.subscription_id)).where(
    sequences.c.subscription_id > bindparam("after")
)
_SUBSCRIPTION: Final = select(subscriptions.c.id).where(subscriptions.c.id == bindparam("its_id"))
_COUNTED: Final = (
    select(sequences.c.about).where(sequences.c.subscription_id == bindparam("its_id")).limit(bindparam("most"))
)
_UNCOUNT: Final = delete(sequences).where(
    sequences.c.subscription_id == bindparam("its_id"), sequences.c.about.in_(bindparam("about_whom", expanding=True))
)
