"""How the addresses behind subscriptions are doing, as far as it outlives a process; and their keys.

The statements of the callbacks stage come first, then those of whoever runs the service.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, Row, Select, bindparam, func, select, update

from waypost.store.bulk_statements import Changing
from waypost.store.callbacks.subscriptions import live_group, replay_group, tell_worker
from waypost.store.queue.jobs import QueueName
from waypost.store.tables import callbacks, queue_jobs, subscriptions
from waypost.store.typed_rows import select_row

MOST_WAITING: Final = 10_000
"""How many callbacks are counted that wait for one address; of a longer line it is known that it is longer."""


@dataclass(frozen=True, slots=True)
class Standing:
    """What changed about an address with an attempt.

    Attributes:
        failing_since_ms: it has taken nothing since then; None: it takes.
        asked_until_ms: its receiver asked not to be called before then; None: it did not.
        next_attempt_ms: its circuit is open, and a callback tries it then; None: it is not open.
    """

    subscription_id: int
    failing_since_ms: int | None
    asked_until_ms: int | None = None
    next_attempt_ms: int | None = None


def keep_standings(connection: Connection, standings: Sequence[Standing]) -> None:
    """Keep the last one of each address, in the order of ids."""
    last = {one.subscription_id: one for one in standings}
    _STANDING.run(
        connection,
        [
            {
                "at": one.subscription_id,
                "failing_since_ms": one.failing_since_ms,
                "asked_until_ms": one.asked_until_ms,
                "next_attempt_ms": one.next_attempt_ms,
            }
            for _, one in sorted(last.items())
        ],
    )


class ReceiverRow(NamedTuple):
    """What names a subscription to people, and since when the service has paused it."""

    id: int
    app_id: str
    tag: str
    url: str
    paused_on_ms: int | None


def pause_subscription(connection: Connection, id: int, at_ms: int, reason: str) -> ReceiverRow | None:
    """Pause a subscription, and give it as it was; None where it is gone or paused already."""
    row = _receiver_to_change(connection, id)
    if row is None or row.paused_on_ms is not None:
        return None
    paused = {"paused_on_ms": at_ms, "pause_reason": reason[:500]}
    connection.execute(update(subscriptions).where(subscriptions.c.id == id).values(**paused))
    return row


def _receiver_to_change(connection: Connection, id: int) -> ReceiverRow | None:
    row = connection.execute(_RECEIVER.where(subscriptions.c.id == id)).one_or_none()
    return None if row is None else ReceiverRow._make(row)


def resume_subscription(connection: Connection, id: int) -> ReceiverRow | None:
    """Let a subscription go on that the service has paused, and give it as it was; None where it is gone.

    One that its partner has paused stays so.
    """
    row = _receiver_to_change(connection, id)
    if row is None:
        return None
    connection.execute(
        update(subscriptions)
        .where(subscriptions.c.id == id)
        .values(failing_since_ms=None, asked_until_ms=None, next_attempt_ms=None, paused_on_ms=None, pause_reason=None)
    )
    tell_worker(connection, id)
    return row


def renew_key(connection: Connection, id: int, old_key_until_ms: int | None) -> bool:
    """Raise the serial of a subscription's key; False where it is gone."""
    raised = update(subscriptions).where(subscriptions.c.id == id).values(key_serial=subscriptions.c.key_serial + 1)
    return connection.execute(raised.values(old_key_until_ms=old_key_until_ms)).rowcount == 1


@dataclass(frozen=True, slots=True)
class Whose:
    """Which subscriptions: those that fit everything that is given.

    Attributes:
        id: of one.
        app_id: of an app.
        partner_id: of a partner.
    """

    id: int | None = None
    app_id: str | None = None
    partner_id: int | None = None

    @property
    def fits(self) -> tuple[ColumnElement[bool], ...]:
        """What a row of subscriptions has to be."""
        given = (
            (subscriptions.c.id, self.id),
            (subscriptions.c.app_id, self.app_id),
            (subscriptions.c.partner_id, self.partner_id),
        )
        return tuple(column == wanted for column, wanted in given if wanted is not None)


def receivers(connection: Connection, whose: Whose, *, most: int = MOST_WAITING) -> list[dict[str, Any]]:
    """Subscriptions by id, each with how many callbacks wait for it and since when; no secret of it.

    Args:
        connection: any.
        whose: which.
        most: how many of each are counted. `waiting` and `replaying` are never more, and
            `waiting_is_longer` and `replaying_is_longer` say that there are more: millions may wait
            for an address that takes nothing, and open pages ask every second.
    """
    rows = connection.execute(_SHOWN.where(*whose.fits).order_by(subscriptions.c.id)).mappings().all()
    return [{**row, **_waiting(connection, row["id"], most)} for row in rows]


def receiver_failure(connection: Connection, id: int) -> dict[str, int | None]:
    """Since when a subscription's receiver has been failing, and when it is tried next; None: it is not."""
    columns = (subscriptions.c.failing_since_ms, subscriptions.c.next_attempt_ms)
    row = connection.execute(select(*columns).where(subscriptions.c.id == id)).one_or_none()
    if row is None or row.failing_since_ms is None:
        return {"failing_since_ms": None, "next_attempt_ms": None}
    return {"failing_since_ms": row.failing_since_ms, "next_attempt_ms": row.next_attempt_ms}


def paused_and_failing(connection: Connection) -> list[Row[Any]]:
    """Subscriptions that the service has paused, and those whose address takes nothing."""
    wanted = _SHOWN.where(subscriptions.c.paused_on_ms.is_not(None) | subscriptions.c.failing_since_ms.is_not(None))
    return list(connection.execute(wanted.order_by(subscriptions.c.id)).all())


def _waiting(connection: Connection, id: int, most: int) -> dict[str, Any]:
    """How many entries of its groups wait, and since when. They are found by the index, group by group."""
    counted: dict[str, Any] = {}
    for name, group in (("waiting", live_group(id)), ("replaying", replay_group(id))):
        asked = {"queue": int(QueueName.CALLBACKS), "group": group, "most": most + 1}
        jobs = connection.execute(_COUNTED, asked).scalar_one()
        counted[name] = min(jobs, most)
        counted[f"{name}_is_longer"] = jobs > most
    first = (
        select(queue_jobs.c.ref)
        .where(queue_jobs.c.queue == int(QueueName.CALLBACKS), queue_jobs.c.concurrency_group == live_group(id))
        .order_by(queue_jobs.c.position)
        .limit(1)
    )
    counted["waiting_since_ms"] = connection.execute(
        select(callbacks.c.created_on_ms).where(callbacks.c.id == first.scalar_subquery())
    ).scalar_one_or_none()
    return counted


_some = (  # in no order: where one is wanted, PostgreSQL may sort all of them before it stops
    select(queue_jobs.c.position)
    .where(queue_jobs.c.queue == bindparam("queue"), queue_jobs.c.concurrency_group == bindparam("group"))
    .limit(bindparam("most"))
    .subquery()
)
_COUNTED: Final = select(func.count()).select_from(_some)
_RECEIVER: Final = select_row(subscriptions, ReceiverRow).with_for_update()
_STANDING: Final = Changing(subscriptions, "id", "failing_since_ms", "asked_until_ms", "next_attempt_ms")
_SHOWN: Final[Select[Any]] = select(
    *(
        subscriptions.c[name]
        for name in (
            "id", "partner_id", "app_id", "tag", "url", "version", "modes", "active", "created_on_ms",
            "key_serial", "old_key_until_ms", "failing_since_ms", "asked_until_ms", "paused_on_ms",
            "pause_reason", "next_attempt_ms",
        )
    )
)  # fmt: skip
