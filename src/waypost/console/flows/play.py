"""The phone beside the editor: plays the text as it is typed, as a preview of the simulator."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import JSONResponse, Response

from waypost.base.ids import is_uuid
from waypost.client.api_client import ApiResponseError
from waypost.console.actions import form_texts
from waypost.console.flows.checking import read_text
from waypost.console.flows.editor import read_flow
from waypost.console.page_request import PageRequest
from waypost.console.phones.flows import describe_rejection, posted_step, read_view
from waypost.console.web.errors import InvalidPageRequest, NotFound
from waypost.flow_pages.rendering import PlayerElement
from waypost.flow_pages.steps import build_response

PREVIEW_ID: Final = "flow-preview"
_NOT_ALLOWED: Final = 409
_INVALID: Final = (400, 409, 413, 422)


async def play_draft(request: PageRequest) -> Response:
    """Open the text of the form, or carry out a step in what was opened last, and return what the handset shows then.

    Raises:
        InvalidPageRequest: the text cannot be played, or the step is none.
        NotFound: there is no such Flow, or nothing was opened.
    """
    flow = await read_flow(request)
    fields = await form_texts(request)
    if fields.get("step") == "open":
        session = await _open(request, flow.id, fields)
        return JSONResponse(build_response(read_view(session), _element(request, session), session["events"]))
    session = await _find(request, flow.id)
    before, rejection = read_view(session), ""
    path = f"/control/flow-sessions/{session['session_id']}"
    try:
        async with posted_step(request, fields, request.app.phone_number) as step:
            session = await request.control.post(f"{path}/steps", {"steps": [step]})
    except ApiResponseError as error:
        if error.status != _NOT_ALLOWED:
            raise
        session, rejection = await request.control.get(path), describe_rejection(error)
    return JSONResponse(
        build_response(
            read_view(session), _element(request, session), session.get("events", ()),
            step=fields.get("step", ""), screen_before=before.screen_id, rejection=rejection,
        )
    )  # fmt: skip


async def _open(request: PageRequest, flow_id: str, fields: Mapping[str, str]) -> dict[str, Any]:
    body: dict[str, Any] = {
        "flow_id": flow_id,
        "flow_json": await read_text(request),
        "flow_token": fields.get("flow_token", "").strip() or "unused",
        "flow_action": "data_exchange" if fields.get("flow_action") == "data_exchange" else "navigate",
        "screen": fields.get("screen", ""),
        "uses_examples": True,
    }
    try:
        session: dict[str, Any] = await request.control.post("/control/flow-sessions", body)
    except ApiResponseError as error:
        if error.status not in _INVALID:
            raise
        raise InvalidPageRequest(f"The text cannot be played: {describe_rejection(error)}", "") from error
    return session


async def _find(request: PageRequest, flow_id: str) -> dict[str, Any]:
    """Return the session in the query, which must be of this Flow."""
    session_id = request.query("session")
    missing = NotFound("This preview is over. Change the text, or restart it.")
    if not is_uuid(session_id):
        raise missing
    try:
        session: dict[str, Any] = await request.control.get(f"/control/flow-sessions/{session_id}")
    except ApiResponseError as error:
        raise missing from error
    if session["flow_id"] != flow_id:
        raise missing
    return session


def _element(request: PageRequest, session: Mapping[str, Any]) -> PlayerElement:
    url = f"{request.http.url.path}?session={quote(session['session_id'])}"
    return PlayerElement(id=PREVIEW_ID, steps_url=url, can_close=False)
