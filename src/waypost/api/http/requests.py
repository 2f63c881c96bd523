"""A request as an endpoint sees it, and its answer: thin, because these are the busiest lines there are."""

import asyncio
import os
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from waypost.api.http.form_parts import read_form_parts
from waypost.api.http.idempotent_request import Keyed
from waypost.api.limits.rate_limits import Limiter
from waypost.domain.errors import ApiError, ErrorCode
from waypost.wire.forms import Form, read_form, read_json_body

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MOST_BYTES: Final = 1024 * 1024
"""Of one form; the largest field has 1,024 characters, but buttons and examples come beside it."""

FORM_TYPE: Final = "application/x-www-form-urlencoded"

UNCOUNTED: Final = "waypost.uncounted"
"""In the scope of the console's own calls, which spend nothing. Source: decision 0078."""

_encode: Final = msgspec.json.Encoder().encode


@dataclass(slots=True)
class Request:
    """One request.

    Attributes:
        body: whole; empty where the endpoint streams it itself.
        path: the parts of the path that vary, by name.
        receive: for an endpoint that streams the body.
        rate: the row of the table of rates that its route names.
        route: its route's method and path.
        credential: which one its route takes.
        spent: the rates it has spent, and when, to be given back when it is refused.
        keyed: its idempotency key, on routes that take one; None: it has none.
    """

    scope: Scope
    body: bytes
    path: dict[str, str]
    receive: Receive | None = None
    rate: str = ""
    route: str = ""
    credential: str = ""
    spent: list[tuple[str, str, int]] = field(default_factory=list[tuple[str, str, int]])
    keyed: Keyed | None = None
    _headers: dict[bytes, bytes] | None = None

    async def spend(self, limiter: Limiter, of: str) -> None:
        """Spend one request of the route's rate; it is given back when the request is refused after all.

        Raises:
            Refused: none is left.
        """
        if self.scope.get(UNCOUNTED):
            return
        window = f"{self.route} {of}"
        at_ms = await limiter.spend(self.rate, window)
        self.spent.append((self.rate, window, at_ms))

    async def give_back(self, limiter: Limiter) -> None:
        """Refused requests do not spend. Source: decision 0078."""
        while self.spent:
            await limiter.give_back(*self.spent.pop())

    def header(self, name: bytes) -> str | None:
        """The header with this lower-case name, the last of several; not UTF-8 counts as absent."""
        headers = self._headers
        if headers is None:
            headers = self._headers = dict(self.scope["headers"])
        value = headers.get(name)
        if value is None:
            return None
        try:
            return value.decode("utf-8").strip()
        except UnicodeDecodeError:
            return None

    def has_header(self, name: bytes) -> bool:
        """Whether the header with this lower-case name is there, whatever it holds."""
        headers = self._headers
        if headers is None:
            headers = self._headers = dict(self.scope["headers"])
        return name in headers

    def form(self) -> Form:
        """The body as a form; multipart is one too, of text parts only: PHP's curl sends arrays so.

        Raises:
            Refused: it is declared to be something else, or cannot be read.
        """
        return self._form(self._kind())

    def form_or_json(self) -> Form:
        """The body as a form, or as a JSON object: of texts, and of what a form holds as JSON text.

        Raises:
            Refused: as `form`.
        """
        kind = self._kind()
        if kind != "application/json":
            return self._form(kind)
        return Form(
            [
                (name, value if isinstance(value, str) else _encode(value).decode())
                for name, value in read_json_body(self.body).items()
                if value is not None
            ]
        )

    def members(self) -> dict[str, Any] | Form:
        """The members of a JSON body, also of one that is declared to be a form, or else the form.

        Source: ledger, contradiction S3: pages send JSON text under the header of a form.

        Raises:
            Refused: as `form`.
        """
        kind = self._kind()
        is_json = kind in ("", FORM_TYPE) and self.body.lstrip()[:1] == b"{"
        if kind == "application/json" or is_json:
            return read_json_body(self.body)
        return self._form(kind)

    def _kind(self) -> str:
        return (self.header(b"content-type") or "").partition(";")[0].strip().lower()

    def _form(self, kind: str) -> Form:
        if kind == "multipart/form-data":
            return read_form_parts(self.header(b"content-type") or "", self.body)
        if kind not in ("", FORM_TYPE):
            raise ApiError(ErrorCode.UNREADABLE, "The body must be application/x-www-form-urlencoded.")
        return read_form(self.body)

    def text(self) -> str:
        """The body as it came, for the trace."""
        return self.body.decode("utf-8", "replace")

    def query(self, name: str) -> str | None:
        """A field of the query; what cannot be read counts as absent."""
        try:
            fields = parse_qsl(
                self.scope.get("query_string", b"").decode("ascii", "replace"),
                keep_blank_values=True,
                max_num_fields=200,
            )
        except ValueError:
            return None
        return dict(fields).get(name)


@dataclass(frozen=True, slots=True)
class Answer:
    """What an endpoint answers: JSON, or bytes that are JSON already; None sends no body.

    Attributes:
        file: streamed instead of a body.
        content_type: of the file.
        headers: beside the usual ones.
    """

    body: Any
    status: int = 200
    file: Path | None = None
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()

    def bytes(self) -> bytes:
        """The body's bytes."""
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else _encode(self.body)


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """The whole body, counted as it arrives.

    Raises:
        Refused: longer than any form may be.
        ConnectionError: the client went away.
    """
    message = await receive()
    body: bytes = message.get("body", b"")
    if message["type"] == "http.disconnect":
        raise ConnectionError("the client went away")
    if not message.get("more_body", False) and len(body) <= MOST_BYTES:
        return body
    parts, size = [body], len(body)
    while message.get("more_body", False):
        if size > MOST_BYTES:
            break
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the client went away")
        part: bytes = message.get("body", b"")
        size += len(part)
        parts.append(part)
    if size > MOST_BYTES:
        raise ApiError(ErrorCode.BODY_TOO_LARGE, f"The body must be at most {MOST_BYTES} bytes.")
    return b"".join(parts)


async def send_answer(send: Send, status: int, body: bytes, headers: list[tuple[bytes, bytes]]) -> None:
    """Send one complete answer."""
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


async def send_file(send: Send, status: int, path: Path, headers: list[tuple[bytes, bytes]]) -> None:
    """Send one file as it is, in parts, without holding the loop."""
    loop = asyncio.get_running_loop()
    with await loop.run_in_executor(None, path.open, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = (b"content-length", str(size).encode())
        await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
        left = size
        while left > 0:
            part = await loop.run_in_executor(None, file.read, min(left, 256 * 1024))
            if not part:
                raise ConnectionError("the file became shorter while it was sent")
            left -= len(part)
            await send({"type": "http.response.body", "body": part, "more_body": left > 0})
        if size == 0:
            await send({"type": "http.response.body", "body": b""})
