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
from waypost.console.page_request import PageRequest
from waypost.console.web.errors import InvalidPageRequest, NotFound
from waypost.console.web.formatting import format_phone
from waypost.console.web.forms import parse_number
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


async def show_thread(request: PageRequest) -> Response:
    """Show the conversation; a former id of the recipient redirects to the one that counts.

    Raises:
        NotFound: there is no such recipient.
    """
    head = await read_head(request)
    if str(head["id"]) != request.path_params["recipient_id"]:
        return RedirectResponse(thread_path(request, head), 303)
    show_text = request.services.show_text
    context = FilterContext(request.now_ms(), request.zone, show_text)
    filters = THREAD_FORM.read(request.http.query_params, context)
    request.searches_hidden_text = filters.search.whole_words
    found = SearchResults([])
    if not filters.wrong:
        found = await _search(request, head, filters)
    approved: list[Any] = []
    app = request.app
    if app.business_account_id:
        query = GalleryFilter(status=TemplateStatus.APPROVED.value)
        newest = partial(gallery_page, query=query, at_most=MAX_OFFERED_TEMPLATES)
        scope = (request.partner.id, app.business_account_id)
        approved = (await request.read(newest, *scope)).templates
    return await request.page(
        "conversations/thread.html",
        head=head,
        filters=filters,
        entries=await _entries(request, head, found.rows),
        shown_parts=THREAD_PARTS,
        older=encode_cursor(found.next),
        back_to_ms=found.searched_to_ms,
        approved=approved,
        path=thread_path(request, head),
        text_hint="" if show_text else HIDDEN_TEXT_HINT,
    )


async def live_thread(request: PageRequest) -> Response:
    """Stream new messages, changed statuses and the window of the newest page."""
    head = await read_head(request)
    filters = ListFilter({}, ThreadFilter(), {})

    async def render() -> Sequence[PageElement]:
        current = await read_head(request)
        found = await _search(request, head, filters)
        return [
            PageElement("talk-facts", request.macro(THREAD_MACROS, "facts", request, current)),
            *(
                PageElement(entry["key"], _html(request, current, entry), "talk")
                for entry in await _entries(request, head, found.rows)
            ),
        ]

    return request.live(render, rest_s=THREAD_REST_S, at_least_s=2.0)


async def reveal_message(request: PageRequest) -> Response:
    """Return one message with its text; a one-time code stays hidden.

    Raises:
        NotFound: the app has no such message.
    """
    head = await read_head(request)
    message_id = await request.field("id")
    sent = await request.read_own(current_messages, [message_id])
    received = None if sent else await request.read_own(find_inbound_details, message_id)
    row = {"sent": sent[0] if sent else None, "received": received}
    if not sent and received is None:
        raise NotFound("Message not found.")
    [entry] = await _entries(request, head, [row], show_text=True)
    return elements_response([PageElement(entry["key"], _html(request, head, entry))])


async def read_head(request: PageRequest) -> dict[str, Any]:
    """Return the recipient of the path: a row of the list of conversations with texts for its page.

    Members are also `address`: the number, or the business-scoped id; `number`; `other_numbers`: those whose
    WhatsApp id is the recipient's number; and `is_open`: the customer service window is open.

    Raises:
        NotFound: the app has no such recipient.
    """
    recipient_id = parse_number(request.path_params["recipient_id"])
    row = None if recipient_id is None else await request.read_own(find_conversation, recipient_id)
    if row is None:
        raise NotFound("Conversation not found.")
    number, until_ms = row["phone_number"] or "", row["window_until_ms"]
    return {
        **row,
        "address": number or row["user_id"] or "",
        "number": number,
        "other_numbers": [name for name in row["names"] if name.isdecimal() and name != number],
        "is_open": until_ms is not None and until_ms > request.now_ms(),
    }


def thread_path(request: PageRequest, head: Mapping[str, Any]) -> str:
    """Return the path of a conversation's page."""
    return f"/apps/{request.app.id}/conversations/{head['id']}"


async def _search(request: PageRequest, head: Mapping[str, Any], filters: ListFilter) -> SearchResults:
    recipient = ThreadRecipient(head["id"], tuple(head["names"]), request.app.phone_number or "")
    page = SearchPage(parse_cursor(filters.before), ENTRIES_PER_PAGE)
    return await request.read_own(search_thread, recipient, filters.search, page)


async def _entries(
    request: PageRequest, head: Mapping[str, Any], rows: Sequence[dict[str, Any]], *, show_text: bool = False
) -> list[ThreadEntry]:
    ids = {row["sent"]["template_id"] for row in rows if row["sent"] is not None and row["sent"]["template_id"]}
    found = await request.read(templates_by_ids, ids) if ids else {}
    own = {id: one for id, one in found.items() if one.partner_id == request.partner.id}  # noqa: A001
    show_text = show_text or request.services.show_text
    media_ids = media_ids_of(rows) if show_text else []
    now_ms = request.now_ms()
    keys = await request.read(fetched_media_keys, request.app.id, media_ids, now_ms) if media_ids else {}
    names = request.app.name, head["name"] or format_phone(head["address"])
    return thread_entries(rows, ThreadContext(own, keys, show_text, *names))


def _html(request: PageRequest, head: Mapping[str, Any], entry: ThreadEntry) -> str:
    return request.macro(THREAD_MACROS, "entry", request, head, entry)


async def send_reply(request: PageRequest) -> Response:
    """Send a text to the recipient, and return to the conversation; an open page gets the message from its stream.

    Raises:
        InvalidPageRequest: there is no text.
        NotFound: the app has no such recipient.
    """
    head = await read_head(request)
    text = (await request.field("text")).strip()
    if not text:
        raise InvalidPageRequest("The reply has no text.", "Enter a text.")
    app = request.app
    fields = {
        "channel": "whatsapp",
        "source": app.phone_number or "",
        "src.name": app.name,
        "destination": head["address"],
        "message": json.dumps({"type": "text", "text": text}, ensure_ascii=False),
    }
    path = thread_path(request, head)
    try:
        await request.services.apis.app(app).form("POST", f"/partner/app/{app.id}/msg", fields)
    except ApiResponseError as error:
        return error_response(request, f"{path}#latest", error)
    return action_response(request, f"{path}#latest", "Sent.")


async def mark_read(request: PageRequest) -> Response:
    """Mark the messages received so far as read, for the recipient too.

    Raises:
        NotFound: the app has no such recipient.
    """
    head = await read_head(request)
    path = thread_path(request, head)
    app = request.app
    if head["last_received_id"]:
        receipt = {"type": "message-event", "message": {"status": "read", "message_id": head["last_received_id"]}}
        try:
            await request.services.apis.app(app).json("POST", f"/partner/app/{app.id}/v1/event", receipt)
        except ApiResponseError as error:
            return error_response(request, f"{path}#latest", error)
    return request.redirect(f"{path}#latest", "Marked as read.")
