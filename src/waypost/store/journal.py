"""The statements behind the journal's lanes. They run inside the caller's transaction."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from sqlalchemy import (
    Connection,
    bindparam,
    delete,
    func,
    insert,
    select,
    update,
)
from sqlalchemy.dialects.sqlite import insert as insert_or_update

from waypost.store.database import APPENDED
from waypost.store.prepared import Prepared
from waypost.store.tables import journal, leases


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


def settle_entries(connection: Connection, positions: Sequence[int]) -> None:
    """Delete entries whose work is done, within the transaction that says what was done."""
    _SETTLE.run(connection, [{"at": position} for position in positions])


def take_in_hand(connection: Connection, positions: Sequence[int]) -> list[None]:
    """Mark entries as being sent right now; on disk before the first byte leaves."""
    in_hand = int(EntryState.IN_HAND)
    _IN_HAND.run(connection, [{"at": position, "new_state": in_hand} for position in positions])
    return [None] * len(positions)


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


def release_entries(connection: Connection, releases: Sequence[Release]) -> list[None]:
    """Give entries back: due later, no longer in hand, or set aside."""
    _RELEASE.run(
        connection,
        [
            {
                "at": release.position,
                "new_due": release.due_ms,
                "new_attempt": release.attempt,
                "new_defects": release.defects,
                "new_state": int(release.state),
                "new_key": release.order_key,
                "new_note": release.note[:500],
            }
            for release in releases
        ],
    )
    return [None] * len(releases)


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


def entries_after(
    connection: Connection, lane: Lane, cursors: Sequence[tuple[str, int, int]]
) -> dict[str, list[Any]]:
    """The next entries of each group, oldest first; what is set aside is left out.

    Args:
        connection: a reader's.
        lane: which lane.
        cursors: of each group its name, the last position read, and how many entries to read.

    Returns:
        Rows of position, order_key, ref, due_ms, attempt, defects and state, by group.
    """
    return {
        group: list(
            connection.execute(
                _AFTER, {"lane": int(lane), "grp": group, "last": last, "most": most}
            ).all()
        )
        for group, last, most in cursors
    }


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
            select(journal).where(_IS_SET_ASIDE).order_by(journal.c.position).limit(at_most)
        ).all()
    )


def return_set_aside(connection: Connection, position: int, due_ms: int) -> bool:
    """Put an entry that was set aside at the end of its lane, to be worked again.

    One that may have been sent comes back in hand, so that it is not sent again.
    """
    row = connection.execute(
        delete(journal).where(journal.c.position == position, _IS_SET_ASIDE).returning(journal)
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
    gone = connection.execute(delete(journal).where(journal.c.position == position, _IS_SET_ASIDE))
    return gone.rowcount == 1


def take_leases(
    connection: Connection,
    lane: Lane,
    shards: Sequence[int],
    holder: str,
    now_ms: int,
    until_ms: int,
) -> set[int]:
    """Lease every shard that is free, has run out, or is the holder's already; give those held now."""
    statement = insert_or_update(leases)
    statement = statement.on_conflict_do_update(
        index_elements=["lane", "shard"],
        set_={"holder": statement.excluded.holder, "until_ms": statement.excluded.until_ms},
        where=(leases.c.until_ms <= now_ms) | (leases.c.holder == holder),
    )
    connection.execute(
        statement,
        [
            {"lane": int(lane), "shard": shard, "holder": holder, "until_ms": until_ms}
            for shard in shards
        ],
    )
    held = select(leases.c.shard).where(leases.c.lane == int(lane), leases.c.holder == holder)
    return set(connection.execute(held).scalars())


def give_back_leases(connection: Connection, holder: str) -> None:
    """End every lease of a holder."""
    connection.execute(delete(leases).where(leases.c.holder == holder))


def forget_leases(connection: Connection) -> None:
    """End every lease: for a process that knows it is alone with the store."""
    connection.execute(delete(leases))


_IS_SET_ASIDE: Final = journal.c.state >= int(EntryState.SET_ASIDE)
_APPEND: Final = Prepared(insert(journal), "lane", "grp", "order_key", "ref", "due_ms")
_SETTLE: Final = Prepared(delete(journal).where(journal.c.position == bindparam("at")))
_IN_HAND: Final = Prepared(
    update(journal)
    .where(journal.c.position == bindparam("at"))
    .values(state=bindparam("new_state"))
)
_RELEASE: Final = Prepared(
    update(journal)
    .where(journal.c.position == bindparam("at"))
    .values(
        due_ms=bindparam("new_due"),
        attempt=bindparam("new_attempt"),
        defects=bindparam("new_defects"),
        state=bindparam("new_state"),
        order_key=bindparam("new_key"),
        note=bindparam("new_note"),
    )
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
