"""The page of phones: which there are, those that are held, their stream, and older messages."""

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
"""Between two looks at most so soon: a message should be on the screen while its sender still looks."""
AT_LEAST_S: Final = 0.8
_LISTED: Final = 60


async def show_phones(desk: PageTools, visit: PageRequest) -> Response:
    """The phones side by side; without any, which there are."""
    if desk.parts.apis.control is None:
        return await desk.page(visit, "phones/none.html")
    if visit.query("add"):
        places = Places.of(visit).showing(needed(visit.query("add")), "")
        return desk.go(places.address)
    places = Places.of(visit)
    if not places.all:
        return await desk.page(visit, "phones/list.html", **await _phones(desk, visit))
    hands = [await told(look_at(desk, visit, place)) for place in places.all]
    places = _as_opened(places, hands)
    known = await _phones(desk, visit)
    return await desk.page(visit, "phones/page.html", places=places, hands=hands, **known)


async def live_phones(desk: PageTools, visit: PageRequest) -> Response:
    """What changes of the handsets."""
    control_of(desk)
    places = Places.of(visit)
    drawn = Drawn(desk, visit, places)

    async def look() -> Sequence[Piece]:
        pieces: list[Piece] = []
        for place in places.all:
            pieces += await drawn.pieces(await look_at(desk, visit, place))
        return pieces

    return desk.live(visit, look, rest_s=REST_S, at_least_s=AT_LEAST_S)


async def show_handset(desk: PageTools, visit: PageRequest) -> Response:
    """One handset whole, for a page that opens another chat on it: `{pieces, live, address}`."""
    places = Places.of(visit)
    phone = digits_of(str(visit.path["phone"]))
    if phone not in places.phones:
        raise NotThere("This phone is not shown.")
    hand = await told(look_at(desk, visit, Place(phone, places.chat_of(phone))))
    places = _as_opened(places, [hand])
    html = desk.parts.pages.part(PARTS, "handset", visit, visit, hand, places)
    shown = Piece(f"phone-{phone}", html)
    return answer_with([shown], live=f"/phones/live?{places.query}", address=places.address)


async def show_older(desk: PageTools, visit: PageRequest) -> Response:
    """Messages before those that are shown, as HTML; and below which position there are still more."""
    phone, number = needed(str(visit.path["phone"])), str(visit.path["number"])
    before = visit.query("before")
    if not (before.isascii() and before.isdigit() and len(before) < 18):
        raise NotThere("There is nothing before that.")
    entries, more = await told(older_than(desk, visit, phone, number, int(before)))
    app = app_of(visit, number)
    part = desk.parts.pages.part
    html = [part(CHAT, "one", visit, visit, entry, phone, app) for entry in entries]
    return JSONResponse({"html": html, "before": more})


class Drawn:
    """The pieces of handsets for one stream; a message that has not changed is not drawn again.

    Args:
        places: what the page shows.
    """

    def __init__(self, desk: PageTools, visit: PageRequest, places: Places) -> None:
        self._part = desk.parts.pages.part
        self._visit = visit
        self._places = places
        self._known: dict[str, tuple[Entry, str]] = {}

    async def pieces(self, hand: Handset) -> list[Piece]:
        """Everything of one handset that may change."""
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
        known, self._known = (self._known, {key: one for key, one in self._known.items() if key.split("-")[1] != phone})
        for entry in hand.entries:
            drawn = known.get(entry.key)
            if drawn is None or drawn[0] != entry:
                await asyncio.sleep(0)  # a hundred bubbles are some time: others go between them
                html = part(CHAT, "one", visit, visit, entry, phone, hand.open.app)
                drawn = (entry, html)
            self._known[entry.key] = drawn
            pieces.append(Piece(entry.key, drawn[1], into))
        return [
            *pieces,
            Piece(f"older-{phone}", part(CHAT, "older", visit, hand), into, "start"),
            Piece(f"head-{phone}", part(CHAT, "head", visit, visit, hand, self._places)),
            Piece(f"typing-{phone}", part(CHAT, "typing", visit, hand)),
            Piece(f"note-{phone}", part(CHAT, "note", visit, visit, hand)),
        ]


def _as_opened(places: Places, hands: Sequence[Handset]) -> Places:
    """The places with what each handset shows, so that its stream shows the same whatever is added."""
    for hand in hands:
        places = places.showing(hand.phone, hand.open.number if hand.open else LIST)
    return places


async def _phones(desk: PageTools, visit: PageRequest) -> dict[str, Any]:
    """The phones that have something with the partner's numbers, and those that nobody has used yet."""
    control, mine = control_of(desk), list(numbers_of(visit))
    try:
        active: list[dict[str, Any]] = []
        if mine:
            found = await control.get(f"/control/chats?{asked(mine)}&limit={_LISTED}")
            active = found["phones"]
        fresh = await control.get(f"/control/phones?has_chats=false&limit={_LISTED}")
    except (ApiResponseError, NotReached) as away:
        raise NotReached(str(away)) from away
    for one in active:
        one["summary"] = summary_of(one["last"]) if one["last"] else ""
    return {"active": active, "fresh": fresh["phones"], "no_chat": LIST}
