"""Rows of media: a partner finds only its own, and only until they expire."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, Final

import pytest
from sqlalchemy import Connection, event, func, select

from tests.support.builders import APP, AT_MS
from tests.support.query_plans import full_scans, plan_of
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

LOCATION: Final = "2000000000000002"
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
    """The store with one upload."""
    assert await database.join(add_media, SAMPLE)
    return database


async def find_media(database: Database, *references: str, partner_id: int = 7, at: int = 0) -> KnownMediaCopies:
    query = MediaReferences(partner_id, LOCATION, references)
    [copies] = await database.read(find_copies, [query], AT_MS + at)
    return copies


async def test_upload_is_found_by_id_and_by_handle(database: Database) -> None:
    handle = SAMPLE.handle or ""

    assert (await find_media(database, SAMPLE.id, handle, "77")).missing == {SAMPLE.id: SAMPLE, handle: SAMPLE}


async def test_expired_upload_is_found_for_a_template_until_it_is_deleted(database: Database) -> None:
    query = MediaReferences(7, LOCATION, (SAMPLE.id,))
    find, at_ms = partial(find_copies, with_expired=True), SAMPLE.expires_on_ms

    [for_template] = await database.read(find, [query], at_ms)
    [for_message] = await database.read(find_copies, [query], at_ms)
    await database.join(lambda connection, _: [delete_expired_media(connection, at_ms)], None)
    [deleted] = await database.read(find, [query], at_ms)

    assert for_template.missing == {SAMPLE.id: SAMPLE}
    assert for_message.missing == deleted.missing == {}


async def test_uploads_are_keyed_by_the_reference_of_the_query(database: Database) -> None:
    handle = SAMPLE.handle or ""

    by_handle = await database.read(find_uploads, 7, [handle, "77"], AT_MS)

    assert by_handle == {handle: SAMPLE}
    assert await database.read(find_uploads, 7, [SAMPLE.id], AT_MS) == {SAMPLE.id: SAMPLE}
    assert await database.read(find_uploads, 8, [SAMPLE.id], AT_MS) == {}
    assert await database.read(find_uploads, 7, [SAMPLE.id], AT_MS + 1000) == {}


async def test_upload_of_another_partner_is_not_found(database: Database) -> None:
    assert await find_media(database, SAMPLE.id, partner_id=8) == KnownMediaCopies({}, {})


async def test_upload_is_not_found_after_it_expires(database: Database) -> None:
    assert (await find_media(database, SAMPLE.id, at=999)).missing
    assert await find_media(database, SAMPLE.id, at=1000) == KnownMediaCopies({}, {})
    assert await database.read(media_of_app, APP.id, SAMPLE.id, AT_MS + 1000) is None


async def test_copy_counts_at_its_location_until_it_expires(database: Database) -> None:
    await database.join(record_copies, OperatorCopy(SAMPLE.id, LOCATION, "77", AT_MS + 500))
    await database.join(record_copies, OperatorCopy(SAMPLE.id, "another", "88", AT_MS + 500))

    assert (await find_media(database, SAMPLE.id, at=499)).copies == {SAMPLE.id: "77"}
    assert (await find_media(database, SAMPLE.id, at=500)).missing == {SAMPLE.id: SAMPLE}


async def test_newer_copy_replaces_the_older(database: Database) -> None:
    await database.join(record_copies, OperatorCopy(SAMPLE.id, LOCATION, "77", AT_MS + 500))
    await database.join(record_copies, OperatorCopy(SAMPLE.id, LOCATION, "78", AT_MS + 900))

    assert (await find_media(database, SAMPLE.id, at=600)).copies == {SAMPLE.id: "78"}


async def test_deleted_copy_is_missing_and_a_newer_one_is_not_deleted(database: Database) -> None:
    await database.join(record_copies, OperatorCopy(SAMPLE.id, LOCATION, "78", AT_MS + 900))

    await database.write(delete_copies, LOCATION, ["77"])
    before = await find_media(database, SAMPLE.id)
    await database.write(delete_copies, LOCATION, ["78"])

    assert before.copies == {SAMPLE.id: "78"}
    assert (await find_media(database, SAMPLE.id)).missing == {SAMPLE.id: SAMPLE}


async def test_duplicate_id_is_reported_and_changes_nothing(database: Database) -> None:
    assert not await database.join(add_media, replace(SAMPLE, handle=None, file_name="b"))

    assert await database.read(media_of_app, APP.id, SAMPLE.id, AT_MS) == SAMPLE


async def test_media_of_another_app_is_not_found(database: Database) -> None:
    assert await database.read(media_of_app, "another", SAMPLE.id, AT_MS) is None


async def statements_of(database: Database, work: Callable[[Connection], Any]) -> tuple[Any, list[str]]:
    """Return the result of a read, and the statements that it runs."""
    statements: list[str] = []

    def read_recorded(connection: Connection) -> Any:
        def record(_c: Any, _cursor: Any, text: str, *_rest: Any) -> None:
            statements.append(text)

        event.listen(connection, "before_cursor_execute", record)
        try:
            return work(connection)
        finally:
            event.remove(connection, "before_cursor_execute", record)

    return await database.read(read_recorded), statements


async def test_batch_needs_two_queries_and_each_reference_finds_its_own(database: Database) -> None:
    await database.join(record_copies, OperatorCopy(SAMPLE.id, LOCATION, "77", AT_MS + 500))
    queries = [
        *(MediaReferences(7, LOCATION, ()) for _ in range(40)),
        MediaReferences(7, LOCATION, (SAMPLE.id, "1")),
        MediaReferences(7, "another", (SAMPLE.handle or "",)),
        MediaReferences(8, LOCATION, (SAMPLE.id,)),
    ]

    results, statements = await statements_of(database, lambda connection: find_copies(connection, queries, AT_MS))

    assert results[:40] == [KnownMediaCopies({}, {})] * 40
    assert results[40:] == [
        KnownMediaCopies({SAMPLE.id: "77"}, {}),
        KnownMediaCopies({}, {SAMPLE.handle or "": SAMPLE}),
        KnownMediaCopies({}, {}),
    ]
    assert len(statements) == 2


async def test_batch_without_media_runs_no_statement(database: Database) -> None:
    results, statements = await statements_of(
        database, lambda connection: find_copies(connection, [MediaReferences(7, LOCATION, ())] * 3, AT_MS)
    )

    assert results == [KnownMediaCopies({}, {})] * 3
    assert statements == []


async def test_submission_that_names_tens_of_thousands_is_looked_up(database: Database) -> None:
    names = [str(10**15 + at) for at in range(40_000)]

    copies = await find_media(database, *names, SAMPLE.id)

    assert list(copies.missing) == [SAMPLE.id]


async def test_no_media_lookup_reads_a_whole_table(database: Database) -> None:
    def plans(connection: Connection) -> list[str]:
        ran: list[tuple[str, Any]] = []

        def record(_c: Any, _cursor: Any, statement: str, parameters: Any, *_rest: Any) -> None:
            ran.append((statement, parameters))

        event.listen(connection, "before_cursor_execute", record)
        find_copies(connection, [MediaReferences(7, LOCATION, (SAMPLE.id,))], AT_MS)
        referenced_files(connection, ["a" * 64])
        inbound_of_app(connection, APP.id, "77", AT_MS)
        delete_expired_media(connection, AT_MS)
        event.remove(connection, "before_cursor_execute", record)
        return [step for statement, parameters in ran for step in plan_of(connection, statement, parameters)]

    steps = await database.write(plans)

    assert steps
    assert full_scans(steps) == []


async def test_expired_media_are_deleted_in_batches(database: Database) -> None:
    for at in range(4):
        other = replace(SAMPLE, id=f"123456789012345{at}", handle=None)
        assert await database.join(add_media, other)
    expired_ms = SAMPLE.expires_on_ms

    def delete_batch(connection: Connection) -> tuple[bool, int]:
        is_more = delete_expired_media(connection, expired_ms, at_most=2)
        return is_more, connection.execute(select(func.count()).select_from(tables.media)).scalar_one()

    left = [await database.write(delete_batch) for _ in range(3)]

    assert left == [(True, 3), (True, 1), (False, 0)]


async def test_expired_media_are_deleted_with_their_copies(database: Database) -> None:
    await database.join(record_copies, OperatorCopy(SAMPLE.id, LOCATION, "77", AT_MS + 2000))

    await database.write(delete_expired_media, AT_MS + 999)
    before = await database.read(referenced_files, ["a" * 64, "b" * 64])
    await database.write(delete_expired_media, AT_MS + 1000)

    assert before == {"a" * 64}
    assert await database.read(referenced_files, ["a" * 64]) == set()


async def test_upload_is_deleted_with_its_copies(database: Database) -> None:
    await database.join(record_copies, OperatorCopy(SAMPLE.id, LOCATION, "77", AT_MS + 2000))

    was_there = await database.write(delete_upload, 7, SAMPLE.id, AT_MS)
    is_there = await database.write(delete_upload, 7, SAMPLE.id, AT_MS)

    assert (was_there, is_there) == (True, False)
    assert await find_media(database, SAMPLE.id) == KnownMediaCopies({}, {})
    assert await database.read(referenced_files, ["a" * 64]) == set()


async def test_only_its_partner_deletes_an_upload(database: Database) -> None:
    is_deleted = await database.write(delete_upload, 8, SAMPLE.id, AT_MS)

    assert not is_deleted
    assert await database.read(media_of_app, APP.id, SAMPLE.id, AT_MS) is not None


async def test_file_stays_while_another_upload_has_its_bytes(database: Database) -> None:
    await database.join(add_media, replace(SAMPLE, id="9", handle=None))

    await database.write(delete_upload, 7, SAMPLE.id, AT_MS)

    assert await database.read(referenced_files, ["a" * 64]) == {"a" * 64}
