"""A file opened on a thread is returned, or closed if the caller is cancelled before or after it is open."""

import asyncio
import os
import threading
from pathlib import Path
from typing import BinaryIO

import pytest

from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.base.files import close_file, open_for_reading, open_on_thread


class Resource:
    """A resource that is opened on a thread, and records whether it is open."""

    def __init__(self) -> None:
        self.is_opening = threading.Event()
        self.may_open = threading.Event()
        self.is_open = False
        self.is_closed = threading.Event()

    def open(self) -> "Resource":
        self.is_opening.set()
        assert self.may_open.wait(HANGS_AFTER_S)
        self.is_open = True
        return self

    def close(self) -> None:
        self.is_closed.set()


async def test_opened_resource_is_returned_to_the_caller() -> None:
    resource = Resource()
    resource.may_open.set()

    assert await open_on_thread(resource.open, Resource.close) is resource

    assert (resource.is_open, resource.is_closed.is_set()) == (True, False)


async def test_resource_opened_after_the_caller_was_cancelled_is_closed() -> None:
    resource = Resource()
    waiting = asyncio.create_task(open_on_thread(resource.open, Resource.close))
    await asyncio.to_thread(resource.is_opening.wait, HANGS_AFTER_S)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert not resource.is_closed.is_set()
    resource.may_open.set()

    assert await asyncio.to_thread(resource.is_closed.wait, HANGS_AFTER_S)
    assert resource.is_open


async def test_resource_opened_before_the_caller_was_cancelled_is_closed() -> None:
    resource = Resource()
    waiting = asyncio.create_task(open_on_thread(resource.open, Resource.close))
    await asyncio.to_thread(resource.is_opening.wait, HANGS_AFTER_S)

    resource.may_open.set()
    while not resource.is_open:  # the loop is blocked meanwhile: it cannot return the resource
        pass
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert await asyncio.to_thread(resource.is_closed.wait, HANGS_AFTER_S)


async def test_file_that_nobody_waits_for_is_closed(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)  # opening it to read waits for a writer
    is_opening = threading.Event()
    files: list[BinaryIO] = []

    def open_pipe() -> BinaryIO:
        is_opening.set()
        files.append(pipe.open("rb"))
        return files[0]

    async def is_closed() -> bool:
        return bool(files) and files[0].closed

    waiting = asyncio.create_task(open_on_thread(open_pipe, close_file))
    await asyncio.to_thread(is_opening.wait, HANGS_AFTER_S)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with await asyncio.to_thread(pipe.open, "wb"):
        assert await poll_until(is_closed)


async def test_error_of_opening_reaches_the_caller(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        async with open_for_reading(tmp_path / "none"):
            pass


async def test_file_is_read_and_closed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")

    async with open_for_reading(tmp_path / "a") as file:
        assert file.read() == b"content"

    assert file.closed
