"""A job in memory, as a stage works it."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from waypost.domain.wait_reasons import WaitReason
from waypost.store.queue.job_subjects import JobState, JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import SUBJECT_READERS, JobRow, NewJob


class PermanentDefect(Exception):
    """A defect that no retry cures: its job becomes a dead letter at once."""


@dataclass(frozen=True, slots=True)
class NotBefore:
    """A wait and its reason: the ordering key, or its whole group, is not worked before then."""

    until_ms: int
    reason: WaitReason
    whole_group: bool


@dataclass(slots=True, eq=False)
class Job:
    """One hand-off between stages, claimed for as long as this process holds its shard's lease."""

    position: int
    queue: QueueName
    concurrency_group: str
    ordering_key: str
    subject: JobSubject
    due_ms: int
    attempt: int  # how many attempts have been made before this one
    defects: int
    was_in_flight: bool  # it was being sent when its worker died; it may have arrived
    is_detached: bool = False  # the other jobs of its ordering key no longer wait for it
    is_replay: bool = False  # a callback that is sent once more
    in_flight: bool = False  # it is being sent right now
    is_parked: bool = False  # it waits for something in this process
    blocking_since_ms: int | None = None  # when this process first saw it fail; not stored
    not_before: NotBefore | None = None  # why its ordering key was last made to wait; not stored
    # what is worked one at a time: its ordering key, or its own position once it is detached
    key: str | int = field(init=False)

    def __post_init__(self) -> None:
        """Set the key."""
        self.key = self.position if self.is_detached else self.ordering_key

    @property
    def callback_id(self) -> str | None:
        """The callback that is this job; None for a row of `queue_jobs`, as a replay's is."""
        return self.subject.id if self.subject.kind is SubjectKind.CALLBACK and not self.is_replay else None

    def detach(self) -> None:
        """Let the other jobs of its ordering key no longer wait for it."""
        self.is_detached, self.key = True, self.position


def read_jobs(queue_name: QueueName, group: str, rows: Iterable[JobRow]) -> list[Job]:
    """Return jobs from the rows of the store."""
    read_subject, in_flight = SUBJECT_READERS[queue_name], int(JobState.IN_FLIGHT)
    return [
        Job(
            position=row.position,
            queue=queue_name,
            concurrency_group=group,
            ordering_key=row.ordering_key,
            subject=read_subject(row.ref),
            due_ms=row.due_ms,
            attempt=row.attempt,
            defects=row.defects,
            was_in_flight=row.state == in_flight,
            is_detached=row.detached,
            is_replay=row.replay,
        )
        for row in rows
    ]


def make_jobs(new_jobs: Iterable[tuple[int, NewJob]]) -> list[Job]:
    """Return jobs that were just enqueued, each with its position."""
    jobs: list[Job] = []
    for position, new in new_jobs:
        queue_name, group, ordering_key, subject, due_ms, is_replay = new
        jobs.append(
            Job(
                position,
                queue_name,
                group,
                ordering_key,
                subject,
                due_ms,
                0,
                0,
                was_in_flight=False,
                is_replay=is_replay,
            )
        )
    return jobs
