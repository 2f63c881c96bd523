"""The list of an app's sent messages: the page, its live updates, and older messages."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from starlette.responses import RedirectResponse, Response

from waypost.console.messages.filters import KINDS, STATES, TIMES, Filter, read_filter, written_place
from waypost.console.messages.list_rows import Line, lines_of
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece, answer_with
from waypost.store.messages.lists import MOST, template_names
from waypost.store.messages.search import messages_again, search_messages
from waypost.store.messages.search_pages import Found, Page

PARTS: Final = "messages/parts.html"
ON_A_PAGE: Final = 50
LIVE_LOOK: Final = 2_000
"""Maximum messages that one update of a stream reads; it updates twice a second."""
LATE_MS: Final = 10_000
"""A message may be committed this much later than a newer one."""
MOST_WATCHED: Final = 200
REST_S: Final = 0.5
"""Minimum time between two updates, so that the list stays readable."""


async def show_list(desk: PageTools, visit: PageRequest) -> Response:
    """Show the list; redirect to the message if the filter is a message id."""
    filters = _filter(desk, visit)
    names = await _names(desk, visit)
    matches = Found([]) if filters.wrong else await _search(desk, visit, filters)
    if filters.is_id_alone and len(matches.rows) == 1 and matches.next is None:
        return RedirectResponse(f"/apps/{visit.app.id}/messages/{matches.rows[0]['id']}", 303)
    return await desk.page(
        visit, "messages/list.html",
        filters=filters, page=_page(desk, matches, names), names=names,
        kinds=KINDS, states=STATES, times=TIMES,
    )  # fmt: skip


async def show_more(desk: PageTools, visit: PageRequest) -> Response:
    """Return older messages as page elements, with the link to further ones."""
    filters = _filter(desk, visit)
    matches = Found([]) if filters.wrong else await _search(desk, visit, filters)
    page = _page(desk, matches, await _names(desk, visit))
    part = desk.parts.pages.part
    pieces = [Piece(f"m-{line.id}", part(PARTS, "row", visit, visit.app, line), "rows") for line in page.lines]
    foot = Piece("foot", part(PARTS, "foot", visit, visit.app, filters, page))
    return answer_with([*pieces, foot])


async def live_list(desk: PageTools, visit: PageRequest) -> Response:
    """Stream new messages and changes of the shown ones."""
    filters = _filter(desk, visit)
    watched: dict[str, Line] = {}
    html: dict[str, tuple[Line, str]] = {}
    names = await _names(desk, visit)
    newest_ms = 0

    async def render() -> Sequence[Piece]:
        nonlocal newest_ms, names
        if filters.wrong:
            return []
        rows = await _news(desk, visit, filters, newest_ms, list(watched))
        if any(row["template_id"] and row["template_id"] not in names for row in rows):
            names = await _names(desk, visit)
        lines = sorted(
            lines_of(rows, names, show_text=desk.parts.show_text), key=lambda line: (line.accepted_on_ms, line.id)
        )
        newest_ms = max([newest_ms, *(line.accepted_on_ms for line in lines)])
        for line in lines:
            watched.pop(line.id, None)
            if not line.is_final:
                watched[line.id] = line
        while len(watched) > MOST_WATCHED:
            del watched[next(iter(watched))]
        previous = dict(html)
        html.clear()
        for line in lines:
            rendered = previous.get(line.id)
            if rendered is None or rendered[0] != line:
                rendered = line, desk.parts.pages.part(PARTS, "row", visit, visit.app, line)
            html[line.id] = rendered
        return [Piece(f"m-{id}", rendered, "fresh", "start") for id, (_, rendered) in html.items()]  # noqa: A001

    return desk.live(visit, render, rest_s=REST_S, at_least_s=2.0)


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of the list.

    Attributes:
        older: cursor of the next page; empty if there is none.
        back_to_ms: time back to which was searched, if the page ended at the search limit.
    """

    lines: list[Line]
    older: str
    back_to_ms: int | None


def _page(desk: PageTools, found: Found, names: Mapping[str, str]) -> ListPage:
    older = "" if found.next is None else written_place(found.next)
    return ListPage(lines_of(found.rows, names, show_text=desk.parts.show_text), older, found.back_to_ms)


def _filter(desk: PageTools, visit: PageRequest) -> Filter:
    return read_filter(visit.request.query_params, desk.parts.clock.now_ms())


async def _search(desk: PageTools, visit: PageRequest, asked: Filter) -> Found:
    page = Page(asked.before, ON_A_PAGE)
    return await desk.parts.database.read(search_messages, visit.partner.id, visit.app.id, asked.wanted, page)


async def _names(desk: PageTools, visit: PageRequest) -> dict[str, str]:
    return await desk.parts.database.read(template_names, visit.partner.id, visit.app.id)


async def _news(
    desk: PageTools, visit: PageRequest, asked: Filter, newest_ms: int, watched: list[str]
) -> list[dict[str, Any]]:
    """Return the newest messages that match, and the shown ones that may have changed."""
    search = asked.wanted
    can_gain_old = search.state is not None or search.code is not None  # an old message may change and match
    if newest_ms and not can_gain_old:
        search = replace(search, from_ms=max(search.from_ms or 0, newest_ms - LATE_MS))
    read = desk.parts.database.read
    page = Page(at_most=MOST if newest_ms else ON_A_PAGE, look_at=LIVE_LOOK)
    matches = await read(search_messages, visit.partner.id, visit.app.id, search, page)
    known = {row["id"] for row in matches.rows}
    others = [message_id for message_id in watched if message_id not in known]
    if others:
        matches.rows.extend(await read(messages_again, visit.partner.id, visit.app.id, others))
    return matches.rows
