"""The list of conversations: recipients by last activity, with their last message."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from waypost.console.conversations.filters import CONVERSATION_STATES, read_conversation_filter
from waypost.console.messages.failure_explanations import explain_failure
from waypost.console.messages.filters import encode_cursor
from waypost.console.messages.list_rows import MAX_COUNTED_CHARS, MAX_PREVIEW_CHARS, kind_label
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.store.console.conversations import MAX_SCANNED_ACTIVITIES, MAX_UNREAD, list_conversations
from waypost.store.encoding import short_text
from waypost.store.messages.lists import SearchPage, SearchResults, template_names_by_ids
from waypost.wire.redaction import TextVisibility, redact_preview

CONVERSATIONS_PER_PAGE: Final = 50
RECEIVED_LABELS: Final = {  # labels of the operator's kinds that are not kinds of session messages
    "text": "Text", "button": "Button", "interactive": "Choice", "list_reply": "Choice", "button_reply": "Choice",
    "nfm_reply": "Form", "image": "Image", "video": "Video", "audio": "Audio", "document": "Document",
    "sticker": "Sticker", "location": "Location", "contacts": "Contacts", "reaction": "Reaction", "order": "Order",
    "system": "Notice",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class ConversationRow:
    """One recipient of the list.

    Attributes:
        name: empty if the recipient never wrote.
        address: the number, or the business-scoped id.
        is_open: the customer service window is open.
        unread: the number of unread messages as text, such as `3` or `99+`; empty: none.
        is_sent: the last message was sent, not received.
        what: the template's name or the kind of the last message.
        text: beginning of the last message, or its length if hidden.
        problem: why the last message failed; empty if it did not.
    """

    id: int
    name: str
    address: str
    is_open: bool
    window_until_ms: int | None
    unread: str
    is_sent: bool
    what: str
    text: str
    state: str
    problem: str
    last_ms: int


async def show_conversations(tools: PageTools, page_request: PageRequest) -> Response:
    """Show the list."""
    now_ms = tools.services.clock.now_ms()
    filters = read_conversation_filter(page_request.request.query_params, now_ms)
    found = SearchResults([])
    read = tools.services.database.read
    if not filters.wrong:
        page = SearchPage(filters.before, CONVERSATIONS_PER_PAGE, MAX_SCANNED_ACTIVITIES)
        found = await read(list_conversations, page_request.partner.id, page_request.app.id, filters.search, page)
    sent = [row["sent"] for row in found.rows if row["sent"]]
    names = await read(template_names_by_ids, page_request.partner.id, [row["template_id"] for row in sent])
    rows = [conversation_row(row, names, now_ms, show_text=tools.services.show_text) for row in found.rows]
    return await tools.page(
        page_request, "conversations/list.html",
        filters=filters, rows=rows, states=CONVERSATION_STATES, back_to_ms=found.searched_to_ms,
        older="" if found.next is None else encode_cursor(found.next),
    )  # fmt: skip


def conversation_row(
    row: Mapping[str, Any], names: Mapping[str, str], now_ms: int, *, show_text: bool
) -> ConversationRow:
    """Return a row of the list.

    Args:
        row: as `list_conversations` returns it.
        names: of templates, by id.
        now_ms: by the service's clock; decides whether the window is open.
        show_text: true if texts are shown without a reveal.
    """
    sent, received = row["sent"], row["received"]
    is_sent = received is None or (sent is not None and sent["accepted_on_ms"] >= received["received_on_ms"])
    what = text = state = problem = ""
    if is_sent and sent is not None:
        sight = TextVisibility(show_text, sent["holds_code"])
        line = short_text(sent["content"], MAX_PREVIEW_CHARS if sight.is_open else MAX_COUNTED_CHARS)
        what = names.get(sent["template_id"] or "", kind_label(sent["kind"], sent["content"]))
        text, state = redact_preview(line, sight), str(sent["state"])
        problem = explain_failure(sent["code"]).what if state == "failed" else ""
    elif received is not None:
        what = RECEIVED_LABELS.get(received["kind"], str(received["kind"]))
        text = redact_preview(received["text"] or "", TextVisibility(show_text, received["holds_code"]))
    window_until_ms = row["window_until_ms"]
    unread = row["unread"]
    return ConversationRow(
        id=row["id"],
        name=row["name"],
        address=row["phone_number"] or row["user_id"] or "",
        is_open=window_until_ms is not None and window_until_ms > now_ms,
        window_until_ms=window_until_ms,
        unread="" if not unread else f"{MAX_UNREAD - 1}+" if unread >= MAX_UNREAD else str(unread),
        is_sent=is_sent,
        what=what,
        text=text,
        state=state,
        problem=problem,
        last_ms=row["last_ms"],
    )
