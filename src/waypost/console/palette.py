"""The command palette: pages and actions, apps, phones, templates, people and messages.

While texts are hidden it searches for people only: it searches at each key, and each search in hidden texts is audited.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final
from urllib.parse import quote

from starlette.responses import JSONResponse, Response

from waypost.base.clock import DAY_MS
from waypost.client.api_client import ApiResponseError, ApiUnreachable
from waypost.console.conversations.listing import CONVERSATION_FORM, RECEIVED_LABELS
from waypost.console.list_filters import FilterContext
from waypost.console.messages.list_rows import read_list_rows
from waypost.console.page_request import PageRequest
from waypost.console.phones.view_models import apps_by_number_id, number_ids_query
from waypost.console.simulator.rules import RULES_PATH
from waypost.console.web.formatting import format_phone
from waypost.store.console.conversations import list_conversations
from waypost.store.messages.lists import SearchPage
from waypost.store.messages.received import search_inbound
from waypost.store.messages.search import MessageFilter, search_messages
from waypost.store.templates.gallery import account_template_names
from waypost.wire.redaction import TextVisibility, redact_preview

MAX_PALETTE_TEMPLATES: Final = 300
MAX_PALETTE_PHONES: Final = 60
PALETTE_PHONES_TIMEOUT_S: Final = 1
"""The palette opens at once, whether or not the simulator responds."""


async def list_commands(request: PageRequest) -> Response:
    """Return commands: `{name, hint, path}`; of an action also `posts` (form fields), `stays` and `confirmation`."""
    app, has_simulator = request.shown_app, request.services.apis.control is not None
    items: list[dict[str, Any]] = []
    for command in request.tools.table.commands:
        if (app is None and "{app_id}" in command.path) or (not has_simulator and command.section == "Simulator"):
            continue
        item = _palette_row(command.name, command.section, command.path.replace("{app_id}", app.id if app else ""))
        if command.posts is not None:
            item |= {"posts": dict(command.posts), "stays": command.stays, "confirmation": command.confirmation}
        items.append(item)
    items += [
        _palette_row(one.name, f"App, {one.phone_number or 'no phone number'}", f"/apps/{one.id}")
        for one in request.apps
    ]
    phones, rules = await _simulator_lists(request)
    items += [
        _palette_row(one["name"] or one["phone"], f"Phone, {one['phone']}", f"/phones?show={one['phone']}")
        for one in phones
    ]
    if app is not None and app.business_account_id:
        names = await request.read(
            account_template_names, request.partner.id, app.business_account_id, MAX_PALETTE_TEMPLATES
        )
        items += [
            _palette_row(name, f"Template, {language}", f"/apps/{app.id}/templates/{template_id}")
            for template_id, name, language in names
        ]
    items += [
        _palette_row(rule["title"], f"Simulator rule, {rule['group'].lower()}", f"{RULES_PATH}#r-{rule['name']}")
        for rule in rules
    ]
    return JSONResponse({"commands": items})


async def _simulator_lists(request: PageRequest) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the phones that have chats with the partner's numbers, newest first, and the simulator's rules."""
    control, numbers = request.services.apis.control, list(apps_by_number_id(request))
    if control is None:
        return [], []
    try:
        async with asyncio.timeout(PALETTE_PHONES_TIMEOUT_S):
            rules = (await control.get("/control/declarations"))["settings"]
            if not numbers:
                return [], rules
            chats = await control.get(f"/control/chats?{number_ids_query(numbers)}&limit={MAX_PALETTE_PHONES}")
    except (ApiResponseError, ApiUnreachable, TimeoutError):
        return [], []
    return chats["phones"], rules


MIN_SEARCHED_CHARS: Final = 2
MAX_SEARCHED_CHARS: Final = 100
SEARCHED_DAYS: Final = 7
"""Messages are searched for by text as far back; the list of messages goes further."""
MAX_FOUND_PEOPLE: Final = 5
MAX_FOUND_MESSAGES: Final = 4
MAX_SCANNED_FOR_PALETTE: Final = 2_000
"""Rows of each kind that one search reads: it runs while the user types."""


async def search_commands(request: PageRequest) -> Response:
    """Return people and messages of the shown app that match `q`, as `/commands` returns its commands."""
    text, app = request.query("q")[:MAX_SEARCHED_CHARS], request.shown_app
    if app is None or len(text) < MIN_SEARCHED_CHARS:
        return JSONResponse({"commands": []})
    finders = (_find_people, _find_sent, _find_received) if request.services.show_text else (_find_people,)
    found = await asyncio.gather(*(find(request, app.id, text) for find in finders))
    return JSONResponse({"commands": [item for items in found for item in items]})


async def _find_people(request: PageRequest, app_id: str, text: str) -> list[dict[str, Any]]:
    context = FilterContext(request.now_ms(), request.zone, request.services.show_text)
    filters = CONVERSATION_FORM.read({"q": text}, context)
    if filters.wrong:
        return []
    page = SearchPage(None, MAX_FOUND_PEOPLE, MAX_SCANNED_FOR_PALETTE)
    found = await request.read(list_conversations, request.partner.id, app_id, filters.search, page)
    return [
        _palette_row(
            row["name"] or format_phone(row["phone_number"] or row["user_id"]),
            f"Conversation, {format_phone(row['phone_number'] or row['user_id'])}",
            f"/apps/{app_id}/conversations/{row['id']}#latest",
        )
        for row in found.rows
    ]


async def _find_sent(request: PageRequest, app_id: str, text: str) -> list[dict[str, Any]]:
    rows = await _search(search_messages, request, app_id, text)
    return [
        _palette_row(
            f"{row['what']}: {' · '.join(one.value for one in row['parameters']) or row['text']}",
            f"Sent to {row['name'] or format_phone(row['destination'])}",
            f"/apps/{app_id}/messages/{row['id']}",
        )
        for row in await read_list_rows(request, app_id, rows)
    ]


async def _find_received(request: PageRequest, app_id: str, text: str) -> list[dict[str, Any]]:
    show_text = request.services.show_text
    items: list[dict[str, Any]] = []
    for row in await _search(search_inbound, request, app_id, text):
        preview = redact_preview(row["text"] or "", TextVisibility(show_text, row["holds_code"]))
        sender = row["name"] or format_phone(row["phone_number"] or row["user_id"])
        path = f"/apps/{app_id}/conversations?q={quote(row['operator_message_id'], safe='')}"
        label = RECEIVED_LABELS.get(row["kind"], row["kind"])
        items.append(_palette_row(f"{label}: {preview}", f"Received from {sender}", path))
    return items


async def _search(search: Callable[..., Any], request: PageRequest, app_id: str, text: str) -> Sequence[dict[str, Any]]:
    wanted = MessageFilter(text=text, from_ms=request.now_ms() - SEARCHED_DAYS * DAY_MS)
    page = SearchPage(None, MAX_FOUND_MESSAGES, MAX_SCANNED_FOR_PALETTE)
    return (await request.read(search, request.partner.id, app_id, wanted, page)).rows


def _palette_row(name: str, hint: str, path: str) -> dict[str, Any]:
    return {"name": name, "hint": hint, "path": path}
