"""Actions on a subscription, through the partner API where it has the call, else the admin API."""

from typing import Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.callbacks.lookup import answer, api_path, base_of, named_subscription
from waypost.console.callbacks.subscription_form import fields_of, form_for_api, read_fields
from waypost.console.callbacks.subscriptions import new_page, subscription_page
from waypost.console.page_tools import PageTools
from waypost.console.web.formatting import duration
from waypost.console.web.not_found import NotMeant
from waypost.console.web.page_request import PageRequest
from waypost.domain.callbacks.subscription import Subscription

KEEP_OLD: Final = {  # seconds that the old key stays valid
    "86400": "for 1 day",
    "3600": "for 1 hour",
    "604800": "for 7 days",
    "0": "not at all; it is revoked now",
}


async def create(desk: PageTools, visit: PageRequest) -> Response:
    """Create a subscription; its endpoint is pinged first, unless the form disables that."""
    fields = await read_fields(visit)
    api = desk.parts.apis.app(visit.app)
    try:
        response = await api.form("POST", f"/partner/app/{visit.app.id}/subscription", form_for_api(fields))
    except ApiResponseError as error:
        fields.refuse(error)
    except NotMeant as error:
        fields.wrong["headers"] = f"{error.what} {error.remedy}"
    else:
        ping = "Its endpoint responded to the ping." if fields.do_check else "It was not pinged."
        path = f"{base_of(visit)}/subscriptions/{response['subscription']['id']}"
        return desk.go(path, f"Subscription {fields.tag} created. {ping}")
    return await new_page(desk, visit, fields, 400)


async def change(desk: PageTools, visit: PageRequest) -> Response:
    """Change a subscription; a new URL is pinged first, unless the form disables that."""
    subscription = await named_subscription(desk, visit)
    fields = await read_fields(visit, subscription)
    try:
        await desk.parts.apis.app(visit.app).form("PUT", api_path(subscription), form_for_api(fields, subscription))
    except ApiResponseError as error:
        fields.refuse(error)
    except NotMeant as error:
        fields.wrong["headers"] = f"{error.what} {error.remedy}"
    else:
        is_new_url = fields.url != subscription.url
        ping = " Its new endpoint responded to the ping." if is_new_url and fields.do_check else ""
        return desk.go(_page(visit, subscription), f"Subscription {fields.tag} updated.{ping}")
    return await subscription_page(desk, visit, subscription, fields, status=400)


async def check(desk: PageTools, visit: PageRequest) -> Response:
    """Send a ping and return a notice with the result."""
    subscription = await named_subscription(desk, visit)
    result = await desk.parts.apis.admin.json("POST", f"/admin/subscriptions/{subscription.id}/check", {})
    took = duration(result["duration_ms"])
    if result["taken"]:
        return answer(
            desk, visit, _page(visit, subscription), f"{subscription.tag} responded {result['status']} in {took}."
        )
    if result["status"] is None:
        text = f"{subscription.tag} did not respond within {took}: {result['error']}."
    else:
        begin = " ".join(result["answer"].split())[:120]
        text = f"{subscription.tag} responded {result['status']} in {took}" + (f": {begin}" if begin else ".")
    hint = "A receiver must respond 2xx within 10 s, before it processes the callback."
    return answer(desk, visit, _page(visit, subscription), text, remedy=hint, kind="bad")


async def pause(desk: PageTools, visit: PageRequest) -> Response:
    """Pause it: callbacks that are queued wait."""
    subscription = await named_subscription(desk, visit)
    await desk.parts.apis.app(visit.app).form("PUT", api_path(subscription), {"active": "false"})
    return answer(
        desk, visit, _page(visit, subscription), f"Subscription {subscription.tag} paused.",
        remedy="Queued callbacks wait. Events that happen while it is paused are not sent to it.", kind="info",
    )  # fmt: skip


async def resume(desk: PageTools, visit: PageRequest) -> Response:
    """Resume it, also if the service paused it."""
    subscription = await named_subscription(desk, visit)
    await desk.parts.apis.app(visit.app).form("PUT", api_path(subscription), {"active": "true"})
    return answer(
        desk,
        visit,
        _page(visit, subscription),
        f"Subscription {subscription.tag} resumed. Waiting callbacks are sent now, in order.",
    )


async def show_key(desk: PageTools, visit: PageRequest) -> Response:
    """Show the signing key, on this response only."""
    subscription = await named_subscription(desk, visit)
    keys = await desk.parts.apis.admin.json("GET", f"/admin/subscriptions/{subscription.id}/key")
    return await subscription_page(desk, visit, subscription, fields_of(subscription), keys=keys)


async def rotate_key(desk: PageTools, visit: PageRequest) -> Response:
    """Create a new signing key, and show both keys."""
    subscription = await named_subscription(desk, visit)
    keep_for_s = await visit.field("keep_old_for_s")
    if keep_for_s not in KEEP_OLD:
        raise NotMeant("Choose how long the old key stays valid.")
    keys = await desk.parts.apis.admin.json(
        "POST", f"/admin/subscriptions/{subscription.id}/key/rotate", {"keep_old_for_s": int(keep_for_s)}
    )
    return await subscription_page(desk, visit, subscription, fields_of(subscription), keys={**keys, "rotated": True})


async def delete(desk: PageTools, visit: PageRequest) -> Response:
    """Delete it; its waiting callbacks are not delivered."""
    subscription = await named_subscription(desk, visit)
    await desk.parts.apis.app(visit.app).json("DELETE", api_path(subscription))
    return desk.go(
        base_of(visit), f"Subscription {subscription.tag} deleted. Its waiting callbacks will not be delivered."
    )


def _page(visit: PageRequest, held: Subscription) -> str:
    return f"{base_of(visit)}/subscriptions/{held.id}"
