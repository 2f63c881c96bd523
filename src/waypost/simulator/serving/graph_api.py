"""The ASGI application of the Graph API, as the operator documents it, under any version.

A path names an object and an optional edge; the route depends on the object's type. Objects of other
accounts look like unknown ones.
"""

from functools import partial
from typing import Final

from msgspec.structs import replace

from waypost.base.batching import GroupCommitClosed
from waypost.base.error_texts import release_frames
from waypost.base.http.connection_scope import mark_authenticated, mark_rejected
from waypost.base.telemetry.logs import log
from waypost.simulator.accounts.signups import SIGNUPS
from waypost.simulator.apis.errors import TITLES, GraphApiError, no_such_object, trace_id
from waypost.simulator.apis.requests import (
    Call,
    ClientDisconnected,
    Download,
    Receive,
    Scope,
    Send,
    add_form_fields,
    read_call,
    send_download,
    send_json,
)
from waypost.simulator.flows.model import FLOWS
from waypost.simulator.groups.model import GROUPS
from waypost.simulator.media.model import find_media
from waypost.simulator.media.uploads import find_upload
from waypost.simulator.messages.marketing import SimulatedAd
from waypost.simulator.onboarding.model import ALLOCATIONS, PARTNERS
from waypost.simulator.onboarding.preverified import find_preverified
from waypost.simulator.serving.call_faults import FaultedResponse, InjectedError, carry_out
from waypost.simulator.serving.graph_routes import NODE_IDS, ROOT_ROUTES, ROUTES, GraphResponse
from waypost.simulator.state.accounts import Account, GraphApp, find_business
from waypost.simulator.state.graph_operations import MARK_READ, SEND, GraphOperation
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.state.tokens import check_permission, check_token, token_app
from waypost.simulator.state.usage_counts import COUNTED_EDGES, count_management_call, usage_headers
from waypost.simulator.templates.model import TEMPLATES
from waypost.simulator.templates.nodes import AD_PREFIX

_THROTTLING_CODES: Final = frozenset({130429, 131048, 131056})
_GRAPH_LOG = log("simulator")


class GraphApi:
    """The ASGI application of the Graph API."""

    def __init__(self, state: SimulatorState) -> None:
        self._state = state

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; every error response is the operator's envelope."""
        version = "v25.0"
        extra_headers: list[tuple[bytes, bytes]] = []
        try:
            call = await read_call(scope, receive)
            version = call.version
            status, response = 200, await self._run_call(call, extra_headers)
            mark_authenticated(scope)
            if isinstance(response, FaultedResponse):
                response = await response.send(scope, receive, send)
                if response is None:
                    return
                if isinstance(response, GraphApiError):
                    raise response  # noqa: TRY301  a late error gets the same response
            if isinstance(response, Download):
                await send_download(send, response)
                return
        except ClientDisconnected:
            return
        except GraphApiError as error:
            if isinstance(error, InjectedError):  # an armed fault, at any rate
                mark_authenticated(scope)
            else:
                mark_rejected(scope)
            status, response = self._error_response(error, extra_headers)
            release_frames(error)
        except GroupCommitClosed:
            status, response = self._server_error(2)
        except Exception as error:  # noqa: BLE001  a defect is logged here; its response has the usual form
            _GRAPH_LOG.error("graph request failed", path=scope["path"], error=repr(error), exc_info=True)
            status, response = self._server_error(1)
        headers = (
            (b"facebook-api-version", version.encode()),
            (b"x-fb-request-id", trace_id(self._state.ids).encode()),
            (b"x-fb-trace-id", trace_id(self._state.ids).encode()),
            *extra_headers,
        )
        await send_json(send, status, response, headers)

    async def _run_call(
        self, call: Call, headers: list[tuple[bytes, bytes]]
    ) -> GraphResponse | Download | FaultedResponse:
        """Return a call's response; adds response headers, for an error response too, to `headers`."""
        state = self._state
        root = ROOT_ROUTES.get((call.method, call.object_id))
        if root is not None and root.is_open:
            return await self._run_root_call(call, root)
        token = check_token(state, call.token)
        call = replace(call, app_id=token_app(state, token))
        if root is not None:
            return await self._run_root_call(call, root)
        thing, waba_ids = self._find_object(call.object_id)
        row = ROUTES.get((type(thing), call.method, call.edge))
        is_own_app = isinstance(thing, GraphApp) and thing.app_id == call.app_id
        if row is None or not (is_own_app or token.grants_access(waba_ids)):
            raise no_such_object(call.method, call.object_id, _accepted_kinds(call))
        candidates = token.waba_ids if is_own_app else waba_ids
        waba_id = next((candidate for candidate in candidates if candidate in token.waba_ids), "")
        if waba_id:
            headers += usage_headers(state, waba_id)
        check_permission(token, row.permission)
        if isinstance(thing, Account) and call.edge in COUNTED_EDGES:
            count_management_call(state, thing)
        if call.body is not None and not row.is_streamed:
            call = await add_form_fields(call)
        name = MARK_READ if row.name == SEND and "status" in call.fields else row.name
        return await carry_out(state, call, name, waba_id, thing, lambda call: row.function(state, call, thing))

    async def _run_root_call(self, call: Call, row: GraphOperation) -> GraphResponse | Download | FaultedResponse:
        """Carry out a call whose path names no object of an account; the URL of a file may name the file."""
        media = find_media(self._state, call.query.get("mid", ""))
        waba_id = self._find_object(media.media_id)[1][0] if media is not None else ""
        work = partial(row.function, self._state)
        return await carry_out(self._state, call, row.name, waba_id, media, work)

    def _find_object(self, object_id: str) -> tuple[object, list[str]]:
        """Return the object of an id, and the accounts that own it; an app may have several."""
        state, accounts = self._state, self._state.accounts
        owned = (
            accounts.numbers.get(object_id)
            or accounts.by_id.get(object_id)
            or state.values(TEMPLATES).get(object_id)
            or state.values(FLOWS).get(object_id)
        )
        if object_id.startswith("signups/"):
            owned = state.values(SIGNUPS).get(object_id.removeprefix("signups/"))
        if owned is not None:
            return owned, [owned.waba_id]
        of_number = find_media(state, object_id) or state.values(GROUPS).get(object_id)
        if of_number is not None:
            return of_number, [accounts.numbers[of_number.phone_number_id].waba_id]
        app = accounts.apps.get(object_id)
        if app is not None:
            return app, [account.waba_id for account in accounts.accounts_of_app(app.app_id)]
        linked = state.values(TEMPLATES).get(object_id.removeprefix(AD_PREFIX))
        if linked is not None and linked.category == "MARKETING":
            return SimulatedAd(linked), [linked.waba_id]
        upload = find_upload(state, object_id)
        if upload is not None:
            return upload, [upload.user_id]
        partner = state.cached(PARTNERS).by_further_key.get(("credit_line", object_id))
        if partner is not None:
            return partner, [account.waba_id for account in accounts.accounts_of_app(partner.app_id)]
        allocation = state.values(ALLOCATIONS).get(object_id)
        if allocation is not None:
            return allocation, [allocation.waba_id]
        preverified = find_preverified(state, object_id)
        if preverified is not None:
            return preverified, [account.waba_id for account in accounts.accounts_of_app(preverified.app_id)]
        business = find_business(accounts, object_id)
        if business is not None:
            return business, [account.waba_id for account in (*business.owned, *business.shared)]
        return None, []

    def _error_response(self, error: GraphApiError, headers: list[tuple[bytes, bytes]]) -> tuple[int, GraphResponse]:
        """Return the status and body of an error; a setting defines the status of throttling. Source: facts 13."""
        settings, status = self._state.settings.value, error.status
        self._state.error_counts[error.error.get("code", 0)] += 1
        retry_after_s = error.retry_after_s
        if not isinstance(error, InjectedError):
            status = settings.throttle_status if error.error.get("code") in _THROTTLING_CODES else status
            retry_after_s = (retry_after_s or 1) if status == 429 and settings.send_retry_after else None
        if retry_after_s is not None:
            headers.append((b"retry-after", str(retry_after_s).encode()))
        return status, error.envelope(self._state.ids)

    def _server_error(self, code: int) -> tuple[int, GraphResponse]:
        status, title = TITLES[code]
        error = {"message": title, "type": "OAuthException", "code": code, "is_transient": True}
        return status, GraphApiError(status, error).envelope(self._state.ids)


def _accepted_kinds(call: Call) -> list[str]:
    """Return the names of the ids that a path with this method and edge begins with."""
    return [NODE_IDS[node] for node, method, edge in ROUTES if method == call.method and edge == call.edge]
