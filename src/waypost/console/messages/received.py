"""The list of messages that an app has received: the page, its live updates, and older messages."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from waypost.base.encryption import hash_secret
from waypost.console.messages.filters import FILTER_TIMES, HIDDEN_TEXT_HINT, MessageListFilter, encode_cursor
from waypost.console.messages.listing import MESSAGE_LIST_REST_S, MESSAGES_PER_PAGE, read_page_filter
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import NotFound, PageRequest
from waypost.console.web.streams import PageElement, elements_response
from waypost.store.media.media import fetched_media_keys
from waypost.store.messages.lists import MAX_SCANNED_ROWS, SearchPage, SearchResults
from waypost.store.messages.received import find_inbound_details, search_inbound
from waypost.wire.redaction import TextVisibility, redact_preview

RECEIVED_LIST_MACROS: Final = "messages/received_parts.html"
RECEIVED_SCAN_LIMIT: Final = 2_000
_PICTURE_KINDS: Final = ("image", "sticker")


async def show_received(tools: PageTools, page_request: PageRequest) -> Response:
    """Show the list."""
    filters = _filter(tools, page_request)
    matches = SearchResults([]) if filters.wrong else await _search(tools, page_request, filters)
    return await tools.page(
        page_request,
        "messages/received.html",
        filters=filters,
        rows=await _view_rows(tools, page_request, matches.rows),
        older=_next_cursor(matches),
        back_to_ms=matches.searched_to_ms,
        times=FILTER_TIMES,
        text_hint="" if tools.services.show_text else HIDDEN_TEXT_HINT,
    )


async def show_more_received(tools: PageTools, page_request: PageRequest) -> Response:
    """Return older messages as page elements, with the link to further ones."""
    filters = _filter(tools, page_request)
    matches = SearchResults([]) if filters.wrong else await _search(tools, page_request, filters)
    part = tools.services.pages.render_macro
    foot = part(
        RECEIVED_LIST_MACROS,
        "foot",
        page_request,
        page_request.app,
        filters,
        _next_cursor(matches),
        matches.searched_to_ms,
        bool(matches.rows),
    )
    pieces = await _elements(tools, page_request, matches, "rows", "end")
    return elements_response([*pieces, PageElement("foot", foot)])


async def live_received(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream new messages."""
    filters = _filter(tools, page_request)

    async def render() -> Sequence[PageElement]:
        if filters.wrong:
            return []
        matches = await _search(tools, page_request, filters, scan_limit=RECEIVED_SCAN_LIMIT)
        return (await _elements(tools, page_request, matches, "fresh", "start"))[::-1]

    return tools.live(page_request, render, rest_s=MESSAGE_LIST_REST_S, at_least_s=2.0)


def _filter(tools: PageTools, page_request: PageRequest) -> MessageListFilter:
    fields = page_request.request.query_params
    supported = {name: fields.get(name, "") for name in ("q", "text", "time", "from", "until", "before")}
    return read_page_filter(tools, page_request, supported)


async def _search(
    tools: PageTools, page_request: PageRequest, filters: MessageListFilter, *, scan_limit: int = MAX_SCANNED_ROWS
) -> SearchResults:
    page = SearchPage(filters.before, MESSAGES_PER_PAGE, scan_limit)
    return await tools.services.database.read(
        search_inbound, page_request.partner.id, page_request.app.id, filters.search, page
    )


async def reveal_received(tools: PageTools, page_request: PageRequest) -> Response:
    """Return one message with its text; a reply to a one-time code stays hidden.

    Raises:
        NotFound: the message does not exist.
    """
    message_id = await page_request.field("id")
    message = await tools.services.database.read(
        find_inbound_details, page_request.partner.id, page_request.app.id, message_id
    )
    if message is None:
        raise NotFound("Message not found.")
    [row] = await _view_rows(tools, page_request, [message], text=True)
    return elements_response([PageElement(f"r-{row['key']}", _html(tools, page_request, row))])


async def _view_rows(
    tools: PageTools, page_request: PageRequest, rows: Sequence[dict[str, Any]], *, text: bool = False
) -> list[dict[str, Any]]:
    """Return rows with an element id, since operator ids have characters that are not valid in one."""
    sights = [TextVisibility(text or tools.services.show_text, row["holds_code"]) for row in rows]
    pictures = sorted(
        {row["media_id"] for row, sight in zip(rows, sights, strict=True) if sight.is_open and _is_picture(row)}
    )
    now_ms = tools.services.clock.now_ms()
    keys: Mapping[str, str] = {}
    if pictures:
        keys = await tools.services.database.read(fetched_media_keys, page_request.app.id, pictures, now_ms)
    return [_view_row(row, sight, keys) for row, sight in zip(rows, sights, strict=True)]


def _is_picture(row: Mapping[str, Any]) -> bool:
    return row["kind"] in _PICTURE_KINDS and bool(row["media_id"])


def _view_row(row: dict[str, Any], sight: TextVisibility, keys: Mapping[str, str]) -> dict[str, Any]:
    return {
        **row,
        "key": hash_secret(row["operator_message_id"])[:24],
        "text": None if row["text"] is None else redact_preview(row["text"], sight),
        "picture": keys.get(row["media_id"], "") if sight.is_open and _is_picture(row) else "",
        "can_be_revealed": (bool(row["text"]) or _is_picture(row)) and not sight.text and not sight.holds_code,
    }


async def _elements(
    tools: PageTools, page_request: PageRequest, found: SearchResults, into: str, at: str
) -> list[PageElement]:
    return [
        PageElement(f"r-{row['key']}", _html(tools, page_request, row), into, at)
        for row in await _view_rows(tools, page_request, found.rows)
    ]


def _html(tools: PageTools, page_request: PageRequest, row: dict[str, Any]) -> str:
    return tools.services.pages.render_macro(RECEIVED_LIST_MACROS, "row", page_request, page_request, row)


def _next_cursor(found: SearchResults) -> str:
    return "" if found.next is None else encode_cursor(found.next)
