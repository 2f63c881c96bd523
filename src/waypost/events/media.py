"""Media: fetches those of inbound messages, in a queue so that no event waits for them, and deletes expired ones."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from waypost.base.backoff import delay_ms
from waypost.base.clock import Clock
from waypost.base.telemetry.logs import log
from waypost.domain.media import MAX_UPLOAD_BYTES, InboundMedia
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable
from waypost.queue.context import StageContext
from waypost.queue.job import Job
from waypost.queue.worker import PreparedJobs
from waypost.store.database import Database
from waypost.store.media.files import MediaFiles
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


_log = log("media")


class InboundMediaFetcher:
    """The work of the queue `media`."""

    def __init__(self, context: StageContext) -> None:
        self._context = context

    async def prepare(self, jobs: Sequence[Job]) -> PreparedJobs:
        """Read the media to be fetched, and return the work of each job."""
        known = await self._context.database.read(inbound_by_keys, [job.subject.id for job in jobs])
        return [(job, partial(self._fetch, job, known.get(job.subject.id))) for job in jobs]

    async def _fetch(self, job: Job, media: InboundMedia | None) -> None:
        kind, key, account_id = job.subject
        if kind is not SubjectKind.INBOUND_MEDIA:
            raise LookupError(f"this is no medium: {key}")
        now_ms, fetched = self._context.clock.now_ms(), FetchOutcome(job.position, key)
        if media is None or media.sha256 is not None or media.failure is not None:
            pass  # that was done before
        elif now_ms >= media.expires_on_ms:
            fetched = FetchOutcome(job.position, key, failure=MEDIA_EXPIRED)
        else:
            match await self._fetch_bytes(media, account_id, job.concurrency_group):
                case str(sha256):
                    fetched = FetchOutcome(job.position, key, sha256=sha256)
                case OperatorRejected(code=code, text=text):
                    _log.warning("an inbound media file could not be fetched", code=code)
                    reason = f"the operator does not give it: {text} ({code})"
                    fetched = FetchOutcome(job.position, key, failure=reason)
                case OperatorUnavailable(text=text):
                    due_ms = now_ms + delay_ms(MEDIA_RETRY_SCHEDULE_S, job.attempt + 1, self._context.chance)
                    await self._context.queue.retry_later(job, due_ms=min(due_ms, media.expires_on_ms), note=text)
                    return
        await self._context.queue.complete(job, record_fetches, fetched)

    async def _fetch_bytes(
        self, media: InboundMedia, account_id: str, phone_number_id: str
    ) -> str | OperatorRejected | OperatorUnavailable:
        """Store the bytes and return their digest: from the account that reported them, wherever its app is now."""
        account = await self._context.directory.operator_account(account_id)
        if account is None:
            return OperatorRejected(0, "its operator account is not there any more")
        try:
            incoming = await self._context.files.begin()
            try:
                async for chunk in self._context.operators.adapter(account).fetch_media(
                    account, media.operator_media_id, phone_number_id=phone_number_id or None
                ):
                    if not isinstance(chunk, bytes):
                        return chunk
                    await incoming.add(chunk)
                    if incoming.size_bytes > MAX_UPLOAD_BYTES:
                        return OperatorRejected(0, f"it is larger than {MAX_UPLOAD_BYTES} bytes")
                return await incoming.commit()
            finally:
                await incoming.discard()
        except OSError as error:  # our disk is full, or fails: no defect of the job
            _log.warning("an inbound media file could not be stored", reason=error.strerror)
            return OperatorUnavailable(f"it cannot be stored: {error.strerror}")


MEDIA_SWEEP_EVERY_MS: Final = 60 * 60 * 1000


class MediaSweep:
    """Sweeps at the start and then every hour."""

    def __init__(self, database: Database, files: MediaFiles, clock: Clock) -> None:
        self._database = database
        self._files = files
        self._clock = clock
        self._stopped = asyncio.Event()

    async def run(self) -> None:
        """Sweep until `stop`; a store or a disk that cannot be reached makes it wait for the next time."""
        while not self._stopped.is_set():
            try:
                await self.sweep()
            except Exception:  # noqa: BLE001  logged; the next sweep does what this one did not
                _log.exception("media could not be swept")
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
            _log.info("media files were removed", count=removed)
        return removed

    def stop(self) -> None:
        """Make `run` return."""
        self._stopped.set()
