"""The demonstration is put into an empty folder as a whole, or not at all."""

import asyncio
import contextlib
import sqlite3
import sys
import time
from pathlib import Path

from crashes.processes import Child, NotInTime
from tests.dev.conftest import Starter
from tests.support.waiting import HANGS_AFTER_S
from waypost.assembly.dev import demo


def rows_of(store: Path, of: str) -> int:
    """How many rows are on disk; none where there is no such table yet."""
    with (
        contextlib.suppress(sqlite3.Error),
        contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection,
    ):
        return connection.execute(f"SELECT count(*) FROM {of}").fetchone()[0]
    return 0


async def test_killed_in_the_middle_of_its_first_start_it_starts_whole(start: Starter, tmp_path: Path) -> None:
    store = tmp_path / "data" / "waypost.db"
    store.parent.mkdir()
    command = [sys.executable, "-m", "waypost", "dev", "--port", "0", "--simulator-port", "0"]
    files = ["--data", str(store.parent), "--env-file", str(tmp_path / "child.env")]
    first = Child("waypost dev", [*command, *files], {}, tmp_path / "first.log")
    first.start()
    until_s = time.monotonic() + HANGS_AFTER_S
    while not rows_of(store, "store_facts WHERE name = 'kind'"):
        if time.monotonic() > until_s or first.status is not None:
            raise NotInTime(first.last_lines())
        await asyncio.sleep(0)

    first.kill()
    started = await start()

    assert rows_of(store, "partners") == rows_of(store, "apps") == rows_of(store, "api_keys") == 1
    form = {"email": demo.EMAIL, "password": demo.PASSWORD}
    await started.ask("POST", "/partner/account/login", form)
    await started.send_text("Hello")
    await started.shown_texts(until="Hello")


async def test_a_phone_that_was_renamed_keeps_its_name_over_a_restart(start: Starter) -> None:
    started = await start()
    await started.control("PUT", f"phones/{demo.DESTINATION}", {"name": "Zoe"})
    await start.stop(started)

    again = await start()

    assert (await again.control("GET", f"phones/{demo.DESTINATION}"))["name"] == "Zoe"
