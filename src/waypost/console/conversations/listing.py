"""The list of conversations: recipients by last activity, with their last message."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection

from waypost.console.list_filters import (
    FilterContext,
    FilterField,
    FilterForm,
    ListFilter,
    Members,
    encode_cursor,
    parse_cursor,
    person_as,
    unknown_value,
)
from waypost.console.lists import ListPage, ListQuery, ListRows, members
from waypost.console.messages.failure_explanations import explain_failure
from waypost.console.messages.list_rows import MAX_COUNTED_CHARS, MAX_PREVIEW_CHARS, kind_label
from waypost.console.page_request import PageRequest
from waypost.console.web.forms import parse_number
from waypost.console.web.zones import iso_time
from waypost.store.console.conversations import (
    MAX_SCANNED_ACTIVITIES,
    MAX_UNREAD,
    ConversationFilter,
    find_conversation,
    list_conversations,
)
from waypost.store.encoding import short_text
from waypost.store.messages.lists import MessageCursor, SearchPage, template_names_by_ids
from waypost.wire.redaction import TextVisibility, redact_preview

RECEIVED_LABELS: Final = {  # labels of the operator's kinds that are not kinds of session messages
    "text": "Text", "button": "Button", "interactive": "Choice", "list_reply": "Choice", "button_reply": "Choice",
    "nfm_reply": "Form", "image": "Image", "video": "Video", "audio": "Audio", "document": "Document",
    "sticker": "Sticker", "location": "Location", "contacts": "Contacts", "reaction": "Reaction", "order": "Order",
    "system": "Notice",
}  # fmt: skip
_STATES: Final = (("", "All"), ("unread", "Unread"), ("open", "Window open"), ("failed", "Last message failed"))


def _parse_state(text: str, context: FilterContext) -> Members:
    match text:
        case "unread":
            return {"is_unread": True}
        case "open":
            return {"open_at_ms": context.now_ms}
        case "failed":
            return {"has_failed": True}
        case _:
            raise ValueError(unknown_value("filter", [label for value, label in _STATES if value]))


CONVERSATION_FORM: Final = FilterForm(
    (
        FilterField(
            name="q",
            label="Name, number or ID",
            kind="search",
            parse=person_as(number="number", id="id", name="name"),
            placeholder="Name, phone number or its last 4 digits, or an ID",
        ),
        FilterField(name="state", label="Show", kind="select", parse=_parse_state, options=_STATES),
    ),
    ConversationFilter,
    {},
)


async def _read(request: PageRequest, filters: ListFilter, query: ListQuery) -> ListRows:
    page = SearchPage(parse_cursor(query.before), query.at_most, query.scan_limit or MAX_SCANNED_ACTIVITIES)
    found = await request.read_own(list_conversations, filters.search, page)
    return ListRows(await _view_rows(request, found.rows), encode_cursor(found.next), found.searched_to_ms)


async def _find(request: PageRequest, ids: Sequence[str]) -> Sequence[dict[str, Any]]:
    numbers = [number for number in map(parse_number, ids) if number is not None]

    def find(connection: Connection) -> list[dict[str, Any]]:
        rows = (find_conversation(connection, request.partner.id, request.app.id, one) for one in numbers)
        return sorted((row for row in rows if row is not None), key=lambda row: -row["last_ms"])

    return await _view_rows(request, await request.read(find))


async def _view_rows(request: PageRequest, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    ids = [row["sent"]["template_id"] for row in rows if row["sent"]]
    names = await request.read(template_names_by_ids, request.partner.id, ids)
    now_ms, show_text = request.now_ms(), request.services.show_text
    return [
        {
            **row,
            "address": row["phone_number"] or row["user_id"] or "",
            "is_open": row["window_until_ms"] is not None and row["window_until_ms"] > now_ms,
            "unread_text": f"{MAX_UNREAD - 1}+" if row["unread"] >= MAX_UNREAD else str(row["unread"] or ""),
            **_describe_last(row, names, show_text=show_text),
        }
        for row in rows
    ]


def _describe_last(row: Mapping[str, Any], names: Mapping[str, str], *, show_text: bool) -> dict[str, Any]:
    """Return the last message: whether it was sent, the template's name or its kind, its text, state and problem."""
    sent, received = row["sent"], row["received"]
    is_sent = received is None or (sent is not None and sent["accepted_on_ms"] >= received["received_on_ms"])
    last: dict[str, Any] = {"is_sent": is_sent, "what": "", "text": "", "state": "", "problem": ""}
    if is_sent and sent is not None:
        sight = TextVisibility(show_text, sent["holds_code"])
        line = short_text(sent["content"], MAX_PREVIEW_CHARS if sight.is_open else MAX_COUNTED_CHARS)
        last["what"] = names.get(sent["template_id"] or "", kind_label(sent["kind"], sent["content"]))
        last["text"], last["state"] = redact_preview(line, sight), str(sent["state"])
        last["problem"] = explain_failure(sent["code"]).what if sent["state"] == "failed" else ""
    elif received is not None:
        last["what"] = RECEIVED_LABELS.get(received["kind"], str(received["kind"]))
        last["text"] = redact_preview(received["text"] or "", TextVisibility(show_text, received["holds_code"]))
    return last


CONVERSATIONS: Final = ListPage(
    name="conversations",
    path="/apps/{app_id}/conversations",
    title="Conversations",
    noun="conversations",
    macros="conversations/list_parts.html",
    sheets=("conversations",),
    columns=("Recipient", "Last message", "Status", "Last activity"),
    form=CONVERSATION_FORM,
    read=_read,
    find=_find,
    element_id=lambda row: f"c-{row['id']}",
    cursor=lambda row: encode_cursor(MessageCursor(row["last_ms"], str(row["id"]))),
    export={
        **members("phone_number", "user_id", "name", "unread", "state"),
        "last_activity": lambda row: iso_time(row["last_ms"]),
        "window_until": lambda row: iso_time(row["window_until_ms"]),
    },
)
