"""Graph API calls for resumable uploads. Source: facts 6.2."""

from typing import Any

from waypost.simulator.accounts.accounts import GraphApp
from waypost.simulator.errors import bad_parameter, no_such_object
from waypost.simulator.graph_operations import GraphOperations
from waypost.simulator.media.media_kinds import MAX_MEDIA_BYTES
from waypost.simulator.media.uploads import UploadSession
from waypost.simulator.requests import Call
from waypost.simulator.services import SimulatorServices

operation = GraphOperations()


@operation("uploads.begin", "POST", GraphApp, "uploads", permission=None)
async def begin_upload(services: SimulatorServices, call: Call, app: GraphApp) -> dict[str, Any]:
    """Open an upload session."""
    upload = await services.uploads.begin(app.app_id, _user_id(services, call, app), call.fields)
    return {"id": upload.session_id}


@operation("uploads.continue", "POST", UploadSession, permission=None, is_streamed=True)
async def continue_upload(services: SimulatorServices, call: Call, upload: UploadSession) -> dict[str, Any]:
    """Append bytes at `file_offset`; return the handle if the upload is complete, else the next offset."""
    _check_signature(call, upload)
    text = call.file_offset
    if text is None:
        raise bad_parameter("The header file_offset is required.")
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise bad_parameter("Header file_offset must be a whole number.")
    if call.body is None:
        raise bad_parameter("The file's bytes are required.")
    body = call.body.set_limit(MAX_MEDIA_BYTES)
    changed = await services.uploads.add(upload, int(text), body)
    if changed.handle:
        return {"h": changed.handle}
    return await _progress(services, changed)


@operation("uploads.read", "GET", UploadSession, permission=None, is_streamed=True)
async def show_upload(services: SimulatorServices, call: Call, upload: UploadSession) -> dict[str, Any]:
    """Return the offset of an upload."""
    _check_signature(call, upload)
    return await _progress(services, upload)


def upload_id_of(object_id: str) -> str | None:
    """Return the upload id in an object's id; None if it has none.

    Some clients escape the question mark, which then is part of the path.
    """
    prefix, colon, rest = object_id.partition(":")
    return rest.partition("?")[0] if colon and prefix == "upload" else None


async def _progress(services: SimulatorServices, upload: UploadSession) -> dict[str, Any]:
    return {"id": upload.session_id, "file_offset": await services.uploads.offset(upload)}


def _check_signature(call: Call, upload: UploadSession) -> None:
    signature = call.query.get("sig") or call.object_id.partition("?sig=")[2]
    if signature != upload.signature:
        raise no_such_object(call.method, call.object_id)


def _user_id(services: SimulatorServices, call: Call, app: GraphApp) -> str:
    """Return the id of the uploading account: one of the app, or one of the token."""
    token = services.tokens.check(call.token)
    ids = (
        account.waba_id
        for account in services.accounts.accounts_of_app(app.app_id)
        if token.grants_access([account.waba_id])
    )
    return next(ids, token.waba_ids[0] if token.waba_ids else app.app_id)
