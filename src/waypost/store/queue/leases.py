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

from waypost.store.bulk_statements import store_time_ms
from waypost.store.queue.job_subjects import QueueName
from waypost.store.sql import upsert
from waypost.store.tables import leases, processes

SHARD_COUNT: Final = 256  # how many shards the groups of a queue are hashed into

NO_HOLDER: Final = ""  # holder of a lease that is free

PROCESS_RETENTION_MS: Final = 10 * 60 * 1000
"""How long a killed process stays in the list: far longer than a process can be suspended and continue."""


@dataclass(frozen=True, slots=True)
class ClaimedShard:
    """A shard that a process has claimed."""

    shard: int
    idle_ms: int | None  # time since the previous holder could last work it; None if there was none yet


@dataclass(frozen=True, slots=True)
class LeaseShare:
    """The shards that a process holds of each queue."""

    held: dict[QueueName, set[int]]  # the shards it holds
    claimed: dict[QueueName, list[ClaimedShard]]  # those of them that it did not hold before
    max_shards: dict[QueueName, int]  # how many it should hold at most


@dataclass(frozen=True, slots=True)
class LeaseRequest:
    """A process's request for leases."""

    holder: str  # this process
    queues: Sequence[QueueName]  # those that it works
    released: Mapping[QueueName, Collection[int]]  # of each queue the shards that it has stopped working and releases
    lease_ms: int  # how long a lease lasts
    now_ms: int  # by the caller's clock, used where the store has none of its own


def renew_leases(connection: Connection, requests: Sequence[LeaseRequest]) -> list[LeaseShare]:
    """Release and renew leases, and claim the process's fair share of free shards.

    A row is claimed by locking it after it has expired; one that another process has locked is left for
    the next time. So this waits for no other process, not even for one that was suspended within a
    transaction, and no shard ever has two holders.
    """
    return [_renew(connection, keeping) for keeping in requests]


def _renew(connection: Connection, request: LeaseRequest) -> LeaseShare:
    now_ms = store_time_ms(connection, request.now_ms)
    until_ms = now_ms + request.lease_ms
    queue_names = ",".join(queue_name.name.lower() for queue_name in request.queues)
    connection.execute(_UPSERT_PROCESS, {"holder": request.holder, "queues": queue_names, "seen_ms": now_ms})
    for queue_name, released in request.released.items():
        if released:
            own = (leases.c.queue == int(queue_name), leases.c.holder == request.holder, leases.c.shard.in_(released))
            connection.execute(update(leases).where(*own).values(holder=NO_HOLDER, until_ms=now_ms))
    held = {queue_name: set[int]() for queue_name in request.queues}
    renewed = connection.execute(_RENEW_LEASES, {"where_holder": request.holder, "until": until_ms})
    for queue_name, shard in renewed.all():
        held.setdefault(QueueName(queue_name), set()).add(shard)
    workers = count_queue_workers(connection, now_ms - request.lease_ms)
    share = LeaseShare(held, {}, {})
    for queue_name in request.queues:
        share.max_shards[queue_name] = max_shards = -(-SHARD_COUNT // max(workers.get(queue_name, 0), 1))
        share.claimed[queue_name] = claimed = _claim_shards(
            connection, request.holder, queue_name, max_shards - len(held[queue_name]), now_ms, until_ms
        )
        held[queue_name] |= {lease.shard for lease in claimed}
    return share


def _claim_shards(
    connection: Connection, holder: str, queue_name: QueueName, at_most: int, now_ms: int, until_ms: int
) -> list[ClaimedShard]:
    if at_most <= 0:
        return []
    parameters = {"queue": int(queue_name), "now": now_ms, "limit": at_most}
    free = connection.execute(_FREE_SHARDS, parameters).all()
    if len(free) < at_most:
        count = select(func.count()).select_from(leases).where(leases.c.queue == int(queue_name))
        if connection.execute(count).scalar_one() < SHARD_COUNT:  # its rows do not exist yet
            added = {"queue": int(queue_name), "holder": NO_HOLDER, "last_shard": SHARD_COUNT - 1}
            connection.execute(_INSERT_SHARDS, added)
            free = connection.execute(_FREE_SHARDS, parameters).all()
    if free:
        found = (leases.c.queue == int(queue_name), leases.c.shard.in_([row.shard for row in free]))
        connection.execute(update(leases).where(*found).values(holder=holder, until_ms=until_ms))
    return [ClaimedShard(row.shard, now_ms - row.until_ms if row.until_ms else None) for row in free]


def count_queue_workers(connection: Connection, since_ms: int) -> dict[QueueName, int]:
    """Return how many processes work each queue, of those that were active since a time."""
    counts: dict[QueueName, int] = {}
    active = select(processes.c.queues).where(processes.c.seen_ms > since_ms)
    for names in connection.execute(active).scalars():
        for name in names.split(","):
            queue_name = QueueName.__members__.get(name.upper())  # a newer version may have queues of its own
            if queue_name is not None:
                counts[queue_name] = counts.get(queue_name, 0) + 1
    return counts


def leased_queues(connection: Connection, now_ms: int) -> set[QueueName]:
    """Return the queues of which some process holds shards; called on the writer's connection."""
    now_ms = store_time_ms(connection, now_ms)
    is_leased = (leases.c.until_ms > now_ms, leases.c.holder != NO_HOLDER)
    leased = connection.execute(select(leases.c.queue).where(*is_leased).distinct()).scalars()
    return {QueueName(queue_name) for queue_name in leased if queue_name in set(QueueName)}


def release_leases(connection: Connection, holder: str, now_ms: int) -> None:
    """End every lease of a holder, and remove it from the list of processes.

    Processes that were killed long ago are removed too: no process reuses a name.
    """
    now_ms = store_time_ms(connection, now_ms)
    connection.execute(update(leases).where(leases.c.holder == holder).values(holder=NO_HOLDER, until_ms=now_ms))
    connection.execute(
        delete(processes).where((processes.c.holder == holder) | (processes.c.seen_ms < now_ms - PROCESS_RETENTION_MS))
    )


def delete_leases(connection: Connection) -> None:
    """End every lease: for a process that has the store to itself."""
    connection.execute(delete(leases))
    connection.execute(delete(processes))


_SHARDS = select(literal_column("0", Integer).label("shard")).cte("shards", recursive=True)
_ALL_SHARDS = _SHARDS.union_all(
    select(_SHARDS.c.shard + 1).where(_SHARDS.c.shard < bindparam("last_shard", type_=Integer))
)
_INSERT_SHARDS: Final = (
    upsert(leases)
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
_PROCESS = upsert(processes)
_UPSERT_PROCESS: Final = _PROCESS.on_conflict_do_update(
    index_elements=["holder"], set_={"queues": _PROCESS.excluded.queues, "seen_ms": _PROCESS.excluded.seen_ms}
)
_RENEW_LEASES: Final = (
    update(leases)
    .where(leases.c.holder == bindparam("where_holder"))
    .values(until_ms=bindparam("until"))
    .returning(leases.c.queue, leases.c.shard)
)
_FREE_SHARDS: Final = (
    select(leases.c.shard, leases.c.until_ms)
    .where(leases.c.queue == bindparam("queue"), leases.c.until_ms <= bindparam("now"))
    .order_by(leases.c.shard)
    .limit(bindparam("limit"))
    .with_for_update(skip_locked=True)
)
