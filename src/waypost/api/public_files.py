"""The endpoint `/media/{key}`: serves media to anyone who has the unguessable URL."""

import asyncio
import re
from typing import Final

from starlette.requests import Request
from starlette.responses import FileResponse, JSONResponse, Response

from waypost.base.clock import Clock
from waypost.base.encryption import SecretBox, secrets_equal
from waypost.domain.media import InboundMedia
from waypost.store.database import Database
from waypost.store.media.files import MediaFiles
from waypost.store.media.media import inbound_by_keys, live_media
from waypost.wire.errors import header_text
from waypost.wire.media import content_disposition, content_type

WAIT_S: Final = 10
POLL_INTERVAL_S: Final = 0.1
RETRY_AFTER_S: Final = 5

_INBOUND: Final = re.compile(r"[0-9a-f]{64}")
_UPLOADED: Final = re.compile(r"(\d{16})-([0-9a-f]{32})(?:\.[a-z0-9]{3,4})?")
_HEADERS: Final = {
    "X-Content-Type-Options": "nosniff",
    # A recipient may send a page or a drawing that contains a script; it must not run here.
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cache-Control": "private, max-age=86400, immutable",
    "Referrer-Policy": "no-referrer",
}


class PublicMediaEndpoint:
    """Serves media that recipients sent, and media that partners uploaded through the messaging API."""

    def __init__(self, *, database: Database, files: MediaFiles, secret_box: SecretBox, clock: Clock) -> None:
        self._database = database
        self._files = files
        self._secret_box = secret_box
        self._clock = clock

    async def show(self, request: Request) -> Response:
        """Respond to `GET` with the bytes, also in ranges; 404 unknown, expired or failed; 503 not here yet.

        It waits at most 10 s for a download in progress: callbacks contain the URL before
        the bytes are here, and most receivers request it at once.

        Source: facts 6.4, "Media URL form": served without token; `?download=` sets the disposition.
        """
        key: str = request.path_params["key"]
        as_download = request.query_params.get("download", "").lower() == "true"
        uploaded = _UPLOADED.fullmatch(key)
        if uploaded is not None and self._is_media_key(uploaded[1], uploaded[2]):
            media = await self._database.read(live_media, uploaded[1], self._clock.now_ms())
            if media is not None:
                name = media.file_name
                return await self._file(media.sha256, media.mime_type, name, as_download=as_download)
        inbound = await self._wait_for_inbound(key) if _INBOUND.fullmatch(key) else None
        if inbound is None:
            return _not_found_response("There is no such medium, or it has expired.")
        if inbound.failure is not None:
            return _not_found_response("The medium could not be fetched.", inbound.failure)
        if inbound.sha256 is None:
            return _retry_later_response()
        return await self._file(inbound.sha256, inbound.mime_type, inbound.file_name, as_download=as_download)

    def _is_media_key(self, media_id: str, key: str) -> bool:
        return any(secrets_equal(key, accepted) for accepted in self._secret_box.media_keys(media_id))

    async def _wait_for_inbound(self, key: str) -> InboundMedia | None:
        """Return the medium once its download has ended, or its current state after the wait."""
        remaining_polls = round(WAIT_S / POLL_INTERVAL_S)
        while True:
            media = (await self._database.read(inbound_by_keys, [key])).get(key)
            if media is None or media.expires_on_ms <= self._clock.now_ms():
                return None
            remaining_polls -= 1
            if media.sha256 is not None or media.failure is not None or remaining_polls <= 0:
                return media
            await asyncio.sleep(POLL_INTERVAL_S)

    async def _file(self, sha256: str, mime_type: str, name: str, *, as_download: bool) -> Response:
        kind = "attachment" if as_download else "inline"
        return FileResponse(
            await self._files.local_path(sha256),
            media_type=content_type(mime_type),
            headers={**_HEADERS, "Content-Disposition": content_disposition(name, kind)},
        )


def _not_found_response(message: str, reason: str = "") -> Response:
    headers = {"Waypost-Reason": header_text(reason)} if reason else None
    return JSONResponse({"status": "error", "message": message}, 404, headers)


def _retry_later_response() -> Response:
    message = "The medium is still being fetched from the operator; try again."
    headers = {"Retry-After": str(RETRY_AFTER_S)}
    return JSONResponse({"status": "error", "message": message}, 503, headers)
