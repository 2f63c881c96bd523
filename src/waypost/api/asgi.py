"""The service's doors: routes to endpoints, refusals and defects to answers."""

import time
from collections import Counter
from collections.abc import Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, Route, Router

from waypost.api.audit import with_audit
from waypost.api.hold import HELD_BODY, HELD_RETRY_S, Held, is_held, refuse_held
from waypost.api.http.requests import UNCOUNTED, Receive, Request, Scope, Send, read_body, send_answer, send_file
from waypost.api.idempotency import HEADER, once
from waypost.api.route import Carries, Once, RouteRow
from waypost.api.routes import ROUTES
from waypost.api.services import Services
from waypost.base.telemetry.counters import CALL_S, Spread
from waypost.base.telemetry.logs import log
from waypost.domain.errors import ApiError, ErrorCode
from waypost.store.contract import StoreAway
from waypost.wire.errors import INTERNAL_TEXT, error_response

_encode: Final = msgspec.json.Encoder().encode
_JSON: Final = (b"content-type", b"application/json")
_log = log("api")

SPENT: Final = {  # refusals that spend all the same: the window is full, or somebody else has been called already
    ErrorCode.TOO_MANY_REQUESTS, ErrorCode.INVALID_URL, ErrorCode.MEDIA_NOT_FETCHED, ErrorCode.WRONG_FILE_TYPE,
    ErrorCode.FILE_TOO_LARGE, ErrorCode.NO_ROOM, ErrorCode.MEDIA_QUOTA, ErrorCode.OPERATOR_REFUSED,
}  # fmt: skip


class Door:
    """One route as a plain ASGI callable.

    A refusal becomes its row of the error table; anything else that an endpoint raises is a defect
    and becomes the documented 500.

    Attributes:
        tally: how often it has answered what: the value of a reason, `accepted`, `replayed`, or `defect`.
        statuses: how often it has answered with which status.
        took_s: from the request's headers to the answer, before it is sent.
        deprecation: the header that every answer of an older address has.
    """

    def __init__(self, services: Services, row: RouteRow) -> None:
        self.tally: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.took_s = Spread(CALL_S)
        self._services = services
        held = services.held and is_held(row)
        self._endpoint = refuse_held if held else with_audit(row)
        self._row = row
        self._takes_key = row.once is not Once.NO and not held
        self._streams = row.carries is Carries.MULTIPART
        self.deprecation = row.deprecation
        self._known = (row.rate, row.name, row.credential)  # once: this is the busiest line there is

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        began_s = time.perf_counter()
        headers: list[tuple[bytes, bytes]] = []
        file: Path | None = None
        request: Request | None = None
        try:
            request = Request(
                scope,
                b"" if self._streams else await read_body(scope, receive),
                scope.get("path_params") or {},
                receive,
                *self._known,
            )
            what = "accepted"
            if self._takes_key and request.has_header(HEADER):
                answer = await once(self._services, request, self._row, self._endpoint)
                if request.keyed is not None and request.keyed.replayed:
                    what = "replayed"
            else:
                answer = await self._endpoint(self._services, request)
            status, body, file = answer.status, answer.bytes(), answer.file
            kind = _JSON if file is None else (b"content-type", answer.content_type.encode())
            if answer.headers:
                headers.extend((name.encode(), value.encode()) for name, value in answer.headers)
            self.tally[what] += 1
        except ApiError as refused:
            if request is not None and refused.code not in SPENT:
                await request.give_back(self._services.limiter)
            self.tally[refused.code.value] += 1
            status, told, extra = error_response(refused, names_field=UNCOUNTED in scope)
            body, kind = _encode(told), _JSON
            headers = [(name.encode(), value.encode()) for name, value in extra.items()]
        except Held:
            self.tally["held"] += 1
            status, body, kind = 503, HELD_BODY, _JSON
            headers = [(b"retry-after", HELD_RETRY_S)]
        except ConnectionError:
            return
        except StoreAway as away:
            self.tally["store away"] += 1
            _log.warning(str(away), path=scope.get("path"))
            status, body = 500, _encode({"status": "error", "message": INTERNAL_TEXT})
            headers, kind = [], _JSON
        except Exception:  # noqa: BLE001  a door answers whatever happens
            self.tally["defect"] += 1
            _log.exception("defect", path=scope.get("path"))
            status, body = 500, _encode({"status": "error", "message": INTERNAL_TEXT})
            headers, kind = [], _JSON
        if self.deprecation is not None:
            headers.append(self.deprecation)
        self.statuses[status] += 1
        self.took_s.add(time.perf_counter() - began_s)
        if file is not None:
            await send_file(send, status, file, [kind, *headers])
            return
        if body:
            headers.append(kind)
        if status != 204:
            headers.append((b"content-length", str(len(body)).encode()))
        await send_answer(send, status, body, headers)


class Service:
    """The whole service as an ASGI application.

    The busiest routes are found by one look in a dictionary; all others go through the router.

    Args:
        services: what endpoints use.
        more_routes: doors of other stages, and of the process itself.
        rows: of the route table; none where this process accepts nothing.
    """

    def __init__(
        self, services: Services, more_routes: Sequence[BaseRoute] = (), *, rows: Sequence[RouteRow] = ROUTES
    ) -> None:
        doors = [(row, Door(services, row)) for row in rows]
        self._doors = doors
        self._busiest = {(row.method, row.path): door for row, door in doors if "{" not in row.path}
        by_path: dict[str, dict[str, Door]] = {}
        for row, door in doors:
            by_path.setdefault(row.path, {})[row.method] = door
        self._router = Router(
            routes=[
                *(_PathRoute(path, by_path[path]) for path in sorted(by_path, key=_named_parts_first)),
                *more_routes,
            ],
            redirect_slashes=False,
        )

    @property
    def doors(self) -> list[tuple[str, Door]]:
        """Every route of the table by its name."""
        return [(row.name, door) for row, door in self._doors]

    @property
    def tally(self) -> Counter[tuple[str, str]]:
        """How often each route, by its name, has answered what."""
        return Counter({(row.name, what): count for row, door in self._doors for what, count in door.tally.items()})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        path: str = scope["path"]
        door = self._busiest.get((scope["method"], path))
        if door is not None:
            await door(scope, receive, send)
            return
        if len(path) > 1 and path.endswith("/"):  # Source: facts 1.4: some clients add one
            scope["path"] = path.rstrip("/")
        scope["app"] = self  # so that the router raises, and does not answer in words of its own
        has_begun, response = False, None

        async def tell(message: MutableMapping[str, Any]) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self._router(scope, receive, tell)
        except HTTPException as error:
            response = _plain_error(error.status_code, error.headers)
        except StoreAway as away:
            _log.warning(str(away), path=path)
            response = _plain_error(500)
        except Exception:  # noqa: BLE001  a door answers whatever happens
            _log.exception("defect", path=path)
            response = _plain_error(500)
        # One that has begun ends with its connection: it is not whole, and must not look so.
        if response is not None and not has_begun:
            await response(scope, receive, send)


def _named_parts_first(path: str) -> list[bool]:
    """Sorts `…/template/msg` before `…/template/{element_name}`."""
    return [part.startswith("{") for part in path.split("/")]


class _PathRoute(Route):
    """One path; where it has no such method, a later path that has one goes before it."""

    def __init__(self, path: str, doors: "dict[str, Door]") -> None:
        super().__init__(path, _ByMethod(doors))
        self._doors = doors

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """How well it fits."""
        match, inner = super().matches(scope)
        if match is Match.FULL and scope["method"] not in self._doors:
            match = Match.PARTIAL
        return match, inner


class _ByMethod:
    """One path's doors by method; another method is refused with those that are allowed."""

    def __init__(self, doors: dict[str, Door]) -> None:
        self._doors = doors

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        door = self._doors.get(scope["method"])
        if door is not None:
            await door(scope, receive, send)
            return
        allowed = ", ".join(sorted(self._doors))
        refused = ApiError(ErrorCode.METHOD_NOT_ALLOWED, f"This path takes {allowed}.")
        status, told, _ = error_response(refused)
        headers = {"Allow": allowed}
        for one in self._doors.values():
            if one.deprecation is not None:
                headers["Deprecation"] = one.deprecation[1].decode()
        response = Response(_encode(told), status, headers, media_type="application/json")
        await response(scope, receive, send)


def _plain_error(status: int, headers: Mapping[str, str] | None = None) -> Response:
    text = {404: "There is nothing at this path.", 405: "This path takes another method."}.get(status, INTERNAL_TEXT)
    body = _encode({"status": "error", "message": text})
    return Response(body, status, headers, media_type="application/json")
