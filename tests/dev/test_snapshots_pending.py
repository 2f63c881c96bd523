"""Snapshots with pending work: after the load it is pending again, and then completes."""

import asyncio
import contextlib
import sqlite3
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.dev.conftest import DevStarter, RunningDev
from tests.support.callback_sink import CallbackSink, respond_always
from tests.support.polling import HANGS_AFTER_S
from waypost.assembly import snapshot
from waypost.base.clock import ClockSetting
from waypost.simulator import SnapshotError
from waypost.simulator.storage.store import Store
from waypost.simulator.storage.tables import SCHEMA

HOUR_MS = 3_600_000
LATER_MS = 600_000


async def test_a_load_restores_all_pending_work(start: DevStarter, sink: CallbackSink) -> None:
    started = await start()
    template_id, message_id = await _leave_all_pending(started, sink)
    await started.control("POST", "snapshots", {"name": "pending"})
    await started.travel(HOUR_MS)

    await started.control("POST", "snapshots/pending/load", {})

    assert await _read_template_status(started, template_id) == "PENDING"
    assert await _read_state(started, message_id) == "sent"
    await _assert_all_completes(started, sink, template_id, message_id)


async def test_another_folder_starts_from_a_snapshot_with_all_pending_work(
    start: DevStarter, sink: CallbackSink
) -> None:
    started = await start()
    template_id, message_id = await _leave_all_pending(started, sink)
    await started.control("POST", "snapshots", {"name": "pending"})
    await start.stop(started)

    file = start.folder / "data" / "snapshots" / "pending.waypost"
    other = await start("other", start_from=file)

    await _assert_all_completes(other, sink, template_id, message_id)


def _insert_null_into_not_null_column(connection: sqlite3.Connection) -> None:
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


def _lose_page(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA writable_schema=ON")
    connection.execute("UPDATE sqlite_schema SET rootpage=rootpage+1 WHERE name='outbox'")
    connection.commit()


@pytest.mark.parametrize("damage", [_insert_null_into_not_null_column, _lose_page])
async def test_a_snapshot_with_a_damaged_store_is_rejected(
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


async def _leave_all_pending(started: RunningDev, receiver: CallbackSink) -> tuple[str, str]:
    """Leave a review, statuses, a webhook and callbacks pending; return the ids of template and message."""
    variables = started.running.variables
    app = f"/partner/app/{variables['APP_ID']}"
    phone = variables["DESTINATION"]
    await started.control("PUT", "settings", {"review_delay_ms": LATER_MS})
    await started.control("PUT", f"phones/{phone}", {"deliver_after_ms": LATER_MS, "read_after_ms": LATER_MS})
    fault = {"on": "webhook", "webhook": "message", "what": {"delay_ms": LATER_MS}}
    await started.control("POST", "faults", fault)
    receiver.choose_status = respond_always(503)
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
    made = await started.request("POST", f"{app}/templates", draft)
    message_id = await started.send_text("pending")
    await started.control("POST", f"phones/{phone}/messages", {"to": variables["SOURCE"], "text": "on its way"})
    await _wait_until(started, lambda: receiver.requests)
    async with asyncio.timeout(HANGS_AFTER_S):
        while True:
            if await _read_state(started, message_id) == "sent":
                break
    return made["template"]["id"], message_id


async def _assert_all_completes(started: RunningDev, receiver: CallbackSink, template_id: str, message_id: str) -> None:
    receiver.choose_status = respond_always(200)
    receiver.requests.clear()
    await started.travel(HOUR_MS)

    def kinds() -> set[str]:
        return {callback["payload"].get("type", "") for callback in receiver.callbacks}

    await _wait_until(started, lambda: kinds() >= {"sent", "delivered", "read", "text"})
    assert await _read_template_status(started, template_id) == "APPROVED"
    assert await _read_state(started, message_id) == "read"


async def _wait_until(started: RunningDev, condition: Callable[[], object]) -> None:
    async with asyncio.timeout(HANGS_AFTER_S):
        while not condition():
            await started.control("GET", "clock")


async def _read_template_status(started: RunningDev, template_id: str) -> str:
    app_id = started.running.variables["APP_ID"]
    listed = await started.request("GET", f"/partner/app/{app_id}/templates")
    [status] = [template["status"] for template in listed["templates"] if template["id"] == template_id]
    return status


async def _read_state(started: RunningDev, message_id: str) -> str:
    variables: dict[str, Any] = started.running.variables
    async with started.http.get(
        f"{variables['ADMIN_URL']}/messages/{message_id}",
        headers={"Authorization": f"Bearer {variables['ADMIN_TOKEN']}"},
    ) as response:
        return (await response.json())["state"]


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
        for name, member in content.items():
            archive.writestr(name, member)
