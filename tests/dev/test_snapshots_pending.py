"""Snapshots while something is due: what was pending is pending after the load, and then happens."""

import asyncio
import contextlib
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.dev.conftest import Started, Starter
from tests.support.callback_sink import CallbackSink, always
from tests.support.waiting import HANGS_AFTER_S
from waypost.assembly.snapshots import snapshot
from waypost.base.clock import ClockSetting
from waypost.simulator import SnapshotError
from waypost.simulator.store import Store
from waypost.simulator.tables import SCHEMA

HOUR_MS = 3_600_000
LATER_MS = 600_000


async def test_a_load_brings_back_everything_that_was_pending(start: Starter, sink: CallbackSink) -> None:
    started = await start()
    template_id, message_id = await _leave_all_pending(started, sink)
    await started.control("POST", "snapshots", {"name": "pending"})
    await started.travel(HOUR_MS)

    await started.control("POST", "snapshots/pending/load", {})

    assert await _template_status(started, template_id) == "PENDING"
    assert await _state(started, message_id) == "sent"
    await _all_happens(started, sink, template_id, message_id)


async def test_another_folder_starts_from_a_snapshot_with_everything_pending(
    start: Starter, sink: CallbackSink
) -> None:
    started = await start()
    template_id, message_id = await _leave_all_pending(started, sink)
    await started.control("POST", "snapshots", {"name": "pending"})
    await start.stop(started)

    file = start.folder / "data" / "snapshots" / "pending.waypost"
    other = await start("other", start_from=file)

    await _all_happens(other, sink, template_id, message_id)


def _null_where_none_may_be(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA writable_schema=ON")
    connection.execute(
        "UPDATE sqlite_schema SET sql=replace(sql, 'body TEXT NOT NULL', 'body TEXT') WHERE name='state'"
    )
    connection.commit()
    connection.execute("PRAGMA schema_version=4711")
    connection.execute("INSERT INTO state (kind, owner, key) VALUES ('phone', '', '1')")
    connection.execute(
        "UPDATE sqlite_schema SET sql=replace(sql, 'body TEXT', 'body TEXT NOT NULL') WHERE name='state'"
    )
    connection.commit()


def _lost_page(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA writable_schema=ON")
    connection.execute("UPDATE sqlite_schema SET rootpage=rootpage+1 WHERE name='outbox'")
    connection.commit()


@pytest.mark.parametrize("damage", [_null_where_none_may_be, _lost_page])
async def test_a_store_that_is_truly_damaged_is_refused(
    tmp_path: Path, damage: Callable[[sqlite3.Connection], None]
) -> None:
    data, file = tmp_path / "data", tmp_path / "one.waypost"
    for name in snapshot.STORE_FILES:
        data.mkdir(exist_ok=True)
        store = Store(data / name, SCHEMA)
        await store.open()
        await store.close()
    snapshot.pack(data, file, setting=ClockSetting(1, 1), secret_key="k")
    _rewrite(file, tmp_path, damage)

    with pytest.raises(SnapshotError, match=r"one\.waypost is damaged"):
        snapshot.stage_snapshot(file, tmp_path / "into", secret_key="k", machine_ms=0)


async def _leave_all_pending(started: Started, receiver: CallbackSink) -> tuple[str, str]:
    """Leave a review, statuses, a webhook and callbacks pending; gives the template and the message."""
    known = started.running.variables
    app = f"/partner/app/{known['APP_ID']}"
    phone = known["DESTINATION"]
    await started.control("PUT", "settings", {"review_delay_ms": LATER_MS})
    await started.control("PUT", f"phones/{phone}", {"deliver_after_ms": LATER_MS, "read_after_ms": LATER_MS})
    fault = {"on": "webhook", "webhook": "message", "what": {"delay_ms": LATER_MS}}
    await started.control("POST", "faults", fault)
    receiver.answers = always(503)
    await started.subscribe(receiver.url, tag="down")
    draft = {
        "elementName": "pending",
        "languageCode": "en_US",
        "category": "UTILITY",
        "templateType": "TEXT",
        "vertical": "Snapshots",
        "content": "It is pending.",
        "example": "It is pending.",
    }
    made = await started.ask("POST", f"{app}/templates", draft)
    message_id = await started.send_text("pending")
    await started.control("POST", f"phones/{phone}/messages", {"to": known["SOURCE"], "text": "on its way"})
    await _until(started, lambda: receiver.tries)
    async with asyncio.timeout(HANGS_AFTER_S):
        while True:
            if await _state(started, message_id) == "sent":
                break
    return made["template"]["id"], message_id


async def _all_happens(started: Started, receiver: CallbackSink, template_id: str, message_id: str) -> None:
    receiver.answers = always(200)
    receiver.tries.clear()
    await started.travel(HOUR_MS)

    def kinds() -> set[str]:
        return {one["payload"].get("type", "") for one in receiver.callbacks}

    await _until(started, lambda: kinds() >= {"sent", "delivered", "read", "text"})
    assert await _template_status(started, template_id) == "APPROVED"
    assert await _state(started, message_id) == "read"


async def _until(started: Started, condition: Callable[[], object]) -> None:
    async with asyncio.timeout(HANGS_AFTER_S):
        while not condition():
            await started.control("GET", "clock")


async def _template_status(started: Started, template_id: str) -> str:
    app_id = started.running.variables["APP_ID"]
    listed = await started.ask("GET", f"/partner/app/{app_id}/templates")
    [status] = [one["status"] for one in listed["templates"] if one["id"] == template_id]
    return status


async def _state(started: Started, message_id: str) -> str:
    known: dict[str, Any] = started.running.variables
    async with started.http.get(
        f"{known['ADMIN_URL']}/messages/{message_id}", headers={"Authorization": f"Bearer {known['ADMIN_TOKEN']}"}
    ) as answer:
        return (await answer.json())["state"]


def _rewrite(file: Path, folder: Path, change: Callable[[sqlite3.Connection], None]) -> None:
    """Change the simulator's store within a snapshot."""
    with zipfile.ZipFile(file) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    store = folder / "changed.db"
    store.write_bytes(content["simulator.db"])
    with contextlib.closing(sqlite3.connect(store)) as connection:
        change(connection)
    content["simulator.db"] = store.read_bytes()
    with zipfile.ZipFile(file, "w") as archive:
        for name, one in content.items():
            archive.writestr(name, one)
