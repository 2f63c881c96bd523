"""Control API calls for media files and upload handles: store, show, expire and delete them."""

from typing import Annotated, Any, Final

from msgspec import Struct
from msgspec.structs import replace
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import (
    BYTES,
    ControlBody,
    ControlOperations,
    content_type,
    file_response,
    path_object,
    read_body,
    read_bytes,
    read_members,
)
from waypost.simulator.apis.errors import GraphApiError
from waypost.simulator.apis.field_types import BusinessNumber, FileName, Name, Text
from waypost.simulator.media.model import MEDIA, SimulatedMedia, add_inbound_media, add_media, delete_media, find_media
from waypost.simulator.media.uploads import UPLOADS, UploadSession, find_by_handle
from waypost.simulator.state.control_parameters import business_number
from waypost.simulator.state.simulator_state import SimulatorState

_MAX_BASE64_BYTES: Final = 140_000_000
"""The largest document, of 100 MB, as base64 text."""

PathMedia = Annotated[
    SimulatedMedia,
    path_object("media_id", lambda state: state.values(MEDIA), "is no media", "an id of GET /control/media"),
]

operation = ControlOperations()


class FileBody(ControlBody, frozen=True, kw_only=True):
    """A phone's file: the query of a request whose body is its bytes."""

    to: BusinessNumber
    mime_type: Name
    file_name: FileName = ""


class MediaBody(FileBody, frozen=True, kw_only=True):
    """A phone's file; the content is base64 text."""

    content: bytes


class UploadHandleView(Struct, frozen=True):
    """A complete upload with its handle."""

    handle: str
    file_name: str
    mime_type: str
    size_bytes: int
    expires_ms: int


@operation("GET", "/control/media", media=list[SimulatedMedia])
async def list_media(state: SimulatorState) -> dict[str, Any]:
    """Return every media file, oldest first, including expired ones."""
    return {"media": list(state.values(MEDIA).values())}


@operation("POST", "/control/media")
async def store_media(state: SimulatorState, request: Request) -> SimulatedMedia:
    """Store a file as if a phone had sent it to a business number: as JSON, or as its bytes."""
    if content_type(request.headers) == BYTES:
        file, content = read_members(FileBody, dict(request.query_params)), None
    else:
        file = body = read_body(MediaBody, await read_bytes(request, _MAX_BASE64_BYTES))
        content = body.content
    sent = (business_number(state, file.to).phone_number_id, file.mime_type, file.file_name)
    try:
        if content is None:
            return await add_media(state, *sent, request.stream(), is_inbound=True)
        return await add_inbound_media(state, *sent, content)
    except GraphApiError as error:
        if error.status >= 500:  # the file is valid, but the disk is full
            accepted = "a file when there is room, or WAYPOST_LEAST_FREE_MB lower"
            raise ControlApiError("content", _error_details(error), accepted, status=507) from error
        accepted = "a MIME type such as text/csv, and a file of 1 byte to 100 MB"
        raise ControlApiError("content", _error_details(error), accepted, status=422) from error
    except ClientDisconnect:
        raise ControlApiError("content", "ends before the announced length", "the whole file") from None


@operation("GET", "/control/media/{media_id}")
async def show_media(media: PathMedia) -> SimulatedMedia:
    """Return a media file's record."""
    return media


@operation("GET", "/control/media/{media_id}/content")
async def show_content(state: SimulatorState, request: Request, media: PathMedia) -> Response:
    """Return the bytes of an unexpired file: all, or the requested range."""
    expired = ControlApiError("media_id", "has expired", "the id of a medium that has not expired", status=410)
    if find_media(state, media.media_id) is None:
        raise expired
    # An uploaded file must not run as a page of this origin.
    headers = {"x-content-type-options": "nosniff", "content-security-policy": "sandbox"}
    path = state.files.path(media.content_name)
    try:
        return await file_response(request, path, media.mime_type, headers)
    except FileNotFoundError:
        raise expired from None


@operation("DELETE", "/control/media/{media_id}")
async def drop_media(state: SimulatorState, media: PathMedia) -> SimulatedMedia:
    """Delete a file and its id."""
    await delete_media(state, media)
    return media


@operation("POST", "/control/media/{media_id}/expire")
async def expire_media(state: SimulatorState, media: PathMedia) -> SimulatedMedia:
    """Expire a media id now."""
    expired = replace(media, expires_ms=state.clock.now_ms())
    await state.cached(MEDIA).save(expired, media.media_id)
    return expired


@operation("GET", "/control/handles", handles=list[UploadHandleView])
async def list_handles(state: SimulatorState) -> dict[str, Any]:
    """Return every complete upload with its handle, oldest first."""
    complete = [upload for upload in state.values(UPLOADS).values() if upload.handle]
    return {"handles": [_handle_view(upload) for upload in complete]}


@operation("POST", "/control/handles/expire")
async def expire_handle(state: SimulatorState, *, handle: Text) -> UploadHandleView:
    """Expire an upload handle now."""
    upload = find_by_handle(state, handle)
    if upload is None:
        raise ControlApiError(
            "handle", "is not known, or has expired", "a handle, whole, as an upload returned it", status=404
        )
    expired = replace(upload, expires_ms=state.clock.now_ms())
    await state.cached(UPLOADS).save(expired, upload.upload_id)
    return _handle_view(expired)


def _handle_view(upload: UploadSession) -> UploadHandleView:
    return UploadHandleView(upload.handle, upload.file_name, upload.file_type, upload.file_length, upload.expires_ms)


def _error_details(error: GraphApiError) -> str:
    """Return an error's details, or its message if it has none."""
    details = error.error.get("error_data", {}).get("details")
    return str(details or error.error.get("message", error))
