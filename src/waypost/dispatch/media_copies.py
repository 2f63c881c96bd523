"""Brings our uploads to the operator when a submission first needs them, and knows its names for them."""

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
"""A copy that is refused so soon after another was is not lost: uploading it again helps nobody."""
MOST_FORGOTTEN: Final = 10_000

NOTHING: Final = Found({}, {})

_Refusal = Rejected | Unavailable
_Upload = Callable[[Media], Awaitable[Uploaded | Rejected | Unavailable]]
_log = log("dispatch")


class Copies:
    """What the operator has of our uploads: a copy for each number, and a handle for each operator app."""

    def __init__(self, *, database: Database, files: MediaFiles, operators: Operators, clock: Clock) -> None:
        self._database = database
        self._files = files
        self._operators = operators
        self._clock = clock
        self._uploads = Uploads()
        self._tried_again: set[str] = set()
        # By place and our name: what the operator's was, and when it was forgotten.
        self._forgotten: dict[tuple[str, str], tuple[str, int]] = {}

    async def find(self, wanted: Sequence[Wanted]) -> list[Found]:
        """What is known of the media that submissions refer to; most refer to none, and cost nothing."""
        if not any(one.references for one in wanted):
            return [NOTHING] * len(wanted)
        return await self._database.read(find_copies, wanted, self._clock.now_ms())

    async def samples(self, account: OperatorAccount, partner_id: int, references: tuple[str, ...]) -> Found:
        """The operator's handles by our handles and media ids, and which of ours it has not yet.

        A reference that is several handles of ours, a line each, gets the operator's joined likewise.
        """
        lines = {whole: lines_of(whole) for whole in references}
        names = dict.fromkeys((*references, *(line for each in lines.values() for line in each)))
        [found] = await self.find([Wanted(partner_id, self._sample_place(account), tuple(names))])
        joined = {
            whole: "\n".join(found.copies.get(line, line) for line in each)
            for whole, each in lines.items()
            if whole not in found.missing and any(line in found.copies for line in each)
        }
        return replace(found, copies={**joined, **found.copies})

    def bring(self, line: Line, missing: Iterable[Media], tell: Tell) -> None:
        """Upload what a message needs to its number; `tell` is called once that has ended."""
        self._bring(
            missing,
            number_place(line),
            lambda one: self._operators.of(line.account).upload_media(
                line.account, line.app, one, self._files.path(one.sha256)
            ),
            tell,
        )

    def bring_samples(self, account: OperatorAccount, missing: Iterable[Media], tell: Tell) -> None:
        """Upload what a template shows; `tell` is called once that has ended."""
        self._bring(
            missing,
            self._sample_place(account),
            lambda one: self._operators.of(account).upload_sample(account, one, self._files.path(one.sha256)),
            tell,
        )

    @property
    def busy(self) -> bool:
        """Whether uploads go on."""
        return self._uploads.busy

    async def close(self) -> None:
        """Cut off the uploads that go on."""
        await self._uploads.close()

    async def has_lost(self, message_id: str, line: Line, found: Found, outcome: Outcome) -> bool:
        """Whether a refusal may mean that the operator has lost what we named; then it is forgotten.

        Once for each message, and one medium is forgotten at most every `FORGET_EVERY_MS`: a refusal
        that comes again has another cause. Whoever has still named what is forgotten tries again.
        """
        is_lost = isinstance(outcome, Rejected) and outcome.is_about_media
        again = message_id in self._tried_again
        if not isinstance(outcome, Unavailable):
            self._tried_again.discard(message_id)
        if not is_lost or again:
            return False
        now_ms, place = self._clock.now_ms(), number_place(line)
        lost: set[str] = set()
        is_forgotten = False
        for reference, operator_id in found.copies.items():
            name, since_ms = self._forgotten.get((place, reference), ("", 0))
            is_recent = bool(name) and now_ms < since_ms + FORGET_EVERY_MS
            if is_recent:
                is_forgotten = is_forgotten or name == operator_id
            else:
                if len(self._forgotten) >= MOST_FORGOTTEN:
                    self._forgotten.clear()
                self._forgotten[place, reference] = (operator_id, now_ms)
                lost.add(operator_id)
        if lost:
            _log.info("the operator may have lost a medium; it is uploaded again")
            await self._database.write(drop_copies, place, sorted(lost))
        if lost or is_forgotten:
            self._tried_again.add(message_id)
        return bool(lost) or is_forgotten

    def _sample_place(self, account: OperatorAccount) -> str:
        """Where the samples of templates are."""
        return f"{account.id} app {self._operators.of(account).sample_owner(account)}"

    def _bring(self, missing: Iterable[Media], place: str, upload: _Upload, tell: Tell) -> None:
        self._uploads.bring({(one.id, place): partial(self._brought, one, place, upload) for one in missing}, tell)

    async def _brought(self, media: Media, place: str, upload: _Upload) -> _Refusal | None:
        """Upload one medium to one place, unless somebody just has."""
        [found] = await self.find([Wanted(media.partner_id, place, (media.id,))])
        if media.id in found.copies:
            return None
        outcome = await upload(media)
        if not isinstance(outcome, Uploaded):
            return outcome
        until_ms = self._clock.now_ms() + outcome.life_ms
        copy = Copy(media.id, place, outcome.operator_id, until_ms)
        await self._database.join(record_copies, copy)
        return None


def number_place(line: Line) -> str:
    """Where a number's media are: no two operator accounts share any, whatever ids they give."""
    return f"{line.account.id} {line.app.phone_number_id}"
