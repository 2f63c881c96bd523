"""The statements behind the journal's lanes. They run inside the caller's transaction."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Connection,
    Text,
    all_,
    bindparam,
    column,
    delete,
    func,
    insert,
    literal_column,
    select,
    true,
    update,
)

from waypost.store.database import APPENDED
from waypost.store.prepared import WAYS, Adding, Changing, Removing
from waypost.store.schema import POSTGRESQL
from waypost.store.statements import insert_or
from waypost.store.tables import journal, leases, processes


class Lane(IntEnum):
    """The lanes of the journal; the numbers are stored."""

    SUBMISSIONS = 1
    ARRIVALS = 2
    CALLBACKS = 3
    DOUBTS = 4
    MEDIA = 5


class EntryState(IntEnum):
    """Where an entry stands; the numbers are stored."""

    OPEN = 0
    IN_HAND = 1
    SET_ASIDE = 2
    SET_ASIDE_IN_HAND = 3  # set aside, and it may have been sent


@dataclass(frozen=True, slots=True)
class NewEntry:
    """An entry to be appended."""

    lane: Lane
    group: str
    order_key: str
    ref: str
    due_ms: int


def append_entries(connection: Connection, entries: Sequence[NewEntry]) -> None:
    """Append, within the transaction that writes the state they follow."""
    if not entries:
        return
    _APPEND.run(
        connection,
        [
            {
                "lane": int(entry.lane),
                "grp": entry.group,
                "order_key": entry.order_key,
                "ref": entry.ref,
                "due_ms": entry.due_ms,
            }
            for entry in entries
        ],
    )
    connection.info[APPENDED].update((int(entry.lane), entry.group) for entry in entries)


def settle_entries(connection: Connection, positions: Sequence[int]) -> set[int]:
    """Delete entries whose work is done, within the transaction that says what was done.

    Returns:
        The positions that were there. Where several processes share a store, another may have
        settled an entry whose lease ran out meanwhile; what must happen once depends on this.
    """
    return _SETTLE.run(connection, positions)


@dataclass(frozen=True, slots=True)
class Fence:
    """What lets only the process write that works the entry's shard now.

    Attributes:
        shard: of the entry's group; None where this process is alone with the store.
        holder: this process, as it is named in leases.
    """

    lane: Lane
    shard: int | None
    holder: str


def held_fences(connection: Connection, fences: set[Fence]) -> set[Fence]:
    """Those of the fences whose lease is still held; it stays so until the transaction ends."""
    asked = {fence for fence in fences if fence.shard is not None}
    held = fences - asked
    if not asked:
        return held
    now_ms = connection.info[WAYS].now_ms(connection)
    for lane, holder in sorted({(fence.lane, fence.holder) for fence in asked}):
        of_lane = {
            fence.shard: fence for fence in asked if (fence.lane, fence.holder) == (lane, holder)
        }
        statement = (
            select(leases.c.shard)
            .where(
                leases.c.lane == int(lane),
                leases.c.shard.in_(of_lane),
                leases.c.holder == holder,
            )
            .order_by(leases.c.shard)
            .with_for_update(read=True)
        )
        if now_ms is not None:
            statement = statement.where(leases.c.until_ms > now_ms)
        held |= {of_lane[shard] for shard in connection.execute(statement).scalars()}
    return held


@dataclass(frozen=True, slots=True)
class Mark:
    """An entry that is about to be sent."""

    position: int
    fence: Fence


def take_in_hand(connection: Connection, marks: Sequence[Mark]) -> list[bool]:
    """Mark entries as being sent right now; on disk before the first byte leaves.

    Returns:
        Of each whether it is marked. One whose lease has run out is not, and must not be sent.
    """
    held = held_fences(connection, {mark.fence for mark in marks})
    in_hand = int(EntryState.IN_HAND)
    _IN_HAND.run(
        connection,
        [{"at": mark.position, "state": in_hand} for mark in marks if mark.fence in held],
    )
    return [mark.fence in held for mark in marks]


@dataclass(frozen=True, slots=True)
class Release:
    """An entry given back for later.

    Attributes:
        order_key: a new one when its followers need wait no longer.
    """

    position: int
    due_ms: int
    attempt: int
    defects: int
    state: EntryState
    order_key: str
    note: str
    fence: Fence


def release_entries(connection: Connection, releases: Sequence[Release]) -> list[bool]:
    """Give entries back: due later, no longer in hand, or set aside.

    Returns:
        Of each whether it was given back. One whose lease has run out is another process's now.
    """
    held = held_fences(connection, {release.fence for release in releases})
    _RELEASE.run(
        connection,
        [
            {
                "at": release.position,
                "due_ms": release.due_ms,
                "attempt": release.attempt,
                "defects": release.defects,
                "state": int(release.state),
                "order_key": release.order_key,
                "note": release.note[:500],
            }
            for release in releases
            if release.fence in held
        ],
    )
    return [release.fence in held for release in releases]


def groups_of(connection: Connection, lane: Lane) -> list[str]:
    """Every group that has an entry to work, found by skipping through the index."""
    found: list[str] = []
    last = ""
    while True:
        name = connection.execute(
            _NEXT_GROUP, {"lane": int(lane), "last": last}
        ).scalar_one_or_none()
        if name is None:
            return found
        found.append(name)
        last = name


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where to read on in a group.

    Attributes:
        after: only positions beyond this one.
        but: positions that are not wanted again; ignored where positions are committed in order.
        at_most: how many entries.
    """

    group: str
    after: int
    but: Sequence[int]
    at_most: int


def entries_after(
    connection: Connection, lane: Lane, cursors: Sequence[Cursor]
) -> dict[str, list[Any]]:
    """The next entries of each group, oldest first; what is set aside is left out.

    Returns:
        Rows of position, order_key, ref, due_ms, attempt, defects and state, by group.
    """
    if (
        len(cursors) > 1 and connection.dialect.name == POSTGRESQL
    ):  # each statement is a way there and back
        return _entries_at_once(connection, lane, cursors)
    found: dict[str, list[Any]] = {}
    for cursor in cursors:
        given = {
            "lane": int(lane),
            "grp": cursor.group,
            "last": cursor.after,
            "most": cursor.at_most,
        }
        if cursor.but:
            rows = connection.execute(_AFTER_BUT, {**given, "but": list(cursor.but)})
        else:
            rows = connection.execute(_AFTER, given)
        found[cursor.group] = list(rows.all())
    return found


def _entries_at_once(
    connection: Connection, lane: Lane, cursors: Sequence[Cursor]
) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {cursor.group: [] for cursor in cursors}
    rows = connection.execute(
        _AFTER_EACH,
        {
            "lane": int(lane),
            "groups": [cursor.group for cursor in cursors],
            "lasts": [cursor.after for cursor in cursors],
            "but": [position for cursor in cursors for position in cursor.but],
            "most": max(cursor.at_most for cursor in cursors),
        },
    )
    for row in rows:
        found[row.of_group].append(row)
    for read in found.values():
        read.sort(key=_position_of)
    return found


def _position_of(row: Any) -> int:
    return row.position


def depth_of(connection: Connection, lane: Lane) -> dict[EntryState, int]:
    """How many entries stand in each state; for doctor, metrics and tests."""
    rows = connection.execute(
        select(journal.c.state, func.count())
        .where(journal.c.lane == int(lane))
        .group_by(journal.c.state)
    ).all()
    return {EntryState(state): count for state, count in rows}


def set_aside_entries(connection: Connection, *, at_most: int = 100) -> list[Any]:
    """Entries that wait for a person."""
    return list(
        connection.execute(
            select(journal)
            .where(IS_SET_ASIDE)
            .order_by(journal.c.lane, journal.c.position)  # as their index has them
            .limit(at_most)
        ).all()
    )


def return_set_aside(connection: Connection, position: int, due_ms: int) -> bool:
    """Put an entry that was set aside at the end of its lane, to be worked again.

    One that may have been sent comes back in hand, so that it is not sent again.
    """
    row = connection.execute(
        delete(journal).where(journal.c.position == position, IS_SET_ASIDE).returning(journal)
    ).one_or_none()
    if row is None:
        return False
    was_in_hand = row.state == EntryState.SET_ASIDE_IN_HAND
    connection.execute(
        insert(journal),
        {
            "lane": row.lane,
            "grp": row.grp,
            "order_key": row.order_key,
            "ref": row.ref,
            "due_ms": due_ms,
            "state": int(EntryState.IN_HAND if was_in_hand else EntryState.OPEN),
        },
    )
    connection.info[APPENDED].add((row.lane, row.grp))
    return True


def drop_set_aside(connection: Connection, position: int) -> bool:
    """Delete an entry that was set aside; what it was about is not done."""
    gone = connection.execute(delete(journal).where(journal.c.position == position, IS_SET_ASIDE))
    return gone.rowcount == 1


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
                .where(
                    leases.c.lane == int(lane),
                    leases.c.holder == keeping.holder,
                    leases.c.shard.in_(back),
                )
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
        share.taken[lane] = taken = _take(
            connection, keeping.holder, lane, most - len(held[lane]), now_ms, until_ms
        )
        held[lane] |= {one.shard for one in taken}
    return share


def _take(
    connection: Connection, holder: str, lane: Lane, at_most: int, now_ms: int, until_ms: int
) -> list[Taken]:
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
    connection.execute(
        insert_or(leases).on_conflict_do_nothing(),
        [
            {"lane": int(lane), "shard": shard, "holder": NOBODY, "until_ms": 0}
            for shard in range(SHARDS)
        ],
    )
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
        select(leases.c.lane)
        .where(leases.c.until_ms > now_ms, leases.c.holder != NOBODY)
        .distinct()
    ).scalars()
    return {Lane(lane) for lane in found if lane in set(Lane)}


def give_back_leases(connection: Connection, holder: str, now_ms: int) -> None:
    """End every lease of a holder, and take it from the list of processes.

    Also those that were killed long ago go from the list: no process comes twice under one name.
    """
    now_ms = connection.info[WAYS].now_ms(connection) or now_ms
    connection.execute(
        update(leases).where(leases.c.holder == holder).values(holder=NOBODY, until_ms=now_ms)
    )
    connection.execute(
        delete(processes).where(
            (processes.c.holder == holder) | (processes.c.seen_ms < now_ms - FORGOTTEN_MS)
        )
    )


def forget_leases(connection: Connection) -> None:
    """End every lease: for a process that knows it is alone with the store."""
    connection.execute(delete(leases))
    connection.execute(delete(processes))


IS_SET_ASIDE: Final = journal.c.state >= literal_column(str(int(EntryState.SET_ASIDE)))
"""As the partial index says it: with a parameter in its place a planner cannot tell that it may use it."""
_APPEND: Final = Adding(journal, "lane", "grp", "order_key", "ref", "due_ms")
_SETTLE: Final = Removing(journal, "position")
_IN_HAND: Final = Changing(journal, "position", "state")
_RELEASE: Final = Changing(
    journal, "position", "due_ms", "attempt", "defects", "state", "order_key", "note"
)
_PROCESS = insert_or(processes)
_HERE: Final = _PROCESS.on_conflict_do_update(
    index_elements=["holder"],
    set_={"lanes": _PROCESS.excluded.lanes, "seen_ms": _PROCESS.excluded.seen_ms},
)
_RENEW: Final = (
    update(leases)
    .where(leases.c.holder == bindparam("whose"))
    .values(until_ms=bindparam("until"))
    .returning(leases.c.lane, leases.c.shard)
)
_FREE: Final = (
    select(leases.c.shard, leases.c.until_ms)
    .where(
        leases.c.lane == bindparam("lane"),
        leases.c.until_ms <= bindparam("now"),
    )
    .order_by(leases.c.shard)
    .limit(bindparam("most"))
    .with_for_update(skip_locked=True)
)
_NEXT_GROUP: Final = (
    select(journal.c.grp)
    .where(journal.c.lane == bindparam("lane"), journal.c.grp > bindparam("last"))
    .order_by(journal.c.grp)
    .limit(1)
)
_AFTER: Final = (
    select(
        journal.c.position,
        journal.c.order_key,
        journal.c.ref,
        journal.c.due_ms,
        journal.c.attempt,
        journal.c.defects,
        journal.c.state,
    )
    .where(
        journal.c.lane == bindparam("lane"),
        journal.c.grp == bindparam("grp"),
        journal.c.position > bindparam("last"),
        journal.c.state < int(EntryState.SET_ASIDE),
    )
    .order_by(journal.c.position)
    .limit(bindparam("most"))
)
_AFTER_BUT: Final = _AFTER.where(
    journal.c.position != all_(bindparam("but", type_=ARRAY(BigInteger)))
)
"""Of an engine that commits positions out of order; it has arrays."""
_EACH = (
    func.unnest(bindparam("groups", type_=ARRAY(Text)), bindparam("lasts", type_=ARRAY(BigInteger)))
    .table_valued(column("of_group", Text), column("last", BigInteger), name="each")
    .render_derived()
)
_OF_EACH = (
    select(*_AFTER.selected_columns)
    .where(
        journal.c.lane == bindparam("lane"),
        journal.c.grp == _EACH.c.of_group,
        journal.c.position > _EACH.c.last,
        journal.c.state < int(EntryState.SET_ASIDE),
        journal.c.position != all_(bindparam("but", type_=ARRAY(BigInteger))),
    )
    .order_by(journal.c.position)
    .limit(bindparam("most"))
    .lateral("entries")
)
_AFTER_EACH: Final = select(_EACH.c.of_group, _OF_EACH).select_from(_EACH.join(_OF_EACH, true()))
