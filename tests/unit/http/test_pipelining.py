"""Pipelined requests are served in turn with other connections, and what a connection held is freed when it ends."""

import asyncio
import gc
import socket
from collections import Counter
from collections.abc import AsyncIterator, Generator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final, cast

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from tests.support.loop_time import pass_time
from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.assembly.http import protocol as protocol_module
from waypost.assembly.http.limits import DEFAULT_LIMITS, HttpLimits
from waypost.assembly.http.protocol import BODY_STEP_BYTES, MAX_READ_AHEAD, READ_AHEAD_EVERY_S, LimitedProtocol
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of

GET: Final = b"GET /%d HTTP/1.1\r\nHost: a\r\n\r\n"
BURST: Final = 600


class Paths:
    """An application that notes the path of each request; some wait until they may continue.

    Attributes:
        waiting: requests of `/wait` so far.
    """

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.waiting = 0
        self.may_continue = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        self.seen.append(scope["path"])
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message["body"]
            more = message["more_body"]
        if scope["path"] == "/wait":
            self.waiting += 1
            await self.may_continue.wait()
        answer = b"%d" % len(body) if scope["path"] != "/large" else b"a" * 4_000_000
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(answer))]}
        )
        await send({"type": "http.response.body", "body": answer})


class Server:
    """A running server.

    Attributes:
        protocols: of its open connections.
    """

    def __init__(self, application: Paths, limits: HttpLimits = DEFAULT_LIMITS) -> None:
        self.application = application
        bound = bind_socket("127.0.0.1", 0, option="--port")
        self.port = port_of(bound)
        self.http = HttpServer(application, bound, stop_within_s=0.2, limits=limits)

    @property
    def protocols(self) -> list[LimitedProtocol]:
        return list(self.http._server.server_state.connections)  # pyright: ignore[reportPrivateUsage]

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self.port)


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    application = Paths()
    server = Server(application)
    await server.http.start()
    yield server
    application.may_continue.set()
    await server.http.stop()


async def response(reader: asyncio.StreamReader) -> bytes:
    """Return the body of one response, and let the time pass after which the next pipelined request is read."""
    async with asyncio.timeout(HANGS_AFTER_S):
        head = await reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 200 ")
        pass_time(READ_AHEAD_EVERY_S)
        return await reader.readexactly(int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0]))


def live_objects() -> Counter[str]:
    """Return how many connections, requests and scopes there are."""
    counted = Counter(
        type(each).__name__ for each in gc.get_objects() if isinstance(each, (RequestResponseCycle, LimitedProtocol))
    )
    dicts = [cast("dict[Any, Any]", each) for each in gc.get_objects() if type(each) is dict]
    counted["scope"] = sum(each.get("type") == "http" for each in dicts)
    return counted


@contextmanager
def collector_off() -> Generator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


async def test_few_pipelined_requests_are_read_ahead(server: Server) -> None:
    reader, writer = await server.connect()
    writer.write(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n" + b"".join(GET % nth for nth in range(BURST)))

    async def waiting() -> int:
        return server.application.waiting

    await poll_until(waiting)
    (protocol,) = server.protocols

    assert len(protocol.pipeline) <= MAX_READ_AHEAD
    server.application.may_continue.set()
    for _ in range(BURST + 1):
        assert await response(reader) == b"0"
    assert server.application.seen == ["/wait", *(f"/{nth}" for nth in range(BURST))]
    writer.close()


async def test_few_requests_behind_a_body_are_read_ahead(server: Server) -> None:
    body = b"\r\n\r\n" * 10_000
    _, writer = await server.connect()
    head = b"POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body)
    writer.write(head + body + b"".join(GET % nth for nth in range(BURST)))

    async def waiting() -> int:
        return server.application.waiting

    await poll_until(waiting)
    (protocol,) = server.protocols

    assert len(protocol.pipeline) <= MAX_READ_AHEAD + BODY_STEP_BYTES // len(GET)
    writer.close()


async def test_pipelined_requests_are_served_in_turn_with_those_of_another_connection(server: Server) -> None:
    many_reader, many = await server.connect()
    one_reader, one = await server.connect()
    many.write(b"".join(GET % nth for nth in range(BURST)))
    await response(many_reader)
    one.write(b"GET /one HTTP/1.1\r\nHost: a\r\n\r\n")

    await response(one_reader)

    assert server.application.seen.index("/one") < BURST // 2
    for _ in range(BURST - 1):
        await response(many_reader)
    many.close()
    one.close()


async def test_bodies_of_pipelined_requests_arrive_whole_whatever_they_contain(server: Server) -> None:
    bodies = [b"GET / HTTP/1.1\r\n\r\n" * 3_000, b"", b"\r\n\r\n" * 20_000, b"a"]
    reader, writer = await server.connect()

    writer.write(b"".join(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n%b" % (len(b), b) for b in bodies))

    assert [int(await response(reader)) for _ in bodies] == [len(body) for body in bodies]
    writer.close()


async def test_what_all_connections_have_pipelined_is_limited_and_the_rest_is_not_kept(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol_module, "MAX_UNPARSED_BYTES", 30_000)
    first_reader, first = await server.connect()
    first.write(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\n" + b"".join(GET % nth for nth in range(BURST)))

    async def waiting() -> int:
        return server.application.waiting

    await poll_until(waiting)
    second_reader, second = await server.connect()
    second.write(b"".join(GET % nth for nth in range(BURST)))

    assert (await asyncio.wait_for(second_reader.read(), HANGS_AFTER_S)).count(b"HTTP/1.1 200 ") <= MAX_READ_AHEAD + 2
    assert 0 < server.http.connections.unparsed_bytes <= 30_000
    server.application.may_continue.set()
    for _ in range(BURST + 1):
        await response(first_reader)
    assert server.http.connections.unparsed_bytes == 0
    first.close()
    second.close()


async def test_closed_connections_and_their_requests_are_freed_without_the_collector(server: Server) -> None:
    with collector_off():
        before = live_objects()
        for _ in range(5):
            reader, writer = await server.connect()
            writer.write(b"".join(GET % nth for nth in range(BURST)))
            await reader.readexactly(200)
            writer.transport.abort()
        reader, writer = await server.connect()  # one that ends in order
        writer.write(GET % 1)
        await response(reader)
        writer.close()

        async def left() -> Counter[str]:
            return live_objects() - before

        assert not await poll_until(left, lambda objects: not objects)


async def test_idle_connection_keeps_nothing_of_its_last_request(server: Server) -> None:
    reader, writer = await server.connect()
    with collector_off():
        before = live_objects()["scope"]
        writer.write(b"GET / HTTP/1.1\r\nHost: a\r\nX-Large: " + b"a" * 60_000 + b"\r\n\r\n")
        await response(reader)

        async def scopes() -> int:
            return live_objects()["scope"] - before

        assert await poll_until(scopes, lambda count: count == 0) == 0
    writer.write(GET % 1)
    await response(reader)
    writer.close()


async def test_connection_whose_response_nobody_reads_ends() -> None:
    application = Paths()
    server = Server(application, replace(DEFAULT_LIMITS, header_timeout_s=0.4, body_timeout_s=0.4, min_body_rate=1_000))
    await server.http.start()
    with socket.create_connection(("127.0.0.1", server.port)) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.sendall(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")

        async def open_count() -> int:
            return server.http.connections.open_count if application.seen else -1

        assert await poll_until(open_count, lambda count: count == 0) == 0
    await server.http.stop()


async def test_response_that_is_read_slowly_but_steadily_arrives_whole() -> None:
    application = Paths()
    server = Server(application, replace(DEFAULT_LIMITS, header_timeout_s=1, body_timeout_s=1, min_body_rate=1_000))
    await server.http.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", server.port, limit=16_384)
    writer.write(b"GET /large HTTP/1.1\r\nHost: a\r\n\r\n")
    await reader.readuntil(b"\r\n\r\n")
    size = 0
    while size < 4_000_000:
        size += len(await reader.readexactly(40_000))
        pass_time(0.025)
        await asyncio.sleep(0)

    assert size == 4_000_000
    writer.close()
    await server.http.stop()
