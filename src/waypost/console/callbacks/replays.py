"""Replay of many callbacks: those selected in the list, or all that match, which are counted first."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.callbacks.lookup import callbacks_path, list_subscriptions, respond
from waypost.console.lists import MAX_SELECTED
from waypost.console.page_tools import PageTools
from waypost.console.web.formatting import format_chart_number
from waypost.console.web.page_request import InvalidPageRequest, PageRequest
from waypost.console.web.zones import MAX_TIME_MS, read_time_field
from waypost.store.callbacks.deliveries import DeliveryFilter

EVENT_SUGGESTIONS: Final = (  # suggestions for the event filter; any other text is accepted too
    "enqueued",
    "sent",
    "delivered",
    "read",
    "failed",
    "deleted",
    "billing-event",
    "text",
    "quick_reply",
    "button_reply",
    "list_reply",
    "image",
    "video",
    "audio",
    "file",
    "sticker",
    "location",
    "contact",
    "reaction",
    "order",
    "nfm_reply",
    "status-update",
    "quality-update",
    "category-update",
    "subscription-paused",
)
CALLBACK_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
MAX_REPLAYED: Final = 100_000
"""Callbacks in one replay; the admin API has the same limit."""

# fmt: off
REPLAY_CHOICES: Final = (  # value in the form, label, `delivered` in the admin API
    ("given_up",  "Not delivered: all retries failed", False),
    ("delivered", "Delivered",                         True),
    ("both",      "Both",                              None),
)
# fmt: on


@dataclass(frozen=True, slots=True)
class _ReplayForm:
    subscription: str
    recipient: str
    event: str
    which: str
    from_ms: int | None
    to_ms: int | None


async def show_replay(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the form and, for a selection in the query, its count."""
    subscriptions = await list_subscriptions(tools, page_request)
    query = page_request.request.query_params
    chosen = _parse_form(page_request, {name: page_request.query(name) for name in query})
    counted: dict[str, Any] | None = None
    if "which" in query:
        body = _replay_body(page_request, chosen, subscriptions, tools.services.clock.now_ms())
        response = await tools.services.apis.admin.json("POST", "/admin/callbacks/replay", {**body, "dry_run": True})
        counted = {**response, "from_ms": body.get("from_ms", ""), "to_ms": body["to_ms"]}
    return await tools.page(
        page_request,
        "callbacks/replay.html",
        subscriptions=subscriptions,
        chosen=chosen,
        which=REPLAY_CHOICES,
        events=EVENT_SUGGESTIONS,
        counted=counted,
        most=MAX_REPLAYED,
        from_text=page_request.zone.field_value(chosen.from_ms),
        to_text=page_request.zone.field_value(chosen.to_ms),
        root=callbacks_path(page_request),
    )


async def replay(tools: PageTools, page_request: PageRequest) -> Response:
    """Replay the selected callbacks."""
    form = await page_request.form()
    chosen = _parse_form(page_request, {name: await page_request.field(name) for name in form})
    subscriptions = await list_subscriptions(tools, page_request)
    body = _replay_body(page_request, chosen, subscriptions, tools.services.clock.now_ms())
    try:
        response = await tools.services.apis.admin.json("POST", "/admin/callbacks/replay", body)
    except ApiResponseError as error:
        return tools.redirect(f"{callbacks_path(page_request)}/replay", error.message, kind="bad")
    count = response["replayed"]
    if not count:
        return tools.redirect(
            f"{callbacks_path(page_request)}/replay", "No callback matches, so nothing was replayed.", kind="warn"
        )
    return tools.redirect(
        f"{callbacks_path(page_request)}/deliveries",
        f"Replaying {_count_text(count)}.",
        hint="Each keeps its id and sequence number, so a receiver that deduplicates by id ignores it.",
    )


async def count_failures(tools: PageTools, page_request: PageRequest, search: DeliveryFilter) -> int:
    """Return how many callbacks a replay of the whole list would send; 0 if it is not of failures of a time range."""
    if search.state != "given up" or search.from_ms is None or search.message_id is not None:
        return 0
    conditions = {
        "subscription_id": search.subscription_id, "recipient": search.recipient, "event": search.event,
        "from_ms": search.from_ms, "to_ms": search.to_ms,
    }  # fmt: skip
    body = {
        "partner_id": page_request.partner.id, "app_id": page_request.app.id, "delivered": False, "dry_run": True,
        **{name: value for name, value in conditions.items() if value is not None},
    }  # fmt: skip
    response = await tools.services.apis.admin.json("POST", "/admin/callbacks/replay", body)
    return int(response["would_replay"])


async def replay_selected(tools: PageTools, page_request: PageRequest) -> Response:
    """Replay the callbacks that are checked in the list.

    Raises:
        InvalidPageRequest: there are more than a page has.
    """
    form = await page_request.form()
    ids = {id for id in form.getlist("id") if isinstance(id, str) and CALLBACK_ID.fullmatch(id)}  # noqa: A001
    if len(ids) > MAX_SELECTED:
        raise InvalidPageRequest(f"At most {MAX_SELECTED} callbacks can be selected.", "Replay a time range instead.")
    replayed = waiting = 0
    for callback_id in sorted(ids):
        body = {"callback_id": callback_id, "partner_id": page_request.partner.id, "app_id": page_request.app.id}
        try:
            response = await tools.services.apis.admin.json("POST", "/admin/callbacks/replay", body)
        except ApiResponseError as error:
            if error.status != 404:
                raise
            continue  # deleted after its retention time, since the list was loaded
        replayed += response["replayed"]
        waiting += response["still_waiting"]
    page = f"{callbacks_path(page_request)}/deliveries"
    if not replayed:
        notice = "Select callbacks first." if not ids else "Nothing was replayed."
        hint = "They still wait for their first delivery, or they or their subscription are deleted." if ids else ""
        return respond(tools, page_request, page, notice, hint=hint, kind="warn")
    hint = f"{waiting} more still wait for their first delivery." if waiting else ""
    return respond(tools, page_request, page, f"Replaying {_count_text(replayed)}.", hint=hint)


def _count_text(count: int) -> str:
    return "1 callback" if count == 1 else f"{format_chart_number(count)} callbacks"


def _parse_form(page_request: PageRequest, form: dict[str, str]) -> _ReplayForm:
    which = form.get("which") or "given_up"
    if which not in {name for name, _, _ in REPLAY_CHOICES}:
        raise InvalidPageRequest("Choose which callbacks to replay.")
    return _ReplayForm(
        subscription=form.get("subscription", ""),
        recipient=form.get("recipient", "").strip(),
        event=form.get("event", "").strip(),
        which=which,
        from_ms=_read_time_ms(page_request, form, "from"),
        to_ms=_read_time_ms(page_request, form, "to"),
    )


def _read_time_ms(page_request: PageRequest, form: dict[str, str], name: str) -> int | None:
    """Return a time: exact, as a confirmation sends it, or a field of the form."""
    exact = form.get(f"{name}_ms", "")
    if exact.isascii() and exact.isdecimal() and len(exact) < 16:
        return min(int(exact), MAX_TIME_MS)
    return read_callback_time(page_request, form, name)[0]


def _replay_body(
    page_request: PageRequest, chosen: _ReplayForm, subscriptions: list[dict[str, Any]], now_ms: int
) -> dict[str, Any]:
    """Return the body of the admin API's call, limited to the partner and this app.

    It always has an end time, so that exactly the counted callbacks are replayed.
    """
    body: dict[str, Any] = {"partner_id": page_request.partner.id, "app_id": page_request.app.id}
    if chosen.subscription:
        if chosen.subscription not in {str(subscription["id"]) for subscription in subscriptions}:
            raise InvalidPageRequest("This app has no such subscription.")
        body["subscription_id"] = int(chosen.subscription)
    if chosen.recipient:
        body["recipient"] = normalize_recipient(chosen.recipient)
    if chosen.event:
        body["event"] = chosen.event
    delivered = {name: value for name, _, value in REPLAY_CHOICES}[chosen.which]
    if delivered is not None:
        body["delivered"] = delivered
    if chosen.from_ms is not None:
        body["from_ms"] = max(chosen.from_ms, 0)
    return {**body, "to_ms": now_ms + 1 if chosen.to_ms is None else max(chosen.to_ms, 0)}


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
