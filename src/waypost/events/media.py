"""Media: fetches those of inbound messages, in a queue so that no event waits for them, and deletes expired ones."""

import asyncio
import random
from collections.abc import Sequence
from typing import Final

from waypost.base.backoff import delay_ms
from waypost.base.clock import Clock
from waypost.base.telemetry.logs import log
from waypost.domain.app import OperatorAccount
from waypost.domain.media import MAX_UPLOAD_BYTES, InboundMedia
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable
from waypost.operators.contract import Operators
from waypost.queue.job import Job
from waypost.queue.queue import JobQueue
from waypost.queue.worker import JobWork, PreparedJobs
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.media.files import IncomingFile, MediaFiles, NotEnoughSpace
from waypost.store.media.media import (
    FetchOutcome,
    delete_expired_media,
    inbound_by_keys,
    record_fetches,
    referenced_files,
)
from waypost.store.queue.job_subjects import SubjectKind
from waypost.store.templates.gallery import expiring_samples, renew_uploads

MEDIA_RETRY_SCHEDULE_S: Final = (1, 2, 5, 10, 30, 60, 300, 900, 3600)
"""Delays between attempts; the last repeats until the medium expires."""

MEDIA_EXPIRED: Final = "its time was over before the operator gave it"


class InboundMediaFetcher:
    """The work of the queue `media`."""

    def __init__(
        self,
        *,
        database: Database,
        queue: JobQueue,
        directory: Directory,
        operators: Operators,
        files: MediaFiles,
        clock: Clock,
        chance: random.Random,
    ) -> None:
        self._database = database
        self._queue = queue
        self._directory = directory
        self._operators = operators
        self._files = files
        self._clock = clock
        self._chance = chance
        self._log = log("media")

    async def prepare(self, jobs: Sequence[Job]) -> PreparedJobs:
        """Read the media to be fetched, and return the work of each job."""
        known = await self._database.read(inbound_by_keys, [job.subject.id for job in jobs])

        def work_of(job: Job) -> JobWork:
            return lambda: self._fetch(job, known.get(job.subject.id))

        return [(job, work_of(job)) for job in jobs]

    async def _fetch(self, job: Job, media: InboundMedia | None) -> None:
        kind, key, account_id = job.subject
        if kind is not SubjectKind.INBOUND_MEDIA:
            raise LookupError(f"this is no medium: {key}")
        if media is None or media.sha256 is not None or media.failure is not None:
            await self._complete(job, FetchOutcome(job.position, key))
            return
        now_ms = self._clock.now_ms()
        if now_ms >= media.expires_on_ms:
            await self._complete(job, FetchOutcome(job.position, key, failure=MEDIA_EXPIRED))
            return
        match await self._fetch_bytes(media, account_id, job.concurrency_group):
            case str(sha256):
                await self._complete(job, FetchOutcome(job.position, key, sha256=sha256))
            case OperatorRejected(code=code, text=text):
                self._log.warning("an inbound media file could not be fetched", code=code)
                reason = f"the operator does not give it: {text} ({code})"
                await self._complete(job, FetchOutcome(job.position, key, failure=reason))
            case OperatorUnavailable(text=text):
                due_ms = now_ms + delay_ms(MEDIA_RETRY_SCHEDULE_S, job.attempt + 1, self._chance)
                due_ms = min(due_ms, media.expires_on_ms)
                await self._queue.retry_later(job, due_ms=due_ms, note=text)

    async def _fetch_bytes(
        self, media: InboundMedia, account_id: str, phone_number_id: str
    ) -> str | OperatorRejected | OperatorUnavailable:
        """Store the bytes and return their digest: from the account that reported them, wherever its app is now."""
        account = await self._directory.operator_account(account_id)
        if account is None:
            return OperatorRejected(0, "its operator account is not there any more")
        try:
            return await self._store_bytes(account, media, phone_number_id)
        except NotEnoughSpace as error:
            return OperatorUnavailable(str(error.strerror))

    async def _store_bytes(
        self, account: OperatorAccount, media: InboundMedia, phone_number_id: str
    ) -> str | OperatorRejected | OperatorUnavailable:
        incoming = await self._files.begin()
        try:
            chunks = self._operators.adapter(account).fetch_media(
                account, media.operator_media_id, phone_number_id=phone_number_id or None
            )
            async for chunk in chunks:
                if not isinstance(chunk, bytes):
                    return chunk
                too_large = await self._add_chunk(incoming, chunk)
                if too_large is not None:
                    return too_large
            return await incoming.commit()
        finally:
            await incoming.discard()

    async def _add_chunk(self, incoming: IncomingFile, chunk: bytes) -> OperatorRejected | None:
        await incoming.add(chunk)
        if incoming.size_bytes > MAX_UPLOAD_BYTES:
            return OperatorRejected(0, f"it is larger than {MAX_UPLOAD_BYTES} bytes")
        return None

    async def _complete(self, job: Job, outcome: FetchOutcome) -> None:
        await self._queue.complete(job, record_fetches, outcome)


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
