"""Lookups that the callbacks pages share: a subscription by id, the list of an app, and result notices."""

from typing import Any
from urllib.parse import urlencode

from starlette.responses import JSONResponse, Response

from waypost.console.page_tools import PageTools
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.domain.callbacks.subscription import Subscription
from waypost.store.callbacks.subscriptions import subscription_of_partner


def base_of(visit: PageRequest) -> str:
    """Return the path of the callbacks pages of the app in the URL."""
    return f"/apps/{visit.app.id}/callbacks"


async def named_subscription(desk: PageTools, visit: PageRequest) -> Subscription:
    """Return the subscription in the path.

    Raises:
        NotThere: the app has no such subscription.
    """
    subscription_id = str(visit.path["subscription_id"])
    parts = desk.parts
    subscription = None
    if subscription_id.isascii() and subscription_id.isdecimal() and len(subscription_id) < 19:
        subscription = await parts.database.read(
            subscription_of_partner, visit.partner.id, int(subscription_id), parts.directory.unseal
        )
    if subscription is None or subscription.app_id != visit.app.id:
        raise NotThere("This app has no such subscription.")
    return subscription


async def standing_of_all(desk: PageTools, visit: PageRequest) -> list[dict[str, Any]]:
    """Return the app's subscriptions as the admin API shows them: state, circuit, and waiting callbacks."""
    query = urlencode({"app_id": visit.app.id, "partner_id": visit.partner.id})
    response = await desk.parts.apis.admin.json("GET", f"/admin/subscriptions?{query}")
    return response["subscriptions"]


def api_path(subscription: Subscription) -> str:
    """Return the path of a subscription in the partner API."""
    return f"/partner/app/{subscription.app_id}/subscription/{subscription.id}"


def answer(
    desk: PageTools, visit: PageRequest, path: str, said: str, *, remedy: str = "", kind: str = "good"
) -> Response:
    """Return the result of an action: a notice on the open page, or on the page it redirects to."""
    if visit.is_quiet:
        return JSONResponse({"said": said, "remedy": remedy, "kind": kind})
    return desk.go(path, said, remedy=remedy, kind=kind)
