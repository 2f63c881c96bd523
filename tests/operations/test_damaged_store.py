"""A store that is found damaged while the service runs: it is not ready, says so once, and loses no job by it."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import structlog
from sqlalchemy import Connection, func, select, text

from tests.operations.test_readiness import failing_checks, wait_for_failing_check
from tests.support.builders import APP
from tests.support.damaged_files import overwrite_table
from tests.support.pipeline import ADMIN_TOKEN, PipelineHarness
from tests.support.store_locations import StoreLocation
from waypost.store.contract import StoreDamaged
from waypost.store.database import Database
from waypost.store.engines.sqlite import SqliteEngine
from waypost.store.tables import templates

ADMIN = {"Authorization": f"Bearer {ADMIN_TOKEN}"}


def read_templates(connection: Connection) -> int:
    """Count the templates, row by row."""
    return connection.execute(select(func.count(templates.c.old_category))).scalar_one()


async def run_doctor(pipeline: PipelineHarness) -> list[dict[str, Any]]:
    """Return the results of the doctor."""
    response = await pipeline.send_request("GET", "/admin/doctor", headers=ADMIN)
    assert response.status == 200, response
    return response.body["results"]


async def test_store_that_answers_malformed_is_not_ready_and_the_doctor_says_why(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.approved_template()
    healthy = await run_doctor(pipeline)
    await pipeline.close_service()
    overwrite_table(pipeline.folder / "waypost.db", "templates")
    await pipeline.open_service()

    path = f"/partner/app/{APP.id}/templates"
    responses = [
        await pipeline.send_request("GET", path, headers={"Authorization": pipeline.app_token}) for _ in range(2)
    ]
    not_ready = await wait_for_failing_check(pipeline, "store_damage")
    [found] = await run_doctor(pipeline)

    assert {response.status for response in responses} == {500}
    assert not_ready.status == 503
    assert failing_checks(not_ready)["store_damage"] == "the store is damaged: database disk image is malformed"
    assert [check for check in healthy if check["subject"] == "damage"] == [
        {"subject": "damage", "state": "ok", "text": "none was found; checked: the whole file", "fix_hint": ""}
    ]
    assert (found["subject"], found["state"]) == ("damage", "wrong")
    assert "docs/how-to/back-up-and-restore.md" in found["fix_hint"]


async def test_damage_that_nothing_has_read_yet_is_found_by_the_doctor(make_pipeline: Any) -> None:
    pipeline: PipelineHarness = await make_pipeline()
    await pipeline.close_service()
    overwrite_table(pipeline.folder / "waypost.db", "audit_log")
    await pipeline.open_service()

    search = await pipeline.waypost.database.find_damage(60)

    assert search.scope == "the whole file"
    assert search.damage, search


async def test_search_for_damage_ends_in_time(new_file: Path) -> None:
    search = SqliteEngine(new_file).find_damage(0)

    assert not search.damage
    assert search.scope in ("the whole file", "a part of the file: 0 s are over")


async def test_damaged_store_is_logged_once_and_every_caller_gets_its_own_error(new_file: Path, tmp_path: Path) -> None:
    file = tmp_path / "waypost.db"
    shutil.copyfile(new_file, file)
    database = Database(SqliteEngine(file))
    await database.open()
    await database.close()
    overwrite_table(file, "templates")
    database = Database(SqliteEngine(file))
    await database.open()

    with structlog.testing.capture_logs() as records:
        for _ in range(3):
            with pytest.raises(StoreDamaged, match="malformed"):
                await database.read(read_templates)
    await database.close()

    assert "malformed" in database.damage
    [record] = [record for record in records if "the store is damaged" in record["event"]]
    assert (record["log_level"], record["reason"]) == ("critical", database.damage)


@pytest.mark.parametrize("engine", ["postgresql"])
async def test_postgresql_answers_with_what_it_could_check(store_location: StoreLocation) -> None:
    database = Database(store_location.engine())
    await database.open()

    search = await database.find_damage(60)
    await database.close()

    assert search.damage == ()
    assert "checksums" in search.scope


@pytest.mark.parametrize("engine", ["postgresql"])
async def test_page_that_postgresql_finds_damaged_is_damage(store_location: StoreLocation) -> None:
    database = Database(store_location.engine())
    await database.open()

    with pytest.raises(StoreDamaged, match="invalid page in block 0"):
        await database.read(_raise_as_the_server_does)
    await database.close()

    assert database.damage == "invalid page in block 0"


def _raise_as_the_server_does(connection: Connection) -> None:
    statement = "DO $$ BEGIN RAISE EXCEPTION 'invalid page in block 0' USING ERRCODE = 'XX001'; END $$"
    connection.execute(text(statement))
