"""Resumable uploads, and the handles that they produce: template examples refer to them. Source: facts 6.2."""

import base64
from collections.abc import AsyncIterator
from typing import Annotated, Any, Final

import msgspec
from msgspec.structs import replace

from waypost.base.clock import DAY_MS
from waypost.base.ids import Ids
from waypost.base.json_values import integer_or_none, text_or_none
from waypost.simulator.apis.errors import bad_parameter, no_such_object
from waypost.simulator.apis.media_kinds import MAX_MEDIA_BYTES
from waypost.simulator.apis.parameters import read_parameters
from waypost.simulator.apis.requests import Call
from waypost.simulator.state.accounts import GraphApp
from waypost.simulator.state.graph_operations import GraphOperations
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.state.tokens import check_token
from waypost.simulator.storage.keyed_store import StoredKind

operation = GraphOperations()

# Source: facts 6.2, "Types".
UPLOAD_TYPES: Final = ("application/pdf", "image/jpeg", "image/jpg", "image/png", "video/mp4")
UPLOAD_LIFETIME_MS: Final = 30 * DAY_MS  # not documented; we assume that the time in a handle is its expiry
_LONG_VIDEO_BYTES: Final = 8 * 1024 * 1024
_LONG_VIDEO_HANDLE_LINES: Final = 3  # Source: facts 6.2: one value, three handles joined by newlines
UPLOAD_FILE_PREFIX: Final = "upload-"


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
        return UPLOAD_FILE_PREFIX + self.upload_id

    @property
    def session_id(self) -> str:
        """The id as the client sees it."""
        return f"upload:{self.upload_id}?sig={self.signature}"


UPLOADS: Final = StoredKind("upload", UploadSession)


def _check_length(_name: str, value: Any) -> int:
    length = integer_or_none(value)
    if length is None or not 0 < length <= MAX_MEDIA_BYTES:
        raise bad_parameter(f"Param file_length must be from 1 to {MAX_MEDIA_BYTES}.")
    return length


def _check_type(_name: str, value: Any) -> str:
    file_type = "" if value is None else str(value).lower()
    if file_type not in UPLOAD_TYPES:
        raise bad_parameter(f"Param file_type must be one of {{{', '.join(UPLOAD_TYPES)}}} - got {file_type!r}.")
    return file_type


def _read_file_name(_name: str, value: Any) -> str:
    return (text_or_none(value) or "")[:240]


class UploadParameters(msgspec.Struct, frozen=True):
    """The parameters of an upload session."""

    file_length: Annotated[int, _check_length]
    file_type: Annotated[str, _check_type]
    file_name: Annotated[str, _read_file_name] = ""


def find_by_handle(state: SimulatorState, handle: str) -> UploadSession | None:
    """Return the upload of a handle, or of one line of it; None if it is unknown or expired."""
    lines = set(handle.split("\n"))
    for upload in list(state.values(UPLOADS).values()):  # on the writer's thread, too
        if upload.handle and lines <= set(upload.handle.split("\n")):
            return upload if upload.expires_ms > state.clock.now_ms() else None
    return None


def find_upload(state: SimulatorState, object_id: str) -> UploadSession | None:
    """Return the session with the id of an object; None if there is none or it has expired.

    Some clients escape the question mark, which then is part of the path.
    """
    prefix, colon, rest = object_id.partition(":")
    upload = state.values(UPLOADS).get(rest.partition("?")[0]) if colon and prefix == "upload" else None
    return None if upload is None or upload.expires_ms <= state.clock.now_ms() else upload


@operation("uploads.begin", "POST", GraphApp, "uploads", permission=None)
def begin_upload(transaction: Transaction, call: Call, app: GraphApp) -> dict[str, Any]:
    """Open an upload session. Source: facts 6.2, step 1."""
    state = transaction.state
    new, token = read_parameters(UploadParameters, call.fields), check_token(state, call.token)
    accounts = [account.waba_id for account in state.accounts.accounts_of_app(app.app_id)]
    own = (waba_id for waba_id in (*accounts, *token.waba_ids) if token.grants_access([waba_id]))
    upload = UploadSession(
        upload_id=_token(state.ids),
        signature=_token(state.ids),
        app_id=app.app_id,
        user_id=next(own, app.app_id),  # an account of the app, or one of the token
        file_name=new.file_name,
        file_length=new.file_length,
        file_type=new.file_type,
        expires_ms=state.clock.now_ms() + UPLOAD_LIFETIME_MS,
    )
    transaction.save(UPLOADS, upload, upload.upload_id)
    return {"id": upload.session_id}


@operation("uploads.continue", "POST", UploadSession, permission=None, is_streamed=True)
async def continue_upload(state: SimulatorState, call: Call, upload: UploadSession) -> dict[str, Any]:
    """Append bytes at `file_offset`; return the handle if the upload is complete, else the next offset.

    Bytes received before a broken connection are kept, and the upload can be resumed. Source: facts 6.2, step 2.
    """
    _check_signature(call, upload)
    text = call.file_offset
    if text is None:
        raise bad_parameter("The header file_offset is required.")
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise bad_parameter("Header file_offset must be a whole number.")
    if call.body is None:
        raise bad_parameter("The file's bytes are required.")
    if upload.upload_id in state.active_uploads:
        raise bad_parameter("Another request is uploading to this session.")
    state.active_uploads.add(upload.upload_id)
    try:
        changed = await _append(state, upload, int(text), call.body.set_limit(MAX_MEDIA_BYTES))
    finally:
        state.active_uploads.discard(upload.upload_id)
    return {"h": changed.handle} if changed.handle else await _progress(state, changed)


@operation("uploads.read", "GET", UploadSession, permission=None, is_streamed=True)
async def show_upload(state: SimulatorState, call: Call, upload: UploadSession) -> dict[str, Any]:
    """Return the offset of an upload."""
    _check_signature(call, upload)
    return await _progress(state, upload)


async def _append(
    state: SimulatorState, upload: UploadSession, offset: int, chunks: AsyncIterator[bytes]
) -> UploadSession:
    uploaded = await state.files.size(upload.content_name)
    if offset != uploaded:
        raise bad_parameter(f"Header file_offset is {offset}, but {uploaded} bytes have been uploaded.")
    writer = await state.files.open_writer(upload.content_name, offset)
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
    completed = replace(upload, handle=_make_handle(state, upload))
    await state.cached(UPLOADS).save(completed, completed.upload_id)
    return completed


def _make_handle(state: SimulatorState, upload: UploadSession) -> str:
    """Return a new handle for a complete upload. Source: facts 6.2, "Handle shape"."""
    is_long = upload.file_type == "video/mp4" and upload.file_length > _LONG_VIDEO_BYTES
    lines = _LONG_VIDEO_HANDLE_LINES if is_long else 1
    mime = base64.b64encode(upload.file_type.encode()).decode()
    end_s = upload.expires_ms // 1000
    return "\n".join(
        f"4::{mime}:AR{_token(state.ids)}:e:{end_s}:{upload.app_id}:{upload.user_id}:AR{_token(state.ids)}"
        for _ in range(lines)
    )


async def _progress(state: SimulatorState, upload: UploadSession) -> dict[str, Any]:
    return {"id": upload.session_id, "file_offset": await state.files.size(upload.content_name)}


def _check_signature(call: Call, upload: UploadSession) -> None:
    signature = call.query.get("sig") or call.object_id.partition("?sig=")[2]
    if signature != upload.signature:
        raise no_such_object(call.method, call.object_id)


def _token(ids: Ids) -> str:
    return base64.urlsafe_b64encode(bytes.fromhex(ids.secret())).decode().rstrip("=")
