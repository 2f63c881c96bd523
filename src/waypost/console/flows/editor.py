"""The editor of a Flow: its text with what is wrong in it, and its lifecycle at the operator."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from waypost.base.json_values import object_of
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import form_texts
from waypost.console.bubbles.items import text_of
from waypost.console.flows.checking import Diagnostic, check_text, read_diagnostics, read_text
from waypost.console.flows.listing import LISTED_MEMBERS, OperatorFlow, explain_rejection
from waypost.console.page_request import PageRequest
from waypost.console.web.errors import NotFound
from waypost.console.web.streams import PageElement, elements_response

FLOW_PATH: Final = "/apps/{app_id}/flows/{flow_id}"
EDITOR_MACROS: Final = "flows/editor_parts.html"
_UNKNOWN_STATUSES: Final = (400, 404)


async def show_editor(request: PageRequest) -> Response:
    """Return the editor with the text that was uploaded last, and its errors as the operator has them."""
    flow = await read_flow(request)
    text = await _read_uploaded_text(request)
    found = await check_text(text) if text else read_diagnostics(flow.validation_errors)
    return await request.page("flows/editor.html", flow=flow, text=text, found=found)


async def check_draft(request: PageRequest) -> Response:
    """Return what is wrong in the text as it is typed."""
    return elements_response(_diagnostic_elements(request, found := await check_text(await read_text(request))),
                             **_marked_lines(found))  # fmt: skip


async def save_draft(request: PageRequest) -> Response:
    """Upload the text, also an invalid one; a published Flow becomes a draft again."""
    await read_flow(request)
    text = await read_text(request)
    found = await check_text(text)
    try:
        await _upload(request, text)
    except ApiResponseError as error:
        return _reject(request, "The Flow was not saved.", explain_rejection(error))
    notice = "Saved as a draft with errors." if _has_errors(found) else "Saved as a draft."
    return await _respond(request, notice, found)


async def publish_flow(request: PageRequest) -> Response:
    """Upload the text if it has changed, and publish the Flow."""
    await read_flow(request)
    text = await read_text(request)
    found = await check_text(text)
    try:
        if text != await _read_uploaded_text(request):
            await _upload(request, text)
        await request.app_api.form("POST", f"{_api_path(request)}/publish", {})
    except ApiResponseError as error:
        return _reject(request, "The Flow was not published.", explain_rejection(error))
    return await _respond(request, "Published.", found)


async def deprecate_flow(request: PageRequest) -> Response:
    """Deprecate a published Flow: it can no longer be sent or opened."""
    await read_flow(request)
    try:
        await request.app_api.form("POST", f"{_api_path(request)}/deprecate", {})
    except ApiResponseError as error:
        return _reject(request, "The Flow was not deprecated.", explain_rejection(error))
    return await _respond(request, "Deprecated.")


async def delete_flow(request: PageRequest) -> Response:
    """Delete a draft that was never published."""
    await read_flow(request)
    path = f"/apps/{request.app.id}/flows"
    try:
        await request.app_api.json("DELETE", _api_path(request))
    except ApiResponseError as error:
        return _reject(request, "The Flow was not deleted.", explain_rejection(error))
    return JSONResponse({"to": path}) if request.is_quiet else request.redirect(path, "Flow deleted.")


async def change_flow(request: PageRequest) -> Response:
    """Change the name, the category or the endpoint of a Flow."""
    await read_flow(request)
    typed = await form_texts(request)
    fields = {name: typed[name].strip() for name in ("name", "endpoint_uri") if typed.get(name, "").strip()}
    try:
        await request.app_api.form("PUT", _api_path(request), fields)
    except ApiResponseError as error:
        return _reject(request, "The Flow was not changed.", explain_rejection(error))
    return await _respond(request, "Saved.")


def _api_path(request: PageRequest) -> str:
    flow_id = str(request.path_params["flow_id"])
    if not (flow_id.isascii() and flow_id.isdigit()):
        raise NotFound("There is no such Flow.")
    return f"/partner/app/{request.app.id}/flows/{flow_id}"


async def read_flow(request: PageRequest) -> OperatorFlow:
    """Return the Flow as the operator has it; NotFound if there is none, or it is another account's."""
    try:
        path = f"{_api_path(request)}?fields={LISTED_MEMBERS},preview"
        return OperatorFlow.read(object_of(await request.app_api.json("GET", path)))
    except ApiResponseError as error:
        if error.status in _UNKNOWN_STATUSES:
            raise NotFound("There is no such Flow.") from error
        raise


async def _read_uploaded_text(request: PageRequest) -> str:
    """Return the text that was uploaded last; empty without one, or if the simulator does not have the Flow."""
    control = request.services.apis.control
    if control is None:
        return ""
    try:
        return text_of(object_of(await control.get(f"/control/flows/{request.path_params['flow_id']}")).get("asset"))
    except ApiResponseError as error:
        if error.status == 404:
            return ""
        raise


async def _upload(request: PageRequest, text: str) -> None:
    path = f"{_api_path(request)}/assets"
    await request.app_api.file(path, text.encode(), name="flow.json", media_type="application/json", method="PUT")


def _has_errors(found: Sequence[Diagnostic]) -> bool:
    return any(not one.is_warning for one in found)


def _marked_lines(found: Sequence[Diagnostic]) -> dict[str, Any]:
    """Return which lines have errors and warnings, for the numbers beside the text."""
    return {
        "errors": sorted({one.line for one in found if not one.is_warning}),
        "warnings": sorted({one.line for one in found if one.is_warning}),
    }


def _diagnostic_elements(request: PageRequest, found: Sequence[Diagnostic]) -> list[PageElement]:
    return [PageElement("flow-diagnostics", request.macro(EDITOR_MACROS, "diagnostics", found))]


async def _respond(request: PageRequest, notice: str, found: Sequence[Diagnostic] | None = None) -> Response:
    """Return the response to a change: the Flow as it is now, and a notice."""
    flow = await read_flow(request)
    if not request.is_quiet:
        return request.redirect(f"/apps/{request.app.id}/flows/{flow.id}", notice)
    elements = [
        PageElement("flow-head", request.macro(EDITOR_MACROS, "head", request, flow)),
        PageElement("flow-said", request.macro(EDITOR_MACROS, "rejection", "", "")),
    ]
    marks: Mapping[str, Any] = {}
    if found is not None:
        elements += _diagnostic_elements(request, found)
        marks = _marked_lines(found)
    return elements_response(elements, notice=notice, is_saved=found is not None, **marks)


def _reject(request: PageRequest, what: str, why: str) -> Response:
    """Return the response to a change that was refused: it stays on the page, until the next change succeeds."""
    if not request.is_quiet:
        flow_id = request.path_params["flow_id"]
        return request.redirect(f"/apps/{request.app.id}/flows/{flow_id}", what, hint=why, kind="bad")
    return elements_response([PageElement("flow-said", request.macro(EDITOR_MACROS, "rejection", what, why))])
