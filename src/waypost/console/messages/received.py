"""The list of messages that an app has received: the page, its live updates, and older messages."""

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
    """Show the list."""
    filters = _filter(desk, visit)
    matches = Found([]) if filters.wrong else await _search(desk, visit, filters)
    return await desk.page(
        visit, "messages/received.html",
        filters=filters, rows=_rows(desk, matches.rows), older=_older(matches), back_to_ms=matches.back_to_ms,
        times=TIMES,
    )  # fmt: skip


async def show_more_received(desk: PageTools, visit: PageRequest) -> Response:
    """Return older messages as page elements, with the link to further ones."""
    filters = _filter(desk, visit)
    matches = Found([]) if filters.wrong else await _search(desk, visit, filters)
    part = desk.parts.pages.part
    foot = part(PARTS, "foot", visit, visit.app, filters, _older(matches), matches.back_to_ms, bool(matches.rows))
    pieces = [*_pieces(desk, visit, matches, "rows", "end"), Piece("foot", foot)]
    return answer_with(pieces)


async def live_received(desk: PageTools, visit: PageRequest) -> Response:
    """Stream new messages."""
    filters = _filter(desk, visit)

    async def render() -> Sequence[Piece]:
        if filters.wrong:
            return []
        matches = await _search(desk, visit, filters, look_at=LIVE_LOOK)
        return _pieces(desk, visit, matches, "fresh", "start")[::-1]

    return desk.live(visit, render, rest_s=REST_S, at_least_s=2.0)


def _filter(desk: PageTools, visit: PageRequest) -> Filter:
    fields = visit.request.query_params
    supported = {name: fields.get(name, "") for name in ("q", "time", "from", "until", "before")}
    return read_filter(supported, desk.parts.clock.now_ms())


async def _search(desk: PageTools, visit: PageRequest, asked: Filter, *, look_at: int = LOOKED_AT) -> Found:
    page = Page(asked.before, ON_A_PAGE, look_at)
    return await desk.parts.database.read(search_inbound, visit.partner.id, visit.app.id, asked.wanted, page)


async def reveal_received(desk: PageTools, visit: PageRequest) -> Response:
    """Return one message with its text; a reply to a one-time code stays hidden.

    Raises:
        NotFound: the message does not exist.
    """
    message_id = await visit.field("id")
    message = await desk.parts.database.read(inbound_by_id, visit.partner.id, visit.app.id, message_id)
    if message is None:
        raise NotThere("Message not found.")
    [row] = _rows(desk, [message], text=True)
    return answer_with([Piece(f"r-{row['key']}", _html(desk, visit, row))])


def _rows(desk: PageTools, rows: Iterable[dict[str, Any]], *, text: bool = False) -> list[dict[str, Any]]:
    """Return rows with an element id, since operator ids have characters that are not valid in one."""
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
