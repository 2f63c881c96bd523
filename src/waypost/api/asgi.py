"""The service as an ASGI application: routes requests to endpoints, turns errors and defects into responses."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router

from waypost.api.access_log import ACCESS_RECORD, REQUEST_ID_HEADER, AccessRecord, rate_limit_address, read_request_id
from waypost.api.authorisation import Credential, find_partner
from waypost.api.idempotency import KEY_HEADER, run_idempotent
from waypost.api.limits import SPENT_DELAY_S
from waypost.api.request_recorder import RequestRecorder
from waypost.api.requests import (
    MAX_BODY_BYTES,
    UNCOUNTED,
    ApiResponse,
    Receive,
    Request,
    Scope,
    Send,
    read_body,
    send_file,
)
from waypost.api.route import BodyFormat, Endpoint, IdempotencyMode, RouteRow
from waypost.api.routes import ROUTES
from waypost.api.services import Services
from waypost.base.error_texts import release_frames
from waypost.base.http.connection_scope import mark_rejected
from waypost.base.telemetry.counters import CALL_BUCKETS_S, Histogram
from waypost.base.telemetry.logs import log
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.accounts.partners import partner_by_id
from waypost.store.contract import MediaUnavailable, StoreUnavailable
from waypost.wire.errors import INTERNAL_TEXT, error_response

_HELD_RESPONSE: Final = ApiResponse(
    {
        "status": "error",
        "message": "The service is held to be looked at: it accepts nothing now. Calls that only read work.",
    },
    503,
    headers=(("retry-after", "60"),),
)
_STILL_SERVED: Final = frozenset(  # still served: they change nothing that leaves the service
    {"POST /partner/account/login", "POST /partner/app/{app_id}/templates/check"}
)


AUDITED_ROUTES: Final = frozenset(  # names of routes; each takes a partner token, deletion an app token too
    {
        "POST /partner/app",
        "PUT /partner/app/{app_id}",
        "DELETE /partner/app/{app_id}",
        "POST /partner/account/api/appLink",
        "POST /partner/{partner_id}/auth/token",
        "POST /partner/{partner_id}/auth/revoke",
        "POST /partner/{partner_id}/app-link/app-token",
        "POST /partner/{partner_id}/app-link/partner-link-token",
        "POST /partner/{partner_id}/app-link/status",
        "POST /partner/app/{app_id}/token",
        "POST /partner/app/{app_id}/token/revoke",
        "POST /partner/app/{app_id}/apikey",
        "POST /partner/app/{app_id}/apikey/revoke",
        "DELETE /partner/app/{app_id}/apikey/{key_id}",
    }
)


def audited_endpoint(row: RouteRow) -> Endpoint:
    """Return a row's endpoint; if the route is audited, wrapped so that it writes an entry before it returns."""
    if row.name not in AUDITED_ROUTES:
        return row.endpoint

    async def endpoint(services: Services, request: Request) -> ApiResponse:
        # Before the call, because it may delete the credential. Log and metrics have the errors without an entry.
        partner_id = await find_partner(services, request)
        try:
            response = await row.endpoint(services, request)
        except ApiError as error:
            if partner_id is not None and error.code is not ErrorCode.TOO_MANY_REQUESTS:  # their number is unbounded
                await _record(services, request, row, partner_id, 400, error.code.value)
            raise
        partner_id = partner_id or request.partner_id  # a call without a token names its partner itself
        if partner_id is not None:
            await _record(services, request, row, partner_id, response.status, "")
        return response

    return endpoint


async def _record(
    services: Services, request: Request, row: RouteRow, partner_id: int, status: int, detail: str
) -> None:
    if UNCOUNTED in request.scope:  # the console's own call: its page has an entry
        return
    partner = await services.database.read(partner_by_id, partner_id)
    await services.audit.record(
        actor="" if partner is None else partner.email,
        remote_address=rate_limit_address(services.proxies.client_address(request.scope)),
        action=row.name,
        status=status,
        partner_id=partner_id,
        subject=request.path,
        detail=detail,
    )


_encode: Final = msgspec.json.Encoder().encode
_JSON: Final = (b"content-type", b"application/json")
_DEFECT_BODY: Final = _encode({"status": "error", "message": INTERNAL_TEXT})
_SAFE_HEADERS: Final = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))
"""Responses have tokens and texts of customers: no cache stores them, and no browser guesses another type."""
_OPTIONAL_HEADERS: Final = frozenset({REQUEST_ID_HEADER, KEY_HEADER, b"content-encoding"})
_log = log("api")

COUNTS_TOWARD_RATE: Final = {  # errors that still count: the window is full, or an outgoing call was already made
    ErrorCode.TOO_MANY_REQUESTS, ErrorCode.INVALID_URL, ErrorCode.MEDIA_NOT_FETCHED, ErrorCode.WRONG_FILE_TYPE,
    ErrorCode.FILE_TOO_LARGE, ErrorCode.NO_ROOM, ErrorCode.MEDIA_QUOTA, ErrorCode.OPERATOR_REJECTED,
}  # fmt: skip


class ApiEndpoint:
    """One route as a plain ASGI callable.

    An `ApiError` becomes its row of the error table; any other exception of an endpoint is a defect
    and becomes the documented 500.

    Attributes:
        outcomes: requests by outcome: the value of an error code, `accepted`, `is_replay`, or `defect`.
        statuses: responses by status.
        took_s: from the request's headers to the response, before it is sent.
        deprecation: the header of every response of a deprecated path.
    """

    def __init__(self, services: Services, row: RouteRow, recorder: RequestRecorder | None = None) -> None:
        self.outcomes: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.took_s = Histogram(CALL_BUCKETS_S)
        self._services = services
        self._recorder = recorder
        self._endpoint = audited_endpoint(row)
        # A held service rejects what changes something or may leave it.
        self._is_held = services.held and (row.method != "GET" or row.calls_out) and row.name not in _STILL_SERVED
        self._row = row
        self._accepts_key = row.idempotency is not IdempotencyMode.NO_KEY
        self._has_no_credential = row.credential is Credential.NONE
        self._streams = row.body_format is BodyFormat.MULTIPART
        self.deprecation = row.deprecation
        self._request_arguments = (
            row.rate,
            row.name,
            row.credential,
            row.wrong_credential,
            row.other_app,
            services.rejections,
        )  # computed once: the hot path uses it for every request

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        began_s = time.perf_counter()
        status, body, kind = 500, _DEFECT_BODY, _JSON
        headers: list[tuple[bytes, bytes]] = []
        file: Path | None = None
        request: Request | None = None
        api_error: ApiError | None = None
        has_spent = False
        try:
            if self._has_no_credential and UNCOUNTED not in scope:
                self._services.rejections.check(self._address_of(scope))
            request = Request(
                scope,
                b"" if self._streams else await read_body(scope, receive),
                scope.get("path_params") or {},
                receive,
                *self._request_arguments,
            )
            optional = request.present_headers(_OPTIONAL_HEADERS)
            if REQUEST_ID_HEADER in optional:
                request.request_id = self._request_id(request)
            if b"content-encoding" in optional:
                request.reject_compression()
            outcome = "accepted"
            if self._is_held:
                outcome, response = "held", _HELD_RESPONSE
            elif KEY_HEADER in optional and self._accepts_key:
                response = await run_idempotent(self._services, request, self._row, self._endpoint)
                if request.idempotency is not None and request.idempotency.is_replay:
                    outcome = "replayed"
            else:
                response = await self._endpoint(self._services, request)
            status, body, file = response.status, response.bytes(), response.file
            kind = _JSON if file is None else (b"content-type", response.content_type.encode())
            if response.headers:
                headers.extend((name.encode(), value.encode()) for name, value in response.headers)
            self.outcomes[outcome] += 1
        except ApiError as error:
            api_error = error
            if error.code not in COUNTS_TOWARD_RATE:
                await self._refund(request)
            mark_rejected(scope)
            if UNCOUNTED not in scope:
                has_spent = self._spend_rejection(scope, request, error)
            self.outcomes[error.code.value] += 1
            status, content, extra = error_response(error, names_field=UNCOUNTED in scope)
            body = _encode(content)
            headers = [(name.encode(), value.encode()) for name, value in extra.items()]
            release_frames(error)
        except ConnectionError:
            return
        except StoreUnavailable as error:
            self.outcomes["store unavailable"] += 1
            _log.warning(str(error), route=self._row.name, **_id_fields(scope, request))
            status = 503 if isinstance(error, MediaUnavailable) else 500
            await self._refund(request)
        except Exception:  # noqa: BLE001  every request gets a response
            self.outcomes["defect"] += 1
            _log.exception("defect", route=self._row.name, **_id_fields(scope, request))
            await self._refund(request)
        took_s = time.perf_counter() - began_s
        request_id = "" if request is None else request.request_id
        recorder = self._recorder
        is_logged = recorder is not None and (status >= 400 or recorder.is_sampled())
        if recorder is not None and is_logged:
            request_id = self._response_id(scope, request_id, always=status >= 400 or recorder.show_text)
        if request_id and ACCESS_RECORD not in scope:
            headers.append((REQUEST_ID_HEADER, request_id.encode()))
        if self.deprecation is not None:
            headers.append(self.deprecation)
        if file is not None:
            headers.insert(0, kind)
        elif body:
            headers.append(kind)
            headers.extend(_SAFE_HEADERS)
        if file is None and status != 204:
            headers.append((b"content-length", str(len(body)).encode()))
        if recorder is not None and is_logged:
            recorder.record(
                scope,
                request,
                self._row,
                status,
                api_error,
                headers=headers,
                body=None if file is not None else body,
                took_s=took_s,
                request_id=request_id,
            )
        if has_spent:
            request = None  # it waits without its body
            await asyncio.sleep(SPENT_DELAY_S)
        self.statuses[status] += 1
        self.took_s.add(took_s)
        if file is not None:
            await send_file(send, status, file, headers)
            return
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _refund(self, request: Request | None) -> None:
        if request is not None:
            await request.refund(self._services.limiter)

    def _spend_rejection(self, scope: Scope, request: Request | None, error: ApiError) -> bool:
        """Count a request that ended in an error; return True if its owner has no budget left.

        One that could not be read counts as the largest, and one that was not checked because of a limit as none.
        """
        partner_id = None if request is None else request.partner_id
        owner = self._address_of(scope) if partner_id is None else partner_id
        rejections = self._services.rejections
        if error.code is not ErrorCode.TOO_MANY_REQUESTS:
            rejections.spend(owner, MAX_BODY_BYTES if request is None else len(request.body))
        return rejections.is_spent(owner)

    def _address_of(self, scope: Scope) -> str:
        return rate_limit_address(self._services.proxies.client_address(scope))

    def _response_id(self, scope: Scope, request_id: str, *, always: bool) -> str:
        """Return the id that a logged response has; empty if it needs none and the client sent none."""
        record: AccessRecord | None = scope.get(ACCESS_RECORD)
        if record is not None:
            return record.request_id
        return request_id or (self._services.ids.new() if always else "")

    def _request_id(self, request: Request) -> str:
        """Return the id of a request that has the header: the access log's, where there is one."""
        record: AccessRecord | None = request.scope.get(ACCESS_RECORD)
        if record is not None:
            return record.request_id
        return read_request_id(request.header(REQUEST_ID_HEADER), self._services.ids)


class ServiceApplication:
    """The whole service as an ASGI application.

    A row of the route table is found by the segments of its path, in time that does not grow with the table.

    Args:
        services: the services that endpoints use.
        more_routes: routes of other stages, and of the process itself.
        rows: rows of the route table; empty if this process serves no endpoint of it.
        recorder: writes the request log; None: there is none.
    """

    def __init__(
        self,
        services: Services,
        more_routes: Sequence[BaseRoute] = (),
        *,
        rows: Sequence[RouteRow] = ROUTES,
        recorder: RequestRecorder | None = None,
    ) -> None:
        endpoints = [(row, ApiEndpoint(services, row, recorder)) for row in rows]
        self._endpoints = endpoints
        self._templates: dict[int, str] = {}
        self._busiest = {(row.method, row.path): endpoint for row, endpoint in endpoints if "{" not in row.path}
        self._paths = PathTree()
        for row, endpoint in endpoints:
            self._paths.add(row.path, row.method, endpoint)
        self._router = Router(routes=more_routes, redirect_slashes=False)
        self._templates.update(
            (id(route.endpoint), route.path) for route in self._router.routes if isinstance(route, Route)
        )

    def route_of(self, scope: Scope) -> str:
        """Return the template of the path that a request was for; empty if no route matched."""
        if (scope["method"], scope["path"]) in self._busiest:
            return scope["path"]
        endpoint = scope.get("endpoint")
        return endpoint.template if isinstance(endpoint, PathEndpoints) else self._templates.get(id(endpoint), "")

    @property
    def endpoints(self) -> list[tuple[str, ApiEndpoint]]:
        """Return each endpoint with the name of its route."""
        return [(row.name, endpoint) for row, endpoint in self._endpoints]

    @property
    def outcomes(self) -> Counter[tuple[str, str]]:
        """Return the number of requests by route name and outcome."""
        return Counter(
            {
                (row.name, outcome): count
                for row, endpoint in self._endpoints
                for outcome, count in endpoint.outcomes.items()
            }
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        endpoint = self._busiest.get((scope["method"], path))
        if endpoint is not None:
            await endpoint(scope, receive, send)
            return
        if len(path) > 1 and path.endswith("/"):  # Source: facts 1.4: some clients add one
            scope["path"] = path = path.rstrip("/")
        found = self._paths.find(path, scope["method"])
        if found is not None:
            scope["endpoint"], scope["path_params"] = found
            await found[0](scope, receive, send)
            return
        scope["app"] = self  # so that the router raises instead of sending a response of its own
        has_begun, response = False, None

        async def tracked_send(message: MutableMapping[str, Any]) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._router(scope, receive, tracked_send)
        except HTTPException as error:
            response = _plain_error(error.status_code, error.headers)
        except ClientDisconnect:  # within its body: there is no client to respond to
            return
        except StoreUnavailable as error:
            _log.warning(str(error), route=self.route_of(scope), **_id_fields(scope, None))
            response = _plain_error(503 if isinstance(error, MediaUnavailable) else 500)
        except Exception:  # noqa: BLE001  every request gets a response
            _log.exception("defect", route=self.route_of(scope), **_id_fields(scope, None))
            response = _plain_error(500)
        # A response that has begun is cut off with its connection: it is incomplete and must not look complete.
        if response is not None and not has_begun:
            await response(scope, receive, send)


def _id_fields(scope: Scope, request: Request | None) -> dict[str, str]:
    """Return the fields of a log record that identify a request: none if it has no id."""
    record: AccessRecord | None = scope.get(ACCESS_RECORD)
    request_id = record.request_id if record is not None else request.request_id if request is not None else ""
    return {"request_id": request_id} if request_id else {}


class PathEndpoints:
    """The endpoints of one path by method; responds to any other method with 405 and the allowed ones.

    Attributes:
        template: the path with the names of its parameters in braces.
        parameters: the names.
    """

    def __init__(self, template: str) -> None:
        self.template = template
        self.parameters = [segment[1:-1] for segment in template.split("/") if segment.startswith("{")]
        self.by_method: dict[str, ApiEndpoint] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to one request."""
        endpoint = self.by_method.get(scope["method"])
        if endpoint is not None:
            await endpoint(scope, receive, send)
            return
        allowed = ", ".join(sorted(self.by_method))
        error = ApiError(
            ErrorCode.METHOD_NOT_ALLOWED, f"The method must be {' or '.join(sorted(self.by_method))} on this path."
        )
        status, content, _ = error_response(error)
        headers = {"Allow": allowed}
        for other in self.by_method.values():
            if other.deprecation is not None:
                headers["Deprecation"] = other.deprecation[1].decode()
        response = Response(_encode(content), status, headers, media_type="application/json")
        await response(scope, receive, send)


@dataclass(slots=True)
class _PathNode:
    literals: "dict[str, _PathNode]" = field(default_factory=dict[str, "_PathNode"])
    parameter: "_PathNode | None" = None
    endpoints: PathEndpoints | None = None  # of the path that ends here, if there is one


class PathTree:
    """Paths by their segments: `…/template/msg` is preferred to `…/template/{element_name}`."""

    def __init__(self) -> None:
        self._root = _PathNode()

    def add(self, template: str, method: str, endpoint: ApiEndpoint) -> None:
        """Add the endpoint of a path and method.

        Raises:
            ValueError: the path has one already, or other names for its parameters.
        """
        node = self._root
        for segment in template.split("/"):
            if segment.startswith("{"):
                node.parameter = node.parameter or _PathNode()
                node = node.parameter
            else:
                if segment not in node.literals:
                    node.literals[segment] = _PathNode()
                node = node.literals[segment]
        node.endpoints = node.endpoints or PathEndpoints(template)
        if node.endpoints.template != template:
            raise ValueError(f"{template} and {node.endpoints.template} are one path")
        if method in node.endpoints.by_method:
            raise ValueError(f"{method} {template} is declared twice")
        node.endpoints.by_method[method] = endpoint

    def find(self, path: str, method: str) -> tuple[PathEndpoints, dict[str, str]] | None:
        """Return the endpoints of a path with its parameters: a path that has the method is preferred."""
        matching: list[tuple[_PathNode, tuple[str, ...]]] = [(self._root, ())]
        for segment in path.split("/"):
            following: list[tuple[_PathNode, tuple[str, ...]]] = []  # in the order of preference
            for node, values in matching:
                if (literal := node.literals.get(segment)) is not None:
                    following.append((literal, values))
                if node.parameter is not None and segment:
                    following.append((node.parameter, (*values, segment)))
            if not following:
                return None
            matching = following
        found = [(node.endpoints, values) for node, values in matching if node.endpoints is not None]
        if not found:
            return None
        endpoints, values = next((one for one in found if method in one[0].by_method), found[0])
        return endpoints, dict(zip(endpoints.parameters, values, strict=True))


def _plain_error(status: int, headers: Mapping[str, str] | None = None) -> Response:
    text = {404: "There is nothing at this path.", 405: "This path takes another method."}.get(status, INTERNAL_TEXT)
    body = _encode({"status": "error", "message": text})
    return Response(body, status, headers, media_type="application/json")
