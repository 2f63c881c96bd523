"""The access log: one record for each request, without its path, because media keys and tokens may be in it."""

import re
import time
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final

from waypost.api.http.proxies import TrustedProxies
from waypost.base.ids import Ids
from waypost.base.telemetry.logs import log

REQUEST_ID_HEADER: Final = b"x-request-id"
"""The header of a request's id, in requests, responses and calls to the operator."""
ACCESS_RECORD: Final = "waypost.access"
"""A key in the scope of a request that is logged: its `AccessRecord`."""

_SAFE_ID: Final = re.compile(r"[A-Za-z0-9._~:/+=@-]{1,128}")
_log = log("access")


@dataclass(slots=True)
class AccessRecord:
    """The fields of a request's record that endpoints add.

    Attributes:
        request_id: the client's, if it sent a valid one; else a new one.
        partner_id: whose credential the request has; None: not known.
        app_id: the app that it is about; None: not known.
    """

    request_id: str
    partner_id: int | None = None
    app_id: str | None = None


def read_request_id(sent: str | None, ids: Ids) -> str:
    """Return the id that a client sent; a new one if it is not 1 to 128 letters, digits and `._~:/+=@-`."""
    return sent if sent is not None and _SAFE_ID.fullmatch(sent) else ids.new()


class AccessLog:
    """An ASGI application that writes one record for each request of another one.

    Args:
        application: serves the requests.
        route_of: returns the template of the path that a request was for; empty if no route matched.
        proxies: those in front of the service.
        ids: makes the ids of requests without one.
    """

    def __init__(
        self, application: Any, route_of: Callable[[MutableMapping[str, Any]], str], proxies: TrustedProxies, ids: Ids
    ) -> None:
        self._application = application
        self._route_of = route_of
        self._proxies = proxies
        self._ids = ids

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to one request, and write its record."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        began_s = time.perf_counter()
        sent_id = next((value.decode("latin-1") for name, value in scope["headers"] if name == REQUEST_ID_HEADER), None)
        record = scope[ACCESS_RECORD] = AccessRecord(read_request_id(sent_id, self._ids))
        status, size_bytes = None, 0

        async def send_counted(message: MutableMapping[str, Any]) -> None:
            nonlocal status, size_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (REQUEST_ID_HEADER, record.request_id.encode())]
            elif message["type"] == "http.response.body":
                size_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._application(scope, receive, send_counted)
        finally:
            _log.info(
                "request",
                request_id=record.request_id,
                method=scope["method"],
                route=self._route_of(scope),
                status=status,
                took_ms=round((time.perf_counter() - began_s) * 1000, 1),
                bytes=size_bytes,
                client=self._proxies.client_address(scope),
                partner_id=record.partner_id,
                app_id=record.app_id,
            )
