"""One message's whole way: the page, what comes while it is open, and its words when they are asked for."""

from collections.abc import Sequence
from typing import Any, Final

from starlette.responses import RedirectResponse, Response

from waypost.console.desk import Desk
from waypost.console.messages.failing import why_of
from waypost.console.messages.lines import kind_label
from waypost.console.messages.requests import as_curl, as_python, request_of
from waypost.console.messages.said import said_by
from waypost.console.messages.steps import steps_of
from waypost.console.not_there import NotMeant, NotThere
from waypost.console.streams import Piece, answer_with
from waypost.console.visit import Visit
from waypost.domain.template import Template
from waypost.store.message_lists import names_of_templates
from waypost.store.templates import template_by_id
from waypost.store.trace import way_of_app, words_of_app
from waypost.wire.redaction import Sight, request_without_codes, shown_callback, shown_request

PARTS: Final = "messages/way_parts.html"


async def show_way(desk: Desk, visit: Visit) -> Response:
    """The page; by the operator's id it leads on to ours."""
    trace = await _trace(desk, visit, visit.path["message_id"])
    if trace["id"] != visit.path["message_id"]:
        return RedirectResponse(f"/apps/{visit.app.id}/messages/{trace['id']}", 303)
    return await desk.page(visit, "messages/way.html", **_shown(trace))


async def live_way(desk: Desk, visit: Visit) -> Response:
    """What comes of it while it is looked at.

    Raises:
        NotThere: there is no such message.
    """
    message_id = (await _trace(desk, visit, visit.path["message_id"]))["id"]

    async def look() -> Sequence[Piece]:
        shown = _shown(await _trace(desk, visit, message_id))
        part = desk.parts.pages.part
        return [
            Piece("standing", part(PARTS, "standing", visit, visit, shown["trace"])),
            Piece("why", part(PARTS, "why_card", visit, visit, shown["trace"], shown["why"])),
            Piece("steps", part(PARTS, "timeline", visit, visit, shown["trace"], shown["steps"], shown["request"])),
        ]

    return desk.live(visit, look)


async def show_words(desk: Desk, visit: Visit) -> Response:
    """What the message says, and its request as code: asked for, because it is somebody's letter.

    A one-time code is not in either of them.
    """
    found = await desk.parts.database.read(words_of_app, visit.partner.id, visit.app.id, visit.path["message_id"])
    if found is None:
        raise NotThere("You have no such message.")
    row, holds_code = found
    request = request_without_codes(row.request) if holds_code else row.request
    curl = python = ""
    try:
        again = request_of(visit.app.id, row.kind, request)
        curl, python = (write(again, desk.parts.public_url) for write in (as_curl, as_python))
    except NotMeant:
        pass  # it is shown as it came, and cannot be sent again
    said = said_by(row, await _template(desk, visit, row.template_id), holds_code=holds_code)
    html = desk.parts.pages.part(PARTS, "words", visit, said, request, curl, python, holds_code)
    return answer_with([Piece("words", html)])


async def _template(desk: Desk, visit: Visit, template_id: str | None) -> Template | None:
    """The template that was sent; None where there was none, or it is another partner's."""
    if template_id is None:
        return None
    template = await desk.parts.database.read(template_by_id, template_id)
    return template if template is not None and template.partner_id == visit.partner.id else None


async def _trace(desk: Desk, visit: Visit, message_id: str) -> dict[str, Any]:
    read = desk.parts.database.read
    trace = await read(way_of_app, visit.partner.id, visit.app.id, message_id)
    if trace is None:
        raise NotThere("You have no message of this id, ours or the operator\u2019s.")
    template_id = trace["template_id"]
    names = await read(names_of_templates, visit.partner.id, [template_id]) if template_id else {}
    trace["what"] = names.get(template_id) or kind_label(trace["kind"])
    show_text = desk.parts.show_text
    sight = Sight(show_text, trace["holds_code"])
    trace["request"] = shown_request(trace["request"], sight) if trace["words_kept"] else None
    trace["is_open"] = sight.is_open
    trace["callbacks"] = [shown_callback(one, text=show_text) for one in trace["callbacks"]]
    trace["has_phones"] = desk.parts.doors.control is not None
    return trace


def _shown(trace: dict[str, Any]) -> dict[str, Any]:
    return {"trace": trace, "why": why_of(trace), "steps": steps_of(trace), "request": trace["request"]}
