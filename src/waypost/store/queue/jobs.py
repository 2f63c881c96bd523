"""Statements of the queues. They run inside the caller's transaction.

A callback that has not ended is its own job in the queue `callbacks`. Its position, due time and attempt count are
columns of its row, so that rendering it enqueues it and recording its outcome completes it (decision 0089). Replays
are rows of `queue_jobs`, like the jobs of every other queue. The columns of `open_callbacks` have the names of those
of `queue_jobs`.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, NamedTuple

from sqlalchemy import (
    ARRAY,
    BigInteger,
    Connection,
    FromClause,
    Integer,
    Select,
    Text,
    all_,
    bindparam,
    cast,
    column,
    false,
    func,
    literal_column,
    select,
    text,
    true,
    update,
)

from waypost.store.bulk_statements import BULK_STATEMENTS, BulkDelete, BulkInsert, BulkSelect, BulkUpdate
from waypost.store.queue.job_subjects import (
    JobState,
    JobSubject,
    QueueName,
    SubjectKind,
    read_item,
    read_medium,
    read_submission,
    single_kind_reader,
)
from waypost.store.schema import POSTGRESQL
from waypost.store.sql import equals_any, read_all, read_dict, skip_through
from waypost.store.tables import callbacks, queue_jobs
from waypost.store.trace_events import MessageTraceEvent, add_trace_events
from waypost.store.write_through_cache import TRANSACTION_RECORD, TransactionRecord

_LIVE_PREFIX: Final = "subscription "


@lru_cache(maxsize=65_536)
def live_group(id: int | str) -> str:
    """Return the concurrency group of a subscription's callbacks."""
    return f"{_LIVE_PREFIX}{id}"


@lru_cache(maxsize=65_536)
def replay_group(id: int | str) -> str:
    """Return the concurrency group of its replays: they do not delay other callbacks."""
    return f"replay {id}"


@lru_cache(maxsize=65_536)
def group_subscription_id(group: str) -> int:
    """Return the id of the subscription of a concurrency group in the callbacks queue."""
    return int(group.rpartition(" ")[2])


def is_live_group(queue_name: QueueName, group: str) -> bool:
    """Return True if the jobs of a group are callbacks, and not rows of `queue_jobs`."""
    return queue_name is QueueName.CALLBACKS and group.startswith(_LIVE_PREFIX)


_subscription_text = cast(callbacks.c.subscription_id, Text)
_JOB_COLUMNS: Final = (
    literal_column(str(int(QueueName.CALLBACKS)), Integer).label("queue"),
    callbacks.c.subscription_id,
    (literal_column(f"'{_LIVE_PREFIX}'", Text) + _subscription_text).label("concurrency_group"),
    (_subscription_text + literal_column("' '", Text) + callbacks.c.subject).label("ordering_key"),
    callbacks.c.id.label("ref"),
    *(callbacks.c[name] for name in ("position", "due_ms", "attempt", "defects", "state", "note", "detached")),
    false().label("replay"),
    callbacks.c.created_on_ms,
)
open_callbacks: Final = (
    select(*_JOB_COLUMNS)
    .where(text("callbacks.ended_on_ms IS NULL"))  # as in the partial index
    .subquery("open_callbacks")
)
"""The callbacks that have not ended, dead letters included."""

MARK_CALLBACK_IN_FLIGHT: Final = BulkUpdate(callbacks, "id", "state")
RETRY_CALLBACK_LATER: Final = BulkUpdate(callbacks, "id", "due_ms", "attempt", "defects", "state", "detached", "note")


def reopen_dead_callback(connection: Connection, position: int, due_ms: int) -> int | None:
    """Let a callback that is a dead letter be worked again; return its subscription, or None if there is none.

    Readers of its group have passed its position, so that it gets a new one.
    """
    new_position = connection.info[BULK_STATEMENTS].next_position(connection)
    return connection.execute(
        update(callbacks)
        .where(callbacks.c.position == position, IS_DEAD_CALLBACK)
        .values(position=new_position, state=int(JobState.OPEN), due_ms=due_ms, attempt=0, defects=0, note=None)
        .returning(callbacks.c.subscription_id)
    ).scalar_one_or_none()


def end_dead_callback(connection: Connection, position: int, now_ms: int) -> bool:
    """End a callback that is a dead letter, as one that was not delivered."""
    ended = connection.execute(
        update(callbacks)
        .where(callbacks.c.position == position, IS_DEAD_CALLBACK)
        .values(ended_on_ms=now_ms, delivered=False)
    )
    return ended.rowcount == 1


def find_open_callback(connection: Connection, callback_id: str) -> Mapping[Any, Any] | None:
    """Return a callback's job, with the columns of `open_callbacks`; None if it has ended."""
    query = select(*_JOB_COLUMNS, callbacks.c.ended_on_ms).where(callbacks.c.id == callback_id)
    row = read_dict(connection, query)
    return row if row is not None and row["ended_on_ms"] is None else None


IS_DEAD_CALLBACK: Final = text("callbacks.ended_on_ms IS NULL AND callbacks.state >= 2")
"""As in the partial index: with parameters instead, a planner does not know that it may use the index."""
_NEXT_SUBSCRIPTION: Final = text(
    "SELECT subscription_id FROM callbacks WHERE ended_on_ms IS NULL AND subscription_id > :last "
    "ORDER BY subscription_id LIMIT 1"
)


def read_subject(queue_name: QueueName, ref: str) -> JobSubject:
    """Return the subject of a job, parsed from the text in its row."""
    return SUBJECT_READERS[queue_name](ref)


class NewJob(NamedTuple):
    """A job to be enqueued."""

    queue: QueueName
    concurrency_group: str
    ordering_key: str
    subject: JobSubject
    due_ms: int
    is_replay: bool = False  # a callback that is sent once more


def enqueue_jobs(connection: Connection, new_jobs: Sequence[NewJob]) -> None:
    """Enqueue jobs, within the transaction that writes the state change that caused them."""
    if not new_jobs:
        return
    rows = [
        (int(job.queue), job.concurrency_group, job.ordering_key, job.subject.ref, job.due_ms, job.is_replay)
        for job in new_jobs
    ]
    announce_jobs(connection, new_jobs, _ENQUEUE.run(connection, rows))


def announce_jobs(connection: Connection, new_jobs: Sequence[NewJob], positions: Sequence[int] | None) -> None:
    """Hand jobs that this transaction enqueues on to their stage, once it is committed.

    Args:
        positions: of each; None where the engine does not return them, so that their stage reads them.
    """
    record: TransactionRecord = connection.info[TRANSACTION_RECORD]
    enqueued = record.enqueued
    if positions is None:
        for job in new_jobs:
            enqueued.add_group(job.queue, job.concurrency_group)
        return
    for position, job in zip(positions, new_jobs, strict=True):
        enqueued.jobs.setdefault((job.queue, job.concurrency_group), []).append((position, job))


def complete_jobs(connection: Connection, positions: Sequence[int]) -> AbstractSet[int]:
    """Delete jobs whose work is done, within the transaction that stores its result.

    Returns:
        The positions that existed, to be read within the transaction: another process may have completed a job whose
        lease expired meanwhile, and what must happen only once depends on this.
    """
    return _COMPLETE.run(connection, positions)


class ShardFence(NamedTuple):
    """Restricts a write to the process that holds the lease of the job's shard."""

    queue: QueueName
    shard: int | None  # of the job's group; None where this process is alone with the store
    holder: str  # this process, as it is named in leases


def valid_fences(connection: Connection, fences: set[ShardFence]) -> set[ShardFence]:
    """Return the fences whose lease is still held; it stays held until the transaction ends."""
    leased = {fence for fence in fences if fence.shard is not None}
    valid = fences - leased
    if not leased:
        return valid
    for queue_name, holder in sorted({(fence.queue, fence.holder) for fence in leased}):
        by_shard = {fence.shard: fence for fence in leased if (fence.queue, fence.holder) == (queue_name, holder)}
        held = connection.info[BULK_STATEMENTS].held_shards(connection, int(queue_name), holder, by_shard)
        valid |= {by_shard[shard] for shard in held}
    return valid


class InFlightMark(NamedTuple):
    """A job that is about to be sent."""

    position: int
    fence: ShardFence
    callback_id: str | None = None  # the callback that is this job; None for a row of `queue_jobs`


def mark_in_flight(connection: Connection, batches: Sequence[Sequence[InFlightMark]]) -> list[list[bool]]:
    """Mark jobs as in flight; the mark is on disk before the first byte is sent.

    Returns:
        For each of each batch, whether it was marked. One whose lease has expired is not, and must not be sent.
    """
    valid = valid_fences(connection, {mark.fence for batch in batches for mark in batch})
    in_flight = int(JobState.IN_FLIGHT)
    job_rows: list[tuple[int, int]] = []
    callback_rows: list[tuple[int, str]] = []
    are_marked: list[list[bool]] = []
    for batch in batches:
        are_marked.append([])
        for position, fence, callback_id in batch:
            is_held = fence in valid
            are_marked[-1].append(is_held)
            if is_held and callback_id is None:
                job_rows.append((in_flight, position))
            elif is_held and callback_id is not None:
                callback_rows.append((in_flight, callback_id))
    if job_rows:
        _MARK_IN_FLIGHT.run(connection, job_rows)
    if callback_rows:
        MARK_CALLBACK_IN_FLIGHT.run(connection, callback_rows)
    return are_marked


@dataclass(frozen=True, slots=True)
class JobRetry:
    """A job to be retried later."""

    position: int
    due_ms: int
    attempt: int
    defects: int
    state: JobState
    detached: bool  # later jobs of its ordering key no longer wait for it
    note: str
    fence: ShardFence
    callback_id: str | None = None  # the callback that is this job; None for a row of `queue_jobs`
    event: MessageTraceEvent | None = None  # added to the trace of the message that it carries

    @property
    def columns(self) -> tuple[int, int, int, int, bool, str]:
        """The columns that change."""
        return self.due_ms, self.attempt, self.defects, int(self.state), self.detached, self.note[:500]


def retry_jobs_later(connection: Connection, retries: Sequence[JobRetry]) -> list[bool]:
    """Release jobs: due later, no longer in flight, or parked.

    Returns:
        For each, whether it was released. One whose lease has expired belongs to another process now, and one that
        another process has completed meanwhile, late, is no job any more.
    """
    valid = valid_fences(connection, {retry.fence for retry in retries})
    held = [retry for retry in retries if retry.fence in valid]
    events = {retry.position: (retry.attempt, retry.event) for retry in held if retry.event is not None}
    attempts = dict(_ATTEMPTS_BY_POSITIONS.run(connection, events))  # before they change
    _RETRY_LATER.run(connection, [(*retry.columns, retry.position) for retry in held if retry.callback_id is None])
    RETRY_CALLBACK_LATER.run(
        connection, [(*retry.columns, retry.callback_id) for retry in held if retry.callback_id is not None]
    )
    # Without those that a commit without a response has already stored
    new = [event for position, (attempt, event) in events.items() if attempts.get(position, attempt) < attempt]
    add_trace_events(connection, new)
    completed = _find_completed(connection, [retry for retry in held if retry.fence.shard is not None])
    return [retry.fence in valid and retry.position not in completed for retry in retries]


def _find_completed(connection: Connection, retries: Sequence[JobRetry]) -> set[int]:
    """Return the positions of those that are no jobs any more."""
    jobs = {retry.position for retry in retries if retry.callback_id is None}
    left = {row.position for row in _ATTEMPTS_BY_POSITIONS.run(connection, jobs)} if jobs else set[int]()
    ids = {retry.callback_id: retry.position for retry in retries if retry.callback_id is not None}
    return (jobs - left) | {ids[callback_id] for callback_id in ended_callbacks(connection, ids)}


def ended_callbacks(connection: Connection, ids: Collection[str]) -> set[str]:
    """Return the callbacks that have ended: were delivered, or given up."""
    return {row[0] for row in read_all(connection, _ENDED, tuple, ids=ids)} if ids else set()


def list_groups(connection: Connection, queue_name: QueueName) -> list[str]:
    """Return every group that has a job to work, found by skipping through the index."""
    is_of_callbacks = queue_name is QueueName.CALLBACKS
    live = map(live_group, skip_through(connection, _NEXT_SUBSCRIPTION, 0)) if is_of_callbacks else ()
    return [*live, *skip_through(connection, _NEXT_GROUP, "", queue=int(queue_name))]


@dataclass(frozen=True, slots=True)
class GroupCursor:
    """A position in a group from which reading continues."""

    group: str
    after: int  # only positions beyond this one
    excluded: Sequence[int]  # positions that were read already; ignored where positions are committed in order
    at_most: int  # how many jobs


class JobRow(NamedTuple):
    """A job as stored, without its queue and its group."""

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
    """Transactions that were running at one moment: the number of the oldest, and of the next to begin."""

    oldest: int
    next: int


@dataclass(frozen=True, slots=True)
class GroupJobs:
    """The next jobs of some groups."""

    rows: dict[str, list[JobRow]]  # of each group, oldest first
    # that were running at the time of the query; None where positions are committed in order, and where no job was
    # found
    transactions: RunningTransactions | None = None


def read_jobs_after(connection: Connection, queue_name: QueueName, cursors: Sequence[GroupCursor]) -> GroupJobs:
    """Return the next jobs of each group, without dead letters."""
    if connection.dialect.name == POSTGRESQL:  # each statement is a round trip
        live = [cursor for cursor in cursors if is_live_group(queue_name, cursor.group)]
        others = [cursor for cursor in cursors if not is_live_group(queue_name, cursor.group)]
        read = _read_jobs_at_once(connection, queue_name, others, _JOBS) if others else GroupJobs({})
        if not live:
            return read
        read_live = _read_jobs_at_once(connection, queue_name, live, _LIVE_JOBS)
        both = [found.transactions for found in (read, read_live) if found.transactions is not None]
        running = RunningTransactions(min(one.oldest for one in both), max(one.next for one in both)) if both else None
        return GroupJobs({**read.rows, **read_live.rows}, running)
    jobs_by_group: dict[str, list[JobRow]] = {}
    for cursor in cursors:
        source = _LIVE_JOBS if is_live_group(queue_name, cursor.group) else _JOBS
        parameters = {
            "queue": int(queue_name),
            "group": source.group_value(cursor.group),
            "last": cursor.after,
            "limit": cursor.at_most,
        }
        jobs_by_group[cursor.group] = list(map(JobRow._make, connection.execute(source.after, parameters)))
    return GroupJobs(jobs_by_group)


def _read_jobs_at_once(
    connection: Connection, queue_name: QueueName, cursors: Sequence[GroupCursor], source: "_JobSource"
) -> GroupJobs:
    jobs_by_group: dict[str, list[JobRow]] = {cursor.group: [] for cursor in cursors}
    rows = connection.execute(
        source.after_cursors,
        {
            "queue": int(queue_name),
            "groups": [source.group_value(cursor.group) for cursor in cursors],
            "lasts": [cursor.after for cursor in cursors],
            "excluded": [position for cursor in cursors for position in cursor.excluded],
            "limit": max(cursor.at_most for cursor in cursors),
        },
    ).all()
    names = {source.group_value(cursor.group): cursor.group for cursor in cursors}
    for row in rows:
        jobs_by_group[names[row[0]]].append(JobRow._make(row[3:]))
    for jobs in jobs_by_group.values():
        jobs.sort()  # by position: no two have the same
    return GroupJobs(jobs_by_group, RunningTransactions._make(rows[0][1:3]) if rows else None)


def count_jobs_by_state(connection: Connection, queue_name: QueueName) -> dict[JobState, int]:
    """Return the number of jobs in each state; for doctor, metrics and tests."""
    counts: Counter[JobState] = Counter()
    for source in (queue_jobs, open_callbacks):
        of_queue = select(source.c.state, func.count()).where(source.c.queue == int(queue_name))
        counts.update(
            {JobState(state): count for state, count in connection.execute(of_queue.group_by(source.c.state))}
        )
    return dict(counts)


SUBJECT_READERS: Final = {
    QueueName.OUTBOUND: read_submission,
    QueueName.WEBHOOKS: read_item,
    QueueName.CALLBACKS: single_kind_reader(SubjectKind.CALLBACK),
    QueueName.UNCONFIRMED: single_kind_reader(SubjectKind.UNCONFIRMED_MESSAGE),
    QueueName.MEDIA: read_medium,
}
_ENQUEUE: Final = BulkInsert(
    queue_jobs, "queue", "concurrency_group", "ordering_key", "ref", "due_ms", "replay", positions="position"
)
_COMPLETE: Final = BulkDelete(queue_jobs, "position")
_MARK_IN_FLIGHT: Final = BulkUpdate(queue_jobs, "position", "state")
_RETRY_LATER: Final = BulkUpdate(queue_jobs, "position", "due_ms", "attempt", "defects", "state", "detached", "note")


class _AttemptRow(NamedTuple):
    position: int
    attempt: int


_ATTEMPTS_BY_POSITIONS: Final = BulkSelect(queue_jobs, _AttemptRow, "position", is_locked=False)
_ENDED: Final = select(callbacks.c.id).where(equals_any(callbacks.c.id, "ids"), callbacks.c.ended_on_ms.is_not(None))
_NEXT_GROUP: Final = (
    select(queue_jobs.c.concurrency_group)
    .where(queue_jobs.c.queue == bindparam("queue"), queue_jobs.c.concurrency_group > bindparam("last"))
    .order_by(queue_jobs.c.concurrency_group)
    .limit(1)
)


class _JobSource:
    """A source of jobs: `queue_jobs`, or the callbacks that are their own jobs.

    Attributes:
        after: the statement that reads the next jobs of one group.
        after_cursors: the statement that reads the next jobs of many groups, on PostgreSQL.
    """

    def __init__(self, jobs: FromClause, group_column: str, read_group: Callable[[str], str | int]) -> None:
        self.group_value = read_group
        group = jobs.c[group_column]
        self.after = self._select_after(jobs, group, bindparam("group"), bindparam("last"))
        cursors = (
            func.unnest(bindparam("groups", type_=ARRAY(type(group.type))), bindparam("lasts", type_=ARRAY(BigInteger)))
            .table_valued(column("group_name", type(group.type)), column("last", BigInteger), name="cursors")
            .render_derived()
        )
        cursor_jobs = (
            self._select_after(jobs, group, cursors.c.group_name, cursors.c.last)
            .where(jobs.c.position != all_(bindparam("excluded", type_=ARRAY(BigInteger))))
            .lateral("jobs")
        )
        self.after_cursors = select(
            cursors.c.group_name,
            literal_column("pg_snapshot_xmin(pg_current_snapshot())::text::bigint", BigInteger).label("oldest"),
            literal_column("pg_snapshot_xmax(pg_current_snapshot())::text::bigint", BigInteger).label("next"),
            cursor_jobs,
        ).select_from(cursors.join(cursor_jobs, true()))

    @staticmethod
    def _select_after(jobs: FromClause, group: Any, group_value: Any, last: Any) -> Select[Any]:
        return (
            select(*(jobs.c[name] for name in JobRow._fields))
            .where(
                jobs.c.queue == bindparam("queue"),
                group == group_value,
                jobs.c.position > last,
                jobs.c.state < int(JobState.DEAD_LETTER),
            )
            .order_by(jobs.c.position)
            .limit(bindparam("limit"))
        )


_JOBS: Final = _JobSource(queue_jobs, "concurrency_group", str)
_LIVE_JOBS: Final = _JobSource(open_callbacks, "subscription_id", group_subscription_id)
