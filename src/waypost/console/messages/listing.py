"""The lists of the messages that an app has sent and received, and actions on those that are selected."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from starlette.responses import Response

from waypost.base.encryption import hash_secret
from waypost.client.api_client import ApiResponseError
from waypost.console.callbacks.lookup import replay_callbacks
from waypost.console.callbacks.replays import REPLAYED_HINT
from waypost.console.list_filters import (
    FilterContext,
    FilterField,
    FilterForm,
    ListFilter,
    Members,
    encode_cursor,
    one_of,
    parse_cursor,
    parse_searched_text,
    person_as,
)
from waypost.console.lists import (
    LIVE_SCAN_LIMIT,
    ROWS_PER_PAGE,
    ChangedRows,
    ListPage,
    ListQuery,
    ListRows,
    members,
    selected_ids,
)
from waypost.console.messages.list_rows import MESSAGE_KINDS, is_final, read_list_rows
from waypost.console.page_request import PageRequest
from waypost.console.web.errors import NotFound
from waypost.console.web.formatting import format_number
from waypost.console.web.forms import parse_number
from waypost.console.web.streams import elements_response
from waypost.console.web.zones import iso_time
from waypost.domain.message import MessageState
from waypost.store.media.media import fetched_media_keys
from waypost.store.messages.lists import MAX_PAGE_ROWS, MAX_SCANNED_ROWS, MessageCursor, SearchPage, template_names
from waypost.store.messages.received import find_inbound_by_ids, find_inbound_details, search_inbound
from waypost.store.messages.search import MessageFilter, current_messages, search_messages
from waypost.wire.redaction import TextVisibility, redact_preview

LATE_COMMIT_MS: Final = 10_000
"""A message may be committed this much later than a newer one."""
MAX_WATCHED: Final = 200


def _parse_code(text: str, _context: FilterContext) -> Members:
    code = parse_number(text, max_digits=9)
    if code is None:
        raise ValueError("Enter a number, such as 131049.")
    return {"code": code}


PERSON_FIELD: Final = FilterField(
    "q",
    "Name, number or ID",
    person_as(number="number", id="name", name="person"),
    kind="search",
    placeholder="Name, number or its last 4 digits, or an ID",
)
_TEXT_TITLE: Final = "Texts, captions and values of variables; one-time codes are not searched"
_STATES: Final = (("", "Any status"), *((one.value, one.value.capitalize()) for one in MessageState))
_KINDS: Final = (("", "Any"), *((kind, label) for kind, _, label in MESSAGE_KINDS))
_STORED_KINDS: Final = {kind: stored for kind, stored, _ in MESSAGE_KINDS}
MESSAGE_FORM: Final = FilterForm(
    (
        PERSON_FIELD,
        FilterField("text", "Message text", parse_searched_text, kind="search", title=_TEXT_TITLE),
        FilterField("state", "Status", one_of("status", _STATES, "state"), kind="select", options=_STATES),
        FilterField("template", "Template", "template_id", kind="select", options=(("", "Any"),), is_more=True),
        FilterField(
            "kind",
            "Type",
            one_of("message type", _KINDS, "kinds", _STORED_KINDS),
            kind="select",
            options=_KINDS,
            is_more=True,
        ),
        FilterField("code", "Error code", _parse_code, kind="number", placeholder="131049", is_more=True),
    ),
    MessageFilter,
    {"from": "from_ms", "until": "until_ms"},
)


async def _read(request: PageRequest, filters: ListFilter, query: ListQuery) -> ListRows:
    page = SearchPage(parse_cursor(query.before), query.at_most, query.scan_limit or MAX_SCANNED_ROWS)
    found = await request.read_own(search_messages, filters.search, page)
    rows = await read_list_rows(request, request.app.id, found.rows)
    return ListRows(rows, encode_cursor(found.next), found.searched_to_ms)


async def _find(request: PageRequest, ids: Sequence[str], *, show_text: bool = False) -> Sequence[dict[str, Any]]:
    rows = await request.read_own(current_messages, ids)
    newest = sorted(rows, key=lambda row: (row["accepted_on_ms"], row["id"]), reverse=True)
    return await read_list_rows(request, request.app.id, newest, show_text=show_text)


async def _values(request: PageRequest, _filters: ListFilter) -> Mapping[str, Any]:
    names = await request.read_own(template_names)
    return {"options": {"template": list(names.items())}}


async def _page_of_one(request: PageRequest, filters: ListFilter, found: ListRows) -> str:
    """Return the page of a message if its id is the only condition."""
    search: MessageFilter = filters.search
    is_id_alone = search.name is not None and search == MessageFilter(name=search.name)
    if not is_id_alone or len(found.rows) != 1 or found.older:
        return ""
    return f"/apps/{request.app.id}/messages/{found.rows[0]['id']}"


def _watch(request: PageRequest, filters: ListFilter) -> ChangedRows:
    """Read the newest messages that match, and the shown ones that may have changed."""
    watched: dict[str, Any] = {}
    newest_ms = first_ms = 0

    async def read_changed() -> Sequence[dict[str, Any]]:
        nonlocal newest_ms, first_ms
        since_ms = max(newest_ms - LATE_COMMIT_MS, first_ms)
        search: MessageFilter = filters.search
        can_gain_old = search.state is not None or search.code is not None  # an old message may change and match
        if since_ms > 0 and not can_gain_old:
            search = replace(search, from_ms=max(search.from_ms or 0, since_ms))
        query = ListQuery("", MAX_PAGE_ROWS if since_ms > 0 else ROWS_PER_PAGE, LIVE_SCAN_LIMIT)
        rows = list((await _read(request, replace(filters, search=search), query)).rows)
        known = {row["id"] for row in rows}
        others = [message_id for message_id in watched if message_id not in known]
        rows += await _find(request, others) if others else []
        rows.sort(key=lambda row: (row["accepted_on_ms"], row["id"]), reverse=True)
        if len(rows) >= ROWS_PER_PAGE and not newest_ms:
            first_ms = rows[-1]["accepted_on_ms"]  # older ones are not on the page, and do not belong at its top
        newest_ms = max([newest_ms, *(row["accepted_on_ms"] for row in rows)])
        for row in reversed(rows):
            watched.pop(row["id"], None)
            if not is_final(row):
                watched[row["id"]] = row
        while len(watched) > MAX_WATCHED:
            del watched[next(iter(watched))]
        return rows

    return read_changed


MESSAGES: Final = ListPage(
    name="messages",
    path="/apps/{app_id}/messages",
    title="Messages",
    noun="messages",
    macros="messages/parts.html",
    columns=("Status", "To", "Message", "Accepted"),
    form=MESSAGE_FORM,
    read=_read,
    find=_find,
    element_id=lambda row: f"m-{row['id']}",
    cursor=lambda row: encode_cursor(MessageCursor(row["accepted_on_ms"], row["id"])),
    export={
        **members("id", "operator_message_id", "source", "destination", "kind", "template", "state", "code", "reason"),
        "accepted": lambda row: iso_time(row["accepted_on_ms"]),
        "changed": lambda row: iso_time(row["changed_on_ms"]),
    },
    values=_values,
    page_of_one=_page_of_one,
    watch=_watch,
)


async def show_selected(request: PageRequest) -> Response:
    """Return the rows of the selected messages with their texts; one-time codes stay hidden."""
    rows = await _find(request, await selected_ids(request), show_text=True)
    return elements_response(MESSAGES.elements(request, rows))


async def replay_selected(request: PageRequest) -> Response:
    """Replay the callbacks of the selected messages that are no longer tried, delivered or not."""
    ids, path = await selected_ids(request), f"/apps/{request.app.id}"
    try:
        count = (await replay_callbacks(request, message_ids=ids))["replayed"]
    except ApiResponseError as error:
        return request.redirect(f"{path}/messages", error.message, kind="bad")
    if not count:
        hint = "These messages have no callbacks, or they are still being delivered."
        return request.redirect(f"{path}/messages", "Nothing was replayed.", hint=hint, kind="warn")
    notice = f"Replaying {format_number(count)} {'callback' if count == 1 else 'callbacks'}."
    return request.redirect(f"{path}/callbacks/deliveries", notice, hint=REPLAYED_HINT)


_PICTURE_KINDS: Final = ("image", "sticker")


async def _read_received(request: PageRequest, filters: ListFilter, query: ListQuery) -> ListRows:
    page = SearchPage(parse_cursor(query.before), query.at_most, query.scan_limit or MAX_SCANNED_ROWS)
    found = await request.read_own(search_inbound, filters.search, page)
    rows = await _view_rows(request, found.rows)
    return ListRows(rows, encode_cursor(found.next), found.searched_to_ms)


async def _find_received(request: PageRequest, ids: Sequence[str]) -> Sequence[dict[str, Any]]:
    rows = await request.read_own(find_inbound_by_ids, ids)
    newest = sorted(rows, key=lambda row: (row["received_on_ms"], row["operator_message_id"]), reverse=True)
    return await _view_rows(request, newest)


async def _view_rows(
    request: PageRequest, rows: Sequence[dict[str, Any]], *, show_text: bool = False
) -> list[dict[str, Any]]:
    """Return rows with the text that may be seen, and the pictures that were fetched."""
    sights = [TextVisibility(show_text or request.services.show_text, row["holds_code"]) for row in rows]
    pictures = sorted(
        {row["media_id"] for row, sight in zip(rows, sights, strict=True) if sight.is_open and _is_picture(row)}
    )
    now_ms = request.now_ms()
    keys: Mapping[str, str] = {}
    if pictures:
        keys = await request.read(fetched_media_keys, request.app.id, pictures, now_ms)
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


_RECEIVED_TITLE: Final = (
    "Texts, captions, button labels and what forms contain; replies to one-time codes are not searched"
)
RECEIVED: Final = ListPage(
    name="received",
    path="/apps/{app_id}/messages/received",
    title="Received messages",
    noun="messages",
    macros="messages/received_parts.html",
    columns=("From", "Message", "In reply to", "Received"),
    form=FilterForm(
        (PERSON_FIELD, FilterField("text", "Message text", parse_searched_text, kind="search", title=_RECEIVED_TITLE)),
        MessageFilter,
        {"from": "from_ms", "until": "until_ms"},
    ),
    read=_read_received,
    find=_find_received,
    element_id=lambda row: f"r-{hash_secret(row['operator_message_id'])[:24]}",  # not every id is a valid one
    cursor=lambda row: encode_cursor(MessageCursor(row["received_on_ms"], row["operator_message_id"])),
    export={
        **members("operator_message_id", "phone_number", "user_id", "name", "kind", "replies_to"),
        "received": lambda row: iso_time(row["received_on_ms"]),
    },
)


async def reveal_received(request: PageRequest) -> Response:
    """Return one message with its text; a reply to a one-time code stays hidden."""
    message = await request.read_own(find_inbound_details, await request.field("id"))
    if message is None:
        raise NotFound("Message not found.")
    rows = await _view_rows(request, [message], show_text=True)
    return elements_response(RECEIVED.elements(request, rows))
