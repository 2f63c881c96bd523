"""Requests that nobody pays for get a share of the loop's time: their responses wait, and those of others do not."""

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from tests.support.loop_time import pass_time
from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.api.access_log import TrustedProxies
from waypost.assembly.http.limits import Connections, HttpLimits
from waypost.assembly.http.pacing import (
    FREE_S,
    MAX_DELAY_S,
    MAX_NETWORKS,
    NETWORK_SHARE,
    TOTAL_SHARE,
    MeasuredSteps,
    Pacing,
    Turns,
)
from waypost.assembly.http.servers import HttpServer, bind_socket, port_of
from waypost.base.http.connection_scope import mark_authenticated, mark_rejected

REQUEST: Final = b"GET %s HTTP/1.1\r\nHost: a\r\n\r\n"
LOOPBACK: Final = {"client": ("127.0.0.1", 4711), "headers": ()}


class Time:
    """Seconds that a test sets."""

    now_s = 100.0


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def pacing(time: Time) -> Pacing:
    return Pacing(lambda: time.now_s)


def test_little_work_waits_for_nothing(pacing: Pacing) -> None:
    assert pacing.charge("a", FREE_S * NETWORK_SHARE / 2) <= 0


def test_network_waits_until_its_share_of_the_time_pays_for_its_work(pacing: Pacing, time: Time) -> None:
    delay_s = pacing.charge("a", FREE_S * NETWORK_SHARE + 0.1)
    time.now_s += delay_s

    assert delay_s == pytest.approx(0.1 / NETWORK_SHARE)
    assert pacing.charge("a", 0.1) == pytest.approx(0.1 / NETWORK_SHARE)
    assert pacing.charge("a", 0.1) == pytest.approx(0.2 / NETWORK_SHARE)


def test_one_network_does_not_wait_for_another_until_both_use_the_share_of_all(pacing: Pacing) -> None:
    assert pacing.charge("a", FREE_S * TOTAL_SHARE / 2) > 0

    assert pacing.charge("b", 0.001) <= 0
    for nth in range(10):
        pacing.charge(str(nth), MAX_DELAY_S * NETWORK_SHARE)
    assert pacing.charge("c", 0.001 * TOTAL_SHARE) == pytest.approx(MAX_DELAY_S)


def test_no_response_waits_for_longer_than_the_longest_delay(pacing: Pacing, time: Time) -> None:
    assert pacing.charge("a", 1_000) == pytest.approx(MAX_DELAY_S)
    time.now_s += MAX_DELAY_S + FREE_S
    assert pacing.charge("a", 0) <= 0


def test_number_of_networks_is_limited(pacing: Pacing, time: Time) -> None:
    for nth in range(MAX_NETWORKS + 10):
        pacing.charge(str(nth), 1)
    time.now_s += MAX_DELAY_S + FREE_S

    assert len(pacing._paid_at_s) <= MAX_NETWORKS  # pyright: ignore[reportPrivateUsage]
    assert pacing.charge("0", 0) <= 0


async def test_steps_of_a_measured_awaitable_return_raise_and_are_cancelled_like_its_own() -> None:
    spent: list[float] = []
    seen: list[str] = []

    async def work() -> None:
        await asyncio.sleep(0)
        try:
            await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            seen.append("cancelled")
        await asyncio.sleep(0)
        raise ValueError("from within")

    async def measured() -> None:
        await MeasuredSteps(work(), spent.append)

    task = asyncio.create_task(measured())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(ValueError, match="from within"):
        await task

    assert seen == ["cancelled"]
    assert len(spent) == 4  # up to each wait, and to the end
    assert all(seconds > 0 for seconds in spent)


async def test_one_request_begins_in_a_turn_and_networks_take_turns() -> None:
    turns, begun = Turns(), list[str]()

    async def begin(network: str, name: str) -> None:
        await turns.take(network)
        begun.append(name)

    first = [asyncio.create_task(begin("a", f"a{nth}")) for nth in range(4)]
    await asyncio.sleep(0)
    second = asyncio.create_task(begin("b", "b"))
    first[2].cancel()
    await asyncio.gather(*first, second, return_exceptions=True)
    await begin("a", "last")

    assert begun == ["a0", "a1", "b", "a3", "last"]


class Body:
    """What an application has of a request."""

    def __init__(self, content: bytes) -> None:
        self.content = content


class Application:
    """An application: `/paid` has a credential, `/rejected` a wrong request too, `/parts` a response in parts."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.bodies: weakref.WeakSet[Body] = weakref.WeakSet()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"]
        self.seen.append(path)
        body = Body((await receive())["body"])
        self.bodies.add(body)
        if path in ("/paid", "/rejected"):
            mark_authenticated(scope)
        if path == "/rejected":
            mark_rejected(scope)
        content = path.encode()
        await send(
            {"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(content))]}
        )
        if path == "/parts":
            await send({"type": "http.response.body", "body": content[:1], "more_body": True})
            content = content[1:]
        await send({"type": "http.response.body", "body": content})


class Listener:
    """A running server whose loopback clients have spent all that they may."""

    def __init__(self, limits: HttpLimits) -> None:
        self.application = Application()
        bound = bind_socket("127.0.0.1", 0, option="--port")
        self.port = port_of(bound)
        self.server = HttpServer(self.application, bound, limits=limits)

    def spend(self) -> None:
        self.server.connections.charge(dict(LOOPBACK), 1_000)

    async def request(self, path: bytes, *more: bytes) -> "Client":
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"".join(REQUEST % each for each in (path, *more)))
        return Client(reader, writer)


class Client:
    """A connection with requests, and a task that awaits the first response."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.response = asyncio.create_task(self.read())

    async def read(self) -> bytes:
        """Return the next response's body."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        return await self.reader.readexactly(length)


@pytest.fixture
async def listener() -> AsyncIterator[Listener]:
    listener = Listener(HttpLimits())
    await listener.server.start()
    listener.spend()
    yield listener
    await listener.server.stop()


async def held(listener: Listener, number: int = 1) -> None:
    """Wait until so many responses wait."""

    async def count() -> int:
        return listener.server.connections.paced_responses

    await poll_until(count, lambda value: value >= number)


@pytest.mark.parametrize("path", [b"/free", b"/rejected", b"/parts"])
async def test_response_that_nobody_pays_for_waits_and_a_later_one_with_a_credential_does_not(
    listener: Listener, path: bytes
) -> None:
    waiting = await listener.request(path)
    await held(listener)

    for _ in range(3):
        paid = await listener.request(b"/paid")
        assert await asyncio.wait_for(paid.response, HANGS_AFTER_S) == b"/paid"
        paid.writer.close()

    assert not waiting.response.done()
    pass_time(MAX_DELAY_S)
    assert await asyncio.wait_for(waiting.response, HANGS_AFTER_S) == path
    waiting.writer.close()


async def test_connection_is_paced_again_after_a_request_without_a_credential(listener: Listener) -> None:
    client = await listener.request(b"/paid")
    assert await client.response == b"/paid"
    client.writer.write(REQUEST % b"/free")
    assert await client.read() == b"/free"
    client.writer.write(REQUEST % b"/rejected")
    last = asyncio.create_task(client.read())
    await held(listener)

    assert not last.done()
    pass_time(MAX_DELAY_S)
    assert await asyncio.wait_for(last, HANGS_AFTER_S) == b"/rejected"
    client.writer.close()


async def test_pipelined_requests_behind_one_that_waits_are_not_run(listener: Listener) -> None:
    client = await listener.request(b"/1", b"/2", b"/3")
    await held(listener)

    assert listener.application.seen == ["/1"]
    client.writer.close()


async def test_nothing_of_a_request_waits_with_its_response(listener: Listener) -> None:
    gc.disable()
    try:
        client = await listener.request(b"/free")
        await held(listener)
        assert not listener.application.bodies
    finally:
        gc.enable()
    client.writer.close()


async def test_request_of_a_client_that_leaves_does_not_wait(listener: Listener) -> None:
    client = await listener.request(b"/free")
    await held(listener)

    client.response.cancel()
    client.writer.transport.abort()

    async def tasks() -> int:
        return len(listener.server._server.server_state.tasks)  # pyright: ignore[reportPrivateUsage]

    await poll_until(tasks, lambda number: number == 0)


async def test_stop_sends_what_waits(listener: Listener) -> None:
    client = await listener.request(b"/free")
    await held(listener)

    await listener.server.stop()

    assert await client.response == b"/free"
    client.writer.close()


async def test_error_of_the_server_itself_waits_too(listener: Listener) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
    writer.write(b"GET / HTTP/2.0\r\nHost: a\r\n\r\n")
    rejected = asyncio.create_task(reader.readline())

    async def open_count() -> int:
        return listener.server.connections.paced_responses

    await poll_until(open_count, lambda count: count == 1)
    paid = await listener.request(b"/paid")
    assert await paid.response == b"/paid"
    assert not rejected.done()
    pass_time(MAX_DELAY_S)
    assert (await asyncio.wait_for(rejected, HANGS_AFTER_S)).startswith(b"HTTP/1.1 400 ")
    writer.close()
    paid.writer.close()


def test_clients_behind_a_trusted_proxy_are_paced_by_their_own_networks() -> None:
    connections = Connections(HttpLimits(proxies=TrustedProxies(["127.0.0.0/8"])))

    def charge(address: bytes, spent_s: float) -> float:
        return connections.charge({"client": ("127.0.0.1", 1), "headers": [(b"x-forwarded-for", address)]}, spent_s)

    assert charge(b"203.0.113.7", MAX_DELAY_S * NETWORK_SHARE) > FREE_S
    assert charge(b"203.0.113.200", 0.0) > FREE_S
    assert charge(b"198.51.100.7", 0.0) <= charge(b"203.0.113.7", 0.0) - FREE_S
