"""How responses are framed, and what an application cannot send."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any, Final

import pytest

from tests.support.polling import HANGS_AFTER_S
from waypost.assembly.http.protocol import LimitedProtocol
from waypost.assembly.http.servers import KEEP_ALIVE_S, HttpServer, bind_socket, port_of

Part = tuple[bytes, bool]
"""Of a body, and whether more follow."""

LARGE: Final = b"a" * 100_000


class Responding:
    """An application that sends what a test says."""

    def __init__(self) -> None:
        self.status = 200
        self.headers: list[tuple[bytes, bytes]] = []
        self.parts: list[Part] = [(b"", False)]
        self.bodies: list[bytes] = []

    async def __call__(self, _scope: Any, receive: Any, send: Any) -> None:
        body, more = b"", True
        while more:
            message = await receive()
            body += message["body"]
            more = message["more_body"]
        self.bodies.append(body)
        await send({"type": "http.response.start", "status": self.status, "headers": self.headers})
        for content, has_more in self.parts:
            await send({"type": "http.response.body", "body": content, "more_body": has_more})


class Served:
    """A running server of such an application, and a connection to it."""

    def __init__(self, application: Responding, server: HttpServer, reader: asyncio.StreamReader, writer: Any) -> None:
        self.application = application
        self.server = server
        self.reader = reader
        self.writer = writer

    async def rest(self) -> bytes:
        """Return everything until the server closes the connection."""
        async with asyncio.timeout(HANGS_AFTER_S):
            return await self.reader.read()


@pytest.fixture
async def served() -> AsyncIterator[Served]:
    application, bound = Responding(), bind_socket("127.0.0.1", 0, option="--port")
    server = HttpServer(application, bound)
    await server.start()
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(bound))
    yield Served(application, server, reader, writer)
    writer.close()
    await server.stop()


@pytest.mark.parametrize(
    ("request_line", "headers", "parts", "framing", "body"),
    [
        ("GET / HTTP/1.1", {b"Content-Length": b"4"}, [(b"half", False)], b"content-length: 4", b"half"),
        ("GET / HTTP/1.1", {b"content-length": b"4"}, [(b"ha", True), (b"lf", False)], b"content-length: 4", b"half"),
        ("GET / HTTP/1.1", {b"content-length": b"100000"}, [(LARGE, False)], b"content-length: 100000", LARGE),
        (
            "GET / HTTP/1.1",
            {},
            [(b"ha", True), (b"", True), (b"lf", False)],
            b"chunked",
            b"2\r\nha\r\n2\r\nlf\r\n0\r\n\r\n",
        ),
        ("GET / HTTP/1.1", {b"Transfer-Encoding": b"Chunked"}, [(b"a", False)], b"Chunked", b"1\r\na\r\n0\r\n\r\n"),
        ("HEAD / HTTP/1.1", {b"content-length": b"4"}, [(b"half", False)], b"content-length: 4", b""),
        ("HEAD / HTTP/1.1", {}, [(b"", False)], b"HTTP/1.1 200 OK", b""),
        ("GET / HTTP/1.0", {b"content-length": b"4"}, [(b"half", False)], b"content-length: 4", b"half"),
    ],
)
async def test_response_is_framed_as_its_headers_say(
    served: Served, request_line: str, headers: dict[bytes, bytes], parts: list[Part], framing: bytes, body: bytes
) -> None:
    served.application.headers, served.application.parts = [*headers.items(), (b"connection", b"Close")], parts
    served.writer.write(f"{request_line}\r\nHost: a\r\n\r\n".encode())

    head, _, content = (await served.rest()).partition(b"\r\n\r\n")

    assert framing in head
    assert content == body
    assert head.lower().count(b"connection: close") == 1


async def test_body_that_arrives_in_parts_reaches_the_application_whole(served: Served) -> None:
    served.application.headers = [(b"content-length", b"0")]
    served.writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 8\r\nExpect: 100-continue\r\n\r\n")
    assert await served.reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
    served.writer.write(b"four")
    served.writer.write(b"more")
    await served.reader.readuntil(b"\r\n\r\n")
    served.writer.write(b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nonce")
    await served.reader.readuntil(b"\r\n\r\n")

    assert served.application.bodies == [b"fourmore", b"once"]


@pytest.mark.parametrize("header", [(b"bad name", b"a"), (b"name", b"two\r\nlines"), (b"name", b"a" * 100 + b"\n")])
async def test_header_that_would_be_more_than_one_is_not_sent(served: Served, header: tuple[bytes, bytes]) -> None:
    served.application.headers = [header]
    served.writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")

    assert await served.rest() == b""


@pytest.mark.parametrize("parts", [[(b"five5", False)], [(b"two", True), (b"more", False)], [(b"2", False)]])
async def test_body_of_another_length_than_declared_ends_the_connection(served: Served, parts: list[Part]) -> None:
    served.application.headers, served.application.parts = [(b"content-length", b"4")], parts
    served.writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")

    body = (await served.rest()).partition(b"\r\n\r\n")[2]

    assert len(body) < 4


async def test_connection_that_is_idle_for_longer_than_any_pool_keeps_one_is_closed(served: Served) -> None:
    served.application.headers = [(b"content-length", b"0")]
    served.writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    await served.reader.readuntil(b"\r\n\r\n")
    protocols: list[LimitedProtocol] = list(served.server._server.server_state.connections)  # pyright: ignore[reportPrivateUsage]
    (protocol,) = protocols
    idle_since_s = asyncio.get_running_loop().time()

    protocol.check_deadlines(idle_since_s + KEEP_ALIVE_S - 1)
    served.writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    await served.reader.readuntil(b"\r\n\r\n")
    protocol.check_deadlines(asyncio.get_running_loop().time() + KEEP_ALIVE_S)

    assert await served.rest() == b""
