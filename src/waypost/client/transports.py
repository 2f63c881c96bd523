"""Transports of requests to an API: over HTTP, or directly to the service in this process; streamed responses."""

import asyncio
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, MutableMapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol
from urllib.parse import unquote, urlsplit

from waypost.client.responses import ApiUnreachable, ClientResponse

if TYPE_CHECKING:  # the help of a command needs no HTTP client
    from waypost.base.http.http_client import HttpClient
    from waypost.base.http.request_bodies import RequestBody

STREAM_CHUNK_BYTES: Final = 64 * 1024

ClientRequestBody = bytes | AsyncIterable[bytes] | None
"""The body of a request: complete, or in chunks that are produced while they are sent."""

AsgiMessage = MutableMapping[str, Any]
"""A message to or from an ASGI application."""

_BODILESS: Final = (204, 304)


class StreamedResponse:
    """A response in chunks; its opener closes it, read to its end or not.

    Attributes:
        status: of the response.
        headers: names in lower case.
    """

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        chunks: AsyncIterator[bytes],
        close: Callable[[], Awaitable[None]],
    ) -> None:
        self.status = status
        self.headers = headers
        self._chunks = chunks
        self._close = close

    def __aiter__(self) -> AsyncIterator[bytes]:
        """Return the body; each chunk is requested from the source when the one before has been read.

        Raises:
            ApiUnreachable: the response ends early.
        """
        return self._chunks

    async def aclose(self) -> None:
        """Close the source: what has not been read is not sent any more."""
        await self._close()


class InProcessCall:
    """One request to an application in this process; the application continues when its output has been read."""

    def __init__(self, body: ClientRequestBody) -> None:
        self._complete_body: list[bytes] = []
        self._body_chunks: AsyncIterator[bytes] | None = None
        if body is None or isinstance(body, bytes):
            self._complete_body = [body or b""]
        else:
            self._body_chunks = aiter(body)
        self._disconnected = asyncio.Event()
        self._sent: deque[AsgiMessage] = deque()
        self._message_ready, self._message_read = asyncio.Event(), asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, work: Awaitable[None]) -> None:
        """Run the application concurrently with the reader."""

        async def run() -> None:
            await work

        self._task = asyncio.create_task(run())
        self._task.add_done_callback(lambda _: self._message_ready.set())

    async def receive(self) -> AsgiMessage:
        """Return the next message for the application: the body, then the disconnect."""
        if self._complete_body:
            return {"type": "http.request", "body": self._complete_body.pop(), "more_body": False}
        if self._body_chunks is not None:
            chunk = await anext(self._body_chunks, None)
            if chunk is None:
                self._body_chunks = None
            return {"type": "http.request", "body": chunk or b"", "more_body": chunk is not None}
        await self._disconnected.wait()  # a streamed response meanwhile waits for a disconnect
        return {"type": "http.disconnect"}

    async def send(self, message: AsgiMessage) -> None:
        """Send a message of the application; return when it has been read.

        Raises:
            OSError: the reader has disconnected.
        """
        self._sent.append(message)
        self._message_ready.set()
        while self._sent and not self._disconnected.is_set():
            self._message_read.clear()
            await self._message_read.wait()
        if self._disconnected.is_set():
            raise OSError("the reader has disconnected")

    async def next_message(self) -> AsgiMessage | None:
        """Return the application's next message, None if it has ended; raise its exception if it has failed."""
        while not self._sent:
            if self._task is not None and self._task.done():
                self._task.result()
                return None
            self._message_ready.clear()
            await self._message_ready.wait()
        self._message_read.set()
        return self._sent.popleft()

    async def response_chunks(self, size_bytes: int | None) -> AsyncIterator[bytes]:
        """Yield the body of the response.

        Args:
            size_bytes: of the header Content-Length; None: not sent.

        Raises:
            ApiUnreachable: the response ends early.
        """
        read_bytes, has_more = 0, True
        while has_more:
            try:
                message = await self.next_message()
            except Exception as error:
                raise ApiUnreachable("the response breaks off: the application has failed") from error
            if message is None:
                raise ApiUnreachable("the response breaks off: the application has ended")
            has_more = message.get("more_body", False)
            chunk: bytes = message.get("body", b"")
            read_bytes += len(chunk)
            if chunk:
                yield chunk
        if size_bytes is not None and read_bytes != size_bytes:
            raise ApiUnreachable(f"the response has {read_bytes} bytes instead of the announced {size_bytes}")

    async def disconnect(self) -> None:
        """Disconnect the reader and cancel the application."""
        self._disconnected.set()
        self._message_read.set()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)


def expected_size(method: str, status: int, headers: Mapping[str, str]) -> int | None:
    """Return the size of a response's body by its headers; None if they do not state it."""
    if method == "HEAD" or status in _BODILESS:
        return 0
    length = headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdigit() else None


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

    def _make_client(self) -> "HttpClient":
        from waypost.base.http.connection_pools import ConnectionPools
        from waypost.base.http.http_client import HttpClient

        pools = ConnectionPools(max_per_address=1, idle_s=1, connect_s=self._timeout_s)
        return HttpClient(pools, max_body_bytes=MAX_API_RESPONSE_BYTES)


Application = Callable[
    [AsgiMessage, Callable[[], Awaitable[AsgiMessage]], Callable[[AsgiMessage], Awaitable[None]]], Awaitable[None]
]


class InProcessTransport:
    """Sends requests directly to an ASGI application in this process, through the same API.

    Args:
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


def _request_body(body: ClientRequestBody) -> "RequestBody":
    from waypost.base.http.request_bodies import ChunkedBody

    return body if body is None or isinstance(body, bytes) else ChunkedBody(body)


def _response_headers(start_message: AsgiMessage) -> dict[str, str]:
    headers = start_message.get("headers", ())
    return {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in headers}
