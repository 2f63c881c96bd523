"""Search of the command palette: people by name, number or id, and messages by their text.

While texts are hidden it finds people only: it searches at each key, and each search in hidden texts is audited.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import JSONResponse, Response

from waypost.base.clock import DAY_MS
from waypost.console.conversations.listing import CONVERSATION_FORM, RECEIVED_LABELS
from waypost.console.list_filters import FilterContext
from waypost.console.messages.list_rows import read_list_rows
from waypost.console.page_tools import PageTools
from waypost.console.web.formatting import format_phone
from waypost.console.web.page_request import PageRequest
from waypost.store.console.conversations import list_conversations
from waypost.store.messages.lists import SearchPage
from waypost.store.messages.received import search_inbound
from waypost.store.messages.search import MessageFilter, search_messages
from waypost.wire.redaction import TextVisibility, redact_preview

MIN_SEARCHED_CHARS: Final = 2
MAX_SEARCHED_CHARS: Final = 100
SEARCHED_DAYS: Final = 7
"""Messages are searched for by text as far back; the list of messages goes further."""
MAX_FOUND_PEOPLE: Final = 5
MAX_FOUND_MESSAGES: Final = 4
MAX_SCANNED_FOR_PALETTE: Final = 2_000
"""Rows of each kind that one search reads: it runs while the user types."""


async def search_commands(tools: PageTools, page_request: PageRequest) -> Response:
    """Return people and messages of the shown app that match `q`, as `/commands` returns its commands."""
    text, app = page_request.query("q")[:MAX_SEARCHED_CHARS], page_request.shown_app
    if app is None or len(text) < MIN_SEARCHED_CHARS:
        return JSONResponse({"commands": []})
    finders = (_find_people, _find_sent, _find_received) if tools.services.show_text else (_find_people,)
    found = await asyncio.gather(*(find(tools, page_request, app.id, text) for find in finders))
    return JSONResponse({"commands": [item for items in found for item in items]})


async def _find_people(tools: PageTools, page_request: PageRequest, app_id: str, text: str) -> list[dict[str, str]]:
    context = FilterContext(tools.services.clock.now_ms(), page_request.zone, tools.services.show_text)
    filters = CONVERSATION_FORM.read({"q": text}, context)
    if filters.wrong:
        return []
    page = SearchPage(None, MAX_FOUND_PEOPLE, MAX_SCANNED_FOR_PALETTE)
    found = await tools.services.database.read(
        list_conversations, page_request.partner.id, app_id, filters.search, page
    )
    return [
        _found_item(
            row["name"] or format_phone(row["phone_number"] or row["user_id"]),
            f"Conversation, {format_phone(row['phone_number'] or row['user_id'])}",
            f"/apps/{app_id}/conversations/{row['id']}#latest",
        )
        for row in found.rows
    ]


async def _find_sent(tools: PageTools, page_request: PageRequest, app_id: str, text: str) -> list[dict[str, str]]:
    found = await tools.services.database.read(
        search_messages, page_request.partner.id, app_id, _text_filter(tools, text), _message_page()
    )
    return [
        _found_item(
            f"{row['what']}: {' · '.join(one.value for one in row['parameters']) or row['text']}",
            f"Sent to {row['name'] or format_phone(row['destination'])}",
            f"/apps/{app_id}/messages/{row['id']}",
        )
        for row in await read_list_rows(tools, page_request, app_id, found.rows)
    ]


async def _find_received(tools: PageTools, page_request: PageRequest, app_id: str, text: str) -> list[dict[str, str]]:
    found = await tools.services.database.read(
        search_inbound, page_request.partner.id, app_id, _text_filter(tools, text), _message_page()
    )
    return [_received_item(tools, app_id, row) for row in found.rows]


def _received_item(tools: PageTools, app_id: str, row: Mapping[str, Any]) -> dict[str, str]:
    sight = TextVisibility(tools.services.show_text, row["holds_code"])
    return _found_item(
        f"{RECEIVED_LABELS.get(row['kind'], row['kind'])}: {redact_preview(row['text'] or '', sight)}",
        f"Received from {row['name'] or format_phone(row['phone_number'] or row['user_id'])}",
        f"/apps/{app_id}/conversations?q={quote(row['operator_message_id'], safe='')}",
    )


def _text_filter(tools: PageTools, text: str) -> MessageFilter:
    return MessageFilter(text=text, from_ms=tools.services.clock.now_ms() - SEARCHED_DAYS * DAY_MS)


def _message_page() -> SearchPage:
    return SearchPage(None, MAX_FOUND_MESSAGES, MAX_SCANNED_FOR_PALETTE)


def _found_item(name: str, hint: str, path: str) -> dict[str, str]:
    return {"name": name, "hint": hint, "path": path}
