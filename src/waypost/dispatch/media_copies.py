"""Uploads media to the operator when an outbound job first needs them, and finds the operator's ids of them."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from waypost.base.telemetry.logs import log
from waypost.dispatch.uploads import NotifyUploadEnd, UploadScheduler
from waypost.domain.app import AppRoute, OperatorAccount
from waypost.domain.media import UploadedMedia, handle_lines
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable, Outcome
from waypost.operators.contract import OperatorUpload
from waypost.queue.context import StageContext
from waypost.store.media.media import (
    KnownMediaCopies,
    MediaReferences,
    OperatorCopy,
    delete_copies,
    find_copies,
    record_copies,
)

COPY_DROP_INTERVAL_MS: Final = 10 * 60 * 1000
"""A copy that is rejected so soon after another was is not lost: uploading it again does not help."""
MAX_DROPPED_COPIES: Final = 10_000

NO_COPIES: Final = KnownMediaCopies({}, {})

_FailedUpload = OperatorRejected | OperatorUnavailable
_UploadCall = Callable[[UploadedMedia, Path], Awaitable[OperatorUpload | OperatorRejected | OperatorUnavailable]]
_log = log("dispatch")


class MediaCopies:
    """The operator's copies of our media: one for each number, and a handle for each operator app."""

    def __init__(self, context: StageContext) -> None:
        self._database, self._files = context.database, context.files
        self._operators, self._clock = context.operators, context.clock
        self.uploads = UploadScheduler()
        self._retried_messages: set[str] = set()
        # By location and our id: the operator's id, and when it was dropped.
        self._dropped_copies: dict[tuple[str, str], tuple[str, int]] = {}

    async def find_copies(self, queries: Sequence[MediaReferences]) -> list[KnownMediaCopies]:
        """Return the copies of the media that outbound jobs refer to."""
        return await self._database.read(find_copies, queries, self._clock.now_ms())

    async def find_samples(
        self, account: OperatorAccount, partner_id: int, references: tuple[str, ...]
    ) -> KnownMediaCopies:
        """Return the operator's handles by our handles and media ids, and which of ours it does not have yet.

        A reference that is several handles of ours, a line each, gets the operator's joined likewise.
        """
        if not references:
            return NO_COPIES
        lines = {whole: handle_lines(whole) for whole in references}
        names = dict.fromkeys((*references, *(line for each in lines.values() for line in each)))
        query = MediaReferences(partner_id, self._sample_location(account), tuple(names))
        find = partial(find_copies, with_expired=True)
        [known] = await self._database.read(find, [query], self._clock.now_ms())
        joined = {
            whole: "\n".join(known.copies.get(line, line) for line in each)
            for whole, each in lines.items()
            if whole not in known.missing and any(line in known.copies for line in each)
        }
        return replace(known, copies={**joined, **known.copies})

    def upload_message_media(self, route: AppRoute, missing: Iterable[UploadedMedia], notify: NotifyUploadEnd) -> None:
        """Upload what a message needs to its number; `notify` is called once that has ended."""
        upload = partial(self._operators.adapter(route.account).upload_media, route.account, route.app)
        self._start_uploads(missing, number_location(route), upload, notify)

    def upload_samples(
        self, account: OperatorAccount, missing: Iterable[UploadedMedia], notify: NotifyUploadEnd
    ) -> None:
        """Upload what a template shows; `notify` is called once that has ended."""
        upload = partial(self._operators.adapter(account).upload_sample, account)
        self._start_uploads(missing, self._sample_location(account), upload, notify)

    async def drop_lost_copies(
        self, message_id: str, route: AppRoute, media: KnownMediaCopies, outcome: Outcome
    ) -> bool:
        """Drop copies that the operator may have lost, by its rejection; return True to retry the message.

        Once for each message, and one copy at most every `COPY_DROP_INTERVAL_MS`: a rejection that comes
        again has another cause. A message that still named a copy that was dropped is retried too.
        """
        is_lost = isinstance(outcome, OperatorRejected) and outcome.is_about_media
        was_retried = message_id in self._retried_messages
        if not isinstance(outcome, OperatorUnavailable):
            self._retried_messages.discard(message_id)
        if not is_lost or was_retried:
            return False
        now_ms, location = self._clock.now_ms(), number_location(route)
        lost: set[str] = set()
        is_dropped = False
        for reference, operator_id in media.copies.items():
            dropped_id, dropped_ms = self._dropped_copies.get((location, reference), ("", 0))
            is_recent = bool(dropped_id) and now_ms < dropped_ms + COPY_DROP_INTERVAL_MS
            if is_recent:
                is_dropped = is_dropped or dropped_id == operator_id
            else:
                if len(self._dropped_copies) >= MAX_DROPPED_COPIES:
                    self._dropped_copies.clear()
                self._dropped_copies[location, reference] = (operator_id, now_ms)
                lost.add(operator_id)
        if lost:
            _log.info("the operator may have lost a media file; it is uploaded again")
            await self._database.write(delete_copies, location, sorted(lost))
        if lost or is_dropped:
            self._retried_messages.add(message_id)
        return bool(lost) or is_dropped

    def _sample_location(self, account: OperatorAccount) -> str:
        """Return the location of the samples of templates."""
        return f"{account.id} app {self._operators.adapter(account).sample_owner(account)}"

    def _start_uploads(
        self, missing: Iterable[UploadedMedia], location: str, upload: _UploadCall, notify: NotifyUploadEnd
    ) -> None:
        self.uploads.schedule(
            {(media.id, location): partial(self._upload_once, media, location, upload) for media in missing}, notify
        )

    async def _upload_once(self, media: UploadedMedia, location: str, upload: _UploadCall) -> _FailedUpload | None:
        """Upload one medium to one location, unless it was uploaded there just now."""
        [known] = await self.find_copies([MediaReferences(media.partner_id, location, (media.id,))])
        if media.id in known.copies:
            return None
        outcome = await upload(media, await self._files.local_path(media.sha256))
        if not isinstance(outcome, OperatorUpload):
            return outcome
        until_ms = self._clock.now_ms() + outcome.life_ms
        copy = OperatorCopy(media.id, location, outcome.operator_id, until_ms)
        await self._database.join(record_copies, copy)
        return None


def number_location(route: AppRoute) -> str:
    """Return the location of a number's media: no two operator accounts share any, whatever ids they give."""
    return f"{route.account.id} {route.app.phone_number_id}"
