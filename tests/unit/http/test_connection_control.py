"""What our servers let an application do to the connection that a request came on."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import aiohttp
import pytest

from tests.support.waiting import HANGS_AFTER_S
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of

Act = Callable[[Any, Any], Any]


class Breaking:
    """An application that does one thing to the line and then waits until the client is gone."""

    def __init__(self) -> None:
        self.act: Act = lambda line, send: None
        self.asked = asyncio.Event()
        self.was_gone = asyncio.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        line = scope["extensions"]["waypost.connection"]
        done = self.act(line, send)
        if done is not None:
            await done
        self.asked.set()
        while (await receive())["type"] != "http.disconnect":
            pass
        self.was_gone.set()


@pytest.fixture
def breaking() -> Breaking:
    return Breaking()


@pytest.fixture
async def server(breaking: Breaking) -> AsyncIterator[tuple[HttpServer, str]]:
    bound = bind_socket("127.0.0.1", 0, option="--port")
    server = HttpServer(breaking, bound, stop_within_s=10 * HANGS_AFTER_S)
    await server.start()
    yield server, f"http://127.0.0.1:{port_of(bound)}"
    await server.stop()


@pytest.fixture
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as http:
        yield http


async def test_reset_line_is_one_to_the_client_and_to_the_application(
    breaking: Breaking, server: tuple[HttpServer, str], http: aiohttp.ClientSession
) -> None:
    breaking.act = lambda line, _: line.reset()

    with pytest.raises(aiohttp.ClientConnectionError):
        await http.post(server[1], data=b"x")

    await breaking.was_gone.wait()


async def test_line_that_is_hung_up_brings_what_was_written(
    breaking: Breaking, server: tuple[HttpServer, str], http: aiohttp.ClientSession
) -> None:
    async def half(line: Any, send: Any) -> None:
        headers = [(b"content-length", b"8")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"half", "more_body": True})
        line.hang_up()

    breaking.act = half

    async with http.get(server[1]) as answer:
        came = await answer.content.readexactly(4)
        with pytest.raises(aiohttp.ClientPayloadError):
            await answer.read()

    assert (answer.status, came) == (200, b"half")


async def test_server_that_stops_does_not_wait_for_an_answer_that_is_withheld(
    breaking: Breaking, server: tuple[HttpServer, str], http: aiohttp.ClientSession
) -> None:
    breaking.act = lambda line, _: line.withhold()
    asking = asyncio.create_task(http.get(server[1]).__aenter__())
    await breaking.asked.wait()

    async with asyncio.timeout(HANGS_AFTER_S):  # an answer that is not withheld is waited for longer
        await server[0].stop()

    await breaking.was_gone.wait()
    with pytest.raises(aiohttp.ClientConnectionError):
        await asking
