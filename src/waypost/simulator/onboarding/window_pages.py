"""The pages of embedded signup in a browser: the script for a partner's page, the dialog, and its window.

| Path | What it is |
|---|---|
| `/{locale}/sdk.js` | the script: a page written for the operator's works with this one |
| `/{version}/dialog/oauth` | opens the window: by the script, or by a link with `redirect_uri` |
| `/messaging/whatsapp/onboard` | opens the hosted window |
| `/dialog/window/{key}` | the window's shown screen |
| `/dialog/window/{key}/events`, `…/close` | what the script asks for, and that its user has closed the window |

Source: facts 14.1, 14.2, 14.3; decision 0123.
"""

import json
import re
from collections import defaultdict
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import parse_qsl, urlsplit

from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route, Router

from waypost.base.http.hosts import is_web_url
from waypost.base.json_values import object_of
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.requests import Receive, Scope, Send
from waypost.simulator.numbers.sent_codes import last_code
from waypost.simulator.onboarding.completion import complete_signup, signup_scopes
from waypost.simulator.onboarding.model import ADDRESSES, BUSINESS_APP_NUMBERS, PERSONS, PORTFOLIOS
from waypost.simulator.onboarding.opening import open_session
from waypost.simulator.onboarding.page_events import page_events
from waypost.simulator.onboarding.preverified import offered_preverified
from waypost.simulator.onboarding.screens import (
    accept_terms,
    choose_account,
    choose_business,
    confirm_permissions,
    enter_code,
    enter_number,
    name_account,
    offered_assets,
    offered_choices,
    proposed_business,
    request_signup_code,
    sign_in,
)
from waypost.simulator.onboarding.session import (
    MAX_CHARS,
    SESSIONS,
    NewBusiness,
    OnboardingSession,
    Step,
    WindowOpening,
    shown_screens,
    window_path,
)
from waypost.simulator.onboarding.window import end_by_user, take_step
from waypost.simulator.state.embedded_signup import VERSIONS, NumberChoice
from waypost.simulator.state.simulator_state import SimulatorState

if TYPE_CHECKING:
    from jinja2 import Environment

_MAX_FORM_BYTES: Final = 16_384
_MAX_FIELDS: Final = 100
_MAX_EXTRAS_CHARS: Final = 8_192
_MAX_URL_CHARS: Final = 2_000
_MAX_STATE_CHARS: Final = 2_000
_KEY: Final = re.compile(r"[A-Za-z0-9_-]{16,64}")
_WINDOW: Final = "/dialog/window"
_PATH: Final = re.compile(
    r"/[a-z]{2}_[A-Z]{2}/sdk\.js|(?:/v\d+\.\d+)?/dialog/.+|/messaging/whatsapp/onboard/?", re.ASCII
)
_FILES: Final = {"sdk.js": "text/javascript", "window.js": "text/javascript", "window.css": "text/css"}
_PAGE_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
# Source: decision 0127
_URL_BLOCKED: Final = (
    "URL Blocked: This redirect failed because the redirect URI is not whitelisted in the app's Client OAuth Settings. "
    "Make sure Client and Web OAuth Login are on and add all your app domains as Valid OAuth Redirect URIs."
)
_UNKNOWN_DOMAIN: Final = (
    "JSSDK Unknown Host domain: The domain you are hosting the Facebook Javascript SDK is not in your app's "
    "Javascript SDK host domain list."
)
_INSECURE: Final = "The method FB.login can no longer be called from http pages."
_ANY_PAGE: Final = {"Access-Control-Allow-Origin": "*", "Cache-Control": "no-store"}
"""The script runs in pages of any origin, and asks for sessions whose keys it has made."""


def is_window_path(path: str) -> bool:
    """Return True for the paths of this module, none of which the Graph API has."""
    return _PATH.fullmatch(path) is not None


class WindowPages:
    """The ASGI application of the pages."""

    def __init__(self, state: SimulatorState) -> None:
        self._state = state
        self._router = Router(
            [
                Route("/{locale}/sdk.js", self._show_script),
                Route("/dialog/files/{name}", self._show_file),
                *(Route(f"{version}/dialog/oauth", self._open) for version in ("", "/{version}")),
                *(Route(f"/messaging/whatsapp/onboard{end}", self._open) for end in ("", "/")),
                Route(f"{_WINDOW}/{{key}}", self._show),
                Route(f"{_WINDOW}/{{key}}", self._enter, methods=["POST"]),
                Route(f"{_WINDOW}/{{key}}/events", self._list_events),
                Route(f"{_WINDOW}/{{key}}/close", self._close, methods=["POST"]),
            ]
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        await self._router(scope, receive, send)

    async def _show_script(self, _request: Request) -> Response:
        return _file_response("sdk.js")

    async def _show_file(self, request: Request) -> Response:
        name = request.path_params["name"]
        return _file_response(name) if name in _FILES else _error_page(404, "There is no such file.")

    async def _open(self, request: Request) -> Response:
        """Open a session with the parameters of the dialog, and show its window; every error is a page in words."""
        query, state = request.query_params, self._state
        app = state.accounts.apps.get(query.get("client_id") or query.get("app_id") or "")
        if app is None:
            return _error_page(400, "Invalid app id: client_id must be the id of an app of this operator.")
        redirect_uri, key = query.get("redirect_uri", ""), query.get("channel", "")
        is_hosted = request.url.path.startswith("/messaging/")
        if key and (not _KEY.fullmatch(key) or _find(state, key) is not None):
            return _error_page(400, "channel must be 16 to 64 letters and digits that were not used before.")
        if not key and not is_hosted and not (is_web_url(redirect_uri) and len(redirect_uri) <= _MAX_URL_CHARS):
            return _error_page(400, "redirect_uri must be a URL, unless the dialog is opened by the script sdk.js.")
        if query.get("response_type", "code") != "code":
            return _error_page(400, "response_type must be code: this window gives no token to a page.")
        if len(query.get("state", "")) > _MAX_STATE_CHARS:
            return _error_page(400, f"state must have at most {_MAX_STATE_CHARS} characters.")
        blocked = _find_blocked_address(state, app.app_id, query.get("origin", ""), "" if key else redirect_uri)
        if blocked and not is_hosted:
            return _error_page(400, blocked)
        try:
            text = query.get("extras", "")
            extras = object_of(json.loads(text)) if text and len(text) <= _MAX_EXTRAS_CHARS else {}
            opening = WindowOpening(
                app_id=app.app_id,
                config_id=query.get("config_id", ""),
                extras=extras,
                redirect_uri="" if key else redirect_uri,
                state=query.get("state", ""),
            )
            session = await open_session(state, app, opening, page_key=key)
        except (ValueError, RecursionError):
            return _error_page(400, "extras must be an object in JSON.")
        except ControlApiError as error:
            return _error_page(400, f"{error.field} {error.rule}.")
        return _see(session)

    async def _show(self, request: Request) -> Response:
        session = _find(self._state, request.path_params["key"])
        if session is None:
            return _error_page(404, "This window does not exist any more. Open it again from the page that offers it.")
        return self._page(session)

    async def _enter(self, request: Request) -> Response:
        """Take the step that a form asks for, and show the window again."""
        state, session = self._state, _find(self._state, request.path_params["key"])
        if session is None:
            return await self._show(request)
        form = await _read_form(request)
        if form is None:
            return _error_page(413, f"A form has at most {_MAX_FORM_BYTES} bytes and {_MAX_FIELDS} fields.")
        screen, action = form.get("screen", ""), form.get("action", "")
        try:
            if action in ("close", "report"):
                await state.transact(
                    lambda transaction: end_by_user(transaction, session.session_id, reports=action == "report")
                )
            elif screen == session.screen:  # otherwise the form is one of before
                step = _read_step(session, action, form)
                await state.transact(
                    lambda transaction: take_step(transaction, session.session_id, session.screen, step)
                )
        except ControlApiError as error:
            if error.status != 409:  # the session has moved on: what it shows now says more
                return self._page(session, problem=f"{error.field} {error.rule}.", status=400)
        return _see(session)

    async def _list_events(self, request: Request) -> Response:
        """Return what the page has got until now, and whether more will come."""
        session = _find(self._state, request.path_params["key"])
        if session is None:
            return JSONResponse(
                {"is_known": False, "events": [], "is_open": False, "has_more": False}, headers=_ANY_PAGE
            )
        now_ms = self._state.clock.now_ms()
        events = page_events(session)
        due = [event for event in events if event["at_ms"] <= now_ms]
        is_open = session.ended_ms is None
        has_more = is_open or len(due) < len(events)
        body = {"is_known": True, "events": due, "is_open": is_open, "has_more": has_more}
        return JSONResponse(body, headers=_ANY_PAGE)

    async def _close(self, request: Request) -> Response:
        """Close the window as its user has done: it is cancelled, or on its last screen finished."""
        session = _find(self._state, request.path_params["key"])
        if session is not None and session.ended_ms is None:
            await self._state.transact(lambda transaction: end_by_user(transaction, session.session_id))
        return await self._list_events(request)

    def _page(self, session: OnboardingSession, *, problem: str = "", status: int = 200) -> Response:
        state = self._state
        shown = [name for name in shown_screens(session) if name != "done"]
        sent = last_code(state, session.phone_number) if session.code_sent_ms is not None else None
        owned = [one for one in state.accounts.by_id.values() if one.owner_business_id == session.business_id]
        target = next((event.get("redirect_url", "") for event in page_events(session) if "response" in event), "")
        values: dict[str, Any] = {
            "session": session,
            "app": state.accounts.apps[session.app_id],
            "place": shown.index(session.screen) + 1 if session.screen in shown else 0,
            "of": len(shown),
            "problem": problem,
            "people": state.values(PERSONS).values(),
            "businesses": [one for one in state.values(PORTFOLIOS).values() if session.person_id in one.person_ids],
            "business": proposed_business(session),
            "accounts": owned if session.business_id else [],
            "numbers": state.accounts.numbers_of,
            "shares_several": VERSIONS[session.version].shares_several,
            "choices": offered_choices(session),
            "preverified": offered_preverified(state, session) if session.screen == "account" else [],
            "app_numbers": state.values(BUSINESS_APP_NUMBERS).values(),
            "sent": sent,
            "scopes": signup_scopes(session.products, session.breaks),
            "assets": offered_assets(session),
            "target": target,
        }
        text = _templates().get_template("window.html").render(**values)
        return HTMLResponse(text, status, _PAGE_HEADERS)


def _find_blocked_address(state: SimulatorState, app_id: str, origin: str, redirect_uri: str) -> str:
    """Return why the operator refuses a page, in its words as far as they are known; empty: it does not.

    Args:
        origin: of the page with the script.
        redirect_uri: of a dialog; empty: it was opened by the script.
    """
    allowed = state.values(ADDRESSES).get(app_id)
    if allowed is None:
        return ""
    if redirect_uri:
        return "" if redirect_uri in allowed.redirect_uris else _URL_BLOCKED
    try:
        page, hosts = urlsplit(origin), {urlsplit(uri).hostname for uri in allowed.redirect_uris}
        host = page.hostname or ""
    except ValueError:
        return _UNKNOWN_DOMAIN
    if host not in allowed.allowed_domains or host not in hosts:
        return _UNKNOWN_DOMAIN
    is_here = host in ("localhost", "127.0.0.1")
    return "" if page.scheme == "https" or is_here else _INSECURE


def _read_step(session: OnboardingSession, action: str, form: dict[str, str]) -> Step:
    """Return what a form enters on the shown screen.

    Raises:
        ControlApiError: a field is too long, or is no choice of the window.
    """
    too_long = next((name for name, text in form.items() if len(text) > MAX_CHARS), None)
    if too_long is not None:
        raise ControlApiError(too_long[:40], "is too long", f"at most {MAX_CHARS} characters")
    texts = defaultdict(str, {name: text.strip() for name, text in form.items()})
    match session.screen:
        case "sign_in":
            return sign_in(texts["person"], texts["name"])
        case "terms":
            return accept_terms
        case "business":
            if texts["business"]:
                return choose_business(texts["business"])
            return choose_business("", NewBusiness(texts["name"], texts["email"], texts["website"], texts["country"]))
        case "account":
            chosen, _, number_id = texts["number"].partition(" ")
            choices: dict[str, NumberChoice | None] = {
                "": None,
                "existing": "existing",
                "preverified": "preverified",
                **{choice: choice for choice in offered_choices(session)},
            }
            if chosen not in choices:
                raise ControlApiError("number", "is no choice of this window", ", ".join(filter(None, choices)))
            further = tuple(name.removeprefix("also_") for name in form if name.startswith("also_"))
            return choose_account(texts["account"], texts["name"], choices[chosen], number_id, further)
        case "profile":
            return name_account(texts["name"])
        case "number":
            return enter_number(texts["phone_number"], "", texts["display_name"], texts["category"])
        case "code":
            requested = {"sms": request_signup_code("SMS"), "call": request_signup_code("VOICE")}
            return requested.get(action) or enter_code(texts["code"])
        case "permissions":
            shared = {name: tuple(texts[f"asset_{name}"].split()) for name in offered_assets(session)}
            return confirm_permissions({name: ids for name, ids in shared.items() if ids})
        case "done":
            return complete_signup


async def _read_form(request: Request) -> dict[str, str] | None:
    """Return a form's fields; None if it is too large, or has too many."""
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > _MAX_FORM_BYTES:
            return None
    try:
        return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=_MAX_FIELDS))
    except ValueError:  # more fields
        return None


def _find(state: SimulatorState, key: str) -> OnboardingSession | None:
    return next((one for one in reversed([*state.values(SESSIONS).values()]) if one.page_key == key), None)


def _see(session: OnboardingSession) -> Response:
    return RedirectResponse(window_path(session), 303, _PAGE_HEADERS)


def _error_page(status: int, text: str) -> Response:
    return HTMLResponse(_templates().get_template("error.html").render(text=text), status, _PAGE_HEADERS)


def _file_response(name: str) -> Response:
    text = files("waypost.simulator.onboarding").joinpath("pages", name).read_bytes()
    return Response(text, media_type=_FILES[name], headers={**_ANY_PAGE, "X-Content-Type-Options": "nosniff"})


@cache
def _templates() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("waypost.simulator.onboarding", "pages"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
