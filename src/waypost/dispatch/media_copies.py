"""Uploads media to the operator when an outbound job first needs them, and finds the operator's ids of them."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from waypost.base.clock import Clock
from waypost.base.telemetry.logs import log
from waypost.dispatch.uploads import Tell, Uploads
from waypost.domain.app import Line, OperatorAccount
from waypost.domain.media import Media, lines_of
from waypost.domain.outcome import Outcome, Rejected, Unavailable
from waypost.operators.contract import Operators, Uploaded
from waypost.store.database import Database
from waypost.store.media.files import MediaFiles
from waypost.store.media.media import Copy, Found, Wanted, drop_copies, find_copies, record_copies

FORGET_EVERY_MS: Final = 10 * 60 * 1000
"""A copy that is rejected so soon after another was is not lost: uploading it again does not help."""
MOST_FORGOTTEN: Final = 10_000

NOTHING: Final = Found({}, {})

_Refusal = Rejected | Unavailable
_Upload = Callable[[Media], Awaitable[Uploaded | Rejected | Unavailable]]
_log = log("dispatch")


class Copies:
    """The operator's copies of our media: one for each number, and a handle for each operator app."""

    def __init__(self, *, database: Database, files: MediaFiles, operators: Operators, clock: Clock) -> None:
        self._database = database
        self._files = files
        self._operators = operators
        self._clock = clock
        self._uploads = Uploads()
        self._tried_again: set[str] = set()
        # By location and our id: the operator's id, and when it was dropped.
        self._forgotten: dict[tuple[str, str], tuple[str, int]] = {}

    async def find(self, wanted: Sequence[Wanted]) -> list[Found]:
        """Return the copies of the media that outbound jobs refer to; most refer to none, and cost nothing."""
        if not any(query.references for query in wanted):
            return [NOTHING] * len(wanted)
        return await self._database.read(find_copies, wanted, self._clock.now_ms())

    async def samples(self, account: OperatorAccount, partner_id: int, references: tuple[str, ...]) -> Found:
        """Return the operator's handles by our handles and media ids, and which of ours it does not have yet.

        A reference that is several handles of ours, a line each, gets the operator's joined likewise.
        """
        lines = {whole: lines_of(whole) for whole in references}
        names = dict.fromkeys((*references, *(line for each in lines.values() for line in each)))
        [known] = await self.find([Wanted(partner_id, self._sample_place(account), tuple(names))])
        joined = {
            whole: "\n".join(known.copies.get(line, line) for line in each)
            for whole, each in lines.items()
            if whole not in known.missing and any(line in known.copies for line in each)
        }
        return replace(known, copies={**joined, **known.copies})

    def bring(self, line: Line, missing: Iterable[Media], tell: Tell) -> None:
        """Upload what a message needs to its number; `notify` is called once that has ended."""
        self._bring(
            missing,
            number_place(line),
            lambda media: self._operators.of(line.account).upload_media(
                line.account, line.app, media, self._files.path(media.sha256)
            ),
            tell,
        )

    def bring_samples(self, account: OperatorAccount, missing: Iterable[Media], tell: Tell) -> None:
        """Upload what a template shows; `notify` is called once that has ended."""
        self._bring(
            missing,
            self._sample_place(account),
            lambda media: self._operators.of(account).upload_sample(account, media, self._files.path(media.sha256)),
            tell,
        )

    @property
    def busy(self) -> bool:
        """True if anything is being uploaded."""
        return self._uploads.busy

    async def close(self) -> None:
        """Cancel running uploads."""
        await self._uploads.close()

    async def has_lost(self, message_id: str, line: Line, found: Found, outcome: Outcome) -> bool:
        """Drop copies that the operator may have lost, by its rejection; return True to retry the message.

        Once for each message, and one copy at most every `COPY_DROP_INTERVAL_MS`: a rejection that comes
        again has another cause. A message that still named a copy that was dropped is retried too.
        """
        is_lost = isinstance(outcome, Rejected) and outcome.is_about_media
        was_retried = message_id in self._tried_again
        if not isinstance(outcome, Unavailable):
            self._tried_again.discard(message_id)
        if not is_lost or was_retried:
            return False
        now_ms, location = self._clock.now_ms(), number_place(line)
        lost: set[str] = set()
        is_dropped = False
        for reference, operator_id in found.copies.items():
            dropped_id, dropped_ms = self._forgotten.get((location, reference), ("", 0))
            is_recent = bool(dropped_id) and now_ms < dropped_ms + FORGET_EVERY_MS
            if is_recent:
                is_dropped = is_dropped or dropped_id == operator_id
            else:
                if len(self._forgotten) >= MOST_FORGOTTEN:
                    self._forgotten.clear()
                self._forgotten[location, reference] = (operator_id, now_ms)
                lost.add(operator_id)
        if lost:
            _log.info("the operator may have lost a media file; it is uploaded again")
            await self._database.write(drop_copies, location, sorted(lost))
        if lost or is_dropped:
            self._tried_again.add(message_id)
        return bool(lost) or is_dropped

    def _sample_place(self, account: OperatorAccount) -> str:
        """Return the location of the samples of templates."""
        return f"{account.id} app {self._operators.of(account).sample_owner(account)}"

    def _bring(self, missing: Iterable[Media], place: str, upload: _Upload, tell: Tell) -> None:
        self._uploads.bring(
            {(media.id, place): partial(self._brought, media, place, upload) for media in missing}, tell
        )

    async def _brought(self, media: Media, place: str, upload: _Upload) -> _Refusal | None:
        """Upload one medium to one location, unless it was uploaded there just now."""
        [known] = await self.find([Wanted(media.partner_id, place, (media.id,))])
        if media.id in known.copies:
            return None
        outcome = await upload(media)
        if not isinstance(outcome, Uploaded):
            return outcome
        until_ms = self._clock.now_ms() + outcome.life_ms
        copy = Copy(media.id, place, outcome.operator_id, until_ms)
        await self._database.join(record_copies, copy)
        return None


def number_place(line: Line) -> str:
    """Return the location of a number's media: no two operator accounts share any, whatever ids they give."""
    return f"{line.account.id} {line.app.phone_number_id}"
