"""Lookups that the callbacks pages share: a subscription by id, the list of an app, and result notices."""

from typing import Any
from urllib.parse import urlencode

from starlette.responses import JSONResponse, Response

from waypost.console.page_tools import PageTools
from waypost.console.web.errors import NotFound
from waypost.console.web.page_request import PageRequest
from waypost.domain.callbacks.subscription import Subscription
from waypost.store.callbacks.subscriptions import subscription_of_partner


def callbacks_path(page_request: PageRequest) -> str:
    """Return the path of the callbacks pages of the app in the URL."""
    return f"/apps/{page_request.app.id}/callbacks"


async def get_subscription(tools: PageTools, page_request: PageRequest) -> Subscription:
    """Return the subscription in the path.

    Raises:
        NotFound: the app has no such subscription.
    """
    subscription_id = str(page_request.path_params["subscription_id"])
    parts = tools.services
    subscription = None
    if subscription_id.isascii() and subscription_id.isdecimal() and len(subscription_id) < 19:
        subscription = await parts.database.read(
            subscription_of_partner, page_request.partner.id, int(subscription_id), parts.directory.unseal
        )
    if subscription is None or subscription.app_id != page_request.app.id:
        raise NotFound("This app has no such subscription.")
    return subscription


async def list_subscriptions(tools: PageTools, page_request: PageRequest) -> list[dict[str, Any]]:
    """Return the app's subscriptions as the admin API shows them: state, circuit, and waiting callbacks."""
    query = urlencode({"app_id": page_request.app.id, "partner_id": page_request.partner.id})
    response = await tools.services.apis.admin.json("GET", f"/admin/subscriptions?{query}")
    return response["subscriptions"]


def api_path(subscription: Subscription) -> str:
    """Return the path of a subscription in the partner API."""
    return f"/partner/app/{subscription.app_id}/subscription/{subscription.id}"


def respond(
    tools: PageTools, page_request: PageRequest, path: str, notice: str, *, hint: str = "", kind: str = "good"
) -> Response:
    """Return the result of an action: a notice on the open page, or on the page it redirects to."""
    if page_request.is_quiet:
        return JSONResponse({"notice": notice, "hint": hint, "kind": kind})
    return tools.redirect(path, notice, hint=hint, kind=kind)
