"""What was told: the live list of callbacks, its filters in the address, and pages further back."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode

from sqlalchemy import Connection
from starlette.responses import RedirectResponse, Response

from waypost.console.callbacks.lookup import base_of
from waypost.console.callbacks.subscriptions import is_taken
from waypost.console.callbacks.times import typed_ms
from waypost.console.page_tools import PageTools
from waypost.console.web.formatting import duration
from waypost.console.web.not_found import NotMeant
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece
from waypost.domain.callbacks.callback import AttemptKind
from waypost.store.callbacks.deliveries import (
    STATES,
    Deliveries,
    Place,
    Sought,
    deliveries_of,
    delivery,
    tags_of,
    tries_of,
    whom_about,
)

PARTS: Final = "callbacks/parts.html"
AT_MOST: Final = 50
NEWS: Final = (  # offered while one types; any other word is looked for too
    "enqueued", "sent", "delivered", "read", "failed", "deleted", "billed", "text", "button", "button_reply",
    "list_reply", "image", "video", "audio", "document", "sticker", "location", "contacts", "reaction", "order",
    "nfm_reply", "approved", "rejected", "paused", "disabled", "subscription-paused",
)  # fmt: skip
STATE_KINDS: Final = {"waiting": "info", "delivered": "good", "given up": "bad"}
_LIVE_LOOKED_AT: Final = 500
"""What a stream looks at where a filter fits few: what is new is among the newest."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_FIELDS: Final = ("q", "subscription", "state", "news", "from", "to")


async def show_deliveries(desk: PageTools, visit: PageRequest) -> Response:
    """One page of the list."""
    wanted = visit.query("q").lower()
    if _UUID.fullmatch(wanted):
        found = await desk.parts.database.read(delivery, visit.partner.id, visit.app.id, wanted)
        if found is not None:
            return RedirectResponse(f"{base_of(visit)}/deliveries/{wanted}", 303)
    before = _place_of(visit.query("before"))
    page, rows = await _read(desk, visit, before=before)
    tags = await desk.parts.database.read(tags_of, visit.partner.id, visit.app.id)
    values = {name: visit.query(name) for name in _FIELDS}
    query = urlencode({name: text for name, text in values.items() if text})
    further = ""
    if page.further is not None:
        further = "?" + urlencode({**_given(values), "before": _written(page.further)})
    return await desk.page(
        visit, "callbacks/deliveries.html",
        rows=rows, subscriptions=[{"id": known, "tag": tag} for known, tag in tags.items()], values=values, states=STATES,
        news=NEWS, further=further, searched_to_ms=page.searched_to_ms, is_first=before is None,
        is_filtered=bool(query), query=f"?{query}" if query else "",
    )  # fmt: skip


async def live_deliveries(desk: PageTools, visit: PageRequest) -> Response:
    """What is new on its first page, and what changes of it."""
    sought_from(visit)  # a filter that cannot be meant is refused before the stream begins

    async def look() -> Sequence[Piece]:
        _, rows = await _read(desk, visit, look_at=_LIVE_LOOKED_AT)
        part = desk.parts.pages.part
        base = base_of(visit)
        return [
            Piece(
                f"delivery-{row['id']}", part(PARTS, "delivery", visit, base, row), "deliveries", "start"
            )
            for row in reversed(rows)
        ]  # fmt: skip

    return desk.live(visit, look, rest_s=0.5)


def sought_from(visit: PageRequest) -> Sought:
    """The filter that the address names.

    Raises:
        NotMeant: a field of it is not what the form sends.
    """
    subscription, state = visit.query("subscription"), visit.query("state")
    if subscription and not (subscription.isascii() and subscription.isdecimal()):
        raise NotMeant("The subscription of the filter is no number.")
    if state and state not in STATES:
        raise NotMeant("The state of the filter is none that there is.")
    sought = Sought(
        subscription_id=int(subscription[:18]) if subscription else None,
        state=state or None,
        news=visit.query("news") or None,
        from_ms=typed_ms(visit.query("from"), "The time from which on"),
        to_ms=typed_ms(visit.query("to"), "The time before which"),
    )
    wanted = visit.query("q")
    if not wanted:
        return sought
    if _UUID.fullmatch(wanted):
        return replace(sought, message_id=wanted.lower())
    return replace(sought, recipient=recipient_in(wanted))


def recipient_in(text: str) -> str:
    """A phone number as it is stored, whichever way it was typed; another name as it is."""
    digits = re.sub(r"[\s()+.\-]", "", text)
    return digits if digits.isascii() and digits.isdecimal() else text


async def described(desk: PageTools, visit: PageRequest, found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Callbacks with what people want to know beside: whom they are about, to whom, and how it went."""
    whose = visit.partner.id, visit.app.id

    def look(connection: Connection) -> tuple[dict[int, str], dict[str, str], dict[str, list[Any]]]:
        names = whom_about(connection, *whose, {row["about"] for row in found})
        tries = tries_of(connection, [row["id"] for row in found])
        return tags_of(connection, *whose), names, tries

    tags, names, tries = await desk.parts.database.read(look)
    return [
        {
            **row,
            "state": state_of(row),
            "kind": STATE_KINDS[state_of(row)],
            "whom": names.get(row["about"], row["about"]),
            "tag": tags.get(row["subscription_id"], ""),
            "tries": sum(one.kind != AttemptKind.REPLAY for one in tries.get(row["id"], ())),
            "replays": sum(one.kind == AttemptKind.REPLAY for one in tries.get(row["id"], ())),
            "came": came_of(tries[row["id"]][-1]) if row["id"] in tries else "",
            "is_taken": row["id"] in tries and is_taken(tries[row["id"]][-1].status),
        }
        for row in found
    ]


def state_of(row: dict[str, Any]) -> str:
    """In one word what has become of a callback."""
    if row["ended_on_ms"] is None:
        return "waiting"
    return "delivered" if row["delivered"] else "given up"


def came_of(one: Any) -> str:
    """What a try came to, in a few words."""
    return f"{one.status or 'no answer'} in {duration(one.duration_ms)}"


async def _read(
    desk: PageTools, visit: PageRequest, *, before: Place | None = None, **limits: int
) -> tuple[Deliveries, list[dict[str, Any]]]:
    sought = sought_from(visit)

    def look(connection: Connection) -> Deliveries:
        return deliveries_of(
            connection, visit.partner.id, visit.app.id, sought,
            before=before, at_most=AT_MOST, **limits,
        )  # fmt: skip

    page = await desk.parts.database.read(look)
    return page, await described(desk, visit, page.rows)


def _given(values: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in values.items() if text}


def _written(place: Place) -> str:
    return f"{place.created_on_ms}~{place.sequence}~{place.subscription_id}~{place.about}"


def _place_of(text: str) -> Place | None:
    if not text:
        return None
    match text.split("~", 3):
        case [at, sequence, id, about] if all(
            one.isascii() and one.isdecimal() and len(one) < 18 for one in (at, sequence, id)
        ):
            return Place(int(at), about, int(sequence), int(id))
        case _:
            raise NotMeant("The address does not say where the page begins.", "Go to the newest.")
