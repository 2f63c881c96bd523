"""A load generator that is light enough not to affect the measurement: prepared bytes, bare protocols."""

import asyncio
import gc
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from benchmarks.bare import API_KEY, SOURCES, TEMPLATE_ID

FIRST_PHONE = 15_560_000_000
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its response; times are seconds of the machine's monotonic clock."""

    began_s: float
    ended_s: float
    response: bytes

    @property
    def message_id(self) -> str:
        """The message id in the response."""
        return self.response[-38:-2].decode()


def session_text(phone: int, source: str) -> bytes:
    """Return a request that sends a session text."""
    message = '{"type":"text","text":"Your order 4711 is ready. Shall we bring it today?"}'
    return _request("/wa/api/v1/msg", phone, API_KEY, source, SOURCES[source], {"message": message})


def template_message(phone: int, source: str) -> bytes:
    """Return a request that sends a template message with postback texts."""
    return template_message_of(phone, API_KEY, source, SOURCES[source], TEMPLATE_ID)


def template_message_of(phone: int, key: str, source: str, app: str, template_id: str) -> bytes:
    """Return the same request of any partner."""
    fields = {
        "template": f'{{"id":"{template_id}","params":["Ann","4711"]}}',
        "postbackTexts": '[{"index":0,"text":"yes"},{"index":1,"text":"later"}]',
    }
    return _request("/wa/api/v1/template/msg", phone, key, source, app, fields)


def prepare_requests(make: Callable[[int, str], bytes], *, phones: int, sources: int) -> list[bytes]:
    """Return one request for each phone, with the sources in turn."""
    selected = list(SOURCES)[:sources]
    return [make(FIRST_PHONE + n, selected[n % sources]) for n in range(phones)]


def _request(path: str, phone: int, key: str, source: str, app: str, fields: dict[str, str]) -> bytes:
    form = {"channel": "whatsapp", "source": source, "destination": str(phone), "src.name": app, **fields}
    body = urlencode(form).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\napikey: {key}\r\n"
        f"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


async def send_closed_loop(port: int, requests: Iterator[bytes], *, connections: int) -> list[Exchange]:
    """Send requests; each connection sends the next one as soon as it has the response to the last."""
    return await _Load(requests).run(port, connections)


class _Load:
    """Gives requests to connections and collects their responses."""

    def __init__(self, requests: Iterator[bytes]) -> None:
        self._requests = requests
        self._open = 0
        self._ended = asyncio.Event()
        self.exchanges: list[Exchange] = []
        self.failure: str | None = None

    async def run(self, port: int, connections: int) -> list[Exchange]:
        """Connect, send everything, return every response."""
        loop = asyncio.get_running_loop()
        gc.collect()
        gc.disable()  # a pause of ours would look like one of the server's
        try:
            self._open = connections
            for _ in range(connections):
                await loop.create_connection(lambda: _Connection(self), "127.0.0.1", port)
            await self._ended.wait()
        finally:
            gc.enable()
        if self.failure:
            raise RuntimeError(self.failure)
        return self.exchanges

    def assign_next(self, connection: "_Connection") -> None:
        """Give a free connection the next request."""
        request = next(self._requests, None)
        if request is None:
            connection.transport.close()
        else:
            connection.send(request)

    def connection_closed(self) -> None:
        """Note that a connection has been closed."""
        self._open -= 1
        if not self._open:
            self._ended.set()


class _Connection(asyncio.Protocol):
    def __init__(self, load: _Load) -> None:
        self._load = load
        self._partial = b""
        self._began_s = 0.0
        self._length = 0  # of the last response: all have the same length, so the next one is not parsed
        self.transport: Any = None

    def connection_made(self, transport: Any) -> None:
        self.transport = transport
        self._load.assign_next(self)

    def send(self, request: bytes) -> None:
        self._began_s = time.monotonic()
        self.transport.write(request)

    def data_received(self, data: bytes) -> None:
        ended_s = time.monotonic()
        if self._partial:
            data = self._partial + data
        if len(data) != self._length and not self._is_complete(data):
            self._partial = data
            return
        self._partial = b""
        if not data.startswith(b"HTTP/1.1 200"):
            self._load.failure = data.decode("utf-8", "replace")
        self._load.exchanges.append(Exchange(self._began_s, ended_s, data))
        self._load.assign_next(self)

    def _is_complete(self, data: bytes) -> bool:
        head, separator, body = data.partition(b"\r\n\r\n")
        match = _LENGTH.search(head)
        if not separator or match is None or len(body) < int(match[1]):
            return False
        self._length = len(data)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            self._load.failure = repr(exc)
        self._load.connection_closed()
