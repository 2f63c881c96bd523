"""The list of what an app's recipients have written: the page, what comes in, and older ones."""

from collections.abc import Sequence
from typing import Any, Final

from starlette.responses import Response

from waypost.base.seals import hash_of
from waypost.console.desk import Desk
from waypost.console.messages.filters import TIMES, Filter, read_filter, written_place
from waypost.console.messages.listing import ON_A_PAGE, REST_S
from waypost.console.streams import Piece, answer_with
from waypost.console.visit import Visit
from waypost.store.inbound_lists import search_inbound
from waypost.store.search_pages import LOOKED_AT, Found, Page

PARTS: Final = "messages/received_parts.html"
LIVE_LOOK: Final = 2_000


async def show_received(desk: Desk, visit: Visit) -> Response:
    """The page."""
    asked = _filter(desk, visit)
    found = Found([]) if asked.wrong else await _search(desk, visit, asked)
    return await desk.page(
        visit, "messages/received.html",
        asked=asked, rows=_rows(found), older=_older(found), back_to_ms=found.back_to_ms, times=TIMES,
    )  # fmt: skip


async def show_more_received(desk: Desk, visit: Visit) -> Response:
    """Older ones as pieces of the page, and the foot that leads on from them."""
    asked = _filter(desk, visit)
    found = Found([]) if asked.wrong else await _search(desk, visit, asked)
    part = desk.parts.pages.part
    foot = part(
        PARTS, "foot", visit, visit.app, asked, _older(found), found.back_to_ms, bool(found.rows)
    )
    pieces = [*_pieces(desk, visit, found, "rows", "end"), Piece("foot", foot)]
    return answer_with(pieces)


async def live_received(desk: Desk, visit: Visit) -> Response:
    """What comes in at the top."""
    asked = _filter(desk, visit)

    async def look() -> Sequence[Piece]:
        if asked.wrong:
            return []
        found = await _search(desk, visit, asked, look_at=LIVE_LOOK)
        return _pieces(desk, visit, found, "fresh", "start")[::-1]

    return desk.live(visit, look, rest_s=REST_S, at_least_s=2.0)


def _filter(desk: Desk, visit: Visit) -> Filter:
    fields = visit.request.query_params
    kept = {name: fields.get(name, "") for name in ("q", "time", "from", "until", "before")}
    return read_filter(kept, desk.parts.clock.now_ms())


async def _search(desk: Desk, visit: Visit, asked: Filter, *, look_at: int = LOOKED_AT) -> Found:
    page = Page(asked.before, ON_A_PAGE, look_at)
    return await desk.parts.database.read(
        search_inbound, visit.partner.id, visit.app.id, asked.wanted, page
    )


def _rows(found: Found) -> list[dict[str, Any]]:
    """Rows with the id of their element: the operator's has characters that no id should."""
    return [{**row, "key": hash_of(row["operator_message_id"])[:24]} for row in found.rows]


def _pieces(desk: Desk, visit: Visit, found: Found, into: str, at: str) -> list[Piece]:
    part = desk.parts.pages.part
    return [
        Piece(f"r-{row['key']}", part(PARTS, "row", visit, visit.app, row), into, at)
        for row in _rows(found)
    ]


def _older(found: Found) -> str:
    return "" if found.next is None else written_place(found.next)
