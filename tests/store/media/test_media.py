"""Rows of media: a partner finds its own, and only while they live."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final

import pytest
from sqlalchemy import Connection, event, func, select

from tests.support.builders import APP, AT_MS
from tests.support.query_plans import plan_of, whole_reads
from waypost.domain.media import UploadedMedia
from waypost.store import tables
from waypost.store.database import Database
from waypost.store.media.media import (
    KnownMediaCopies,
    MediaReferences,
    OperatorCopy,
    add_media,
    delete_copies,
    delete_expired_media,
    delete_upload,
    find_copies,
    find_uploads,
    inbound_of_app,
    media_of_app,
    record_copies,
    referenced_files,
)

PLACE: Final = "2000000000000002"
SAMPLE: Final = UploadedMedia(
    id="1234567890123456",
    partner_id=7,
    app_id=APP.id,
    handle="4::aW1hZ2U=:ARa:e:1:2:3:ARb",
    mime_type="image/png",
    size_bytes=70,
    sha256="a" * 64,
    file_name="a.png",
    created_on_ms=AT_MS,
    expires_on_ms=AT_MS + 1000,
)


@pytest.fixture
async def database(database: Database) -> Database:
    """With one upload in it."""
    assert await database.join(add_media, SAMPLE)
    return database


async def found(database: Database, *references: str, partner_id: int = 7, at: int = 0) -> KnownMediaCopies:
    wanted = MediaReferences(partner_id, PLACE, references)
    [one] = await database.read(find_copies, [wanted], AT_MS + at)
    return one


async def test_upload_is_found_by_id_and_by_handle(database: Database) -> None:
    handle = SAMPLE.handle or ""

    assert (await found(database, SAMPLE.id, handle, "77")).missing == {SAMPLE.id: SAMPLE, handle: SAMPLE}


async def test_uploads_are_named_as_they_were_asked_for(database: Database) -> None:
    handle = SAMPLE.handle or ""

    by_handle = await database.read(find_uploads, 7, [handle, "77"], AT_MS)

    assert by_handle == {handle: SAMPLE}
    assert await database.read(find_uploads, 7, [SAMPLE.id], AT_MS) == {SAMPLE.id: SAMPLE}
    assert await database.read(find_uploads, 8, [SAMPLE.id], AT_MS) == {}
    assert await database.read(find_uploads, 7, [SAMPLE.id], AT_MS + 1000) == {}


async def test_upload_of_another_partner_is_not_there(database: Database) -> None:
    assert await found(database, SAMPLE.id, partner_id=8) == KnownMediaCopies({}, {})


async def test_upload_is_gone_when_its_time_is_over(database: Database) -> None:
    assert (await found(database, SAMPLE.id, at=999)).missing
    assert await found(database, SAMPLE.id, at=1000) == KnownMediaCopies({}, {})
    assert await database.read(media_of_app, APP.id, SAMPLE.id, AT_MS + 1000) is None


async def test_copy_counts_at_its_place_while_it_lives(database: Database) -> None:
    await database.join(record_copies, OperatorCopy(SAMPLE.id, PLACE, "77", AT_MS + 500))
    await database.join(record_copies, OperatorCopy(SAMPLE.id, "another", "88", AT_MS + 500))

    assert (await found(database, SAMPLE.id, at=499)).copies == {SAMPLE.id: "77"}
    assert (await found(database, SAMPLE.id, at=500)).missing == {SAMPLE.id: SAMPLE}


async def test_newer_copy_takes_the_place_of_the_older(database: Database) -> None:
    await database.join(record_copies, OperatorCopy(SAMPLE.id, PLACE, "77", AT_MS + 500))
    await database.join(record_copies, OperatorCopy(SAMPLE.id, PLACE, "78", AT_MS + 900))

    assert (await found(database, SAMPLE.id, at=600)).copies == {SAMPLE.id: "78"}


async def test_dropped_copy_is_missing_and_a_newer_one_is_not_dropped(database: Database) -> None:
    await database.join(record_copies, OperatorCopy(SAMPLE.id, PLACE, "78", AT_MS + 900))

    await database.write(delete_copies, PLACE, ["77"])
    kept = await found(database, SAMPLE.id)
    await database.write(delete_copies, PLACE, ["78"])

    assert kept.copies == {SAMPLE.id: "78"}
    assert (await found(database, SAMPLE.id)).missing == {SAMPLE.id: SAMPLE}


async def test_taken_id_is_told_and_changes_nothing(database: Database) -> None:
    assert not await database.join(add_media, replace(SAMPLE, handle=None, file_name="b"))

    assert await database.read(media_of_app, APP.id, SAMPLE.id, AT_MS) == SAMPLE


async def test_media_of_another_app_is_not_there(database: Database) -> None:
    assert await database.read(media_of_app, "another", SAMPLE.id, AT_MS) is None


async def statements_of(database: Database, work: Callable[[Connection], Any]) -> tuple[Any, list[str]]:
    """What a read gives, and the statements that it runs."""
    run: list[str] = []

    def look(connection: Connection) -> Any:
        def note(_c: Any, _cursor: Any, text: str, *_rest: Any) -> None:
            run.append(text)

        event.listen(connection, "before_cursor_execute", note)
        try:
            return work(connection)
        finally:
            event.remove(connection, "before_cursor_execute", note)

    return await database.read(look), run


async def test_whole_batch_needs_two_queries_and_each_finds_its_own(database: Database) -> None:
    await database.join(record_copies, OperatorCopy(SAMPLE.id, PLACE, "77", AT_MS + 500))
    wanted = [
        *(MediaReferences(7, PLACE, ()) for _ in range(40)),
        MediaReferences(7, PLACE, (SAMPLE.id, "1")),
        MediaReferences(7, "another", (SAMPLE.handle or "",)),
        MediaReferences(8, PLACE, (SAMPLE.id,)),
    ]

    found, statements = await statements_of(database, lambda connection: find_copies(connection, wanted, AT_MS))

    assert found[:40] == [KnownMediaCopies({}, {})] * 40
    assert found[40:] == [
        KnownMediaCopies({SAMPLE.id: "77"}, {}),
        KnownMediaCopies({}, {SAMPLE.handle or "": SAMPLE}),
        KnownMediaCopies({}, {}),
    ]
    assert len(statements) == 2


async def test_batch_that_names_no_media_asks_nothing(database: Database) -> None:
    found, statements = await statements_of(
        database, lambda connection: find_copies(connection, [MediaReferences(7, PLACE, ())] * 3, AT_MS)
    )

    assert found == [KnownMediaCopies({}, {})] * 3
    assert statements == []


async def test_submission_that_names_tens_of_thousands_is_looked_up(database: Database) -> None:
    names = [str(10**15 + at) for at in range(40_000)]

    one = await found(database, *names, SAMPLE.id)

    assert list(one.missing) == [SAMPLE.id]


async def test_no_look_up_of_media_reads_a_whole_table(database: Database) -> None:
    def plans(connection: Connection) -> list[str]:
        ran: list[tuple[str, Any]] = []

        def note(_c: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
            ran.append((statement, parameters))

        event.listen(connection, "before_cursor_execute", note)
        find_copies(connection, [MediaReferences(7, PLACE, (SAMPLE.id,))], AT_MS)
        referenced_files(connection, ["a" * 64])
        inbound_of_app(connection, APP.id, "77", AT_MS)
        delete_expired_media(connection, AT_MS)
        event.remove(connection, "before_cursor_execute", note)
        return [step for statement, parameters in ran for step in plan_of(connection, statement, parameters)]

    told = await database.write(plans)

    assert told
    assert whole_reads(told) == []


async def test_what_is_over_is_forgotten_some_at_a_time(database: Database) -> None:
    for at in range(4):
        other = replace(SAMPLE, id=f"123456789012345{at}", handle=None)
        assert await database.join(add_media, other)
    over_ms = SAMPLE.expires_on_ms

    def forget(connection: Connection) -> tuple[bool, int]:
        is_more = delete_expired_media(connection, over_ms, at_most=2)
        return is_more, connection.execute(select(func.count()).select_from(tables.media)).scalar_one()

    left = [await database.write(forget) for _ in range(3)]

    assert left == [(True, 3), (True, 1), (False, 0)]


async def test_what_is_over_is_forgotten_with_its_copies(database: Database) -> None:
    await database.join(record_copies, OperatorCopy(SAMPLE.id, PLACE, "77", AT_MS + 2000))

    await database.write(delete_expired_media, AT_MS + 999)
    before = await database.read(referenced_files, ["a" * 64, "b" * 64])
    await database.write(delete_expired_media, AT_MS + 1000)

    assert before == {"a" * 64}
    assert await database.read(referenced_files, ["a" * 64]) == set()


async def test_upload_that_is_forgotten_is_gone_with_its_copies(database: Database) -> None:
    await database.join(record_copies, OperatorCopy(SAMPLE.id, PLACE, "77", AT_MS + 2000))

    was_there = await database.write(delete_upload, 7, SAMPLE.id, AT_MS)
    is_there = await database.write(delete_upload, 7, SAMPLE.id, AT_MS)

    assert (was_there, is_there) == (True, False)
    assert await found(database, SAMPLE.id) == KnownMediaCopies({}, {})
    assert await database.read(referenced_files, ["a" * 64]) == set()


async def test_only_its_partner_forgets_an_upload(database: Database) -> None:
    is_forgotten = await database.write(delete_upload, 8, SAMPLE.id, AT_MS)

    assert not is_forgotten
    assert await database.read(media_of_app, APP.id, SAMPLE.id, AT_MS) is not None


async def test_file_stays_while_another_upload_has_its_bytes(database: Database) -> None:
    await database.join(add_media, replace(SAMPLE, id="9", handle=None))

    await database.write(delete_upload, 7, SAMPLE.id, AT_MS)

    assert await database.read(referenced_files, ["a" * 64]) == {"a" * 64}
