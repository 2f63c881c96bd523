"""The subscriptions of an app with the health of their receivers, and the page and the form of one."""

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
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
from waypost.console.charts import sparkline
from waypost.console.page_request import PageRequest
from waypost.console.web.errors import InvalidPageRequest, NotFound
from waypost.console.web.formatting import format_duration
from waypost.console.web.streams import PageElement
from waypost.domain.callbacks import MAX_SUBSCRIPTIONS_PER_APP, MODE_ALL, MODES, Subscription
from waypost.store.callbacks.receivers import last_delivery_ms, newest_attempts

CARDS_REST_S: Final = 1.0
"""Between two updates of a stream: each counts the waiting callbacks."""
OLD_KEY_LIFETIMES: Final = ("86400", "3600", "604800", "0")
"""Seconds that the old key may stay valid, as the form offers them."""
MODE_GROUPS: Final = {  # mode, and its events in a sentence. Source: docs/how-to/receive-callbacks.md; facts 4.4
    "Messages you send": (
        ("ENQUEUED", "The operator accepted a message."),
        ("SENT", "The operator sent it to the recipient."),
        ("DELIVERED", "It reached the recipient's device."),
        ("READ", "The recipient read or played it."),
        ("FAILED", "It failed, or its outcome is uncertain."),
        ("DELETED", "The recipient deleted it."),
        ("BILLING", "The price of a message, once per message."),
        ("PAYMENTS", "The status of a requested payment changed."),
    ),
    "Recipient activity": (
        ("MESSAGE", "A recipient sent a message or media, tapped a button, chose from a list, or reacted."),
        ("FLOWS_MESSAGE", "A recipient submitted a flow."),
        (
            "OTHERS",
            "A recipient changed numbers, stopped or resumed marketing; and events without a type of their own.",
        ),
    ),
    "Templates and account": (
        ("TEMPLATE", "A template was reviewed, paused or disabled, or its quality or category changed."),
        (
            "ACCOUNT",
            "The account or number was reviewed, restricted or got a new limit; or the service paused a subscription.",
        ),
    ),
    "Everything": ((MODE_ALL, "All of the above, and future events. No effect in version 2."),),
}
V3_ONLY_MODES: Final = ("PAYMENTS", "FLOWS_MESSAGE", MODE_ALL)
DEFAULT_MODES: Final = ("ENQUEUED", "SENT", "DELIVERED", "READ", "FAILED", "MESSAGE", "TEMPLATE")
OFFERED_MODES: Final = tuple(mode for rows in MODE_GROUPS.values() for mode, _ in rows)
_API_FIELDS: Final = ("tag", "url", "modes", "meta")
_SPARKLINE_ATTEMPTS: Final = 40
_LATE_MS: Final = 10_000
_SLOW_MS: Final = 5_000


@dataclass(slots=True)
class SubscriptionFields:
    """The values of the form."""

    tag: str = ""
    url: str = ""
    version: str = "2"
    modes: tuple[str, ...] = DEFAULT_MODES
    header_names: tuple[str, ...] = ()  # of the stored headers; their values are never shown again
    headers: str = ""  # new ones, one per line
    removed: tuple[str, ...] = ()  # names that are checked for removal
    do_check: bool = True
    wrong: dict[str, str] = field(default_factory=dict[str, str])  # errors by field; `form` for those of no field

    @property
    def other_modes(self) -> list[str]:
        """Stored modes that the form does not offer."""
        return [mode for mode in self.modes if mode not in OFFERED_MODES]


async def _read_fields(request: PageRequest, subscription: Subscription | None) -> SubscriptionFields:
    form = await request.form()
    names = tuple(subscription.headers) if subscription else ()
    return SubscriptionFields(
        tag=(await request.field("tag")).strip(),
        url=(await request.field("url")).strip(),
        version=await request.field("version"),
        modes=tuple(mode for mode in MODES if mode in form.getlist("modes")),
        header_names=names,
        headers=(await request.field("headers")).strip(),
        removed=tuple(name for name in names if name in form.getlist("remove")),
        do_check=await request.is_checked("check"),
    )


def _encode_form(fields: SubscriptionFields, subscription: Subscription | None) -> dict[str, str]:
    """Return the form that the partner API is sent. Raises InvalidPageRequest: a line is not a valid header."""
    form = {
        "tag": fields.tag,
        "url": fields.url,
        "version": fields.version,
        "modes": ",".join(fields.modes),
        "doCheck": "true" if fields.do_check else "false",
    }
    added = _parse_headers(fields.headers)
    if subscription is not None and not added and not fields.removed:
        return form
    if subscription is not None or added:
        meta: dict[str, Any] = json.loads(subscription.meta) if subscription and subscription.meta else {}
        kept = {
            name: text
            for name, text in (subscription.headers if subscription else {}).items()
            if name not in fields.removed and name.lower() not in {new.lower() for new in added}
        }
        form["meta"] = json.dumps({**meta, "headers": {**kept, **added}})
    return form


def _parse_headers(text: str) -> dict[str, str]:
    headers: dict[str, str] = {}
    for line in text.splitlines():
        name, colon, value = line.partition(":")
        if not line.strip():
            continue
        if not colon or not name.strip():
            raise InvalidPageRequest(f"{line.strip()[:60]!r} is not a header.", "Use the form Name: value.")
        headers[name.strip()] = value.strip()
    return headers


async def show_subscriptions(request: PageRequest) -> Response:
    """Return the page: cards, or the form if there is no subscription."""
    return await request.page(
        "callbacks/subscriptions.html",
        cards=await _read_cards(request), most=MAX_SUBSCRIPTIONS_PER_APP,
        is_demo=request.services.demo_partner_id == request.partner.id,
        listen=listen_commands(request.services.public_url, request.app.id, request.app.name),
        fields=SubscriptionFields(), groups=MODE_GROUPS, v3_only=V3_ONLY_MODES,
    )  # fmt: skip


async def live_subscriptions(request: PageRequest) -> Response:
    """Stream what changes on the cards."""

    async def render_pieces() -> Sequence[PageElement]:
        return [_render_card(request, card) for card in await _read_cards(request)]

    return request.live(render_pieces, rest_s=CARDS_REST_S, at_least_s=2.0)


async def show_new(request: PageRequest, fields: SubscriptionFields | None = None) -> Response:
    """Return the form of a new subscription, with the values and errors of a rejected attempt."""
    return await request.page(
        "callbacks/new.html", 400 if fields else 200,
        fields=fields or SubscriptionFields(), groups=MODE_GROUPS, v3_only=V3_ONLY_MODES,
    )  # fmt: skip


async def show_subscription(
    request: PageRequest, fields: SubscriptionFields | None = None,
    *, keys: dict[str, Any] | None = None, ping: dict[str, Any] | None = None,
) -> Response:  # fmt: skip
    """Return the page of one subscription: its health, form and signing key.

    Args:
        fields: of a rejected form; None: those of the subscription.
        keys: as the admin API returns them; None: they are not shown; `ping` likewise.
    """
    subscription = await get_subscription(request)
    card = next((card for card in await _read_cards(request) if card["id"] == int(subscription.id)), None)
    if card is None:
        raise NotFound("This app has no such subscription.")
    stored = SubscriptionFields(
        subscription.tag, subscription.url, str(subscription.version), subscription.modes, tuple(subscription.headers)
    )
    return await request.page(
        "callbacks/subscription.html", 400 if fields else 200,
        card=card, subscription=subscription, keys=keys, ping=ping, fields=fields or stored,
        groups=MODE_GROUPS, v3_only=V3_ONLY_MODES,
    )  # fmt: skip


async def live_subscription(request: PageRequest) -> Response:
    """Stream what changes on its card."""
    subscription = await get_subscription(request)

    async def render_pieces() -> Sequence[PageElement]:
        cards = await _read_cards(request)
        own = [card for card in cards if card["id"] == int(subscription.id)]
        return [_render_card(request, card, is_alone=True) for card in own]

    return request.live(render_pieces, rest_s=CARDS_REST_S, at_least_s=2.0)


async def _read_cards(request: PageRequest) -> list[dict[str, Any]]:
    """Return the subscriptions with their last delivery, their last attempt and their newest response times."""
    subscriptions, base = await list_subscriptions(request), callbacks_path(request)

    def read(connection: Connection) -> list[dict[str, Any]]:
        cards: list[dict[str, Any]] = []
        for each in subscriptions:
            attempts = list(newest_attempts(connection, each["id"], _SPARKLINE_ATTEMPTS))[::-1]
            recent = {
                "delivered_ms": last_delivery_ms(connection, each["id"], each["failing_since_ms"]),
                "last": attempts[-1] if attempts else None,
                "sparks": _summarize_attempts(attempts) if attempts else None,
            }
            cards.append({**each, "base": base, "modes": each["modes"].split(","), **recent})
        return cards

    return await request.read(read)


def _summarize_attempts(attempts: Sequence[Any]) -> dict[str, Any]:
    """Return the chart of the newest response times, and what its label says."""
    times = sorted(attempt.duration_ms for attempt in attempts)
    tones = ["warn" if attempt.duration_ms >= _SLOW_MS else "accent" for attempt in attempts]
    tones = [tone if is_delivered_status(one.status) else "bad" for one, tone in zip(attempts, tones, strict=True)]
    title = (
        f"Last {len(attempts)} attempts: median {format_duration(times[len(times) // 2])}, "
        f"maximum {format_duration(times[-1])}, {tones.count('bad')} failed."
    )
    empty = _SPARKLINE_ATTEMPTS - len(attempts)  # the newest attempt is always at the right
    chart = sparkline(
        [*[None] * empty, *(attempt.duration_ms for attempt in attempts)],
        title=title,
        tones=["quiet"] * empty + tones,
        logarithmic=True,
        most=_LATE_MS,
    )
    return {
        "chart": chart, "attempts": len(attempts), "highest": format_duration(times[-1]),
        "from_ms": attempts[0].at_ms, "to_ms": attempts[-1].at_ms,
    }  # fmt: skip


def is_delivered_status(status: int | None) -> bool:
    """True if the status of a response means that the callback was delivered."""
    return status is not None and 200 <= status < 300


def _render_card(request: PageRequest, card: dict[str, Any], *, is_alone: bool = False) -> PageElement:
    html = request.macro("callbacks/parts.html", "card", request, card, is_alone=is_alone)
    return PageElement(f"subscription-{card['id']}", html, into="subscriptions")


async def create(request: PageRequest) -> Response:
    """Create a subscription; its endpoint is pinged first, unless the form disables that."""
    fields = await _read_fields(request, None)
    response = await _submit(request, "POST", f"/partner/app/{request.app.id}/subscription", fields)
    if response is None:
        return await show_new(request, fields)
    ping = "Its endpoint responded to the ping." if fields.do_check else "It was not pinged."
    path = f"{callbacks_path(request)}/subscriptions/{response['subscription']['id']}"
    return request.redirect(path, f"Subscription {fields.tag} created. {ping}")


async def change(request: PageRequest) -> Response:
    """Change a subscription; a new URL is pinged first, unless the form disables that."""
    subscription = await get_subscription(request)
    fields = await _read_fields(request, subscription)
    if await _submit(request, "PUT", api_path(subscription), fields, subscription) is None:
        return await show_subscription(request, fields)
    is_new_url = fields.url != subscription.url
    ping = " Its new endpoint responded to the ping." if is_new_url and fields.do_check else ""
    return request.redirect(_page_path(request, subscription), f"Subscription {fields.tag} updated.{ping}")


async def _submit(
    request: PageRequest, method: str, path: str, fields: SubscriptionFields,
    subscription: Subscription | None = None,
) -> Any:  # fmt: skip
    """Return the partner API's response; None: the form is rejected, and its fields have the errors."""
    try:
        return await request.app_api.form(method, path, _encode_form(fields, subscription))
    except ApiResponseError as error:
        text = (error.explanation or error.message).strip()
        name = error.top_field if error.top_field in _API_FIELDS else "form"
        fields.wrong[name] = text if text.endswith(".") else f"{text}."
    except InvalidPageRequest as error:
        fields.wrong["headers"] = f"{error.text} {error.hint}"
    return None


async def send_ping(request: PageRequest) -> Response:
    """Send a ping; show the request and the response on its page, or a notice where the page stays open."""
    subscription = await get_subscription(request)
    result = await _call(request, "POST", subscription, "/check")
    if not request.is_quiet:
        return await show_subscription(request, ping=result)
    path, took = _page_path(request, subscription), format_duration(result["duration_ms"])
    text = f"{subscription.tag} responded with {result['status']} in {took}"
    if result["delivered"]:
        return respond(request, path, f"{text}.")
    if result["status"] is None:
        text = f"{subscription.tag} did not respond within {took}: {result['error']}."
    else:
        begin = " ".join(result["response_body"].split())[:120]
        text += f": {begin}" if begin else "."
    hint = "A receiver must respond with 2xx within 10 s, before it processes the callback."
    return respond(request, path, text, hint=hint, kind="bad")


async def pause(request: PageRequest) -> Response:
    """Pause it: callbacks that are queued wait."""
    subscription = await get_subscription(request)
    await request.app_api.form("PUT", api_path(subscription), {"active": "false"})
    path, hint = (
        _page_path(request, subscription),
        "Queued callbacks wait. Events that happen while it is paused are not sent to it.",
    )
    return respond(request, path, f"Subscription {subscription.tag} paused.", hint=hint, kind="info")


async def resume(request: PageRequest) -> Response:
    """Resume it, also if the service paused it."""
    subscription = await get_subscription(request)
    await request.app_api.form("PUT", api_path(subscription), {"active": "true"})
    notice = f"Subscription {subscription.tag} resumed. Waiting callbacks are sent now, in order."
    return respond(request, _page_path(request, subscription), notice)


async def retry(request: PageRequest) -> Response:
    """Call its receiver now, whenever the next attempt is due."""
    subscription = await get_subscription(request)
    path = _page_path(request, subscription)
    try:
        await _call(request, "POST", subscription, "/retry")
    except ApiResponseError as error:  # it was paused, or deleted, meanwhile
        return respond(request, path, error.message, kind="bad")
    hint = "As soon as it responds with 2xx, all callbacks that wait are sent, in order."
    return respond(request, path, f"Calling {subscription.tag} now.", hint=hint, kind="info")


async def show_key(request: PageRequest) -> Response:
    """Show the signing key, on this response only."""
    keys = await _call(request, "GET", await get_subscription(request), "/key")
    return await show_subscription(request, keys=keys)


async def rotate_key(request: PageRequest) -> Response:
    """Create a new signing key, and show both keys."""
    subscription = await get_subscription(request)
    keep_for_s = await request.field("keep_old_for_s")
    if keep_for_s not in OLD_KEY_LIFETIMES:
        raise InvalidPageRequest("Choose how long the old key stays valid.")
    keys = await _call(request, "POST", subscription, "/key/rotate", keep_old_for_s=int(keep_for_s))
    return await show_subscription(request, keys={**keys, "rotated": True})


async def delete(request: PageRequest) -> Response:
    """Delete it; its waiting callbacks are not delivered."""
    subscription = await get_subscription(request)
    await request.app_api.json("DELETE", api_path(subscription))
    notice = f"Subscription {subscription.tag} deleted. Its waiting callbacks will not be delivered."
    return request.redirect(callbacks_path(request), notice)


async def _call(request: PageRequest, method: str, subscription: Subscription, path: str, **fields: Any) -> Any:
    operation = f"{method} /admin/subscriptions/{{subscription_id}}{path}"
    return await request.admin(operation, subscription_id=subscription.id, **fields)


def _page_path(request: PageRequest, subscription: Subscription) -> str:
    return f"{callbacks_path(request)}/subscriptions/{subscription.id}"
