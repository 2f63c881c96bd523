"""Rows of media: a partner finds its own, and only while they live."""

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Final

import pytest

from tests.support.builders import APP, AT_MS
from waypost.domain.media import Media
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.media import (
    Copy,
    Found,
    Wanted,
    add_media,
    drop_copies,
    find_copies,
    forget_expired,
    media_of_app,
    record_copies,
    referenced_files,
)

PLACE: Final = "2000000000000002"
SAMPLE: Final = Media(
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
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    database = Database(SqliteEngine(tmp_path / "waypost.db"))
    await database.open()
    assert await database.join(add_media, SAMPLE)
    yield database
    await database.close()


async def found(database: Database, *references: str, partner_id: int = 7, at: int = 0) -> Found:
    wanted = Wanted(partner_id, PLACE, references)
    [one] = await database.read(find_copies, [wanted], AT_MS + at)
    return one


async def test_upload_is_found_by_id_and_by_handle(database: Database) -> None:
    handle = SAMPLE.handle or ""

    assert (await found(database, SAMPLE.id, handle, "77")).missing == {
        SAMPLE.id: SAMPLE,
        handle: SAMPLE,
    }


async def test_upload_of_another_partner_is_not_there(database: Database) -> None:
    assert await found(database, SAMPLE.id, partner_id=8) == Found({}, {})


async def test_upload_is_gone_when_its_time_is_over(database: Database) -> None:
    assert (await found(database, SAMPLE.id, at=999)).missing
    assert await found(database, SAMPLE.id, at=1000) == Found({}, {})
    assert await database.read(media_of_app, APP.id, SAMPLE.id, AT_MS + 1000) is None


async def test_copy_counts_at_its_place_while_it_lives(database: Database) -> None:
    await database.join(record_copies, Copy(SAMPLE.id, PLACE, "77", AT_MS + 500))
    await database.join(record_copies, Copy(SAMPLE.id, "another", "88", AT_MS + 500))

    assert (await found(database, SAMPLE.id, at=499)).copies == {SAMPLE.id: "77"}
    assert (await found(database, SAMPLE.id, at=500)).missing == {SAMPLE.id: SAMPLE}


async def test_newer_copy_takes_the_place_of_the_older(database: Database) -> None:
    await database.join(record_copies, Copy(SAMPLE.id, PLACE, "77", AT_MS + 500))
    await database.join(record_copies, Copy(SAMPLE.id, PLACE, "78", AT_MS + 900))

    assert (await found(database, SAMPLE.id, at=600)).copies == {SAMPLE.id: "78"}


async def test_dropped_copy_is_missing_and_a_newer_one_is_not_dropped(database: Database) -> None:
    await database.join(record_copies, Copy(SAMPLE.id, PLACE, "78", AT_MS + 900))

    await database.write(drop_copies, PLACE, ["77"])
    kept = await found(database, SAMPLE.id)
    await database.write(drop_copies, PLACE, ["78"])

    assert kept.copies == {SAMPLE.id: "78"}
    assert (await found(database, SAMPLE.id)).missing == {SAMPLE.id: SAMPLE}


async def test_taken_id_is_told_and_changes_nothing(database: Database) -> None:
    assert not await database.join(add_media, replace(SAMPLE, handle=None, file_name="b"))

    assert await database.read(media_of_app, APP.id, SAMPLE.id, AT_MS) == SAMPLE


async def test_media_of_another_app_is_not_there(database: Database) -> None:
    assert await database.read(media_of_app, "another", SAMPLE.id, AT_MS) is None


async def test_what_is_over_is_forgotten_with_its_copies(database: Database) -> None:
    await database.join(record_copies, Copy(SAMPLE.id, PLACE, "77", AT_MS + 2000))

    await database.write(forget_expired, AT_MS + 999)
    before = await database.read(referenced_files, ["a" * 64, "b" * 64])
    await database.write(forget_expired, AT_MS + 1000)

    assert before == {"a" * 64}
    assert await database.read(referenced_files, ["a" * 64]) == set()
