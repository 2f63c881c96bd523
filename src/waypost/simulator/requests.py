"""Reading a Graph request from ASGI, and writing its answer: everything by hand, because it is the busy path."""

import re
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from waypost.simulator.errors import GraphRefused, bad_parameter
from waypost.simulator.loose import an_object

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_BODY_AT_MOST: Final = 4 * 1024 * 1024
_PATH: Final = re.compile(r"(?:/(v\d+\.\d+))?/([^/]+)(?:/([^/]+))?/?")
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)


class ClientGone(Exception):
    """The client closed the connection before its request was complete."""


@dataclass(frozen=True)
class Call:
    """One Graph request.

    Args:
        edge: what follows the object's id in the path; empty for the object itself.
        query: the query string's parameters.
        fields: the body's members; parameters of the query where the body has none of that name.
        raw: the body as it came.
        url: the address without its query, for links to further pages.
    """

    method: str
    version: str
    object_id: str
    edge: str
    query: dict[str, str]
    fields: dict[str, Any]
    raw: bytes
    token: str
    url: str


async def read_call(scope: Scope, receive: Receive) -> Call:
    """Read the whole request.

    Raises:
        GraphRefused: the path or the body cannot be read, or the body is too large.
        ClientGone: there was nobody left to answer.
    """
    raw = await read_body(receive)
    headers = _wanted_headers(scope)
    path = _PATH.fullmatch(scope["path"])
    if path is None:
        raise _unknown_path(scope["path"])
    query = dict(parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True))
    fields = _read_fields(headers.get(b"content-type", ""), raw) if raw else {}
    if query:
        fields = {**{name: _loose_value(value) for name, value in query.items()}, **fields}
    scheme, _, token = headers.get(b"authorization", "").partition(" ")
    if scheme.lower() not in ("bearer", "oauth"):
        token = query.get("access_token", "")
    return Call(
        method=scope["method"],
        version=path[1] or "v25.0",
        object_id=path[2],
        edge=path[3] or "",
        query=query,
        fields=fields,
        raw=raw,
        token=token.strip(),
        url=f"{scope.get('scheme', 'http')}://{headers.get(b'host', 'localhost')}{scope['path']}",
    )


async def read_body(receive: Receive) -> bytes:
    """The request's body, of at most 4 MiB.

    Raises:
        GraphRefused: it is larger.
        ClientGone: the client closed the connection.
    """
    chunks: list[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        chunk: bytes = message.get("body", b"")
        size += len(chunk)
        if size > _BODY_AT_MOST:
            raise bad_parameter(f"The request body has at most {_BODY_AT_MOST} bytes.")
        chunks.append(chunk)
        if not message.get("more_body", False):
            return chunks[0] if len(chunks) == 1 else b"".join(chunks)


async def send_json(
    send: Send, status: int, answer: object, headers: tuple[tuple[bytes, bytes], ...] = ()
) -> None:
    """Write a JSON answer."""
    body = msgspec.json.encode(answer)
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


def decode_json(raw: bytes) -> Any:
    """The value of a JSON text.

    Raises:
        ValueError: it is none, whatever is the matter with it.
    """
    try:
        return msgspec.json.decode(raw)
    except _UNREADABLE as error:
        raise ValueError(str(error)) from error


def _wanted_headers(scope: Scope) -> dict[bytes, str]:
    return {
        name: value.decode("latin-1")
        for name, value in scope["headers"]
        if name in (b"authorization", b"content-type", b"host")
    }


def _read_fields(content_type: str, raw: bytes) -> dict[str, Any]:
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/x-www-form-urlencoded":
        pairs = parse_qsl(raw.decode(errors="replace"), keep_blank_values=True)
        return {name: _loose_value(value) for name, value in pairs}
    try:
        fields = an_object(decode_json(raw))
    except ValueError as error:
        raise bad_parameter(f"The request body is not readable JSON: {error}") from error
    if fields is None:
        raise bad_parameter("The request body must be a JSON object.")
    return fields


def _loose_value(value: str) -> Any:
    """A parameter outside JSON: arrays and objects are JSON texts, all else is text."""
    if value[:1] in ("[", "{"):
        try:
            return decode_json(value.encode())
        except ValueError:
            return value
    return value


def _unknown_path(path: str) -> GraphRefused:
    return GraphRefused(
        400,
        {
            "message": f"Unknown path components: {path[:200]}",
            "type": "OAuthException",
            "code": 2500,
        },
    )
