"""The statements behind the journal's lanes. They run inside the caller's transaction."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

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
)

from waypost.store.bulk_statements import WAYS, Adding, Changing, Removing
from waypost.store.queue.job_subjects import JobSubject, SubjectKind, only, read_item, read_medium, read_submission
from waypost.store.schema import POSTGRESQL
from waypost.store.sql import one_of
from waypost.store.tables import journal, leases
from waypost.store.trace_events import MessageNews, add_news
from waypost.store.typed_rows import select_row
from waypost.store.write_through_cache import APPENDED


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


def subject_reader(lane: Lane) -> Callable[[str], JobSubject]:
    """What reads what the jobs of a queue are about, from the text in their rows."""
    return _SUBJECTS[lane]


def subject_of(lane: Lane, ref: str) -> JobSubject:
    """What a job is about, from the text in its row."""
    return _SUBJECTS[lane](ref)


class NewEntry(NamedTuple):
    """An entry to be appended.

    Attributes:
        is_replay: a callback that is sent once more.
    """

    lane: Lane
    group: str
    order_key: str
    subject: JobSubject
    due_ms: int
    is_replay: bool = False


def append_entries(connection: Connection, entries: Sequence[NewEntry]) -> None:
    """Append, within the transaction that writes the state they follow."""
    if not entries:
        return
    positions = _APPEND.run(
        connection,
        [
            {
                "lane": int(entry.lane),
                "grp": entry.group,
                "order_key": entry.order_key,
                "ref": entry.subject.ref,
                "due_ms": entry.due_ms,
                "replay": entry.is_replay,
            }
            for entry in entries
        ],
    )
    appended = connection.info[APPENDED]
    if positions is not None:
        appended.told(entries, positions)
        return
    for entry in entries:
        appended.look_at(entry.lane, entry.group)


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
        of_lane = {fence.shard: fence for fence in asked if (fence.lane, fence.holder) == (lane, holder)}
        statement = (
            select(leases.c.shard)
            .where(leases.c.lane == int(lane), leases.c.shard.in_(of_lane), leases.c.holder == holder)
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
    _IN_HAND.run(connection, [{"at": mark.position, "state": in_hand} for mark in marks if mark.fence in held])
    return [mark.fence in held for mark in marks]


@dataclass(frozen=True, slots=True)
class Release:
    """An entry given back for later.

    Attributes:
        detached: its followers wait for it no longer.
        news: what it adds to the trace of the message that it carries.
    """

    position: int
    due_ms: int
    attempt: int
    defects: int
    state: EntryState
    detached: bool
    note: str
    fence: Fence
    news: MessageNews | None = None


def release_entries(connection: Connection, releases: Sequence[Release]) -> list[bool]:
    """Give entries back: due later, no longer in hand, or set aside.

    Returns:
        Of each whether it was given back. One whose lease has run out is another process's now.
    """
    held = held_fences(connection, {release.fence for release in releases})
    news = _first_told(connection, [one for one in releases if one.fence in held])
    _RELEASE.run(
        connection,
        [
            {
                "at": release.position,
                "due_ms": release.due_ms,
                "attempt": release.attempt,
                "defects": release.defects,
                "state": int(release.state),
                "detached": release.detached,
                "note": release.note[:500],
            }
            for release in releases
            if release.fence in held
        ],
    )
    add_news(connection, news)
    return [release.fence in held for release in releases]


def _first_told(connection: Connection, releases: Sequence[Release]) -> list[MessageNews]:
    """The news of releases, without those that a commit whose answer was lost has brought already."""
    told = {one.position: (one.attempt, one.news) for one in releases if one.news is not None}
    if not told:
        return []
    rows = connection.execute(_ATTEMPTS, {"positions": list(told)}).all()
    attempts = {row.position: row.attempt for row in rows}
    return [news for position, (attempt, news) in told.items() if attempts.get(position, attempt) < attempt]


def groups_of(connection: Connection, lane: Lane) -> list[str]:
    """Every group that has an entry to work, found by skipping through the index."""
    found: list[str] = []
    last = ""
    while True:
        name = connection.execute(_NEXT_GROUP, {"lane": int(lane), "last": last}).scalar_one_or_none()
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


class EntryRow(NamedTuple):
    """An entry as it is stored, without its lane and its group."""

    position: int
    order_key: str
    ref: str
    due_ms: int
    attempt: int
    defects: int
    state: int
    detached: bool
    replay: bool


class Transactions(NamedTuple):
    """Which transactions were running at one moment: the number of the oldest, and of the next to begin."""

    oldest: int
    next: int


@dataclass(frozen=True, slots=True)
class ReadEntries:
    """The next entries of some groups.

    Attributes:
        rows: of each group, oldest first.
        transactions: that were running when it was looked; None where positions are committed in
            order, and where nothing was found.
    """

    rows: dict[str, list[EntryRow]]
    transactions: Transactions | None = None


def entries_after(connection: Connection, lane: Lane, cursors: Sequence[Cursor]) -> ReadEntries:
    """The next entries of each group; what is set aside is left out."""
    if connection.dialect.name == POSTGRESQL:  # each statement is a way there and back
        return _entries_at_once(connection, lane, cursors)
    found: dict[str, list[EntryRow]] = {}
    for cursor in cursors:
        given = {"lane": int(lane), "grp": cursor.group, "last": cursor.after, "most": cursor.at_most}
        found[cursor.group] = list(map(EntryRow._make, connection.execute(_AFTER, given)))
    return ReadEntries(found)


def _entries_at_once(connection: Connection, lane: Lane, cursors: Sequence[Cursor]) -> ReadEntries:
    found: dict[str, list[EntryRow]] = {cursor.group: [] for cursor in cursors}
    rows = connection.execute(
        _AFTER_EACH,
        {
            "lane": int(lane),
            "groups": [cursor.group for cursor in cursors],
            "lasts": [cursor.after for cursor in cursors],
            "but": [position for cursor in cursors for position in cursor.but],
            "most": max(cursor.at_most for cursor in cursors),
        },
    ).all()
    for row in rows:
        found[row[0]].append(EntryRow._make(row[3:]))
    for read in found.values():
        read.sort()  # by position: no two have the same
    return ReadEntries(found, Transactions._make(rows[0][1:3]) if rows else None)


def depth_of(connection: Connection, lane: Lane) -> dict[EntryState, int]:
    """How many entries stand in each state; for doctor, metrics and tests."""
    rows = connection.execute(
        select(journal.c.state, func.count()).where(journal.c.lane == int(lane)).group_by(journal.c.state)
    ).all()
    return {EntryState(state): count for state, count in rows}


class SetAsideEntry(NamedTuple):
    """An entry that waits for a person, with why it was set aside."""

    position: int
    lane: int
    grp: str
    ref: str
    defects: int
    note: str | None


def set_aside_entries(connection: Connection, *, at_most: int = 100) -> list[SetAsideEntry]:
    """Entries that wait for a person, by lane and position, as their index has them."""
    return list(map(SetAsideEntry._make, connection.execute(_OLDEST_ASIDE.limit(at_most))))


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
            "detached": row.detached,
            "replay": row.replay,
        },
    )
    connection.info[APPENDED].look_at(row.lane, row.grp)
    return True


def drop_set_aside(connection: Connection, position: int) -> bool:
    """Delete an entry that was set aside; what it was about is not done."""
    gone = connection.execute(delete(journal).where(journal.c.position == position, IS_SET_ASIDE))
    return gone.rowcount == 1


_SUBJECTS: Final = {
    Lane.SUBMISSIONS: read_submission,
    Lane.ARRIVALS: read_item,
    Lane.CALLBACKS: only(SubjectKind.CALLBACK),
    Lane.DOUBTS: only(SubjectKind.UNCONFIRMED_MESSAGE),
    Lane.MEDIA: read_medium,
}
IS_SET_ASIDE: Final = journal.c.state >= literal_column(str(int(EntryState.SET_ASIDE)))
"""As the partial index says it: with a parameter in its place a planner cannot tell that it may use it."""
_OLDEST_ASIDE: Final = (
    select_row(journal, SetAsideEntry).where(IS_SET_ASIDE).order_by(journal.c.lane, journal.c.position)
)
_APPEND: Final = Adding(journal, "lane", "grp", "order_key", "ref", "due_ms", "replay", counts=True)
_SETTLE: Final = Removing(journal, "position")
_IN_HAND: Final = Changing(journal, "position", "state")
_RELEASE: Final = Changing(journal, "position", "due_ms", "attempt", "defects", "state", "detached", "note")
_ATTEMPTS: Final = select(journal.c.position, journal.c.attempt).where(one_of(journal.c.position, "positions"))
_NEXT_GROUP: Final = (
    select(journal.c.grp)
    .where(journal.c.lane == bindparam("lane"), journal.c.grp > bindparam("last"))
    .order_by(journal.c.grp)
    .limit(1)
)
_AFTER: Final = (
    select_row(journal, EntryRow)
    .where(
        journal.c.lane == bindparam("lane"),
        journal.c.grp == bindparam("grp"),
        journal.c.position > bindparam("last"),
        journal.c.state < int(EntryState.SET_ASIDE),
    )
    .order_by(journal.c.position)
    .limit(bindparam("most"))
)
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
_AFTER_EACH: Final = select(
    _EACH.c.of_group,
    literal_column("pg_snapshot_xmin(pg_current_snapshot())::text::bigint", BigInteger).label("oldest"),
    literal_column("pg_snapshot_xmax(pg_current_snapshot())::text::bigint", BigInteger).label("next"),
    _OF_EACH,
).select_from(_EACH.join(_OF_EACH, true()))
