"""Endpoints for flows at the operator: create, list, change, publish, deprecate, delete."""

import asyncio
import re
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Final

import msgspec

from waypost.api.auth.authorisation import authorise_app
from waypost.api.direct_calls import account_of, call_operator
from waypost.api.http.multipart import read_parts
from waypost.api.http.requests import ApiResponse, Request
from waypost.api.services import Services
from waypost.base.http.multipart import PartHead
from waypost.domain.app import App
from waypost.domain.direct_calls.call import CallResult, OperatorCall
from waypost.domain.direct_calls.flows import (
    ChangeFlow,
    CreateFlow,
    DeleteFlow,
    DeprecateFlow,
    FindDraftFlow,
    GetFlow,
    GetFlowOwner,
    ListFlowAssets,
    ListFlows,
    PublishFlow,
    PutFlowAssets,
)
from waypost.domain.errors import ApiError, ErrorCode, missing_parameter
from waypost.wire.forms import Form, read_json

MAX_FLOW_NAME_CHARS: Final = 200  # Source: spec, "Limits"
MAX_FLOW_FILE_BYTES: Final = 10 * 1024 * 1024  # Source: the operator's page "Flows API"
FLOW_FIELDS: Final = (  # the fields that can be requested of one flow
    "id", "name", "status", "categories", "validation_errors", "json_version", "data_api_version",
    "endpoint_uri", "preview", "whatsapp_business_account", "application", "updated_at",
)  # fmt: skip
MAX_FLOW_FILES: Final = 4
"""Flow files held in memory at once: each until the operator has it."""
_file_slots: Final = threading.BoundedSemaphore(MAX_FLOW_FILES)
_FILE_SLOT_RETRY_S: Final = 2
FLOW_FILE_TIMEOUT_S: Final = 60
"""For the upload of a file: a slow client occupies a slot that others need."""
_ID: Final = re.compile(r"[0-9]{1,32}")
_list: Final = msgspec.json.Decoder(list[str])


async def create_flow(services: Services, request: Request) -> ApiResponse:
    """Create a flow in the app's business account; it begins as a draft.

    Errors in this order: 401, 429, 400 a missing or invalid field, 400 the operator's error, 503.

    Clients of an older shape also read `validation_errors`.

    Source: ledger 1.8; facts 9.4; the name's length: spec, "Limits".
    """
    app = await authorise_app(services, request)
    form = request.form_or_json()
    name = _checked_name(form.required("name", f"1 to {MAX_FLOW_NAME_CHARS} characters"))
    categories, options = _categories(form), _optional_fields(form)
    await _check_clone(services, app, options)
    account_id = account_of(app)
    try:
        flow = await call_operator(services, app, CreateFlow(account_id, name, categories, **options))
    except ApiError as error:
        if error.code is not ErrorCode.OPERATOR_REJECTED or not _was_begun(request):
            raise _creation_error(error) from None
        # The draft of an earlier attempt, whose response was lost: names are unique in an account, so the operator
        # rejects the second creation. Another client may own the draft with this name, so it is returned only if
        # this request is known to have begun before.
        draft = await call_operator(services, app, FindDraftFlow(account_id, name, categories))
        if draft is None:
            raise _creation_error(error) from None
        flow = draft
    return ApiResponse({"id": flow.id, "status": "success", "validation_errors": flow.validation_errors})


def _creation_error(error: ApiError) -> ApiError:
    """Return the documented error for a name that is in use, and any other error as it is.

    The operator has no code of its own for it, so its text decides. Source: ledger 1.8.
    """
    if error.code is ErrorCode.OPERATOR_REJECTED and "unique" in error.explanation:
        return ApiError(ErrorCode.FLOW_NAME_IN_USE, error.explanation)
    return error


def _was_begun(request: Request) -> bool:
    """True if the same request was begun before under its key and its outcome is unknown."""
    return request.idempotency is not None and request.idempotency.begun_before


async def list_flows(services: Services, request: Request) -> ApiResponse:
    """Return the flows of the app's business account as a bare list. Source: facts 9.4."""
    app = await authorise_app(services, request)
    return ApiResponse((await call_operator(services, app, ListFlows(account_of(app)))).raw)


async def show_flow(services: Services, request: Request) -> ApiResponse:
    """Return one flow with the requested fields. Source: facts 9.4."""
    app = await authorise_app(services, request)
    requested = [name.strip() for name in (request.query("fields") or "").split(",") if name.strip()]
    if any(name not in FLOW_FIELDS for name in requested):
        raise ApiError(ErrorCode.FIELD_BROKEN, f"fields must be some of {','.join(FLOW_FIELDS)}.")
    flow_id = await _flow_in_path(services, app, request)
    return ApiResponse((await call_operator(services, app, GetFlow(flow_id, requested or FLOW_FIELDS))).raw)


async def change_flow(services: Services, request: Request) -> ApiResponse:
    """Change a draft's name or categories. Source: facts 9.4."""
    app = await authorise_app(services, request)
    form = request.form_or_json()
    options = _optional_fields(form)
    name = categories = None
    if form.text("name") is not None:
        name = _checked_name(form.required("name", f"1 to {MAX_FLOW_NAME_CHARS} characters"))
    if form.text("categories") is not None or form.all_values("categories[]"):
        categories = _categories(form)
    if name is None and categories is None and not options:
        raise ApiError(ErrorCode.FIELD_MISSING, "Name what is to change: name or categories.")
    await _check_clone(services, app, options)
    return await _call_for_flow(
        services, app, request, lambda flow_id: ChangeFlow(flow_id, name, categories, **options)
    )


async def delete_flow(services: Services, request: Request) -> ApiResponse:
    """Delete a draft. Source: facts 9.4."""
    return await _call_for_flow(services, await authorise_app(services, request), request, DeleteFlow)


async def publish_flow(services: Services, request: Request) -> ApiResponse:
    """Publish a draft. Source: facts 9.4."""
    return await _call_for_flow(services, await authorise_app(services, request), request, PublishFlow)


async def deprecate_flow(services: Services, request: Request) -> ApiResponse:
    """Deprecate a published flow. Source: facts 9.4."""
    return await _call_for_flow(services, await authorise_app(services, request), request, DeprecateFlow)


async def preview_flow(services: Services, request: Request) -> ApiResponse:
    """Return the URL of a flow's preview. Source: facts 9.4."""
    app = await authorise_app(services, request)
    flow_id = await _flow_in_path(services, app, request)
    flow = await call_operator(services, app, GetFlow(flow_id, ("preview",)))
    return ApiResponse({"id": flow_id, "preview": flow.raw.get("preview", {}), "status": "success"})


async def show_assets(services: Services, request: Request) -> ApiResponse:
    """Return a flow's files as a bare list; the first has the URL of its JSON. Source: facts 9.4, 17."""
    app = await authorise_app(services, request)
    flow_id = await _flow_in_path(services, app, request)
    return ApiResponse((await call_operator(services, app, ListFlowAssets(flow_id))).raw)


async def put_assets(services: Services, request: Request) -> ApiResponse:
    """Set a draft's JSON by a multipart form with the field `file`.

    Errors in this order: 401, 429 also if too many such files are in flight, 400 no file, 400 too large,
    400 another account's flow, 400 the operator's error, 503.

    Source: facts 9.4.
    """
    app = await authorise_app(services, request)
    with _file_slot():
        file = await _read_file_in_time(request)
        flow_id = await _flow_in_path(services, app, request)
        result = await call_operator(services, app, PutFlowAssets(flow_id, *file))
    return ApiResponse({"status": "success", "success": result.success, "validation_errors": result.validation_errors})


async def _call_for_flow(
    services: Services, app: App, request: Request, call: Callable[[str], OperatorCall[CallResult]]
) -> ApiResponse:
    flow_id = await _flow_in_path(services, app, request)
    result = await call_operator(services, app, call(flow_id))
    return ApiResponse({"status": "success", "success": result.success})


async def _flow_in_path(services: Services, app: App, request: Request) -> str:
    """Return the id of the flow in the path, which must belong to the app's business account.

    Raises:
        ApiError: it belongs to another account or does not exist; the error is the same.
    """
    unknown = ApiError(ErrorCode.OPERATOR_REJECTED, "The path must name a flow of the app's business account.")
    return await _own_flow(services, app, request.path["flow_id"], unknown)


async def _check_clone(services: Services, app: App, options: dict[str, str]) -> None:
    """Check that the flow to copy belongs to the app's business account too.

    Raises:
        ApiError: it does not.
    """
    if "clone_flow_id" in options:
        unknown = ApiError(ErrorCode.FIELD_BROKEN, "clone_flow_id must name a flow of the app's business account.")
        await _own_flow(services, app, options["clone_flow_id"], unknown)


async def _own_flow(services: Services, app: App, flow_id: str, not_found_error: ApiError) -> str:
    """Return a flow's id if the flow belongs to the app's business account.

    Our token at the operator may open many accounts, so we request the flow's owner from the operator.

    Raises:
        ApiError: `not_found_error`, if it does not.
    """
    account = account_of(app)
    if not _ID.fullmatch(flow_id):
        raise not_found_error
    try:
        owner = await call_operator(services, app, GetFlowOwner(flow_id))
    except ApiError as error:
        raise not_found_error if error.code is ErrorCode.OPERATOR_REJECTED else error from None
    if owner != account:
        raise not_found_error
    return flow_id


def _checked_name(name: str) -> str:
    if len(name) > MAX_FLOW_NAME_CHARS:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"name must be at most {MAX_FLOW_NAME_CHARS} characters.")
    return name


def _categories(form: Form) -> list[str]:
    """Return the categories: a JSON list, a list separated by commas, or a repeated field."""
    text = form.text("categories") or ""
    if text.lstrip().startswith("["):
        values = read_json(text, _list, name="categories", accepted="a list of texts")
    else:
        values = [part for value in form.all_values("categories", "categories[]") for part in value.split(",")]
    categories = [value.strip().upper() for value in values if value.strip()]
    if not categories:
        raise missing_parameter("categories", 'a list such as ["SIGN_UP"]', "List")
    return categories


def _optional_fields(form: Form) -> dict[str, str]:
    values = {name: form.text(name) for name in ("clone_flow_id", "endpoint_uri", "flow_json")}
    return {name: text for name, text in values.items() if text}


@contextmanager
def _file_slot() -> Generator[None]:
    """Hold a slot for one file in memory.

    Raises:
        ApiError: no slot is free.
    """
    if not _file_slots.acquire(blocking=False):
        raise ApiError(
            ErrorCode.TOO_MANY_REQUESTS,
            f"Only {MAX_FLOW_FILES} files of flows are taken at once; try again shortly.",
            retry_after_s=_FILE_SLOT_RETRY_S,
        )
    try:
        yield
    finally:
        _file_slots.release()


async def _read_file_in_time(request: Request) -> tuple[str, str, bytes]:
    try:
        async with asyncio.timeout(FLOW_FILE_TIMEOUT_S):
            return await _read_file(request)
    except TimeoutError as error:
        raise missing_parameter(
            "file", f"a part that arrives within {FLOW_FILE_TIMEOUT_S} seconds", "MultipartFile"
        ) from error


async def _read_file(request: Request) -> tuple[str, str, bytes]:
    """Return name, MIME type and bytes of the part `file`.

    Raises:
        ApiError: the part is missing or too large.
    """
    head: PartHead | None = None
    is_inside = False
    content = bytearray()
    async for part in read_parts(request):
        if isinstance(part, PartHead):
            is_inside = part.name == "file" and head is None
            head = part if is_inside else head
        elif is_inside:
            content += part
            if len(content) > MAX_FLOW_FILE_BYTES:
                raise ApiError(ErrorCode.FLOW_FILE_TOO_LARGE, f"file must be at most {MAX_FLOW_FILE_BYTES} bytes.")
    if head is None or not content:
        raise missing_parameter("file", "a part with the flow's JSON", "MultipartFile")
    return head.file_name or "flow.json", head.content_type or "application/json", bytes(content)
