"""The trace page of one message: the page, its live updates, and the content on request."""

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
"""Prefix of the failure reason that dispatch sets when a message's lifetime is over."""
INVALID_ANSWER: Final = 4002


@dataclass(frozen=True, slots=True)
class Why:
    """The delivery problem shown above the steps.

    Attributes:
        tone: bad or warn.
        what: what happened.
        words: text of the operator or of Waypost; may be empty.
        remedy: what to do.
        code: error code; None if there is none.
        can_go_again: True if resending makes sense.
    """

    tone: str
    what: str
    words: str
    remedy: str
    code: int | None = None
    can_go_again: bool = True


def why_of(trace: Mapping[str, Any]) -> Why | None:
    """Return the delivery problem of a message, or None."""
    state, code, reason = trace["state"], trace["code"], trace["reason"] or ""
    if state == "uncertain":
        return Why(
            "warn", "Unconfirmed: the message may have been sent", reason,
            "The connection to the operator broke while sending. A status will confirm it; do not send it again yet.",
            can_go_again=False,
        )  # fmt: skip
    if state != "failed":
        return None
    if trace["unconfirmed"]:
        failure = failure_of(INVALID_ANSWER)
        return Why("bad", failure.what, reason, failure.remedy, code)
    if reason.startswith(GIVEN_UP):
        return Why(
            "bad", "Not sent within its lifetime", reason.removeprefix(GIVEN_UP),
            "The trace shows the failed attempts. Fix their cause, then send the message again.", code,
        )  # fmt: skip
    if code == INVALID_ANSWER:
        return Why(
            "bad", "The operator\u2019s response could not be read", reason,
            "Send it again. If it happens often, contact the administrator of this service.", code,
        )  # fmt: skip
    failure = failure_of(code)
    return Why("bad", failure.what, reason, failure.remedy, code)


def said_by(row: Any, template: Template | None, *, holds_code: bool = False) -> list[str]:
    """Return the readable texts of a message in order; empty if its content was deleted.

    Args:
        row: stored message with `kind` and `content`.
        template: current version of the sent template, which may have been edited since.
        holds_code: True if its values may be one-time codes, which are then left out.
    """
    content = kept_content_of(row.kind, row.content)
    if isinstance(content, TemplateSend) and template is not None:
        params = [CODE] * len(content.params) if holds_code else content.params
        return [part for part in _parts(template.draft, params) if part]
    if holds_code:
        return [CODE]
    return words_of(row.content)


def _parts(draft: Draft, params: Sequence[str]) -> Iterator[str]:
    parameters = split(draft, params)
    yield _filled(draft.header or "", parameters.header)
    yield _filled(body_of(draft), parameters.body)
    yield footer_of(draft) or ""
    for card, values in zip(draft.cards or (), parameters.cards, strict=False):
        yield _filled(card.body or "", values.body)
    if draft.buttons:
        yield "  ".join(f"[{button.text}]" for button in draft.buttons if button.text)


def _filled(text: str, values: Sequence[str]) -> str:
    """Return a text with its variables replaced by their values; a variable without a value stays."""
    names = variables(text)
    in_order = sorted(dict.fromkeys(names), key=lambda name: (not name.isdecimal(), len(name), name))
    known = dict(zip(in_order, values, strict=False))
    first, *texts = without_variables(text)
    filled = (known.get(name, f"{{{{{name}}}}}") + text_after for name, text_after in zip(names, texts, strict=True))
    return first + "".join(filled)


PARTS: Final = "messages/trace_parts.html"


async def show_way(desk: PageTools, visit: PageRequest) -> Response:
    """Show the trace; redirect from the operator's message id to ours."""
    trace = await _trace(desk, visit, visit.path["message_id"])
    if trace["id"] != visit.path["message_id"]:
        return RedirectResponse(f"/apps/{visit.app.id}/messages/{trace['id']}", 303)
    return await desk.page(visit, "messages/trace.html", **_shown(trace))


async def live_way(desk: PageTools, visit: PageRequest) -> Response:
    """Stream the changes of the trace.

    Raises:
        NotFound: the message does not exist.
    """
    message_id = (await _trace(desk, visit, visit.path["message_id"]))["id"]

    async def render() -> Sequence[Piece]:
        shown = _shown(await _trace(desk, visit, message_id))
        part = desk.parts.pages.part
        return [
            Piece("summary", part(PARTS, "summary", visit, visit, shown["trace"])),
            Piece("problem", part(PARTS, "problem_card", visit, visit, shown["trace"], shown["problem"])),
            Piece("steps", part(PARTS, "timeline", visit, visit, shown["trace"], shown["steps"], shown["request"])),
        ]

    return desk.live(visit, render)


async def show_words(desk: PageTools, visit: PageRequest) -> Response:
    """Return the content of a message and its request as code; only on request, because it is private.

    One-time codes are left out.
    """
    stored = await desk.parts.database.read(words_of_app, visit.partner.id, visit.app.id, visit.path["message_id"])
    if stored is None:
        raise NotThere("Message not found.")
    row, holds_code = stored
    request = request_without_codes(row.request) if holds_code else row.request
    curl = python = ""
    try:
        resend = request_of(visit.app.id, row.kind, request)
        curl, python = (write(resend, desk.parts.public_url) for write in (as_curl, as_python))
    except NotMeant:
        pass  # the request is shown as received, but cannot be resent
    texts = said_by(row, await _template(desk, visit, row.template_id), holds_code=holds_code)
    html = desk.parts.pages.part(PARTS, "content", visit, texts, request, curl, python, holds_code)
    return answer_with([Piece("content", html)])


async def _template(desk: PageTools, visit: PageRequest, template_id: str | None) -> Template | None:
    """Return the template that was sent; None without one, or if it is another partner's."""
    if template_id is None:
        return None
    template = await desk.parts.database.read(template_by_id, template_id)
    return template if template is not None and template.partner_id == visit.partner.id else None


async def _trace(desk: PageTools, visit: PageRequest, message_id: str) -> dict[str, Any]:
    read = desk.parts.database.read
    trace = await read(way_of_app, visit.partner.id, visit.app.id, message_id)
    if trace is None:
        raise NotThere("No message has this ID.")
    template_id = trace["template_id"]
    names = await read(names_of_templates, visit.partner.id, [template_id]) if template_id else {}
    trace["what"] = names.get(template_id) or kind_label(trace["kind"])
    show_text = desk.parts.show_text
    sight = Sight(show_text, trace["holds_code"])
    trace["request"] = shown_request(trace["request"], sight) if trace["words_kept"] else None
    trace["is_open"] = sight.is_open
    trace["callbacks"] = [shown_callback(callback, text=show_text) for callback in trace["callbacks"]]
    trace["has_phones"] = desk.parts.apis.control is not None
    return trace


def _shown(trace: dict[str, Any]) -> dict[str, Any]:
    return {"trace": trace, "problem": why_of(trace), "steps": steps_of(trace), "request": trace["request"]}
