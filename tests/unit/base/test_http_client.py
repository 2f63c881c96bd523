"""The HTTP client of all calls but small POSTs: bodies that are sent and read in chunks, and connections kept."""

import asyncio
import io
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress

import pytest

from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.base.http.connection_pools import ConnectionPools
from waypost.base.http.connections import ResponseLost, ResponseTimeout, ResponseTooLarge
from waypost.base.http.http_client import HttpClient
from waypost.base.http.request_bodies import ChunkedBody, FormPart, file_body, form_body
from waypost.base.http.response_stream import READ_AHEAD_BYTES

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
Respond = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class RawServer:
    """A server that records the heads and bodies of requests, and responds as a test says."""

    def __init__(self) -> None:
        self.heads: list[str] = []
        self.bodies: list[bytes] = []
        self.connections = 0
        self.respond: Respond = respond_with(OK)
        self.reads_bodies = True
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/a"

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self._writers.append(writer)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                self.heads.append(head)
                if self.reads_bodies:
                    self.bodies.append(await _read_body(reader, head.lower()))
                await self.respond(reader, writer)


async def _read_body(reader: asyncio.StreamReader, head: str) -> bytes:
    if "transfer-encoding: chunked" in head:
        body = b""
        while size := int((await reader.readline()).strip(), 16):
            body += await reader.readexactly(size)
            await reader.readexactly(2)
        await reader.readexactly(2)
        return body
    length = next((line.split(":")[1] for line in head.split("\r\n") if line.startswith("content-length:")), "0")
    return await reader.readexactly(int(length))


def respond_with(response: bytes) -> Respond:
    async def respond(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(response)
        await writer.drain()

    return respond


@pytest.fixture
async def server() -> AsyncIterator[RawServer]:
    server = RawServer()
    await server.open()
    yield server
    await server.close()


@pytest.fixture
async def client() -> AsyncIterator[HttpClient]:
    client = HttpClient(ConnectionPools(max_per_address=2, idle_s=60, connect_s=5), max_body_bytes=1000)
    yield client
    await client.close()


async def parts(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_each_kind_of_body_arrives_complete_over_one_connection(client: HttpClient, server: RawServer) -> None:
    large = bytes(range(256)) * 2000
    content_type, form = form_body([FormPart("a", "ü"), FormPart("f", io.BytesIO(b"bytes"), 'x".bin', "text/plain")])

    for method, body in (
        ("GET", None),
        ("POST", b"{}"),
        ("PUT", file_body(io.BytesIO(large))),
        ("POST", ChunkedBody(parts(b"one", b"", b"two"))),
        ("DELETE", None),
        ("POST", form),
    ):
        response = await client.request(method, server.url, {}, body, timeout_s=HANGS_AFTER_S)
        assert (response.status, response.body) == (200, b"ok")

    assert server.bodies[:5] == [b"", b"{}", large, b"onetwo", b""]
    boundary = content_type.partition("boundary=")[2]
    assert server.bodies[5].decode() == (
        f'--{boundary}\r\nContent-Disposition: form-data; name="a"\r\n\r\nü\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="f"; filename="x\\".bin"\r\n'
        f"Content-Type: text/plain\r\n\r\nbytes\r\n--{boundary}--\r\n"
    )
    assert [head.partition(" ")[0] for head in server.heads] == ["GET", "POST", "PUT", "POST", "DELETE", "POST"]
    assert server.connections == 1


async def test_given_headers_replace_those_of_every_request(client: HttpClient, server: RawServer) -> None:
    await client.request("GET", server.url, {"accept": "text/html", "Host": "other"}, timeout_s=HANGS_AFTER_S)

    lines = server.heads[0].lower().split("\r\n")
    assert "accept: text/html" in lines
    assert "accept: */*" not in lines
    assert "host: other" not in lines
    assert "accept-encoding: identity" in lines
    assert not any(line.startswith("content-length") for line in lines)


async def test_file_is_sent_from_its_position(client: HttpClient, server: RawServer) -> None:
    file = io.BytesIO(b"0123456789")
    file.seek(4)

    await client.request("POST", server.url, {}, file_body(file), timeout_s=HANGS_AFTER_S)

    assert server.bodies == [b"456789"]
    assert "Content-Length: 6\r\n" in server.heads[0]


async def test_error_of_what_produces_the_body_is_raised(client: HttpClient, server: RawServer) -> None:
    async def produce() -> AsyncIterator[bytes]:
        yield b"one"
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        await client.request("POST", server.url, {}, ChunkedBody(produce()), timeout_s=HANGS_AFTER_S)


@pytest.mark.parametrize("size_bytes", [2, 4])
async def test_body_of_another_size_than_announced_is_an_error(
    client: HttpClient, server: RawServer, size_bytes: int
) -> None:
    body = ChunkedBody(parts(b"one"), size_bytes)

    with pytest.raises(ValueError, match=f"the announced {size_bytes} bytes"):
        await client.request("POST", server.url, {}, body, timeout_s=HANGS_AFTER_S)


async def test_response_before_the_body_was_sent_is_returned_and_ends_the_connection(
    client: HttpClient, server: RawServer
) -> None:
    server.reads_bodies = False
    server.respond = respond_with(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
    held = asyncio.Event()

    async def produce() -> AsyncIterator[bytes]:
        yield b"one"
        await held.wait()

    response = await client.request("POST", server.url, {}, ChunkedBody(produce()), timeout_s=HANGS_AFTER_S)
    assert response.status == 413

    server.reads_bodies, server.respond = True, respond_with(OK)
    assert (await client.request("GET", server.url, {}, timeout_s=HANGS_AFTER_S)).status == 200
    assert server.connections == 2


async def test_response_to_head_has_no_body(client: HttpClient, server: RawServer) -> None:
    server.respond = respond_with(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n")

    response = await client.request("HEAD", server.url, {}, timeout_s=HANGS_AFTER_S)

    assert (response.status, response.body) == (200, b"")
    assert dict(response.headers)["content-length"] == "99"


async def test_longer_body_than_the_limit_is_an_error(client: HttpClient, server: RawServer) -> None:
    server.respond = respond_with(b"HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n" + bytes(1001))
    with pytest.raises(ResponseTooLarge, match="more than 1000 bytes"):
        await client.request("GET", server.url, {}, timeout_s=HANGS_AFTER_S)

    server.respond = respond_with(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + bytes(1000))
    assert len((await client.request("GET", server.url, {}, timeout_s=HANGS_AFTER_S)).body) == 1000


async def test_body_is_read_only_as_fast_as_it_is_taken(client: HttpClient, server: RawServer) -> None:
    sent = 0
    total = 64 * 1024 * 1024

    async def respond(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % total)
        for _ in range(total // READ_AHEAD_BYTES):
            writer.write(bytes(READ_AHEAD_BYTES))
            await writer.drain()
            sent += READ_AHEAD_BYTES

    server.respond = respond

    async with client.stream("GET", server.url, {}, timeout_s=HANGS_AFTER_S) as response:
        before = -1
        while before != sent:  # until nothing more is taken
            before = sent
            await asyncio.sleep(0.05)
        assert sent < total // 2
        assert sum([len(chunk) async for chunk in response]) == total

    assert (await client.request("HEAD", server.url, {}, timeout_s=HANGS_AFTER_S)).status == 200
    assert server.connections == 1  # the response has ended, so that its connection was used again


async def test_response_that_is_closed_early_ends_its_connection(client: HttpClient, server: RawServer) -> None:
    ended = asyncio.Event()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\nbeginning")
        await reader.read(1)
        ended.set()

    server.respond = respond
    async with client.stream("GET", server.url, {}, timeout_s=HANGS_AFTER_S) as response:
        async for chunk in response:
            assert chunk == b"beginning"
            break

    await asyncio.wait_for(ended.wait(), HANGS_AFTER_S)


async def test_body_that_breaks_off_is_an_error_after_what_has_arrived(client: HttpClient, server: RawServer) -> None:
    async def respond(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 20\r\n\r\nbeginning")
        writer.close()

    server.respond = respond
    async with client.stream("GET", server.url, {}, timeout_s=HANGS_AFTER_S) as response:
        chunks = aiter(response)
        assert await anext(chunks) == b"beginning"
        with pytest.raises(ResponseLost):
            await anext(chunks)


@pytest.mark.parametrize("begins", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"])
async def test_silence_ends_a_response_by_either_time_limit(
    client: HttpClient, server: RawServer, begins: bytes
) -> None:
    server.respond = respond_with(begins)
    for total_s, read_s in ((0.2, None), (HANGS_AFTER_S, 0.2)):
        with pytest.raises(ResponseTimeout):
            await client.request("GET", server.url, {}, timeout_s=total_s, read_timeout_s=read_s)

    await poll_until(lambda: asyncio.sleep(0, server.connections), lambda connections: connections == 2)
