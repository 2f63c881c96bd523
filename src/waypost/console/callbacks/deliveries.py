"""The list of callbacks of an app: live, with filters in the URL, one page at a time."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final
from urllib.parse import urlencode

from sqlalchemy import Connection
from starlette.responses import RedirectResponse, Response

from waypost.console.callbacks.lookup import callbacks_path
from waypost.console.callbacks.subscriptions import is_delivered_status
from waypost.console.page_tools import PageTools
from waypost.console.web.errors import InvalidPageRequest
from waypost.console.web.formatting import format_duration
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import PageElement
from waypost.console.web.zones import ZONE_FIELD, read_time_field
from waypost.domain.callbacks.callback import AttemptKind
from waypost.store.callbacks.deliveries import (
    DELIVERY_STATES,
    DeliveryCursor,
    DeliveryFilter,
    DeliveryPage,
    attempts_by_callback_ids,
    find_delivery,
    list_deliveries,
    subject_names,
    tags_by_app,
)

DELIVERY_LIST_MACROS: Final = "callbacks/parts.html"
DELIVERIES_PER_PAGE: Final = 50
EVENT_SUGGESTIONS: Final = (  # suggestions for the event filter; any other text is accepted too
    "enqueued", "sent", "delivered", "read", "failed", "deleted", "billed", "text", "button", "button_reply",
    "list_reply", "image", "video", "audio", "document", "sticker", "location", "contacts", "reaction", "order",
    "nfm_reply", "approved", "rejected", "paused", "disabled", "subscription-paused",
)  # fmt: skip
STATE_KINDS: Final = {"waiting": "info", "delivered": "good", "given up": "bad"}
STATE_LABELS: Final = {"given up": "not delivered"}
"""Labels that differ from the name of the state."""
_LIVE_SCAN_LIMIT: Final = 500
"""Callbacks that a live stream scans for matches: new ones are among the newest."""
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_FILTER_FIELDS: Final = ("q", "subscription", "state", "event", "from", "to")


async def show_deliveries(tools: PageTools, page_request: PageRequest) -> Response:
    """Return one page of the list; redirect to the callback whose id is searched for."""
    search = page_request.query("q").lower()
    if _UUID.fullmatch(search):
        row = await tools.services.database.read(find_delivery, page_request.partner.id, page_request.app.id, search)
        if row is not None:
            return RedirectResponse(f"{callbacks_path(page_request)}/deliveries/{search}", 303)
    before = _parse_cursor(page_request.query("before"))
    page, rows = await _read(tools, page_request, before=before)
    tags = await tools.services.database.read(tags_by_app, page_request.partner.id, page_request.app.id)
    values = _field_values(page_request)
    query = urlencode({name: text for name, text in values.items() if text})
    next_page = ""
    if page.next is not None:
        next_page = "?" + urlencode({**_drop_empty(values), "before": _encode_cursor(page.next)})
    return await tools.page(
        page_request, "callbacks/deliveries.html",
        rows=rows, subscriptions=[{"id": each, "tag": tag} for each, tag in tags.items()], values=values,
        states=[(state, STATE_LABELS.get(state, state)) for state in DELIVERY_STATES], events=EVENT_SUGGESTIONS, next_page=next_page, searched_to_ms=page.searched_to_ms, is_first=before is None,
        is_filtered=bool(query), query=f"?{query}" if query else "",
    )  # fmt: skip


async def live_deliveries(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream new and changed rows of the first page."""
    parse_filter(page_request)  # an invalid filter is an error before the stream begins

    async def render_pieces() -> Sequence[PageElement]:
        _, rows = await _read(tools, page_request, scan_limit=_LIVE_SCAN_LIMIT)
        part = tools.services.pages.render_macro
        base = callbacks_path(page_request)
        return [
            PageElement(
                f"delivery-{row['id']}", part(DELIVERY_LIST_MACROS, "delivery", page_request, base, row), "deliveries", "start"
            )
            for row in reversed(rows)
        ]  # fmt: skip

    return tools.live(page_request, render_pieces, rest_s=0.5)


def parse_filter(page_request: PageRequest) -> DeliveryFilter:
    """Return the filter in the query of the URL.

    Raises:
        InvalidPageRequest: a field has a value that the form never sends.
    """
    subscription, state = page_request.query("subscription"), page_request.query("state")
    if subscription and not (subscription.isascii() and subscription.isdecimal()):
        raise InvalidPageRequest("The subscription in the filter must be a number.")
    if state and state not in DELIVERY_STATES:
        raise InvalidPageRequest("The state in the filter is unknown.")
    query = DeliveryFilter(
        subscription_id=int(subscription[:18]) if subscription else None,
        state=state or None,
        event=page_request.query("event") or None,
        from_ms=read_callback_time(page_request, page_request.request.query_params, "from")[0],
        to_ms=read_callback_time(page_request, page_request.request.query_params, "to")[0],
    )
    search = page_request.query("q")
    if not search:
        return query
    if _UUID.fullmatch(search):
        return replace(query, message_id=search.lower())
    return replace(query, recipient=normalize_recipient(search))


def read_callback_time(page_request: PageRequest, fields: Mapping[str, str], name: str) -> tuple[int | None, str]:
    """Return the field `from` or `to`, and its value in the reader's zone.

    Raises:
        InvalidPageRequest: the text is not a time.
    """
    is_end = name == "to"
    try:
        return read_time_field(fields, name, page_request.zone, is_end=is_end)
    except ValueError:
        raise InvalidPageRequest(
            f"The {'end' if is_end else 'start'} time is not a valid time.",
            "Use a time such as 2026-11-22T10:00, or leave it empty.",
        ) from None


def normalize_recipient(text: str) -> str:
    """Return a phone number as it is stored, without punctuation; any other text unchanged."""
    digits = re.sub(r"[\s()+.\-]", "", text)
    return digits if digits.isascii() and digits.isdecimal() else text


async def describe_deliveries(
    tools: PageTools, page_request: PageRequest, rows: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return callbacks with the recipient, the subscription's tag, the state and the attempts of each."""
    scope = page_request.partner.id, page_request.app.id

    def read(connection: Connection) -> tuple[dict[int, str], dict[str, str], dict[str, list[Any]]]:
        names = subject_names(connection, *scope, {row["subject"] for row in rows})
        attempts = attempts_by_callback_ids(connection, [row["id"] for row in rows])
        return tags_by_app(connection, *scope), names, attempts

    tags, names, attempts = await tools.services.database.read(read)
    return [
        {
            **row,
            "state": delivery_state(row),
            "state_label": STATE_LABELS.get(delivery_state(row), delivery_state(row)),
            "kind": STATE_KINDS[delivery_state(row)],
            "recipient": names.get(row["subject"], row["subject"]),
            "tag": tags.get(row["subscription_id"], ""),
            "tries": sum(attempt.kind != AttemptKind.REPLAY for attempt in attempts.get(row["id"], ())),
            "replays": sum(attempt.kind == AttemptKind.REPLAY for attempt in attempts.get(row["id"], ())),
            "result": summarize_attempt(attempts[row["id"]][-1]) if row["id"] in attempts else "",
            "is_delivered": row["id"] in attempts and is_delivered_status(attempts[row["id"]][-1].status),
        }
        for row in rows
    ]


def delivery_state(row: dict[str, Any]) -> str:
    """Return the state of a callback: waiting, delivered or given up."""
    if row["ended_on_ms"] is None:
        return "waiting"
    return "delivered" if row["delivered"] else "given up"


def summarize_attempt(attempt: Any) -> str:
    """Return the result of an attempt in a few words."""
    return f"{attempt.status or 'no response'} in {format_duration(attempt.duration_ms)}"


async def _read(
    tools: PageTools, page_request: PageRequest, *, before: DeliveryCursor | None = None, **limits: int
) -> tuple[DeliveryPage, list[dict[str, Any]]]:
    query = parse_filter(page_request)

    def read(connection: Connection) -> DeliveryPage:
        return list_deliveries(
            connection, page_request.partner.id, page_request.app.id, query,
            before=before, at_most=DELIVERIES_PER_PAGE, **limits,
        )  # fmt: skip

    page = await tools.services.database.read(read)
    return page, await describe_deliveries(tools, page_request, page.rows)


def _field_values(page_request: PageRequest) -> dict[str, str]:
    """Return the values of the filter's fields, with times in the reader's zone."""
    values = {name: page_request.query(name) for name in _FILTER_FIELDS}
    for name in ("from", "to"):
        values[name] = read_callback_time(page_request, page_request.request.query_params, name)[1]
    return {**values, ZONE_FIELD: page_request.zone.name if values["from"] or values["to"] else ""}


def _drop_empty(values: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in values.items() if text}


def _encode_cursor(cursor: DeliveryCursor) -> str:
    return f"{cursor.created_on_ms}~{cursor.sequence}~{cursor.subscription_id}~{cursor.subject}"


def _parse_cursor(text: str) -> DeliveryCursor | None:
    if not text:
        return None
    match text.split("~", 3):
        case [created_on_ms, sequence, id, about] if all(
            number.isascii() and number.isdecimal() and len(number) < 18 for number in (created_on_ms, sequence, id)
        ):
            return DeliveryCursor(int(created_on_ms), about, int(sequence), int(id))
        case _:
            raise InvalidPageRequest("The page cursor in the URL is invalid.", "Go to the newest page.")
