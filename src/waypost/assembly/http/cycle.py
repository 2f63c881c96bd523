"""One request of a connection and its response: what uvicorn's does, in half the time."""

import asyncio
from collections.abc import MutableMapping
from functools import lru_cache
from typing import Any, Final, Protocol, cast

from uvicorn.protocols.http.httptools_impl import HEADER_RE, HEADER_VALUE_RE, STATUS_LINE, RequestResponseCycle

from waypost.wire.errors import INTERNAL_TEXT

_KEPT_VALUE_BYTES: Final = 64
"""Lines of headers with values up to this length are kept: most responses have the same ones."""
_JOINED_BYTES: Final = 16 * 1024
"""A body up to this size is written with its head; joining more costs more than a call."""


class ServedConnection(Protocol):
    """The connection of a request, as the request uses it."""

    scope: Any
    transport: Any
    flow: Any
    logger: Any
    access_logger: Any
    server_state: Any
    expect_100_continue: bool

    def on_response_complete(self) -> None:
        """Note that the response is written."""
        ...

    def close_after_response(self) -> None:
        """Close, after the client has had time to read the response."""
        ...

    def error_body(self, status: int, text: str) -> bytes:
        """Return the body of an error of the server itself."""
        ...


class RequestCycle(RequestResponseCycle):
    """One request and its response.

    The head of a response whose length is declared is written with the first part of its body.

    Attributes:
        is_withheld: the application sends no response.
    """

    is_withheld = False

    def __init__(self, connection: ServedConnection, *, keep_alive: bool) -> None:
        super().__init__(
            scope=connection.scope,
            transport=connection.transport if keep_alive else cast("Any", _LingeringTransport(connection)),
            flow=connection.flow,
            logger=connection.logger,
            access_logger=connection.access_logger,
            access_log=False,
            default_headers=connection.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=connection.expect_100_continue,
            keep_alive=keep_alive,
            on_response=connection.on_response_complete,
        )
        self._head = b""  # of a response, until it is written

    def end_connection(self, connection: ServedConnection) -> None:
        """Close the connection after the response."""
        self.keep_alive = False
        self.transport = cast("Any", _LingeringTransport(connection))

    async def receive(self) -> Any:
        """Return the next part of the body, or that the client has disconnected."""
        if (
            self.more_body
            or self.disconnected
            or self.response_complete
            or self.flow.read_paused
            or self.waiting_for_100_continue
            or not self.message_event.is_set()
        ):
            return await super().receive()
        self.message_event.clear()
        body, self.body = bytes(self.body), bytearray()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(self, message: Any) -> None:
        """Write the head of the response, or a part of its body."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        expected = "http.response.body" if self.response_started else "http.response.start"
        if message["type"] != expected or self.response_complete:
            raise RuntimeError(f"the application sent {message['type']!r} instead of {expected!r}, or after the end")
        if not self.response_started:
            self._begin(message)
            return
        body, is_last = message.get("body", b""), not message.get("more_body", False)
        content = self._head
        self._head = b""
        if self.scope["method"] == "HEAD":
            self.expected_content_length = 0
        elif self.chunked_encoding:
            content += b"%x\r\n%b\r\n" % (len(body), body) if body else b""
            content += b"0\r\n\r\n" if is_last else b""
        else:
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0:
                raise RuntimeError("the body is longer than its content-length")
            if content and len(body) > _JOINED_BYTES:
                self.transport.write(content)
                content = body
            else:
                content += body
        if content:
            self.transport.write(content)
        if is_last:
            if self.expected_content_length:
                raise RuntimeError("the body is shorter than its content-length")
            self.response_complete = True
            self.message_event.set()
            if not self.keep_alive:
                self.transport.close()
            self.on_response()

    def _begin(self, message: MutableMapping[str, Any]) -> None:
        """Prepare the head, and write it if the length of the body is not known."""
        self.response_started, self.waiting_for_100_continue = True, False
        status: int = message["status"]
        lines = [STATUS_LINE[status]]
        says_close = False
        for name, value in (*self.default_headers, *message.get("headers", ())):
            lower, line = _kept_line(name, value) if len(value) <= _KEPT_VALUE_BYTES else _header_line(name, value)
            lines.append(line)
            if lower == b"content-length" and self.chunked_encoding is None:
                self.expected_content_length, self.chunked_encoding = int(value), False
            elif lower == b"transfer-encoding" and value.lower() == b"chunked":
                self.expected_content_length, self.chunked_encoding = 0, True
            elif lower == b"connection" and b"close" in [token.strip() for token in value.lower().split(b",")]:
                self.keep_alive, says_close = False, True
        if not self.keep_alive and not says_close:
            lines.append(b"connection: close\r\n")
        if self.chunked_encoding is None and self.scope["method"] != "HEAD" and status not in (204, 304):
            self.chunked_encoding = True
            lines.append(b"transfer-encoding: chunked\r\n")
        lines.append(b"\r\n")
        if self.chunked_encoding is False:
            self._head = b"".join(lines)
        else:
            self.transport.write(b"".join(lines))

    async def send_500_response(self) -> None:
        """Send an error in the API's format: the application has raised, or sent no response."""
        connection: ServedConnection = cast("Any", self.on_response).__self__
        body = connection.error_body(500, INTERNAL_TEXT)
        self.transport = cast("Any", _LingeringTransport(connection))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        await self.send({"type": "http.response.start", "status": 500, "headers": headers})
        await self.send({"type": "http.response.body", "body": body, "more_body": False})


class _LingeringTransport:
    """The transport of a connection's last request: closing it does not lose the response."""

    def __init__(self, connection: ServedConnection) -> None:
        self._connection = connection
        self.write = connection.transport.write
        self.is_closing = connection.transport.is_closing

    def close(self) -> None:
        """Close, after the client has had time to read the response."""
        self._connection.close_after_response()


def _header_line(name: bytes, value: bytes) -> tuple[bytes, bytes]:
    """Return the lower-case name of a header, and its line.

    Raises:
        RuntimeError: the application has sent a name or a value that would not be one header.
    """
    if HEADER_RE.search(name) or HEADER_VALUE_RE.search(value):
        raise RuntimeError(f"the application sent an invalid header {name!r}")
    lower = name.lower()
    return lower, b"%b: %b\r\n" % (lower, value)


_kept_line: Final = lru_cache(maxsize=256)(_header_line)
