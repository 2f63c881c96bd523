"""Signal to live streams that the store may have changed: after a commit, or after some time."""

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Final

import msgspec
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console.web.errors import NotFound
from waypost.store.contract import StoreUnavailable
from waypost.store.database import Database

DEFAULT_REST_S: Final = 0.2
"""Minimum time between two renderings, so that a busy store is not read for every commit."""

DEFAULT_POLL_S: Final = 1.0
"""Maximum time between two renderings: other processes commit too, and the simulator changes with its clock."""


class ChangeSignal:
    """One signal for all streams of a process. Without an open stream, commits have no extra cost."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._event = asyncio.Event()
        self._listener_count = 0
        self._closing = asyncio.Event()

    @property
    def is_closing(self) -> bool:
        """True if streams must end."""
        return self._closing.is_set()

    @contextlib.contextmanager
    def listen(self) -> Generator[None]:
        """Listen for commits while a stream is open."""
        if not self._listener_count:
            self._database.add_commit_listener(self.signal)
        self._listener_count += 1
        try:
            yield
        finally:
            self._listener_count -= 1
            if not self._listener_count:
                self._database.remove_commit_listener(self.signal)

    def signal(self) -> None:
        """Signal that something may have changed."""
        event, self._event = self._event, asyncio.Event()
        event.set()

    def next_event(self) -> asyncio.Event:
        """Return the event of the next signal. Get it before rendering, so that later commits count."""
        return self._event

    async def wait(
        self, event: asyncio.Event, *, rest_s: float = DEFAULT_REST_S, at_least_s: float = DEFAULT_POLL_S
    ) -> None:
        """Return after a signal, but not before `rest_s` and not after `at_least_s`."""
        await _wait_for_event(self._closing, rest_s)
        if not self.is_closing:
            await _wait_for_event(event, max(0, at_least_s - rest_s))

    def close(self) -> None:
        """End every stream."""
        self._closing.set()
        self.signal()


async def _wait_for_event(event: asyncio.Event, timeout_s: float) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout_s):
            await event.wait()


MAX_STREAMS: Final = 500
"""Maximum number of streams per process."""
MAX_STREAMS_PER_PARTNER: Final = 100
"""Maximum number of streams per partner. Pages in the background close theirs."""
SESSION_CHECK_S: Final = 5
"""Interval at which a stream checks the session."""
_RETRY_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class PageElement:
    """One element of a page."""

    id: str  # id of the element, which is replaced, or added if it does not exist
    html: str  # the element with this id; empty: remove it
    into: str = ""  # id of the element to which a new one is added
    at: str = "end"  # position there, `start` or `end`


def elements_response(elements: Sequence[PageElement], **more: object) -> Response:
    """Return a JSON response with elements as `pieces`, which the page applies like those of its stream."""
    return JSONResponse({**more, "pieces": [asdict(piece) for piece in elements]})


ElementRenderer = Callable[[], Awaitable[Sequence[PageElement]]]
"""Renders all elements of a stream in their current state."""


class StreamRunner:
    """Runs streams: waits for a change, renders, compares and sends.

    Args:
        listen: context manager that is open while a stream is open.
        next_event: returns the next change event; called before each rendering.
        wait: returns when that event is set or the maximum time has passed.
        is_closing: returns True if streams must end.
        is_signed_in: returns True if the request's session is still valid.
    """

    def __init__(
        self,
        listen: Callable[[], AbstractContextManager[None]],
        next_event: Callable[[], asyncio.Event],
        wait: Callable[[asyncio.Event, float, float], Awaitable[None]],
        is_closing: Callable[[], bool],
        is_signed_in: Callable[[Request], Awaitable[bool]],
    ) -> None:
        self._listen = listen
        self._next_event = next_event
        self._wait = wait
        self._is_closing = is_closing
        self._is_signed_in = is_signed_in
        self._open: Counter[int] = Counter()

    @property
    def open_count(self) -> int:
        """Number of open streams."""
        return self._open.total()

    def respond(
        self,
        request: Request,
        partner_id: int,
        render: ElementRenderer,
        *,
        rest_s: float = DEFAULT_REST_S,
        at_least_s: float = DEFAULT_POLL_S,
    ) -> Response:
        """Return an event stream of rendered elements, with a time from `rest_s` to `at_least_s` between renderings."""
        if self.open_count >= MAX_STREAMS or self._open[partner_id] >= MAX_STREAMS_PER_PARTNER:
            return Response("Too many open pages. Close some of them.", 503, media_type="text/plain")
        open_request = request.scope.get("extensions", {}).get("waypost.open_request")
        if open_request is not None:
            open_request.exclude_from_drain()
        return StreamingResponse(
            self.events(request, partner_id, render, rest_s=rest_s, at_least_s=at_least_s),
            media_type="text/event-stream",
            # A stream ends when the service stops, and a proxy must not send a request on its connection then.
            headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", "Connection": "close"},
        )

    async def events(
        self, request: Request, partner_id: int, render: ElementRenderer, *, rest_s: float, at_least_s: float
    ) -> AsyncGenerator[bytes]:
        """Yield the stream's bytes. The first rendering is sent in full, since the page may be out of date."""
        sent: dict[str, int] = {}
        time_s = asyncio.get_running_loop().time
        checked_s = time_s()
        self._open[partner_id] += 1
        try:
            with self._listen():
                yield b"retry: %d\n\n" % _RETRY_MS
                while not self._is_closing():
                    mark = self._next_event()
                    try:
                        if time_s() - checked_s >= SESSION_CHECK_S:
                            checked_s = time_s()
                            if not await self._is_signed_in(request):
                                yield _event("go", {"to": "/sign-in"})
                                return
                        pieces = await render()
                    except (StoreUnavailable, ApiResponseError, ApiUnreachable, NotFound) as error:
                        yield _event("away", {"why": str(error)})
                    except Exception:
                        if self._is_closing():  # the store was closed during rendering
                            return
                        raise
                    else:
                        yield _encode_changes(pieces, sent)
                    await self._wait(mark, rest_s, at_least_s)
        finally:
            self._open[partner_id] -= 1


def _encode_changes(elements: Sequence[PageElement], sent: dict[str, int]) -> bytes:
    """Return events for the changes; a comment if there are none, so that a dead connection is noticed."""
    now = {piece.id: hash((piece.html, piece.into)) for piece in elements}
    changed = [piece for piece in elements if sent.get(piece.id) != now[piece.id]]
    removed = [element_id for element_id in sent if element_id not in now]
    sent.clear()
    sent.update(now)
    events = _event("pieces", changed) if changed else b""
    return events + (_event("past", removed) if removed else b"") or b": keep-alive\n\n"


def _event(name: str, value: object) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(value))
