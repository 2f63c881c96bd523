"""The status of a callback as what happened: the response, the next attempt, or why it waits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from sqlalchemy import Connection
from starlette.responses import RedirectResponse, Response

from waypost.console.callbacks.delivery_filters import (
    CALLBACK_ID,
    DELIVERY_TIMES,
    EVENT_SUGGESTIONS,
    QUICK_FILTERS,
    STATE_LABELS,
    DeliveryListFilter,
    read_delivery_filter,
)
from waypost.console.callbacks.lookup import callbacks_path
from waypost.console.callbacks.replays import MAX_SELECTED_CALLBACKS, count_failures
from waypost.console.page_tools import PageTools
from waypost.console.web.formatting import format_duration
from waypost.console.web.page_request import InvalidPageRequest, PageRequest
from waypost.console.web.streams import PageElement
from waypost.domain.callbacks import AttemptKind
from waypost.store.callbacks.deliveries import (
    DELIVERY_STATES,
    DeliveryCursor,
    DeliveryPage,
    OpenCallback,
    SubscriptionHealth,
    attempts_by_callback_ids,
    find_delivery,
    list_deliveries,
    open_callbacks_by_ids,
    subject_names,
    subscription_health_by_app,
)
from waypost.store.queue.job_subjects import JobState


@dataclass(frozen=True, slots=True)
class DeliveryStatus:
    """Status of a callback: the event, and the time that it names.

    Attributes:
        state: of the badge, in `web/formatting.py`.
        text: followed by the time, if there is one.
        at_ms: the time that the text is about.
        form: of the time on pages.
    """

    state: str
    text: str
    at_ms: int | None = None
    form: str = "relative"


def delivery_status(
    callback: Mapping[str, Any],
    responses: Sequence[int | None],
    job: OpenCallback | None,
    subscription: SubscriptionHealth | None,
    now_ms: int,
) -> DeliveryStatus:
    """Return the status of a callback.

    Args:
        callback: with `ended_on_ms` and `delivered`.
        responses: status of the response to each attempt that was no replay, oldest first; None: no response.
        job: None if it has ended.
        subscription: None if it is deleted.
        now_ms: by the service's clock.
    """
    if callback["ended_on_ms"] is not None:
        if callback["delivered"]:
            return DeliveryStatus("delivered", response_text(responses[-1]) if responses else "Delivered")
        return DeliveryStatus(
            "given up", f"Not delivered: {response_text(responses[-1])}" if responses else "Not delivered"
        )
    if subscription is None:
        return DeliveryStatus("deleted", "Subscription deleted")
    if not subscription.active:
        return DeliveryStatus("paused by you", "Paused by you")
    if subscription.paused_on_ms is not None:
        return DeliveryStatus("paused", "Paused by the service since", subscription.paused_on_ms, "moment")
    if job is not None and job.state >= JobState.DEAD_LETTER:
        return DeliveryStatus("dead letter", "Dead letter after internal errors")
    if responses:
        due_ms = max(job.due_ms if job else 0, subscription.next_attempt_ms or 0)
        text = f"Retrying: {responses[-1] or 'no response'}, next"
        return (
            DeliveryStatus("retrying", text, due_ms) if due_ms > now_ms else DeliveryStatus("retrying", f"{text} now")
        )
    if subscription.failing_since_ms is not None:
        text = f"Blocked: {subscription.last_status or 'no response'} since"
        return DeliveryStatus("blocked", text, subscription.failing_since_ms, "moment")
    return DeliveryStatus("waiting", "Queued")


def response_text(status: int | None) -> str:
    """Return the status of a response as HTTP writes it, `200 OK`."""
    if status is None:
        return "no response"
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:  # not a registered one
        return str(status)


DELIVERY_LIST_MACROS: Final = "callbacks/parts.html"
DELIVERIES_PER_PAGE: Final = 50
_LIVE_SCAN_LIMIT: Final = 500
"""Callbacks that a live stream scans for matches: new ones are among the newest."""


async def show_deliveries(tools: PageTools, page_request: PageRequest) -> Response:
    """Return one page of the list; redirect to the callback whose id is searched for."""
    read, scope = tools.services.database.read, (page_request.partner.id, page_request.app.id)
    search = page_request.query("q").lower()
    if CALLBACK_ID.fullmatch(search):
        row = await read(find_delivery, *scope, search)
        if row is not None:
            return RedirectResponse(f"{callbacks_path(page_request)}/deliveries/{search}", 303)
    before = _parse_cursor(page_request.query("before"))
    filters = read_delivery_filter(page_request, tools.services.clock.now_ms())
    page, rows = await _read(tools, page_request, filters, before=before)
    health = await read(subscription_health_by_app, *scope)
    next_page = ""
    if page.next is not None:
        given = {name: text for name, text in filters.values.items() if text}
        next_page = "?" + urlencode({**given, "before": _encode_cursor(page.next)})
    return await tools.page(
        page_request,
        "callbacks/deliveries.html",
        rows=rows,
        failing=_failing(health),
        subscriptions=[{"id": one.id, "tag": one.tag} for one in health.values()],
        filters=filters,
        values=filters.values,
        states=[(state, STATE_LABELS.get(state, state)) for state in DELIVERY_STATES],
        events=EVENT_SUGGESTIONS,
        times=[(value, label) for value, label, _ in DELIVERY_TIMES],
        quick=QUICK_FILTERS,
        failures=await count_failures(tools, page_request, filters) if before is None else 0,
        next_page=next_page,
        searched_to_ms=page.searched_to_ms,
        is_first=before is None,
        most=MAX_SELECTED_CALLBACKS,
        is_filtered=bool(filters.query),
        query=f"?{filters.query}" if filters.query else "",
    )


async def live_deliveries(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream new and changed rows of the first page."""
    now_ms = tools.services.clock.now_ms
    read_delivery_filter(page_request, now_ms())  # an invalid filter is an error before the stream begins

    async def render_pieces() -> Sequence[PageElement]:
        filters = read_delivery_filter(page_request, now_ms())
        _, rows = await _read(tools, page_request, filters, scan_limit=_LIVE_SCAN_LIMIT)
        part = tools.services.pages.render_macro
        base = callbacks_path(page_request)
        health = await tools.services.database.read(
            subscription_health_by_app, page_request.partner.id, page_request.app.id
        )
        return [
            PageElement(
                "outages", part(DELIVERY_LIST_MACROS, "outages", page_request, page_request, base, _failing(health))
            ),
            *(
                PageElement(
                    f"delivery-{row['id']}",
                    html=part(DELIVERY_LIST_MACROS, "delivery", page_request, base, row),
                    into="deliveries",
                    at="start",
                )
                for row in reversed(rows)
            ),
        ]

    return tools.live(page_request, render_pieces, rest_s=0.5)


async def describe_deliveries(
    tools: PageTools, page_request: PageRequest, rows: Sequence[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return callbacks with the recipient, the subscription's tag, the status and the attempts of each."""
    scope = page_request.partner.id, page_request.app.id
    ids = [row["id"] for row in rows]

    def read(
        connection: Connection,
    ) -> tuple[dict[int, SubscriptionHealth], dict[str, str], dict[str, list[Any]], dict[str, OpenCallback]]:
        names = subject_names(connection, *scope, {row["subject"] for row in rows})
        open_ids = [row["id"] for row in rows if row["ended_on_ms"] is None]
        return (
            subscription_health_by_app(connection, *scope), names,
            attempts_by_callback_ids(connection, ids), open_callbacks_by_ids(connection, open_ids),
        )  # fmt: skip

    health, names, attempts, jobs = await tools.services.database.read(read)
    now_ms = tools.services.clock.now_ms()
    described: list[dict[str, Any]] = []
    for row in rows:
        all_attempts, subscription = attempts.get(row["id"], []), health.get(row["subscription_id"])
        own = [attempt for attempt in all_attempts if attempt.kind != AttemptKind.REPLAY]
        responses = [attempt.status for attempt in own]
        described.append(
            {
                **row,
                "status": delivery_status(row, responses, jobs.get(row["id"]), subscription, now_ms),
                "recipient": names.get(row["subject"], row["subject"]),
                "tag": subscription.tag if subscription else "",
                "tries": len(own),
                "replays": len(all_attempts) - len(own),
                "duration": format_duration(all_attempts[-1].duration_ms) if all_attempts else "",
            }
        )
    return described


async def _read(
    tools: PageTools,
    page_request: PageRequest,
    filters: DeliveryListFilter,
    *,
    before: DeliveryCursor | None = None,
    **limits: int,
) -> tuple[DeliveryPage, list[dict[str, Any]]]:
    def read(connection: Connection) -> DeliveryPage:
        return list_deliveries(
            connection, page_request.partner.id, page_request.app.id, filters.search,
            before=before, at_most=DELIVERIES_PER_PAGE, **limits,
        )  # fmt: skip

    page = await tools.services.database.read(read)
    return page, await describe_deliveries(tools, page_request, page.rows)


def _failing(health: dict[int, SubscriptionHealth]) -> list[SubscriptionHealth]:
    """Return the subscriptions whose receivers fail and are called all the same: no one has paused them."""
    return [one for one in health.values() if one.failing_since_ms is not None and one.active and not one.paused_on_ms]


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
