"""The reviews page: the partner's templates at the simulator, waiting for review or reviewed."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final
from urllib.parse import urlencode

from starlette.responses import Response

from waypost.console.page_tools import PageTools
from waypost.console.simulator.context import control_of, tab
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece
from waypost.store.templates.templates import template_links

PARTS: Final = "simulator/review_parts.html"
WAITING: Final = ("PENDING", "IN_APPEAL")
_MOST_WAITING: Final = 50
_MOST_SHOWN: Final = 50


@dataclass(frozen=True, slots=True)
class Reviews:
    """The values of the page.

    Attributes:
        waiting: templates as the control API shows them, oldest first.
        others: reviewed ones, newest first.
        links: paths of the templates' pages, by the operator's id.
        reasons: for a rejection.
        delay_ms: from submission to automatic review; None: reviews are manual.
    """

    waiting: list[dict[str, Any]]
    waiting_count: int
    others: list[dict[str, Any]]
    others_count: int
    links: dict[str, str]
    reasons: list[str]
    delay_ms: int | None


async def show_reviews(desk: PageTools, visit: PageRequest) -> Response:
    """Return the page."""
    return await tab(
        desk, visit, "reviews",
        now=await reviews_now(desk, visit), q=visit.query("q"), query=_query(visit),
    )  # fmt: skip


async def live_reviews(desk: PageTools, visit: PageRequest) -> Response:
    """Stream what changes on it."""

    async def render_pieces() -> Sequence[Piece]:
        return pieces_of(desk, visit, await reviews_now(desk, visit))

    return desk.live(visit, render_pieces, rest_s=0.5)  # it shows up to a hundred templates


def pieces_of(desk: PageTools, visit: PageRequest, now: Reviews) -> list[Piece]:
    """Return the pieces with all templates of the page."""
    part = partial(desk.parts.pages.part, PARTS)
    pieces = [
        Piece("waiting-head", part("waiting_head", visit, now.waiting_count)),
        Piece("waiting-none", part("waiting_none", visit, now.waiting_count, now.delay_ms)),
        Piece("others-head", part("others_head", visit, now.others_count, len(now.others))),
        Piece("others-none", part("others_none", visit, now.others_count)),
    ]
    for template in now.waiting:
        html = part("waiting_card", visit, visit, template, now.links.get(template["id"], ""), now.reasons)
        pieces.append(Piece(f"w-{template['id']}", html, "waiting"))
    for template in reversed(now.others):  # each is put at the start, so the newest comes last
        html = part("other_row", visit, visit, template, now.links.get(template["id"], ""))
        pieces.append(Piece(f"t-{template['id']}", html, "others", "start"))
    return pieces


async def reviews_now(desk: PageTools, visit: PageRequest) -> Reviews:
    """Read both lists from the simulator, and the links from the store."""
    control = control_of(desk)
    settings = await control.get("/control/settings")
    accounts = accounts_of(visit)
    empty: dict[str, Any] = {"templates": [], "count": 0, "reasons": []}
    waiting = others = empty
    if accounts:
        scope = [("waba_id", account_id) for account_id in accounts]
        is_waiting = [("status", status) for status in WAITING]
        waiting = await control.get(f"/control/templates?{urlencode(scope + is_waiting)}")
        not_waiting = [("not_status", status) for status in WAITING]
        page = [("name", visit.query("q")), ("limit", str(_MOST_SHOWN))]
        others = await control.get(f"/control/templates?{urlencode(scope + not_waiting + page)}")
    shown: list[dict[str, Any]] = waiting["templates"][:_MOST_WAITING]
    reviewed: list[dict[str, Any]] = others["templates"][::-1]
    ids = {template["id"] for template in (*shown, *reviewed)}
    apps = {app.business_account_id: app.id for app in reversed(visit.apps)}
    links = await desk.parts.database.read(template_links, visit.partner.id, ids)
    return Reviews(
        shown, waiting["count"], reviewed, others["count"],
        {
            link.operator_template_id: f"/apps/{apps[link.business_account_id]}/templates/{link.id}"
            for link in links
            if link.business_account_id in apps
        },
        waiting["reasons"],
        settings["review_delay_ms"],
    )  # fmt: skip


def accounts_of(visit: PageRequest) -> list[str]:
    """Return the ids of the partner's business accounts."""
    return sorted({app.business_account_id for app in visit.apps if app.business_account_id})


async def own_template(desk: PageTools, visit: PageRequest) -> dict[str, Any]:
    """Return the template in the path, as the control API shows it.

    Raises:
        NotThere: it does not exist, or belongs to another partner's account.
    """
    template_id: str = visit.path["template_id"]
    accounts = accounts_of(visit)
    if not accounts or not (template_id.isascii() and template_id.isdigit()):
        raise NotThere("There is no such template.")
    query = [("id", template_id), *(("waba_id", account_id) for account_id in accounts)]
    templates = (await control_of(desk).get(f"/control/templates?{urlencode(query)}"))["templates"]
    if not templates:
        raise NotThere("There is no such template.")
    return templates[0]


def _query(visit: PageRequest) -> str:
    q = visit.query("q")
    return f"?{urlencode({'q': q})}" if q else ""
