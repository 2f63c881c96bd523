"""The list of an app's sent messages: the page, its live updates, and older messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.responses import RedirectResponse, Response

from waypost.console.messages.filters import (
    FILTER_TIMES,
    HIDDEN_TEXT_HINT,
    MESSAGE_KINDS,
    MESSAGE_STATES,
    MessageListFilter,
    encode_cursor,
    read_filter,
)
from waypost.console.messages.list_rows import MessageListContext, MessageListRow, message_rows
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import PageElement, elements_response
from waypost.store.messages.lists import MAX_PAGE_ROWS, SearchPage, SearchResults, template_names
from waypost.store.messages.recipients import recipient_names
from waypost.store.messages.search import current_messages, search_messages
from waypost.store.templates.templates import templates_by_ids

MESSAGE_LIST_MACROS: Final = "messages/parts.html"
MESSAGES_PER_PAGE: Final = 50
SENT_SCAN_LIMIT: Final = 2_000
"""Maximum messages that one update of a stream reads; it updates twice a second."""
LATE_COMMIT_MS: Final = 10_000
"""A message may be committed this much later than a newer one."""
MAX_WATCHED: Final = 200
MESSAGE_LIST_REST_S: Final = 0.5
"""Minimum time between two updates, so that the list stays readable."""


async def show_list(tools: PageTools, page_request: PageRequest) -> Response:
    """Show the list; redirect to the message if the filter is a message id."""
    filters = read_page_filter(tools, page_request)
    names = await tools.services.database.read(template_names, page_request.partner.id, page_request.app.id)
    matches = SearchResults([]) if filters.wrong else await _search(tools, page_request, filters)
    if filters.is_id_alone and len(matches.rows) == 1 and matches.next is None:
        return RedirectResponse(f"/apps/{page_request.app.id}/messages/{matches.rows[0]['id']}", 303)
    return await tools.page(
        page_request, "messages/list.html",
        filters=filters, page=await _page(tools, page_request, matches), names=names,
        kinds=MESSAGE_KINDS, states=MESSAGE_STATES, times=FILTER_TIMES, show_text=tools.services.show_text,
        text_hint="" if tools.services.show_text else HIDDEN_TEXT_HINT,
    )  # fmt: skip


async def show_more(tools: PageTools, page_request: PageRequest) -> Response:
    """Return older messages as page elements, with the link to further ones."""
    filters = read_page_filter(tools, page_request)
    matches = SearchResults([]) if filters.wrong else await _search(tools, page_request, filters)
    page = await _page(tools, page_request, matches)
    part = tools.services.pages.render_macro
    pieces = [
        PageElement(f"m-{line.id}", part(MESSAGE_LIST_MACROS, "row", page_request, page_request.app, line), "rows")
        for line in page.lines
    ]
    foot = PageElement("foot", part(MESSAGE_LIST_MACROS, "foot", page_request, page_request.app, filters, page))
    return elements_response([*pieces, foot])


async def live_list(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream new messages and changes of the shown ones."""
    filters = read_page_filter(tools, page_request)
    watched: dict[str, MessageListRow] = {}
    html: dict[str, tuple[MessageListRow, str]] = {}
    newest_ms = first_ms = 0

    async def render() -> Sequence[PageElement]:
        nonlocal newest_ms, first_ms
        if filters.wrong:
            return []
        rows = await _changed_rows(
            tools, page_request, filters, max(newest_ms - LATE_COMMIT_MS, first_ms), list(watched)
        )
        lines = sorted(
            await read_list_rows(tools, page_request, page_request.app.id, rows),
            key=lambda line: (line.accepted_on_ms, line.id),
        )
        if len(lines) >= MESSAGES_PER_PAGE and not newest_ms:
            first_ms = lines[0].accepted_on_ms  # older ones are not on the page, and do not belong at its top
        newest_ms = max([newest_ms, *(line.accepted_on_ms for line in lines)])
        for line in lines:
            watched.pop(line.id, None)
            if not line.is_final:
                watched[line.id] = line
        while len(watched) > MAX_WATCHED:
            del watched[next(iter(watched))]
        previous = dict(html)
        html.clear()
        for line in lines:
            rendered = previous.get(line.id)
            if rendered is None or rendered[0] != line:
                rendered = (
                    line,
                    tools.services.pages.render_macro(MESSAGE_LIST_MACROS, "row", page_request, page_request.app, line),
                )
            html[line.id] = rendered
        return [PageElement(f"m-{id}", rendered, "fresh", "start") for id, (_, rendered) in html.items()]  # noqa: A001

    return tools.live(page_request, render, rest_s=MESSAGE_LIST_REST_S, at_least_s=2.0)


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of the list.

    Attributes:
        older: cursor of the next page; empty if there is none.
        back_to_ms: time back to which was searched, if the page ended at the search limit.
    """

    lines: list[MessageListRow]
    older: str
    back_to_ms: int | None


async def read_list_rows(
    tools: PageTools, page_request: PageRequest, app_id: str, rows: Sequence[dict[str, Any]], *, show_text: bool = False
) -> list[MessageListRow]:
    """Return rows of the store as the list shows them.

    Args:
        tools: the page tools.
        page_request: the request.
        app_id: of the messages.
        rows: as `search_messages` returns them.
        show_text: true if they were revealed.
    """
    read = tools.services.database.read
    ids = {row["template_id"] for row in rows if row["template_id"]}
    found = await read(templates_by_ids, ids) if ids else {}
    context = MessageListContext(
        show_text or tools.services.show_text,
        {id: one for id, one in found.items() if one.partner_id == page_request.partner.id},  # noqa: A001
        await read(recipient_names, app_id, {row["destination"] for row in rows}) if rows else {},
    )
    return message_rows(rows, context)


async def _page(tools: PageTools, page_request: PageRequest, found: SearchResults) -> ListPage:
    older = "" if found.next is None else encode_cursor(found.next)
    rows = await read_list_rows(tools, page_request, page_request.app.id, found.rows)
    return ListPage(rows, older, found.searched_to_ms)


def read_page_filter(
    tools: PageTools, page_request: PageRequest, fields: Mapping[str, str] | None = None
) -> MessageListFilter:
    """Return the filter of a request; a search in hidden texts is noted for the audit log.

    Args:
        tools: the page tools.
        page_request: the request.
        fields: of the query string, if not all of them count.
    """
    fields = page_request.request.query_params if fields is None else fields
    show_text = tools.services.show_text
    filters = read_filter(fields, tools.services.clock.now_ms(), page_request.zone, show_text=show_text)
    page_request.searches_hidden_text = filters.search.whole_words
    return filters


async def _search(tools: PageTools, page_request: PageRequest, filters: MessageListFilter) -> SearchResults:
    page = SearchPage(filters.before, MESSAGES_PER_PAGE)
    return await tools.services.database.read(
        search_messages, page_request.partner.id, page_request.app.id, filters.search, page
    )


async def _changed_rows(
    tools: PageTools, page_request: PageRequest, filters: MessageListFilter, since_ms: int, watched: list[str]
) -> list[dict[str, Any]]:
    """Return the newest messages that match, since a time if it is not 0, and the shown ones that may have changed."""
    search = filters.search
    can_gain_old = search.state is not None or search.code is not None  # an old message may change and match
    if since_ms > 0 and not can_gain_old:
        search = replace(search, from_ms=max(search.from_ms or 0, since_ms))
    read = tools.services.database.read
    page = SearchPage(at_most=MAX_PAGE_ROWS if since_ms > 0 else MESSAGES_PER_PAGE, scan_limit=SENT_SCAN_LIMIT)
    matches = await read(search_messages, page_request.partner.id, page_request.app.id, search, page)
    known = {row["id"] for row in matches.rows}
    others = [message_id for message_id in watched if message_id not in known]
    if others:
        matches.rows.extend(await read(current_messages, page_request.partner.id, page_request.app.id, others))
    return matches.rows
