"""Faults of the disk of SQLite that a seed chooses: it is full for a while, or some of its flushes fail.

What a person would see of each is an error for the request that could not be stored. A 500 is the documented response
then, and at no other time; a defect of the service is one even then.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

from simulation.choices import Choices, declare
from simulation.disk import Disk, DiskFault
from simulation.observed import Observed
from waypost.store.engines import sqlite

LOOK_EVERY_S: Final = 4
SHARE: Final = 0.12
_KINDS: Final = {
    "disk is full": "the disk of the service was full",
    "disk does not flush": "flushes of the disk of the service failed",
}
_FULL_S: Final = (5, 10, 20, 40)
_NOT_FLUSHED_S: Final = (1, 5, 20)
_FULL: Final = (DiskFault.FULL, DiskFault.FULL_FOR_GROWTH)
_MET_BY_EVERY: Final = (1, 2, 5)
CHECKPOINT_PAGES: Final = (4000, 20, 100)
"""The setting of the service, and smaller ones: else so small a store is copied from its log at the end only."""
LOGGED_PAGE_BYTES: Final = 4120

declare(_KINDS)


class StorageFaults:
    """The faults of one disk, until `stop`."""

    def __init__(self, disk: Disk, choices: Choices, observed: Observed) -> None:
        self._disk, self._choices, self._observed = disk, choices, observed
        self._is_on = False
        self._task: asyncio.Task[None] | None = None
        set_checkpoints(choices.pick("pages until a checkpoint", CHECKPOINT_PAGES))

    def start(self) -> None:
        """Begin with faults."""
        self._is_on = True
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Let every operation succeed from now on."""
        self._is_on = False
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while self._is_on:
            await asyncio.sleep(LOOK_EVERY_S)
            is_full, is_not_flushed = [self._choices.happens(kind, SHARE) for kind in _KINDS]
            if is_full:
                fault = self._choices.pick("writes", _FULL, of="disk is full")
                await self._meet(fault, "disk is full", _FULL_S)
            elif is_not_flushed:
                await self._meet(DiskFault.FAILED_SYNC, "disk does not flush", _NOT_FLUSHED_S)

    async def _meet(self, fault: DiskFault, kind: str, seconds: tuple[float, ...]) -> None:
        """Let operations of the disk meet a fault for a while."""
        self._disk.met_by_every = self._choices.pick("one of", _MET_BY_EVERY, of=kind)
        for_s = self._choices.pick("seconds", seconds, of=kind)
        with self._observed.storage_failure():
            self._disk.fault = fault
            await asyncio.sleep(for_s)
            self._disk.fault = None


def set_checkpoints(pages: int) -> None:
    """Let the service copy the log into the file after so many pages."""
    sqlite.MAX_LOG_BYTES = pages * LOGGED_PAGE_BYTES
    others: Iterable[tuple[Any, Any]] = (row for row in sqlite.PRAGMAS if row[0] != "journal_size_limit")
    sqlite.PRAGMAS = (*others, ("journal_size_limit", str(sqlite.MAX_LOG_BYTES)))
