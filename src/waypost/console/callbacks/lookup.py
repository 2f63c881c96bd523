"""The partner's own: a subscription by its id, and what the door tells of the app's subscriptions."""

from typing import Any
from urllib.parse import urlencode

from starlette.responses import JSONResponse, Response

from waypost.console.page_tools import PageTools
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.domain.callbacks.subscription import Subscription
from waypost.store.callbacks.subscriptions import subscription_of_partner


def base_of(visit: PageRequest) -> str:
    """The path of the callbacks pages of the app in the path."""
    return f"/apps/{visit.app.id}/callbacks"


async def named_subscription(desk: PageTools, visit: PageRequest) -> Subscription:
    """The subscription in the path.

    Raises:
        NotThere: the app has none such.
    """
    wanted = str(visit.path["subscription_id"])
    parts = desk.parts
    found = None
    if wanted.isascii() and wanted.isdecimal() and len(wanted) < 19:
        found = await parts.database.read(
            subscription_of_partner, visit.partner.id, int(wanted), parts.directory.unseal
        )
    if found is None or found.app_id != visit.app.id:
        raise NotThere("This app has no such subscription.")
    return found


async def standing_of_all(desk: PageTools, visit: PageRequest) -> list[dict[str, Any]]:
    """The app's subscriptions as the administration shows them: state, circuit, and how much waits."""
    query = urlencode({"app_id": visit.app.id, "partner_id": visit.partner.id})
    told = await desk.parts.apis.admin.json("GET", f"/admin/subscriptions?{query}")
    return told["subscriptions"]


def api_path(subscription: Subscription) -> str:
    """The subscription's path of the partner API."""
    return f"/partner/app/{subscription.app_id}/subscription/{subscription.id}"


def answer(
    desk: PageTools, visit: PageRequest, path: str, said: str, *, remedy: str = "", kind: str = "good"
) -> Response:
    """What came of an act: a notice on the page that is open, or on the one that it leads to."""
    if visit.is_quiet:
        return JSONResponse({"said": said, "remedy": remedy, "kind": kind})
    return desk.go(path, said, remedy=remedy, kind=kind)
