"""Files that partners upload or name by URL: the room for them, and their storing."""

from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Final
from urllib.parse import unquote, urlsplit

from waypost.api.file_types import possible_types, types_of
from waypost.api.requests import Request, read_body, read_parts
from waypost.base.clock import Clock
from waypost.base.http.multipart import MAX_FILE_NAME_CHARS, PartHead
from waypost.base.ids import Ids
from waypost.base.object_ids import make_id
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode, missing_parameter
from waypost.domain.media import ACCEPTED_TYPES, MAX_UPLOAD_BYTES, MEDIA_LIFE_MS, UploadedMedia, build_handle
from waypost.outbound.vetted_client import VettedClient
from waypost.store.database import Database
from waypost.store.media.files import HEAD_BYTES, IncomingFile, MediaFiles, NotEnoughSpace
from waypost.store.media.media import add_media, stored_bytes
from waypost.wire.forms import read_form
from waypost.wire.media import (
    MAX_MEDIA_URL_CHARS,
    accepted_types,
    check_media_url,
    choose_type,
    disk_full_error,
    fetch_error,
    file_too_large,
    is_url,
    read_type,
    wrong_type,
)

MAX_OVERHEAD_BYTES: Final = 1024 * 1024
"""The limit of a body's bytes without the file."""
MAX_UPLOAD_FIELD_BYTES: Final = 4096
_ID_TRIES: Final = 5

RecordUpload = Callable[[UploadedMedia], Awaitable[bool]]
"""Writes an upload's row, and possibly more in the same transaction; False: its id or handle is in use."""


class PartnerUploads:
    """Stores files that partners upload or name by URL.

    Args:
        quota_bytes: of the stored media of each partner; 0: no limit.
    """

    def __init__(
        self, *, files: MediaFiles, database: Database, outbound: VettedClient, clock: Clock, ids: Ids, quota_bytes: int
    ) -> None:
        self._quota_bytes = quota_bytes
        self._arriving_bytes: Counter[int] = Counter()  # by partner, in this process
        self._files = files
        self._database = database
        self._outbound = outbound
        self._clock = clock
        self._ids = ids

    async def store_from_request(
        self,
        app: App,
        request: Request,
        record: RecordUpload | None = None,
        *,
        for_handle: bool,
        names: tuple[str, ...] = ("file",),
    ) -> UploadedMedia:
        """Store the content of the field `file`: a file, with or without a name, or a URL as text.

        Args:
            app: the app that uploads.
            request: its body has not been read.
            record: writes the row; None: only the row is written.
            for_handle: True for a template's sample, False for sending.
            names: accepted names of the field; errors use the first.

        Returns:
            The upload, once its bytes and its row are on disk.

        Raises:
            ApiError: 400 no file, another type, a URL that cannot be fetched; 413 too large.
            ConnectionError: the client disconnected.
            OSError: our disk fails.
        """
        kind = read_type(request.header(b"content-type") or "")
        if kind == "multipart/form-data":
            return await self._store_from_parts(app, request, record, names, for_handle=for_handle)
        if kind not in ("", "application/x-www-form-urlencoded") or request.receive is None:
            raise ApiError(ErrorCode.UNREADABLE, "The body must be multipart/form-data.")
        form = read_form(await read_body(request.scope, request.receive))
        name = next((name for name in names if form.text(name)), names[0])
        url = form.required(name, "a file, or the public address of one", "MultipartFile")
        return await self.store_from_url(
            app, url.strip(), record, for_handle=for_handle, declared=form.text("file_type") or ""
        )

    async def store_from_url(
        self,
        app: App,
        url: str,
        record: RecordUpload | None = None,
        *,
        for_handle: bool,
        declared: str = "",
        field: str = "file",
    ) -> UploadedMedia:
        """Fetch a vetted URL, up to the size limit, and store the file.

        Args:
            app: the app that uploads.
            url: chosen by the partner.
            record: as for `store_from_request`.
            for_handle: True for a template's sample, False for sending.
            declared: the declared MIME type; empty without one.
            field: the name of the URL's field in errors.

        Raises:
            ApiError: 400 `MEDIA_NOT_FETCHED` or another type, 413 too large.
            OSError: our disk fails.
        """
        check_media_url(url, field)
        async with self._open_upload(app, for_handle=for_handle) as upload:
            response = await self._outbound.get(url, upload.write)
            if response.status != 200:
                reason = response.error or f"it responded with {response.status}"
                raise fetch_error(field, reason)
            hint = (response.headers or {}).get("content-type", "")
            name = unquote(urlsplit(url).path).rpartition("/")[2]
            name = "".join(char for char in name if char.isprintable())[:MAX_FILE_NAME_CHARS]
            return await self._store(upload, read_type(declared), read_type(hint), name, record)

    async def _store_from_parts(
        self, app: App, request: Request, record: RecordUpload | None, names: tuple[str, ...], *, for_handle: bool
    ) -> UploadedMedia:
        length = request.header(b"content-length") or ""
        if length.isdecimal() and int(length[:20]) > MAX_UPLOAD_BYTES + MAX_OVERHEAD_BYTES:
            raise file_too_large(MAX_UPLOAD_BYTES, "any type")
        async with self._open_upload(app, for_handle=for_handle) as upload:
            file, declared = await _read_upload_parts(request, names, upload)
            if file is None or not upload.incoming.size_bytes:
                raise missing_parameter("file", "a file, or the public address of one", "MultipartFile")
            url = _find_url(file, upload.incoming)
            if url is None:
                hint = read_type(file.content_type)
                return await self._store(upload, read_type(declared), hint, file.file_name or "", record)
        return await self.store_from_url(app, url, record, for_handle=for_handle, declared=declared)

    async def _store(
        self, upload: "_Upload", declared: str, hint: str, file_name: str, record: RecordUpload | None
    ) -> UploadedMedia:
        await upload.refresh_quota()
        app, incoming = upload.app, upload.incoming
        if not incoming.size_bytes:
            raise ApiError(ErrorCode.FIELD_BROKEN, "file must have at least one byte.")
        types = types_of(incoming.head, await incoming.tail())
        mime_type = choose_type(types, declared, hint, for_handle=upload.for_handle)
        most_bytes = ACCEPTED_TYPES[mime_type].max_bytes
        if incoming.size_bytes > most_bytes:
            raise file_too_large(most_bytes, mime_type)
        size_bytes = incoming.size_bytes
        sha256 = await incoming.commit()
        media = UploadedMedia(
            id="",
            partner_id=app.partner_id,
            app_id=app.id,
            handle=None,
            mime_type=mime_type,
            size_bytes=size_bytes,
            sha256=sha256,
            file_name=file_name,
            created_on_ms=0,
            expires_on_ms=0,
        )
        return await self._record_upload(media, record or self._insert_row, for_handle=upload.for_handle)

    async def add_handle(self, media: UploadedMedia) -> UploadedMedia:
        """Store another upload of the same bytes with a handle: for a template whose sample is a media id.

        Args:
            media: a live upload, so that its bytes are on disk.
        """
        return await self._record_upload(media, self._insert_row, for_handle=True)

    async def _insert_row(self, media: UploadedMedia) -> bool:
        return await self._database.join(add_media, media)

    async def _record_upload(self, upload: UploadedMedia, record: RecordUpload, *, for_handle: bool) -> UploadedMedia:
        """Write the row of an upload whose bytes are on disk, with a new id and the current time."""
        now_ms = self._clock.now_ms()
        expires_on_ms = now_ms + MEDIA_LIFE_MS
        for _ in range(_ID_TRIES):
            media_id = make_id(self._ids, "media")
            handle = build_handle(
                upload.mime_type,
                self._ids.secret(),
                self._ids.secret(),
                media_id=media_id,
                size_bytes=upload.size_bytes,
                expires_on_ms=expires_on_ms,
            )
            media = replace(
                upload,
                id=media_id,
                handle=handle if for_handle else None,
                created_on_ms=now_ms,
                expires_on_ms=expires_on_ms,
            )
            if await record(media):
                return media
        raise RuntimeError("no free media id was found")

    async def read_stored_bytes(self, partner_id: int) -> int:
        """Return how many bytes a partner has stored; 0 without a query if there is no limit."""
        if not self._quota_bytes:
            return 0
        return await self._database.read(stored_bytes, partner_id, self._clock.now_ms())

    def count_arriving(self, partner_id: int, size_bytes: int, stored_bytes: int) -> None:
        """Count bytes that have arrived, in addition to those that the partner has stored.

        Raises:
            ApiError: the quota would be exceeded.
        """
        self._arriving_bytes[partner_id] += size_bytes
        needed_bytes = stored_bytes + self._arriving_bytes[partner_id]
        if self._quota_bytes and needed_bytes > self._quota_bytes:
            raise ApiError(
                ErrorCode.MEDIA_QUOTA,
                f"The quota of stored media is {self._quota_bytes} bytes for each partner, and this file "
                f"would make it {needed_bytes} or more; delete media, or wait until some have expired.",
            )

    @asynccontextmanager
    async def _open_upload(self, app: App, *, for_handle: bool) -> AsyncGenerator["_Upload"]:
        """Open a file, counted against disk space and quota until its row is written or it is rejected.

        Raises:
            ApiError: the disk is full, or the partner's quota is used up.
        """
        counted_bytes = await self.read_stored_bytes(app.partner_id)
        self.count_arriving(app.partner_id, 0, counted_bytes)
        upload: _Upload | None = None
        try:
            incoming = await self._files.begin()
            upload = _Upload(self, app, incoming, counted_bytes, for_handle=for_handle)
            try:
                yield upload
            finally:
                await incoming.discard()
        except NotEnoughSpace as error:
            raise disk_full_error() from error
        finally:
            self._arriving_bytes[app.partner_id] -= 0 if upload is None else upload.counted_bytes
            if not self._arriving_bytes[app.partner_id]:
                del self._arriving_bytes[app.partner_id]


class _Upload:
    """A file that arrives: bytes are accepted while they can still become one of an accepted type and size.

    Attributes:
        incoming: what has arrived.
        counted_bytes: how many bytes are counted against the quota.
    """

    def __init__(
        self, uploads: PartnerUploads, app: App, incoming: IncomingFile, stored_bytes: int, *, for_handle: bool
    ) -> None:
        self.app = app
        self.for_handle = for_handle
        self.incoming = incoming
        self.counted_bytes = 0
        self._uploads = uploads
        self._stored_bytes = stored_bytes
        self._accepted = accepted_types(for_handle=for_handle)
        self._max_bytes = MAX_UPLOAD_BYTES
        self._sniffed = False

    async def refresh_quota(self) -> None:
        """Read again how much the partner has stored, and check it.

        Raises:
            ApiError: the quota would be exceeded.
        """
        self._stored_bytes = await self._uploads.read_stored_bytes(self.app.partner_id)
        self._uploads.count_arriving(self.app.partner_id, 0, self._stored_bytes)

    async def write(self, part: bytes) -> None:
        """Write bytes.

        Raises:
            ApiError: the file is too large for its type, of no accepted type, or exceeds the quota.
        """
        self.counted_bytes += len(part)
        self._uploads.count_arriving(self.app.partner_id, len(part), self._stored_bytes)
        try:
            await self.incoming.add(part)
        except NotEnoughSpace as error:  # kept apart from an OSError of the sender's connection
            raise disk_full_error() from error
        if not self._sniffed and len(self.incoming.head) >= HEAD_BYTES:
            self._sniffed = True
            types = possible_types(self.incoming.head)
            possible = [mime_type for mime_type in types if mime_type in self._accepted]
            if not possible:
                raise wrong_type(types[0], self._accepted)
            self._max_bytes = max(ACCEPTED_TYPES[mime_type].max_bytes for mime_type in possible)
        if self.incoming.size_bytes > self._max_bytes:
            raise file_too_large(self._max_bytes, "a file of its type, which its first bytes show")


async def _read_upload_parts(request: Request, names: tuple[str, ...], upload: _Upload) -> tuple[PartHead | None, str]:
    """Write the file's bytes as they arrive; return its head and its declared type."""
    file: PartHead | None = None
    field, field_bytes, around_bytes = "", bytearray(), 0
    fields: dict[str, bytes] = {}
    async for part in read_parts(request):
        if isinstance(part, PartHead):
            fields[field] = bytes(field_bytes)
            field, field_bytes = part.name, bytearray()
            if part.name in names:
                if file is not None:
                    raise ApiError(
                        ErrorCode.FIELD_BROKEN, f"{names[0]} must be sent once; the form has more than one file."
                    )
                file = part
        elif field in names:
            await upload.write(part)
        else:
            around_bytes += len(part)
            if around_bytes > MAX_OVERHEAD_BYTES:
                raise file_too_large(MAX_OVERHEAD_BYTES, "the fields beside the file")
            if len(field_bytes) < MAX_UPLOAD_FIELD_BYTES:
                field_bytes += part
    fields[field] = bytes(field_bytes)
    return file, fields.get("file_type", b"").decode("utf-8", "replace")


def _find_url(file: PartHead, incoming: IncomingFile) -> str | None:
    """Return the URL of any scheme that a part without a file name holds as text; None if it holds a file."""
    if file.file_name is not None or incoming.size_bytes > 2 * MAX_MEDIA_URL_CHARS:
        return None
    text = incoming.head.decode("utf-8", "replace").strip()
    return text if is_url(text) else None
