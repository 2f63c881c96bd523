"""Leases: which process works which shard of a queue, where several processes share a store."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    SmallInteger,
    Text,
    bindparam,
    delete,
    func,
    literal_column,
    select,
    update,
)

from waypost.store.bulk_statements import WAYS
from waypost.store.queue.jobs import QueueName
from waypost.store.sql import insert_or
from waypost.store.tables import leases, processes

SHARDS: Final = 256
"""How many shards the groups of a queue are hashed into."""

NOBODY: Final = ""
"""Holder of a lease that is free."""

FORGOTTEN_MS: Final = 10 * 60 * 1000
"""How long a killed process stays in the list: far longer than a process can be suspended and continue."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A shard that a process has claimed.

    Attributes:
        idle_ms: time since the previous holder could last work it; None if there was none yet.
    """

    shard: int
    rested_ms: int | None


@dataclass(frozen=True, slots=True)
class Share:
    """The shards that a process holds of each queue.

    Attributes:
        held: the shards it holds.
        claimed: those of them that it did not hold before.
        max_shards: how many it should hold at most.
    """

    held: dict[QueueName, set[int]]
    taken: dict[QueueName, list[Taken]]
    most: dict[QueueName, int]


@dataclass(frozen=True, slots=True)
class Keeping:
    """A process's request for leases.

    Attributes:
        holder: this process.
        queues: those that it works.
        released: of each queue the shards that it has stopped working and releases.
        lease_ms: how long a lease lasts.
        now_ms: by the caller's clock, used where the store has none of its own.
    """

    holder: str
    queues: Sequence[QueueName]
    given_back: Mapping[QueueName, Collection[int]]
    lease_ms: int
    now_ms: int


def keep_leases(connection: Connection, keepings: Sequence[Keeping]) -> list[Share]:
    """Release and renew leases, and claim the process's fair share of free shards.

    A row is claimed by locking it after it has expired; one that another process has locked is left for
    the next time. So this waits for no other process, not even for one that was suspended within a
    transaction, and no shard ever has two holders.
    """
    return [_keep(connection, keeping) for keeping in keepings]


def _keep(connection: Connection, keeping: Keeping) -> Share:
    now_ms = connection.info[WAYS].now_ms(connection) or keeping.now_ms
    until_ms = now_ms + keeping.lease_ms
    queue_names = ",".join(queue_name.name.lower() for queue_name in keeping.queues)
    connection.execute(_HERE, {"holder": keeping.holder, "queues": queue_names, "seen_ms": now_ms})
    for queue_name, released in keeping.given_back.items():
        if released:
            connection.execute(
                update(leases)
                .where(
                    leases.c.queue == int(queue_name), leases.c.holder == keeping.holder, leases.c.shard.in_(released)
                )
                .values(holder=NOBODY, until_ms=now_ms)
            )
    held = {queue_name: set[int]() for queue_name in keeping.queues}
    renewed = connection.execute(_RENEW, {"where_holder": keeping.holder, "until": until_ms})
    for queue_name, shard in renewed.all():
        held.setdefault(QueueName(queue_name), set()).add(shard)
    workers = queues_worked(connection, now_ms - keeping.lease_ms)
    share = Share(held, {}, {})
    for queue_name in keeping.queues:
        share.most[queue_name] = max_shards = -(-SHARDS // max(workers.get(queue_name, 0), 1))
        share.taken[queue_name] = claimed = _take(
            connection, keeping.holder, queue_name, max_shards - len(held[queue_name]), now_ms, until_ms
        )
        held[queue_name] |= {lease.shard for lease in claimed}
    return share


def _take(
    connection: Connection, holder: str, queue_name: QueueName, at_most: int, now_ms: int, until_ms: int
) -> list[Taken]:
    if at_most <= 0:
        return []
    parameters = {"queue": int(queue_name), "now": now_ms, "limit": at_most}
    free = connection.execute(_FREE, parameters).all()
    if len(free) < at_most and _make_rows(connection, queue_name):
        free = connection.execute(_FREE, parameters).all()
    if free:
        connection.execute(
            update(leases)
            .where(leases.c.queue == int(queue_name), leases.c.shard.in_([row.shard for row in free]))
            .values(holder=holder, until_ms=until_ms)
        )
    return [Taken(row.shard, now_ms - row.until_ms if row.until_ms else None) for row in free]


def _make_rows(connection: Connection, queue_name: QueueName) -> bool:
    """Create the rows of a queue if they do not exist yet."""
    count = select(func.count()).select_from(leases).where(leases.c.queue == int(queue_name))
    if connection.execute(count).scalar_one() == SHARDS:
        return False
    connection.execute(_MAKE_ROWS, {"queue": int(queue_name), "holder": NOBODY})
    return True


def queues_worked(connection: Connection, since_ms: int) -> dict[QueueName, int]:
    """Return how many processes work each queue, of those that were active since a time."""
    counts: dict[QueueName, int] = {}
    active = select(processes.c.queues).where(processes.c.seen_ms > since_ms)
    for names in connection.execute(active).scalars():
        for name in names.split(","):
            queue_name = QueueName.__members__.get(name.upper())  # a newer version may have queues of its own
            if queue_name is not None:
                counts[queue_name] = counts.get(queue_name, 0) + 1
    return counts


def queues_leased(connection: Connection, now_ms: int) -> set[QueueName]:
    """Return the queues of which some process holds shards; called on the writer's connection."""
    now_ms = connection.info[WAYS].now_ms(connection) or now_ms
    leased = connection.execute(
        select(leases.c.queue).where(leases.c.until_ms > now_ms, leases.c.holder != NOBODY).distinct()
    ).scalars()
    return {QueueName(queue_name) for queue_name in leased if queue_name in set(QueueName)}


def give_back_leases(connection: Connection, holder: str, now_ms: int) -> None:
    """End every lease of a holder, and remove it from the list of processes.

    Processes that were killed long ago are removed too: no process reuses a name.
    """
    now_ms = connection.info[WAYS].now_ms(connection) or now_ms
    connection.execute(update(leases).where(leases.c.holder == holder).values(holder=NOBODY, until_ms=now_ms))
    connection.execute(
        delete(processes).where((processes.c.holder == holder) | (processes.c.seen_ms < now_ms - FORGOTTEN_MS))
    )


def forget_leases(connection: Connection) -> None:
    """End every lease: for a process that has the store to itself."""
    connection.execute(delete(leases))
    connection.execute(delete(processes))


_SHARDS = select(literal_column("0", Integer).label("shard")).cte("shards", recursive=True)
_ALL_SHARDS = _SHARDS.union_all(select(_SHARDS.c.shard + 1).where(_SHARDS.c.shard < SHARDS - 1))
_MAKE_ROWS: Final = (
    insert_or(leases)
    .from_select(
        ["queue", "shard", "holder", "until_ms"],
        select(
            bindparam("queue", type_=SmallInteger),
            _ALL_SHARDS.c.shard,
            bindparam("holder", type_=Text),
            literal_column("0", BigInteger),
        ).where(literal_column("1") == literal_column("1")),  # otherwise SQLite reads ON as part of a join
    )
    .on_conflict_do_nothing()
)
_PROCESS = insert_or(processes)
_HERE: Final = _PROCESS.on_conflict_do_update(
    index_elements=["holder"], set_={"queues": _PROCESS.excluded.queues, "seen_ms": _PROCESS.excluded.seen_ms}
)
_RENEW: Final = (
    update(leases)
    .where(leases.c.holder == bindparam("where_holder"))
    .values(until_ms=bindparam("until"))
    .returning(leases.c.queue, leases.c.shard)
)
_FREE: Final = (
    select(leases.c.shard, leases.c.until_ms)
    .where(leases.c.queue == bindparam("queue"), leases.c.until_ms <= bindparam("now"))
    .order_by(leases.c.shard)
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True)
)
