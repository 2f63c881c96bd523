"""What a thread opens is the caller's, or closed again when the caller goes away, before or after it is open."""

import asyncio
import os
import threading
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.support.waiting import HANGS_AFTER_S, patiently
from waypost.base.files import close_file, open_for_reading, open_on_thread


class Door:
    """Something that is opened on a thread, and notes whether it is open."""

    def __init__(self) -> None:
        self.is_opening = threading.Event()
        self.may_open = threading.Event()
        self.is_open = False
        self.is_closed = threading.Event()

    def open(self) -> "Door":
        self.is_opening.set()
        assert self.may_open.wait(HANGS_AFTER_S)
        self.is_open = True
        return self

    def close(self) -> None:
        self.is_closed.set()


async def test_what_was_opened_is_the_callers() -> None:
    door = Door()
    door.may_open.set()

    assert await open_on_thread(door.open, Door.close) is door

    assert (door.is_open, door.is_closed.is_set()) == (True, False)


async def test_what_is_opened_after_the_caller_went_away_is_closed() -> None:
    door = Door()
    waiting = asyncio.create_task(open_on_thread(door.open, Door.close))
    await asyncio.to_thread(door.is_opening.wait, HANGS_AFTER_S)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not door.is_closed.is_set()
    door.may_open.set()

    assert await asyncio.to_thread(door.is_closed.wait, HANGS_AFTER_S)
    assert door.is_open


async def test_what_was_opened_before_the_caller_could_take_it_is_closed() -> None:
    door = Door()
    waiting = asyncio.create_task(open_on_thread(door.open, Door.close))
    await asyncio.to_thread(door.is_opening.wait, HANGS_AFTER_S)

    door.may_open.set()
    while not door.is_open:  # the loop stands still meanwhile: nobody hands it over
        pass
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert await asyncio.to_thread(door.is_closed.wait, HANGS_AFTER_S)


async def test_file_that_nobody_waits_for_is_closed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # whoever opens it to read waits for who writes
    is_opening = threading.Event()
    files: list[BinaryIO] = []

    def open_it() -> BinaryIO:
        is_opening.set()
        files.append(pipe.open("rb"))
        return files[0]

    async def is_closed() -> bool:
        return bool(files) and files[0].closed

    waiting = asyncio.create_task(open_on_thread(open_it, close_file))
    await asyncio.to_thread(is_opening.wait, HANGS_AFTER_S)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with await asyncio.to_thread(pipe.open, "wb"):
        assert await patiently(is_closed)


async def test_what_opening_raises_is_the_callers(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        async with open_for_reading(tmp_path / "none"):
            pass


async def test_file_is_read_and_closed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")

    async with open_for_reading(tmp_path / "a") as file:
        assert file.read() == b"content"

    assert file.closed
