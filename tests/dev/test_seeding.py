"""The demonstration is seeded into an empty folder as a whole, or not at all."""

import asyncio
import contextlib
import sqlite3
import sys
import time
from pathlib import Path

from crashes.processes import Child, NotInTime
from tests.dev.conftest import DevStarter
from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.dev import demo


def count_rows(store: Path, table: str) -> int:
    """Return the number of rows on disk; 0 if the table does not exist yet."""
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection,
    ):
        return connection.execute(f"SELECT count(*) FROM {table}").fetchone()[0]
    return 0


async def test_start_after_a_killed_first_start_seeds_the_whole_demonstration(
    start: DevStarter, tmp_path: Path
) -> None:
    store = tmp_path / "data" / "waypost.db"
    store.parent.mkdir()
    command = [sys.executable, "-m", "waypost", "dev", "--port", "0", "--simulator-port", "0"]
    files = ["--data", str(store.parent), "--env-file", str(tmp_path / "child.env")]
    first = Child("waypost dev", [*command, *files], {}, tmp_path / "first.log")
    first.start()
    until_s = time.monotonic() + HANGS_AFTER_S
    while not count_rows(store, "store_properties WHERE name = 'kind'"):
        if time.monotonic() > until_s or first.status is not None:
            raise NotInTime(first.last_lines())
        await asyncio.sleep(0)

    first.kill()
    started = await start()

    assert count_rows(store, "partners") == count_rows(store, "apps") == count_rows(store, "api_keys") == 1
    form = {"email": demo.EMAIL, "password": demo.PASSWORD}
    await started.request("POST", "/partner/account/login", form)
    await started.send_text("Hello")
    await started.shown_texts(until="Hello")


async def test_a_renamed_phone_keeps_its_name_after_a_restart(start: DevStarter) -> None:
    started = await start()
    await started.control("PUT", f"phones/{demo.DESTINATION}", {"name": "Zoe"})
    await start.stop(started)

    restarted = await start()

    assert (await restarted.control("GET", f"phones/{demo.DESTINATION}"))["name"] == "Zoe"
