"""A request as an endpoint sees it, and its response: thin, because every request runs through this code."""

import asyncio
import contextlib
import hashlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl

import msgspec

from waypost.api.access_log import ACCESS_RECORD, AccessRecord
from waypost.api.limits import Limiter, RejectionBudgets
from waypost.base.http.connection_scope import mark_authenticated
from waypost.base.http.multipart import MultipartReader, PartHead
from waypost.domain.app import App
from waypost.domain.errors import ApiError, ErrorCode, invalid_field
from waypost.domain.rates import Rate, read_stored_rate
from waypost.store.contract import StoreUnavailable
from waypost.store.requests.idempotency import KeyedRequest
from waypost.wire.forms import MAX_FORM_FIELDS, Form, compressed_body_error, read_form, read_json_body, read_json_form


class Fingerprint:
    """The SHA-256 of a request's content: its bytes, or the parts of a multipart body.

    Clients choose a new multipart boundary for each attempt, so bodies of the same parts differ. Only the
    parts' heads and bytes count, however they are split in transit.
    """

    def __init__(self) -> None:
        self._whole = hashlib.sha256()
        self._part = hashlib.sha256()

    def add(self, body: bytes) -> None:
        """Add raw bytes."""
        self._whole.update(body)

    def add_part(self, part: PartHead | bytes) -> None:
        """Add the head of a part, or bytes of the last one."""
        if isinstance(part, bytes):
            self._part.update(part)
            return
        self._whole.update(self._part.digest())
        head = msgspec.json.encode((part.name, part.file_name, part.content_type))
        self._part = hashlib.sha256(head + b"\0")

    @property
    def value(self) -> bytes:
        """Return the hash of everything added so far."""
        whole = self._whole.copy()
        whole.update(self._part.digest())
        return whole.digest()


@dataclass(slots=True)
class IdempotentRequest:
    """An idempotency key and the progress of its request."""

    partner_id: int
    route: str  # method and path, and the app's id if the path has one
    key: str
    at_ms: int  # the time the request was received
    app_id: str | None  # the app of the request; None: a call on the partner's account
    holder: str | None = None  # id of this request's mark that the key is running; None: it has no mark
    begun_before: bool = False  # True if the same request was begun before and its outcome is unknown
    is_complete: bool = False  # True if the key has a stored response: this request's, or an earlier one's
    is_replay: bool = False  # True if the response is an earlier request's
    fingerprint: Fingerprint = field(default_factory=Fingerprint)

    @property
    def keyed_request(self) -> KeyedRequest:
        """Return the request as the store expects it; read the whole body first."""
        return KeyedRequest(
            partner_id=self.partner_id,
            route=self.route,
            key=self.key,
            body_hash=self.fingerprint.value,
            at_ms=self.at_ms,
            app_id=self.app_id,
            holder=self.holder,
        )


def unreadable_multipart_error(reason: str) -> ApiError:
    """Return the error for a body that cannot be read."""
    return ApiError(ErrorCode.UNREADABLE, f"The body must be whole and readable multipart/form-data: {reason}.")


def read_form_parts(content_type: str, body: bytes) -> Form:
    """Parse a whole multipart body of text parts as a form; PHP's curl sends an array this way.

    Raises:
        ApiError: an unreadable body, too many parts, a file, not UTF-8, or U+0000.
    """
    reader = MultipartReader(
        content_type, make_error=unreadable_multipart_error, max_parts=MAX_FORM_FIELDS, errors="strict"
    )
    pairs: list[tuple[str, bytearray]] = []
    try:
        for part in reader.feed(body):
            if isinstance(part, bytes):
                pairs[-1][1].extend(part)
            elif part.file_name is not None:
                raise ApiError(ErrorCode.UNREADABLE, f"{part.name} must be text, and no file.")
            else:
                pairs.append((part.name, bytearray()))
        reader.finish()
        form = [(name, value.decode("utf-8", "strict")) for name, value in pairs]
    except UnicodeDecodeError as error:
        raise ApiError(ErrorCode.UNREADABLE, "The form must be UTF-8.") from error
    if any("\0" in name or "\0" in value for name, value in form):
        raise ApiError(ErrorCode.UNREADABLE, "The form must not contain the character U+0000.")
    return Form(form)


Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

MAX_BODY_BYTES: Final = 1024 * 1024
"""The limit of one form; the largest field has 1,024 characters, but buttons and examples come on top."""

FREE_BODY_BYTES: Final = 16 * 1024
MAX_HELD_BYTES: Final = 32 * 1024 * 1024
"""Of all bodies that are arriving, beyond the first 16 kB of each: a thousand slow clients are not a gigabyte."""

FORM_TYPE: Final = "application/x-www-form-urlencoded"

UNCOUNTED: Final = "waypost.uncounted"
"""A key in the scope of the console's own calls, which do not count toward rates. Source: decision 0078."""

_encode: Final = msgspec.json.Encoder().encode
_NONE: Final = frozenset[bytes]()


@dataclass(slots=True)
class Request:
    """One request."""

    scope: Scope
    body: bytes  # the whole body; empty if the endpoint streams it itself
    path: dict[str, str]  # the path parameters by name
    receive: Receive | None = None  # for an endpoint that streams the body
    rate: str = ""  # the row of the table of rates that its route names
    route: str = ""  # its route's method and path
    credential: str = ""  # the kind that its route requires
    # the error of its route for a missing, unknown or expired credential
    wrong_credential: ErrorCode = ErrorCode.AUTHENTICATION_FAILED
    other_app: ErrorCode = ErrorCode.NOT_FOR_THIS_APP  # the error of its route for an app that is not the caller's
    rejections: RejectionBudgets | None = None  # the budgets of requests that end in an error
    # the rates that it has spent, and when; returned if the request ends in an error
    spent: list[tuple[str, str, int, Rate | None]] = field(default_factory=list[tuple[str, str, int, Rate | None]])
    idempotency: IdempotentRequest | None = None  # its idempotency key and progress; None: it has no key
    request_id: str = ""  # its id if the client sent one, or a new one instead of an invalid one; empty: none was sent
    partner_id: int | None = None  # whose credential it has; None: not known yet, or none
    app_id: str | None = None  # the app that it is about; None: not known yet
    _headers: dict[bytes, bytes] | None = None

    async def spend(self, limiter: Limiter, owner: str, app: App | None = None) -> None:
        """Spend one request of the route's rate; it is returned if the request ends in an error.

        Args:
            limiter: the limiter.
            owner: the app, its source or the partner that the window is for.
            app: the app whose own rates apply; None: the rate is not per app.

        Raises:
            ApiError: the rate is used up.
        """
        if self.scope.get(UNCOUNTED):
            return
        window = f"{self.route} {owner}"
        text = app.rates.get(self.rate) if app is not None and app.rates else None
        own_rate = None if text is None else read_stored_rate(self.rate, text)
        try:
            at_ms = await limiter.spend(self.rate, window, own_rate)
        except ApiError:
            if app is not None:
                limiter.limited.record(app.id, self.rate)
            raise
        self.spent.append((self.rate, window, at_ms, own_rate))

    async def refund(self, limiter: Limiter) -> None:
        """Return what was spent: requests that end in an error do not count. Source: decision 0078.

        What windows in a store that is away have counted stays counted: the request gets its own error.
        """
        with contextlib.suppress(StoreUnavailable):
            while self.spent:
                await limiter.refund(*self.spent.pop())

    def note_caller(self, partner_id: int, app_id: str | None = None) -> None:
        """Note whose request this is, also for its connection, and in the access log, if there is one.

        Raises:
            ApiError: 429, too many of the partner's requests have ended in an error.
        """
        is_known = self.partner_id is not None
        self.partner_id = partner_id
        self.app_id = app_id or self.app_id
        record: AccessRecord | None = self.scope.get(ACCESS_RECORD)
        if record is not None:
            record.partner_id = partner_id
            record.app_id = app_id or record.app_id
        if is_known:
            return
        mark_authenticated(self.scope)
        if self.rejections is not None and UNCOUNTED not in self.scope:
            self.rejections.check(partner_id)

    @property
    def headers(self) -> dict[bytes, bytes]:
        """The headers by their lower-case names; the last of several."""
        if self._headers is None:
            self._headers = dict(self.scope["headers"])
        return self._headers

    def header(self, name: bytes) -> str | None:
        """Return the header with this lower-case name; None if absent or not UTF-8."""
        value = self.headers.get(name)
        if value is None:
            return None
        try:
            return value.decode("utf-8").strip()
        except UnicodeDecodeError:
            return None

    def present_headers(self, names: frozenset[bytes]) -> frozenset[bytes]:
        """Return which of these headers, with lower-case names, are present, even empty or unreadable."""
        return _NONE if names.isdisjoint(self.headers) else names & self.headers.keys()

    def reject_compression(self) -> None:
        """Raise an error if the body has a content coding."""
        encoding = (self.header(b"content-encoding") or "").lower()
        if encoding not in ("", "identity"):
            raise compressed_body_error(encoding)

    def form(self) -> Form:
        """Return the body as a form; multipart counts as one if it has text parts only: PHP's curl sends arrays so.

        Raises:
            ApiError: its type is another one, or it cannot be read.
        """
        return self._form(self.media_type())

    def form_or_json(self) -> Form:
        """Return the body, a form or a JSON object, as a form; members that are not texts become JSON text.

        Raises:
            ApiError: as `form`.

        Source: public clients: some send JSON text with the Content-Type of a form.
        """
        kind = self.media_type()
        return read_json_form(self.body) if self._is_json(kind) else self._form(kind)

    def members(self) -> dict[str, Any] | Form:
        """Return the members of a JSON body, also if its type says form; otherwise the form.

        Source: ledger, contradiction S3: pages send JSON text with the Content-Type of a form.

        Raises:
            ApiError: as `form`.
        """
        kind = self.media_type()
        return read_json_body(self.body) if self._is_json(kind) else self._form(kind)

    def _is_json(self, media_type: str) -> bool:
        if media_type in ("", FORM_TYPE):
            return self.body.lstrip()[:1] == b"{"
        return media_type == "application/json"

    def media_type(self) -> str:
        """Return the body's type without its parameters, in lower case; empty if it has none."""
        return (self.header(b"content-type") or "").partition(";")[0].strip().lower()

    def _form(self, media_type: str) -> Form:
        if media_type == "multipart/form-data":
            return read_form_parts(self.header(b"content-type") or "", self.body)
        if media_type not in ("", FORM_TYPE):
            raise ApiError(ErrorCode.UNREADABLE, "The body must be application/x-www-form-urlencoded.")
        return read_form(self.body)

    def text(self) -> str:
        """Return the raw body as text, for the trace."""
        return self.body.decode("utf-8", "replace")

    def query(self, name: str) -> str | None:
        """Return a field of the query; an unreadable query counts as absent.

        Raises:
            ApiError: it has two different values.
        """
        try:
            fields = parse_qsl(
                self.scope.get("query_string", b"").decode("ascii", "replace"),
                keep_blank_values=True,
                max_num_fields=200,
            )
        except ValueError:
            return None
        values = [value for field_name, value in fields if field_name == name]
        if len(set(values)) > 1:
            raise invalid_field(name, "sent once; the query has it more than once, with different values")
        return values[0] if values else None


class ApiResponse(NamedTuple):
    """An endpoint's response: JSON, or bytes that are JSON already; None sends no body."""

    body: Any
    status: int = 200
    file: Path | None = None  # streamed instead of a body
    content_type: str = "application/json"  # of the file
    headers: tuple[tuple[str, str], ...] = ()  # in addition to the usual ones

    def bytes(self) -> bytes:
        """Return the body's bytes."""
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else _encode(self.body)


async def read_body(scope: Scope, receive: Receive) -> bytes:
    """Return the whole body, counted as it arrives.

    Raises:
        ApiError: the body is longer than any form may be.
        ConnectionError: the client disconnected.
    """
    message = await receive()
    body: bytes = message.get("body", b"")
    if message["type"] == "http.disconnect":
        raise ConnectionError("the client disconnected")
    if not message.get("more_body", False) and len(body) <= MAX_BODY_BYTES:
        return body
    parts, size, held_bytes = [body], len(body), 0
    try:
        while message.get("more_body", False) and size <= MAX_BODY_BYTES:
            added_bytes = max(size - FREE_BODY_BYTES, 0) - held_bytes
            held_bytes += added_bytes
            _held.size_bytes += added_bytes
            if added_bytes and _held.size_bytes > MAX_HELD_BYTES:
                raise ApiError(
                    ErrorCode.TOO_MANY_REQUESTS,
                    f"At most {MAX_HELD_BYTES // 1024 // 1024} MB of large bodies may be arriving at once; try again "
                    "in 5 s.",
                    retry_after_s=5,
                )
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ConnectionError("the client disconnected")
            part: bytes = message.get("body", b"")
            size += len(part)
            parts.append(part)
    finally:
        _held.size_bytes -= held_bytes
    if size > MAX_BODY_BYTES:
        raise ApiError(ErrorCode.BODY_TOO_LARGE, f"The body must be at most {MAX_BODY_BYTES} bytes.")
    return b"".join(parts)


@dataclass(slots=True)
class _HeldBytes:
    """The memory of all bodies that are arriving in this process, beyond what every body may have."""

    size_bytes: int = 0


_held: Final = _HeldBytes()


async def send_file(send: Send, status: int, path: Path, headers: list[tuple[bytes, bytes]]) -> None:
    """Send one file in chunks, without blocking the event loop."""
    loop = asyncio.get_running_loop()
    with await loop.run_in_executor(None, path.open, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        length = (b"content-length", str(size).encode())
        await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
        remaining = size
        while remaining > 0:
            part = await loop.run_in_executor(None, file.read, min(remaining, 256 * 1024))
            if not part:
                raise ConnectionError("the file became shorter while it was sent")
            remaining -= len(part)
            await send({"type": "http.response.body", "body": part, "more_body": remaining > 0})
        if size == 0:
            await send({"type": "http.response.body", "body": b""})


async def read_parts(request: Request) -> AsyncIterator[PartHead | bytes]:
    """Yield the head of each part, followed by its bytes as they arrive. Nothing is buffered here.

    Raises:
        ApiError: no boundary, an unreadable body, or more parts or headers than any client sends.
        ConnectionError: the client disconnected.
    """
    reader = MultipartReader(request.header(b"content-type") or "", make_error=unreadable_multipart_error)
    keyed = request.idempotency
    async for chunk in body_chunks(request):
        for part in reader.feed(chunk):
            if keyed is not None:
                keyed.fingerprint.add_part(part)
            yield part
    reader.finish()


async def body_chunks(request: Request) -> AsyncIterator[bytes]:
    """Yield the body's bytes as they arrive.

    Raises:
        ConnectionError: the client disconnected.
    """
    if request.receive is None:
        raise RuntimeError("the body has been read already")
    has_more = True
    while has_more:
        message = await request.receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the client disconnected")
        has_more = message.get("more_body", False)
        chunk: bytes = message.get("body", b"")
        if chunk:
            yield chunk
