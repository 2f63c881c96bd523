"""The reviews page: the partner's templates at the simulator, and the operator's actions on them."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.actions import ActionRow, Body, Fields, action_response, empty_body, error_response, form_texts
from waypost.console.page_request import PageRequest
from waypost.console.simulator.context import parse_seconds_ms, render_tab
from waypost.console.web.errors import NotFound
from waypost.console.web.streams import PageElement
from waypost.domain.templates.template import Template, TemplateFilter
from waypost.store.templates.templates import find_templates, template_links

REVIEW_MACROS: Final = "simulator/review_parts.html"
WAITING_STATUSES: Final = ("PENDING", "IN_APPEAL")
_MAX_WAITING: Final = 50
_MAX_REVIEWED: Final = 50
REJECTED_AT_CREATION: Final = TemplateFilter(statuses=("REJECTED", "FAILED"))
"""With those that have no operator's id yet."""


async def show_reviews(request: PageRequest) -> Response:
    """Return the page."""
    q = request.query("q")
    query = f"?{urlencode({'q': q})}" if q else ""
    return await render_tab(request, "reviews", now=await _read_reviews(request), q=q, query=query)


async def live_reviews(request: PageRequest) -> Response:
    """Stream what changes on it."""
    # rest_s: it shows up to a hundred templates
    return request.live(partial(_render_pieces, request), rest_s=0.5)


async def _render_pieces(request: PageRequest) -> list[PageElement]:
    """Return the pieces with all templates of the page."""
    now, part = await _read_reviews(request), partial(request.macro, REVIEW_MACROS)
    links, counts = now["links"], (now["reviewed_count"], len(now["reviewed"]))
    pieces = [
        PageElement("waiting-head", part("waiting_head", now["waiting_count"])),
        PageElement("waiting-none", part("waiting_none", now["waiting_count"], now["delay_ms"])),
        PageElement("others-head", part("others_head", *counts)),
        PageElement("others-none", part("others_none", now["reviewed_count"])),
        PageElement("rejected-submissions", part("rejected_submissions", now["rejected_submissions"])),
    ]
    for template in now["waiting"]:
        link = links.get(template["id"], "")
        html = part("waiting_card", request, template, link, now["reasons"])
        pieces.append(PageElement(f"w-{template['id']}", html, "waiting"))
    for template in reversed(now["reviewed"]):  # each is put at the start, so the newest comes last
        html = part("other_row", request, template, links.get(template["id"], ""))
        pieces.append(PageElement(f"t-{template['id']}", html, "others", "start"))
    return pieces


async def _read_reviews(request: PageRequest) -> dict[str, Any]:
    """Return the lists of the simulator, and of the store what only it has: rejected submissions, links by id."""
    control = request.control
    settings = await control.get("/control/settings")
    accounts, text = business_account_ids(request), request.query("q")
    waiting: dict[str, Any] = {"templates": [], "count": 0, "reasons": []}
    others = waiting
    if accounts:
        scope = [("waba_id", account_id) for account_id in accounts]
        is_waiting = [("status", status) for status in WAITING_STATUSES]
        waiting = await control.get(f"/control/templates?{urlencode(scope + is_waiting)}")
        not_waiting = [("not_status", status) for status in WAITING_STATUSES]
        page = [("name", text), ("limit", str(_MAX_REVIEWED))]
        others = await control.get(f"/control/templates?{urlencode(scope + not_waiting + page)}")
    shown: list[dict[str, Any]] = waiting["templates"][:_MAX_WAITING]
    reviewed: list[dict[str, Any]] = others["templates"][::-1]
    ids = {template["id"] for template in (*shown, *reviewed)}
    apps = {app.business_account_id: app.id for app in reversed(request.apps)}
    links = await request.read(template_links, request.partner.id, ids)
    rejected: list[Template] = []
    for account_id in accounts:
        found = await request.read(find_templates, request.partner.id, account_id, REJECTED_AT_CREATION)
        rejected += [one for one in found if one.operator_template_id is None]
    return {
        "waiting": shown,
        "waiting_count": waiting["count"],
        "reviewed": reviewed,
        "reviewed_count": others["count"],
        "rejected_submissions": [one for one in rejected if text.lower() in (one.draft.element_name or "").lower()][
            :_MAX_REVIEWED
        ],
        "links": {
            link.operator_template_id: f"/apps/{apps[link.business_account_id]}/templates/{link.id}"
            for link in links
            if link.business_account_id in apps
        },
        "reasons": waiting["reasons"],
        "delay_ms": settings["review_delay_ms"],
    }


def business_account_ids(request: PageRequest) -> list[str]:
    """Return the ids of the partner's business accounts."""
    return sorted({app.business_account_id for app in request.apps if app.business_account_id})


async def get_own_template(request: PageRequest) -> dict[str, Any]:
    """Return the template in the path, as the control API shows it.

    Raises:
        NotFound: it does not exist, or belongs to another partner's account.
    """
    template_id: str = request.path_params["template_id"]
    accounts = business_account_ids(request)
    if not accounts or not (template_id.isascii() and template_id.isdigit()):
        raise NotFound("There is no such template.")
    query = [("id", template_id), *(("waba_id", account_id) for account_id in accounts)]
    templates = (await request.control.get(f"/control/templates?{urlencode(query)}"))["templates"]
    if not templates:
        raise NotFound("There is no such template.")
    return templates[0]


REVIEWS_PATH: Final = "/simulator"


def _rejection(fields: Fields) -> Body:
    body: Body = {"reason": fields.get("reason", "")}
    for name in ("explanation", "recommendation"):
        if fields.get(name, "").strip():
            body[name] = fields[name].strip()
    return body


def _category(fields: Fields) -> Body:
    announced = fields.get("when") == "announced"
    return {"category": fields.get("category", ""), "announced": announced}


def _pace(fields: Fields) -> Body:
    return {"for_ms": parse_seconds_ms(fields.get("for_s", ""), "for_s"), "verdict": fields.get("verdict") or "release"}


OPERATOR_ACTIONS: Final[dict[str, tuple[str, Callable[[Fields], Body]]]] = {
    # the last part of the control API's path: notice with the template's name, body from the form
    # Source: operator's facts 3.1 to 3.3
    "approve": ("{} approved.", empty_body),
    "reject": ("{} rejected.", _rejection),
    "quality": ("Quality of {} set.", lambda fields: {"score": fields.get("score", "")}),
    "category": ("Category of {} changed.", _category),
    "pause": ("{} paused for low quality; the third pause disables it.", empty_body),
    "unpause": ("{} resumed.", empty_body),
    "disable": ("{} disabled.", empty_body),
    "reinstate": ("{} reinstated.", empty_body),
    "appeal": ("{} is in appeal and waits for review.", empty_body),
    "pend": ("{} waits for review again.", empty_body),
    "flag": ("{} flagged; it can still be sent.", empty_body),
    "lock": ("{} locked against edits.", empty_body),
    "limit": ("{} has reached its limit.", empty_body),
    "archive": ("{} archived.", empty_body),
    "unarchive": ("{} unarchived.", empty_body),
    "pending-deletion": ("{} is pending deletion.", empty_body),
    "delete": ("{} deleted at the operator.", empty_body),
    "pace": ("Messages with {} are held from now on.", _pace),
    "release": ("Held messages with {} delivered.", empty_body),
    "drop": ("Held messages with {} failed, and it is paused.", empty_body),
}


def _review_delay(fields: Fields) -> Body:
    is_manual = fields.get("mode") == "hand"
    return {"review_delay_ms": None if is_manual else parse_seconds_ms(fields.get("after_s", ""), "after_s") or 0}


def _review_delay_notice(values: Mapping[str, Any]) -> str:
    delay_ms = values["review_delay_ms"]
    if delay_ms is None:
        return "New templates wait for your review."
    return f"New templates are reviewed automatically after {delay_ms / 1000:g} s."


REVIEW_DELAY: Final = ActionRow(
    f"{REVIEWS_PATH}/review-delay", "change how templates are reviewed", "PUT /control/settings",
    REVIEWS_PATH, _review_delay_notice, body=_review_delay,
)  # fmt: skip


async def act_on_template(request: PageRequest) -> Response:
    """Carry out one action on one of the partner's templates."""
    name = request.path_params["act"]
    if name not in OPERATOR_ACTIONS:
        raise NotFound("There is no such action.")
    notice, read_body = OPERATOR_ACTIONS[name]
    template = await get_own_template(request)
    try:
        body = read_body(await form_texts(request))
        await request.control.post(f"/control/templates/{template['id']}/{name}", body)
    except ApiResponseError as error:
        return error_response(request, REVIEWS_PATH, error)
    pieces = await _render_pieces(request) if request.is_quiet else ()
    card_id = f"w-{template['id']}"
    removed = [] if any(piece.id == card_id for piece in pieces) else [card_id]
    return action_response(request, REVIEWS_PATH, notice.format(template["name"]), pieces, removed_ids=removed)
