"""Reading a Graph request from ASGI and writing its response: without a framework, because it is the hot path."""

import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from contextlib import aclosing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
from msgspec.structs import replace

from waypost.base.http.multipart import MultipartReader, PartHead
from waypost.base.http.request_bodies import has_too_many_members
from waypost.base.invalid_values import describe_malformed_json
from waypost.base.json_values import object_or_none
from waypost.simulator.apis.errors import GraphApiError, bad_parameter
from waypost.simulator.apis.files import read_chunks


def unreadable_form(reason: str) -> GraphApiError:
    """Return the error for a body that cannot be read."""
    return bad_parameter(f"The request body is not a readable form: {reason}.")


class MultipartForm:
    """One multipart body: call `next_part`, then `chunks` or `text` for its content, and repeat.

    Raises:
        GraphApiError: the header names no boundary, or later the body is no readable form.
    """

    def __init__(self, content_type: str, body: AsyncIterator[bytes]) -> None:
        self._reader = MultipartReader(content_type, make_error=unreadable_form)
        self._body = body
        self._read: deque[PartHead | bytes] = deque()
        self._is_complete = False

    async def next_part(self) -> PartHead | None:
        """Return the next part's head, skipping the rest of the part before; None after the last."""
        while await self._has_more():
            item = self._read.popleft()
            if isinstance(item, PartHead):
                return item
        return None

    async def chunks(self) -> AsyncIterator[bytes]:
        """Yield the content of the part whose head was read last."""
        while await self._has_more() and isinstance(chunk := self._read[0], bytes):
            self._read.popleft()
            yield chunk

    async def text(self, *, max_bytes: int) -> str:
        """Return the content of a plain field.

        Raises:
            GraphApiError: it has more than `max_bytes`, or is not UTF-8.
        """
        content = bytearray()
        async for chunk in self.chunks():
            content += chunk
            if len(content) > max_bytes:
                raise unreadable_form(f"a field has more than {max_bytes} bytes")
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            raise unreadable_form("a field is not UTF-8") from error

    async def _has_more(self) -> bool:
        while not self._read and not self._is_complete:
            chunk = await anext(self._body, None)
            if chunk is None:
                self._reader.finish()
                self._is_complete = True
            else:
                self._read.extend(self._reader.feed(chunk))
        return bool(self._read)


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_MAX_GRAPH_BODY_BYTES: Final = 4 * 1024 * 1024
_MAX_FORM_FIELD_BYTES: Final = 1024 * 1024
_MAX_FORM_FIELDS: Final = 1_000
_USED_HEADERS: Final = frozenset({b"authorization", b"content-type", b"host", b"file_offset", b"file-offset"})
_PATH: Final = re.compile(
    r"(?:/(v\d+\.\d+))?/((?:signups/)?[^/]+)(?:/(message_templates/(?:un)?archive|"
    r"payment_configuration/[^/]+|message_qrdls/[^/]+|payments/[^/]+/[^/]+|[^/]+))?/?"
)
_NAMES_IN_EDGE: Final = re.compile(r"(payment_configuration|payments|message_qrdls)/(.+)")
_JSON_ERRORS: Final = (msgspec.MsgspecError, ValueError, RecursionError)
GRAPH_SUCCESS: Final[dict[str, Any]] = {"success": True}


class ClientDisconnected(Exception):
    """The client closed the connection before its request was complete."""


class GraphBodyStream:
    """A request's body, read chunk by chunk as it is received.

    Args:
        max_bytes: maximum size in bytes, checked on each chunk.
    """

    def __init__(self, receive: Receive, max_bytes: int) -> None:
        self._receive = receive
        self._max_bytes = max_bytes
        self._has_more = True

    def set_limit(self, max_bytes: int) -> "GraphBodyStream":
        """Set the maximum size in bytes, before the first chunk is read."""
        self._max_bytes = max_bytes
        return self

    def __aiter__(self) -> "GraphBodyStream":
        return self

    async def __anext__(self) -> bytes:
        """Return the next chunk.

        Raises:
            GraphApiError: the body is too large.
            ClientDisconnected: the client closed the connection.
        """
        while self._has_more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnected
            self._has_more = message.get("more_body", False)
            chunk: bytes = message.get("body", b"")
            self._max_bytes -= len(chunk)
            if self._max_bytes < 0:
                raise bad_parameter("The request body is too large.")
            if chunk:
                return chunk
        raise StopAsyncIteration


class Call(msgspec.Struct, frozen=True):
    """One Graph request."""

    method: str
    version: str
    object_id: str
    edge: str  # the path after the object's id; empty for the object itself; `{}` stands for each name in it
    query: dict[str, str]  # the query string's parameters
    fields: dict[str, Any]  # the body's members; parameters of the query where the body has none of that name
    token: str
    url: str  # the URL without its query, for links to further pages
    origin: str = ""  # the scheme and host of this server's URLs
    content_type: str = ""  # the header, unparsed
    file_offset: str | None = None  # the header of that name
    fail_code: int | None = None  # the error code with which a fault makes the accepted message fail
    app_id: str = ""  # the app that the token belongs to
    # of a form with files or an upload's bytes, not read yet; None for every other body
    body: GraphBodyStream | None = None
    names: tuple[str, ...] = ()  # the names in the edge


async def read_call(scope: Scope, receive: Receive) -> Call:
    """Read the request, except the body of a form with files or an upload's bytes.

    Raises:
        GraphApiError: the path or the body cannot be read, or the body is too large.
        ClientDisconnected: the client closed the connection.
    """
    headers = {name: value.decode("latin-1") for name, value in scope["headers"] if name in _USED_HEADERS}
    content_type = headers.get(b"content-type", "")
    path = _PATH.fullmatch(scope["path"])
    is_streamed = path is not None and (path[2].startswith("upload:") or content_type[:10].lower() == "multipart/")
    raw = b"" if is_streamed else await read_body(receive)
    if path is None:
        text = f"Unknown path components: {scope['path'][:200]}"
        raise GraphApiError(400, {"message": text, "type": "OAuthException", "code": 2500})
    query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    fields = _read_fields(content_type, raw) if raw else {}
    if query:
        fields = {**{name: parse_parameter(value) for name, value in query.items()}, **fields}
    scheme, _, token = headers.get(b"authorization", "").partition(" ")
    if scheme.lower() not in ("bearer", "oauth"):
        token = query.get("access_token", "")
    origin = f"{scope.get('scheme', 'http')}://{headers.get(b'host', 'localhost')}"
    edge, names = path[3] or "", tuple[str, ...]()
    if named := _NAMES_IN_EDGE.fullmatch(edge):  # `{}` stands in place of the names
        names = tuple(named[2].split("/"))
        edge = "/".join((named[1], *("{}" for _ in names)))
    return Call(
        method=scope["method"],
        version=path[1] or "v25.0",
        object_id=path[2],
        edge=edge,
        names=names,
        query=query,
        fields=fields,
        token=token.strip(),
        url=f"{origin}{scope['path']}",
        origin=origin,
        content_type=content_type,
        file_offset=headers.get(b"file_offset", headers.get(b"file-offset")),
        body=GraphBodyStream(receive, _MAX_GRAPH_BODY_BYTES) if is_streamed else None,
    )


async def add_form_fields(call: Call) -> Call:
    """Return the call with the plain fields of its multipart form; files are skipped.

    Raises:
        GraphApiError: the form cannot be read, or is too large.
    """
    fields = dict(call.fields)
    form = open_form(call)
    while (head := await form.next_part()) is not None:
        if head.file_name is None:
            fields[head.name] = parse_parameter(await form.text(max_bytes=_MAX_FORM_FIELD_BYTES))
    return replace(call, fields=fields, body=None)


def open_form(call: Call, *, max_bytes: int = _MAX_GRAPH_BODY_BYTES) -> MultipartForm:
    """Return the call's multipart form.

    Raises:
        GraphApiError: the body is no form.
    """
    if call.body is None:
        raise bad_parameter("The request body must be multipart/form-data.")
    return MultipartForm(call.content_type, call.body.set_limit(max_bytes))


async def read_body(receive: Receive) -> bytes:
    """Return the request's body, of at most 4 MiB.

    Raises:
        GraphApiError: it is larger.
        ClientDisconnected: the client closed the connection.
    """
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnected
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > _MAX_GRAPH_BODY_BYTES:
            raise bad_parameter(f"The request body has at most {_MAX_GRAPH_BODY_BYTES} bytes.")
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def send_json(send: Send, status: int, content: object, headers: tuple[tuple[bytes, bytes], ...] = ()) -> None:
    """Write a JSON response."""
    body = msgspec.json.encode(content)
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [
                (b"content-type", b"application/json; charset=UTF-8"),
                (b"content-length", str(len(body)).encode()),
                *headers,
            ],
        }
    )
    await send({"type": "http.response.body", "body": body})


@dataclass(frozen=True)
class Download:
    """A response whose body is a file, or `content` if there is no file on disk."""

    mime_type: str
    size_bytes: int
    path: Path | None = None
    content: bytes = b""


async def send_download(send: Send, download: Download) -> None:
    """Write a file as the response."""
    await send(
        {
            "type": "http.response.start",
            "status": 200,
            "headers": [
                (b"content-type", download.mime_type.encode("latin-1")),
                (b"content-length", str(download.size_bytes).encode()),
            ],
        }
    )
    if download.path is not None:
        async with aclosing(read_chunks(download.path)) as chunks:
            async for chunk in chunks:
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
    await send({"type": "http.response.body", "body": download.content})


def decode_json(raw: bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is no JSON, or not readable.
    """
    if has_too_many_members(raw):
        raise ValueError("has too many members")
    try:
        return msgspec.json.decode(raw)
    except _JSON_ERRORS as error:
        raise ValueError(describe_malformed_json(error)) from error


def _read_fields(content_type: str, raw: bytes) -> dict[str, Any]:
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == "application/x-www-form-urlencoded":
        if raw.count(b"&") >= _MAX_FORM_FIELDS:
            raise bad_parameter(f"The request body has at most {_MAX_FORM_FIELDS} fields.")
        pairs = parse_qsl(raw.decode(errors="replace"), keep_blank_values=True)
        return {name: parse_parameter(value) for name, value in pairs}
    try:
        fields = object_or_none(decode_json(raw))
    except ValueError as error:
        raise bad_parameter(f"The request body {error}") from error
    if fields is None:
        raise bad_parameter("The request body must be a JSON object.")
    return fields


def parse_parameter(value: str) -> Any:
    """Return the value of a parameter outside JSON: arrays and objects are JSON texts, all else is text."""
    if value[:1] in ("[", "{"):
        try:
            return decode_json(value.encode())
        except ValueError:
            return value
    return value
