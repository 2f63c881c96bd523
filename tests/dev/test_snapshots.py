"""Snapshots and the reset: service and simulator are restored together while the servers keep listening."""

import asyncio
import contextlib
import json
import os
import pty
import random
import sqlite3
import sys
import zipfile
from pathlib import Path

import aiohttp
import pytest

from tests.dev.conftest import DevStarter
from tests.support.callback_sink import CallbackSink
from tests.support.polling import HANGS_AFTER_S
from waypost.assembly import snapshot
from waypost.base.clock import ClockSetting
from waypost.cli.commands.listener import ListenerSubscription
from waypost.simulator import FILE_REVISION, SnapshotError
from waypost.store.contract import StoreInUse

DAY_MS = 24 * 3_600_000


async def test_a_loaded_snapshot_restores_service_simulator_and_clock(start: DevStarter) -> None:
    started = await start()
    await started.send_text("before")
    await started.shown_texts(until="before")
    await started.control("POST", "clock/freeze", {})
    saved = await started.control("POST", "snapshots", {"name": "here"})
    await started.control("POST", "clock/run", {})
    await started.send_text("after")
    await started.shown_texts(until="after")
    await started.travel(3 * DAY_MS)

    await started.control("POST", "snapshots/here/load", {})

    clock = await started.control("GET", "clock")
    texts = await started.shown_texts(until="before")
    assert "after" not in texts
    assert clock["now_ms"] == saved["snapshot"]["at_ms"]
    assert clock["is_frozen"]


async def test_another_folder_starts_from_a_snapshot_and_a_reset_restores_it(start: DevStarter) -> None:
    started = await start()
    await started.send_text("kept")
    await started.shown_texts(until="kept")
    await started.control("POST", "snapshots", {"name": "kept"})
    file = start.folder / "elsewhere.waypost"
    async with started.http.get(f"{started.running.variables['CONTROL_URL']}/snapshots/kept/content") as response:
        file.write_bytes(await response.read())
    await start.stop(started)

    other = await start("other", start_from=file)
    await other.send_text("new")
    with_new = await other.shown_texts(until="new")
    await other.control("POST", "reset", {})
    after_reset = await other.shown_texts(until="kept")

    assert "kept" in with_new
    assert "new" not in after_reset


async def test_a_reset_restores_the_seed_and_the_next_message_is_delivered(start: DevStarter) -> None:
    started = await start()
    await started.send_text("gone")
    await started.shown_texts(until="gone")

    await started.control("POST", "reset", {})

    await started.send_text("fresh")
    assert await started.shown_texts(until="fresh") == ["Hello!", "fresh"]


async def test_listener_subscribes_again_after_a_reset_and_unsubscribes_at_the_end(start: DevStarter) -> None:
    started = await start()
    printed: asyncio.Queue[str] = asyncio.Queue()
    fields = {"modes": "ENQUEUED", "tag": "listen", "url": "http://127.0.0.1:9/callbacks", "version": "2"}
    subscription = ListenerSubscription(started.running.variables, fields | {"doCheck": "false"})
    path = f"/partner/app/{started.running.variables['APP_ID']}/subscription"
    stop_event = asyncio.Event()
    await subscription.create()
    kept = asyncio.create_task(subscription.keep(stop_event, printed.put_nowait))

    await started.control("POST", "reset", {})

    line = await asyncio.wait_for(printed.get(), HANGS_AFTER_S)
    subscribed = (await started.request("GET", path))["subscriptions"]
    stop_event.set()
    await kept
    await subscription.delete()
    assert [row["tag"] for row in subscribed] == ["listen"]
    assert line.startswith("Subscribed again: ")
    assert printed.empty()
    assert (await started.request("GET", path))["subscriptions"] == []


async def test_a_reset_resets_the_clock(start: DevStarter) -> None:
    started = await start()
    await started.travel(DAY_MS)
    await started.control("POST", "clock/freeze", {})

    await started.control("POST", "reset", {})

    clock = await started.control("GET", "clock")
    assert clock["factor"] == 1
    assert abs(clock["ahead_ms"]) < 1000


async def test_with_a_seed_ids_repeat_after_a_reset_except_for_their_time(start: DevStarter) -> None:
    started = await start(seed="test")

    first = await started.send_text("one")
    await started.shown_texts(until="one")
    await started.control("POST", "reset", {})
    again = await started.send_text("one")

    assert first[13:] == again[13:]


async def test_requests_during_a_reset_wait_and_succeed(start: DevStarter) -> None:
    started = await start()
    async with aiohttp.ClientSession() as http:

        async def get_status() -> int:
            async with http.get(f"{started.running.base_url}/healthz") as response:
                return response.status

        resetting = asyncio.create_task(started.control("POST", "reset", {}))
        statuses = [await get_status() for _ in range(50)]
        await resetting

    assert set(statuses) == {200}


async def test_a_snapshot_of_another_instance_key_is_rejected_with_the_fix_hint(
    start: DevStarter, tmp_path: Path
) -> None:
    started = await start()
    await started.control("POST", "snapshots", {"name": "mine"})
    file = tmp_path / "data" / "snapshots" / "mine.waypost"

    with pytest.raises(SnapshotError, match="WAYPOST_SECRET_KEY"):
        snapshot.stage_snapshot(file, tmp_path / "fresh", secret_key="another " * 8, machine_ms=0)

    assert not (tmp_path / "fresh" / snapshot.STAGING_FOLDER).exists()


@pytest.mark.parametrize(
    ("name", "content"), [("../escape", b"x"), ("media/../../escape", b"x"), ("/etc/escape", b"x"), ("notes.txt", b"x")]
)
async def test_a_snapshot_with_a_foreign_file_is_rejected_and_nothing_changes(
    start: DevStarter, tmp_path: Path, name: str, content: bytes
) -> None:
    started = await start()
    await started.control("POST", "snapshots", {"name": "good"})
    file = tmp_path / "data" / "snapshots" / "good.waypost"
    with zipfile.ZipFile(file, "a") as archive:
        archive.writestr(name, content)
    await started.send_text("still here")
    await started.shown_texts(until="still here")

    error = await started.control("POST", "snapshots/good/load", {}, status=409)

    assert "does not belong to a snapshot" in error["error"]
    assert "still here" in await started.shown_texts()


async def test_a_damaged_snapshot_is_rejected_and_nothing_changes(start: DevStarter, tmp_path: Path) -> None:
    started = await start()
    await started.control("POST", "snapshots", {"name": "torn"})
    file = tmp_path / "data" / "snapshots" / "torn.waypost"
    file.write_bytes(file.read_bytes()[:-400])

    listed = await started.control("GET", "snapshots")
    error = await started.control("POST", "snapshots/torn/load", {}, status=409)

    assert listed["snapshots"] == []
    assert "torn.waypost" in error["error"]
    assert await started.shown_texts() == ["Hello!"]


def test_any_damage_of_a_snapshot_is_a_snapshot_error(tmp_path: Path) -> None:
    """The libraries raise a dozen kinds of errors, most of which are not file errors."""
    content_before = small_snapshot(tmp_path)
    chance = random.Random(1)
    damaged = tmp_path / "torn.waypost"
    errors: set[str] = set()

    for _ in range(300):
        content = bytearray(content_before)
        content[chance.randrange(len(content))] = chance.randrange(256)
        damaged.write_bytes(content)
        try:
            snapshot.stage_snapshot(damaged, tmp_path / "into", secret_key="k", machine_ms=0)
        except SnapshotError as error:
            errors.add(str(error).partition(":")[0])

    assert "torn.waypost is damaged" in errors
    assert "torn.waypost is not a snapshot of waypost" in errors


def test_a_member_without_a_name_is_rejected(tmp_path: Path) -> None:
    small_snapshot(tmp_path)
    with zipfile.ZipFile(tmp_path / "whole.waypost", "a") as archive:
        archive.writestr(".", b"x")

    with pytest.raises(SnapshotError, match="damaged"):
        snapshot.stage_snapshot(tmp_path / "whole.waypost", tmp_path / "into", secret_key="k", machine_ms=0)


async def test_a_save_without_an_idle_moment_names_what_is_in_flight_and_changes_nothing(
    start: DevStarter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sink: CallbackSink
) -> None:
    monkeypatch.setattr("waypost.assembly.dev.dev._IDLE_TIMEOUT_S", 3)
    started = await start()
    await started.control("POST", "snapshots", {"name": "one"})
    folder = tmp_path / "data" / "snapshots"
    before = (folder / "one.waypost").read_bytes()
    sink.gate.clear()
    await started.subscribe(sink.url, tag="crm")
    await started.send_text("again")
    while not sink.requests:
        await started.control("GET", "clock")

    error = await started.control("POST", "snapshots", {"name": "one"}, status=409)
    clock = await started.control("GET", "clock")
    sink.gate.set()

    assert "1 callback to crm in flight" in error["error"]
    assert error["field"] == "snapshot"
    assert clock["ahead_ms"] > -1000
    assert (folder / "one.waypost").read_bytes() == before
    assert [path.name for path in folder.iterdir()] == ["one.waypost"]


async def test_a_snapshot_is_saved_under_traffic_and_the_clock_does_not_go_back(
    start: DevStarter, sink: CallbackSink
) -> None:
    started = await start()
    await started.subscribe(sink.url, tag="crm")
    variables = started.running.variables
    message_ids: list[str] = []

    async def send() -> None:
        while True:
            message_ids.append(await started.send_text("traffic"))

    async def write() -> None:
        body = {"to": variables["SOURCE"], "text": "again"}
        while True:
            await started.control("POST", f"phones/{variables['DESTINATION']}/messages", body)

    async with asyncio.TaskGroup() as group:
        traffic = [group.create_task(repeat()) for repeat in (send, send, write, write)]
        while len(message_ids) < 20:
            await started.control("GET", "clock")
        saved = await started.control("POST", "snapshots", {"name": "busy"})
        clock = await started.control("GET", "clock")
        sent = len(message_ids)
        while len(message_ids) < sent + 5:
            await started.control("GET", "clock")
        for task in traffic:
            task.cancel()
    await started.control("POST", "snapshots/busy/load", {})

    assert saved["snapshot"]["name"] == "busy"
    assert clock["ahead_ms"] >= 0
    assert "traffic" in await started.shown_texts(until="traffic")


async def test_a_receiver_that_calls_the_api_before_it_responds_does_not_prevent_a_snapshot(
    start: DevStarter, sink: CallbackSink
) -> None:
    """Requests that wait while a snapshot is made are accepted between its attempts."""
    started = await start()
    await started.subscribe(sink.url, tag="crm")
    sink.gate.clear()
    await started.send_text("first")
    while not sink.requests:
        await started.control("GET", "clock")

    saving = asyncio.create_task(started.control("POST", "snapshots", {"name": "busy"}))
    await started.send_text("reply")
    sink.gate.set()

    assert (await saving)["snapshot"]["name"] == "busy"


async def test_a_start_deletes_the_partial_file_of_a_killed_save(start: DevStarter, tmp_path: Path) -> None:
    folder = tmp_path / "data" / "snapshots"
    folder.mkdir(parents=True)
    (folder / ".half.waypost.4711").write_bytes(b"half")

    await start()

    assert list(folder.iterdir()) == []


def test_old_files_that_cannot_be_removed_leave_the_change_unfinished(tmp_path: Path) -> None:
    """Otherwise a start would find new stores beside old media, and could not continue."""
    small_snapshot(tmp_path)
    data = tmp_path / "data"
    snapshot.stage_snapshot(tmp_path / "whole.waypost", data, secret_key="k", machine_ms=0)
    elsewhere = tmp_path / "elsewhere"
    (data / "media").rename(elsewhere)
    (data / "media").symlink_to(elsewhere)

    with pytest.raises(OSError, match="symbolic link"):
        snapshot.apply_staged(data)
    (data / "media").unlink()

    assert snapshot.apply_staged(data)
    assert (data / "media" / "one").read_bytes() == b"medium"
    assert not (data / snapshot.STAGING_FOLDER).exists()


def small_snapshot(folder: Path) -> bytes:
    """Make a snapshot of two small stores and one medium; return its bytes."""
    data, file = folder / "data", folder / "whole.waypost"
    (data / "media").mkdir(parents=True)
    (data / "media" / "one").write_bytes(b"medium")
    for name in snapshot.STORE_FILES:
        with contextlib.closing(sqlite3.connect(data / name)) as connection, connection:
            connection.execute("CREATE TABLE rows (a)")
            connection.execute(f"PRAGMA user_version={FILE_REVISION}")
            rows = [(f"row {number}" * 5,) for number in range(300)]
            connection.executemany("INSERT INTO rows VALUES (?)", rows)
    snapshot.pack(data, file, setting=ClockSetting(1, 1), secret_key="k")
    return file.read_bytes()


async def test_a_start_finishes_an_interrupted_change(start: DevStarter, tmp_path: Path) -> None:
    started = await start()
    await started.send_text("saved")
    await started.shown_texts(until="saved")
    await started.control("POST", "snapshots", {"name": "saved"})
    await started.control("POST", "reset", {})
    key = (tmp_path / "data" / "instance.key").read_text().strip()
    await start.stop(started)
    data = tmp_path / "data"
    snapshot.stage_snapshot(data / "snapshots" / "saved.waypost", data, secret_key=key, machine_ms=0)
    for store_file in ("waypost.db", "simulator.db"):
        (data / store_file).unlink()
    (data / snapshot.STAGING_FOLDER / "old").unlink()

    restarted = await start()

    assert "saved" in await restarted.shown_texts(until="saved")


async def test_a_folder_in_use_is_not_changed(start: DevStarter, tmp_path: Path) -> None:
    started = await start()
    await started.control("POST", "snapshots", {"name": "one"})
    file = tmp_path / "data" / "snapshots" / "one.waypost"

    with pytest.raises(StoreInUse):
        await start(start_from=file)

    await started.send_text("alive")
    assert "alive" in await started.shown_texts(until="alive")


@pytest.mark.parametrize("name", ["", "../x", "a b", "x" * 65, "-x"])
async def test_an_invalid_name_is_rejected(start: DevStarter, name: str) -> None:
    started = await start()

    error = await started.control("POST", "snapshots", {"name": name}, status=400)

    assert error["field"] == "name"


async def test_a_deleted_snapshot_is_no_longer_listed(start: DevStarter) -> None:
    started = await start()
    await started.control("POST", "snapshots", {"name": "one"})

    await started.control("DELETE", "snapshots/one")

    assert (await started.control("GET", "snapshots"))["snapshots"] == []
    await started.control("DELETE", "snapshots/one", status=404)


async def test_the_manifest_of_a_snapshot_contains_no_secret(start: DevStarter, tmp_path: Path) -> None:
    started = await start()
    await started.control("POST", "snapshots", {"name": "page"})
    with zipfile.ZipFile(tmp_path / "data" / "snapshots" / "page.waypost") as archive:
        names = archive.namelist()
        manifest = json.loads(archive.read(snapshot.MANIFEST_NAME))

    assert set(manifest) == {"format", "version", "revision", "at_ms", "factor", "key"}
    assert "instance.key" not in names


async def test_a_snapshot_with_another_simulator_revision_is_rejected_and_nothing_changes(
    start: DevStarter, tmp_path: Path
) -> None:
    started = await start()
    await started.control("POST", "snapshots", {"name": "older"})
    file = tmp_path / "data" / "snapshots" / "older.waypost"
    _make_older(file, tmp_path)

    error = await started.control("POST", "snapshots/older/load", {}, status=409)

    assert "has revision 1" in error["error"]
    assert f"supports revision {FILE_REVISION}" in error["error"]
    await started.send_text("still here")
    assert "still here" in await started.shown_texts(until="still here")


def _make_older(file: Path, folder: Path) -> None:
    """Rewrite a snapshot with a simulator's file of an older revision."""
    with zipfile.ZipFile(file) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    store = folder / "older.db"
    store.write_bytes(content["simulator.db"])
    with contextlib.closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA user_version=1")
        connection.commit()
    content["simulator.db"] = store.read_bytes()
    with zipfile.ZipFile(file, "w") as archive:
        for name, member in content.items():
            archive.writestr(name, member)


@pytest.mark.parametrize(("answer", "deleted"), [("n\n", False), ("y\n", True)])
async def test_reset_command_prompts_under_a_terminal(start: DevStarter, answer: str, deleted: bool) -> None:
    started = await start()
    await started.send_text("precious")
    await started.shown_texts(until="precious")
    env_file = str(start.folder / "data.env")
    terminal, other_end = pty.openpty()
    os.write(terminal, answer.encode())

    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "waypost", "snapshot", "reset", "--env-file", env_file,
        stdin=other_end, stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    output, _ = await process.communicate()
    os.close(other_end)
    os.close(terminal)

    assert b"Delete partners, templates, messages" in output
    assert (process.returncode == 0) is deleted
    assert ("precious" not in await started.shown_texts()) is deleted
