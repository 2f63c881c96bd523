"""The preview of a Flow behind its link: without a sign-in, for 30 days, and nothing but this Flow.

Without `interactive` it shows the screens with their examples, and asks no endpoint. With it the Flow is played as on a
handset, and `debug` shows what each step causes.

Source: the operator's page "Flows API", `preview`, and its parameters.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route, Router

from waypost.base.json_values import object_or_none, text_or_none
from waypost.flow_pages.rendering import STATIC_FILES, PlayerElement, read_static_file, render_player
from waypost.flow_pages.steps import UnknownStep, build_response, read_step
from waypost.flow_player.play_state import FlowState, ScreenMemory
from waypost.flow_player.playable import PlayableFlow
from waypost.flow_player.views import view_screen
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import read_members
from waypost.simulator.apis.links import is_valid_link
from waypost.simulator.apis.requests import Receive, Scope, Send
from waypost.simulator.flows.model import FLOWS, Flow
from waypost.simulator.flows.playing import FlowStepsBody
from waypost.simulator.flows.preview_forms import InvalidPreview, PreviewForm, read_preview_form
from waypost.simulator.flows.preview_links import PREVIEW_ROOT
from waypost.simulator.flows.session_control import (
    FlowPreviewBody,
    example_data,
    open_preview,
    play_preview,
    show_preview,
)
from waypost.simulator.flows.sessions import FlowSessionView, find_text, load_playable
from waypost.simulator.state.flow_steps import FlowFileStep, FlowStep
from waypost.simulator.state.simulator_state import SimulatorState

if TYPE_CHECKING:
    from jinja2 import Environment

_PATH: Final = re.compile(rf"{PREVIEW_ROOT}/.+", re.ASCII)
_FILES: Final = f"{PREVIEW_ROOT}/files"
_PLAYER_ID: Final = "flow-player"
_LINK: Final = ("mid", "ext", "hash")
_PARAMETERS: Final = ("flow_token", "flow_action", "flow_action_payload", "phone_number")
_ACTIONS: Final = ("navigate", "data_exchange")
_YES: Final = ("true", "1")
_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src blob:; connect-src 'self'; base-uri 'none'; "
        "form-action 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}

_FILE_HEADERS: Final = {"Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}


def is_preview_path(path: str) -> bool:
    """Return True for the paths of this module, none of which the Graph API has."""
    return _PATH.fullmatch(path) is not None


class PreviewPages:
    """The ASGI application of the previews."""

    def __init__(self, state: SimulatorState) -> None:
        self._state = state
        self._router = Router(
            [
                Route(f"{_FILES}/{{path:path}}", _show_file),
                *(Route(f"{PREVIEW_ROOT}/{{flow_id}}/preview{end}", self._show) for end in ("", "/")),
                Route(f"{PREVIEW_ROOT}/{{flow_id}}/preview/steps", self._play, methods=["POST"]),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._router(scope, receive, send)

    async def _show(self, request: Request) -> Response:
        """Return the page; every error is a page in words."""
        query = request.query_params
        try:
            flow = self._find_flow(request)
            playable = await load_playable(find_text(self._state, flow, 0))
            if query.get("interactive", "").lower() in _YES:
                self._read_opening(flow, query)  # its errors belong on the page
                player = ""
            else:
                player = _render_still(playable, query.get("screen", ""))
        except InvalidPreview as error:
            return _error_page(error.status, str(error))
        except ControlApiError as error:
            return _error_page(error.status, _describe(error))
        return self._page(request, flow, playable, player)

    async def _play(self, request: Request) -> Response:
        """Open the Flow, or carry out a step in it, and return what the handset shows then."""
        state, query = self._state, request.query_params
        try:
            flow = self._find_flow(request)
            form = await read_preview_form(request)
            if form.fields.get("step") == "open":
                session = await open_preview(state, request, self._read_opening(flow, query))
                return self._respond(request, session)
            before = await self._find_session(flow, query.get("session", ""))
            step = _read_preview_step(form)
        except InvalidPreview as error:
            return _error_json(error.status, str(error))
        except UnknownStep as error:
            return _error_json(400, f"The step cannot be read: {error}.")
        except ControlApiError as error:
            return _error_json(error.status, _describe(error))
        rejection = ""
        try:
            session = await play_preview(state, request, before.session_id, FlowStepsBody(steps=[step]))
        except ControlApiError as error:
            session, rejection = await show_preview(state, before.session_id), _describe(error)
        name = form.fields.get("step", "")
        return self._respond(request, session, step=name, screen_before=before.view.screen_id, rejection=rejection)

    def _find_flow(self, request: Request) -> Flow:
        """Return the Flow of a link. Raises InvalidPreview if the link is not valid for it."""
        state, query = self._state, request.query_params
        flow = state.values(FLOWS).get(request.path_params["flow_id"])
        account = state.accounts.by_id.get(flow.waba_id) if flow is not None else None
        if flow is None or account is None:
            raise InvalidPreview(404, "There is no Flow behind this link. It may have been deleted.")
        if not is_valid_link(query, account.token, flow.flow_id, state.clock.now_ms()):
            raise InvalidPreview(
                403, "This link is not valid, or its 30 days are over. GET {flow}?fields=preview returns a new one."
            )
        return flow

    def _read_opening(self, flow: Flow, query: Mapping[str, str]) -> FlowPreviewBody:
        """Return how the Flow opens, by the parameters of the link. Raises InvalidPreview for one that is wrong."""
        action = query.get("flow_action", "navigate")
        if action not in _ACTIONS:
            raise InvalidPreview(400, f"flow_action must be one of {', '.join(_ACTIONS)}.")
        payload = _read_payload(query.get("flow_action_payload", ""))
        number_id = ""
        if query.get("phone_number"):
            wanted = query["phone_number"].strip().lstrip("+ ")
            numbers = self._state.accounts.numbers_of(flow.waba_id)
            known = {one.phone_number: one.phone_number_id for one in numbers}
            number_id = known.get(wanted) or (wanted if wanted in known.values() else "")
            if not number_id:
                accepted = ", ".join(list(known)[:20]) or "none: the account has no number"
                raise InvalidPreview(400, f"phone_number must be a number of the Flow's account: {accepted}.")
        try:
            return read_members(
                FlowPreviewBody,
                {
                    "flow_id": flow.flow_id,
                    "flow_token": query.get("flow_token") or "unused",
                    "flow_action": action,
                    "screen": payload.get("screen", ""),
                    "data": payload.get("data", {}),
                    "phone_number_id": number_id,
                    "uses_examples": True,
                },
            )
        except ControlApiError as error:
            raise InvalidPreview(400, f"{error.field}: {_describe(error)}") from error

    async def _find_session(self, flow: Flow, session_id: str) -> FlowSessionView:
        """Return a session that was opened by a link of this Flow. Raises InvalidPreview if it is none."""
        session = await show_preview(self._state, session_id)
        if session.flow_id != flow.flow_id:
            raise InvalidPreview(404, "This preview is over. Reload the page.")
        return session

    def _respond(self, request: Request, session: FlowSessionView, **step: str) -> Response:
        element = PlayerElement(_PLAYER_ID, _steps_url(request, session.session_id), can_close=False)
        return JSONResponse(build_response(session.view, element, session.events, **step), headers=_HEADERS)

    def _page(self, request: Request, flow: Flow, playable: PlayableFlow, player: str) -> Response:
        link = {name: request.query_params.get(name, "") for name in _LINK}
        shown = request.query_params.get("screen", "")
        values: dict[str, Any] = {
            "flow": flow,
            "files": _FILES,
            "player": Markup(player),  # noqa: S704  our own templates escape its values
            "player_id": _PLAYER_ID,
            "steps_url": _steps_url(request, ""),
            "screens": [(one, f"?{urlencode({**link, 'screen': one})}") for one in playable.screens],
            "shown": shown if shown in playable.screens else playable.entry_screen,
            "play_url": f"?{urlencode({**link, 'interactive': 'true', 'debug': 'true'})}",
            "stop_url": f"?{urlencode(link)}",
            "is_debug": request.query_params.get("debug", "").lower() in _YES,
        }
        return HTMLResponse(_templates().get_template("preview.html").render(**values), headers=_HEADERS)


def _render_still(playable: PlayableFlow, screen_id: str) -> str:
    """Return a screen with its examples, which nothing is asked for."""
    shown = screen_id if screen_id in playable.screens else playable.entry_screen
    memory = ScreenMemory(data=example_data(playable, shown))
    state = FlowState(stack=[shown], screens={shown: memory})
    return render_player(view_screen(playable, state), PlayerElement(_PLAYER_ID, "", can_close=False))


def _steps_url(request: Request, session_id: str) -> str:
    """Return where the page posts its steps: with the link, how the Flow opens, and the session."""
    query = request.query_params
    kept = {name: query[name] for name in (*_LINK, *_PARAMETERS) if query.get(name)}
    session = {"session": session_id} if session_id else {}
    return f"{PREVIEW_ROOT}/{request.path_params['flow_id']}/preview/steps?{urlencode({**kept, **session})}"


def _read_payload(text: str) -> dict[str, Any]:
    """Return `screen` and `data` of `flow_action_payload`, which may also be the data alone."""
    if not text:
        return {}
    try:
        payload = object_or_none(json.loads(text))
    except (ValueError, RecursionError):
        payload = None
    if payload is None:
        raise InvalidPreview(400, 'flow_action_payload must be a JSON object, such as {"screen":"START","data":{}}.')
    if set(payload) - {"screen", "data"}:
        return {"data": payload}
    data = object_or_none(payload.get("data", {}))
    screen = text_or_none(payload.get("screen", ""))
    if data is None or screen is None:
        raise InvalidPreview(400, "flow_action_payload must have a text screen and an object data.")
    return {"screen": screen, "data": data}


def _read_preview_step(form: PreviewForm) -> FlowStep:
    """Return the step of a form.

    Raises:
        UnknownStep, ControlApiError: it is none.
    """
    if form.fields.get("step") == "upload" and form.file is not None:
        file = form.file
        return FlowStep(
            upload=FlowFileStep(
                name=form.fields.get("name", "")[:256],
                file_name=file.file_name,
                mime_type=file.mime_type[:100],
                content=file.content,
            )
        )
    [step] = read_members(FlowStepsBody, {"steps": [read_step(form.fields)]}).steps
    return step


async def _show_file(request: Request) -> Response:
    path = request.path_params["path"]
    if path == "preview.css":
        content = files("waypost.simulator.flows").joinpath("pages", path).read_bytes()
        return Response(content, media_type="text/css", headers=_FILE_HEADERS)
    if path not in STATIC_FILES:
        return _error_page(404, "There is no such file.")
    return Response(read_static_file(path), media_type=STATIC_FILES[path], headers=_FILE_HEADERS)


def _describe(error: ControlApiError) -> str:
    accepted = f" Accepted: {error.accepted}." if error.accepted else ""
    return f"{error.rule[:1].upper()}{error.rule[1:]}.{accepted}"


def _error_page(status: int, text: str) -> Response:
    html = _templates().get_template("preview_error.html").render(text=text, files=_FILES)
    return HTMLResponse(html, status, _HEADERS)


def _error_json(status: int, text: str) -> Response:
    return JSONResponse({"message": text}, status, _HEADERS)


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("waypost.simulator.flows", "pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
