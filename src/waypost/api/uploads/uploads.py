"""Uploads: bytes are streamed to our disk, sniffed and flushed before the response is sent."""

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final
from urllib.parse import unquote, urlsplit

from waypost.api.http.multipart import read_parts
from waypost.api.http.requests import Request, read_body
from waypost.api.uploads.file_types import most_bytes_types, types_of
from waypost.api.uploads.quota import Arriving, MediaQuota
from waypost.base.clock import Clock
from waypost.base.http.multipart import MOST_NAME_CHARS, PartHead
from waypost.base.ids import Ids
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.media import ACCEPTED, MEDIA_LIFE_MS, MOST_UPLOAD_BYTES, Media, handle_of
from waypost.outbound.vetted import VettedClient
from waypost.store.database import Database
from waypost.store.media.files import HEAD_BYTES, Incoming, MediaFiles, NoRoom
from waypost.store.media.media import add_media
from waypost.wire.forms import read_form
from waypost.wire.media import (
    MOST_URL_CHARS,
    accepted_types,
    check_address,
    choose_type,
    is_address,
    no_room,
    not_fetched,
    read_type,
    too_large,
    wrong_type,
)

MOST_AROUND_BYTES: Final = 1024 * 1024
"""The limit of a body's bytes beside the file."""
MOST_FIELD_BYTES: Final = 4096
_ID_TRIES: Final = 5

Record = Callable[[Media], Awaitable[bool]]
"""Writes an upload's row, and possibly more in the same transaction; False: its id or handle is in use."""


@dataclass(slots=True)
class _Sent:
    """The file's head and declared type, from a request's parts."""

    declared: str = ""
    file: PartHead | None = None


class Uploads:
    """Stores files that partners upload or name by URL."""

    def __init__(
        self,
        *,
        files: MediaFiles,
        database: Database,
        outbound: VettedClient,
        clock: Clock,
        ids: Ids,
        quota: MediaQuota,
    ) -> None:
        self._quota = quota
        self._files = files
        self._database = database
        self._outbound = outbound
        self._clock = clock
        self._ids = ids

    async def from_request(
        self,
        app: App,
        request: Request,
        record: Record | None = None,
        *,
        for_handle: bool,
        names: tuple[str, ...] = ("file",),
    ) -> Media:
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
            return await self._from_parts(app, request, record, names, for_handle=for_handle)
        if kind not in ("", "application/x-www-form-urlencoded") or request.receive is None:
            raise ApiError(ErrorCode.UNREADABLE, "The body must be multipart/form-data.")
        form = read_form(await read_body(request.scope, request.receive))
        name = next((name for name in names if form.text(name)), names[0])
        url = form.required(name, "a file, or the public address of one")
        return await self.from_url(
            app, url.strip(), record, for_handle=for_handle, declared=form.text("file_type") or ""
        )

    async def from_url(
        self,
        app: App,
        url: str,
        record: Record | None = None,
        *,
        for_handle: bool,
        declared: str = "",
        field: str = "file",
    ) -> Media:
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
        check_address(url, field)
        async with self._incoming(app) as (incoming, arriving):
            guard = _Guard(incoming, arriving, for_handle=for_handle)
            response = await self._outbound.get(url, guard.take)
            if response.status != 200:
                reason = response.error or f"it answered {response.status}"
                raise not_fetched(field, reason)
            await arriving.look()
            hint = (response.headers or {}).get("Content-Type", "")
            return await self._keep(
                app, incoming, read_type(declared), read_type(hint), _name_in(url), for_handle, record
            )

    async def _from_parts(
        self, app: App, request: Request, record: Record | None, names: tuple[str, ...], *, for_handle: bool
    ) -> Media:
        _check_length(request)
        async with self._incoming(app) as (incoming, arriving):
            guard = _Guard(incoming, arriving, for_handle=for_handle)
            parts = await _read(request, names, guard)
            file = parts.file
            if file is None or not incoming.size_bytes:
                raise ApiError(
                    ErrorCode.FIELD_MISSING,
                    "Required request parameter 'file' is not present: a file, or the public address of one.",
                )
            url = _address_in(file, incoming)
            if url is None:
                await arriving.look()
                declared, hint = read_type(parts.declared), read_type(file.content_type)
                return await self._keep(app, incoming, declared, hint, file.file_name or "", for_handle, record)
        return await self.from_url(app, url, record, for_handle=for_handle, declared=parts.declared)

    async def _keep(
        self,
        app: App,
        incoming: Incoming,
        declared: str,
        hint: str,
        file_name: str,
        for_handle: bool,
        record: Record | None,
    ) -> Media:
        if not incoming.size_bytes:
            raise ApiError(ErrorCode.FIELD_BROKEN, "file must have at least one byte.")
        types = types_of(incoming.head, await incoming.tail())
        mime_type = choose_type(types, declared, hint, for_handle=for_handle)
        most_bytes = ACCEPTED[mime_type].max_bytes
        if incoming.size_bytes > most_bytes:
            raise too_large(most_bytes, mime_type)
        size_bytes = incoming.size_bytes
        sha256 = await incoming.keep()
        upload = Media(
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
        return await self._record(upload, record or self._add, for_handle=for_handle)

    async def with_handle(self, media: Media) -> Media:
        """Store another upload of the same bytes with a handle: for a template whose sample is a media id.

        Args:
            media: a live upload, so that its bytes are on disk.
        """
        return await self._record(media, self._add, for_handle=True)

    async def _add(self, media: Media) -> bool:
        return await self._database.join(add_media, media)

    async def _record(self, upload: Media, record: Record, *, for_handle: bool) -> Media:
        """Write the row of an upload whose bytes are on disk, with a new id and the current time."""
        now_ms = self._clock.now_ms()
        expires_on_ms = now_ms + MEDIA_LIFE_MS
        for _ in range(_ID_TRIES):
            media_id = self._ids.digits(16)
            handle = handle_of(
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

    @asynccontextmanager
    async def _incoming(self, app: App) -> AsyncGenerator[tuple[Incoming, Arriving]]:
        """Open a file, counted against disk space and quota, until its row is written.

        Raises:
            ApiError: the disk is full, or the partner's quota is used up.
        """
        async with self._quota.arriving(app.partner_id) as arriving:
            try:
                incoming = await self._files.begin()
                try:
                    yield incoming, arriving
                finally:
                    await incoming.drop()
            except NoRoom as error:
                raise no_room() from error


class _Guard:
    """Accepts bytes as long as they can still become a file of an accepted type and size."""

    def __init__(self, incoming: Incoming, arriving: Arriving, *, for_handle: bool) -> None:
        self.incoming = incoming
        self._arriving = arriving
        self._accepted = accepted_types(for_handle=for_handle)
        self._most_bytes = MOST_UPLOAD_BYTES
        self._sniffed = False

    async def take(self, part: bytes) -> None:
        """Write bytes.

        Raises:
            ApiError: the file is too large for its type, of no accepted type, or exceeds the quota.
        """
        self._arriving.add(len(part))
        try:
            await self.incoming.add(part)
        except NoRoom as error:  # kept apart from an OSError of the sender's connection
            raise no_room() from error
        if not self._sniffed and len(self.incoming.head) >= HEAD_BYTES:
            self._sniffed = True
            types = most_bytes_types(self.incoming.head)
            possible = [mime_type for mime_type in types if mime_type in self._accepted]
            if not possible:
                raise wrong_type(types[0], self._accepted)
            self._most_bytes = max(ACCEPTED[mime_type].max_bytes for mime_type in possible)
        if self.incoming.size_bytes > self._most_bytes:
            raise too_large(self._most_bytes, "what it begins as")


async def _read(request: Request, names: tuple[str, ...], guard: _Guard) -> _Sent:
    """Read the parts; the file's bytes go to the guard as they arrive, other fields are short."""
    parts = _Sent()
    field, field_bytes, around_bytes = "", bytearray(), 0
    fields: dict[str, bytes] = {}
    async for part in read_parts(request):
        if isinstance(part, PartHead):
            fields[field] = bytes(field_bytes)
            field, field_bytes = part.name, bytearray()
            if part.name in names:
                if parts.file is not None:
                    raise ApiError(ErrorCode.FIELD_BROKEN, f"{names[0]} must be given once.")
                parts.file = part
        elif field in names:
            await guard.take(part)
        else:
            around_bytes += len(part)
            if around_bytes > MOST_AROUND_BYTES:
                raise too_large(MOST_AROUND_BYTES, "what stands beside the file")
            if len(field_bytes) < MOST_FIELD_BYTES:
                field_bytes += part
    fields[field] = bytes(field_bytes)
    parts.declared = fields.get("file_type", b"").decode("utf-8", "replace")
    return parts


def _check_length(request: Request) -> None:
    """Reject a body at once if its Content-Length is too large."""
    length = request.header(b"content-length") or ""
    most_bytes = MOST_UPLOAD_BYTES + MOST_AROUND_BYTES
    if length.isdecimal() and int(length[:20]) > most_bytes:
        raise too_large(MOST_UPLOAD_BYTES, "any type")


def _address_in(file: PartHead, incoming: Incoming) -> str | None:
    """Return the URL that a part without a file name holds as text; None if it holds a file."""
    if file.file_name is not None or incoming.size_bytes > 2 * MOST_URL_CHARS:
        return None
    text = incoming.head.decode("utf-8", "replace").strip()
    return text if is_address(text) else None


def _name_in(url: str) -> str:
    """Return the last segment of a URL's path as a file name."""
    name = unquote(urlsplit(url).path).rpartition("/")[2]
    return "".join(char for char in name if char.isprintable())[:MOST_NAME_CHARS]
