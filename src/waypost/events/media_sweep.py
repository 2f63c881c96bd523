"""Deletes expired media, and removes the files that nothing refers to any more."""

import asyncio
from collections.abc import Sequence
from typing import Final

from waypost.base.clock import Clock
from waypost.base.telemetry.logs import log
from waypost.store.database import Database
from waypost.store.media.files import MediaFiles
from waypost.store.media.media import delete_expired_media, referenced_files
from waypost.store.templates.gallery import expiring_samples, renew_uploads

MEDIA_SWEEP_EVERY_MS: Final = 60 * 60 * 1000


class MediaSweep:
    """Sweeps at the start and then every hour."""

    def __init__(self, database: Database, files: MediaFiles, clock: Clock) -> None:
        self._database = database
        self._files = files
        self._clock = clock
        self._stopped = asyncio.Event()
        self._log = log("media")

    async def run(self) -> None:
        """Sweep until `stop`; a store or a disk that cannot be reached makes it wait for the next time."""
        while not self._stopped.is_set():
            try:
                await self.sweep()
            except Exception:  # noqa: BLE001  logged; the next sweep does what this one did not
                self._log.exception("media could not be swept")
            await self._clock.wait(self._stopped, until_ms=self._clock.now_ms() + MEDIA_SWEEP_EVERY_MS)

    async def sweep(self) -> int:
        """Sweep once; return how many files were removed.

        Rows go first, except samples that a template names. A file whose bytes another row still has
        stays.
        """
        now_ms = self._clock.now_ms()
        samples = await self._database.read(expiring_samples, now_ms)
        await self._database.write(renew_uploads, samples, now_ms)
        while await self._database.write(delete_expired_media, now_ms):
            pass  # some at a time: other work that waits for the writer comes in between

        async def referenced(names: Sequence[str]) -> set[str]:
            return await self._database.read(referenced_files, names)

        removed = await self._files.sweep(referenced)
        if removed:
            self._log.info("media files were removed", count=removed)
        return removed

    def stop(self) -> None:
        """Make `run` return."""
        self._stopped.set()
