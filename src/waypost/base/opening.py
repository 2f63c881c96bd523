"""Files that are opened on a thread: whoever stops waiting leaves none open."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import BinaryIO, Generic, TypeVar

Opened = TypeVar("Opened")


async def open_on_thread(open_it: Callable[[], Opened], close: Callable[[Opened], object]) -> Opened:
    """What a thread opens. Where the caller is cancelled before it has it, it is closed again.

    Args:
        open_it: opens it; what this raises is the caller's.
        close: closes what the caller never got.
    """
    opening = _Opening(open_it, close)
    try:
        return await asyncio.to_thread(opening.run)
    except asyncio.CancelledError:
        opening.abandon()
        raise


@asynccontextmanager
async def opened(path: Path) -> AsyncGenerator[BinaryIO]:
    """A file to read from.

    Raises:
        FileNotFoundError: there is none.
    """
    file = await open_on_thread(lambda: path.open("rb"), close_file)
    with file:  # closed here and now: one more wait could be cancelled too
        yield file


def close_file(file: BinaryIO) -> None:
    """Close a file. `BinaryIO.close` is a declaration that does nothing."""
    file.close()


class _Opening(Generic[Opened]):
    def __init__(self, open_it: Callable[[], Opened], close: Callable[[Opened], object]) -> None:
        self._open_it = open_it
        self._close = close
        self._opened: list[Opened] = []
        self._is_abandoned = False
        self._deciding = threading.Lock()  # held for a moment only, by the thread and by who gives up

    def run(self) -> Opened:
        found = self._open_it()
        with self._deciding:
            self._opened.append(found)
            if self._is_abandoned:
                self._close(found)
        return found

    def abandon(self) -> None:
        with self._deciding:
            self._is_abandoned = True
            for found in self._opened:
                self._close(found)
