"""Passes HTTP/1.1 requests for the intercepted hosts on to the sandbox, and its responses back.

A request is read to its end, so that each has its host checked and counted on a connection that is kept; its body
passes in parts. A response passes unread: both connections have the same requests, in the same order.
"""

import asyncio
import contextlib
import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

MAX_HEAD_BYTES: Final = 64 * 1024
CHUNK_BYTES: Final = 64 * 1024
_CONNECT_TIMEOUT_S: Final = 10
_REQUEST_LINE: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+) (\S+) (HTTP/1\.[01])")
_HEADER: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([^\r\n\0]*?)[ \t]*")
_CHUNK_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})[ \t]*(;[^\r\n]*)?\r?\n")
_REPLACED: Final = frozenset(
    (b"host", b"origin", b"upgrade", b"http2-settings", b"x-forwarded-host", b"x-forwarded-proto")
)

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class RelayedRequestError(Exception):
    """A request that is not passed on; the text says why, and is the response's."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True, slots=True)
class RelayedHead:
    """The head of a request.

    Attributes:
        headers: names in lower case.
        body_bytes: None: the body comes in chunks.
    """

    method: str
    target: str
    version: str
    headers: tuple[tuple[bytes, bytes], ...]
    body_bytes: int | None

    def values(self, name: bytes) -> list[str]:
        """Return the values of a header."""
        return [value.decode("latin-1") for one, value in self.headers if one == name]

    @property
    def authority(self) -> str:
        """Host and port that the request is for, in lower case. Source: RFC 9112."""
        if "://" in self.target:
            return urlsplit(self.target).netloc.rpartition("@")[2].lower()
        hosts = self.values(b"host")
        if len(hosts) != 1:
            raise RelayedRequestError(400, f"a request has one header Host, and this one has {len(hosts)}")
        return hosts[0].lower()


async def read_head(reader: asyncio.StreamReader) -> RelayedHead | None:
    """Return the head of the next request; None if the connection ends before one.

    Raises:
        RelayedRequestError: it is no request of HTTP/1.1, or is too long.
    """
    try:
        raw = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    except asyncio.LimitOverrunError as error:
        raise RelayedRequestError(431, f"the head of a request has at most {MAX_HEAD_BYTES} bytes") from error
    lines = raw[:-4].lstrip(b"\r\n").split(b"\r\n")
    first = _REQUEST_LINE.fullmatch(lines[0])
    headers = [_HEADER.fullmatch(line) for line in lines[1:]]
    if first is None or not all(headers):
        raise RelayedRequestError(400, "this is no request of HTTP/1.1")
    pairs = tuple((one[1].lower(), one[2]) for one in headers if one is not None)
    method, target, version = (part.decode("latin-1") for part in first.groups())
    try:
        urlsplit(target)
    except ValueError as error:
        raise RelayedRequestError(400, "the target of the request is no URL") from error
    return RelayedHead(method, target, version, pairs, _body_bytes(pairs))


def _body_bytes(headers: tuple[tuple[bytes, bytes], ...]) -> int | None:
    """Return the length of the body; None if it comes in chunks. Source: RFC 9112."""
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    lengths = {value for name, value in headers if name == b"content-length"}
    if codings:
        if lengths or [coding.lower() for coding in codings] != [b"chunked"]:
            raise RelayedRequestError(400, "a body has Transfer-Encoding: chunked or a Content-Length, not both")
        return None
    if len(lengths) > 1 or not all(length.isdigit() and len(length) <= 16 for length in lengths):
        raise RelayedRequestError(400, "Content-Length must be one whole number")
    return int(next(iter(lengths), b"0"))


@dataclass(frozen=True, slots=True)
class RelayTarget:
    """The target of the requests of a host: one side of the sandbox."""

    base_url: str

    async def connect(self) -> Streams:
        """Return a new connection."""
        parts = urlsplit(self.base_url)
        is_tls = parts.scheme == "https"
        async with asyncio.timeout(_CONNECT_TIMEOUT_S):
            return await asyncio.open_connection(
                parts.hostname, parts.port or (443 if is_tls else 80), ssl=is_tls or None, limit=CHUNK_BYTES
            )


class RequestRelay:
    """Serves connections on which requests for intercepted hosts arrive, and counts them.

    Attributes:
        requests: number of requests by host.

    Args:
        targets: by host.
    """

    def __init__(self, targets: Mapping[str, RelayTarget]) -> None:
        self._targets = targets
        self.requests: Counter[str] = Counter()

    async def serve(
        self, client: Streams, *, scheme: str, host: str | None = None, first: RelayedHead | None = None
    ) -> None:
        """Serve a connection until either end closes it.

        Args:
            scheme: by which the client reaches the host.
            host: whose certificate the connection has; None: each request names its own.
            first: a request to a proxy, which is the only one of its connection.
        """
        reader, writer = client
        opened: list[asyncio.StreamWriter] = []
        passing: list[asyncio.Task[None]] = []
        reading = asyncio.current_task()
        is_over = False

        def stop_reading(_task: asyncio.Task[None]) -> None:
            if not is_over and reading is not None:  # the sandbox has closed the connection: so do we
                writer.close()

        try:
            while head := first or await read_head(reader):
                name = self._check_host(head, host)
                self.requests[name] += 1
                if not opened:
                    responses, upstream = await self._connect(self._targets[name])
                    opened.append(upstream)
                    passing.append(asyncio.ensure_future(pass_on(responses, writer)))
                    passing[0].add_done_callback(stop_reading)
                upstream = opened[0]
                upstream.write(_rewrite_head(head, name, self._targets[name], scheme, is_only=first is not None))
                await _pass_body(head, reader, upstream)
                if first is not None:
                    await passing[0]
                    return
        except RelayedRequestError as error:
            await respond(writer, error.status, str(error))
        finally:
            is_over = True
            for upstream in opened:
                upstream.close()
            for task in passing:
                task.cancel()
            await asyncio.gather(*passing, return_exceptions=True)

    def _check_host(self, head: RelayedHead, host: str | None) -> str:
        name, _, port = head.authority.partition(":")
        if port not in ("", "80", "443") or name not in self._targets or host not in (None, name):
            reached = f"the connection is for {host}" if host else "only hosts of the table are served here"
            raise RelayedRequestError(421, f"the request is for {head.authority[:200]!r}, and {reached}")
        return name

    async def _connect(self, target: RelayTarget) -> Streams:
        try:
            return await target.connect()
        except OSError as error:  # TimeoutError is one
            raise RelayedRequestError(502, f"the sandbox at {target.base_url} does not respond") from error


def _rewrite_head(head: RelayedHead, name: str, target: RelayTarget, scheme: str, *, is_only: bool) -> bytes:
    """Return the head for the sandbox, which accepts its own name only; what the client named stands beside it."""
    path = head.target
    if "://" in path:
        parts = urlsplit(path)
        path = parts._replace(scheme="", netloc="", path=parts.path or "/").geturl()
    lines = [f"{head.method} {path} {head.version}".encode("latin-1")]
    lines.append(f"host: {urlsplit(target.base_url).netloc}".encode("latin-1"))
    lines.append(f"x-forwarded-host: {name}\r\nx-forwarded-proto: {scheme}".encode())
    for header, value in head.headers:
        if header == b"origin":
            is_ours = urlsplit(value.decode("latin-1")).hostname == name
            lines.append(b"origin: " + (target.base_url.encode() if is_ours else value))
        elif header == b"connection":
            kept = [part for part in value.lower().replace(b" ", b"").split(b",") if part not in _REPLACED]
            if kept and not is_only:
                lines.append(b"connection: " + b", ".join(kept))
        elif header not in _REPLACED and not header.startswith(b"proxy-"):
            lines.append(header + b": " + value)
    if is_only:
        lines.append(b"connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n"


async def _pass_body(head: RelayedHead, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass the body of a request on, part by part, as it is."""
    await writer.drain()
    if head.body_bytes is not None:
        await _pass_bytes(head.body_bytes, reader, writer)
        return
    while True:
        line = await _read_line(reader)
        size = _CHUNK_SIZE.fullmatch(line)
        if size is None:
            raise RelayedRequestError(400, "a chunk of the body has no size")
        writer.write(line)
        if not int(size[1], 16):
            break
        await _pass_bytes(int(size[1], 16), reader, writer)
        end = await _read_line(reader)
        if end.strip():
            raise RelayedRequestError(400, "a chunk of the body is longer than its size")
        writer.write(end)
    while (trailer := await _read_line(reader)).strip():
        writer.write(trailer)
    writer.write(trailer)
    await writer.drain()


async def _read_line(reader: asyncio.StreamReader) -> bytes:
    try:
        line = await reader.readline()
    except ValueError as error:  # longer than the limit of the reader
        raise RelayedRequestError(400, "a line of the body is too long") from error
    if not line.endswith(b"\n"):
        raise ConnectionResetError
    return line


async def _pass_bytes(count: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while count:
        part = await reader.read(min(count, CHUNK_BYTES))
        if not part:
            raise ConnectionResetError
        writer.write(part)
        await writer.drain()
        count -= len(part)


async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Pass bytes on until they end."""
    with contextlib.suppress(OSError):
        while part := await reader.read(CHUNK_BYTES):
            writer.write(part)
            await writer.drain()


async def respond(writer: asyncio.StreamWriter, status: int, text: str) -> None:
    """Send an error of ours as the last response of a connection."""
    body = json.dumps({"error": {"message": f"waypost intercept: {text}", "type": "WaypostIntercept"}}).encode()
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
    )
    with contextlib.suppress(OSError):
        writer.write(head.encode() + body)
        await writer.drain()
