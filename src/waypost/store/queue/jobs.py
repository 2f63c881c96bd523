"""The statements behind the journal's queues. They run inside the caller's transaction."""

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
from waypost.store.tables import leases, queue_jobs
from waypost.store.trace_events import MessageTraceEvent, add_trace_events
from waypost.store.typed_rows import select_row
from waypost.store.write_through_cache import APPENDED


class QueueName(IntEnum):
    """The queues of the journal; the numbers are stored."""

    OUTBOUND = 1
    WEBHOOKS = 2
    CALLBACKS = 3
    UNCONFIRMED = 4
    MEDIA = 5


class JobState(IntEnum):
    """Where an entry stands; the numbers are stored."""

    OPEN = 0
    IN_FLIGHT = 1
    DEAD_LETTER = 2
    DEAD_LETTER_IN_FLIGHT = 3  # set aside, and it may have been sent


def subject_reader(queue_name: QueueName) -> Callable[[str], JobSubject]:
    """What reads what the jobs of a queue are about, from the text in their rows."""
    return _SUBJECTS[queue_name]


def read_subject(queue_name: QueueName, ref: str) -> JobSubject:
    """What a job is about, from the text in its row."""
    return _SUBJECTS[queue_name](ref)


class NewJob(NamedTuple):
    """An entry to be appended.

    Attributes:
        is_replay: a callback that is sent once more.
    """

    queue: QueueName
    concurrency_group: str
    ordering_key: str
    subject: JobSubject
    due_ms: int
    is_replay: bool = False


def enqueue_jobs(connection: Connection, new_jobs: Sequence[NewJob]) -> None:
    """Append, within the transaction that writes the state they follow."""
    if not new_jobs:
        return
    positions = _ENQUEUE.run(
        connection,
        [
            {
                "queue": int(job.queue),
                "concurrency_group": job.concurrency_group,
                "ordering_key": job.ordering_key,
                "ref": job.subject.ref,
                "due_ms": job.due_ms,
                "replay": job.is_replay,
            }
            for job in new_jobs
        ],
    )
    appended = connection.info[APPENDED]
    if positions is not None:
        appended.told(new_jobs, positions)
        return
    for job in new_jobs:
        appended.look_at(job.queue, job.concurrency_group)


def complete_jobs(connection: Connection, positions: Sequence[int]) -> set[int]:
    """Delete entries whose work is done, within the transaction that says what was done.

    Returns:
        The positions that were there. Where several processes share a store, another may have
        settled an entry whose lease ran out meanwhile; what must happen once depends on this.
    """
    return _COMPLETE.run(connection, positions)


@dataclass(frozen=True, slots=True)
class ShardFence:
    """What lets only the process write that works the entry's shard now.

    Attributes:
        shard: of the entry's group; None where this process is alone with the store.
        holder: this process, as it is named in leases.
    """

    queue: QueueName
    shard: int | None
    holder: str


def valid_fences(connection: Connection, fences: set[ShardFence]) -> set[ShardFence]:
    """Those of the fences whose lease is still held; it stays so until the transaction ends."""
    asked = {fence for fence in fences if fence.shard is not None}
    held = fences - asked
    if not asked:
        return held
    now_ms = connection.info[WAYS].now_ms(connection)
    for queue_name, holder in sorted({(fence.queue, fence.holder) for fence in asked}):
        of_queue = {fence.shard: fence for fence in asked if (fence.queue, fence.holder) == (queue_name, holder)}
        statement = (
            select(leases.c.shard)
            .where(leases.c.queue == int(queue_name), leases.c.shard.in_(of_queue), leases.c.holder == holder)
            .order_by(leases.c.shard)
            .with_for_update(read=True)
        )
        if now_ms is not None:
            statement = statement.where(leases.c.until_ms > now_ms)
        held |= {of_queue[shard] for shard in connection.execute(statement).scalars()}
    return held


@dataclass(frozen=True, slots=True)
class InFlightMark:
    """An entry that is about to be sent."""

    position: int
    fence: ShardFence


def mark_in_flight(connection: Connection, marks: Sequence[InFlightMark]) -> list[bool]:
    """Mark entries as being sent right now; on disk before the first byte leaves.

    Returns:
        Of each whether it is marked. One whose lease has run out is not, and must not be sent.
    """
    held = valid_fences(connection, {mark.fence for mark in marks})
    in_flight = int(JobState.IN_FLIGHT)
    _MARK_IN_FLIGHT.run(connection, [{"at": mark.position, "state": in_flight} for mark in marks if mark.fence in held])
    return [mark.fence in held for mark in marks]


@dataclass(frozen=True, slots=True)
class JobRetry:
    """An entry given back for later.

    Attributes:
        detached: its followers wait for it no longer.
        news: what it adds to the trace of the message that it carries.
    """

    position: int
    due_ms: int
    attempt: int
    defects: int
    state: JobState
    detached: bool
    note: str
    fence: ShardFence
    news: MessageTraceEvent | None = None


def retry_jobs_later(connection: Connection, retries: Sequence[JobRetry]) -> list[bool]:
    """Give entries back: due later, no longer in hand, or set aside.

    Returns:
        Of each whether it was given back. One whose lease has run out is another process's now.
    """
    held = valid_fences(connection, {release.fence for release in retries})
    news = _new_trace_events(connection, [one for one in retries if one.fence in held])
    _RETRY_LATER.run(
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
            for release in retries
            if release.fence in held
        ],
    )
    add_trace_events(connection, news)
    return [release.fence in held for release in retries]


def _new_trace_events(connection: Connection, retries: Sequence[JobRetry]) -> list[MessageTraceEvent]:
    """The news of releases, without those that a commit whose answer was lost has brought already."""
    told = {one.position: (one.attempt, one.news) for one in retries if one.news is not None}
    if not told:
        return []
    rows = connection.execute(_ATTEMPTS, {"positions": list(told)}).all()
    attempts = {row.position: row.attempt for row in rows}
    return [news for position, (attempt, news) in told.items() if attempts.get(position, attempt) < attempt]


def list_groups(connection: Connection, queue_name: QueueName) -> list[str]:
    """Every group that has an entry to work, found by skipping through the index."""
    found: list[str] = []
    last = ""
    while True:
        name = connection.execute(_NEXT_GROUP, {"queue": int(queue_name), "last": last}).scalar_one_or_none()
        if name is None:
            return found
        found.append(name)
        last = name


@dataclass(frozen=True, slots=True)
class GroupCursor:
    """Where to read on in a group.

    Attributes:
        after: only positions beyond this one.
        excluded: positions that are not wanted again; ignored where positions are committed in order.
        at_most: how many entries.
    """

    group: str
    after: int
    excluded: Sequence[int]
    at_most: int


class JobRow(NamedTuple):
    """An entry as it is stored, without its queue and its group."""

    position: int
    ordering_key: str
    ref: str
    due_ms: int
    attempt: int
    defects: int
    state: int
    detached: bool
    replay: bool


class RunningTransactions(NamedTuple):
    """Which transactions were running at one moment: the number of the oldest, and of the next to begin."""

    oldest: int
    next: int


@dataclass(frozen=True, slots=True)
class GroupJobs:
    """The next entries of some groups.

    Attributes:
        rows: of each group, oldest first.
        transactions: that were running when it was looked; None where positions are committed in
            order, and where nothing was found.
    """

    rows: dict[str, list[JobRow]]
    transactions: RunningTransactions | None = None


def read_jobs_after(connection: Connection, queue_name: QueueName, cursors: Sequence[GroupCursor]) -> GroupJobs:
    """The next entries of each group; what is set aside is left out."""
    if connection.dialect.name == POSTGRESQL:  # each statement is a way there and back
        return _read_jobs_at_once(connection, queue_name, cursors)
    found: dict[str, list[JobRow]] = {}
    for cursor in cursors:
        given = {
            "queue": int(queue_name),
            "concurrency_group": cursor.group,
            "last": cursor.after,
            "most": cursor.at_most,
        }
        found[cursor.group] = list(map(JobRow._make, connection.execute(_AFTER, given)))
    return GroupJobs(found)


def _read_jobs_at_once(connection: Connection, queue_name: QueueName, cursors: Sequence[GroupCursor]) -> GroupJobs:
    found: dict[str, list[JobRow]] = {cursor.group: [] for cursor in cursors}
    rows = connection.execute(
        _AFTER_EACH,
        {
            "queue": int(queue_name),
            "groups": [cursor.group for cursor in cursors],
            "lasts": [cursor.after for cursor in cursors],
            "but": [position for cursor in cursors for position in cursor.excluded],
            "most": max(cursor.at_most for cursor in cursors),
        },
    ).all()
    for row in rows:
        found[row[0]].append(JobRow._make(row[3:]))
    for read in found.values():
        read.sort()  # by position: no two have the same
    return GroupJobs(found, RunningTransactions._make(rows[0][1:3]) if rows else None)


def count_jobs_by_state(connection: Connection, queue_name: QueueName) -> dict[JobState, int]:
    """How many entries stand in each state; for doctor, metrics and tests."""
    rows = connection.execute(
        select(queue_jobs.c.state, func.count())
        .where(queue_jobs.c.queue == int(queue_name))
        .group_by(queue_jobs.c.state)
    ).all()
    return {JobState(state): count for state, count in rows}


class DeadLetter(NamedTuple):
    """An entry that waits for a person, with why it was set aside."""

    position: int
    queue: int
    concurrency_group: str
    ref: str
    defects: int
    note: str | None


def read_dead_letters(connection: Connection, *, at_most: int = 100) -> list[DeadLetter]:
    """Entries that wait for a person, by queue and position, as their index has them."""
    return list(map(DeadLetter._make, connection.execute(_OLDEST_DEAD_LETTERS.limit(at_most))))


def reopen_dead_letter(connection: Connection, position: int, due_ms: int) -> bool:
    """Put an entry that was set aside at the end of its queue, to be worked again.

    One that may have been sent comes back in hand, so that it is not sent again.
    """
    row = connection.execute(
        delete(queue_jobs).where(queue_jobs.c.position == position, IS_DEAD_LETTER).returning(queue_jobs)
    ).one_or_none()
    if row is None:
        return False
    was_in_flight = row.state == JobState.DEAD_LETTER_IN_FLIGHT
    connection.execute(
        insert(queue_jobs),
        {
            "queue": row.queue,
            "concurrency_group": row.concurrency_group,
            "ordering_key": row.ordering_key,
            "ref": row.ref,
            "due_ms": due_ms,
            "state": int(JobState.IN_FLIGHT if was_in_flight else JobState.OPEN),
            "detached": row.detached,
            "replay": row.replay,
        },
    )
    connection.info[APPENDED].look_at(row.queue, row.concurrency_group)
    return True


def remove_dead_letter(connection: Connection, position: int) -> bool:
    """Delete an entry that was set aside; what it was about is not done."""
    gone = connection.execute(delete(queue_jobs).where(queue_jobs.c.position == position, IS_DEAD_LETTER))
    return gone.rowcount == 1


_SUBJECTS: Final = {
    QueueName.OUTBOUND: read_submission,
    QueueName.WEBHOOKS: read_item,
    QueueName.CALLBACKS: only(SubjectKind.CALLBACK),
    QueueName.UNCONFIRMED: only(SubjectKind.UNCONFIRMED_MESSAGE),
    QueueName.MEDIA: read_medium,
}
IS_DEAD_LETTER: Final = queue_jobs.c.state >= literal_column(str(int(JobState.DEAD_LETTER)))
"""As the partial index says it: with a parameter in its place a planner cannot tell that it may use it."""
_OLDEST_DEAD_LETTERS: Final = (
    select_row(queue_jobs, DeadLetter).where(IS_DEAD_LETTER).order_by(queue_jobs.c.queue, queue_jobs.c.position)
)
_ENQUEUE: Final = Adding(
    queue_jobs, "queue", "concurrency_group", "ordering_key", "ref", "due_ms", "replay", counts=True
)
_COMPLETE: Final = Removing(queue_jobs, "position")
_MARK_IN_FLIGHT: Final = Changing(queue_jobs, "position", "state")
_RETRY_LATER: Final = Changing(queue_jobs, "position", "due_ms", "attempt", "defects", "state", "detached", "note")
_ATTEMPTS: Final = select(queue_jobs.c.position, queue_jobs.c.attempt).where(one_of(queue_jobs.c.position, "positions"))
_NEXT_GROUP: Final = (
    select(queue_jobs.c.concurrency_group)
    .where(queue_jobs.c.queue == bindparam("queue"), queue_jobs.c.concurrency_group > bindparam("last"))
    .order_by(queue_jobs.c.concurrency_group)
    .limit(1)
)
_AFTER: Final = (
    select_row(queue_jobs, JobRow)
    .where(
        queue_jobs.c.queue == bindparam("queue"),
        queue_jobs.c.concurrency_group == bindparam("concurrency_group"),
        queue_jobs.c.position > bindparam("last"),
        queue_jobs.c.state < int(JobState.DEAD_LETTER),
    )
    .order_by(queue_jobs.c.position)
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
        queue_jobs.c.queue == bindparam("queue"),
        queue_jobs.c.concurrency_group == _EACH.c.of_group,
        queue_jobs.c.position > _EACH.c.last,
        queue_jobs.c.state < int(JobState.DEAD_LETTER),
        queue_jobs.c.position != all_(bindparam("but", type_=ARRAY(BigInteger))),
    )
    .order_by(queue_jobs.c.position)
    .limit(bindparam("most"))
    .lateral("entries")
)
_AFTER_EACH: Final = select(
    _EACH.c.of_group,
    literal_column("pg_snapshot_xmin(pg_current_snapshot())::text::bigint", BigInteger).label("oldest"),
    literal_column("pg_snapshot_xmax(pg_current_snapshot())::text::bigint", BigInteger).label("next"),
    _OF_EACH,
).select_from(_EACH.join(_OF_EACH, true()))
