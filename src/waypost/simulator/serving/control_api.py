"""The ASGI application of the control API, and its calls."""

from collections.abc import MutableMapping
from typing import Any, Final

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route, Router

from waypost.base.http.connection_scope import mark_authenticated, mark_rejected
from waypost.base.telemetry.logs import log
from waypost.simulator.accounts import control as accounts
from waypost.simulator.apis import clock, dev_partners, dev_snapshots
from waypost.simulator.apis.control_error import ControlApiError
from waypost.simulator.apis.control_operations import (
    BYTES,
    JSON,
    ControlCall,
    bind_endpoint,
    check_caller,
    json_response,
)
from waypost.simulator.apis.requests import Receive, Scope, Send
from waypost.simulator.business_app import control as business_apps
from waypost.simulator.calling import control as calling
from waypost.simulator.faults import control as faults
from waypost.simulator.flows import control as flows
from waypost.simulator.flows import session_control as flow_previews
from waypost.simulator.groups import control as groups
from waypost.simulator.handsets import control as phones
from waypost.simulator.handsets import control_actions as phone_actions
from waypost.simulator.handsets import control_fleets as fleets
from waypost.simulator.handsets import control_flows as phone_flows
from waypost.simulator.handsets import control_groups as group_chats
from waypost.simulator.media import control as media
from waypost.simulator.messages import control as updates
from waypost.simulator.numbers import control as numbers
from waypost.simulator.onboarding import control as onboarding
from waypost.simulator.onboarding import session_control
from waypost.simulator.payments import control as payments
from waypost.simulator.serving import control_state as state_view
from waypost.simulator.serving import declarations
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.templates import control as templates

_MEDIA_PATH: Final = "/control/media"

_CONTROL_LOG = log("simulator")

CALLS: Final[tuple[ControlCall, ...]] = (
    *state_view.operation.rows,
    *dev_snapshots.operation.rows,
    *declarations.operation.rows,
    *clock.operation.rows,
    *dev_partners.operation.rows,
    *faults.operation.rows,
    *accounts.operation.rows,
    *onboarding.operation.rows,
    *session_control.operation.rows,
    *payments.operation.rows,
    *updates.operation.rows,
    *numbers.operation.rows,
    *business_apps.operation.rows,
    *flows.operation.rows,
    *flow_previews.operation.rows,
    *phones.operation.rows,
    *phone_actions.operation.rows,
    *phone_flows.operation.rows,
    *calling.operation.rows,
    *groups.operation.rows,
    *group_chats.operation.rows,
    *fleets.operation.rows,
    *templates.operation.rows,
    *media.operation.rows,
)
"""The first match is used."""


class ControlApi:
    """The ASGI application under `/control`."""

    def __init__(self, state: SimulatorState) -> None:
        self.state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check the caller, then run the call."""
        settings = self.state.settings.value
        request = Request(scope)
        try:
            check_caller(
                request.method,
                request.headers,
                allowed_hosts=settings.allowed_hosts,
                control_token=settings.control_token,
                content_types=(JSON, BYTES) if scope["path"] == _MEDIA_PATH else (JSON,),
            )
        except ControlApiError as error:
            await json_response(error.response_body(), error.status)(scope, receive, send)
        else:
            mark_authenticated(scope)
            await self._run_route(scope, receive, send)

    async def _run_route(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the request's route; an exception becomes a JSON response unless a response has begun."""
        scope["app"] = self  # has the state; and makes the router raise instead of responding with text
        has_begun = False

        async def send_and_track(message: MutableMapping[str, Any]) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await _ROUTER(scope, receive, send_and_track)
        except HTTPException as error:
            mark_rejected(scope)
            text, headers = f"{scope['path']}: {error.detail}", error.headers
            await json_response({"error": text}, error.status_code, headers)(scope, receive, send)
        except Exception:  # a defect, or a file that cannot be written
            _CONTROL_LOG.exception("control request failed", path=scope["path"])
            if has_begun:
                raise
            await json_response({"error": "the simulator failed; see its log"}, 500)(scope, receive, send)


def _route(row: ControlCall) -> Route:
    call = bind_endpoint(row.method, row.function)

    async def endpoint(request: Request) -> Response:
        return await call(request.app.state, request)

    return Route(row.path, endpoint, methods=[row.method])


_ROUTER: Final = Router([_route(call) for call in CALLS])
"""It finds the API that a request is for, and so its state, in the request."""
