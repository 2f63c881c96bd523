"""Requests over the simulated network, and calls of an application without it."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlencode

TIMEOUT_S: Final = 60


@dataclass
class Response:
    """A response; `body` is None unless it is JSON."""

    status: int
    body: Any = None
    retry_after_s: int | None = None
    content: bytes = b""


async def request(
    port: int,
    method: str,
    path: str,
    headers: Mapping[str, str],
    *,
    form: Mapping[str, str] | None = None,
    json_body: Any = None,
    content: tuple[bytes, str] | None = None,
) -> Response | None:
    """Send one request on a connection of its own; return None unless a whole response comes.

    Args:
        content: a body of another kind, and its type.
    """
    body, content_type = b"", "application/x-www-form-urlencoded"
    if form is not None:
        body = urlencode(form).encode()
    elif json_body is not None:
        body, content_type = json.dumps(json_body).encode(), "application/json"
    elif content is not None:
        body, content_type = content
    head_lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", "Connection: close", f"Content-Length: {len(body)}"]
    head_lines += [f"Content-Type: {content_type}", *(f"{name}: {value}" for name, value in headers.items()), "", ""]
    try:
        async with asyncio.timeout(TIMEOUT_S):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write("\r\n".join(head_lines).encode() + body)
            response = await reader.read()
            writer.close()
    except (OSError, TimeoutError):
        return None
    head, _, returned = response.partition(b"\r\n\r\n")
    try:
        status = int(head.split(b" ", 2)[1])
        lines = dict(line.split(b": ", 1) for line in head.lower().split(b"\r\n")[1:])
        is_whole = len(returned) == int(lines.get(b"content-length", b"-1")) or b"transfer-encoding" in lines
        retry_after_s = int(lines[b"retry-after"]) if b"retry-after" in lines else None
    except (IndexError, ValueError):  # the connection broke within the head
        return None
    if not is_whole:
        return None
    try:
        return Response(status, json.loads(returned), retry_after_s)
    except ValueError:
        return Response(status, None, retry_after_s, returned)


async def call(application: Any, method: str, path: str, json_body: Any = None) -> Response:
    """Call an application directly, as if the network were perfect."""
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": method,
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "root_path": "",
        "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
        "client": ("127.0.0.1", 50_000),
        "server": ("127.0.0.1", 80),
        "state": {},
    }
    parts: list[Any] = []
    is_read = False

    async def receive() -> Any:
        nonlocal is_read
        if is_read:
            await asyncio.Event().wait()
        is_read = True
        body = b"" if json_body is None else json.dumps(json_body).encode()
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message: Any) -> None:
        parts.append(message)

    await application(scope, receive, send)
    content = b"".join(part.get("body", b"") for part in parts[1:])
    return Response(parts[0]["status"], json.loads(content) if content else None)
