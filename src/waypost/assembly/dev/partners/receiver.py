"""The receiver of the callbacks of partners for tests, on the simulator's port; it can forward them.

Forwarding makes a test of an application exact: a callback counts as received once the application has
responded, and the service gets that response, so that it retries a failed callback.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import Response

from waypost.assembly.dev.partners.creation import INBOX_PATH
from waypost.assembly.dev.partners.partner import PartnerForTest
from waypost.base.error_texts import error_text
from waypost.client.api_client import ApiUnreachable, HttpTransport

_FORWARD_TIMEOUT_S: Final = 10  # Source: docs/how-to/receive-callbacks.md
_NOT_FORWARDED: Final = frozenset({"host", "connection", "content-length", "transfer-encoding"})


class PartnerCallbackReceiver:
    """An ASGI application: callbacks go to the partner's inbox, all other requests to the simulator.

    Args:
        simulator: its application.
        find_partner: returns the partner with an id; None if there is none.
    """

    def __init__(self, simulator: Any, find_partner: Callable[[str], PartnerForTest | None]) -> None:
        self._simulator = simulator
        self._find_partner = find_partner

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve one request."""
        if scope["type"] == "http" and scope["path"].startswith(INBOX_PATH):
            response = await self._receive_callback(Request(scope, receive))
            await response(scope, receive, send)
        else:
            await self._simulator(scope, receive, send)

    async def _receive_callback(self, request: Request) -> Response:
        if request.method != "POST":
            return Response("a callback is a POST", 405, {"allow": "POST"})
        partner = self._find_partner(request.url.path.removeprefix(INBOX_PATH))
        if partner is None:
            return Response("there is no such partner", 410)
        body, headers = await request.body(), dict(request.headers.items())
        url = partner.options.forward_to
        if not url:
            partner.inbox.add(body, headers, partner.options.status, "")
            return Response(status_code=partner.options.status)
        status, content = await _forward(url, body, headers)
        partner.inbox.add(body, headers, status, content.decode("utf-8", "replace"))
        return Response(content, status or 502)


async def _forward(url: str, body: bytes, headers: Mapping[str, str]) -> tuple[int, bytes]:
    """Return status and body of the application's response; without one, 0 and the reason."""
    parts = urlsplit(url)
    forwarded = {name.title(): text for name, text in headers.items() if name not in _NOT_FORWARDED}  # as sent
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    transport = HttpTransport(f"{parts.scheme}://{parts.netloc}", timeout_s=_FORWARD_TIMEOUT_S)
    try:
        response = await transport("POST", path, forwarded, body)
    except ApiUnreachable as error:
        return 0, f"your application at {url} did not respond: {error_text(error.__cause__ or error)}".encode()
    return response.status, response.body
