"""Media that messages refer to by id: uploaded by a business, or sent by a phone."""

import base64
from collections.abc import AsyncIterator
from typing import Final

import msgspec
from msgspec.structs import replace

from waypost.base.clock import DAY_MS, Clock
from waypost.base.ids import Ids
from waypost.simulator.files import Files
from waypost.simulator.keyed_store import CachedKeyedValues
from waypost.simulator.media.media_kinds import (
    INBOUND_MEDIA_KIND,
    SupportedMediaKind,
    check_size,
    find_media_kind,
    read_inbound_type,
    too_large_error,
)
from waypost.simulator.store import Store

UPLOADED_MEDIA_LIFETIME_MS: Final = 30 * DAY_MS  # Source: facts 6.1, "life"
INBOUND_MEDIA_LIFETIME_MS: Final = 7 * DAY_MS
_MEDIA_FILE_PREFIX: Final = "media-"
_BEGINNING_BYTES: Final = 32


class SimulatedMedia(msgspec.Struct, frozen=True):
    """One file with an id.

    Args:
        media_id: 16 digits.
        phone_number_id: the business number it was uploaded for, or sent to.
        mime_type: in lower case, without parameters; of a file from a phone as it was sent.
        file_name: as it was uploaded; empty when it had none.
        size_bytes: of the whole file.
        sha256: of the content, 64 hex digits.
        is_inbound: whether a phone sent it.
        expires_ms: when the id stops being valid.
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
        """The digest in base64, as in webhooks. Source: facts 6.1."""
        return base64.b64encode(bytes.fromhex(self.sha256)).decode()

    @property
    def content_name(self) -> str:
        """The name of the file that holds its bytes."""
        return _MEDIA_FILE_PREFIX + self.media_id


class MediaStorage:
    """Every media file: the records are in memory, the bytes on disk."""

    def __init__(self, store: Store, files: Files, clock: Clock, ids: Ids) -> None:
        self._store = store
        self._files = files
        self._clock = clock
        self._ids = ids
        self._media = CachedKeyedValues(store, "media", SimulatedMedia)
        self.by_id = self._media.all

    async def open(self) -> None:
        """Delete expired media, and files whose upload was never completed."""
        now_ms = self._clock.now_ms()
        expired = [media.media_id for media in self.by_id.values() if media.expires_ms <= now_ms]
        for media_id in expired:
            self._media.pop(media_id)
        await self._store.run([self._media.delete_statement(media_id) for media_id in expired])
        await self._files.sweep(_MEDIA_FILE_PREFIX, {media.content_name for media in self.by_id.values()})

    def find(self, media_id: str, phone_number_id: str | None = None) -> SimulatedMedia | None:
        """Return the media with an id; None if there is none or it has expired.

        Args:
            media_id: its id.
            phone_number_id: the number that uses it; media of other numbers are not found.
        """
        media = self.by_id.get(media_id)
        if media is None or media.expires_ms <= self._clock.now_ms():
            return None
        return media if phone_number_id in (None, media.phone_number_id) else None

    async def add(
        self,
        phone_number_id: str,
        mime_type: str,
        file_name: str,
        chunks: AsyncIterator[bytes],
        *,
        is_inbound: bool = False,
    ) -> SimulatedMedia:
        """Store a file while it is received.

        Raises:
            GraphApiError: an unsupported type, an empty file, or a file that is too large.

        Source: facts 6.1.
        """
        if is_inbound:
            kind, mime_type = INBOUND_MEDIA_KIND, read_inbound_type(mime_type)
        else:
            kind = find_media_kind(mime_type)
        now_ms = self._clock.now_ms()
        media = SimulatedMedia(
            media_id="7" + self._ids.digits(15),  # 16 digits, below 2^53
            phone_number_id=phone_number_id,
            mime_type=mime_type,
            file_name=file_name[:240],
            size_bytes=0,
            sha256="",
            is_inbound=is_inbound,
            created_ms=now_ms,
            expires_ms=now_ms + (INBOUND_MEDIA_LIFETIME_MS if is_inbound else UPLOADED_MEDIA_LIFETIME_MS),
        )
        try:
            media = await self._write_content(media, kind, chunks)
        except BaseException:
            await self._files.remove(media.content_name)
            raise
        await self._media.save(media, media.media_id)
        return media

    async def add_inbound(self, phone_number_id: str, mime_type: str, file_name: str, content: bytes) -> SimulatedMedia:
        """Store media that a phone sends to a business number; the id is valid for 7 days.

        Raises:
            GraphApiError: as for `add`.
        """

        async def single_chunk() -> AsyncIterator[bytes]:
            yield content

        return await self.add(phone_number_id, mime_type, file_name, single_chunk(), is_inbound=True)

    async def delete(self, media: SimulatedMedia) -> None:
        """Delete a file and its id."""
        await self._media.delete(media.media_id)
        await self._files.remove(media.content_name)

    async def expire(self, media: SimulatedMedia) -> None:
        """Make an id expire now."""
        await self._media.save(replace(media, expires_ms=self._clock.now_ms()), media.media_id)

    async def _write_content(
        self, media: SimulatedMedia, kind: SupportedMediaKind, chunks: AsyncIterator[bytes]
    ) -> SimulatedMedia:
        writer = await self._files.open_writer(media.content_name, 0)
        beginning = b""
        try:
            async for chunk in chunks:
                if len(beginning) < _BEGINNING_BYTES:
                    beginning += chunk[:_BEGINNING_BYTES]
                if writer.size_bytes + len(chunk) > kind.max_bytes:
                    raise too_large_error(kind, kind.max_bytes)
                await writer.add(chunk)
        finally:
            await writer.close()
        check_size(kind, writer.size_bytes, beginning)
        return replace(media, size_bytes=writer.size_bytes, sha256=writer.digest.hexdigest())
