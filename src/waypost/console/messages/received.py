"""The list of what an app's recipients have written: the page, what comes in, and older ones."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from starlette.responses import Response

from waypost.base.encryption import hash_of
from waypost.console.messages.filters import TIMES, Filter, read_filter, written_place
from waypost.console.messages.listing import ON_A_PAGE, REST_S
from waypost.console.page_tools import PageTools
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece, answer_with
from waypost.store.messages.received import inbound_by_id, search_inbound
from waypost.store.messages.search_pages import LOOKED_AT, Found, Page
from waypost.wire.redaction import Sight, shown_line

PARTS: Final = "messages/received_parts.html"
LIVE_LOOK: Final = 2_000


async def show_received(desk: PageTools, visit: PageRequest) -> Response:
    """The page."""
    asked = _filter(desk, visit)
    found = Found([]) if asked.wrong else await _search(desk, visit, asked)
    return await desk.page(
        visit, "messages/received.html",
        asked=asked, rows=_rows(desk, found.rows), older=_older(found), back_to_ms=found.back_to_ms, times=TIMES,
    )  # fmt: skip


async def show_more_received(desk: PageTools, visit: PageRequest) -> Response:
    """Older ones as pieces of the page, and the foot that leads on from them."""
    asked = _filter(desk, visit)
    found = Found([]) if asked.wrong else await _search(desk, visit, asked)
    part = desk.parts.pages.part
    foot = part(PARTS, "foot", visit, visit.app, asked, _older(found), found.back_to_ms, bool(found.rows))
    pieces = [*_pieces(desk, visit, found, "rows", "end"), Piece("foot", foot)]
    return answer_with(pieces)


async def live_received(desk: PageTools, visit: PageRequest) -> Response:
    """What comes in at the top."""
    asked = _filter(desk, visit)

    async def look() -> Sequence[Piece]:
        if asked.wrong:
            return []
        found = await _search(desk, visit, asked, look_at=LIVE_LOOK)
        return _pieces(desk, visit, found, "fresh", "start")[::-1]

    return desk.live(visit, look, rest_s=REST_S, at_least_s=2.0)


def _filter(desk: PageTools, visit: PageRequest) -> Filter:
    fields = visit.request.query_params
    kept = {name: fields.get(name, "") for name in ("q", "time", "from", "until", "before")}
    return read_filter(kept, desk.parts.clock.now_ms())


async def _search(desk: PageTools, visit: PageRequest, asked: Filter, *, look_at: int = LOOKED_AT) -> Found:
    page = Page(asked.before, ON_A_PAGE, look_at)
    return await desk.parts.database.read(search_inbound, visit.partner.id, visit.app.id, asked.wanted, page)


async def reveal_received(desk: PageTools, visit: PageRequest) -> Response:
    """One of them with its text; one that answers a one-time code stays hidden.

    Raises:
        NotThere: there is no such message.
    """
    named = await visit.field("id")
    found = await desk.parts.database.read(inbound_by_id, visit.partner.id, visit.app.id, named)
    if found is None:
        raise NotThere("You have received no such message.")
    [row] = _rows(desk, [found], text=True)
    return answer_with([Piece(f"r-{row['key']}", _html(desk, visit, row))])


def _rows(desk: PageTools, rows: Iterable[dict[str, Any]], *, text: bool = False) -> list[dict[str, Any]]:
    """Rows with the id of their element: the operator's has characters that no id should."""
    return [_row(row, Sight(text or desk.parts.show_text, row["holds_code"])) for row in rows]


def _row(row: dict[str, Any], sight: Sight) -> dict[str, Any]:
    return {
        **row,
        "key": hash_of(row["operator_message_id"])[:24],
        "text": None if row["text"] is None else shown_line(row["text"], sight),
        "can_be_revealed": bool(row["text"]) and not sight.text and not sight.holds_code,
    }


def _pieces(desk: PageTools, visit: PageRequest, found: Found, into: str, at: str) -> list[Piece]:
    return [Piece(f"r-{row['key']}", _html(desk, visit, row), into, at) for row in _rows(desk, found.rows)]


def _html(desk: PageTools, visit: PageRequest, row: dict[str, Any]) -> str:
    return desk.parts.pages.part(PARTS, "row", visit, visit, row)


def _older(found: Found) -> str:
    return "" if found.next is None else written_place(found.next)
