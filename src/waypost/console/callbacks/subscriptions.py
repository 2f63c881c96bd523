"""Who is told: the subscriptions of an app, each with how its receiver is doing; and one of them."""

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
"""Between two looks: each counts what waits."""
_SPARKS: Final = 40
_LATE_MS: Final = 10_000
_SLOW_MS: Final = 5_000


async def show_subscriptions(desk: PageTools, visit: PageRequest) -> Response:
    """The page: cards, or the form where nobody is told yet."""
    cards = await cards_of(desk, visit)
    return await desk.page(
        visit, "callbacks/subscriptions.html",
        cards=cards, most=MOST_PER_APP, is_demo=desk.parts.demo_partner_id is not None,
        **_form_values(SubscriptionFields()),
    )  # fmt: skip


async def live_subscriptions(desk: PageTools, visit: PageRequest) -> Response:
    """What changes of the cards."""

    async def look() -> Sequence[Piece]:
        return [_piece(desk, visit, card) for card in await cards_of(desk, visit)]

    return desk.live(visit, look, rest_s=REST_S, at_least_s=2.0)


async def show_new(desk: PageTools, visit: PageRequest) -> Response:
    """The form of a new one."""
    return await new_page(desk, visit, SubscriptionFields())


async def show_subscription(desk: PageTools, visit: PageRequest) -> Response:
    """One, with its form."""
    held = await named_subscription(desk, visit)
    return await subscription_page(desk, visit, held, fields_of(held))


async def live_subscription(desk: PageTools, visit: PageRequest) -> Response:
    """What changes of its card."""
    held = await named_subscription(desk, visit)

    async def look() -> Sequence[Piece]:
        cards = await cards_of(desk, visit)
        return [_piece(desk, visit, card, is_alone=True) for card in cards if card["id"] == int(held.id)]

    return desk.live(visit, look, rest_s=REST_S, at_least_s=2.0)


async def new_page(desk: PageTools, visit: PageRequest, fields: SubscriptionFields, status: int = 200) -> Response:
    """The form of a new one, with what was typed and what is wrong with it."""
    return await desk.page(visit, "callbacks/new.html", status, **_form_values(fields))


async def subscription_page(
    desk: PageTools, visit: PageRequest, held: Subscription, fields: SubscriptionFields,
    *, keys: dict[str, Any] | None = None, status: int = 200,
) -> Response:  # fmt: skip
    """One subscription: how it is doing, its form, its key.

    Args:
        desk: what there is.
        visit: who looks.
        held: which.
        fields: what stands in the form.
        keys: as the door shows them; None: they are not shown.
        status: of the answer.
    """
    card = next((one for one in await cards_of(desk, visit) if one["id"] == int(held.id)), None)
    if card is None:
        raise NotThere("This app has no such subscription.")
    return await desk.page(
        visit, "callbacks/subscription.html", status,
        card=card, held=held, keys=keys, **_form_values(fields),
    )  # fmt: skip


async def cards_of(desk: PageTools, visit: PageRequest) -> list[dict[str, Any]]:
    """What the cards show."""
    standing = await standing_of_all(desk, visit)
    lately = await desk.parts.database.read(_lately, standing)
    return [{**one, "base": base_of(visit), "modes": one["modes"].split(","), **lately[one["id"]]} for one in standing]


def _lately(connection: Connection, standing: Sequence[dict[str, Any]]) -> dict[int, Any]:
    """By subscription, when it took the last one, and its newest answer times as a small chart."""
    found: dict[int, Any] = {}
    for one in standing:
        tries = list(newest_tries(connection, one["id"], _SPARKS))[::-1]
        found[one["id"]] = {
            "taken_ms": last_taken_ms(connection, one["id"], one["failing_since_ms"]),
            "last": tries[-1] if tries else None,
            "sparks": _sparks(tries) if tries else "",
        }
    return found


def _sparks(tries: Sequence[Any]) -> str:
    times = sorted(one.duration_ms for one in tries)
    median = times[len(times) // 2]
    failed = sum(not is_taken(one.status) for one in tries)
    spelt = f"The newest {len(tries)} tries: half of them within {duration(median)}, the longest {duration(times[-1])}, {failed} not taken."
    empty = _SPARKS - len(tries)  # the newest stands at the right, whatever there is
    return sparkline(
        [*[None] * empty, *(one.duration_ms for one in tries)],
        title=spelt,
        tones=["quiet"] * empty + [tone_of(one) for one in tries],
        logarithmic=True,
        most=_LATE_MS,
    )


def is_taken(status: int | None) -> bool:
    """Whether a status says that a receiver took a callback."""
    return status is not None and 200 <= status < 300


def tone_of(one: Any) -> str:
    """The colour of a try: not taken, slow, or well."""
    if not is_taken(one.status):
        return "bad"
    return "warn" if one.duration_ms >= _SLOW_MS else "accent"


def _piece(desk: PageTools, visit: PageRequest, card: dict[str, Any], *, is_alone: bool = False) -> Piece:
    html = desk.parts.pages.part(PARTS, "card", visit, visit, card, is_alone=is_alone)
    return Piece(f"subscription-{card['id']}", html, into="subscriptions")


def _form_values(fields: SubscriptionFields) -> dict[str, Any]:
    others = tuple(one for one in fields.modes if one not in OFFERED)
    return {"fields": fields, "groups": MODE_GROUPS, "other_modes": others}
