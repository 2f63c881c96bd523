"""HTTP/1.1 of all our servers: httptools, with limits on size and time.

The parser keeps a header until its last byte has arrived, and copies it with every chunk; uvicorn limits
neither its size nor its time. Here both are limited before an application sees the request, and an error
of the server itself has the format of the API.
"""

import asyncio
import select
import socket
import struct
from enum import Enum
from typing import Any, Final, cast
from urllib.parse import unquote

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import HIGH_WATER_LIMIT, FlowControl
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from waypost.assembly.http.cycle import RequestCycle
from waypost.assembly.http.limits import (
    MAX_HEADER_BYTES,
    MAX_HEADERS,
    MAX_UNPARSED_BYTES,
    MAX_URL_BYTES,
    Connections,
    HttpError,
)
from waypost.assembly.http.pacing import UnpaidRequests
from waypost.base.http.connection_scope import CONNECTION

PARSER_CHUNK_BYTES: Final = 16 * 1024
"""Size of the chunks for the parser: the limits are checked after each chunk."""

MAX_READ_AHEAD: Final = 2
"""Requests of a connection that are parsed while another one of it is responded to. What follows them is parsed as
they are responded to, so that connections are served in turn."""

READ_AHEAD_EVERY_S: Final = 0.01
"""How often a connection with more pipelined requests than that is parsed on: no client that works sends so many, and
a few connections at full speed would take most of the loop's time."""

BODY_STEP_BYTES: Final = 512
"""In a body the parser gets at least so many bytes at once, so that a body of line breaks costs no more than another.
So behind its end this many bytes of further requests may be read ahead."""

WRITE_BUFFER_BYTES: Final = 32 * 1024
"""Of a response that waits to be read; then its application waits too."""

_HEAD_END: Final = b"\r\n\r\n"
_ASGI: Final = {"version": "3.0", "spec_version": "2.3"}
_NOTHING: Final[Any] = None  # for the original's attributes, which it declares as always set

LINGER_S: Final = 2.0
"""How long a rejected client can read the response. A connection that is closed while its client still sends
is reset, and the response is lost."""

LINGER_BYTES: Final = 4_000_000
"""How much more a rejected client can send: it is read and dropped. The rest waits at the client."""

NEW_CONNECTION_GRACE_S: Final = 0.5
"""How long a stop waits for the first request of a new connection: its client has opened it to send one."""

RECHECK_S: Final = 0.02
"""How often a stop looks again at a connection that may get a request in a moment."""

URL_TOO_LONG: Final = HttpError(414, f"The URL must be at most {MAX_URL_BYTES} bytes.")
HEADERS_TOO_LARGE: Final = HttpError(
    431, f"The headers of a request must be at most {MAX_HEADER_BYTES} bytes in total."
)
TOO_MANY_HEADERS: Final = HttpError(431, f"A request must have at most {MAX_HEADERS} headers.")
TOO_MUCH_PIPELINED: Final = HttpError(503, "The server has no room for more pipelined requests; send them again.")
MALFORMED: Final = HttpError(400, "The request is not valid HTTP/1.1.")
WRONG_VERSION: Final = HttpError(400, "The request line must end in HTTP/1.1 or HTTP/1.0.")
WRONG_HOST: Final = HttpError(400, "A request must have the header Host once; only one of HTTP/1.0 may have none.")
_VERSIONS: Final = frozenset({"1.1", "1.0"})


class _Phase(Enum):
    IDLE = "no request has begun"
    HEADERS = "headers are being received"
    BODY = "the body is being received"


class _LimitReached(Exception):
    """Stops the parser; `_error` has the limit that was exceeded."""


class _HeldFlow(FlowControl):
    """The flow control of a connection.

    Attributes:
        is_held: nothing is read, whatever an application wants: what was read before waits to be parsed.
    """

    is_held = False

    def resume_reading(self) -> None:
        """Read on, unless it is held."""
        if self.read_paused and not self.is_held:
            super().resume_reading()


class LimitedProtocol(HttpToolsProtocol):
    """HTTP by httptools, with limits.

    Args:
        connections: the connections of one server, with its limits.

    Attributes:
        is_authenticated: a request of this connection had a valid credential.
        is_carried_out: the open request has a valid credential, and has not been rejected.
    """

    parser: Any
    app: Any
    scope: Any
    cycle: Any

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
        *,
        connections: Connections | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._open_connections = connections or Connections()
        self._limits = self._open_connections.limits
        self._phase = _Phase.IDLE
        self._error: HttpError | None = None
        self._is_rejected = False
        self._has_begun = False  # the headers of a request have been complete
        self._linger_timer: asyncio.TimerHandle | None = None
        self._since_s = self.loop.time()  # start of the headers, or of the body's period
        self._period_bytes = 0
        self._unframed_bytes = 0  # since the last header block, body chunk or end of a request
        self._dropped_bytes = 0  # after a rejection
        self._header_bytes = 0
        self._host_count = 0
        self.is_authenticated = self.is_carried_out = False
        self._application = self.app
        self.app = self._unpaid = UnpaidRequests(self, self._open_connections, self.app)
        self._unparsed: tuple[bytes, int] | None = None  # what was read, and from where on it is not parsed yet
        self._rest_timer: asyncio.TimerHandle | None = None
        self._held_flow: _HeldFlow = cast("Any", None)
        self._is_arriving = False  # `Connections` knows that a request is being received
        self._unread_since_s: float | None = None  # start of a period of a response that the client has to read
        self._unread_bytes = 0  # at that start
        self._has_drained = False  # since that start

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Serve the connection, or reject it if there are too many."""
        super().connection_made(transport)
        self.flow = self._held_flow = _HeldFlow(transport)
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self._is_arriving = True
        bound = transport.get_extra_info("socket")
        address = self.client[0] if self.client else ""
        error = self._open_connections.admit(self, address, bound.fileno() if bound is not None else -1)
        if error is not None:
            self._is_rejected = True
            self._write_error(error)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up: the connection is closed."""
        self._open_connections.remove(self)
        if self._linger_timer is not None:
            self._linger_timer.cancel()
        if self._rest_timer is not None:
            self._rest_timer.cancel()
            self._rest_timer = None
        self._unpaid.end(self.scope, is_paid=self.app is self._application or self.is_carried_out)
        super().connection_lost(exc)
        # Requests and scopes refer to their connection. It lets go of them, so that all are freed now and do not wait
        # for the garbage collector.
        self.pipeline.clear()
        self.app = self._unpaid = _NOTHING
        self._keep_unparsed(None)
        self.cycle = self.scope = self.headers = _NOTHING

    def data_received(self, data: bytes) -> None:
        """Parse the data, chunk by chunk."""
        if self._is_rejected:
            self._dropped_bytes += len(data)
            if self._dropped_bytes > LINGER_BYTES:
                self.flow.pause_reading()
            return
        if self._unparsed is not None:  # the transport had read this already when reading was paused
            unparsed, start = self._unparsed
            self._keep_unparsed((unparsed[start:] + data, 0))
            return
        if self.app is self._application:
            self._parse_from(data, 0)
        else:
            self._unpaid.measure_parsing(self._parse_from, data)

    def _parse_from(self, data: bytes, start: int) -> None:
        """Parse the data head by head until enough requests wait; keep the rest."""
        if self._phase is _Phase.IDLE:
            self._phase, self._since_s = _Phase.HEADERS, self.loop.time()
            self._open_connections.mark_active(self)
        size = len(data)
        while start < size:
            if len(self.pipeline) >= MAX_READ_AHEAD:
                self._keep_unparsed((data, start))
                if self._is_rejected:
                    return
                self.flow.pause_reading()
                self._held_flow.is_held = True
                break
            end = min(start + PARSER_CHUNK_BYTES, size)
            first = start + BODY_STEP_BYTES if self._phase is _Phase.BODY else start
            head_end = data.find(_HEAD_END, first, end)
            if head_end >= 0 and data.find(_HEAD_END, head_end + len(_HEAD_END), end) >= 0:
                end = head_end + len(_HEAD_END)  # else at most one more request begins here
            self._unframed_bytes += end - start
            self._period_bytes += end - start
            try:
                self.parser.feed_data(data if end - start == size else memoryview(data)[start:end])
            except httptools.HttpParserUpgrade:
                pass  # handled like any other request
            except httptools.HttpParserError:
                self._reject(self._error or MALFORMED)
                return
            if self._unframed_bytes > MAX_HEADER_BYTES:
                self._reject(HEADERS_TOO_LARGE)
            if self._is_rejected or (end < size and self.transport.is_closing()):
                return
            start = end
        is_arriving = cast("_Phase", self._phase) is not _Phase.IDLE and self._unparsed is None  # callbacks change it
        if is_arriving is not self._is_arriving:
            self._is_arriving = is_arriving
            self._open_connections.mark_arriving(self, is_arriving)

    def _keep_unparsed(self, unparsed: tuple[bytes, int] | None) -> None:
        """Keep what is parsed later, instead of what was kept; if that is too much on all connections, end this one."""
        connections = self._open_connections
        connections.unparsed_bytes -= len(self._unparsed[0]) if self._unparsed is not None else 0
        self._unparsed = None
        if unparsed is None:
            return
        if connections.unparsed_bytes + len(unparsed[0]) > MAX_UNPARSED_BYTES:
            self._reject(TOO_MUCH_PIPELINED)
            return
        self._unparsed = unparsed
        connections.unparsed_bytes += len(unparsed[0])

    def _parse_rest(self) -> None:
        """Parse on, when there is room for another request."""
        self._rest_timer = None
        if self._unparsed is None or self._is_rejected or self.transport.is_closing():
            return
        data, start = self._unparsed
        self._keep_unparsed(None)
        self._held_flow.is_held = False
        self._since_s = self.loop.time()  # the delay was ours
        self._parse_from(data, start)
        self.flow.resume_reading()

    # Callbacks of the parser.

    def on_message_begin(self) -> None:
        """Begin a request; if it follows another in the same data, its time begins now."""
        if self._phase is _Phase.IDLE:
            self._phase, self._since_s = _Phase.HEADERS, self.loop.time()
        self._header_bytes = self._host_count = 0
        self.url = b""
        self.expect_100_continue = False
        self.headers = []
        scope: Any = {
            "type": "http",
            "asgi": _ASGI,
            "server": self.server,
            "client": self.client,
            "scheme": self.scheme,
            "root_path": "",
            "headers": self.headers,
            "state": {},
            "extensions": {CONNECTION: self},
        }
        self.scope = scope

    def on_url(self, url: bytes) -> None:
        """Check the URL, which arrives in parts."""
        self.url += url
        if len(self.url) > MAX_URL_BYTES:
            self._stop_parsing(URL_TOO_LONG)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Check a header, or a trailer after the body."""
        headers = self.headers
        self._header_bytes += len(name) + len(value) + 4
        if len(headers) >= MAX_HEADERS:
            self._stop_parsing(TOO_MANY_HEADERS)
        if self._header_bytes > MAX_HEADER_BYTES:
            self._stop_parsing(HEADERS_TOO_LARGE)
        name = name.lower()
        if name == b"host":
            self._host_count += 1
        elif name == b"expect" and value.lower() == b"100-continue":
            self.expect_100_continue = True
        headers.append((name, value))

    def on_headers_complete(self) -> None:
        """Pass the request to the application; its body has its own timeout."""
        parser: Any = self.parser
        version = parser.get_http_version()
        if version not in _VERSIONS:
            self._stop_parsing(WRONG_VERSION)
        if self._host_count != 1 and (self._host_count or version == "1.1"):
            self._stop_parsing(WRONG_HOST)
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        scope: Any = self.scope
        scope["http_version"] = version
        scope["method"] = parser.get_method().decode("ascii")
        scope["path"] = unquote(path) if "%" in path else path
        scope["raw_path"] = url.path
        scope["query_string"] = url.query or b""
        earlier = cast("RequestCycle | None", self.cycle)
        keep_alive = version != "1.0" and parser.should_keep_alive() and not self._open_connections.is_draining
        self.cycle = RequestCycle(self, keep_alive=keep_alive)
        if earlier is None or earlier.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))
        self._has_begun = True
        self._phase, self._since_s = _Phase.BODY, self.loop.time()
        self._unframed_bytes = self._period_bytes = 0

    def on_body(self, body: bytes) -> None:
        """Keep a part of the body for the application."""
        self._unframed_bytes = 0
        cycle = self.cycle
        if cycle.response_complete:
            return
        cycle.body += body
        if len(cycle.body) > HIGH_WATER_LIMIT:
            self.flow.pause_reading()
        cycle.message_event.set()

    def on_message_complete(self) -> None:
        """Note that the request is complete."""
        self._phase, self._unframed_bytes = _Phase.IDLE, 0
        cycle = self.cycle
        if not cycle.response_complete:
            cycle.more_body = False
            cycle.message_event.set()
        elif not self.pipeline:  # the response was complete before the body was read
            self._become_idle()

    def on_response_complete(self) -> None:
        """Note that the response is written; the connection continues with the next request, or waits for it."""
        if self.app is self._application and not self.is_carried_out:
            self.app = self._unpaid
        self.is_carried_out = False
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            cycle, application = self.pipeline.pop()
            self._start_asgi_task(cycle, application)
        if self._unparsed is not None:
            if self._rest_timer is None:
                self._rest_timer = self.loop.call_later(READ_AHEAD_EVERY_S, self._parse_rest)
        elif self._phase is _Phase.IDLE and self.cycle.response_complete:
            self._become_idle()

    def _become_idle(self) -> None:
        """Wait for the next request; until then, nothing of this one is kept."""
        self._since_s = self.loop.time()
        self._open_connections.mark_idle(self)
        self.scope = self.headers = self.cycle.scope = _NOTHING

    def _stop_parsing(self, error: HttpError) -> None:
        self._error = error
        raise _LimitReached

    # Timeouts.

    def check_deadlines(self, now_s: float) -> None:
        """Reject a request that arrives too slowly; end a connection whose response is not read, or that is idle."""
        self._check_reader(now_s)
        if self._is_rejected or self.transport.is_closing():
            return
        if self._unparsed is not None:  # the delay is ours
            return
        elapsed_s = now_s - self._since_s
        if self._phase is _Phase.BODY:
            self._check_body(now_s, elapsed_s)
        elif self._phase is _Phase.HEADERS:
            timeout_s = self._limits.header_timeout_s
            if elapsed_s >= timeout_s:
                self._reject(HttpError(408, f"The headers must arrive within {timeout_s:g} seconds."))
        elif not self._has_begun and elapsed_s >= self._limits.header_timeout_s:
            self.transport.close()  # the client has never sent anything
        elif self._has_begun and elapsed_s >= self.timeout_keep_alive and self._unanswered_cycle() is None:
            self.transport.close()

    def _check_body(self, now_s: float, elapsed_s: float) -> None:
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:  # the delay is ours
            self._since_s, self._period_bytes = now_s, 0
            return
        timeout_s, rate = self._limits.body_timeout_s, self._limits.min_body_rate
        if elapsed_s < timeout_s:
            return
        if self._period_bytes < rate * timeout_s:
            text = f"A body must arrive at {rate} bytes a second at least, over {timeout_s:g} seconds."
            self._reject(HttpError(408, text))
            return
        self._since_s, self._period_bytes = now_s, 0

    def _check_reader(self, now_s: float) -> None:
        """Abort a connection whose client reads a response more slowly than a body may arrive."""
        unread_bytes, limits = self.transport.get_write_buffer_size(), self._limits
        if not (unread_bytes and limits.min_body_rate):
            self._unread_since_s = None
            return
        enough = int(limits.min_body_rate * limits.body_timeout_s)
        if self._unread_since_s is None or self._has_drained or unread_bytes <= self._unread_bytes - enough:
            self._unread_since_s, self._unread_bytes, self._has_drained = now_s, unread_bytes, False
        elif now_s - self._unread_since_s >= limits.body_timeout_s:
            self.transport.abort()

    def resume_writing(self) -> None:
        """Note that the client has read most of what was written."""
        self._has_drained = True
        super().resume_writing()

    def mark_authenticated(self) -> None:
        """Note that a request of this connection had a valid credential."""
        self.is_authenticated = True
        self._open_connections.mark_authenticated(self)

    def end_for_another(self) -> None:
        """End the connection at once, to make room for another."""
        self._open_connections.remove(self)
        if self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            self.transport.close()

    # The end of the server.

    def end_after_response(self) -> None:
        """Close after the response to the open request; it says so, if it has not begun."""
        cycle = self._unanswered_cycle()
        if cycle is not None and cycle.keep_alive:
            cycle.end_connection(self)

    def announce_end(self) -> None:
        """Let the response to the open request say that the connection ends; once it has begun, the next one does."""
        cycle = self._unanswered_cycle()
        if cycle is not None and not cycle.response_started:
            self.end_after_response()

    def shutdown(self) -> None:
        """End the connection: at once if no request is open or arriving, otherwise after its response.

        A client that has sent a request and gets no byte of a response cannot know whether it was carried out.
        """
        if self._unpaid is _NOTHING:  # the connection was closed before another look at it
            return
        self._unpaid.release()
        is_new = not self._has_begun and self.loop.time() - self._since_s < NEW_CONNECTION_GRACE_S
        if self._is_rejected:
            super().shutdown()
        elif self._phase is not _Phase.IDLE or self._unanswered_cycle() is not None:
            self.end_after_response()
        elif self.transport.is_closing():
            return
        elif self._unparsed is not None or is_new or self._has_unread_bytes():
            self.loop.call_later(RECHECK_S, self.shutdown)
        else:
            self.transport.close()

    def _unanswered_cycle(self) -> RequestCycle | None:
        cycle = cast("RequestCycle | None", self.cycle)  # None before the first request
        return None if cycle is None or cycle.response_complete else cycle

    def _has_unread_bytes(self) -> bool:
        """True if the socket has received something, or its end, that has not been read."""
        bound = self.transport.get_extra_info("socket")
        if bound is None or bound.fileno() < 0:  # a closed one
            return False
        poll = select.poll()
        poll.register(bound.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    # Error responses of the server itself.

    def _reject(self, error: HttpError) -> None:
        """Send an error, unless a response has begun, and close."""
        self._is_rejected = True
        cycle = self.cycle
        if self._phase is _Phase.BODY:
            if self.pipeline or cycle.response_started:
                self.transport.close()
                return
            cycle.disconnected = True  # the application's response is dropped
            cycle.message_event.set()
        elif self._has_begun and not cycle.response_complete:
            cycle.keep_alive = False  # the previous request gets its response, and then the connection is closed
            return
        delay_s = self._unpaid.charge(self.scope)
        if delay_s > 0:
            self._open_connections.paced_responses += 1
            self._linger_timer = self.loop.call_later(delay_s, self._send_rejection, error)
        else:
            self._send_rejection(error)

    def _send_rejection(self, error: HttpError) -> None:
        self._write_error(error)
        self._linger()

    def close_after_response(self) -> None:
        """Close; if the client still sends its body, only after it has had time to read the response."""
        if self._phase is _Phase.BODY and not self.transport.is_closing():
            self._is_rejected = True
            self._linger()
        else:
            self.transport.close()

    def _linger(self) -> None:
        self.flow.resume_reading()
        if self.transport.can_write_eof():
            self.transport.write_eof()
        self._linger_timer = self.loop.call_later(LINGER_S, self.transport.abort)

    def error_body(self, status: int, text: str) -> bytes:
        """Return the body of an error of the server itself."""
        return self._open_connections.error_body(status, text)

    def _write_error(self, error: HttpError) -> None:
        self._open_connections.errors_sent[error.status] += 1
        body = self.error_body(error.status, error.text)
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


class BreakableProtocol(LimitedProtocol):
    """A protocol that lets an application break the connection of its request.

    ASGI does not support this, so it is an extension of the scope, `waypost.connection`: an object with
    `reset()`, `hang_up()` and `withhold()`, which only the simulator's faults use, and `mark_authenticated()`.
    """

    def reset(self) -> None:
        """Break the connection at once, like a machine that crashes: the client sees a reset."""
        bound = self.transport.get_extra_info("socket")
        if bound is not None:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.transport.abort()

    def hang_up(self) -> None:
        """Close the connection after the bytes written so far, even if the response is incomplete."""
        self.transport.close()

    def withhold(self) -> None:
        """Send no response to this request: a server that stops does not wait for it."""
        cycle = self._unanswered_cycle()
        if cycle is not None:  # else the connection is closed
            cycle.is_withheld = True

    def shutdown(self) -> None:
        """Finish the open request, because the server stops."""
        super().shutdown()
        cycle = self._unanswered_cycle()
        if cycle is not None and cycle.is_withheld:
            self.transport.abort()


def is_disconnected(scope: Any) -> bool:
    """True if the connection of a request is closed."""
    connection: BreakableProtocol | None = scope.get("extensions", {}).get("waypost.connection")
    return connection is not None and connection.transport.is_closing()  # None: a request from this process
