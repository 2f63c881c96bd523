"""Templates at the simulator: what waits for a review, and what has been decided. Only the partner's own."""

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
    """What the page shows.

    Attributes:
        waiting: templates as the control door shows them, the oldest first.
        others: likewise, the newest first.
        links: paths of the templates' pages, by the operator's id.
        reasons: with which a template can be rejected.
        delay_ms: from submission to review; None: reviews are made by hand.
    """

    waiting: list[dict[str, Any]]
    waiting_count: int
    others: list[dict[str, Any]]
    others_count: int
    links: dict[str, str]
    reasons: list[str]
    delay_ms: int | None


async def show_reviews(desk: PageTools, visit: PageRequest) -> Response:
    """The page, as things stand."""
    return await tab(
        desk, visit, "reviews",
        now=await reviews_now(desk, visit), q=visit.query("q"), query=_query(visit),
    )  # fmt: skip


async def live_reviews(desk: PageTools, visit: PageRequest) -> Response:
    """What changes of it."""

    async def look() -> Sequence[Piece]:
        return pieces_of(desk, visit, await reviews_now(desk, visit))

    return desk.live(visit, look, rest_s=0.5)  # it shows up to a hundred templates


def pieces_of(desk: PageTools, visit: PageRequest, now: Reviews) -> list[Piece]:
    """All that the page shows of templates."""
    part = partial(desk.parts.pages.part, PARTS)
    pieces = [
        Piece("waiting-head", part("waiting_head", visit, now.waiting_count)),
        Piece("waiting-none", part("waiting_none", visit, now.waiting_count, now.delay_ms)),
        Piece("others-head", part("others_head", visit, now.others_count, len(now.others))),
        Piece("others-none", part("others_none", visit, now.others_count)),
    ]
    for one in now.waiting:
        html = part("waiting_card", visit, visit, one, now.links.get(one["id"], ""), now.reasons)
        pieces.append(Piece(f"w-{one['id']}", html, "waiting"))
    for one in reversed(now.others):  # each is put at the start: the newest comes last
        html = part("other_row", visit, visit, one, now.links.get(one["id"], ""))
        pieces.append(Piece(f"t-{one['id']}", html, "others", "start"))
    return pieces


async def reviews_now(desk: PageTools, visit: PageRequest) -> Reviews:
    """Read both lists from the simulator, and the links from the store."""
    control = control_of(desk)
    settings = await control.get("/control/settings")
    accounts = accounts_of(visit)
    nothing: dict[str, Any] = {"templates": [], "count": 0, "reasons": []}
    waiting = others = nothing
    if accounts:
        of_accounts = [("waba_id", one) for one in accounts]
        in_line = [("status", one) for one in WAITING]
        waiting = await control.get(f"/control/templates?{urlencode(of_accounts + in_line)}")
        rest = [("not_status", one) for one in WAITING]
        wished = [("name", visit.query("q")), ("limit", str(_MOST_SHOWN))]
        others = await control.get(f"/control/templates?{urlencode(of_accounts + rest + wished)}")
    shown: list[dict[str, Any]] = waiting["templates"][:_MOST_WAITING]
    decided: list[dict[str, Any]] = others["templates"][::-1]
    ids = {one["id"] for one in (*shown, *decided)}
    apps = {app.business_account_id: app.id for app in reversed(visit.apps)}
    links = await desk.parts.database.read(template_links, visit.partner.id, ids)
    return Reviews(
        shown, waiting["count"], decided, others["count"],
        {
            link.operator_template_id: f"/apps/{apps[link.business_account_id]}/templates/{link.id}"
            for link in links
            if link.business_account_id in apps
        },
        waiting["reasons"],
        settings["review_delay_ms"],
    )  # fmt: skip


def accounts_of(visit: PageRequest) -> list[str]:
    """The partner's own business accounts."""
    return sorted({app.business_account_id for app in visit.apps if app.business_account_id})


async def own_template(desk: PageTools, visit: PageRequest) -> dict[str, Any]:
    """The template in the path, as the control door shows it.

    Raises:
        NotThere: it is none, or of another partner's account.
    """
    template_id: str = visit.path["template_id"]
    accounts = accounts_of(visit)
    if not accounts or not (template_id.isascii() and template_id.isdigit()):
        raise NotThere("There is no such template.")
    wish = [("id", template_id), *(("waba_id", one) for one in accounts)]
    found = (await control_of(desk).get(f"/control/templates?{urlencode(wish)}"))["templates"]
    if not found:
        raise NotThere("There is no such template.")
    return found[0]


def _query(visit: PageRequest) -> str:
    q = visit.query("q")
    return f"?{urlencode({'q': q})}" if q else ""
