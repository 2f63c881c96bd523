"""The control that an application on our servers has over the connection of a request."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of

ConnectionAction = Callable[[Any, Any], Any]


class BreakingApplication:
    """An application that acts on the connection, and then waits until the client disconnects."""

    def __init__(self) -> None:
        self.action: ConnectionAction = lambda connection, send: None
        self.has_acted = asyncio.Event()
        self.is_disconnected = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        connection = scope["extensions"]["waypost.connection"]
        done = self.action(connection, send)
        if done is not None:
            await done
        self.has_acted.set()
        while (await receive())["type"] != "http.disconnect":
            pass
        self.is_disconnected.set()


@pytest.fixture
def application() -> BreakingApplication:
    return BreakingApplication()


@pytest.fixture
async def server(application: BreakingApplication) -> AsyncIterator[tuple[HttpServer, str]]:
    bound = bind_socket("127.0.0.1", 0, option="--port")
    server = HttpServer(application, bound, stop_within_s=10 * HANGS_AFTER_S)
    await server.start()
    yield server, f"http://127.0.0.1:{port_of(bound)}"
    await server.stop()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as http:
        yield http


async def test_reset_connection_is_closed_for_the_client_and_the_application(
    application: BreakingApplication, server: tuple[HttpServer, str], http: aiohttp.ClientSession
) -> None:
    application.action = lambda connection, _: connection.reset()

    with pytest.raises(aiohttp.ClientConnectionError):
        await http.post(server[1], data=b"x")

    await application.is_disconnected.wait()


async def test_connection_that_is_hung_up_delivers_what_was_written(
    application: BreakingApplication, server: tuple[HttpServer, str], http: aiohttp.ClientSession
) -> None:
    async def write_half(connection: Any, send: Any) -> None:
        headers = [(b"content-length", b"8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        connection.hang_up()

    application.action = write_half

    async with http.get(server[1]) as response:
        received = await response.content.readexactly(4)
        with pytest.raises(aiohttp.ClientPayloadError):
            await response.read()

    assert (response.status, received) == (200, b"half")


async def test_server_that_stops_does_not_wait_for_a_withheld_response(
    application: BreakingApplication, server: tuple[HttpServer, str], http: aiohttp.ClientSession
) -> None:
    application.action = lambda connection, _: connection.withhold()
    requesting = asyncio.create_task(http.get(server[1]).__aenter__())
    await application.has_acted.wait()

    async with asyncio.timeout(HANGS_AFTER_S):  # a response that is not withheld is waited for longer
        await server[0].stop()

    await application.is_disconnected.wait()
    with pytest.raises(aiohttp.ClientConnectionError):
        await requesting


async def test_calls_about_a_connection_that_is_closed_meanwhile_do_nothing(
    application: BreakingApplication, server: tuple[HttpServer, str]
) -> None:
    async def call_once_closed(connection: Any, _send: Any) -> None:
        async def is_closed() -> bool:
            return connection.cycle is None

        await poll_until(is_closed)
        connection.withhold()
        connection.hang_up()
        connection.shutdown()

    application.action = call_once_closed
    _, writer = await asyncio.open_connection("127.0.0.1", int(server[1].rpartition(":")[2]))
    writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    await writer.drain()
    writer.close()

    async with asyncio.timeout(HANGS_AFTER_S):
        await application.is_disconnected.wait()
