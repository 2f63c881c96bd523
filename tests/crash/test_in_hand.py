"""The in-hand mark, when the disk refuses it."""

from pathlib import Path
from typing import Final

import pytest
from sqlalchemy import Connection, text
from sqlalchemy.exc import IntegrityError

from waypost.base.clock import ManualClock
from waypost.queue.queue import Journal
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.queue.job_subjects import JobSubject, SubjectKind
from waypost.store.queue.jobs import EntryState, Lane, NewEntry, append_entries, depth_of

ENTRIES: Final = [
    NewEntry(Lane.SUBMISSIONS, "a group", f"key {number}", JobSubject(SubjectKind.MESSAGE, str(number)), due_ms=0)
    for number in range(3)
]
REFUSES_ONE: Final = """
CREATE TRIGGER refuses BEFORE UPDATE OF state ON journal
WHEN new.state = 1 AND new.ref = 'message 1' BEGIN SELECT raise(ABORT, 'no room'); END
"""


async def test_entry_whose_mark_did_not_reach_the_disk_is_not_uncertain(tmp_path: Path) -> None:
    """Nothing of the batch was sent, so every entry is simply worked again."""
    database = Database(SqliteEngine(tmp_path / "waypost.db"))
    await database.open()
    clock = ManualClock()
    journal = Journal(database, clock, holder="a holder")
    await journal.open()
    await database.write(append_entries, ENTRIES)
    await database.write(_run, REFUSES_ONE)
    entries = await journal.claim(Lane.SUBMISSIONS, at_most=3)

    with pytest.raises(IntegrityError, match="no room"):
        await journal.take_in_hand(entries)
    for entry in entries:
        await journal.release_defect(entry, RuntimeError("the mark was not written"))
    clock.advance(ms=60_000)
    again = await journal.claim(Lane.SUBMISSIONS, at_most=3)

    assert [entry.was_in_hand for entry in again] == [False] * 3
    assert await database.read(depth_of, Lane.SUBMISSIONS) == {EntryState.OPEN: 3}
    await journal.close()
    await database.close()


def _run(connection: Connection, statement: str) -> None:
    connection.execute(text(statement))
