"""An HTTP client for everything but the busiest POSTs: any method, bodies that are sent and read in chunks.

It follows no redirects, stores no cookies, uses no proxy of the environment, and decodes nothing. A response keeps
to the limits of `connections.py`, and its body to one that the caller sets.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from io import BytesIO
from math import inf
from typing import Any, Final, TypeVar

from yarl import URL

from waypost import __version__
from waypost.base.http.connection_pools import ConnectionPools
from waypost.base.http.connections import HttpResponse, PooledConnection, ResponseTimeout
from waypost.base.http.request_bodies import ChunkedBody, RequestBody
from waypost.base.http.request_heads import header_lines, parse_target
from waypost.base.http.response_stream import ResponseHeaders, ResponseStream

Result = TypeVar("Result")

_DEFAULT_HEADERS: Final = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": f"Waypost/{__version__}"}
_BODILESS_METHODS: Final = ("GET", "HEAD", "OPTIONS")


class OpenResponse:
    """A response whose body is read as it arrives; its opener closes it, read to its end or not.

    Args:
        stream: with status and headers.
        sending: the task that sends the body of the request, if it is sent in chunks.
        read_timeout_s: for each part of the body; None: only the whole response has a limit.
    """

    def __init__(
        self, stream: ResponseStream, sending: "asyncio.Task[None] | None", read_timeout_s: float | None
    ) -> None:
        self.status = stream.status
        self.headers: ResponseHeaders = stream.headers
        self._stream = stream
        self._sending = sending
        self._read_timeout_s = read_timeout_s

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body; the connection is read only as fast as it is consumed.

        Raises:
            ResponseLost: it ends early, takes too long or is too long.
        """
        while chunk := await _limit_time(self._read_timeout_s, self._stream.read()):
            yield chunk

    async def aclose(self) -> None:
        """Close the connection, unless the response has ended."""
        self._stream.close()
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait([self._sending])


class HttpClient:
    """Sends requests over pooled connections.

    Args:
        pools: the connections; closed with this client.
        max_body_bytes: maximum size of the body of a response that is read as a whole.
    """

    def __init__(self, pools: ConnectionPools, *, max_body_bytes: int) -> None:
        self._max_body_bytes = max_body_bytes
        self._pools = pools

    async def request(
        self,
        method: str,
        url: str | URL,
        headers: Mapping[str, str],
        body: RequestBody = None,
        *,
        timeout_s: float,
        read_timeout_s: float | None = None,
    ) -> HttpResponse:
        """Send a request and return its complete response.

        Args:
            method: of HTTP.
            url: of http or https; its fragment is not sent.
            headers: override those that every request has.
            body: of the request.
            timeout_s: for everything together.
            read_timeout_s: for each part of the response.

        Raises:
            NotConnected: nothing was sent.
            ResponseLost: the request may have been sent.
            ValueError: the URL or a header cannot be sent at all.
        """
        opening = self.stream(
            method,
            url,
            headers,
            body,
            timeout_s=timeout_s,
            read_timeout_s=read_timeout_s,
            max_body_bytes=self._max_body_bytes,
        )
        async with opening as response:
            content = BytesIO()
            async for chunk in response:
                content.write(chunk)
            return HttpResponse(response.status, response.headers, content.getvalue())

    @asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str | URL,
        headers: Mapping[str, str],
        body: RequestBody = None,
        *,
        timeout_s: float | None,
        read_timeout_s: float | None = None,
        max_body_bytes: int | None = None,
    ) -> AsyncGenerator[OpenResponse]:
        """Send a request, and close its response at the end of the context; see `open`."""
        response = await self.open(
            method,
            url,
            headers,
            body,
            timeout_s=timeout_s,
            read_timeout_s=read_timeout_s,
            max_body_bytes=max_body_bytes,
        )
        try:
            yield response
        finally:
            await response.aclose()

    async def open(
        self,
        method: str,
        url: str | URL,
        headers: Mapping[str, str],
        body: RequestBody = None,
        *,
        timeout_s: float | None,
        read_timeout_s: float | None = None,
        max_body_bytes: int | None = None,
    ) -> OpenResponse:
        """Send a request and return its response once status and headers have arrived; the caller closes it.

        Args:
            method: of HTTP.
            url: of http or https; its fragment is not sent.
            headers: override those that every request has.
            body: of the request.
            timeout_s: for everything together, the body included; None: no limit.
            read_timeout_s: from the end of the request to the headers, and for each part of the body.
            max_body_bytes: a longer body is an error; None: no limit.

        Raises:
            NotConnected: nothing was sent.
            ResponseLost: the request may have been sent.
            ValueError: the URL or a header cannot be sent at all.
        """
        target = parse_target(method, url)
        framing = _framing(method, body)
        head = target.request_head + header_lines(_complete_headers(headers), framing)
        now_s = asyncio.get_running_loop().time()
        connection = self._pools.take_idle(target.pool_key, now_s)
        if connection is None:
            connection = await self._pools.connect(target.pool_key, inf if timeout_s is None else timeout_s)
        stream = connection.open_stream(
            None if timeout_s is None else now_s + timeout_s, max_body_bytes, has_body=method != "HEAD"
        )
        sending = None
        try:
            if isinstance(body, ChunkedBody):
                connection.transport.write(head)
                sending = asyncio.create_task(_send(connection, stream, body))
            else:
                connection.transport.write(head + (body or b""))
                stream.is_request_sent = True
            await _wait_for_head(stream, sending, read_timeout_s)
        except BaseException:
            stream.close()
            if sending is not None:
                sending.cancel()
                await asyncio.wait([sending])
            raise
        return OpenResponse(stream, sending, read_timeout_s)

    async def close(self) -> None:
        """Close the idle connections; those in use close with their responses."""
        await self._pools.close()


def _framing(method: str, body: RequestBody) -> str:
    if isinstance(body, ChunkedBody):
        size_bytes = body.size_bytes
        return "Transfer-Encoding: chunked\r\n" if size_bytes is None else f"Content-Length: {size_bytes}\r\n"
    return f"Content-Length: {len(body or b'')}\r\n" if body or method not in _BODILESS_METHODS else ""


def _complete_headers(headers: Mapping[str, str]) -> Mapping[str, str]:
    names = {name.lower() for name in headers}
    return {name: text for name, text in _DEFAULT_HEADERS.items() if name.lower() not in names} | dict(headers)


async def _send(connection: PooledConnection, stream: ResponseStream, body: ChunkedBody) -> None:
    """Send a body as fast as it is taken, until the response ends; its reader gets the error of what produces it."""
    try:
        await _send_chunks(connection, stream, body)
    except Exception as error:  # noqa: BLE001  of any kind
        if not stream.has_ended:
            connection.fail(error)


async def _send_chunks(connection: PooledConnection, stream: ResponseStream, body: ChunkedBody) -> None:
    sent_bytes, size_bytes = 0, body.size_bytes
    stream.is_request_sent = size_bytes == 0
    async for chunk in body.chunks:
        if stream.has_ended:
            return
        sent_bytes += len(chunk)
        if size_bytes is None:
            if chunk:  # an empty one would be the end
                connection.transport.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        elif sent_bytes > size_bytes:
            raise ValueError(f"the body has more than the announced {size_bytes} bytes")
        else:
            stream.is_request_sent = sent_bytes == size_bytes
            connection.transport.write(chunk)
        await connection.drain()
    if size_bytes is None and not stream.has_ended:
        stream.is_request_sent = True
        connection.transport.write(b"0\r\n\r\n")
    elif size_bytes is not None and sent_bytes < size_bytes:
        raise ValueError(f"the body has {sent_bytes} instead of the announced {size_bytes} bytes")


async def _wait_for_head(
    stream: ResponseStream, sending: "asyncio.Task[None] | None", read_timeout_s: float | None
) -> None:
    """Return when the headers are there; the time limit begins when the request has been sent."""
    if sending is not None:
        waiting = asyncio.ensure_future(stream.wait_for_head())
        try:
            await asyncio.wait([waiting, sending], return_when=asyncio.FIRST_COMPLETED)
        finally:
            waiting.cancel()
            await asyncio.wait([waiting])
    await _limit_time(read_timeout_s, stream.wait_for_head())


async def _limit_time(timeout_s: float | None, work: Coroutine[Any, Any, Result]) -> Result:
    """Return the result of a read. Raises ResponseTimeout: it takes longer."""
    try:
        async with asyncio.timeout(timeout_s):
            return await work
    except TimeoutError as error:
        raise ResponseTimeout("no response in time") from error
