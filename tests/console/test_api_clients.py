"""The doors as the console opens them in its own process: whole answers, however they come."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.console.conftest import LOOP, Desk
from tests.support.waiting import HANGS_AFTER_S
from waypost.client.api_client import ApiClient, ApiResponseError, InProcessTransport

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)


async def _in_pieces(request: Request) -> Response:
    async def pieces() -> AsyncGenerator[bytes]:
        for piece in (b'{"told": ["', b"", b"a", b'", "b"]', b"}"):
            await asyncio.sleep(0)
            yield piece

    asked = request.path_params["asked"]
    return StreamingResponse(pieces(), int(asked), headers={"Waypost-Reason": "as it says"})


async def _echo(request: Request) -> Response:
    content = await request.body()

    async def pieces() -> AsyncGenerator[bytes]:
        for at in range(0, len(content), 1000):
            yield content[at : at + 1000]

    return StreamingResponse(pieces())


APPLICATION = Starlette(
    routes=[Route("/pieces/{asked}", _in_pieces, methods=["GET"]), Route("/echo", _echo, methods=["POST"])]
)


async def test_answer_in_pieces_is_given_whole() -> None:
    over = InProcessTransport(APPLICATION)

    async with asyncio.timeout(5):  # it listens meanwhile whether somebody hangs up, and nobody does
        reply = await over("GET", "/pieces/200?a=b", {}, None)
        told = await ApiClient(over, {}).json("GET", "/pieces/200")

    assert (reply.status, reply.body) == (200, b'{"told": ["a", "b"]}')
    assert told == {"told": ["a", "b"]}


async def test_refusal_in_pieces_says_its_reason() -> None:
    async with asyncio.timeout(HANGS_AFTER_S):
        with pytest.raises(ApiResponseError) as refused:
            await ApiClient(InProcessTransport(APPLICATION), {}).json("GET", "/pieces/409")

    assert (refused.value.status, refused.value.explanation) == (409, "as it says")


async def test_what_is_sent_is_read_before_the_first_piece_and_given_back_whole() -> None:
    async with asyncio.timeout(HANGS_AFTER_S):
        told = await ApiClient(InProcessTransport(APPLICATION), {}).json("POST", "/echo", {"a": ["😀"] * 1000})

    assert told == {"a": ["😀"] * 1000}


async def test_console_gives_a_kept_state_as_the_door_has_it(desk: Desk) -> None:
    """The largest answer of all: a file of the simulator's, which the door sends in pieces."""
    await desk.control.json("POST", "/control/snapshots", {"name": "monday"})

    async with desk.http.get(f"{desk.base_url}/simulator/snapshots/monday/content") as answer:
        content = await answer.read()
    async with desk.http.get(f"{desk.running.graph_url}/control/snapshots/monday/content") as directly:
        expected = await directly.read()

    assert (answer.status, directly.status) == (200, 200)
    assert len(content) == len(expected) > 1000
