"""Sockets of our servers: bound before anything else is opened, and quick to respond."""

import asyncio
import contextlib
import gc
import socket
from typing import Any

import pytest
from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.http.servers import HttpServer, PortInUse, bind_socket, port_of


def test_responses_do_not_wait_for_an_acknowledgement_of_their_first_half() -> None:
    with bind_socket("127.0.0.1", 0, option="--port") as bound:
        with socket.create_connection(bound.getsockname()):
            connection, _ = bound.accept()

        with connection:
            assert connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_port_in_use_is_reported_with_the_option_that_sets_it() -> None:
    hint = "in use; stop the program that listens there, or choose another port with --simulator-port"
    with bind_socket("127.0.0.1", 0, option="--port") as bound, pytest.raises(PortInUse, match=hint):
        bind_socket("127.0.0.1", port_of(bound), option="--simulator-port")


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        ("192.0.2.1", "192.0.2.1 is not an address of this machine; choose one of its own with --host"),
        ("no-such-host.invalid", "(looked up.*|there is no host of this name); choose one of its own with --host"),
        ("a..b", "(this is not the name|there is no host|cannot be looked up).*; choose one of its own with --host"),
    ],
)
def test_host_that_is_not_of_this_machine_is_not_called_a_port_in_use(host: str, problem: str) -> None:
    with pytest.raises(PortInUse, match=problem) as refused:
        bind_socket(host, 0, option="--port")

    assert "stop the program" not in str(refused.value)


async def empty_response(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})


@pytest.mark.parametrize("turns", range(6))
async def test_server_that_stops_ends_connections_that_arrive_at_that_moment(turns: int) -> None:
    bound = bind_socket("127.0.0.1", 0, option="--port")
    server = HttpServer(empty_response, bound, stop_within_s=10 * HANGS_AFTER_S)
    await server.start()
    connecting = [asyncio.create_task(asyncio.open_connection(*bound.getsockname())) for _ in range(20)]
    for _ in range(turns):
        await asyncio.sleep(0)

    async with asyncio.timeout(HANGS_AFTER_S):  # less than a stop waits for open requests
        await server.stop()

    for connected in await asyncio.gather(*connecting, return_exceptions=True):
        if isinstance(connected, BaseException):
            assert isinstance(connected, ConnectionError)
            continue
        reader, writer = connected
        async with asyncio.timeout(HANGS_AFTER_S):
            with contextlib.suppress(ConnectionError):
                assert not await reader.read()
        writer.close()
    assert not server._server.server_state.connections  # pyright: ignore[reportPrivateUsage]


def count_requests() -> int:
    return sum(isinstance(each, RequestResponseCycle) for each in gc.get_objects())


async def test_request_that_has_ended_leaves_nothing_to_the_garbage_collector() -> None:
    """Its pauses are longer than a response takes: without cycles of references there is nothing to find."""
    bound = bind_socket("127.0.0.1", 0, option="--port")
    server = HttpServer(empty_response, bound)
    await server.start()
    reader, writer = await asyncio.open_connection(*bound.getsockname())
    gc.collect()
    gc.disable()
    try:
        before = count_requests()
        for _ in range(10):
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            await reader.readuntil(b"\r\n\r\n")
        left = count_requests() - before
    finally:
        gc.enable()
        writer.close()
        await server.stop()

    assert left <= 1  # the connection refers to the last one
