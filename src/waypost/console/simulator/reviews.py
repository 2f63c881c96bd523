"""The reviews page: the partner's templates at the simulator, and the operator's actions on them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from waypost.console.actions import ActionRow, Body, Fields, action_response, form_texts
from waypost.console.page_tools import PageTools
from waypost.console.simulator.context import call_control, get_control, parse_seconds_ms, render_tab
from waypost.console.web.page_request import NotFound, PageRequest
from waypost.console.web.streams import PageElement
from waypost.domain.templates.template import Template, TemplateFilter
from waypost.store.templates.templates import find_templates, template_links

REVIEW_MACROS: Final = "simulator/review_parts.html"
WAITING_STATUSES: Final = ("PENDING", "IN_APPEAL")
_MAX_WAITING: Final = 50
_MAX_REVIEWED: Final = 50
REJECTED_AT_CREATION: Final = TemplateFilter(statuses=("REJECTED", "FAILED"))
"""With those that have no operator's id yet."""


@dataclass(frozen=True, slots=True)
class ReviewsView:
    """The values of the page.

    Attributes:
        waiting: templates as the control API shows them, oldest first.
        reviewed: reviewed ones, newest first.
        rejected_submissions: of the store: not accepted at creation, so that the simulator does not have them.
        links: paths of the templates' pages, by the operator's id.
        reasons: for a rejection.
        delay_ms: from submission to automatic review; None: reviews are manual.
    """

    waiting: list[dict[str, Any]]
    waiting_count: int
    reviewed: list[dict[str, Any]]
    reviewed_count: int
    rejected_submissions: list[Template]
    links: dict[str, str]
    reasons: list[str]
    delay_ms: int | None


async def show_reviews(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the page."""
    return await render_tab(
        tools, page_request, "reviews",
        now=await read_reviews(tools, page_request), q=page_request.query("q"), query=_search_query(page_request),
    )  # fmt: skip


async def live_reviews(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream what changes on it."""

    async def render_pieces() -> Sequence[PageElement]:
        return render_reviews(tools, page_request, await read_reviews(tools, page_request))

    return tools.live(page_request, render_pieces, rest_s=0.5)  # it shows up to a hundred templates


def render_reviews(tools: PageTools, page_request: PageRequest, now: ReviewsView) -> list[PageElement]:
    """Return the pieces with all templates of the page."""
    part = partial(tools.services.pages.render_macro, REVIEW_MACROS)
    pieces = [
        PageElement("waiting-head", part("waiting_head", page_request, now.waiting_count)),
        PageElement("waiting-none", part("waiting_none", page_request, now.waiting_count, now.delay_ms)),
        PageElement("others-head", part("others_head", page_request, now.reviewed_count, len(now.reviewed))),
        PageElement("others-none", part("others_none", page_request, now.reviewed_count)),
    ]
    pieces.append(
        PageElement("rejected-submissions", part("rejected_submissions", page_request, now.rejected_submissions))
    )
    for template in now.waiting:
        html = part(
            "waiting_card", page_request, page_request, template, now.links.get(template["id"], ""), now.reasons
        )
        pieces.append(PageElement(f"w-{template['id']}", html, "waiting"))
    for template in reversed(now.reviewed):  # each is put at the start, so the newest comes last
        html = part("other_row", page_request, page_request, template, now.links.get(template["id"], ""))
        pieces.append(PageElement(f"t-{template['id']}", html, "others", "start"))
    return pieces


async def read_reviews(tools: PageTools, page_request: PageRequest) -> ReviewsView:
    """Read both lists from the simulator, and the links from the store."""
    control = get_control(tools)
    settings = await control.get("/control/settings")
    accounts = business_account_ids(page_request)
    empty: dict[str, Any] = {"templates": [], "count": 0, "reasons": []}
    waiting = others = empty
    if accounts:
        scope = [("waba_id", account_id) for account_id in accounts]
        is_waiting = [("status", status) for status in WAITING_STATUSES]
        waiting = await control.get(f"/control/templates?{urlencode(scope + is_waiting)}")
        not_waiting = [("not_status", status) for status in WAITING_STATUSES]
        page = [("name", page_request.query("q")), ("limit", str(_MAX_REVIEWED))]
        others = await control.get(f"/control/templates?{urlencode(scope + not_waiting + page)}")
    shown: list[dict[str, Any]] = waiting["templates"][:_MAX_WAITING]
    reviewed: list[dict[str, Any]] = others["templates"][::-1]
    ids = {template["id"] for template in (*shown, *reviewed)}
    apps = {app.business_account_id: app.id for app in reversed(page_request.apps)}
    read = tools.services.database.read
    links = await read(template_links, page_request.partner.id, ids)
    rejected_submissions: list[Template] = []
    for account_id in accounts:
        rejected = await read(find_templates, page_request.partner.id, account_id, REJECTED_AT_CREATION)
        rejected_submissions += [one for one in rejected if one.operator_template_id is None]
    text = page_request.query("q").lower()
    return ReviewsView(
        shown, waiting["count"], reviewed, others["count"],
        [one for one in rejected_submissions if text in (one.draft.element_name or "").lower()][:_MAX_REVIEWED],
        {
            link.operator_template_id: f"/apps/{apps[link.business_account_id]}/templates/{link.id}"
            for link in links
            if link.business_account_id in apps
        },
        waiting["reasons"],
        settings["review_delay_ms"],
    )  # fmt: skip


def business_account_ids(page_request: PageRequest) -> list[str]:
    """Return the ids of the partner's business accounts."""
    return sorted({app.business_account_id for app in page_request.apps if app.business_account_id})


async def get_own_template(tools: PageTools, page_request: PageRequest) -> dict[str, Any]:
    """Return the template in the path, as the control API shows it.

    Raises:
        NotFound: it does not exist, or belongs to another partner's account.
    """
    template_id: str = page_request.path_params["template_id"]
    accounts = business_account_ids(page_request)
    if not accounts or not (template_id.isascii() and template_id.isdigit()):
        raise NotFound("There is no such template.")
    query = [("id", template_id), *(("waba_id", account_id) for account_id in accounts)]
    templates = (await get_control(tools).get(f"/control/templates?{urlencode(query)}"))["templates"]
    if not templates:
        raise NotFound("There is no such template.")
    return templates[0]


def _search_query(page_request: PageRequest) -> str:
    q = page_request.query("q")
    return f"?{urlencode({'q': q})}" if q else ""


REVIEWS_PATH: Final = "/simulator"


def _empty_body(_fields: Fields) -> Body:
    return {}


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


@dataclass(frozen=True, slots=True)
class OperatorAction:
    """One action of the operator.

    Args:
        call: the last part of the control API's path.
        notice: the notice, with a place for the template's name.
        body: of the call, from the form.
    """

    call: str
    notice: str
    body: Callable[[Fields], Body] = _empty_body


OPERATOR_ACTIONS: Final = {  # Source: operator's facts 3.1 to 3.3; the control API's calls of these names
    # call, notice
    "approve": OperatorAction("approve", "{} approved."),
    "reject": OperatorAction("reject", "{} rejected.", _rejection),
    "quality": OperatorAction("quality", "Quality of {} set.", lambda fields: {"score": fields.get("score", "")}),
    "category": OperatorAction("category", "Category of {} changed.", _category),
    "pause": OperatorAction("pause", "{} paused for low quality; the third pause disables it."),
    "unpause": OperatorAction("unpause", "{} resumed."),
    "disable": OperatorAction("disable", "{} disabled."),
    "reinstate": OperatorAction("reinstate", "{} reinstated."),
    "appeal": OperatorAction("appeal", "{} is in appeal and waits for review."),
    "pend": OperatorAction("pend", "{} waits for review again."),
    "flag": OperatorAction("flag", "{} flagged; it can still be sent."),
    "lock": OperatorAction("lock", "{} locked against edits."),
    "limit": OperatorAction("limit", "{} has reached its limit."),
    "archive": OperatorAction("archive", "{} archived."),
    "unarchive": OperatorAction("unarchive", "{} unarchived."),
    "pending-deletion": OperatorAction("pending-deletion", "{} is pending deletion."),
    "delete": OperatorAction("delete", "{} deleted at the operator."),
    "pace": OperatorAction("pace", "Messages with {} are held from now on.", _pace),
    "release": OperatorAction("release", "Held messages with {} delivered."),
    "drop": OperatorAction("drop", "Held messages with {} failed, and it is paused."),
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


async def act_on_template(tools: PageTools, page_request: PageRequest) -> Response:
    """Carry out one action on one of the partner's templates."""
    action = OPERATOR_ACTIONS.get(page_request.path_params["act"] or "")
    if action is None:
        raise NotFound("There is no such action.")
    template = await get_own_template(tools, page_request)
    body = action.body(await form_texts(page_request))

    async def call() -> None:
        path = f"/control/templates/{template['id']}/{action.call}"
        await get_control(tools).post(path, body)

    error_response = await call_control(tools, page_request, REVIEWS_PATH, call)
    if error_response is not None:
        return error_response
    pieces = (
        render_reviews(tools, page_request, await read_reviews(tools, page_request)) if page_request.is_quiet else ()
    )
    card_id = f"w-{template['id']}"
    removed = [] if any(piece.id == card_id for piece in pieces) else [card_id]
    return action_response(
        tools, page_request, REVIEWS_PATH, action.notice.format(template["name"]), pieces, removed_ids=removed
    )
