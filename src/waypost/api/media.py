"""Media: upload for a handle or an id, download, delete."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any, Final

from msgspec import Struct
from sqlalchemy import Connection

from waypost.api.authorisation import Credential
from waypost.api.fields import Field
from waypost.api.file_types import types_of
from waypost.api.idempotency import commit
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.requests import ApiResponse, Request
from waypost.api.route import BodyFormat, IdempotencyMode
from waypost.api.services import Services
from waypost.base.telemetry.logs import log
from waypost.domain.app import App, Hosting
from waypost.domain.errors import ApiError, ErrorCode
from waypost.domain.media import ACCEPTED_TYPES, MAX_UPLOAD_BYTES, UploadedMedia
from waypost.domain.outcome import OperatorRejected, OperatorUnavailable
from waypost.store.media.files import IncomingFile, NotEnoughSpace
from waypost.store.media.media import add_media, delete_upload, inbound_of_app, media_of_app
from waypost.wire.errors import UPLOAD_FAILED_TEXT
from waypost.wire.media import content_disposition, content_type, disk_full_error
from waypost.wire.responses import Confirmation, success

_KEY_MEDIA: Final = "/wa/{app_id}/wa/media"
MAX_MEDIA_ID_DIGITS: Final = 32  # Source: operator's facts 1, "IDs"
MEDIA_FETCH_TIMEOUT_S: Final = 10  # Source: decision 0026
_INVALID_CALLS: Final = "invalid_media"
_INVALID_CALLS_TEXT: Final = (  # followed by the time. Source: ledger 1.6
    "Api rate limit reached due to multiple invalid calls. New quota will be available on"
)
_DELETE_RATE_TEXT: Final = "Rate limit exceeded. Try again later."  # Source: ledger 1.6
_log = log("api")


class _DuplicateMediaId(Exception):
    """The random id of a new upload is already in use."""


class Upload(Struct):
    """A file."""

    file: Annotated[bytes, Field("A file, or its public URL as text.", "https://shop.example/a.png")]
    file_type: Annotated[str, Field("The file's MIME type; detected from the bytes when absent.", "image/png")] = ""


class MediaDownload(Struct, rename="camel"):
    """The download of a file."""

    file_name: Annotated[str, Field("The file name of the download.", "picture.png")] = ""


class UploadHandle(Struct):
    """A handle of an upload."""

    message: str


class StoredUpload(Struct, rename="camel"):
    """An upload with its URL, beside its id: clients read either of the two shapes."""

    file_name: str
    id: str
    url: str


operation = Operations("facts 8")
_UPLOAD_ERRORS: Final = (
    ErrorCode.FIELD_BROKEN,
    ErrorCode.WRONG_FILE_TYPE,
    ErrorCode.FILE_TOO_LARGE,
    ErrorCode.NO_ROOM,
    ErrorCode.MEDIA_QUOTA,
    ErrorCode.MEDIA_NOT_FETCHED,
)
_upload = partial(
    operation,
    "POST",
    rate="upload",
    body=Upload,
    body_format=BodyFormat.MULTIPART,
    errors=_UPLOAD_ERRORS,
    operator_errors=(),
    idempotency=IdempotencyMode.ONE_TRANSACTION,
)


def _rejected_deletion(_request: Request, error: ApiError) -> ApiError:
    """Return the error with another text, if it is that of the rate."""
    if error.code is not ErrorCode.TOO_MANY_REQUESTS:
        return error
    return ApiError(error.code, error.explanation, retry_after_s=error.retry_after_s, text=_DELETE_RATE_TEXT)


@_upload(f"{APP}/upload/media", success(handleId=UploadHandle), source="spec, Upload media, handle id")
async def upload_sample_of_template(call: AppCall) -> ApiResponse:
    """Upload a template's sample, and return a handle of ours.

    Errors in this order: 401 wrong token, 429 eleventh in a second, 400 no file, 400 another type,
    413 too large. The operator gets the file later, when a template first needs it.
    """
    return await _store_upload(
        call, lambda media: {"handleId": {"message": media.handle}, "status": "success"}, for_handle=True
    )


@_upload(
    f"{APP}/media",
    success(mediaId=str),
    source="spec, Upload media, media id",
    errors=(*_UPLOAD_ERRORS, ErrorCode.NOT_A_CLOUD_APP),
)
async def upload_file_for_messages(call: AppCall) -> ApiResponse:
    """Upload a file for messages, and return a media id of ours; otherwise as for a handle.

    Source: spec, "Upload media, media id"; facts 8.
    """
    if call.app.hosting is Hosting.ON_PREMISES:
        raise ApiError(ErrorCode.NOT_A_CLOUD_APP, "The app must be hosted on the Cloud API, not on premises.")
    return await _store_upload(call, lambda media: {"mediaId": media.id, "status": "success"}, for_handle=False)


@_upload(f"{_KEY_MEDIA}/v2", success(mediaId=str, media=StoredUpload), credential=Credential.API_KEY)
@_upload(_KEY_MEDIA, success(mediaId=str, media=StoredUpload), credential=Credential.API_KEY)
async def upload_file_by_api_key(call: AppCall) -> ApiResponse:
    """Upload a file by API key; its URL is unguessable and needs no credential.

    The URL ends in an extension, because a client checks it against the kind of the template.

    Source: facts 8, `/wa/{appId}/wa/media`; public clients.
    """
    services = call.services

    def encode(media: UploadedMedia) -> dict[str, Any]:
        key = f"{media.id}-{services.secret_box.media_keys(media.id)[0]}"
        url = f"{services.public_url}/media/{key}{ACCEPTED_TYPES[media.mime_type].extension}"
        stored = StoredUpload(media.file_name, media.id, url)
        return {"status": "success", "mediaId": media.id, "media": stored}

    return await _store_upload(call, encode, for_handle=False)


@operation(
    "GET",
    f"{APP}/media/{{media_id}}",
    bytes,
    source="ledger 1.6; facts 8",
    rate="download",
    errors=(
        ErrorCode.FIELD_BROKEN,
        ErrorCode.NOT_FOR_THIS_APP,
        ErrorCode.INVALID_MEDIA_ID,
        ErrorCode.UNKNOWN_MEDIA_ID,
        ErrorCode.TOO_MANY_INVALID_MEDIA_CALLS,
        ErrorCode.NO_ROOM,
    ),
    operator_errors=(ErrorCode.OPERATOR_UNAVAILABLE,),
    other_app=ErrorCode.APP_NOT_FOUND,
)
async def download_media(call: AppCall, query: MediaDownload) -> ApiResponse:
    """Return the bytes of one of the app's media: uploaded to us, sent by a recipient, or only at the operator.

    Errors in this order: 401 wrong token, 400 an app that is not the partner's, 429 too many calls, or more
    than 20 invalid ones in an hour, 400 no media id, 404 an id that is not the app's, 503 the operator does
    not return it now.
    """
    services, request, app = call
    try:
        await services.limiter.check(_INVALID_CALLS, app.id)
    except ApiError as error:
        until_ms = services.clock.now_ms() + (error.retry_after_s or 0) * 1000
        text = f"{_INVALID_CALLS_TEXT} {until_ms}"
        raise ApiError(
            ErrorCode.TOO_MANY_INVALID_MEDIA_CALLS, error.explanation, retry_after_s=error.retry_after_s, text=text
        ) from error
    media_id, requested_name = request.path["media_id"], query.file_name
    now_ms = services.clock.now_ms()
    uploaded = await services.database.read(media_of_app, app.id, media_id, now_ms)
    if uploaded is not None:
        name = requested_name or uploaded.file_name or media_id
        return await _file_response(services, uploaded.sha256, uploaded.mime_type, name)
    inbound = await services.database.read(inbound_of_app, app.id, media_id, now_ms)
    if inbound is not None and inbound.sha256 is not None:
        name = requested_name or inbound.file_name or media_id
        return await _file_response(services, inbound.sha256, inbound.mime_type, name)
    request.spent.clear()  # the operator is called, so the request counts even if it fails
    try:
        sha256, mime_type = await _fetch_from_operator(services, app, media_id)
    except ApiError as error:
        if error.code in (ErrorCode.INVALID_MEDIA_ID, ErrorCode.UNKNOWN_MEDIA_ID):
            await services.limiter.spend(_INVALID_CALLS, app.id)
        raise
    return await _file_response(services, sha256, mime_type, requested_name or media_id)


@operation(
    "DELETE",
    f"{APP}/media/{{media_id}}",
    Confirmation,
    source="ledger 1.6",
    at_operator=False,
    errors=(ErrorCode.MEDIA_NOT_DELETED, ErrorCode.MEDIA_ALREADY_DELETED),
    rejection=_rejected_deletion,
)
async def delete_media(call: AppCall) -> dict[str, Any]:
    """Delete an upload of the partner. A message that names it and is not sent yet will fail.

    Errors in this order: 401 wrong token, 429 too many, 400 no media id, 404 an id that is not one of the
    partner's uploads. The operator's copy is left to expire.
    """
    services, media_id = call.services, call.request.path["media_id"]
    now_ms = services.clock.now_ms()
    if await services.database.write(delete_upload, call.app.partner_id, media_id, now_ms):
        return {"status": "success", "message": "Media deleted successfully"}
    code = ErrorCode.MEDIA_ALREADY_DELETED if _is_media_id(media_id) else ErrorCode.MEDIA_NOT_DELETED
    raise ApiError(code, f"The path must end in the id of an upload: at most {MAX_MEDIA_ID_DIGITS} digits.")


async def _store_upload(
    call: AppCall, encode: Callable[[UploadedMedia], dict[str, Any]], *, for_handle: bool
) -> ApiResponse:
    """Store the upload and return its response, or the documented error if our disk fails."""
    services, request, app = call
    responses: list[ApiResponse] = []

    async def record(media: UploadedMedia) -> bool:
        def make_response(is_new: bool) -> ApiResponse:
            if not is_new:
                raise _DuplicateMediaId
            return ApiResponse(encode(media))

        try:
            responses.append(await commit(services, request, _insert_media, media, make_response=make_response))
        except _DuplicateMediaId:
            return False
        return True

    try:
        await services.uploads.store_from_request(app, request, record, for_handle=for_handle)
        return responses[0]
    except ConnectionError:
        raise
    except OSError:
        _log.exception("an upload could not be stored")
        body: dict[str, Any] = {"status": "error", "message": UPLOAD_FAILED_TEXT}
        return ApiResponse(body, 500)


def _insert_media(connection: Connection, media: UploadedMedia) -> bool:
    return add_media(connection, [media])[0]


async def _fetch_from_operator(services: Services, app: App, media_id: str) -> tuple[str, str]:
    """Fetch one of the number's media from the operator; it is retained here for an hour at most."""
    account = await services.directory.operator_account_of(app)
    if not _is_media_id(media_id):
        raise ApiError(
            ErrorCode.INVALID_MEDIA_ID, f"The path must end in a media id: at most {MAX_MEDIA_ID_DIGITS} digits."
        )
    if account is None or not app.phone_number_id:
        raise _unknown_media_error()
    try:
        incoming = await services.files.begin()
    except NotEnoughSpace as error:
        raise disk_full_error() from error
    try:
        async with asyncio.timeout(MEDIA_FETCH_TIMEOUT_S):
            parts = services.operators.adapter(account).fetch_media(
                account, media_id, phone_number_id=app.phone_number_id
            )
            async for part in parts:
                await _write_part(incoming, part)
        types = types_of(incoming.head, await incoming.tail())
        return await incoming.commit(), types[0]
    except TimeoutError as error:
        raise _fetch_failed_error("it took longer than 10 s") from error
    except NotEnoughSpace as error:
        raise disk_full_error() from error
    finally:
        await incoming.discard()


def _is_media_id(media_id: str) -> bool:
    return media_id.isascii() and media_id.isdecimal() and len(media_id) <= MAX_MEDIA_ID_DIGITS


async def _write_part(incoming: IncomingFile, part: bytes | OperatorRejected | OperatorUnavailable) -> None:
    match part:
        case bytes():
            await incoming.add(part)
            if incoming.size_bytes > MAX_UPLOAD_BYTES:
                raise _fetch_failed_error(f"it is larger than {MAX_UPLOAD_BYTES} bytes")
        case OperatorRejected():
            raise _unknown_media_error()
        case OperatorUnavailable(text=text):
            raise _fetch_failed_error(text)


def _unknown_media_error() -> ApiError:
    return ApiError(
        ErrorCode.UNKNOWN_MEDIA_ID,
        "The path must name a media id that this app has uploaded or received, and that has not expired.",
    )


def _fetch_failed_error(reason: str) -> ApiError:
    return ApiError(ErrorCode.OPERATOR_UNAVAILABLE, f"The operator did not give the medium; try again later: {reason}.")


async def _file_response(services: Services, sha256: str, mime_type: str, name: str) -> ApiResponse:
    return ApiResponse(
        None,
        file=await services.files.local_path(sha256),
        content_type=content_type(mime_type),
        headers=(("Content-Disposition", content_disposition(name)), ("X-Content-Type-Options", "nosniff")),
    )
