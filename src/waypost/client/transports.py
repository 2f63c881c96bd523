"""Transports of requests to an API: over HTTP, or directly to the service in this process."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from waypost.base.http.connections import ConnectionPools
from waypost.base.http.http_client import HttpClient
from waypost.base.http.request_bodies import ChunkedBody, RequestBody
from waypost.client.responses import ApiUnreachable, ClientResponse
from waypost.client.streaming import AsgiMessage, ClientRequestBody, InProcessCall, StreamedResponse, expected_size

MAX_API_RESPONSE_BYTES: Final = 8 * 1024 * 1024
"""Of a response that is read as a whole."""
_IDENTITY_ENCODING: Final = {"Accept-Encoding": "identity"}
"""Without compression, so that a forwarded response keeps its Content-Length."""


class Transport(Protocol):
    """Sends one request to an API."""

    async def __call__(
        self, method: str, path: str, headers: Mapping[str, str], body: ClientRequestBody
    ) -> ClientResponse:
        """Send the request and return the complete response.

        Raises:
            ApiUnreachable: there is no response.
        """
        ...

    async def open(
        self, method: str, path: str, headers: Mapping[str, str], body: ClientRequestBody = None
    ) -> StreamedResponse:
        """Send the request and return a streamed response; the caller closes it.

        Raises:
            ApiUnreachable: there is no response.
        """
        ...


class HttpTransport:
    """Sends requests over HTTP; the timeout is for a complete response, and of a streamed one for each chunk."""

    def __init__(self, base_url: str, *, timeout_s: float = 15) -> None:
        self._base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s

    async def __call__(
        self, method: str, path: str, headers: Mapping[str, str], body: ClientRequestBody
    ) -> ClientResponse:
        """Send one request on a connection of its own: a command makes few."""
        client = self._make_client()
        try:
            response = await client.request(
                method, f"{self._base_url}{path}", headers, _request_body(body), timeout_s=self._timeout_s
            )
        except (OSError, ValueError) as error:
            raise ApiUnreachable(f"no response from {self._base_url}") from error
        finally:
            await client.close()
        return ClientResponse(response.status, response.body, dict(response.headers))

    async def open(
        self, method: str, path: str, headers: Mapping[str, str], body: ClientRequestBody = None
    ) -> StreamedResponse:
        """Send one request on a connection of its own, which is read only as fast as its chunks are consumed."""
        client = self._make_client()
        try:
            response = await client.open(
                method,
                f"{self._base_url}{path}",
                {**headers, **_IDENTITY_ENCODING},
                _request_body(body),
                timeout_s=None,
                read_timeout_s=self._timeout_s,
            )
        except (OSError, ValueError) as error:
            raise ApiUnreachable(f"no response from {self._base_url}") from error
        finally:
            await client.close()

        async def read_chunks() -> AsyncIterator[bytes]:
            try:
                async for chunk in response:
                    yield chunk
            except OSError as error:
                raise ApiUnreachable(f"the response of {self._base_url} breaks off") from error

        return StreamedResponse(response.status, dict(response.headers), read_chunks(), response.aclose)

    def _make_client(self) -> HttpClient:
        pools = ConnectionPools(max_per_address=1, idle_s=1, connect_s=self._timeout_s)
        return HttpClient(pools, max_body_bytes=MAX_API_RESPONSE_BYTES)


Application = Callable[
    [AsgiMessage, Callable[[], Awaitable[AsgiMessage]], Callable[[AsgiMessage], Awaitable[None]]], Awaitable[None]
]


class InProcessTransport:
    """Sends requests directly to an ASGI application in this process, through the same API.

    Args:
        application: handles the requests.
        scope_members: members of every request's scope, which identify requests of the same process.
    """

    def __init__(self, application: Application, *, scope_members: Mapping[str, Any] = MappingProxyType({})) -> None:
        self._application = application
        self._scope_members = scope_members

    async def __call__(
        self, method: str, path: str, headers: Mapping[str, str], body: ClientRequestBody
    ) -> ClientResponse:
        """Call the application like a server, and collect its messages."""
        messages: list[AsgiMessage] = []

        async def gather(message: AsgiMessage) -> None:
            messages.append(message)

        call = InProcessCall(body)
        await self._application(self._scope(method, path, headers), call.receive, gather)
        if not messages:
            raise ApiUnreachable(f"no response to {method} {path}")
        content = b"".join(sent_message.get("body", b"") for sent_message in messages[1:])
        return ClientResponse(messages[0]["status"], content, _response_headers(messages[0]))

    async def open(
        self, method: str, path: str, headers: Mapping[str, str], body: ClientRequestBody = None
    ) -> StreamedResponse:
        """Call the application like a server; it continues as its chunks are consumed."""
        call = InProcessCall(body)
        scope = self._scope(method, path, headers)
        call.start(self._application(scope, call.receive, call.send))
        try:
            start = await call.next_message()
            if start is None:
                raise ApiUnreachable(f"no response to {method} {path}")  # noqa: TRY301  one way out
            status, response_headers = start["status"], _response_headers(start)
            chunks = call.response_chunks(expected_size(method, status, response_headers))
        except BaseException:
            await call.disconnect()
            raise
        return StreamedResponse(status, response_headers, chunks, call.disconnect)

    def _scope(self, method: str, path: str, headers: Mapping[str, str]) -> AsgiMessage:
        parts = urlsplit(path)
        request_headers = {"host": "localhost", **headers}
        return {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": unquote(parts.path),
            "raw_path": parts.path.encode(),
            "root_path": "",
            "scheme": "http",
            "query_string": parts.query.encode(),
            "headers": [(name.lower().encode(), text.encode()) for name, text in request_headers.items()],
            "client": ("127.0.0.1", 0),
            "server": ("localhost", 0),
            **self._scope_members,
        }


def _request_body(body: ClientRequestBody) -> RequestBody:
    return body if body is None or isinstance(body, bytes) else ChunkedBody(body)


def _response_headers(start_message: AsgiMessage) -> dict[str, str]:
    return _lower_names(
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in start_message.get("headers", ())
    )


def _lower_names(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers}
