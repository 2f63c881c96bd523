"""An entry as a stage holds it."""

from collections.abc import Iterable
from dataclasses import dataclass

from waypost.store.queue.job_subjects import JobSubject
from waypost.store.queue.jobs import EntryRow, EntryState, Lane, NewEntry, subject_reader


@dataclass(slots=True, eq=False)
class Entry:
    """One hand-off, claimed for as long as this process holds its shard's lease.

    Attributes:
        attempt: how many tries have been made before this one.
        was_in_hand: it was being sent when its worker died; it may have arrived.
        is_detached: those of its ordering key wait for it no longer.
        is_replay: a callback that is sent once more.
        in_hand: it is being sent right now.
        held_since_ms: when this process first saw it fail; not kept in the store.
    """

    position: int
    lane: Lane
    group: str
    order_key: str
    subject: JobSubject
    due_ms: int
    attempt: int
    defects: int
    was_in_hand: bool
    is_detached: bool = False
    is_replay: bool = False
    in_hand: bool = False
    held_since_ms: int | None = None

    @property
    def key(self) -> str | int:
        """What is worked one at a time: all of its ordering key, or it alone."""
        return self.position if self.is_detached else self.order_key


def stored_entries(lane: Lane, group: str, rows: Iterable[EntryRow]) -> list[Entry]:
    """Entries as they were read."""
    read_subject, in_hand = subject_reader(lane), int(EntryState.IN_HAND)
    return [
        Entry(
            position=row.position,
            lane=lane,
            group=group,
            order_key=row.order_key,
            subject=read_subject(row.ref),
            due_ms=row.due_ms,
            attempt=row.attempt,
            defects=row.defects,
            was_in_hand=row.state == in_hand,
            is_detached=row.detached,
            is_replay=row.replay,
        )
        for row in rows
    ]


def new_entry(position: int, new: NewEntry) -> Entry:
    """An entry as it was appended."""
    return Entry(
        position=position,
        lane=new.lane,
        group=new.group,
        order_key=new.order_key,
        subject=new.subject,
        due_ms=new.due_ms,
        attempt=0,
        defects=0,
        was_in_hand=False,
        is_replay=new.is_replay,
    )
