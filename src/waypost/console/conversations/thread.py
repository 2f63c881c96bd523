"""One conversation: the page, its live updates, and the text of one message on request."""

import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from starlette.responses import RedirectResponse, Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import action_response, error_response
from waypost.console.conversations.entries import ThreadContext, ThreadEntry, media_ids_of, thread_entries
from waypost.console.list_filters import (
    HIDDEN_TEXT_HINT,
    FilterContext,
    FilterField,
    FilterForm,
    ListFilter,
    encode_cursor,
    one_of,
    parse_cursor,
    parse_day,
    parse_searched_text,
)
from waypost.console.page_tools import PageTools
from waypost.console.web.formatting import format_phone
from waypost.console.web.page_request import InvalidPageRequest, NotFound, PageRequest
from waypost.console.web.streams import PageElement, elements_response
from waypost.domain.templates.template import TemplateStatus
from waypost.store.console.conversations import find_conversation
from waypost.store.media.media import fetched_media_keys
from waypost.store.messages.lists import SearchPage, SearchResults
from waypost.store.messages.received import find_inbound_details
from waypost.store.messages.search import current_messages
from waypost.store.messages.threads import ThreadFilter, ThreadPart, ThreadRecipient, search_thread
from waypost.store.templates.gallery import GalleryFilter, gallery_page
from waypost.store.templates.templates import templates_by_ids

THREAD_PARTS: Final = (
    (ThreadPart.ALL, "All messages"),
    (ThreadPart.SENT, "Sent"),
    (ThreadPart.RECEIVED, "Received"),
    (ThreadPart.FAILED, "Failed"),
)
THREAD_FORM: Final = FilterForm(
    (
        FilterField(name="text", label="Text in this conversation", parse=parse_searched_text),
        FilterField(name="part", label="Show", parse=one_of("filter", THREAD_PARTS, "part")),
        FilterField(name="day", label="Day", parse=parse_day),
    ),
    ThreadFilter,
    {},
)
THREAD_MACROS: Final = "conversations/parts.html"
ENTRIES_PER_PAGE: Final = 50
MAX_OFFERED_TEMPLATES: Final = 12
THREAD_REST_S: Final = 0.3


async def show_thread(tools: PageTools, page_request: PageRequest) -> Response:
    """Show the conversation; a former id of the recipient redirects to the one that counts.

    Raises:
        NotFound: there is no such recipient.
    """
    head = await read_head(tools, page_request)
    if str(head["id"]) != page_request.path_params["recipient_id"]:
        return RedirectResponse(thread_path(page_request, head), 303)
    show_text = tools.services.show_text
    context = FilterContext(tools.services.clock.now_ms(), page_request.zone, show_text)
    filters = THREAD_FORM.read(page_request.request.query_params, context)
    page_request.searches_hidden_text = filters.search.whole_words
    found = SearchResults([])
    if not filters.wrong:
        found = await _search(tools, page_request, head, filters)
    approved: list[Any] = []
    app = page_request.app
    if app.business_account_id:
        query = GalleryFilter(status=TemplateStatus.APPROVED.value)
        newest = partial(gallery_page, query=query, at_most=MAX_OFFERED_TEMPLATES)
        scope = (page_request.partner.id, app.business_account_id)
        approved = (await tools.services.database.read(newest, *scope)).templates
    return await tools.page(
        page_request,
        "conversations/thread.html",
        head=head,
        filters=filters,
        entries=await _entries(tools, page_request, head, found.rows),
        shown_parts=THREAD_PARTS,
        older=encode_cursor(found.next),
        back_to_ms=found.searched_to_ms,
        approved=approved,
        path=thread_path(page_request, head),
        text_hint="" if show_text else HIDDEN_TEXT_HINT,
    )


async def live_thread(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream new messages, changed statuses and the window of the newest page."""
    head = await read_head(tools, page_request)
    filters = ListFilter({}, ThreadFilter(), {})

    async def render() -> Sequence[PageElement]:
        current = await read_head(tools, page_request)
        found = await _search(tools, page_request, head, filters)
        part = tools.services.pages.render_macro
        return [
            PageElement("talk-facts", part(THREAD_MACROS, "facts", page_request, page_request, current)),
            *(
                PageElement(entry["key"], _html(tools, page_request, current, entry), "talk")
                for entry in await _entries(tools, page_request, head, found.rows)
            ),
        ]

    return tools.live(page_request, render, rest_s=THREAD_REST_S, at_least_s=2.0)


async def reveal_message(tools: PageTools, page_request: PageRequest) -> Response:
    """Return one message with its text; a one-time code stays hidden.

    Raises:
        NotFound: the app has no such message.
    """
    head = await read_head(tools, page_request)
    message_id = await page_request.field("id")
    read, scope = tools.services.database.read, (page_request.partner.id, page_request.app.id)
    sent = await read(current_messages, *scope, [message_id])
    received = None if sent else await read(find_inbound_details, *scope, message_id)
    row = {"sent": sent[0] if sent else None, "received": received}
    if not sent and received is None:
        raise NotFound("Message not found.")
    [entry] = await _entries(tools, page_request, head, [row], show_text=True)
    return elements_response([PageElement(entry["key"], _html(tools, page_request, head, entry))])


async def read_head(tools: PageTools, page_request: PageRequest) -> dict[str, Any]:
    """Return the recipient of the path: a row of the list of conversations with texts for its page.

    Members are also `address`: the number, or the business-scoped id; `number`; `other_numbers`: those whose
    WhatsApp id is the recipient's number; and `is_open`: the customer service window is open.

    Raises:
        NotFound: the app has no such recipient.
    """
    text = page_request.path_params["recipient_id"]
    row = None
    if text.isascii() and text.isdecimal() and len(text) < 19:
        row = await tools.services.database.read(
            find_conversation, page_request.partner.id, page_request.app.id, int(text)
        )
    if row is None:
        raise NotFound("Conversation not found.")
    number, until_ms = row["phone_number"] or "", row["window_until_ms"]
    return {
        **row,
        "address": number or row["user_id"] or "",
        "number": number,
        "other_numbers": [name for name in row["names"] if name.isdecimal() and name != number],
        "is_open": until_ms is not None and until_ms > tools.services.clock.now_ms(),
    }


def thread_path(page_request: PageRequest, head: Mapping[str, Any]) -> str:
    """Return the path of a conversation's page."""
    return f"/apps/{page_request.app.id}/conversations/{head['id']}"


async def _search(
    tools: PageTools, page_request: PageRequest, head: Mapping[str, Any], filters: ListFilter
) -> SearchResults:
    recipient = ThreadRecipient(head["id"], tuple(head["names"]), page_request.app.phone_number or "")
    page = SearchPage(parse_cursor(filters.before), ENTRIES_PER_PAGE)
    return await tools.services.database.read(
        search_thread, page_request.partner.id, page_request.app.id, recipient, filters.search, page
    )


async def _entries(
    tools: PageTools,
    page_request: PageRequest,
    head: Mapping[str, Any],
    rows: Sequence[dict[str, Any]],
    *,
    show_text: bool = False,
) -> list[ThreadEntry]:
    read = tools.services.database.read
    ids = {row["sent"]["template_id"] for row in rows if row["sent"] is not None and row["sent"]["template_id"]}
    found = await read(templates_by_ids, ids) if ids else {}
    own = {id: one for id, one in found.items() if one.partner_id == page_request.partner.id}  # noqa: A001
    show_text = show_text or tools.services.show_text
    media_ids = media_ids_of(rows) if show_text else []
    now_ms = tools.services.clock.now_ms()
    keys = await read(fetched_media_keys, page_request.app.id, media_ids, now_ms) if media_ids else {}
    names = page_request.app.name, head["name"] or format_phone(head["address"])
    return thread_entries(rows, ThreadContext(own, keys, show_text, *names))


def _html(tools: PageTools, page_request: PageRequest, head: Mapping[str, Any], entry: ThreadEntry) -> str:
    return tools.services.pages.render_macro(THREAD_MACROS, "entry", page_request, page_request, head, entry)


async def send_reply(tools: PageTools, page_request: PageRequest) -> Response:
    """Send a text to the recipient, and return to the conversation; an open page gets the message from its stream.

    Raises:
        InvalidPageRequest: there is no text.
        NotFound: the app has no such recipient.
    """
    head = await read_head(tools, page_request)
    text = (await page_request.field("text")).strip()
    if not text:
        raise InvalidPageRequest("The reply has no text.", "Enter a text.")
    app = page_request.app
    fields = {
        "channel": "whatsapp",
        "source": app.phone_number or "",
        "src.name": app.name,
        "destination": head["address"],
        "message": json.dumps({"type": "text", "text": text}, ensure_ascii=False),
    }
    path = thread_path(page_request, head)
    try:
        await tools.services.apis.app(app).form("POST", f"/partner/app/{app.id}/msg", fields)
    except ApiResponseError as error:
        return error_response(tools, page_request, f"{path}#latest", error)
    return action_response(tools, page_request, f"{path}#latest", "Sent.")


async def mark_read(tools: PageTools, page_request: PageRequest) -> Response:
    """Mark the messages received so far as read, for the recipient too.

    Raises:
        NotFound: the app has no such recipient.
    """
    head = await read_head(tools, page_request)
    path = thread_path(page_request, head)
    app = page_request.app
    if head["last_received_id"]:
        receipt = {"type": "message-event", "message": {"status": "read", "message_id": head["last_received_id"]}}
        try:
            await tools.services.apis.app(app).json("POST", f"/partner/app/{app.id}/v1/event", receipt)
        except ApiResponseError as error:
            return error_response(tools, page_request, f"{path}#latest", error)
    return tools.redirect(f"{path}#latest", "Marked as read.")
