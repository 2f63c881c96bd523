"""Responses that no HTTP client should have to read to their end, and a server that sends them.

`benchmarks/hostile_receivers.py` measures what they cost other clients; `tests/unit/http/test_hostile_responses.py`
holds every HTTP client of ours to its limits.
"""

import asyncio
import contextlib
import gzip
import socket
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Final

_HEAD: Final = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\n"
_CHUNKED: Final = _HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
_SEND_BUFFER_BYTES: Final = 64 * 1024
_ENDLESS_BYTES: Final = 64 * 1024
"""Of one write of what is repeated without end."""
DRIP_EVERY_S: Final = 0.05
ACCEPTABLE_MB: Final = 12
"""What a client and the kernel's buffers together may take of a response without end."""


@dataclass(frozen=True)
class HostileResponse:
    """One row.

    Attributes:
        begins: sent once.
        repeats: sent again and again afterwards; empty: nothing more is sent, and the connection stays open.
        error: pattern of the texts of errors that are right.
        may_succeed: a client that reads no more than the beginning of the body may take the response.
        before_request: sent as soon as the connection is made.
        drips: `repeats` is sent slowly, a byte at a time.
    """

    begins: bytes
    repeats: bytes = b""
    error: str = "not HTTP"
    may_succeed: bool = False
    before_request: bool = False
    drips: bool = False


_FRAMING: Final = "more than 65536 bytes of status line, headers, trailers and framing"
_HEADERS: Final = "more than 200 headers"
_BODY: Final = "body of the response has more than|unreadable"
_TIME: Final = "no (complete )?response (in time|within)|timed out|unreadable"


def _framed(payload: bytes, extension: bytes = b"") -> bytes:
    return b"%x%b\r\n%b\r\n" % (len(payload), extension, payload)


# fmt: off
HOSTILE_RESPONSES: Final = {
    # without end
    "one header value without end":        HostileResponse(_HEAD + b"X-Long: ", b"a" * 4096, _FRAMING),
    "one header name without end":         HostileResponse(_HEAD, b"a" * 4096, _FRAMING),
    "short headers without end":           HostileResponse(_HEAD, b"a: b\r\n", _HEADERS),
    "a status line without end":           HostileResponse(b"HTTP/1.1 200 ", b"a" * 4096, _FRAMING),
    "line breaks without end":             HostileResponse(b"", b"\r\n" * 2048, f"{_FRAMING}|not HTTP"),
    "100 Continue without end":            HostileResponse(b"", b"HTTP/1.1 100 Continue\r\n\r\n", "more than 8 informational responses"),
    "103 with headers without end":        HostileResponse(b"", b"HTTP/1.1 103 Early Hints\r\n" + b"Link: </a>\r\n" * 60 + b"\r\n", _HEADERS),
    "a trailer value without end":         HostileResponse(_CHUNKED + _framed(b"{}") + b"0\r\nX-Long: ", b"a" * 4096, _FRAMING),
    "short trailers without end":          HostileResponse(_CHUNKED + _framed(b"{}") + b"0\r\n", b"a: b\r\n", _HEADERS),
    "a chunk extension without end":       HostileResponse(_CHUNKED + b"2;", b"a" * 4096, _FRAMING),
    "chunks with extensions without end":  HostileResponse(_CHUNKED, _framed(b"1", b";" + b"a" * 256), f"{_FRAMING}|{_BODY}"),
    "chunks of one byte without end":      HostileResponse(_CHUNKED, _framed(b"1"), f"{_FRAMING}|{_BODY}", may_succeed=True),
    "a chunked body without end":          HostileResponse(_CHUNKED, _framed(b"1" * 4096), _BODY, may_succeed=True),
    "a body without a length or an end":   HostileResponse(_HEAD + b"\r\n", b"1" * 4096, _BODY, may_succeed=True),
    "a body of a length that is too much": HostileResponse(_HEAD + b"Content-Length: 999999999999\r\n\r\n", b"1" * 4096, _BODY, may_succeed=True),
    # of the wrong form
    "a negative Content-Length":           HostileResponse(_HEAD + b"Content-Length: -2\r\n\r\n{}"),
    "two lengths":                         HostileResponse(_HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}"),
    "the same length twice":               HostileResponse(_HEAD + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\n{}"),
    "a length and chunks":                 HostileResponse(_HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n" + _framed(b"{}") + b"0\r\n\r\n"),
    "chunks and a length":                 HostileResponse(_HEAD + b"Transfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n" + _framed(b"{}") + b"0\r\n\r\n"),
    "a negative chunk size":               HostileResponse(_CHUNKED + b"-2\r\n{}\r\n0\r\n\r\n"),
    "a folded header":                     HostileResponse(_HEAD + b"X-Folded: a\r\n b\r\nContent-Length: 2\r\n\r\n{}"),
    "a zero in a header":                  HostileResponse(_HEAD + b"X-Zero: a\0b\r\nContent-Length: 2\r\n\r\n{}"),
    "zeros instead of a status line":      HostileResponse(b"\0" * 4096),
    "HTTP/2":                              HostileResponse(b"\0\0\x12\x04\0\0\0\0\0\0\x03\0\0\0\x64"),
    "an upgrade that nobody requested":    HostileResponse(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n"),
    "a gzip bomb":                         HostileResponse(
        _HEAD + b"Content-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n"
        + _framed(gzip.compress(b"0" * 50_000_000)) + b"0\r\n\r\n",
        error=f"encoded|{_BODY}", may_succeed=True),
    # at the wrong time
    "a response before the request":       HostileResponse(
        _HEAD + b"Content-Length: 2\r\n\r\n{}", error="before the request|could not connect|closed|must return the bare challenge", may_succeed=True, before_request=True),
    "half a status line":                  HostileResponse(b"HTTP/1.1 20", error=_TIME),
    "one byte of a header at a time":      HostileResponse(_HEAD + b"X-Slow: ", b"a", _TIME, drips=True),
    "one byte of a body at a time":        HostileResponse(_HEAD + b"Content-Length: 99999\r\n\r\n", b"1", _TIME, may_succeed=True, drips=True),
}
# fmt: on


class HostileResponder:
    """A server that gives every request the same hostile response.

    Attributes:
        response: sent to each connection.
        first_response: sent to the first request, if not empty; the next is on the same connection.
        taken_bytes: that the clients and the kernel's buffers have taken in all.
        connections: number of connections so far.
    """

    def __init__(self, response: HostileResponse, *, port: int = 0) -> None:
        self._port = port
        self.response = response
        self.first_response = b""
        self.taken_bytes = 0
        self.connections = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """The port on loopback that the system chose."""
        assert self._server is not None
        return self._server.sockets[0].getsockname()[1]

    async def __aenter__(self) -> "HostileResponder":
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for connection in self._open:
            connection.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(self._respond(reader, writer))
        self._open.add(task)
        task.add_done_callback(self._open.discard)

    async def _respond(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
        response = self.response
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            try:
                if self.first_response:
                    await reader.readuntil(b"\r\n\r\n")
                    polite, self.first_response = self.first_response, b""
                    writer.write(polite)
                if not response.before_request:
                    await reader.readuntil(b"\r\n\r\n")
                await self._send(writer, response.begins)
                async for part in _repeated(response):
                    await self._send(writer, part)
                while await reader.read(65_536):  # until the client hangs up
                    pass
            finally:
                writer.transport.abort()

    async def _send(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        writer.write(data)
        await writer.drain()
        self.taken_bytes += len(data)


async def _repeated(response: HostileResponse) -> AsyncIterator[bytes]:
    if not response.repeats:
        return
    part = response.repeats if response.drips else response.repeats * (_ENDLESS_BYTES // len(response.repeats) + 1)
    while True:
        yield part
        await asyncio.sleep(DRIP_EVERY_S if response.drips else 0)


@asynccontextmanager
async def respond(name: str) -> AsyncGenerator[HostileResponder]:
    """Serve one row of the table."""
    async with HostileResponder(HOSTILE_RESPONSES[name]) as responder:
        yield responder
