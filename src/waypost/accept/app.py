"""The service's doors: routes to endpoints, refusals and defects to answers."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, Router

from waypost.accept.requests import (
    Receive,
    Request,
    Scope,
    Send,
    read_body,
    send_answer,
)
from waypost.accept.routes import ROUTES, Endpoint
from waypost.accept.services import Services
from waypost.base.logs import log
from waypost.domain.refusals import Reason, Refused
from waypost.wire.errors import INTERNAL_TEXT, error_answer

_encode: Final = msgspec.json.Encoder().encode
_JSON: Final = (b"content-type", b"application/json")
_log = log("accept")


class Door:
    """One endpoint as a plain ASGI callable.

    A refusal becomes its row of the error table; anything else that an endpoint raises is a defect
    and becomes the documented 500.
    """

    def __init__(self, services: Services, endpoint: Endpoint) -> None:
        self._services = services
        self._endpoint = endpoint

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        extra: dict[str, str] = {}
        request: Request | None = None
        try:
            request = Request(
                scope, await read_body(scope, receive), scope.get("path_params") or {}
            )
            answer = await self._endpoint(self._services, request)
            status, body = answer.status, answer.bytes()
        except Refused as refused:
            if request is not None and refused.reason is not Reason.TOO_MANY_REQUESTS:
                request.give_back(self._services.limiter)
            status, told, extra = error_answer(refused)
            body = _encode(told)
        except ConnectionError:
            return
        except Exception:  # noqa: BLE001  a door answers whatever happens
            _log.exception("defect", path=scope.get("path"))
            status, body = 500, _encode({"status": "error", "message": INTERNAL_TEXT})
        headers = [(b"content-length", str(len(body)).encode())] if status != 204 else []
        if body:
            headers.append(_JSON)
        headers.extend((name.encode(), value.encode()) for name, value in extra.items())
        await send_answer(send, status, body, headers)


class Service:
    """The whole service as an ASGI application.

    The busiest routes are found by one look in a dictionary; all others go through the router.
    """

    def __init__(self, services: Services, more_routes: Sequence[BaseRoute] = ()) -> None:
        doors = [(row, Door(services, row.endpoint)) for row in ROUTES]
        self._busiest = {
            (row.method, row.path): door for row, door in doors if row.path.startswith("/wa/")
        }
        by_path: dict[str, dict[str, Door]] = {}
        for row, door in doors:
            by_path.setdefault(row.path, {})[row.method] = door
        self._router = Router(
            routes=[
                *(Route(path, _ByMethod(methods)) for path, methods in by_path.items()),
                *more_routes,
            ],
            redirect_slashes=False,
        )

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
        try:
            await self._router(scope, receive, send)
        except HTTPException as error:
            response = _plain_error(error.status_code, error.headers)
            await response(scope, receive, send)
        except Exception:  # noqa: BLE001  a door answers whatever happens
            _log.exception("defect", path=path)
            response = _plain_error(500)
            await response(scope, receive, send)


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
        refused = Refused(Reason.METHOD_NOT_ALLOWED, f"This path takes {allowed}.")
        status, told, _ = error_answer(refused)
        response = Response(
            _encode(told), status, {"Allow": allowed}, media_type="application/json"
        )
        await response(scope, receive, send)


def _plain_error(status: int, headers: Mapping[str, str] | None = None) -> Response:
    text = {404: "There is nothing at this path.", 405: "This path takes another method."}.get(
        status, INTERNAL_TEXT
    )
    body = _encode({"status": "error", "message": text})
    return Response(body, status, headers, media_type="application/json")
