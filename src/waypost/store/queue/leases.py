"""Which process works which shard of a lane: leases, where several processes share a store."""

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
from waypost.store.queue.jobs import Lane
from waypost.store.sql import insert_or
from waypost.store.tables import leases, processes

SHARDS: Final = 256
"""How many shards the groups of a lane are hashed into."""

NOBODY: Final = ""
"""Holds a lease that is free."""

FORGOTTEN_MS: Final = 10 * 60 * 1000
"""How long a process that was killed stays in the list: far longer than one can be stopped and come back."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A shard that has become a process's.

    Attributes:
        rested_ms: how long ago the one before could work it for the last time; None where nobody has yet.
    """

    shard: int
    rested_ms: int | None


@dataclass(frozen=True, slots=True)
class Share:
    """What a process has of each lane.

    Attributes:
        held: the shards it holds.
        taken: those of them that it did not hold before.
        most: how many it should hold at most.
    """

    held: dict[Lane, set[int]]
    taken: dict[Lane, list[Taken]]
    most: dict[Lane, int]


@dataclass(frozen=True, slots=True)
class Keeping:
    """What a process asks for.

    Attributes:
        holder: this process.
        lanes: which it works.
        given_back: of each lane the shards that it has stopped working and lets go.
        lease_ms: how long a lease lasts.
        now_ms: by the caller's clock, used where the store has none of its own.
    """

    holder: str
    lanes: Sequence[Lane]
    given_back: Mapping[Lane, Collection[int]]
    lease_ms: int
    now_ms: int


def keep_leases(connection: Connection, keepings: Sequence[Keeping]) -> list[Share]:
    """Give back what is let go, renew what is held, and take the fair part of what is free.

    A row is taken by whoever locks it while its time is over; one that another has locked is left for
    the next time. So this waits for no other process, not even for one that was stopped within a
    transaction, and no shard ever has two holders.
    """
    return [_keep(connection, keeping) for keeping in keepings]


def _keep(connection: Connection, keeping: Keeping) -> Share:
    now_ms = connection.info[WAYS].now_ms(connection) or keeping.now_ms
    until_ms = now_ms + keeping.lease_ms
    names = ",".join(lane.name.lower() for lane in keeping.lanes)
    connection.execute(_HERE, {"holder": keeping.holder, "lanes": names, "seen_ms": now_ms})
    for lane, back in keeping.given_back.items():
        if back:
            connection.execute(
                update(leases)
                .where(leases.c.lane == int(lane), leases.c.holder == keeping.holder, leases.c.shard.in_(back))
                .values(holder=NOBODY, until_ms=now_ms)
            )
    held = {lane: set[int]() for lane in keeping.lanes}
    renewed = connection.execute(_RENEW, {"whose": keeping.holder, "until": until_ms})
    for lane, shard in renewed.all():
        held.setdefault(Lane(lane), set()).add(shard)
    workers = lanes_worked(connection, now_ms - keeping.lease_ms)
    share = Share(held, {}, {})
    for lane in keeping.lanes:
        share.most[lane] = most = -(-SHARDS // max(workers.get(lane, 0), 1))
        share.taken[lane] = taken = _take(connection, keeping.holder, lane, most - len(held[lane]), now_ms, until_ms)
        held[lane] |= {one.shard for one in taken}
    return share


def _take(connection: Connection, holder: str, lane: Lane, at_most: int, now_ms: int, until_ms: int) -> list[Taken]:
    if at_most <= 0:
        return []
    asked = {"lane": int(lane), "now": now_ms, "most": at_most}
    free = connection.execute(_FREE, asked).all()
    if len(free) < at_most and _make_rows(connection, lane):
        free = connection.execute(_FREE, asked).all()
    if free:
        connection.execute(
            update(leases)
            .where(leases.c.lane == int(lane), leases.c.shard.in_([row.shard for row in free]))
            .values(holder=holder, until_ms=until_ms)
        )
    return [Taken(row.shard, now_ms - row.until_ms if row.until_ms else None) for row in free]


def _make_rows(connection: Connection, lane: Lane) -> bool:
    """Make the rows of a lane where they are not there yet."""
    count = select(func.count()).select_from(leases).where(leases.c.lane == int(lane))
    if connection.execute(count).scalar_one() == SHARDS:
        return False
    connection.execute(_MAKE_ROWS, {"lane": int(lane), "holder": NOBODY})
    return True


def lanes_worked(connection: Connection, since_ms: int) -> dict[Lane, int]:
    """How many processes work each lane, of those that have been seen since then."""
    found: dict[Lane, int] = {}
    seen = select(processes.c.lanes).where(processes.c.seen_ms > since_ms)
    for names in connection.execute(seen).scalars():
        for name in names.split(","):
            lane = Lane.__members__.get(name.upper())  # a newer version may have lanes of its own
            if lane is not None:
                found[lane] = found.get(lane, 0) + 1
    return found


def lanes_held(connection: Connection, now_ms: int) -> set[Lane]:
    """The lanes of which some process holds a part; to be asked on the writer's connection."""
    now_ms = connection.info[WAYS].now_ms(connection) or now_ms
    found = connection.execute(
        select(leases.c.lane).where(leases.c.until_ms > now_ms, leases.c.holder != NOBODY).distinct()
    ).scalars()
    return {Lane(lane) for lane in found if lane in set(Lane)}


def give_back_leases(connection: Connection, holder: str, now_ms: int) -> None:
    """End every lease of a holder, and take it from the list of processes.

    Also those that were killed long ago go from the list: no process comes twice under one name.
    """
    now_ms = connection.info[WAYS].now_ms(connection) or now_ms
    connection.execute(update(leases).where(leases.c.holder == holder).values(holder=NOBODY, until_ms=now_ms))
    connection.execute(
        delete(processes).where((processes.c.holder == holder) | (processes.c.seen_ms < now_ms - FORGOTTEN_MS))
    )


def forget_leases(connection: Connection) -> None:
    """End every lease: for a process that knows it is alone with the store."""
    connection.execute(delete(leases))
    connection.execute(delete(processes))


_SHARDS = select(literal_column("0", Integer).label("shard")).cte("shards", recursive=True)
_ALL_SHARDS = _SHARDS.union_all(select(_SHARDS.c.shard + 1).where(_SHARDS.c.shard < SHARDS - 1))
_MAKE_ROWS: Final = (
    insert_or(leases)
    .from_select(
        ["lane", "shard", "holder", "until_ms"],
        select(
            bindparam("lane", type_=SmallInteger),
            _ALL_SHARDS.c.shard,
            bindparam("holder", type_=Text),
            literal_column("0", BigInteger),
        ).where(literal_column("1") == literal_column("1")),  # else SQLite reads ON as of a join
    )
    .on_conflict_do_nothing()
)
_PROCESS = insert_or(processes)
_HERE: Final = _PROCESS.on_conflict_do_update(
    index_elements=["holder"], set_={"lanes": _PROCESS.excluded.lanes, "seen_ms": _PROCESS.excluded.seen_ms}
)
_RENEW: Final = (
    update(leases)
    .where(leases.c.holder == bindparam("whose"))
    .values(until_ms=bindparam("until"))
    .returning(leases.c.lane, leases.c.shard)
)
_FREE: Final = (
    select(leases.c.shard, leases.c.until_ms)
    .where(leases.c.lane == bindparam("lane"), leases.c.until_ms <= bindparam("now"))
    .order_by(leases.c.shard)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)
