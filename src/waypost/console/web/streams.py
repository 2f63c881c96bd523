"""Live parts of pages: server-sent events that carry what has changed of a page since it was shown.

A stream looks at the store after a wake-up, renders what it shows, and sends the pieces that differ
from those it sent before. So a stream that was cut off needs no history: the next one sends what
is different now, and costs what is shown, whatever else is stored.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Final

import msgspec
from starlette.responses import JSONResponse, Response, StreamingResponse

from waypost.client.api_client import ApiResponseError, NotReached
from waypost.console.web.change_signal import REST_S
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.store.contract import StoreAway

MOST_STREAMS: Final = 500
"""Of one process."""
MOST_OF_ONE: Final = 100
"""Of one partner, so that nobody takes all of them: open pages let go of theirs in the background."""
SESSION_EVERY_S: Final = 5
"""Between two checks whether the person is still signed in."""
_RETRY_MS: Final = 1000


@dataclass(frozen=True, slots=True)
class Piece:
    """One element of a page.

    Attributes:
        id: of the element; it is exchanged, or added where it is not there yet.
        html: the element with this id; empty: it is gone.
        into: the id of the element it is added to.
        at: `start` or `end` of that.
    """

    id: str
    html: str
    into: str = ""
    at: str = "end"


def answer_with(pieces: Sequence[Piece], **more: object) -> Response:
    """Pieces in an answer of JSON, which the page puts as it puts those of its stream.

    Args:
        pieces: `pieces`.
        more: what else the answer says, by its names.
    """
    return JSONResponse({**more, "pieces": [asdict(one) for one in pieces]})


Look = Callable[[], Awaitable[Sequence[Piece]]]
"""Gives everything the stream shows, as it is now."""


def stream(
    visit: PageRequest, look: Look, *, watch: "Watch", rest_s: float = REST_S, at_least_s: float = 1.0
) -> Response:
    """A stream of what `look` shows.

    Args:
        visit: who looks.
        look: everything, as it is now.
        watch: the console's.
        rest_s: between two looks at least.
        at_least_s: between two looks at most.
    """
    if watch.is_full(visit.partner.id):
        return Response("Too many pages are open at once; close some.", 503, media_type="text/plain")
    passage = visit.request.scope.get("extensions", {}).get("waypost.gate")
    if passage is not None:
        passage.step_aside()
    return StreamingResponse(
        watch.events(visit, look, rest_s=rest_s, at_least_s=at_least_s),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no"},
    )


class Watch:
    """Runs streams: waits for the pulse, looks, compares and sends.

    Args:
        watching: is entered for as long as a stream is open.
        mark: taken before a look.
        wait: returns when something may have changed since a mark.
        is_closing: whether streams have to end.
        is_signed_in: whether a visit's session is still alive.
    """

    def __init__(
        self,
        watching: Callable[[], AbstractContextManager[None]],
        mark: Callable[[], asyncio.Event],
        wait: Callable[[asyncio.Event, float, float], Awaitable[None]],
        is_closing: Callable[[], bool],
        is_signed_in: Callable[[PageRequest], Awaitable[bool]],
    ) -> None:
        self._watching = watching
        self._mark = mark
        self._wait = wait
        self._is_closing = is_closing
        self._is_signed_in = is_signed_in
        self._open: Counter[int] = Counter()

    @property
    def open(self) -> int:
        """How many streams run."""
        return self._open.total()

    def is_full(self, partner_id: int) -> bool:
        """Whether a partner may open no more."""
        return self.open >= MOST_STREAMS or self._open[partner_id] >= MOST_OF_ONE

    async def events(
        self, visit: PageRequest, look: Look, *, rest_s: float, at_least_s: float
    ) -> AsyncGenerator[bytes]:
        """The stream's bytes. The first look is sent whole: much may have happened since the page was made."""
        sent: dict[str, int] = {}
        partner_id, time_s = visit.partner.id, asyncio.get_running_loop().time
        checked_s = time_s()
        self._open[partner_id] += 1
        try:
            with self._watching():
                yield b"retry: %d\n\n" % _RETRY_MS
                while not self._is_closing():
                    mark = self._mark()
                    try:
                        if time_s() - checked_s >= SESSION_EVERY_S:
                            checked_s = time_s()
                            if not await self._is_signed_in(visit):
                                yield _event("go", {"to": "/sign-in"})
                                return
                        pieces = await look()
                    except (StoreAway, ApiResponseError, NotReached, NotThere) as away:
                        yield _event("away", {"why": str(away)})
                    except Exception:
                        if self._is_closing():  # the store was closed under the look
                            return
                        raise
                    else:
                        yield _told(pieces, sent)
                    await self._wait(mark, rest_s, at_least_s)
        finally:
            self._open[partner_id] -= 1


def _told(pieces: Sequence[Piece], sent: dict[str, int]) -> bytes:
    """What differs from what was sent; a comment where nothing does, so that a dead line is noticed."""
    now = {piece.id: hash((piece.html, piece.into)) for piece in pieces}
    changed = [piece for piece in pieces if sent.get(piece.id) != now[piece.id]]
    gone = [one for one in sent if one not in now]
    sent.clear()
    sent.update(now)
    told = _event("pieces", changed) if changed else b""
    return told + (_event("past", gone) if gone else b"") or b": still here\n\n"


def _event(name: str, value: object) -> bytes:
    return b"event: %s\ndata: %s\n\n" % (name.encode(), msgspec.json.encode(value))
