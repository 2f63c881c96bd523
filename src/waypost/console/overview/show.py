"""What is happening now: the page, and its stream."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from waypost.console.desk import Desk
from waypost.console.streams import Piece
from waypost.console.visit import Visit
from waypost.store.message_lists import messages_of_app

PARTS: Final = "overview/parts.html"


async def show_overview(desk: Desk, visit: Visit) -> Response:
    """The page, as things stand."""
    return await desk.page(visit, "overview/page.html", **await _now(desk, visit))


async def live_overview(desk: Desk, visit: Visit) -> Response:
    """What changes of it."""

    async def look() -> Sequence[Piece]:
        now = await _now(desk, visit)
        part = desk.parts.pages.part
        return [Piece("newest", part(PARTS, "newest", visit, visit.app, now["newest"]))]

    return desk.live(visit, look)


async def _now(desk: Desk, visit: Visit) -> dict[str, Any]:
    read = desk.parts.database.read
    newest = await read(
        partial(messages_of_app, partner_id=visit.partner.id, app_id=visit.app.id, at_most=8)
    )
    return {"newest": newest}
