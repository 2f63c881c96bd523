"""A stage that is told to stop, at the moments at which a stop under load finds it."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from typing import Final

import pytest_asyncio

from waypost.base.clock import SystemClock
from waypost.queue.job import Entry
from waypost.queue.queue import Journal
from waypost.queue.worker import Prepared, Stage
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.queue.job_subjects import JobSubject, SubjectKind
from waypost.store.queue.jobs import Lane, NewEntry, append_entries

ENTRY: Final = NewEntry(Lane.SUBMISSIONS, "a group", "a key", JobSubject(SubjectKind.MESSAGE, "1"), due_ms=0)


@pytest_asyncio.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    """A journal with one entry in its submissions lane."""
    database = Database(SqliteEngine(tmp_path / "waypost.db"))
    await database.open()
    opened = Journal(database, SystemClock(), holder="a holder")
    await opened.open()
    await database.write(append_entries, [ENTRY])
    yield opened
    await opened.close()
    await database.close()


async def test_stop_waits_for_work_whose_batch_was_still_being_prepared(journal: Journal) -> None:
    """The in-hand mark is part of preparing: cut off after it, a message would be uncertain."""
    preparing, ended = asyncio.Event(), asyncio.Event()

    async def prepare(entries: Sequence[Entry]) -> Prepared:
        preparing.set()
        await asyncio.sleep(0.05)
        return [(entry, work_of(entry)) for entry in entries]

    def work_of(entry: Entry) -> Callable[[], Awaitable[None]]:
        async def work() -> None:
            await asyncio.sleep(0.05)
            ended.set()
            journal.let_go(entry)

        return work

    stage = Stage(journal, Lane.SUBMISSIONS, prepare)
    running = asyncio.create_task(stage.run())
    await preparing.wait()

    await stage.stop(within_s=5)

    assert ended.is_set()
    assert stage.busy == 0
    await running


async def test_stop_begins_nothing_that_is_claimed_meanwhile(journal: Journal) -> None:
    begun: list[Entry] = []

    async def prepare(entries: Sequence[Entry]) -> Prepared:
        begun.extend(entries)
        return []

    stage = Stage(journal, Lane.SUBMISSIONS, prepare)
    running = asyncio.create_task(stage.run())
    await asyncio.sleep(0)  # it reads the lane on another thread now

    await stage.stop(within_s=5)
    await running

    assert begun == []
    assert [entry.subject.ref for entry in await journal.claim(Lane.SUBMISSIONS, at_most=1)] == [ENTRY.subject.ref]
