"""One message's whole way: the page, what comes while it is open, and its words when they are asked for."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import RedirectResponse, Response

from waypost.console.messages.failure_explanations import failure_of
from waypost.console.messages.list_rows import kind_label
from waypost.console.messages.requests import as_curl, as_python, request_of
from waypost.console.messages.trace_steps import steps_of
from waypost.console.page_tools import PageTools
from waypost.console.web.not_found import NotMeant, NotThere
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece, answer_with
from waypost.domain.message import TemplateSend
from waypost.domain.templates.fields import Draft
from waypost.domain.templates.parameters import split
from waypost.domain.templates.rendering import body_of, footer_of
from waypost.domain.templates.template import Template
from waypost.domain.templates.variables import variables, without_variables
from waypost.store.console.trace import way_of_app, words_of_app
from waypost.store.encoding import kept_content_of
from waypost.store.messages.lists import names_of_templates
from waypost.store.messages.text import words_of
from waypost.store.templates.templates import template_by_id
from waypost.wire.redaction import CODE, Sight, request_without_codes, shown_callback, shown_request

GIVEN_UP: Final = "given up after the message's lifetime: "
"""How dispatch begins the reason of what it has tried for too long."""
INVALID_ANSWER: Final = 4002


@dataclass(frozen=True, slots=True)
class Why:
    """What is said above the steps.

    Attributes:
        tone: bad or warn.
        what: happened.
        words: the operator's own, or ours; may be empty.
        remedy: what to do.
        code: the partner's; None where there is none.
        can_go_again: whether sending it again is sensible.
    """

    tone: str
    what: str
    words: str
    remedy: str
    code: int | None = None
    can_go_again: bool = True


def why_of(trace: Mapping[str, Any]) -> Why | None:
    """What went wrong with a message; None where nothing did."""
    state, code, words = trace["state"], trace["code"], trace["reason"] or ""
    if state == "uncertain":
        return Why(
            "warn", "Not known whether it was sent", words,
            "The connection broke while it was handed over. A status settles it; it is not sent again on a guess.",
            can_go_again=False,
        )  # fmt: skip
    if state != "failed":
        return None
    if trace["unconfirmed"]:
        known = failure_of(INVALID_ANSWER)
        return Why("bad", known.what, words, known.remedy, code)
    if words.startswith(GIVEN_UP):
        return Why(
            "bad", "It was tried for all its lifetime", words.removeprefix(GIVEN_UP),
            "See in the steps what kept it; once that is mended, send it again.", code,
        )  # fmt: skip
    if code == INVALID_ANSWER:
        return Why(
            "bad", "The operator\u2019s answer could not be read", words,
            "Send it again; tell whoever runs the service if it happens often.", code,
        )  # fmt: skip
    known = failure_of(code)
    return Why("bad", known.what, words, known.remedy, code)


def said_by(row: Any, template: Template | None, *, holds_code: bool = False) -> list[str]:
    """The parts of a message that people read, one below the other; none where they are kept no longer.

    Args:
        row: with `kind` and `content`.
        template: the one that was sent, as it stands now; it may have been edited since.
        holds_code: whether its values may be one-time codes; they are left out then.
    """
    content = kept_content_of(row.kind, row.content)
    if isinstance(content, TemplateSend) and template is not None:
        params = [CODE] * len(content.params) if holds_code else content.params
        return [part for part in _parts(template.draft, params) if part]
    if holds_code:
        return [CODE]
    return words_of(row.content)


def _parts(draft: Draft, params: Sequence[str]) -> Iterator[str]:
    given = split(draft, params)
    yield _filled(draft.header or "", given.header)
    yield _filled(body_of(draft), given.body)
    yield footer_of(draft) or ""
    for card, values in zip(draft.cards or (), given.cards, strict=False):
        yield _filled(card.body or "", values.body)
    if draft.buttons:
        yield "  ".join(f"[{button.text}]" for button in draft.buttons if button.text)


def _filled(text: str, values: Sequence[str]) -> str:
    """A text with values in the places of its variables, by their numbers; one without a value stays as it is."""
    names = variables(text)
    in_order = sorted(dict.fromkeys(names), key=lambda name: (not name.isdecimal(), len(name), name))
    known = dict(zip(in_order, values, strict=False))
    first, *pieces = without_variables(text)
    filled = (known.get(name, f"{{{{{name}}}}}") + piece for name, piece in zip(names, pieces, strict=True))
    return first + "".join(filled)


PARTS: Final = "messages/way_parts.html"


async def show_way(desk: PageTools, visit: PageRequest) -> Response:
    """The page; by the operator's id it leads on to ours."""
    trace = await _trace(desk, visit, visit.path["message_id"])
    if trace["id"] != visit.path["message_id"]:
        return RedirectResponse(f"/apps/{visit.app.id}/messages/{trace['id']}", 303)
    return await desk.page(visit, "messages/way.html", **_shown(trace))


async def live_way(desk: PageTools, visit: PageRequest) -> Response:
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


async def show_words(desk: PageTools, visit: PageRequest) -> Response:
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


async def _template(desk: PageTools, visit: PageRequest, template_id: str | None) -> Template | None:
    """The template that was sent; None where there was none, or it is another partner's."""
    if template_id is None:
        return None
    template = await desk.parts.database.read(template_by_id, template_id)
    return template if template is not None and template.partner_id == visit.partner.id else None


async def _trace(desk: PageTools, visit: PageRequest, message_id: str) -> dict[str, Any]:
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
    trace["has_phones"] = desk.parts.apis.control is not None
    return trace


def _shown(trace: dict[str, Any]) -> dict[str, Any]:
    return {"trace": trace, "why": why_of(trace), "steps": steps_of(trace), "request": trace["request"]}
