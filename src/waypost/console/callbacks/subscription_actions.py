"""Actions on a subscription, through the partner API where it has the call, else the admin API."""

from typing import Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.callbacks.lookup import api_path, callbacks_path, get_subscription, respond
from waypost.console.callbacks.subscription_form import encode_form, read_fields, subscription_fields
from waypost.console.callbacks.subscriptions import new_page, subscription_page
from waypost.console.page_tools import PageTools
from waypost.console.web.errors import InvalidPageRequest
from waypost.console.web.formatting import format_duration
from waypost.console.web.page_request import PageRequest
from waypost.domain.callbacks.subscription import Subscription

OLD_KEY_LIFETIMES: Final = {  # seconds that the old key stays valid
    "86400": "for 1 day",
    "3600": "for 1 hour",
    "604800": "for 7 days",
    "0": "not at all; it is revoked now",
}


async def create(tools: PageTools, page_request: PageRequest) -> Response:
    """Create a subscription; its endpoint is pinged first, unless the form disables that."""
    fields = await read_fields(page_request)
    api = tools.services.apis.app(page_request.app)
    try:
        response = await api.form("POST", f"/partner/app/{page_request.app.id}/subscription", encode_form(fields))
    except ApiResponseError as error:
        fields.add_api_error(error)
    except InvalidPageRequest as error:
        fields.wrong["headers"] = f"{error.text} {error.hint}"
    else:
        ping = "Its endpoint responded to the ping." if fields.do_check else "It was not pinged."
        path = f"{callbacks_path(page_request)}/subscriptions/{response['subscription']['id']}"
        return tools.redirect(path, f"Subscription {fields.tag} created. {ping}")
    return await new_page(tools, page_request, fields, 400)


async def change(tools: PageTools, page_request: PageRequest) -> Response:
    """Change a subscription; a new URL is pinged first, unless the form disables that."""
    subscription = await get_subscription(tools, page_request)
    fields = await read_fields(page_request, subscription)
    try:
        await tools.services.apis.app(page_request.app).form(
            "PUT", api_path(subscription), encode_form(fields, subscription)
        )
    except ApiResponseError as error:
        fields.add_api_error(error)
    except InvalidPageRequest as error:
        fields.wrong["headers"] = f"{error.text} {error.hint}"
    else:
        is_new_url = fields.url != subscription.url
        ping = " Its new endpoint responded to the ping." if is_new_url and fields.do_check else ""
        return tools.redirect(
            _subscription_path(page_request, subscription), f"Subscription {fields.tag} updated.{ping}"
        )
    return await subscription_page(tools, page_request, subscription, fields, status=400)


async def send_ping(tools: PageTools, page_request: PageRequest) -> Response:
    """Send a ping; show the request and the response on its page, or a notice where the page stays open."""
    subscription = await get_subscription(tools, page_request)
    result = await tools.services.apis.admin.json("POST", f"/admin/subscriptions/{subscription.id}/check", {})
    if not page_request.is_quiet:
        fields = subscription_fields(subscription)
        return await subscription_page(tools, page_request, subscription, fields, ping=result)
    took = format_duration(result["duration_ms"])
    if result["delivered"]:
        return respond(
            tools,
            page_request,
            _subscription_path(page_request, subscription),
            f"{subscription.tag} responded with {result['status']} in {took}.",
        )
    if result["status"] is None:
        text = f"{subscription.tag} did not respond within {took}: {result['error']}."
    else:
        begin = " ".join(result["response_body"].split())[:120]
        text = f"{subscription.tag} responded with {result['status']} in {took}" + (f": {begin}" if begin else ".")
    hint = "A receiver must respond with 2xx within 10 s, before it processes the callback."
    return respond(tools, page_request, _subscription_path(page_request, subscription), text, hint=hint, kind="bad")


async def pause(tools: PageTools, page_request: PageRequest) -> Response:
    """Pause it: callbacks that are queued wait."""
    subscription = await get_subscription(tools, page_request)
    await tools.services.apis.app(page_request.app).form("PUT", api_path(subscription), {"active": "false"})
    return respond(
        tools, page_request, _subscription_path(page_request, subscription), f"Subscription {subscription.tag} paused.",
        hint="Queued callbacks wait. Events that happen while it is paused are not sent to it.", kind="info",
    )  # fmt: skip


async def resume(tools: PageTools, page_request: PageRequest) -> Response:
    """Resume it, also if the service paused it."""
    subscription = await get_subscription(tools, page_request)
    await tools.services.apis.app(page_request.app).form("PUT", api_path(subscription), {"active": "true"})
    return respond(
        tools,
        page_request,
        _subscription_path(page_request, subscription),
        f"Subscription {subscription.tag} resumed. Waiting callbacks are sent now, in order.",
    )


async def retry(tools: PageTools, page_request: PageRequest) -> Response:
    """Call its receiver now, whenever the next attempt is due."""
    subscription = await get_subscription(tools, page_request)
    path = _subscription_path(page_request, subscription)
    try:
        await tools.services.apis.admin.json("POST", f"/admin/subscriptions/{subscription.id}/retry", {})
    except ApiResponseError as error:  # it was paused, or deleted, meanwhile
        return respond(tools, page_request, path, error.message, kind="bad")
    return respond(
        tools, page_request, path, f"Calling {subscription.tag} now.",
        hint="As soon as it responds with 2xx, all callbacks that wait are sent, in order.", kind="info",
    )  # fmt: skip


async def show_key(tools: PageTools, page_request: PageRequest) -> Response:
    """Show the signing key, on this response only."""
    subscription = await get_subscription(tools, page_request)
    keys = await tools.services.apis.admin.json("GET", f"/admin/subscriptions/{subscription.id}/key")
    return await subscription_page(tools, page_request, subscription, subscription_fields(subscription), keys=keys)


async def rotate_key(tools: PageTools, page_request: PageRequest) -> Response:
    """Create a new signing key, and show both keys."""
    subscription = await get_subscription(tools, page_request)
    keep_for_s = await page_request.field("keep_old_for_s")
    if keep_for_s not in OLD_KEY_LIFETIMES:
        raise InvalidPageRequest("Choose how long the old key stays valid.")
    keys = await tools.services.apis.admin.json(
        "POST", f"/admin/subscriptions/{subscription.id}/key/rotate", {"keep_old_for_s": int(keep_for_s)}
    )
    return await subscription_page(
        tools, page_request, subscription, subscription_fields(subscription), keys={**keys, "rotated": True}
    )


async def delete(tools: PageTools, page_request: PageRequest) -> Response:
    """Delete it; its waiting callbacks are not delivered."""
    subscription = await get_subscription(tools, page_request)
    await tools.services.apis.app(page_request.app).json("DELETE", api_path(subscription))
    return tools.redirect(
        callbacks_path(page_request),
        f"Subscription {subscription.tag} deleted. Its waiting callbacks will not be delivered.",
    )


def _subscription_path(page_request: PageRequest, subscription: Subscription) -> str:
    return f"{callbacks_path(page_request)}/subscriptions/{subscription.id}"
