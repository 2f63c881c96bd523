"""A server that is about to stop breaks no connection on which a client may have sent a request."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.http import protocol
from waypost.assembly.http.servers import HttpServer, bind_socket

REQUEST = b"POST / HTTP/1.1\r\nHost: here\r\nContent-Length: 2\r\n\r\nhi"
KEPT, ENDED = b"HTTP/1.1 204 No Content\r\n", b"connection: close\r\n"


class Application:
    """Responds to each request with 204, once it may."""

    def __init__(self) -> None:
        self.may_respond = asyncio.Event()
        self.may_respond.set()
        self.requests = 0

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        self.requests += 1
        while (await receive())["more_body"]:
            pass
        await self.may_respond.wait()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body", "body": b""})


@pytest.fixture
def application() -> Application:
    return Application()


@pytest.fixture
async def server(application: Application) -> HttpServer:
    server = HttpServer(application, bind_socket("127.0.0.1", 0, option="--port"), stop_within_s=HANGS_AFTER_S)
    await server.start()
    return server


class Clients:
    """Connects to a server; closes its connections at the end."""

    def __init__(self, server: HttpServer) -> None:
        self.address = server._socket.getsockname()  # pyright: ignore[reportPrivateUsage]
        self.writers: list[asyncio.StreamWriter] = []

    async def connect(
        self, connected: socket.socket | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if connected is None:
            reader, writer = await asyncio.open_connection(*self.address)
        else:
            reader, writer = await asyncio.open_connection(sock=connected)
        self.writers.append(writer)
        return reader, writer


@pytest.fixture
async def clients(server: HttpServer) -> AsyncIterator[Clients]:
    clients = Clients(server)
    yield clients
    for writer in clients.writers:
        writer.close()


async def read_head(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(HANGS_AFTER_S):
        return await reader.readuntil(b"\r\n\r\n")


async def test_draining_server_ends_each_connection_with_a_response_that_says_so(
    server: HttpServer, clients: Clients, application: Application
) -> None:
    (idle, to_idle), (busy, to_busy) = await clients.connect(), await clients.connect()
    to_idle.write(REQUEST)
    assert ENDED not in await read_head(idle)
    application.may_respond.clear()
    to_busy.write(REQUEST)
    while application.requests < 2:  # noqa: ASYNC110  there is no event
        await asyncio.sleep(0)

    server.begin_drain()
    application.may_respond.set()
    fresh, to_fresh = await clients.connect()
    for writer in (to_idle, to_fresh):
        writer.write(REQUEST)

    for reader in (busy, idle, fresh):
        head = await read_head(reader)
        assert head.startswith(KEPT)
        assert ENDED in head
        async with asyncio.timeout(HANGS_AFTER_S):
            assert not await reader.read()
    await server.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux can drop connects without a reset of others")
async def test_stop_after_a_drain_responds_to_all_that_could_connect(
    server: HttpServer, clients: Clients, application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "NEW_CONNECTION_GRACE_S", HANGS_AFTER_S)  # the machine may be slow, the client is not
    server.begin_drain()
    connected = [await clients.connect() for _ in range(10)]
    waiting = [
        socket.create_connection(clients.address) for _ in range(10)
    ]  # the loop has had no chance to accept them

    stopping = asyncio.create_task(server.stop())
    await asyncio.sleep(0)
    connected += [await clients.connect(each) for each in waiting]
    with pytest.raises(ConnectionRefusedError):
        async with asyncio.timeout(HANGS_AFTER_S):
            await asyncio.open_connection(*clients.address)
    for _, writer in connected:
        writer.write(REQUEST)

    heads = [await read_head(reader) for reader, _ in connected]
    assert all(head.startswith(KEPT) and ENDED in head for head in heads)
    assert application.requests == len(connected)
    await stopping


async def test_stop_responds_to_a_request_whose_headers_are_arriving(server: HttpServer, clients: Clients) -> None:
    reader, writer = await clients.connect()
    writer.write(REQUEST)
    await read_head(reader)
    writer.write(REQUEST[:20])
    await asyncio.sleep(0)

    stopping = asyncio.create_task(server.stop())
    await asyncio.sleep(0.05)
    writer.write(REQUEST[20:])

    assert ENDED in await read_head(reader)
    await stopping
