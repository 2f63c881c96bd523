"""Streamed responses, in this process and over HTTP: the same of both."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.support.closed_port import closed_port
from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.assembly.http.servers import HttpServer
from waypost.assembly.http.sockets import bind_socket, port_of
from waypost.client.responses import ApiUnreachable
from waypost.client.transports import STREAM_CHUNK_BYTES, HttpTransport, InProcessTransport, StreamedResponse, Transport

MANY: Final = 2000
"""Chunks of a large response, 125 MB: far more than a connection buffers."""
CHUNK: Final = bytes(STREAM_CHUNK_BYTES)


@dataclass
class Source:
    """Responds with chunks, and counts those that were sent."""

    chunks: int = MANY
    announced_bytes: int | None = None
    failure: str = ""
    sent: int = 0
    requests: list[str] = field(default_factory=list[str])
    received_bytes: int = 0
    has_ended: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        self.requests.append(scope["method"] + " " + scope["path"])
        while (message := await receive())["type"] == "http.request":
            self.received_bytes += len(message.get("body", b""))
            if not message.get("more_body"):
                break
        announced = len(CHUNK) * self.chunks if self.announced_bytes is None else self.announced_bytes
        head = [(b"Content-Length", b"%d" % announced), (b"X-One", b"two")]
        working = asyncio.ensure_future(self._respond(send, head))
        leaving = asyncio.ensure_future(receive())
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            for task in (working, leaving):
                task.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)
            self.has_ended.set()

    async def _respond(
        self, send: Callable[[MutableMapping[str, Any]], Awaitable[None]], head: list[tuple[bytes, bytes]]
    ) -> None:
        await send({"type": "http.response.start", "status": 206, "headers": head})
        for _ in range(self.chunks):
            await asyncio.sleep(0)  # as if it were read from a disk
            await send({"type": "http.response.body", "body": CHUNK, "more_body": True})
            self.sent += 1
        if self.failure == "raises":
            raise ConnectionResetError("on purpose")
        if self.failure != "leaves":
            await send({"type": "http.response.body", "body": b"", "more_body": False})


OpenTransport = Callable[[Source], Awaitable[Transport]]


@pytest_asyncio.fixture(params=["in process", "over http"])
async def transport_to(request: pytest.FixtureRequest) -> AsyncGenerator[OpenTransport]:
    """Return a function that opens a transport to a source."""
    servers: list[HttpServer] = []

    async def open_transport(source: Source) -> Transport:
        if request.param == "in process":
            return InProcessTransport(source)
        bound = bind_socket("127.0.0.1", 0, option="port")
        server = HttpServer(source, bound, stop_within_s=0.1)
        await server.start()
        servers.append(server)
        return HttpTransport(f"http://127.0.0.1:{port_of(bound)}", timeout_s=5)

    yield open_transport
    for server in servers:
        await server.stop()


async def test_response_has_its_status_its_headers_and_its_whole_body(transport_to: OpenTransport) -> None:
    source = Source(chunks=3)

    response = await (await transport_to(source)).open("GET", "/a?b=c", {"X-Name": "yes"})

    assert (response.status, response.headers["x-one"]) == (206, "two")
    assert response.headers["content-length"] == str(3 * len(CHUNK))
    assert sum([len(chunk) async for chunk in response]) == 3 * len(CHUNK)
    await response.aclose()
    assert source.requests == ["GET /a"]


async def test_source_continues_only_as_its_chunks_are_read(transport_to: OpenTransport) -> None:
    source = Source()
    response = await (await transport_to(source)).open("GET", "/", {})

    first = await anext(aiter(response))
    await _wait_until_idle(source)

    assert 0 < len(first) <= len(CHUNK)
    assert source.sent < MANY // 4
    await response.aclose()


async def test_in_this_process_a_source_is_one_chunk_ahead_at_most() -> None:
    source = Source(chunks=50)
    response = await InProcessTransport(source).open("GET", "/", {})
    ahead: list[int] = []

    received = 0
    async for _ in response:
        received += 1
        for _ in range(20):
            await asyncio.sleep(0)
        ahead.append(source.sent - received)

    assert (received, max(ahead)) == (50, 0)
    await response.aclose()


async def test_source_is_disconnected_when_its_response_is_closed(transport_to: OpenTransport) -> None:
    source = Source()
    response = await (await transport_to(source)).open("GET", "/", {})
    await anext(aiter(response))

    await response.aclose()

    await asyncio.wait_for(source.has_ended.wait(), HANGS_AFTER_S)
    assert source.sent < MANY


async def test_source_is_disconnected_when_its_response_was_never_read(transport_to: OpenTransport) -> None:
    source = Source()

    await (await (await transport_to(source)).open("GET", "/", {})).aclose()

    await asyncio.wait_for(source.has_ended.wait(), HANGS_AFTER_S)
    assert source.sent < MANY


@pytest.mark.parametrize(
    ("failure", "announced_bytes"), [("raises", None), ("leaves", 9_999_999), ("announces too much", 9_999_999)]
)
async def test_response_that_breaks_off_is_an_error(
    transport_to: OpenTransport, failure: str, announced_bytes: int | None
) -> None:
    announced_bytes = announced_bytes or 3 * len(CHUNK)
    source = Source(chunks=2, failure=failure, announced_bytes=announced_bytes)
    response = await (await transport_to(source)).open("GET", "/", {})
    read: list[int] = []

    with pytest.raises(ApiUnreachable, match=r"breaks off|instead of the announced"):
        await _read(response, read)

    assert sum(read) <= 2 * len(CHUNK)
    await response.aclose()


async def test_failure_before_the_response_begins_is_an_error() -> None:
    async def failure(*_: object) -> None:
        raise LookupError("on purpose")

    async def leaves(*_: object) -> None:
        return

    with pytest.raises(LookupError, match="on purpose"):
        await InProcessTransport(failure).open("GET", "/", {})
    with pytest.raises(ApiUnreachable, match="no response to GET /"):
        await InProcessTransport(leaves).open("GET", "/", {})


async def test_closed_port_is_reported_before_the_first_chunk() -> None:
    with closed_port() as port, pytest.raises(ApiUnreachable, match="no response from"):
        await HttpTransport(f"http://127.0.0.1:{port}").open("GET", "/", {})


async def test_head_request_gives_the_headers_and_no_chunk(transport_to: OpenTransport) -> None:
    source = Source(chunks=0, announced_bytes=12_345)

    response = await (await transport_to(source)).open("HEAD", "/", {})

    assert response.headers["content-length"] == "12345"
    assert [chunk async for chunk in response] == []
    await response.aclose()


@pytest.mark.parametrize("in_chunks", [True, False])
async def test_request_body_may_be_sent_in_chunks(transport_to: OpenTransport, in_chunks: bool) -> None:
    source = Source(chunks=0)
    generated = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal generated
        for _ in range(10):
            generated += 1
            yield CHUNK

    reply = await (await transport_to(source))("POST", "/", {}, chunks() if in_chunks else CHUNK * 10)

    assert (reply.status, reply.body) == (206, b"")
    assert source.received_bytes == 10 * len(CHUNK)
    assert generated == (10 if in_chunks else 0)


async def _read(response: StreamedResponse, read: list[int]) -> None:
    async for chunk in response:
        read.append(len(chunk))  # noqa: PERF401  chunks before a failure are kept


async def _wait_until_idle(source: Source) -> None:
    """Return when the source has sent nothing for a while."""
    before = [-1]

    async def is_idle() -> bool:
        await asyncio.sleep(0.05)
        before.append(source.sent)
        return before[-1] == before[-2]

    await poll_until(is_idle)
