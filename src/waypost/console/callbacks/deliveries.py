"""The list of callbacks of an app: live, with filters in the URL, one page at a time."""

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
NEWS: Final = (  # suggestions for the event filter; any other text is accepted too
    "enqueued", "sent", "delivered", "read", "failed", "deleted", "billed", "text", "button", "button_reply",
    "list_reply", "image", "video", "audio", "document", "sticker", "location", "contacts", "reaction", "order",
    "nfm_reply", "approved", "rejected", "paused", "disabled", "subscription-paused",
)  # fmt: skip
STATE_KINDS: Final = {"waiting": "info", "delivered": "good", "given up": "bad"}
STATE_LABELS: Final = {"given up": "not delivered"}
"""Labels that differ from the name of the state."""
_LIVE_LOOKED_AT: Final = 500
"""Callbacks that a live stream scans for matches: new ones are among the newest."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_FIELDS: Final = ("q", "subscription", "state", "event", "from", "to")


async def show_deliveries(desk: PageTools, visit: PageRequest) -> Response:
    """Return one page of the list; redirect to the callback whose id is searched for."""
    search = visit.query("q").lower()
    if _UUID.fullmatch(search):
        row = await desk.parts.database.read(delivery, visit.partner.id, visit.app.id, search)
        if row is not None:
            return RedirectResponse(f"{base_of(visit)}/deliveries/{search}", 303)
    before = _place_of(visit.query("before"))
    page, rows = await _read(desk, visit, before=before)
    tags = await desk.parts.database.read(tags_of, visit.partner.id, visit.app.id)
    values = {name: visit.query(name) for name in _FIELDS}
    query = urlencode({name: text for name, text in values.items() if text})
    next_page = ""
    if page.further is not None:
        next_page = "?" + urlencode({**_given(values), "before": _written(page.further)})
    return await desk.page(
        visit, "callbacks/deliveries.html",
        rows=rows, subscriptions=[{"id": each, "tag": tag} for each, tag in tags.items()], values=values,
        states=[(state, STATE_LABELS.get(state, state)) for state in STATES], events=NEWS, next_page=next_page, searched_to_ms=page.searched_to_ms, is_first=before is None,
        is_filtered=bool(query), query=f"?{query}" if query else "",
    )  # fmt: skip


async def live_deliveries(desk: PageTools, visit: PageRequest) -> Response:
    """Stream new and changed rows of the first page."""
    sought_from(visit)  # an invalid filter is an error before the stream begins

    async def render_pieces() -> Sequence[Piece]:
        _, rows = await _read(desk, visit, look_at=_LIVE_LOOKED_AT)
        part = desk.parts.pages.part
        base = base_of(visit)
        return [
            Piece(
                f"delivery-{row['id']}", part(PARTS, "delivery", visit, base, row), "deliveries", "start"
            )
            for row in reversed(rows)
        ]  # fmt: skip

    return desk.live(visit, render_pieces, rest_s=0.5)


def sought_from(visit: PageRequest) -> Sought:
    """Return the filter in the query of the URL.

    Raises:
        NotMeant: a field has a value that the form never sends.
    """
    subscription, state = visit.query("subscription"), visit.query("state")
    if subscription and not (subscription.isascii() and subscription.isdecimal()):
        raise NotMeant("The subscription in the filter must be a number.")
    if state and state not in STATES:
        raise NotMeant("The state in the filter is unknown.")
    query = Sought(
        subscription_id=int(subscription[:18]) if subscription else None,
        state=state or None,
        news=visit.query("event") or None,
        from_ms=typed_ms(visit.query("from"), "The start time"),
        to_ms=typed_ms(visit.query("to"), "The end time"),
    )
    search = visit.query("q")
    if not search:
        return query
    if _UUID.fullmatch(search):
        return replace(query, message_id=search.lower())
    return replace(query, recipient=recipient_in(search))


def recipient_in(text: str) -> str:
    """Return a phone number as it is stored, without punctuation; any other text unchanged."""
    digits = re.sub(r"[\s()+.\-]", "", text)
    return digits if digits.isascii() and digits.isdecimal() else text


async def described(desk: PageTools, visit: PageRequest, found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return callbacks with the recipient, the subscription's tag, the state and the attempts of each."""
    scope = visit.partner.id, visit.app.id

    def read(connection: Connection) -> tuple[dict[int, str], dict[str, str], dict[str, list[Any]]]:
        names = whom_about(connection, *scope, {row["about"] for row in found})
        attempts = tries_of(connection, [row["id"] for row in found])
        return tags_of(connection, *scope), names, attempts

    tags, names, attempts = await desk.parts.database.read(read)
    return [
        {
            **row,
            "state": state_of(row),
            "state_label": STATE_LABELS.get(state_of(row), state_of(row)),
            "kind": STATE_KINDS[state_of(row)],
            "recipient": names.get(row["about"], row["about"]),
            "tag": tags.get(row["subscription_id"], ""),
            "tries": sum(attempt.kind != AttemptKind.REPLAY for attempt in attempts.get(row["id"], ())),
            "replays": sum(attempt.kind == AttemptKind.REPLAY for attempt in attempts.get(row["id"], ())),
            "result": came_of(attempts[row["id"]][-1]) if row["id"] in attempts else "",
            "is_delivered": row["id"] in attempts and is_taken(attempts[row["id"]][-1].status),
        }
        for row in found
    ]


def state_of(row: dict[str, Any]) -> str:
    """Return the state of a callback: waiting, delivered or given up."""
    if row["ended_on_ms"] is None:
        return "waiting"
    return "delivered" if row["delivered"] else "given up"


def came_of(one: Any) -> str:
    """Return the result of an attempt in a few words."""
    return f"{one.status or 'no response'} in {duration(one.duration_ms)}"


async def _read(
    desk: PageTools, visit: PageRequest, *, before: Place | None = None, **limits: int
) -> tuple[Deliveries, list[dict[str, Any]]]:
    query = sought_from(visit)

    def read(connection: Connection) -> Deliveries:
        return deliveries_of(
            connection, visit.partner.id, visit.app.id, query,
            before=before, at_most=AT_MOST, **limits,
        )  # fmt: skip

    page = await desk.parts.database.read(read)
    return page, await described(desk, visit, page.rows)


def _given(values: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in values.items() if text}


def _written(place: Place) -> str:
    return f"{place.created_on_ms}~{place.sequence}~{place.subscription_id}~{place.about}"


def _place_of(text: str) -> Place | None:
    if not text:
        return None
    match text.split("~", 3):
        case [created_on_ms, sequence, id, about] if all(
            number.isascii() and number.isdecimal() and len(number) < 18 for number in (created_on_ms, sequence, id)
        ):
            return Place(int(created_on_ms), about, int(sequence), int(id))
        case _:
            raise NotMeant("The page cursor in the URL is invalid.", "Go to the newest page.")
