"""The list of messages that an app has received."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from waypost.base.encryption import hash_secret
from waypost.console.list_filters import (
    FilterField,
    FilterForm,
    ListFilter,
    encode_cursor,
    parse_cursor,
    parse_searched_text,
)
from waypost.console.lists import ListPage, ListQuery, ListRows, members
from waypost.console.messages.listing import PERSON_FIELD
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import NotFound, PageRequest
from waypost.console.web.streams import elements_response
from waypost.console.web.zones import iso_time
from waypost.store.media.media import fetched_media_keys
from waypost.store.messages.lists import MAX_SCANNED_ROWS, MessageCursor, SearchPage
from waypost.store.messages.received import find_inbound_by_ids, find_inbound_details, search_inbound
from waypost.store.messages.search import MessageFilter
from waypost.wire.redaction import TextVisibility, redact_preview

_PICTURE_KINDS: Final = ("image", "sticker")


async def _read(tools: PageTools, page_request: PageRequest, filters: ListFilter, query: ListQuery) -> ListRows:
    page = SearchPage(parse_cursor(query.before), query.at_most, query.scan_limit or MAX_SCANNED_ROWS)
    found = await tools.services.database.read(
        search_inbound, page_request.partner.id, page_request.app.id, filters.search, page
    )
    rows = await _view_rows(tools, page_request, found.rows)
    return ListRows(rows, encode_cursor(found.next), found.searched_to_ms)


async def _find(tools: PageTools, page_request: PageRequest, ids: Sequence[str]) -> Sequence[dict[str, Any]]:
    rows = await tools.services.database.read(find_inbound_by_ids, page_request.partner.id, page_request.app.id, ids)
    newest = sorted(rows, key=lambda row: (row["received_on_ms"], row["operator_message_id"]), reverse=True)
    return await _view_rows(tools, page_request, newest)


async def _view_rows(
    tools: PageTools, page_request: PageRequest, rows: Sequence[dict[str, Any]], *, show_text: bool = False
) -> list[dict[str, Any]]:
    """Return rows with the text that may be seen, and the pictures that were fetched."""
    sights = [TextVisibility(show_text or tools.services.show_text, row["holds_code"]) for row in rows]
    pictures = sorted(
        {row["media_id"] for row, sight in zip(rows, sights, strict=True) if sight.is_open and _is_picture(row)}
    )
    now_ms = tools.services.clock.now_ms()
    keys: Mapping[str, str] = {}
    if pictures:
        keys = await tools.services.database.read(fetched_media_keys, page_request.app.id, pictures, now_ms)
    return [
        {
            **row,
            "text": None if row["text"] is None else redact_preview(row["text"], sight),
            "picture": keys.get(row["media_id"], "") if sight.is_open and _is_picture(row) else "",
            "can_be_revealed": (bool(row["text"]) or _is_picture(row)) and not sight.text and not sight.holds_code,
        }
        for row, sight in zip(rows, sights, strict=True)
    ]


def _is_picture(row: Mapping[str, Any]) -> bool:
    return row["kind"] in _PICTURE_KINDS and bool(row["media_id"])


_TEXT_TITLE: Final = "Texts, captions, button labels and what forms contain; replies to one-time codes are not searched"
RECEIVED: Final = ListPage(
    name="received",
    path="/apps/{app_id}/messages/received",
    title="Received messages",
    noun="messages",
    macros="messages/received_parts.html",
    columns=("From", "Message", "In reply to", "Received"),
    form=FilterForm(
        (PERSON_FIELD, FilterField("text", "Message text", parse_searched_text, kind="search", title=_TEXT_TITLE)),
        MessageFilter,
        {"from": "from_ms", "until": "until_ms"},
    ),
    read=_read,
    find=_find,
    element_id=lambda row: (
        f"r-{hash_secret(row['operator_message_id'])[:24]}"
    ),  # the id has characters that are not valid
    cursor=lambda row: encode_cursor(MessageCursor(row["received_on_ms"], row["operator_message_id"])),
    export={
        **members("operator_message_id", "phone_number", "user_id", "name", "kind", "replies_to"),
        "received": lambda row: iso_time(row["received_on_ms"]),
    },
)


async def reveal_received(tools: PageTools, page_request: PageRequest) -> Response:
    """Return one message with its text; a reply to a one-time code stays hidden.

    Raises:
        NotFound: the message does not exist.
    """
    message = await tools.services.database.read(
        find_inbound_details, page_request.partner.id, page_request.app.id, await page_request.field("id")
    )
    if message is None:
        raise NotFound("Message not found.")
    return elements_response(
        RECEIVED.elements(tools, page_request, await _view_rows(tools, page_request, [message], show_text=True))
    )
