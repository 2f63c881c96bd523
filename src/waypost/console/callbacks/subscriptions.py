"""The subscriptions of an app with the health of their receivers, and the page of one."""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection
from starlette.responses import Response

from waypost.console.callbacks.lookup import base_of, named_subscription, standing_of_all
from waypost.console.callbacks.modes import MODE_GROUPS, OFFERED
from waypost.console.callbacks.subscription_form import SubscriptionFields, fields_of
from waypost.console.charts.sparkline import sparkline
from waypost.console.page_tools import PageTools
from waypost.console.web.formatting import duration
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece
from waypost.domain.callbacks.subscription import MOST_PER_APP, Subscription
from waypost.store.callbacks.receiver_statistics import last_taken_ms, newest_tries

PARTS: Final = "callbacks/parts.html"
REST_S: Final = 1.0
"""Between two updates of a stream: each counts the waiting callbacks."""
_SPARKS: Final = 40
_LATE_MS: Final = 10_000
_SLOW_MS: Final = 5_000


async def show_subscriptions(desk: PageTools, visit: PageRequest) -> Response:
    """Return the page: cards, or the form if there is no subscription."""
    cards = await cards_of(desk, visit)
    return await desk.page(
        visit, "callbacks/subscriptions.html",
        cards=cards, most=MOST_PER_APP, is_demo=desk.parts.demo_partner_id is not None,
        **_form_values(SubscriptionFields()),
    )  # fmt: skip


async def live_subscriptions(desk: PageTools, visit: PageRequest) -> Response:
    """Stream what changes on the cards."""

    async def render_pieces() -> Sequence[Piece]:
        return [_piece(desk, visit, card) for card in await cards_of(desk, visit)]

    return desk.live(visit, render_pieces, rest_s=REST_S, at_least_s=2.0)


async def show_new(desk: PageTools, visit: PageRequest) -> Response:
    """Return the form of a new subscription."""
    return await new_page(desk, visit, SubscriptionFields())


async def show_subscription(desk: PageTools, visit: PageRequest) -> Response:
    """Return the page of one subscription, with its form."""
    subscription = await named_subscription(desk, visit)
    return await subscription_page(desk, visit, subscription, fields_of(subscription))


async def live_subscription(desk: PageTools, visit: PageRequest) -> Response:
    """Stream what changes on its card."""
    subscription = await named_subscription(desk, visit)

    async def render_pieces() -> Sequence[Piece]:
        cards = await cards_of(desk, visit)
        return [_piece(desk, visit, card, is_alone=True) for card in cards if card["id"] == int(subscription.id)]

    return desk.live(visit, render_pieces, rest_s=REST_S, at_least_s=2.0)


async def new_page(desk: PageTools, visit: PageRequest, fields: SubscriptionFields, status: int = 200) -> Response:
    """Return the form of a new subscription, with the values and errors of the last attempt."""
    return await desk.page(visit, "callbacks/new.html", status, **_form_values(fields))


async def subscription_page(
    desk: PageTools, visit: PageRequest, held: Subscription, fields: SubscriptionFields,
    *, keys: dict[str, Any] | None = None, status: int = 200,
) -> Response:  # fmt: skip
    """Return the page of one subscription: its health, form and signing key.

    Args:
        desk: the page tools.
        visit: the request.
        held: the subscription.
        fields: the values of the form.
        keys: as the admin API returns them; None: they are not shown.
        status: of the response.
    """
    card = next((card for card in await cards_of(desk, visit) if card["id"] == int(held.id)), None)
    if card is None:
        raise NotThere("This app has no such subscription.")
    return await desk.page(
        visit, "callbacks/subscription.html", status,
        card=card, subscription=held, keys=keys, **_form_values(fields),
    )  # fmt: skip


async def cards_of(desk: PageTools, visit: PageRequest) -> list[dict[str, Any]]:
    """Return the values of the cards."""
    subscriptions = await standing_of_all(desk, visit)
    recent = await desk.parts.database.read(_lately, subscriptions)
    return [
        {**each, "base": base_of(visit), "modes": each["modes"].split(","), **recent[each["id"]]}
        for each in subscriptions
    ]


def _lately(connection: Connection, standing: Sequence[dict[str, Any]]) -> dict[int, Any]:
    """Return by subscription the last delivery, the last attempt, and a chart of the newest response times."""
    recent: dict[int, Any] = {}
    for each in standing:
        attempts = list(newest_tries(connection, each["id"], _SPARKS))[::-1]
        recent[each["id"]] = {
            "delivered_ms": last_taken_ms(connection, each["id"], each["failing_since_ms"]),
            "last": attempts[-1] if attempts else None,
            "sparks": _sparks(attempts) if attempts else "",
        }
    return recent


def _sparks(tries: Sequence[Any]) -> str:
    times = sorted(attempt.duration_ms for attempt in tries)
    median = times[len(times) // 2]
    failed = sum(not is_taken(attempt.status) for attempt in tries)
    title = f"Last {len(tries)} attempts: median {duration(median)}, maximum {duration(times[-1])}, {failed} failed."
    empty = _SPARKS - len(tries)  # the newest attempt is always at the right
    return sparkline(
        [*[None] * empty, *(attempt.duration_ms for attempt in tries)],
        title=title,
        tones=["quiet"] * empty + [tone_of(attempt) for attempt in tries],
        logarithmic=True,
        most=_LATE_MS,
    )


def is_taken(status: int | None) -> bool:
    """True if the status of a response means that the callback was delivered."""
    return status is not None and 200 <= status < 300


def tone_of(one: Any) -> str:
    """Return the colour of an attempt: failed, slow, or fine."""
    if not is_taken(one.status):
        return "bad"
    return "warn" if one.duration_ms >= _SLOW_MS else "accent"


def _piece(desk: PageTools, visit: PageRequest, card: dict[str, Any], *, is_alone: bool = False) -> Piece:
    html = desk.parts.pages.part(PARTS, "card", visit, visit, card, is_alone=is_alone)
    return Piece(f"subscription-{card['id']}", html, into="subscriptions")


def _form_values(fields: SubscriptionFields) -> dict[str, Any]:
    other_modes = tuple(mode for mode in fields.modes if mode not in OFFERED)
    return {"fields": fields, "groups": MODE_GROUPS, "other_modes": other_modes}
