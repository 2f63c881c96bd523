"""Media that messages refer to by id: uploaded by a business, or sent by a phone."""

import base64
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.base.clock import DAY_MS
from waypost.base.object_ids import make_id
from waypost.simulator.apis.media_kinds import (
    INBOUND_MEDIA_KIND,
    check_size,
    find_media_kind,
    read_inbound_type,
    too_large_error,
)
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.keyed_store import StoredKind

UPLOADED_MEDIA_LIFETIME_MS: Final = 30 * DAY_MS  # Source: facts 6.1, "life"
INBOUND_MEDIA_LIFETIME_MS: Final = 7 * DAY_MS
MEDIA_FILE_PREFIX: Final = "media-"
_BEGINNING_BYTES: Final = 32


class SimulatedMedia(msgspec.Struct, frozen=True):
    """One file with an id."""

    media_id: str  # 16 digits
    phone_number_id: str  # the business number it was uploaded for, or sent to
    mime_type: str  # in lower case, without parameters; of a file from a phone as it was sent
    file_name: str  # as it was uploaded; empty when it had none
    size_bytes: int  # of the whole file
    sha256: str  # of the content, 64 hex digits
    is_inbound: bool  # whether a phone sent it
    created_ms: int
    expires_ms: int  # when the id stops being valid

    @property
    def sha256_base64(self) -> str:
        """The digest in base64, as in webhooks. Source: facts 6.1."""
        return base64.b64encode(bytes.fromhex(self.sha256)).decode()

    @property
    def content_name(self) -> str:
        """The name of the file that holds its bytes."""
        return MEDIA_FILE_PREFIX + self.media_id


MEDIA: Final = StoredKind("media", SimulatedMedia)


async def sweep_files(state: SimulatorState, kind: StoredKind[Any], prefix: str) -> None:
    """Delete expired values of a kind, and files with its prefix whose upload was never completed."""
    now_ms = state.clock.now_ms()

    def write(transaction: Transaction) -> None:
        for key, value in transaction.values(kind).items():
            if value.expires_ms <= now_ms:
                transaction.delete(kind, key)

    await state.transact(write)
    await state.files.sweep(prefix, {value.content_name for value in state.values(kind).values()})


def find_media(state: SimulatorState, media_id: str, phone_number_id: str | None = None) -> SimulatedMedia | None:
    """Return the media with an id; None if there is none, it has expired, or it is another number's."""
    media = state.values(MEDIA).get(media_id)
    if media is None or media.expires_ms <= state.clock.now_ms():
        return None
    return media if phone_number_id in (None, media.phone_number_id) else None


async def add_media(
    state: SimulatorState,
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
    kind = INBOUND_MEDIA_KIND if is_inbound else find_media_kind(mime_type)
    now_ms = state.clock.now_ms()
    media = SimulatedMedia(
        media_id=make_id(state.ids, "media"),
        phone_number_id=phone_number_id,
        mime_type=read_inbound_type(mime_type) if is_inbound else mime_type,
        file_name=file_name[:240],
        size_bytes=0,
        sha256="",
        is_inbound=is_inbound,
        created_ms=now_ms,
        expires_ms=now_ms + (INBOUND_MEDIA_LIFETIME_MS if is_inbound else UPLOADED_MEDIA_LIFETIME_MS),
    )
    beginning = b""
    try:
        writer = await state.files.open_writer(media.content_name, 0)
        try:
            async for chunk in chunks:
                beginning += chunk[: _BEGINNING_BYTES - len(beginning)]
                if writer.size_bytes + len(chunk) > kind.max_bytes:
                    raise too_large_error(kind, kind.max_bytes)
                await writer.add(chunk)
        finally:
            await writer.close()
        check_size(kind, writer.size_bytes, beginning)
    except BaseException:
        await state.files.remove(media.content_name)
        raise
    media = replace(media, size_bytes=writer.size_bytes, sha256=writer.digest.hexdigest())
    await state.cached(MEDIA).save(media, media.media_id)
    return media


async def add_inbound_media(
    state: SimulatorState, phone_number_id: str, mime_type: str, file_name: str, content: bytes
) -> SimulatedMedia:
    """Store media that a phone sends to a business number; the id is valid for 7 days.

    Raises:
        GraphApiError: as for `add_media`.
    """

    async def single_chunk() -> AsyncIterator[bytes]:
        yield content

    return await add_media(state, phone_number_id, mime_type, file_name, single_chunk(), is_inbound=True)


async def delete_media(state: SimulatorState, media: SimulatedMedia) -> None:
    """Delete a file and its id."""
    await state.cached(MEDIA).delete(media.media_id)
    await state.files.remove(media.content_name)
