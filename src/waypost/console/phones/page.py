"""The phones page: list of phones, open handsets, their stream, and older messages."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from waypost.client.api_client import ApiResponseError, NotReached
from waypost.console.page_tools import PageTools
from waypost.console.phones.error_texts import told
from waypost.console.phones.items import Entry, summary_of
from waypost.console.phones.selection import LIST, Place, Places, asked, digits_of, needed
from waypost.console.phones.view_models import Handset, app_of, control_of, look_at, numbers_of, older_than
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece, answer_with

PARTS: Final = "phones/handset.html"
CHAT: Final = "phones/chat.html"
ABOUT: Final = "phones/about.html"
REST_S: Final = 0.06
"""Pause between two updates of a stream; short, so that a message appears right after it was sent."""
AT_LEAST_S: Final = 0.8
_LISTED: Final = 60


async def show_phones(desk: PageTools, visit: PageRequest) -> Response:
    """Return the selected phones side by side; the list of phones if none is selected."""
    if desk.parts.apis.control is None:
        return await desk.page(visit, "phones/none.html")
    if visit.query("add"):
        selection = Places.of(visit).showing(needed(visit.query("add")), "")
        return desk.go(selection.address)
    selection = Places.of(visit)
    if not selection.all:
        return await desk.page(visit, "phones/list.html", **await _phones(desk, visit))
    handsets = [await told(look_at(desk, visit, place)) for place in selection.all]
    selection = _as_opened(selection, handsets)
    phones = await _phones(desk, visit)
    return await desk.page(visit, "phones/page.html", selection=selection, handsets=handsets, **phones)


async def live_phones(desk: PageTools, visit: PageRequest) -> Response:
    """Stream what changes on the handsets."""
    control_of(desk)
    selection = Places.of(visit)
    renderer = Drawn(desk, visit, selection)

    async def render_pieces() -> Sequence[Piece]:
        pieces: list[Piece] = []
        for place in selection.all:
            pieces += await renderer.pieces(await look_at(desk, visit, place))
        return pieces

    return desk.live(visit, render_pieces, rest_s=REST_S, at_least_s=AT_LEAST_S)


async def show_handset(desk: PageTools, visit: PageRequest) -> Response:
    """Return a whole handset, for a page that opens another chat on it: `{pieces, live, address}`."""
    selection = Places.of(visit)
    phone = digits_of(str(visit.path["phone"]))
    if phone not in selection.phones:
        raise NotThere("This phone is not shown.")
    handset = await told(look_at(desk, visit, Place(phone, selection.chat_of(phone))))
    selection = _as_opened(selection, [handset])
    html = desk.parts.pages.part(PARTS, "handset", visit, visit, handset, selection)
    piece = Piece(f"phone-{phone}", html)
    return answer_with([piece], live=f"/phones/live?{selection.query}", address=selection.address)


async def show_older(desk: PageTools, visit: PageRequest) -> Response:
    """Return messages before those that are shown, as HTML, and the position below which there are more."""
    phone, number = needed(str(visit.path["phone"])), str(visit.path["number"])
    before = visit.query("before")
    if not (before.isascii() and before.isdigit() and len(before) < 18):
        raise NotThere("There are no older messages.")
    entries, more = await told(older_than(desk, visit, phone, number, int(before)))
    app = app_of(visit, number)
    part = desk.parts.pages.part
    html = [part(CHAT, "one", visit, visit, entry, phone, app) for entry in entries]
    return JSONResponse({"html": html, "before": more})


class Drawn:
    """Renders handsets for one stream; messages that have not changed are not rendered again.

    Args:
        places: the phones that the page shows.
    """

    def __init__(self, desk: PageTools, visit: PageRequest, places: Places) -> None:
        self._part = desk.parts.pages.part
        self._visit = visit
        self._places = places
        self._known: dict[str, tuple[Entry, str]] = {}

    async def pieces(self, hand: Handset) -> list[Piece]:
        """Return the pieces of one handset that may change."""
        part, visit, phone = self._part, self._visit, hand.phone
        pieces = [
            Piece(f"status-{phone}", part(PARTS, "status", visit, hand)),
            Piece(f"outside-{phone}", part(PARTS, "outside", visit, visit, hand, self._places)),
            Piece(f"facts-{phone}", part(ABOUT, "facts", visit, visit, hand)),
        ]
        if hand.open is None:
            chats = part(PARTS, "chat_list", visit, hand, self._places)
            return [*pieces, Piece(f"chats-{phone}", chats)]
        into = f"items-{phone}-{hand.open.number}"
        known, self._known = (
            self._known,
            {key: item for key, item in self._known.items() if key.split("-")[1] != phone},
        )
        for entry in hand.entries:
            rendered = known.get(entry.key)
            if rendered is None or rendered[0] != entry:
                await asyncio.sleep(0)  # a hundred bubbles take some time: let other tasks run
                html = part(CHAT, "one", visit, visit, entry, phone, hand.open.app)
                rendered = (entry, html)
            self._known[entry.key] = rendered
            pieces.append(Piece(entry.key, rendered[1], into))
        return [
            *pieces,
            Piece(f"older-{phone}", part(CHAT, "older", visit, hand), into, "start"),
            Piece(f"head-{phone}", part(CHAT, "head", visit, visit, hand, self._places)),
            Piece(f"typing-{phone}", part(CHAT, "typing", visit, hand)),
            Piece(f"note-{phone}", part(CHAT, "note", visit, visit, hand)),
        ]


def _as_opened(places: Places, hands: Sequence[Handset]) -> Places:
    """Return the selection with the chat that each handset shows, so that streams keep showing it."""
    for handset in hands:
        places = places.showing(handset.phone, handset.open.number if handset.open else LIST)
    return places


async def _phones(desk: PageTools, visit: PageRequest) -> dict[str, Any]:
    """Return the phones that have chats with the partner's numbers, and those without any chat."""
    control, mine = control_of(desk), list(numbers_of(visit))
    try:
        active: list[dict[str, Any]] = []
        if mine:
            chats = await control.get(f"/control/chats?{asked(mine)}&limit={_LISTED}")
            active = chats["phones"]
        unused = await control.get(f"/control/phones?has_chats=false&limit={_LISTED}")
    except (ApiResponseError, NotReached) as error:
        raise NotReached(str(error)) from error
    for phone in active:
        phone["summary"] = summary_of(phone["last"]) if phone["last"] else ""
    return {"active": active, "unused": unused["phones"], "no_chat": LIST}
