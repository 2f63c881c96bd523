"""Limits of our servers before an application sees a request: headers, time and connections."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from tests.support.loop_time import pass_time
from waypost.api.access_log import TrustedProxies
from waypost.assembly.http.limits import DEFAULT_LIMITS, HttpLimits, graph_error_body
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of

Serve = Callable[..., Awaitable[HttpServer]]
OK = b"HTTP/1.1 200 "
WITHIN_S = 20
ports: dict[HttpServer, int] = {}


class Application:
    """Reads the whole body, and responds with its length; some paths do something else."""

    def __init__(self) -> None:
        self.paths: list[str] = []
        self.disconnected = asyncio.Event()
        self.may_continue = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        self.paths.append(path)
        match path:
            case "/defect":
                raise ValueError("a defect")
            case "/broken-pipe":
                raise BrokenPipeError
            case "/silent":
                return
            case "/early":
                await respond(send, b"early")
                return
            case "/stream":
                await send({"type": "http.response.start", "status": 200, "headers": []})
                while not self.may_continue.is_set():
                    await send({"type": "http.response.body", "body": b".", "more_body": True})
                    await asyncio.sleep(0.05)
                await send({"type": "http.response.body", "body": b"end"})
                return
            case "/wait":
                await self.may_continue.wait()
            case _:
                pass
        size, more = 0, True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self.disconnected.set()
                return
            size += len(message["body"])
            more = message["more_body"]
        await respond(send, b"%d" % size)


async def respond(send: Any, body: bytes) -> None:
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
async def serve(application: Application) -> AsyncIterator[Serve]:
    servers: list[HttpServer] = []

    async def serve(limits: HttpLimits = DEFAULT_LIMITS, **also: Any) -> HttpServer:
        bound = bind_socket("127.0.0.1", 0, option="--port")
        server = HttpServer(application, bound, stop_within_s=0.2, limits=limits, **also)
        ports[server] = port_of(bound)
        await server.start()
        servers.append(server)
        return server

    yield serve
    application.may_continue.set()
    for server in servers:
        await server.stop()


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        with suppress(ConnectionError):
            self.writer.write(data)
            await self.writer.drain()

    async def rest(self) -> bytes:
        """Return everything until the server closes."""
        async with asyncio.timeout(WITHIN_S):
            return await self.reader.read()

    async def response(self) -> bytes:
        """Return the status line, headers and body of one response with a length."""
        async with asyncio.timeout(WITHIN_S):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            return head + await self.reader.readexactly(length)

    def close(self) -> None:
        self.writer.close()


async def connect(server: HttpServer, source: str = "127.0.0.1") -> Client:
    reader, writer = await asyncio.open_connection("127.0.0.1", ports[server], local_addr=(source, 0))
    return Client(reader, writer)


def read_json(response: bytes) -> tuple[int, Any]:
    """Return the status and JSON body of a response of `application/json`."""
    head, _, body = response.partition(b"\r\n\r\n")
    assert b"content-type: application/json" in head.lower(), response
    return int(head[9:12]), json.loads(body)


GET = b"GET / HTTP/1.1\r\nHost: a\r\n"


# fmt: off
BAD_REQUESTS = [
    # what is sent, the status, and what the error names
    (GET + b"X: " + b"a" * 70_000 + b"\r\n\r\n",                            431, "65536 bytes"),
    (GET + b"".join(b"X-%d: a\r\n" % n for n in range(120)) + b"\r\n",      431, "100 headers"),
    (GET + b"X: " + b"a" * 2_000_000,                                       431, "65536 bytes"),
    (GET + (b"a" * 1000) * 100,                                             431, "65536 bytes"),
    (b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\nHost: a\r\n\r\n",             414, "8192 bytes"),
    (b"GET /" + b"a" * 900_000,                                             414, "8192 bytes"),
    (b"\r\n" * 40_000,                                                      431, "65536 bytes"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: " + b"a" * 200_000,
                                                                            431, "65536 bytes"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5;" + b"a" * 200_000,
                                                                            431, "65536 bytes"),
    (b"NONSENSE\r\n\r\n",                                                   400, "HTTP/1.1"),
    (b"GET / HTTP/1.1\r\n\r\n",                                             400, "Host"),
    (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",                       400, "Host"),
    (b"GET / HTTP/1.0\r\nHost: a\r\nhost: b\r\n\r\n",                       400, "Host"),
    (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",                                  400, "HTTP/1.1"),
    (b"GET / HTTP/0.9\r\nHost: a\r\n\r\n",                                  400, "HTTP/1.1"),
    (b"GET /\r\nHost: a\r\n\r\n",                                           400, "HTTP/1.1"),
    (b"GET /\r\n\r\n",                                                      400, "HTTP/1.1"),
    (b"CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",                            400, "HTTP/1.1"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",            400, "HTTP/1.1"),
    (b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400, "HTTP/1.1"),
    (b"GET /defect HTTP/1.1\r\nHost: a\r\n\r\n",                            500, "Internal server error"),
    (b"GET /broken-pipe HTTP/1.1\r\nHost: a\r\n\r\n",                       500, "Internal server error"),
    (b"GET /silent HTTP/1.1\r\nHost: a\r\n\r\n",                            500, "Internal server error"),
]
# fmt: on


async def test_request_of_http_1_0_may_have_no_host(serve: Serve) -> None:
    client = await connect(await serve())

    await client.send(b"GET / HTTP/1.0\r\n\r\n")

    assert (await client.rest()).startswith(OK)
    client.close()


@pytest.mark.parametrize(("request_", "status", "named"), BAD_REQUESTS)
async def test_error_of_the_server_itself_is_json_and_closes_the_connection(
    serve: Serve, request_: bytes, status: int, named: str
) -> None:
    client = await connect(await serve())

    sending = asyncio.create_task(client.send(request_))
    response = await client.rest()

    received = read_json(response)
    assert received == (status, {"status": "error", "message": received[1]["message"]})
    assert named in received[1]["message"]
    assert b"connection: close" in response.lower()
    await sending
    client.close()


async def test_simulators_server_responds_in_the_format_of_the_graph_api(serve: Serve) -> None:
    client = await connect(await serve(error_body=graph_error_body))

    await client.send(b"NONSENSE\r\n\r\n")

    status, body = read_json(await client.rest())
    assert (status, body["error"]["code"], body["error"]["type"]) == (400, 100, "OAuthException")
    client.close()


async def test_headers_just_below_the_limits_are_served(serve: Serve, application: Application) -> None:
    client = await connect(await serve())
    path = b"/" + b"p" * 8_000
    headers = b"".join(b"X-%d: %s\r\n" % (n, b"a" * 600) for n in range(98))

    await client.send(b"GET " + path + b" HTTP/1.1\r\nHost: a\r\n" + headers + b"\r\n")

    assert (await client.response()).startswith(OK)
    assert application.paths == [path.decode()]
    client.close()


async def test_large_bodies_and_pipelined_requests_are_not_headers(serve: Serve) -> None:
    client = await connect(await serve())
    body = b"b" * 3_000_000
    post = b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % len(body) + body

    sending = asyncio.create_task(client.send(post + GET + b"\r\n" + post))

    responses = [await client.response() for _ in range(3)]
    assert [response.rpartition(b"\r\n")[2] for response in responses] == [b"3000000", b"0", b"3000000"]
    await sending
    client.close()


async def test_bad_request_behind_another_one_does_not_spoil_its_response(
    serve: Serve, application: Application
) -> None:
    client = await connect(await serve())
    await client.send(b"GET /wait HTTP/1.1\r\nHost: a\r\n\r\nNONSENSE\r\n\r\n")
    application.may_continue.set()

    response = await client.rest()

    assert response.startswith(OK)
    assert response.count(b"HTTP/1.1") == 1
    client.close()


async def test_response_before_the_body_is_read_reaches_a_client_that_keeps_sending(serve: Serve) -> None:
    client = await connect(await serve())
    await client.send(b"POST /early HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\n")

    sending = asyncio.create_task(client.send(b"b" * 1_000_000 + GET + b"\r\n"))

    assert (await client.response()).endswith(b"early")
    assert (await client.response()).endswith(b"0")
    await sending
    client.close()


async def test_response_before_the_body_is_read_reaches_a_client_that_closes_the_connection(serve: Serve) -> None:
    client = await connect(await serve())
    head = b"POST /early HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 3000000\r\n\r\n"

    sending = asyncio.create_task(client.send(head + b"b" * 3_000_000))
    await sending

    assert (await client.rest()).endswith(b"early")
    client.close()


async def test_incomplete_header_gets_408_in_time_and_a_silent_connection_is_closed(serve: Serve) -> None:
    server = await serve(replace(DEFAULT_LIMITS, header_timeout_s=0.4))
    incomplete, silent, blank, later = [await connect(server) for _ in range(4)]
    await incomplete.send(GET)
    await blank.send(b"\r\n")
    await later.send(GET + b"\r\n")
    assert (await later.response()).startswith(OK)
    await later.send(b"G")

    responses = [await client.rest() for client in (incomplete, blank, later)]

    assert [read_json(response)[0] for response in responses] == [408] * 3
    assert "0.4 seconds" in read_json(responses[0])[1]["message"]
    assert await silent.rest() == b""
    for client in (incomplete, silent, blank, later):
        client.close()


async def test_header_that_is_sent_slowly_does_not_extend_its_time(serve: Serve) -> None:
    client = await connect(await serve(replace(DEFAULT_LIMITS, header_timeout_s=0.4)))

    async def send_slowly() -> None:
        while True:
            await client.send(b"X-A: b\r\n")
            await asyncio.sleep(0.02)

    await client.send(GET)
    sending = asyncio.create_task(send_slowly())
    response = await client.rest()

    assert read_json(response)[0] == 408
    sending.cancel()
    client.close()


async def test_body_below_the_lowest_rate_gets_408_and_its_application_is_disconnected(
    serve: Serve, application: Application
) -> None:
    limits = replace(DEFAULT_LIMITS, header_timeout_s=0.4, body_timeout_s=0.4, min_body_rate=1000)
    client = await connect(await serve(limits))

    await client.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nb")

    assert read_json(await client.rest())[0] == 408
    async with asyncio.timeout(WITHIN_S):
        await application.disconnected.wait()
    client.close()


async def test_slow_body_above_the_lowest_rate_a_slow_response_and_a_stream_are_served(
    serve: Serve, application: Application
) -> None:
    limits = replace(DEFAULT_LIMITS, header_timeout_s=0.3, body_timeout_s=0.3, min_body_rate=10)
    server = await serve(limits)
    slow, waiting, stream, idle = [await connect(server) for _ in range(4)]
    await idle.send(GET + b"\r\n")
    await idle.response()
    await waiting.send(b"POST /wait HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc")
    await stream.send(b"GET /stream HTTP/1.1\r\nHost: a\r\n\r\n")
    await slow.send(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 40\r\n\r\n")

    for _ in range(40):
        await slow.send(b"b")
        pass_time(0.03)
        for _ in range(5):  # the server reads, checks deadlines, and sends a part of the stream
            await asyncio.sleep(0)

    assert (await slow.response()).endswith(b"40")
    application.may_continue.set()
    assert (await waiting.response()).endswith(b"3")
    await idle.send(GET + b"\r\n")
    assert (await idle.response()).endswith(b"0")
    async with asyncio.timeout(WITHIN_S):
        assert (await stream.reader.readuntil(b"end\r\n0\r\n\r\n")).count(b"\r\n.\r\n") > 10
    for client in (slow, waiting, idle, stream):
        client.close()


async def test_connections_of_one_address_are_limited_apart_from_those_of_others(serve: Serve) -> None:
    server = await serve(replace(DEFAULT_LIMITS, max_connections_per_address=3))
    held = [await connect(server, "127.0.0.2") for _ in range(3)]
    for client in held:
        await client.send(GET)

    rejected, other = await connect(server, "127.0.0.2"), await connect(server, "127.0.0.3")
    status, body = read_json(await rejected.rest())
    await other.send(GET + b"\r\n")

    assert (status, "3 connections" in body["message"]) == (429, True)
    assert (await other.response()).startswith(OK)
    await held[0].send(b"\r\n")
    assert (await held[0].response()).startswith(OK)
    for client in (*held, rejected, other):
        client.close()


async def test_idle_connection_makes_room_for_a_new_one(serve: Serve) -> None:
    server = await serve(replace(DEFAULT_LIMITS, max_connections=2))
    idle, busy = await connect(server), await connect(server)
    await idle.send(GET + b"\r\n")
    await idle.response()
    await busy.send(GET)

    new = await connect(server)
    await new.send(GET)

    assert await idle.rest() == b""
    full = await connect(server)
    assert read_json(await full.rest())[0] == 503
    for client in (new, busy):
        await client.send(b"\r\n")
        assert (await client.response()).startswith(OK)
    for client in (idle, busy, new, full):
        client.close()


async def test_connections_of_a_trusted_proxy_are_not_those_of_one_client(serve: Serve) -> None:
    limits = replace(DEFAULT_LIMITS, max_connections_per_address=1, proxies=TrustedProxies(("127.0.0.2/32",)))
    server = await serve(limits)

    clients = [await connect(server, "127.0.0.2") for _ in range(5)]

    for client in clients:
        await client.send(GET + b"\r\n")
        assert (await client.response()).startswith(OK)
        client.close()


async def test_reserved_descriptors_are_not_for_connections(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    def four_descriptors(_resource: int) -> tuple[int, int]:
        return 4, 4

    monkeypatch.setattr("resource.getrlimit", four_descriptors)  # the system's limit, not ours
    server = await serve(replace(DEFAULT_LIMITS, reserved_descriptors=2))

    client = await connect(server)

    assert read_json(await client.rest())[0] == 503
    client.close()
