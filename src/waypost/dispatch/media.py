"""Brings our uploads to the operator when a submission first needs them, and knows its names for them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final
from weakref import WeakValueDictionary

from waypost.base.clock import Clock
from waypost.base.logs import log
from waypost.domain.app import App, OperatorAccount
from waypost.domain.media import Media
from waypost.domain.outcome import Outcome, Rejected, Unavailable
from waypost.operators.contract import Operator, Uploaded
from waypost.store.database import Database
from waypost.store.files import MediaFiles
from waypost.store.media import Copy, Found, Wanted, drop_copies, find_copies, record_copies

LOST_CODES: Final = frozenset({100, 131009, 131053})
"""What the operator answers to a media id that it does not have (any more). Source: operator's facts 1, 5.2."""

NOTHING: Final = Found({}, {})

_Refusal = Rejected | Unavailable
_Upload = Callable[[Media], Awaitable[Uploaded | Rejected | Unavailable]]
_log = log("dispatch")


class Copies:
    """What the operator has of our uploads: a copy for each number, and a handle for each operator app."""

    def __init__(
        self, *, database: Database, files: MediaFiles, operator: Operator, clock: Clock
    ) -> None:
        self._database = database
        self._files = files
        self._operator = operator
        self._clock = clock
        self._locks: WeakValueDictionary[tuple[str, str], asyncio.Lock] = WeakValueDictionary()
        self._tried_again: set[str] = set()

    async def find(self, wanted: Sequence[Wanted]) -> list[Found]:
        """What is known of the media that submissions refer to; most refer to none, and cost nothing."""
        if not any(one.references for one in wanted):
            return [NOTHING] * len(wanted)
        return await self._database.read(find_copies, wanted, self._clock.now_ms())

    async def upload(
        self, account: OperatorAccount, app: App, missing: Sequence[Media]
    ) -> _Refusal | None:
        """Upload what a message needs to its number; None once the operator has all of it."""
        for media in missing:
            outcome = await self._uploaded(
                media,
                app.phone_number_id,
                lambda one: self._operator.upload_media(
                    account, app, one, self._files.path(one.sha256)
                ),
            )
            if not isinstance(outcome, str):
                return outcome
        return None

    async def handles(
        self, account: OperatorAccount, partner_id: int, references: tuple[str, ...]
    ) -> dict[str, str] | _Refusal:
        """The operator's handles by our handles and media ids, each uploaded where it was not yet."""
        if not references:
            return {}
        place = f"app {account.app_id}"
        [found] = await self.find([Wanted(partner_id, place, references)])
        handles = dict(found.copies)
        for reference, media in found.missing.items():
            outcome = await self._uploaded(
                media,
                place,
                lambda one: self._operator.upload_sample(
                    account, one, self._files.path(one.sha256)
                ),
            )
            if not isinstance(outcome, str):
                return outcome
            handles[reference] = outcome
        return handles

    async def has_lost(self, message_id: str, app: App, found: Found, outcome: Outcome) -> bool:
        """Whether a refusal may mean that the operator has lost what we named; then it is forgotten.

        Once for each message: a refusal that comes again has another cause.
        """
        is_lost = isinstance(outcome, Rejected) and outcome.code in LOST_CODES
        again = message_id in self._tried_again
        if not isinstance(outcome, Unavailable):
            self._tried_again.discard(message_id)
        if not is_lost or again or not found.copies:
            return False
        self._tried_again.add(message_id)
        _log.info("the operator may have lost a medium; it is uploaded again")
        names = sorted(set(found.copies.values()))
        await self._database.write(drop_copies, app.phone_number_id, names)
        return True

    async def _uploaded(self, media: Media, place: str, upload: _Upload) -> str | _Refusal:
        """Upload one medium to one place, unless somebody just has; give the operator's name for it."""
        key = (media.id, place)
        lock = self._locks.get(key)
        if lock is None:
            lock = self._locks[key] = asyncio.Lock()
        async with lock:
            [found] = await self.find([Wanted(media.partner_id, place, (media.id,))])
            if media.id in found.copies:
                return found.copies[media.id]
            outcome = await upload(media)
            if not isinstance(outcome, Uploaded):
                return outcome
            until_ms = self._clock.now_ms() + outcome.life_ms
            copy = Copy(media.id, place, outcome.operator_id, until_ms)
            await self._database.join(record_copies, copy)
            return outcome.operator_id
