"""A Flow on a phone: opened from a message, played by the steps of its person."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

import msgspec
from starlette.responses import JSONResponse, Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import form_texts
from waypost.console.page_request import PageRequest
from waypost.console.phones.sending import PhoneClient, delete_file, get_phone_client, upload_file
from waypost.console.phones.view_models import get_item, translate_errors
from waypost.console.web.errors import InvalidPageRequest
from waypost.flow_pages.rendering import PlayerElement
from waypost.flow_pages.steps import UnknownStep, build_response, read_step
from waypost.flow_player.play_state import PlayerView

_NOT_ALLOWED: Final = 409
_OPENING: Final = ("open", "resume")
_ENDED: Final = ("completed", "token_invalid")


async def play_flow(request: PageRequest) -> Response:
    """Open the Flow of a message, or carry out a step in it, and return what the handset shows then.

    Raises:
        InvalidPageRequest: the Flow cannot be opened, or the step is none.
    """
    client = get_phone_client(request)
    app, item = await get_item(request, client.phone, str(request.path_params["position"]))
    fields = await form_texts(request)
    path = request.http.url.path
    element = PlayerElement(id=path.replace("/", "-"), steps_url=path)
    if fields.get("step") in _OPENING:
        shown = await _open(client, item["wamid"])
        return JSONResponse(build_response(read_view(shown), element, shown.get("events", ())))
    before, rejection = read_view(await _show(client, item["wamid"])), ""
    try:
        async with posted_step(request, fields, app.phone_number) as step:
            steps = {"message_id": item["wamid"], "steps": [step]}
            shown = await request.control.post(f"/control/phones/{client.phone}/flow/steps", steps)
    except ApiResponseError as error:
        if error.status != _NOT_ALLOWED:
            raise
        shown, rejection = await _show(client, item["wamid"]), describe_rejection(error)
    request.services.change_signal.signal()  # the answers are a message of the chat
    events = shown.get("events", ())
    return JSONResponse(
        build_response(
            read_view(shown),
            element,
            events,
            step=fields.get("step", ""),
            screen_before=before.screen_id,
            rejection=rejection,
        )
    )


def read_view(session: Mapping[str, Any]) -> PlayerView:
    """Return what a session of the control API shows."""
    return msgspec.convert(session["view"], PlayerView)


def describe_rejection(error: ApiResponseError) -> str:
    """Return why the handset does not allow a step."""
    return f"{error.rule}. Accepted: {error.accepted}." if error.accepted else f"{error.rule}."


@asynccontextmanager
async def posted_step(request: PageRequest, fields: Mapping[str, str], number: str) -> AsyncGenerator[dict[str, Any]]:
    """Give the step of a form, with its file at the simulator for as long as it is carried out.

    Args:
        number: the business number for which a file is uploaded.

    Raises:
        InvalidPageRequest: the form has no step.
    """
    file = await request.file("file") if fields.get("step") == "upload" else None
    if file is None:
        try:
            yield read_step(fields)
        except UnknownStep as error:
            raise InvalidPageRequest(f"The step cannot be read: {error}.") from error
        return
    mime_type = (file.content_type or "application/octet-stream").partition(";")[0].strip().lower()
    media_id = await upload_file(request, file, mime_type, number)
    try:
        yield {"upload": {"name": fields.get("name", ""), "media_id": media_id}}
    finally:
        await delete_file(request, media_id)


async def _open(client: PhoneClient, wamid: str) -> dict[str, Any]:
    """Open the Flow where it was left; one that has ended is only shown."""
    control, path = client.request.control, f"/control/phones/{client.phone}/flow"
    try:
        known = await _show(client, wamid)
    except ApiResponseError as error:
        if error.status not in (404, _NOT_ALLOWED):
            raise
        known = {}
    if known and known["view"]["state"] in _ENDED:
        return known
    opened: dict[str, Any] = await translate_errors(control.post(path, {"message_id": wamid, "restart": not known}))
    return opened


async def _show(client: PhoneClient, wamid: str) -> dict[str, Any]:
    control = client.request.control
    shown: dict[str, Any] = await control.call("GET /control/phones/{phone}/flow", phone=client.phone, message_id=wamid)
    return shown
