"""Resumable uploads, and the handles that they produce: template examples refer to them."""

import base64
from collections.abc import AsyncIterator
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from waypost.base.clock import DAY_MS, Clock
from waypost.base.ids import Ids
from waypost.base.json_values import integer_or_none, text_or_none
from waypost.simulator.errors import GraphApiError, bad_parameter
from waypost.simulator.files import Files
from waypost.simulator.keyed_store import CachedKeyedValues
from waypost.simulator.media.media_kinds import MAX_MEDIA_BYTES
from waypost.simulator.store import Store

# Source: facts 6.2, "Types".
UPLOAD_TYPES: Final = ("application/pdf", "image/jpeg", "image/jpg", "image/png", "video/mp4")
UPLOAD_LIFETIME_MS: Final = 30 * DAY_MS  # not documented; we assume that the time in a handle is its expiry
_LONG_VIDEO_BYTES: Final = 8 * 1024 * 1024
_LONG_VIDEO_HANDLE_LINES: Final = 3  # Source: facts 6.2: one value, three handles joined by newlines
_UPLOAD_FILE_PREFIX: Final = "upload-"


class UploadSession(msgspec.Struct, frozen=True):
    """One upload session; `handle` is empty until all its bytes are uploaded.

    `upload_id` is the part between `upload:` and `?sig=`.
    """

    upload_id: str
    signature: str
    app_id: str
    user_id: str
    file_name: str
    file_length: int
    file_type: str
    expires_ms: int
    handle: str = ""

    @property
    def content_name(self) -> str:
        """The name of the file that holds its bytes."""
        return _UPLOAD_FILE_PREFIX + self.upload_id

    @property
    def session_id(self) -> str:
        """The id as the client sees it."""
        return f"upload:{self.upload_id}?sig={self.signature}"


class ResumableUploads:
    """Every upload session and every handle."""

    def __init__(self, store: Store, files: Files, clock: Clock, ids: Ids) -> None:
        self._files = files
        self._clock = clock
        self._ids = ids
        self._busy: set[str] = set()
        self._uploads = CachedKeyedValues(store, "upload", UploadSession)
        self._by_handle_line = self._uploads.index(lambda upload: upload.handle.split("\n") if upload.handle else ())
        self.by_id = self._uploads.all

    async def open(self) -> None:
        """Delete expired uploads."""
        now_ms = self._clock.now_ms()
        for upload in [upload for upload in self.by_id.values() if upload.expires_ms <= now_ms]:
            await self._uploads.delete(upload.upload_id)
        await self._files.sweep(_UPLOAD_FILE_PREFIX, {upload.content_name for upload in self.by_id.values()})

    def is_valid_handle(self, handle: str) -> bool:
        """True if a template may refer to this handle: each of its lines was issued and has not expired."""
        return self.find_by_handle(handle) is not None

    def find_by_handle(self, handle: str) -> UploadSession | None:
        """Return the upload of a handle, or of one line of it; None if it is unknown or expired."""
        uploads = {self._by_handle_line.get(line) for line in handle.split("\n")}
        upload = uploads.pop()
        if uploads or upload is None or upload.expires_ms <= self._clock.now_ms():
            return None
        return upload

    def find(self, upload_id: str | None) -> UploadSession | None:
        """Return the session with an id; None if there is none or it has expired."""
        upload = self.by_id.get(upload_id or "")
        if upload is None or upload.expires_ms <= self._clock.now_ms():
            return None
        return upload

    async def begin(self, app_id: str, user_id: str, fields: dict[str, Any]) -> UploadSession:
        """Open a session.

        Args:
            app_id: the app that uploads.
            user_id: the token's user; both ids are part of the handle.
            fields: `file_length` and `file_type`, optionally `file_name`.

        Raises:
            GraphApiError: code 100, a field is missing or wrong.

        Source: facts 6.2, step 1.
        """
        length = integer_or_none(fields.get("file_length"))
        file_type = str(fields.get("file_type", "")).lower()
        if length is None or not 0 < length <= MAX_MEDIA_BYTES:
            raise bad_parameter(f"Param file_length must be from 1 to {MAX_MEDIA_BYTES}.")
        if file_type not in UPLOAD_TYPES:
            raise bad_parameter(f"Param file_type must be one of {{{', '.join(UPLOAD_TYPES)}}} - got {file_type!r}.")
        upload = UploadSession(
            upload_id=_token(self._ids),
            signature=_token(self._ids),
            app_id=app_id,
            user_id=user_id,
            file_name=(text_or_none(fields.get("file_name")) or "")[:240],
            file_length=length,
            file_type=file_type,
            expires_ms=self._clock.now_ms() + UPLOAD_LIFETIME_MS,
        )
        await self._uploads.save(upload, upload.upload_id)
        return upload

    async def offset(self, upload: UploadSession) -> int:
        """Return how many bytes have been uploaded."""
        return await self._files.size(upload.content_name)

    async def add(self, upload: UploadSession, offset: int, chunks: AsyncIterator[bytes]) -> UploadSession:
        """Add bytes; those received before a broken connection are kept, and the upload can be resumed.

        Returns:
            The upload, with its handle once it is complete.

        Raises:
            GraphApiError: the offset differs from the uploaded bytes, there are more bytes than
                announced, or another request is uploading to the same session.
            ClientDisconnected: the connection broke.

        Source: facts 6.2, step 2 and "resume".
        """
        if upload.upload_id in self._busy:
            raise bad_parameter("Another request is uploading to this session.")
        self._busy.add(upload.upload_id)
        try:
            return await self._append(upload, offset, chunks)
        finally:
            self._busy.discard(upload.upload_id)

    async def read_content(self, upload: UploadSession) -> bytes:
        """Return the uploaded bytes."""
        return await self._files.read(upload.content_name)

    async def expire(self, upload: UploadSession) -> None:
        """Make a handle expire now."""
        await self._uploads.save(replace(upload, expires_ms=self._clock.now_ms()), upload.upload_id)

    async def _append(self, upload: UploadSession, offset: int, chunks: AsyncIterator[bytes]) -> UploadSession:
        uploaded = await self.offset(upload)
        if offset != uploaded:
            raise _wrong_offset_error(offset, uploaded)
        writer = await self._files.open_writer(upload.content_name, offset)
        is_too_much = False
        try:
            async for chunk in chunks:
                is_too_much = writer.size_bytes + len(chunk) > upload.file_length
                if is_too_much:
                    raise bad_parameter("There are more bytes than the parameter file_length says.")
                await writer.add(chunk)
        finally:
            await (writer.close_truncated(offset) if is_too_much else writer.close())
        if writer.size_bytes < upload.file_length or upload.handle:
            return upload
        completed = replace(upload, handle=self._make_handle(upload))
        await self._uploads.save(completed, completed.upload_id)
        return completed

    def _make_handle(self, upload: UploadSession) -> str:
        """Return a new handle for a complete upload. Source: facts 6.2, "Handle shape"."""
        is_long = upload.file_type == "video/mp4" and upload.file_length > _LONG_VIDEO_BYTES
        lines = _LONG_VIDEO_HANDLE_LINES if is_long else 1
        mime = base64.b64encode(upload.file_type.encode()).decode()
        end_s = upload.expires_ms // 1000
        return "\n".join(
            f"4::{mime}:AR{_token(self._ids)}:e:{end_s}:{upload.app_id}:{upload.user_id}:AR{_token(self._ids)}"
            for _ in range(lines)
        )


def _wrong_offset_error(offset: int, uploaded_bytes: int) -> GraphApiError:
    return bad_parameter(f"Header file_offset is {offset}, but {uploaded_bytes} bytes have been uploaded.")


def _token(ids: Ids) -> str:
    return base64.urlsafe_b64encode(bytes.fromhex(ids.secret())).decode().rstrip("=")
