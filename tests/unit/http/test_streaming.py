"""Answers in pieces, in this process and over HTTP: the same of both."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final

import pytest
import pytest_asyncio

from tests.support.closed_port import refusing_port
from tests.support.waiting import HANGS_AFTER_S, patiently
from waypost.assembly.http.servers import HttpServer
from waypost.assembly.http.sockets import bind_socket, port_of
from waypost.client.responses import ApiUnreachable
from waypost.client.streaming import STREAM_CHUNK_BYTES, StreamedResponse
from waypost.client.transports import HttpTransport, InProcessTransport, Transport

MANY: Final = 2000
"""Pieces of a large answer, 125 MB: far more than a connection holds on its way."""
PIECE: Final = bytes(STREAM_CHUNK_BYTES)


@dataclass
class Source:
    """Answers with pieces, and counts how far it got."""

    pieces: int = MANY
    told_bytes: int | None = None
    fails: str = ""
    sent: int = 0
    was_asked: list[str] = field(default_factory=list[str])
    was_given: int = 0
    has_left: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        self.was_asked.append(scope["method"] + " " + scope["path"])
        while (message := await receive())["type"] == "http.request":
            self.was_given += len(message.get("body", b""))
            if not message.get("more_body"):
                break
        told = len(PIECE) * self.pieces if self.told_bytes is None else self.told_bytes
        head = [(b"Content-Length", b"%d" % told), (b"X-One", b"two")]
        working = asyncio.ensure_future(self._answer(send, head))
        leaving = asyncio.ensure_future(receive())
        try:
            await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                working.result()
        finally:
            for one in (working, leaving):
                one.cancel()
            await asyncio.gather(working, leaving, return_exceptions=True)
            self.has_left.set()

    async def _answer(
        self, send: Callable[[MutableMapping[str, Any]], Awaitable[None]], head: list[tuple[bytes, bytes]]
    ) -> None:
        await send({"type": "http.response.start", "status": 206, "headers": head})
        for _ in range(self.pieces):
            await asyncio.sleep(0)  # as if it were read from a disk
            await send({"type": "http.response.body", "body": PIECE, "more_body": True})
            self.sent += 1
        if self.fails == "raises":
            raise ConnectionResetError("on purpose")
        if self.fails != "leaves":
            await send({"type": "http.response.body", "body": b"", "more_body": False})


Over = Callable[[Source], Awaitable[Transport]]


@pytest_asyncio.fixture(params=["in process", "over http"])
async def over(request: pytest.FixtureRequest) -> AsyncGenerator[Over]:
    """Gives the way to a source."""
    servers: list[HttpServer] = []

    async def reach(source: Source) -> Transport:
        if request.param == "in process":
            return InProcessTransport(source)
        bound = bind_socket("127.0.0.1", 0, option="port")
        server = HttpServer(source, bound, stop_within_s=0.1)
        await server.start()
        servers.append(server)
        return HttpTransport(f"http://127.0.0.1:{port_of(bound)}", timeout_s=5)

    yield reach
    for server in servers:
        await server.stop()


async def test_answer_comes_with_its_status_and_headers_and_whole(over: Over) -> None:
    source = Source(pieces=3)

    answer = await (await over(source)).open("GET", "/a?b=c", {"X-Asked": "yes"})

    assert (answer.status, answer.headers["x-one"]) == (206, "two")
    assert answer.headers["content-length"] == str(3 * len(PIECE))
    assert sum([len(piece) async for piece in answer]) == 3 * len(PIECE)
    await answer.aclose()
    assert source.was_asked == ["GET /a"]


async def test_source_goes_on_only_as_its_pieces_are_taken(over: Over) -> None:
    source = Source()
    answer = await (await over(source)).open("GET", "/", {})

    first = await anext(aiter(answer))
    await _is_at_rest(source)

    assert 0 < len(first) <= len(PIECE)
    assert source.sent < MANY // 4
    await answer.aclose()


async def test_in_this_process_a_source_is_one_piece_ahead_at_most() -> None:
    source = Source(pieces=50)
    answer = await InProcessTransport(source).open("GET", "/", {})
    ahead: list[int] = []

    taken = 0
    async for _ in answer:
        taken += 1
        for _ in range(20):
            await asyncio.sleep(0)
        ahead.append(source.sent - taken)

    assert (taken, max(ahead)) == (50, 0)
    await answer.aclose()


async def test_source_hears_that_nobody_reads_any_more(over: Over) -> None:
    source = Source()
    answer = await (await over(source)).open("GET", "/", {})
    await anext(aiter(answer))

    await answer.aclose()

    await asyncio.wait_for(source.has_left.wait(), HANGS_AFTER_S)
    assert source.sent < MANY


async def test_source_whose_answer_nobody_has_begun_to_read_hears_it_too(over: Over) -> None:
    source = Source()

    await (await (await over(source)).open("GET", "/", {})).aclose()

    await asyncio.wait_for(source.has_left.wait(), HANGS_AFTER_S)
    assert source.sent < MANY


@pytest.mark.parametrize(
    ("fails", "told_bytes"), [("raises", None), ("leaves", 9_999_999), ("tells too much", 9_999_999)]
)
async def test_answer_that_breaks_off_does_not_look_whole(over: Over, fails: str, told_bytes: int | None) -> None:
    told_bytes = told_bytes or 3 * len(PIECE)
    source = Source(pieces=2, fails=fails, told_bytes=told_bytes)
    answer = await (await over(source)).open("GET", "/", {})
    read: list[int] = []

    with pytest.raises(ApiUnreachable, match=r"breaks off|instead of the announced"):
        await _read(answer, read)

    assert sum(read) <= 2 * len(PIECE)
    await answer.aclose()


async def test_failure_before_the_answer_begins_is_no_answer() -> None:
    async def fails(*_: object) -> None:
        raise LookupError("on purpose")

    async def leaves(*_: object) -> None:
        return

    with pytest.raises(LookupError, match="on purpose"):
        await InProcessTransport(fails).open("GET", "/", {})
    with pytest.raises(ApiUnreachable, match="no response to GET /"):
        await InProcessTransport(leaves).open("GET", "/", {})


async def test_nobody_at_an_address_is_told_before_the_first_piece() -> None:
    with refusing_port() as port, pytest.raises(ApiUnreachable, match="no response from"):
        await HttpTransport(f"http://127.0.0.1:{port}").open("GET", "/", {})


async def test_asking_for_the_head_only_gives_its_headers_and_no_piece(over: Over) -> None:
    source = Source(pieces=0, told_bytes=12_345)

    answer = await (await over(source)).open("HEAD", "/", {})

    assert answer.headers["content-length"] == "12345"
    assert [piece async for piece in answer] == []
    await answer.aclose()


@pytest.mark.parametrize("in_pieces", [True, False])
async def test_what_is_sent_may_come_in_pieces(over: Over, in_pieces: bool) -> None:
    source = Source(pieces=0)
    asked = 0

    async def told() -> AsyncIterator[bytes]:
        nonlocal asked
        for _ in range(10):
            asked += 1
            yield PIECE

    reply = await (await over(source))("POST", "/", {}, told() if in_pieces else PIECE * 10)

    assert (reply.status, reply.body) == (206, b"")
    assert source.was_given == 10 * len(PIECE)
    assert asked == (10 if in_pieces else 0)


async def _read(answer: StreamedResponse, read: list[int]) -> None:
    async for piece in answer:
        read.append(len(piece))  # noqa: PERF401  what came before it breaks off is kept


async def _is_at_rest(source: Source) -> None:
    """Return when the source has sent nothing for a while."""
    before = [-1]

    async def rests() -> bool:
        await asyncio.sleep(0.05)
        before.append(source.sent)
        return before[-1] == before[-2]

    await patiently(rests)
