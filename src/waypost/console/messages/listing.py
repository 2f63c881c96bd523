"""The list of an app's messages: the page, what comes in while it is open, and older ones."""

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
"""Messages that one look of a stream goes through: it looks twice a second."""
LATE_MS: Final = 10_000
"""So much earlier than the newest that was seen a message may still be committed."""
MOST_WATCHED: Final = 200
REST_S: Final = 0.5
"""Between two looks: people cannot read a list that changes more often."""


async def show_list(desk: PageTools, visit: PageRequest) -> Response:
    """The page; straight to the message where one was asked for by its id."""
    asked = _filter(desk, visit)
    names = await _names(desk, visit)
    found = Found([]) if asked.wrong else await _search(desk, visit, asked)
    if asked.is_id_alone and len(found.rows) == 1 and found.next is None:
        return RedirectResponse(f"/apps/{visit.app.id}/messages/{found.rows[0]['id']}", 303)
    return await desk.page(
        visit, "messages/list.html",
        asked=asked, page=_page(desk, found, names), names=names,
        kinds=KINDS, states=STATES, times=TIMES,
    )  # fmt: skip


async def show_more(desk: PageTools, visit: PageRequest) -> Response:
    """Older messages as pieces of the page, and the foot that leads on from them."""
    asked = _filter(desk, visit)
    found = Found([]) if asked.wrong else await _search(desk, visit, asked)
    page = _page(desk, found, await _names(desk, visit))
    part = desk.parts.pages.part
    pieces = [Piece(f"m-{line.id}", part(PARTS, "row", visit, visit.app, line), "rows") for line in page.lines]
    foot = Piece("foot", part(PARTS, "foot", visit, visit.app, asked, page))
    return answer_with([*pieces, foot])


async def live_list(desk: PageTools, visit: PageRequest) -> Response:
    """What comes in at the top, and what changes of what is shown."""
    asked = _filter(desk, visit)
    watched: dict[str, Line] = {}
    html: dict[str, tuple[Line, str]] = {}
    names = await _names(desk, visit)
    newest_ms = 0

    async def look() -> Sequence[Piece]:
        nonlocal newest_ms, names
        if asked.wrong:
            return []
        rows = await _news(desk, visit, asked, newest_ms, list(watched))
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
        known = dict(html)
        html.clear()
        for line in lines:
            made = known.get(line.id)
            if made is None or made[0] != line:
                made = line, desk.parts.pages.part(PARTS, "row", visit, visit.app, line)
            html[line.id] = made
        return [Piece(f"m-{id}", made, "fresh", "start") for id, (_, made) in html.items()]  # noqa: A001

    return desk.live(visit, look, rest_s=REST_S, at_least_s=2.0)


@dataclass(frozen=True, slots=True)
class ListPage:
    """What is shown.

    Attributes:
        older: where the next page begins; empty: there is nothing older.
        back_to_ms: how far back it was looked, where that is why the page ended.
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
    """The newest that are wanted, and those that were shown and may have changed since."""
    wanted = asked.wanted
    moves = wanted.state is not None or wanted.code is not None  # then an old one may come among them
    if newest_ms and not moves:
        wanted = replace(wanted, from_ms=max(wanted.from_ms or 0, newest_ms - LATE_MS))
    read = desk.parts.database.read
    page = Page(at_most=MOST if newest_ms else ON_A_PAGE, look_at=LIVE_LOOK)
    found = await read(search_messages, visit.partner.id, visit.app.id, wanted, page)
    known = {row["id"] for row in found.rows}
    again = [one for one in watched if one not in known]
    if again:
        found.rows.extend(await read(messages_again, visit.partner.id, visit.app.id, again))
    return found.rows
