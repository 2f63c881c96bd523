"""Media that messages refer to by id: uploaded by a business, or sent in by a phone."""

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Final

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.simulator.files import Files
from waypost.simulator.media.media_kinds import MediaKind, check_size, media_kind, too_large
from waypost.simulator.store import Row, Store

_DAY_MS: Final = 24 * 3600 * 1000
UPLOADED_LIVE_MS: Final = 30 * _DAY_MS  # Source: facts 6.1, "life"
INBOUND_LIVE_MS: Final = 7 * _DAY_MS
_PREFIX: Final = "media-"
_BEGINNING_BYTES: Final = 32

_KEEP: Final = "INSERT OR REPLACE INTO media VALUES (?,?,?,?,?,?,?,?,?)"
_DROP: Final = "DELETE FROM media WHERE media_id=?"


@dataclass(frozen=True)
class Media:
    """One file with an id.

    Args:
        media_id: 16 digits.
        phone_number_id: the business number it was uploaded on, or sent to.
        mime_type: in lower case, without parameters.
        file_name: as it was uploaded; empty when it had none.
        size_bytes: of the whole.
        sha256: of the content, 64 hex digits.
        is_inbound: whether a phone sent it.
        expires_ms: from then on the id is not there any more.
    """

    media_id: str
    phone_number_id: str
    mime_type: str
    file_name: str
    size_bytes: int
    sha256: str
    is_inbound: bool
    created_ms: int
    expires_ms: int

    @property
    def sha256_base64(self) -> str:
        """The digest as webhooks write it. Source: facts 6.1."""
        return base64.b64encode(bytes.fromhex(self.sha256)).decode()

    @property
    def content_name(self) -> str:
        """The file that holds its bytes."""
        return _PREFIX + self.media_id


class MediaShelf:
    """Every media file: kept in memory without its bytes, which are on disk."""

    def __init__(self, store: Store, files: Files, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._files = files
        self._clock = clock
        self._ids = ids
        self.all: dict[str, Media] = {}

    async def open(self) -> None:
        """Read what is there, and remove what is past its time or was never answered for."""
        now_ms = self._clock.now_ms()
        for row in await self._store.rows("SELECT * FROM media ORDER BY rowid"):
            media_id, number_id, mime, name, size, sha256, is_inbound, created_ms, expires_ms = row
            media = Media(
                media_id, number_id, mime, name, size, sha256, bool(is_inbound), created_ms,
                expires_ms,
            )  # fmt: skip
            if media.expires_ms > now_ms:
                self.all[media.media_id] = media
        await self._store.run([("DELETE FROM media WHERE expires_ms<=?", (now_ms,))])
        await self._files.sweep(_PREFIX, {media.content_name for media in self.all.values()})

    def find(self, media_id: str, phone_number_id: str | None = None) -> Media | None:
        """The media of an id, while it lives.

        Args:
            media_id: its id.
            phone_number_id: the number that wants to use it; another number's media is not there.
        """
        media = self.all.get(media_id)
        if media is None or media.expires_ms <= self._clock.now_ms():
            return None
        return media if phone_number_id in (None, media.phone_number_id) else None

    async def take(
        self,
        phone_number_id: str,
        mime_type: str,
        file_name: str,
        chunks: AsyncIterator[bytes],
        *,
        is_inbound: bool = False,
    ) -> Media:
        """Keep a file as it comes.

        Raises:
            GraphRefused: a type that is not taken, an empty file, or one that is too large.

        Source: facts 6.1.
        """
        kind = media_kind(mime_type)
        now_ms = self._clock.now_ms()
        media = Media(
            media_id="7" + self._ids.digits(15),  # 16 digits, below 2^53
            phone_number_id=phone_number_id,
            mime_type=mime_type,
            file_name=file_name[:240],
            size_bytes=0,
            sha256="",
            is_inbound=is_inbound,
            created_ms=now_ms,
            expires_ms=now_ms + (INBOUND_LIVE_MS if is_inbound else UPLOADED_LIVE_MS),
        )
        try:
            media = await self._written(media, kind, chunks)
        except BaseException:
            await self._files.remove(media.content_name)
            raise
        await self._keep(media)
        return media

    async def keep_inbound(self, phone_number_id: str, mime_type: str, file_name: str, content: bytes) -> Media:
        """Keep what a phone sends to a business number; its id lives 7 days.

        Raises:
            GraphRefused: as `take` says.
        """

        async def whole() -> AsyncIterator[bytes]:
            yield content

        return await self.take(phone_number_id, mime_type, file_name, whole(), is_inbound=True)

    async def delete(self, media: Media) -> None:
        """Remove a file and its id."""
        await self._store.run([(_DROP, (media.media_id,))])
        self.all.pop(media.media_id, None)
        await self._files.remove(media.content_name)

    async def expire(self, media: Media) -> None:
        """Let an id's time be over now."""
        await self._keep(replace(media, expires_ms=self._clock.now_ms()))

    async def forget(self) -> None:
        """Drop everything from memory and the folder; the rows are the caller's matter."""
        self.all.clear()
        await self._files.sweep(_PREFIX, frozenset())

    async def _written(self, media: Media, kind: MediaKind, chunks: AsyncIterator[bytes]) -> Media:
        writing = await self._files.append(media.content_name, 0)
        beginning = b""
        try:
            async for chunk in chunks:
                if len(beginning) < _BEGINNING_BYTES:
                    beginning += chunk[:_BEGINNING_BYTES]
                if writing.size_bytes + len(chunk) > kind.at_most_bytes:
                    raise too_large(kind, kind.at_most_bytes)
                await writing.add(chunk)
        finally:
            await writing.close()
        check_size(kind, writing.size_bytes, beginning)
        return replace(media, size_bytes=writing.size_bytes, sha256=writing.digest.hexdigest())

    async def _keep(self, media: Media) -> None:
        values: Row = (
            media.media_id, media.phone_number_id, media.mime_type, media.file_name,
            media.size_bytes, media.sha256, int(media.is_inbound), media.created_ms,
            media.expires_ms,
        )  # fmt: skip
        await self._store.run([(_KEEP, values)])
        self.all[media.media_id] = media
