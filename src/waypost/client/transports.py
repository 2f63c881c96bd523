"""Transports of requests to an API: over HTTP, or directly to the service in this process."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from waypost.client.responses import ApiUnreachable, ClientResponse
from waypost.client.streaming import (
    STREAM_CHUNK_BYTES,
    AsgiMessage,
    ClientRequestBody,
    InProcessCall,
    StreamedResponse,
    expected_size,
)

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
    """Sends requests over HTTP.

    Args:
        base_url: paths are appended to it.
        timeout_s: for a complete response; for a streamed one, for each chunk.
    """

    def __init__(self, base_url: str, *, timeout_s: float = 15) -> None:
        self._base_url = base_url.rstrip("/")
        self._timeout_s = timeout_s

    async def __call__(
        self, method: str, path: str, headers: Mapping[str, str], body: ClientRequestBody
    ) -> ClientResponse:
        """Send one request on a connection of its own: a command makes few."""
        import aiohttp  # slow to import, and most processes send no such request

        timeout = aiohttp.ClientTimeout(total=self._timeout_s)
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, trust_env=False) as session,
                session.request(method, f"{self._base_url}{path}", headers=headers, data=body) as response,
            ):
                return ClientResponse(response.status, await response.read(), _lower_names(response.headers.items()))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise ApiUnreachable(f"no response from {self._base_url}") from error

    async def open(
        self, method: str, path: str, headers: Mapping[str, str], body: ClientRequestBody = None
    ) -> StreamedResponse:
        """Send one request on a connection of its own, which is read only as fast as its chunks are consumed."""
        import aiohttp

        timeout = aiohttp.ClientTimeout(total=None, connect=self._timeout_s, sock_read=self._timeout_s)
        session = aiohttp.ClientSession(timeout=timeout, trust_env=False)
        try:
            response = await session.request(
                method, f"{self._base_url}{path}", headers={**headers, **_IDENTITY_ENCODING}, data=body
            )
        except BaseException as error:
            await session.close()
            if isinstance(error, (aiohttp.ClientError, TimeoutError, OSError)):
                raise ApiUnreachable(f"no response from {self._base_url}") from error
            raise

        async def read_chunks() -> AsyncIterator[bytes]:
            try:
                async for chunk in response.content.iter_chunked(STREAM_CHUNK_BYTES):
                    yield chunk
            except (aiohttp.ClientError, TimeoutError, OSError) as error:
                raise ApiUnreachable(f"the response of {self._base_url} breaks off") from error

        async def close() -> None:
            response.close()
            await session.close()

        return StreamedResponse(response.status, _lower_names(response.headers.items()), read_chunks(), close)


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


def _response_headers(start_message: AsgiMessage) -> dict[str, str]:
    return _lower_names(
        (name.decode("latin-1"), value.decode("latin-1")) for name, value in start_message.get("headers", ())
    )


def _lower_names(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers}
