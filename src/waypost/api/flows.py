"""Flows at the operator: create, list, change, publish, deprecate, delete."""

import asyncio
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Struct

from waypost.api.fields import Field, omit_empty
from waypost.api.operation import APP, AppCall, Operations
from waypost.api.requests import Request, read_parts
from waypost.api.route import BodyFormat, IdempotencyMode
from waypost.base.http.multipart import PartHead
from waypost.base.json_values import boolean_of, coerced_text, object_of, objects_in
from waypost.domain.errors import ApiError, ErrorCode, missing_parameter
from waypost.operators.contract import GraphFile
from waypost.wire.forms import read_json
from waypost.wire.responses import OperatorObject, response, success

MAX_FLOW_NAME_CHARS: Final = 200  # Source: spec, "Limits"
MAX_FLOW_FILE_BYTES: Final = 10 * 1024 * 1024  # Source: the operator's page "Flows API"
MAX_FLOWS: Final = "1000"
FLOW_FIELDS: Final = (  # the fields that can be requested of one flow
    "id",
    "name",
    "status",
    "categories",
    "validation_errors",
    "json_version",
    "data_api_version",
    "endpoint_uri",
    "preview",
    "whatsapp_business_account",
    "application",
    "updated_at",
)
_FILE_TEXTS: Final = {"name": "flow.json", "asset_type": "FLOW_JSON"}
MAX_FLOW_FILES: Final = 4
"""Flow files held in memory at once: each until the operator has it."""
_file_slots: Final = threading.BoundedSemaphore(MAX_FLOW_FILES)
_FILE_SLOT_RETRY_S: Final = 2
FLOW_FILE_TIMEOUT_S: Final = 60
"""For the upload of a file: a slow client occupies a slot that others need."""
_FLOW: Final = f"{APP}/flows/{{flow_id}}"
_NAME: Final = f"1 to {MAX_FLOW_NAME_CHARS} characters"
_ID: Final = re.compile(r"[0-9]{1,32}")
_list: Final = msgspec.json.Decoder(list[str])

operation = Operations("facts 9.4")
_CHANGED: Final = success(success=bool)
"""The operator's result of a change."""


def _read_name(text: str, name: str) -> str:
    if not text or text.isspace():
        raise missing_parameter(name, _NAME)
    if len(text) > MAX_FLOW_NAME_CHARS:
        raise ApiError(ErrorCode.FIELD_BROKEN, f"{name} must be at most {MAX_FLOW_NAME_CHARS} characters.")
    return text


def _read_categories(text: str, name: str) -> list[str]:
    """Return the categories: a JSON list, or a list separated by commas."""
    values = (
        read_json(text, _list, name=name, accepted="a list of texts")
        if text.lstrip().startswith("[")
        else text.split(",")
    )
    categories = [value.strip().upper() for value in values if value.strip()]
    if not categories:
        raise missing_parameter(name, 'a list such as ["SIGN_UP"]', "List")
    return categories


_CATEGORIES: Final = Field(
    "Its categories, as a JSON array; required at creation.",
    '["SIGN_UP"]',
    'a list such as ["SIGN_UP"]',
    kind="List",
    read=_read_categories,
    errors=(ErrorCode.FIELD_MISSING,),
)


class FlowContent(Struct, kw_only=True):
    """The sources of a flow."""

    clone_flow_id: Annotated[str, Field("The flow to copy.")] = ""
    endpoint_uri: Annotated[
        str, Field("The URL from which the operator requests data, for flows with an endpoint.")
    ] = ""
    flow_json: Annotated[str, Field("The flow's JSON, as text.")] = ""


class NewFlow(FlowContent, kw_only=False):
    """A flow to create."""

    name: Annotated[
        str,
        Field(
            "The flow's name, 1 to 200 characters, unique within the business account.",
            "Sign up",
            _NAME,
            MAX_FLOW_NAME_CHARS,
        ),
    ]
    categories: Annotated[list[str], _CATEGORIES]


class FlowChange(FlowContent, kw_only=False):
    """A change of a draft."""

    name: Annotated[
        str | None,
        Field("Another name, 1 to 200 characters.", "Sign up 2", read=_read_name, errors=(ErrorCode.FIELD_BROKEN,)),
    ] = None
    categories: Annotated[list[str] | None, _CATEGORIES] = None


class FlowMembers(Struct):
    """The members of a flow to return."""

    fields: Annotated[str, Field("The members to return, separated by commas; all when absent.", "id,name,status")] = ""


class ListedFlowMembers(Struct):
    """The members of each flow to return."""

    fields: Annotated[
        str, Field("The members to return, separated by commas; the operator's choice when absent.", "id,name,status")
    ] = ""


class FlowFile(Struct):
    """A flow's JSON, as a form in parts."""

    file: Annotated[bytes, Field("The flow's JSON, as a file of at most 10 MB.", "flow.json")]


@operation(
    "POST",
    f"{APP}/flows",
    response(id=str, status=Literal["success"], validation_errors=list[Any]),
    source="ledger 1.8; facts 9.4",
    errors=(ErrorCode.FIELD_BROKEN, ErrorCode.FLOW_NAME_IN_USE),
    idempotency=IdempotencyMode.MARKED_FIRST,
)
async def create_flow(call: AppCall, fields: NewFlow) -> dict[str, Any]:
    """Create a flow in the app's business account; it begins as a draft."""
    await _check_clone(call, fields)
    flows = f"{call.account}/flows"
    try:
        flow = await call.graph("POST", flows, omit_empty(fields))
    except ApiError as error:
        if error.code is not ErrorCode.OPERATOR_REJECTED or not call.was_begun_before:
            raise _creation_error(error) from None
        # The draft of an earlier attempt, whose response was lost: names are unique in an account, so the operator
        # rejects the second creation. Another client may own the draft with this name, so it is returned only if
        # this request is known to have begun before.
        members = {"limit": MAX_FLOWS, "fields": "id,name,status,categories,validation_errors"}
        drafts = objects_in((await call.graph_page(flows, members))["data"])
        flow = next((draft for draft in drafts if _is_draft_of(fields, draft)), None)
        if flow is None:
            raise _creation_error(error) from None
    problems = flow.get("validation_errors", [])  # clients of an older shape read them
    return {"id": coerced_text(flow.get("id")), "status": "success", "validation_errors": problems}


def _is_draft_of(fields: NewFlow, draft: dict[str, Any]) -> bool:
    match draft:
        case {"id": str(), "name": fields.name, "status": "DRAFT", "categories": [*categories]}:
            return set(categories) == set(fields.categories)
        case _:
            return False


def _creation_error(error: ApiError) -> ApiError:
    """Return the documented error for a name that is in use, and any other error as it is.

    The operator has no code of its own for it, so its text decides. Source: ledger 1.8.
    """
    if error.code is ErrorCode.OPERATOR_REJECTED and "unique" in error.explanation:
        return ApiError(ErrorCode.FLOW_NAME_IN_USE, error.explanation)
    return error


@operation("GET", f"{APP}/flows", list[dict[str, Any]], errors=(ErrorCode.FIELD_BROKEN,))
async def list_flows(call: AppCall, query: ListedFlowMembers) -> list[Any]:
    """Return the flows of the app's business account as a bare list."""
    members = _requested_members(query.fields)
    chosen = {"fields": ",".join(members)} if members else {}
    return (await call.graph_page(f"{call.account}/flows", {"limit": MAX_FLOWS, **chosen}))["data"]


@operation("GET", _FLOW, OperatorObject, errors=(ErrorCode.FIELD_BROKEN,))
async def show_flow(call: AppCall, query: FlowMembers) -> dict[str, Any]:
    """Return one flow with the requested fields."""
    members = _requested_members(query.fields) or FLOW_FIELDS
    return await call.graph("GET", await _flow_in_path(call), query={"fields": ",".join(members)})


def _requested_members(text: str) -> list[str]:
    requested = [name.strip() for name in text.split(",") if name.strip()]
    if any(name not in FLOW_FIELDS for name in requested):
        raise ApiError(ErrorCode.FIELD_BROKEN, f"fields must be some of {','.join(FLOW_FIELDS)}.")
    return requested


@operation("PUT", _FLOW, _CHANGED, errors=(ErrorCode.FIELD_MISSING,))
async def change_flow(call: AppCall, fields: FlowChange) -> dict[str, Any]:
    """Change a draft's name or categories."""
    members = omit_empty(fields)
    if not members:
        raise ApiError(ErrorCode.FIELD_MISSING, "Send what is to change: name, categories or both.")
    await _check_clone(call, fields)
    return _changed(await call.graph("POST", await _flow_in_path(call), members))


@operation("DELETE", _FLOW, _CHANGED)
async def delete_flow(call: AppCall) -> dict[str, Any]:
    """Delete a draft."""
    return _changed(await call.graph("DELETE", await _flow_in_path(call)))


@operation("GET", f"{_FLOW}/assets", list[dict[str, Any]])
async def list_files_of_flow(call: AppCall) -> list[Any]:
    """Return a flow's files as a bare list; the first has the URL of its JSON."""
    return (await call.graph_page(f"{await _flow_in_path(call)}/assets", {}))["data"]


@operation(
    "PUT",
    f"{_FLOW}/assets",
    success(success=bool, validation_errors=list[Any]),
    source="ledger 1.8; facts 9.4",
    body=FlowFile,
    body_format=BodyFormat.MULTIPART,
    errors=(ErrorCode.FLOW_FILE_TOO_LARGE,),
)
async def put_assets(call: AppCall) -> dict[str, Any]:
    """Set a draft's JSON by a multipart form with the field `file`.

    429 also if too many such files are in flight.
    """
    with _file_slot():
        try:
            async with asyncio.timeout(FLOW_FILE_TIMEOUT_S):
                file = await _read_file(call.request)
        except TimeoutError as error:
            accepted = f"a part that arrives within {FLOW_FILE_TIMEOUT_S} seconds"
            raise missing_parameter("file", accepted, "MultipartFile") from error
        path = f"{await _flow_in_path(call)}/assets"
        checked = await call.graph("POST", path, _FILE_TEXTS, files={"file": file})
    return _changed(checked) | {"validation_errors": checked.get("validation_errors", [])}


@operation("POST", f"{_FLOW}/publish", _CHANGED)
async def publish_flow(call: AppCall) -> dict[str, Any]:
    """Publish a draft."""
    return _changed(await call.graph("POST", f"{await _flow_in_path(call)}/publish"))


@operation("POST", f"{_FLOW}/deprecate", _CHANGED)
async def deprecate_flow(call: AppCall) -> dict[str, Any]:
    """Deprecate a published flow."""
    return _changed(await call.graph("POST", f"{await _flow_in_path(call)}/deprecate"))


@operation("GET", f"{_FLOW}/preview", response(id=str, preview=dict[str, Any], status=Literal["success"]))
async def preview_flow(call: AppCall) -> dict[str, Any]:
    """Return the URL of a flow's preview."""
    flow_id = await _flow_in_path(call)
    flow = await call.graph("GET", flow_id, query={"fields": "preview"})
    return {"id": flow_id, "preview": object_of(flow.get("preview")), "status": "success"}


def _changed(result: dict[str, Any]) -> dict[str, Any]:
    return {"status": "success", "success": boolean_of(result.get("success"), default=True)}


async def _flow_in_path(call: AppCall) -> str:
    """Return the id of the flow in the path, which must belong to the app's business account."""
    unknown = ApiError(ErrorCode.OPERATOR_REJECTED, "The path must name a flow of the app's business account.")
    return await _own_flow(call, call.request.path["flow_id"], unknown)


async def _check_clone(call: AppCall, fields: FlowContent) -> None:
    """Check that the flow to copy belongs to the app's business account too."""
    if fields.clone_flow_id:
        unknown = ApiError(ErrorCode.FIELD_BROKEN, "clone_flow_id must name a flow of the app's business account.")
        await _own_flow(call, fields.clone_flow_id, unknown)


async def _own_flow(call: AppCall, flow_id: str, not_found_error: ApiError) -> str:
    """Return a flow's id if the flow belongs to the app's business account.

    Our token at the operator may open many accounts, so we request the flow's owner from the operator.
    """
    account = call.account
    if not _ID.fullmatch(flow_id):
        raise not_found_error
    try:
        flow = await call.graph("GET", flow_id, query={"fields": "id,whatsapp_business_account"})
    except ApiError as error:
        raise not_found_error if error.code is ErrorCode.OPERATOR_REJECTED else error from None
    if coerced_text(object_of(flow.get("whatsapp_business_account")).get("id")) != account:
        raise not_found_error
    return flow_id


@contextmanager
def _file_slot() -> Generator[None]:
    """Hold a slot for one file in memory."""
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


async def _read_file(request: Request) -> GraphFile:
    """Return name, MIME type and bytes of the part `file`."""
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
    return GraphFile(head.file_name or "flow.json", head.content_type or "application/json", bytes(content))
