"""HTTP/1.1 of every server of ours: httptools, with limits on what it reads and how long it waits.

The parser keeps a header until its last byte has come, and copies it with every piece that comes; uvicorn
limits neither its size nor its time. Here both are bounded before an application sees the request, and an
error of the server itself has the API's shape.
"""

import asyncio
import socket
import struct
from enum import Enum
from functools import partial
from typing import Any, Final, cast

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from waypost.assembly.http.limits import HEADER_BYTES, HEADERS, URL_BYTES, Connections, HttpError
from waypost.wire.errors import INTERNAL_TEXT

SLICE_BYTES: Final = 16 * 1024
"""How much the parser gets at once: what it keeps is looked at after each piece."""

LINGER_S: Final = 2.0
"""How long a refused client may read the answer. A connection that is closed while its client still sends
is reset, and the answer is lost with it."""

LINGER_BYTES: Final = 4_000_000
"""How much of what a refused client still sends is read and dropped. More than that waits at the client."""

URL_TOO_LONG: Final = HttpError(414, f"The URL must be at most {URL_BYTES} bytes.")
HEADERS_TOO_LARGE: Final = HttpError(431, f"The headers of a request must be at most {HEADER_BYTES} bytes in total.")
TOO_MANY_HEADERS: Final = HttpError(431, f"A request must have at most {HEADERS} headers.")
MALFORMED: Final = HttpError(400, "The request is not valid HTTP/1.1.")


class _Phase(Enum):
    IDLE = "nothing of a request has come"
    HEADERS = "headers are being received"
    BODY = "the body is being received"


class _LimitReached(Exception):
    """Ends the parser's work; what was exceeded is in `_error`."""


class LimitedProtocol(HttpToolsProtocol):
    """HTTP by httptools, with limits.

    Args:
        limited_by: counts the connections of one server, and has its limits.
    """

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        limited_by: Connections | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._among = limited_by or Connections()
        self._limits = self._among.limits
        self._phase = _Phase.IDLE
        self._error: HttpError | None = None
        self._is_refused = False
        self._has_begun = False  # the headers of a request were complete
        self._ending: asyncio.TimerHandle | None = None
        self._since_s = self.loop.time()  # of the headers, or of the body's period
        self._period_bytes = 0
        self._unframed_bytes = 0  # since the last header block, body part or end of a request
        self._dropped_bytes = 0  # after a refusal
        self._header_bytes = 0
        self._header_count = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Serve it, or refuse it where there are too many."""
        super().connection_made(transport)
        bound = transport.get_extra_info("socket")
        address = self.client[0] if self.client else ""
        error = self._among.admit(self, address, bound.fileno() if bound is not None else -1)
        if error is not None:
            self._is_refused = True
            self._write_error(error)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed."""
        self._among.remove(self)
        if self._ending is not None:
            self._ending.cancel()
        super().connection_lost(exc)
        self._unset_keepalive_if_required()

    def data_received(self, data: bytes) -> None:
        """Parse what has come, piece by piece."""
        if self._is_refused:
            self._dropped_bytes += len(data)
            if self._dropped_bytes > LINGER_BYTES:
                self.flow.pause_reading()
            return
        self._unset_keepalive_if_required()
        if self._phase is _Phase.IDLE:
            self._phase, self._since_s = _Phase.HEADERS, self.loop.time()
            self._among.mark_active(self)
        if len(data) <= SLICE_BYTES:
            self._parse(data)
            return
        whole = memoryview(data)
        for at in range(0, len(data), SLICE_BYTES):
            self._parse(whole[at : at + SLICE_BYTES])
            if self._is_refused or self.transport.is_closing():
                return

    def _parse(self, piece: bytes | memoryview) -> None:
        self._unframed_bytes += len(piece)
        self._period_bytes += len(piece)
        try:
            cast("Any", self.parser).feed_data(piece)
        except httptools.HttpParserUpgrade:
            pass  # answered as any other request
        except httptools.HttpParserError:
            self._refuse(self._error or MALFORMED)
            return
        if self._unframed_bytes > HEADER_BYTES:
            self._refuse(HEADERS_TOO_LARGE)

    # What the parser finds.

    def on_message_begin(self) -> None:
        """A request begins; where it follows another in the same data, its time begins now."""
        super().on_message_begin()
        if self._phase is _Phase.IDLE:
            self._phase, self._since_s = _Phase.HEADERS, self.loop.time()
        self._header_bytes = self._header_count = 0

    def on_url(self, url: bytes) -> None:
        """A part of the URL."""
        super().on_url(url)
        if len(self.url) > URL_BYTES:
            self._exceed(URL_TOO_LONG)

    def on_header(self, name: bytes, value: bytes) -> None:
        """A header, or a trailer after the body."""
        self._header_count += 1
        self._header_bytes += len(name) + len(value) + 4
        if self._header_count > HEADERS:
            self._exceed(TOO_MANY_HEADERS)
        if self._header_bytes > HEADER_BYTES:
            self._exceed(HEADERS_TOO_LARGE)
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The application is given the request; its body has its own time."""
        super().on_headers_complete()
        self._has_begun = True
        self._phase, self._since_s = _Phase.BODY, self.loop.time()
        self._unframed_bytes = self._period_bytes = 0
        # Whatever an application raises, and one that answers nothing, becomes an error in shape.
        if not self.cycle.keep_alive:
            self.cycle.transport = cast("Any", _LingeringTransport(self))
        self.cycle.send_500_response = partial(self._answer_defect, self.cycle)

    def on_body(self, body: bytes) -> None:
        """A part of the body."""
        self._unframed_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """The request is here."""
        self._phase, self._unframed_bytes = _Phase.IDLE, 0
        super().on_message_complete()
        if self.cycle.response_complete and not self.pipeline:  # answered before its body was read
            self._await_next()

    def on_response_complete(self) -> None:
        """The response is written; the connection waits for the next request."""
        super().on_response_complete()
        if self._phase is _Phase.IDLE and self.timeout_keep_alive_task is not None:
            self._among.mark_idle(self)

    def _await_next(self) -> None:
        self._unset_keepalive_if_required()
        self.timeout_keep_alive_task = self.loop.call_later(self.timeout_keep_alive, self.timeout_keep_alive_handler)
        self._among.mark_idle(self)

    def _exceed(self, error: HttpError) -> None:
        self._error = error
        raise _LimitReached

    # Time.

    def check_deadlines(self, now_s: float) -> None:
        """Refuse a request whose headers or body come too slowly."""
        if self._is_refused or self.transport.is_closing():
            return
        took_s = now_s - self._since_s
        if self._phase is _Phase.BODY:
            self._check_body(now_s, took_s)
        elif self._phase is _Phase.HEADERS:
            timeout_s = self._limits.header_timeout_s
            if took_s >= timeout_s:
                self._refuse(HttpError(408, f"The headers must arrive within {timeout_s:g} seconds."))
        elif not self._has_begun and took_s >= self._limits.header_timeout_s:
            self.transport.close()  # it has never sent anything

    def _check_body(self, now_s: float, took_s: float) -> None:
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:  # it is we who wait
            self._since_s, self._period_bytes = now_s, 0
            return
        timeout_s, rate = self._limits.body_timeout_s, self._limits.min_body_rate
        if took_s < timeout_s:
            return
        if self._period_bytes < rate * timeout_s:
            text = f"A body must arrive at {rate} bytes a second at least, over {timeout_s:g} seconds."
            self._refuse(HttpError(408, text))
            return
        self._since_s, self._period_bytes = now_s, 0

    def end_idle(self) -> None:
        """Close it: there is no room, and nothing is under way on it."""
        self._among.remove(self)
        self.transport.close()

    # Answers of the server itself.

    def _refuse(self, error: HttpError) -> None:
        """Answer with an error, if an answer is still owed, and close."""
        self._is_refused = True
        cycle = self.cycle
        if self._phase is _Phase.BODY:
            if self.pipeline or cycle.response_started:
                self.transport.close()
                return
            cycle.disconnected = True  # what its application answers goes nowhere
            cycle.message_event.set()
        elif self._has_begun and not cycle.response_complete:
            cycle.keep_alive = False  # the request before is answered, and then it is closed
            return
        self._write_error(error)
        self._linger()

    def close_after_answer(self) -> None:
        """Close; where the client still sends its body, only once it can have read the answer."""
        if self._phase is _Phase.BODY and not self.transport.is_closing():
            self._is_refused = True
            self._linger()
        else:
            self.transport.close()

    def _linger(self) -> None:
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._ending = self.loop.call_later(LINGER_S, self.transport.abort)

    def _write_error(self, error: HttpError) -> None:
        self._among.refused[error.status] += 1
        body = self._among.error_body(error.status, error.text)
        content = [STATUS_LINE[error.status]]
        for name, value in self.server_state.default_headers:
            content += [name, b": ", value, b"\r\n"]
        content += [
            b"content-type: application/json\r\n",
            b"content-length: %d\r\n" % len(body),
            b"connection: close\r\n\r\n",
            body,
        ]
        self.transport.write(b"".join(content))

    async def _answer_defect(self, cycle: RequestResponseCycle) -> None:
        body = self._among.error_body(500, INTERNAL_TEXT)
        cycle.transport = cast("Any", _LingeringTransport(self))
        headers = [
            (b"content-type", b"application/json"),
            (b"content-length", b"%d" % len(body)),
            (b"connection", b"close"),
        ]
        await cycle.send({"type": "http.response.start", "status": 500, "headers": headers})
        await cycle.send({"type": "http.response.body", "body": body, "more_body": False})


class _LingeringTransport:
    """What a request writes to that ends its connection: closing it does not lose the answer."""

    def __init__(self, protocol: LimitedProtocol) -> None:
        self._protocol = protocol
        self.write = protocol.transport.write
        self.is_closing = protocol.transport.is_closing

    def close(self) -> None:
        """Close, once what was written can have been read."""
        self._protocol.close_after_answer()


class LineProtocol(LimitedProtocol):
    """An application may break the connection that its request came on.

    ASGI has no word for this, so it is an extension of the scope, `waypost.line`: an object with
    `reset()`, `hang_up()` and `withhold()`. The simulator's faults need it, and nothing else uses it.
    """

    _is_withheld = False

    def on_message_begin(self) -> None:
        """A request begins: its scope gets the extension."""
        super().on_message_begin()
        self._is_withheld = False
        self.scope["extensions"] = {"waypost.line": self}  # pyright: ignore[reportGeneralTypeIssues]

    def reset(self) -> None:
        """Break the connection at once, as a machine does that has crashed: the client sees a reset."""
        bound = self.transport.get_extra_info("socket")
        if bound is not None:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def hang_up(self) -> None:
        """Close the connection after what has been written, however much of the answer is missing."""
        self.transport.close()

    def withhold(self) -> None:
        """This request will not be answered: a server that stops need not wait for it."""
        self._is_withheld = True

    def shutdown(self) -> None:
        """The server stops: finish what is being answered."""
        super().shutdown()
        if self._is_withheld:
            self.transport.abort()


def is_broken(scope: Any) -> bool:
    """Whether the connection that a request came on is no more."""
    line: LineProtocol | None = scope.get("extensions", {}).get("waypost.line")
    return line is not None and line.transport.is_closing()  # None: it came from this process
