"""The subscriptions of an app with the health of their receivers, and the page of one."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection
from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.callbacks.lookup import (
    api_path,
    callbacks_path,
    get_subscription,
    list_subscriptions,
    listen_commands,
    respond,
)
from waypost.console.callbacks.subscription_form import (
    MODE_GROUPS,
    OFFERED_MODES,
    SubscriptionFields,
    encode_form,
    read_fields,
    subscription_fields,
)
from waypost.console.charts import sparkline
from waypost.console.page_tools import PageTools
from waypost.console.web.formatting import format_duration
from waypost.console.web.page_request import InvalidPageRequest, NotFound, PageRequest
from waypost.console.web.streams import PageElement
from waypost.domain.callbacks import MAX_SUBSCRIPTIONS_PER_APP, Subscription
from waypost.store.callbacks.receivers import last_delivery_ms, newest_attempts

SUBSCRIPTION_MACROS: Final = "callbacks/parts.html"
CARDS_REST_S: Final = 1.0
"""Between two updates of a stream: each counts the waiting callbacks."""
_SPARKLINE_ATTEMPTS: Final = 40
_LATE_MS: Final = 10_000
_SLOW_MS: Final = 5_000


async def show_subscriptions(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the page: cards, or the form if there is no subscription."""
    cards = await read_cards(tools, page_request)
    return await tools.page(
        page_request, "callbacks/subscriptions.html",
        cards=cards, most=MAX_SUBSCRIPTIONS_PER_APP,
        is_demo=tools.services.demo_partner_id == page_request.partner.id,
        listen=listen_commands(tools.services.public_url, page_request.app.id, page_request.app.name),
        **_form_values(SubscriptionFields()),
    )  # fmt: skip


async def live_subscriptions(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream what changes on the cards."""

    async def render_pieces() -> Sequence[PageElement]:
        return [_render_card(tools, page_request, card) for card in await read_cards(tools, page_request)]

    return tools.live(page_request, render_pieces, rest_s=CARDS_REST_S, at_least_s=2.0)


async def show_new(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the form of a new subscription."""
    return await new_page(tools, page_request, SubscriptionFields())


async def show_subscription(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the page of one subscription, with its form."""
    subscription = await get_subscription(tools, page_request)
    return await subscription_page(tools, page_request, subscription, subscription_fields(subscription))


async def live_subscription(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream what changes on its card."""
    subscription = await get_subscription(tools, page_request)

    async def render_pieces() -> Sequence[PageElement]:
        cards = await read_cards(tools, page_request)
        return [
            _render_card(tools, page_request, card, is_alone=True)
            for card in cards
            if card["id"] == int(subscription.id)
        ]

    return tools.live(page_request, render_pieces, rest_s=CARDS_REST_S, at_least_s=2.0)


async def new_page(
    tools: PageTools, page_request: PageRequest, fields: SubscriptionFields, status: int = 200
) -> Response:
    """Return the form of a new subscription, with the values and errors of the last attempt."""
    return await tools.page(page_request, "callbacks/new.html", status, **_form_values(fields))


async def subscription_page(
    tools: PageTools, page_request: PageRequest, subscription: Subscription, fields: SubscriptionFields,
    *, keys: dict[str, Any] | None = None, ping: dict[str, Any] | None = None, status: int = 200,
) -> Response:  # fmt: skip
    """Return the page of one subscription: its health, form and signing key.

    Args:
        subscription: the subscription.
        fields: the values of the form.
        keys: as the admin API returns them; None: they are not shown.
        ping: the request and response of a ping, likewise.
        status: of the response.
    """
    card = next((card for card in await read_cards(tools, page_request) if card["id"] == int(subscription.id)), None)
    if card is None:
        raise NotFound("This app has no such subscription.")
    return await tools.page(
        page_request, "callbacks/subscription.html", status,
        card=card, subscription=subscription, keys=keys, ping=ping, **_form_values(fields),
    )  # fmt: skip


async def read_cards(tools: PageTools, page_request: PageRequest) -> list[dict[str, Any]]:
    """Return the values of the cards."""
    subscriptions = await list_subscriptions(tools, page_request)
    recent = await tools.services.database.read(_recent_attempts, subscriptions)
    return [
        {**each, "base": callbacks_path(page_request), "modes": each["modes"].split(","), **recent[each["id"]]}
        for each in subscriptions
    ]


def _recent_attempts(connection: Connection, subscriptions: Sequence[dict[str, Any]]) -> dict[int, Any]:
    """Return by subscription the last delivery, the last attempt, and a chart of the newest response times."""
    recent: dict[int, Any] = {}
    for each in subscriptions:
        attempts = list(newest_attempts(connection, each["id"], _SPARKLINE_ATTEMPTS))[::-1]
        recent[each["id"]] = {
            "delivered_ms": last_delivery_ms(connection, each["id"], each["failing_since_ms"]),
            "last": attempts[-1] if attempts else None,
            "sparks": _summarize_attempts(attempts) if attempts else None,
        }
    return recent


def _summarize_attempts(attempts: Sequence[Any]) -> dict[str, Any]:
    """Return the chart of the newest response times, and what its label says."""
    highest_ms = max(attempt.duration_ms for attempt in attempts)
    return {
        "chart": _render_sparkline(attempts), "attempts": len(attempts), "highest": format_duration(highest_ms),
        "from_ms": attempts[0].at_ms, "to_ms": attempts[-1].at_ms,
    }  # fmt: skip


def _render_sparkline(attempts: Sequence[Any]) -> str:
    times = sorted(attempt.duration_ms for attempt in attempts)
    median = times[len(times) // 2]
    failed = sum(not is_delivered_status(attempt.status) for attempt in attempts)
    title = (
        f"Last {len(attempts)} attempts: median {format_duration(median)}, maximum {format_duration(times[-1])}, "
        f"{failed} failed."
    )
    empty = _SPARKLINE_ATTEMPTS - len(attempts)  # the newest attempt is always at the right
    return sparkline(
        [*[None] * empty, *(attempt.duration_ms for attempt in attempts)],
        title=title,
        tones=["quiet"] * empty + [attempt_tone(attempt) for attempt in attempts],
        logarithmic=True,
        most=_LATE_MS,
    )


def is_delivered_status(status: int | None) -> bool:
    """True if the status of a response means that the callback was delivered."""
    return status is not None and 200 <= status < 300


def attempt_tone(attempt: Any) -> str:
    """Return the colour of an attempt: failed, slow, or fine."""
    if not is_delivered_status(attempt.status):
        return "bad"
    return "warn" if attempt.duration_ms >= _SLOW_MS else "accent"


def _render_card(
    tools: PageTools, page_request: PageRequest, card: dict[str, Any], *, is_alone: bool = False
) -> PageElement:
    html = tools.services.pages.render_macro(
        SUBSCRIPTION_MACROS, "card", page_request, page_request, card, is_alone=is_alone
    )
    return PageElement(f"subscription-{card['id']}", html, into="subscriptions")


def _form_values(fields: SubscriptionFields) -> dict[str, Any]:
    other_modes = tuple(mode for mode in fields.modes if mode not in OFFERED_MODES)
    return {"fields": fields, "groups": MODE_GROUPS, "other_modes": other_modes}


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
