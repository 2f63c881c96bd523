"""API clients of the console: in-process calls to the public APIs, with the signed-in partner's credentials."""

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from waypost.base.clock import Clock
from waypost.base.encryption import SecretBox, hash_secret
from waypost.base.ids import Ids
from waypost.base.telemetry.logs import log
from waypost.client.api_client import (
    ApiClient,
    ApiUnreachable,
    Application,
    InProcessTransport,
    StreamedResponse,
    Transport,
)
from waypost.domain.app import App
from waypost.domain.partner import PARTNER_TOKEN_LIFE_MS
from waypost.store.accounts.partners import add_partner_token, partner_by_id, partner_of_token
from waypost.store.database import Database
from waypost.wire.tokens import issue_partner_token

UNCOUNTED: Final = "waypost.uncounted"
"""Key in a request's scope: the request does not count toward rate limits. Clients cannot set it over HTTP."""

_TOKEN_REFRESH_MS: Final = 60 * 60 * 1000


class ApiClients:
    """Clients of the partner, admin and simulator control APIs.

    Args:
        application: this process's, with the partner API and the admin API.
        admin_token: the console's own admin credential, known only to this process.
        control: transport to the simulator, with the control API's credential, if it requires one.
    """

    def __init__(
        self, application: Application, *, database: Database, secret_box: SecretBox, ids: Ids, clock: Clock,
        admin_token: str, control: Transport | None, control_token: str | None = None,
    ) -> None:  # fmt: skip
        self._transport = InProcessTransport(application, scope_members={UNCOUNTED: True})
        self._database, self._secret_box, self._ids, self._clock = database, secret_box, ids, clock
        self._partner_tokens: dict[int, tuple[str, int]] = {}
        self.admin = ApiClient(self._transport, {"Authorization": f"Bearer {admin_token}"})
        self.control = None if control is None else ControlClient(control, control_token)

    def app(self, app: App) -> ApiClient:
        """Return a client with an app's token, for `/partner/app/{app.id}/…`."""
        return ApiClient(self._transport, {"Authorization": self.app_token(app)})

    def app_token(self, app: App) -> str:
        """Return an app's token, which is derived."""
        return self._secret_box.app_token(app.id, app.token_serial)

    async def partner(self, partner_id: int) -> ApiClient:
        """Return a client with a partner token, for lists of apps, their tokens and keys."""
        return ApiClient(self._transport, {"Authorization": await self.partner_token(partner_id)})

    async def partner_token(self, partner_id: int) -> str:
        """Return a partner token that is valid for an hour at least."""
        now_ms = self._clock.now_ms()
        token, until_ms = self._partner_tokens.get(partner_id, ("", 0))
        is_fresh = now_ms < until_ms - _TOKEN_REFRESH_MS < now_ms + PARTNER_TOKEN_LIFE_MS
        # Another process may have revoked all tokens of the partner.
        if not is_fresh or await self._database.read(partner_of_token, hash_secret(token)) is None:
            partner = await self._database.read(partner_by_id, partner_id)
            if partner is None:
                raise LookupError(f"there is no partner {partner_id}")
            token = issue_partner_token(self._secret_box, partner, jti=self._ids.new(), now_ms=now_ms)
            until_ms = now_ms + PARTNER_TOKEN_LIFE_MS
            await self._database.write(add_partner_token, hash_secret(token), partner_id, now_ms, until_ms)
            self._partner_tokens[partner_id] = (token, until_ms)
        return token

    def clear_partner_tokens(self) -> None:
        """Clear the cached partner tokens, which may have been revoked."""
        self._partner_tokens.clear()


class ControlClient(ApiClient):
    """Client of the simulator control API, which also serves files."""

    def __init__(self, transport: Transport, token: str | None = None) -> None:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        super().__init__(transport, headers)
        self._control_transport = transport
        self._control_headers = headers

    async def open(
        self, path: str, *, method: str = "GET", range_headers: Mapping[str, str] = MappingProxyType({})
    ) -> StreamedResponse:
        """Open a response that is not JSON, such as a media file, whatever its status; the caller closes it."""
        return await self._control_transport.open(method, path, {**self._control_headers, **range_headers})

    async def get(self, path: str) -> Any:
        """Return the JSON response to a GET."""
        return await self.json("GET", path)

    async def post(self, path: str, body: Any = None) -> Any:
        """Return the JSON response to a POST."""
        return await self.json("POST", path, {} if body is None else body)


_RANGE_HEADERS: Final = ("range", "if-range")
_FORWARDED_HEADERS: Final = ("content-length", "content-range", "etag", "last-modified")
"""Response headers that are passed on; the console sets the media type itself."""
_log = log("console")
_ONE_RANGE: Final = re.compile("bytes=(?:([0-9]{1,15})-([0-9]{0,15})|-[0-9]{1,15})")


async def open_file(control: ControlClient, request: Request, path: str) -> StreamedResponse:
    """Open a file, or the one range of it that was requested; the caller passes it to `proxy_response` or closes it."""
    headers = request.headers
    range_headers = {name: headers[name] for name in _RANGE_HEADERS if name in headers}
    if not _is_one_range(range_headers.get("range", "")):
        range_headers = {}
    return await control.open(path, method=request.method, range_headers=range_headers)


def proxy_response(source: StreamedResponse, headers: Mapping[str, str], *, media_type: str) -> Response:
    """Return the response that streams a file: 200, 206 for a range, or 416 for an impossible range."""
    source_headers = {name: source.headers[name] for name in _FORWARDED_HEADERS if name in source.headers}
    return _ProxyResponse(source, {"accept-ranges": "bytes", **source_headers, **headers}, media_type)


class _ProxyResponse(StreamingResponse):
    """Streams a source and always closes it; a source that fails midway ends the connection."""

    def __init__(self, source: StreamedResponse, headers: Mapping[str, str], media_type: str) -> None:
        super().__init__(source, source.status, headers, media_type)
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        exclude_from_drain(scope)
        try:
            await super().__call__(scope, receive, send)
        except ApiUnreachable as error:
            _log.warning("file transfer interrupted", reason=str(error))
        finally:
            await self._source.aclose()


def exclude_from_drain(scope: Mapping[str, Any]) -> None:
    """Let a snapshot load or reset proceed without this request, which causes it or lasts as long as a page is open."""
    open_request = scope.get("extensions", {}).get("waypost.open_request")
    if open_request is not None:
        open_request.exclude_from_drain()


def _is_one_range(value: str) -> bool:
    """True for one valid byte range; others may be ignored. Source: RFC 9110, 14.2."""
    match = _ONE_RANGE.fullmatch(value)
    if match is None:
        return False
    first, last = match[1], match[2]
    return not (first and last) or int(first) <= int(last)
