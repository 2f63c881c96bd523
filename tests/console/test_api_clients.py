"""The in-process API clients of the console: whole responses, however they are chunked."""

import asyncio
from collections.abc import AsyncGenerator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from tests.console.conftest import LOOP, ConsoleClient
from tests.support.polling import HANGS_AFTER_S
from waypost.client.api_client import ApiClient, ApiResponseError, InProcessTransport

pytestmark = pytest.mark.asyncio(loop_scope=LOOP)


async def _respond_in_chunks(request: Request) -> Response:
    async def chunks() -> AsyncGenerator[bytes]:
        for chunk in (b'{"items": ["', b"", b"a", b'", "b"]', b"}"):
            await asyncio.sleep(0)
            yield chunk

    status = request.path_params["status"]
    return StreamingResponse(chunks(), int(status), headers={"Waypost-Reason": "as it says"})


async def _echo(request: Request) -> Response:
    content = await request.body()

    async def chunks() -> AsyncGenerator[bytes]:
        for at in range(0, len(content), 1000):
            yield content[at : at + 1000]

    return StreamingResponse(chunks())


APPLICATION = Starlette(
    routes=[Route("/chunks/{status}", _respond_in_chunks, methods=["GET"]), Route("/echo", _echo, methods=["POST"])]
)


async def test_chunked_response_is_returned_whole() -> None:
    transport = InProcessTransport(APPLICATION)

    async with asyncio.timeout(5):  # meanwhile it waits for a disconnect that never comes
        reply = await transport("GET", "/chunks/200?a=b", {}, None)
        content = await ApiClient(transport, {}).json("GET", "/chunks/200")

    assert (reply.status, reply.body) == (200, b'{"items": ["a", "b"]}')
    assert content == {"items": ["a", "b"]}


async def test_chunked_error_response_has_its_reason() -> None:
    async with asyncio.timeout(HANGS_AFTER_S):
        with pytest.raises(ApiResponseError) as error:
            await ApiClient(InProcessTransport(APPLICATION), {}).json("GET", "/chunks/409")

    assert (error.value.status, error.value.explanation) == (409, "as it says")


async def test_request_body_is_read_whole_before_the_first_chunk_of_the_response() -> None:
    async with asyncio.timeout(HANGS_AFTER_S):
        content = await ApiClient(InProcessTransport(APPLICATION), {}).json("POST", "/echo", {"a": ["😀"] * 1000})

    assert content == {"a": ["😀"] * 1000}


async def test_console_serves_a_snapshot_as_the_control_api_does(console: ConsoleClient) -> None:
    """The largest response of all: a file of the simulator, which the control API sends in chunks."""
    await console.control.json("POST", "/control/snapshots", {"name": "monday"})

    async with console.http.get(f"{console.base_url}/simulator/snapshots/monday/content") as response:
        content = await response.read()
    async with console.http.get(f"{console.running.graph_url}/control/snapshots/monday/content") as direct:
        expected = await direct.read()

    assert (response.status, direct.status) == (200, 200)
    assert len(content) == len(expected) > 1000
