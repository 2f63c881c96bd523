"""Replay of many callbacks: those selected in the list, or all that match, which are counted first."""

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from starlette.responses import Response

from waypost.client.api_client import ApiResponseError
from waypost.console.callbacks.lookup import callbacks_path, list_subscriptions, replay_callbacks, respond
from waypost.console.lists import MAX_SELECTED
from waypost.console.page_request import PageRequest
from waypost.console.web.errors import InvalidPageRequest
from waypost.console.web.formatting import format_chart_number
from waypost.console.web.forms import parse_number
from waypost.console.web.zones import MAX_TIME_MS, read_time_field
from waypost.store.callbacks.deliveries import DeliveryFilter

_STATUS_EVENTS: Final = ("enqueued", "sent", "delivered", "read", "failed", "deleted", "billing-event")
_REPLY_EVENTS: Final = ("text", "quick_reply", "button_reply", "list_reply", "reaction", "order", "nfm_reply")
_MEDIA_EVENTS: Final = ("image", "video", "audio", "file", "sticker", "location", "contact")
_ACCOUNT_EVENTS: Final = ("status-update", "quality-update", "category-update", "subscription-paused")
EVENT_SUGGESTIONS: Final = (*_STATUS_EVENTS, *_REPLY_EVENTS, *_MEDIA_EVENTS, *_ACCOUNT_EVENTS)
"""Suggestions for the event filter; any other text is accepted too."""
CALLBACK_ID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
MAX_REPLAYED: Final = 100_000
"""Callbacks in one replay; the admin API has the same limit."""
REPLAYED_HINT: Final = "Each keeps its id and sequence number, so a receiver that deduplicates by id ignores it."

REPLAY_CHOICES: Final = {  # value in the form: label, and `delivered` in the admin API
    "given_up": ("Not delivered: all retries failed", False),
    "delivered": ("Delivered", True),
    "both": ("Both", None),
}


async def show_replay(request: PageRequest) -> Response:
    """Return the form and, for a selection in the query, its count."""
    subscriptions = await list_subscriptions(request)
    query = {name: request.query(name) for name in request.http.query_params}
    counted: dict[str, Any] | None = None
    if "which" in query:
        conditions = _read_conditions(request, query, subscriptions)
        response = await replay_callbacks(request, **conditions, dry_run=True)
        counted = {**response, "from_ms": conditions.get("from_ms", ""), "to_ms": conditions["to_ms"]}
    chosen = {name: query.get(name, "") for name in ("subscription", "recipient", "event")}
    begin, end = (request.zone.field_value(_read_time_ms(request, query, name)) for name in ("from", "to"))
    return await request.page(
        "callbacks/replay.html",
        subscriptions=subscriptions, chosen={**chosen, "which": query.get("which") or "given_up"},
        choices=REPLAY_CHOICES, events=EVENT_SUGGESTIONS, counted=counted, most=MAX_REPLAYED,
        from_text=begin, to_text=end, root=callbacks_path(request),
    )  # fmt: skip


async def replay(request: PageRequest) -> Response:
    """Replay the selected callbacks."""
    form = {name: await request.field(name) for name in await request.form()}
    conditions = _read_conditions(request, form, await list_subscriptions(request))
    root = callbacks_path(request)
    try:
        count = (await replay_callbacks(request, **conditions))["replayed"]
    except ApiResponseError as error:
        return request.redirect(f"{root}/replay", error.message, kind="bad")
    if not count:
        return request.redirect(f"{root}/replay", "No callback matches, so nothing was replayed.", kind="warn")
    return request.redirect(f"{root}/deliveries", f"Replaying {_count_text(count)}.", hint=REPLAYED_HINT)


async def count_failures(request: PageRequest, search: DeliveryFilter) -> int:
    """Return how many callbacks a replay of the whole list would send; 0 if it is not of failures of a time range."""
    if search.state != "given up" or search.from_ms is None or search.message_id is not None:
        return 0
    names = ("subscription_id", "recipient", "event", "from_ms", "to_ms")
    conditions = {name: value for name in names if (value := getattr(search, name)) is not None}
    response = await replay_callbacks(request, delivered=False, dry_run=True, **conditions)
    return int(response["would_replay"])


async def replay_selected(request: PageRequest) -> Response:
    """Replay the callbacks that are checked in the list, of one page at most."""
    form = await request.form()
    ids = {id for id in form.getlist("id") if isinstance(id, str) and CALLBACK_ID.fullmatch(id)}  # noqa: A001
    if len(ids) > MAX_SELECTED:
        raise InvalidPageRequest(f"At most {MAX_SELECTED} callbacks can be selected.", "Replay a time range instead.")
    replayed = waiting = 0
    for callback_id in sorted(ids):
        try:
            response = await replay_callbacks(request, callback_id=callback_id)
        except ApiResponseError as error:
            if error.status != 404:
                raise
            continue  # deleted after its retention time, since the list was loaded
        replayed += response["replayed"]
        waiting += response["still_waiting"]
    page = f"{callbacks_path(request)}/deliveries"
    if not replayed:
        notice = "Select callbacks first." if not ids else "Nothing was replayed."
        hint = "They still wait for their first delivery, or they or their subscription are deleted." if ids else ""
        return respond(request, page, notice, hint=hint, kind="warn")
    hint = f"{waiting} more still wait for their first delivery." if waiting else ""
    return respond(request, page, f"Replaying {_count_text(replayed)}.", hint=hint)


def _count_text(count: int) -> str:
    return "1 callback" if count == 1 else f"{format_chart_number(count)} callbacks"


def _read_conditions(
    request: PageRequest, form: Mapping[str, str], subscriptions: Sequence[dict[str, Any]]
) -> dict[str, Any]:
    """Return the conditions of a replay as the admin API takes them.

    There always is an end time, so that exactly the counted callbacks are replayed.
    """
    conditions: dict[str, Any] = {}
    which = form.get("which", "").strip() or "given_up"
    if which not in REPLAY_CHOICES:
        raise InvalidPageRequest("Choose which callbacks to replay.")
    from_ms, to_ms = (_read_time_ms(request, form, name) for name in ("from", "to"))
    if subscription := form.get("subscription", "").strip():
        if subscription not in {str(each["id"]) for each in subscriptions}:
            raise InvalidPageRequest("This app has no such subscription.")
        conditions["subscription_id"] = int(subscription)
    if recipient := form.get("recipient", "").strip():
        conditions["recipient"] = normalize_recipient(recipient)
    if event := form.get("event", "").strip():
        conditions["event"] = event
    delivered = REPLAY_CHOICES[which][1]
    if delivered is not None:
        conditions["delivered"] = delivered
    if from_ms is not None:
        conditions["from_ms"] = max(from_ms, 0)
    return {**conditions, "to_ms": request.now_ms() + 1 if to_ms is None else max(to_ms, 0)}


def _read_time_ms(request: PageRequest, form: Mapping[str, str], name: str) -> int | None:
    """Return a time: exact, as a confirmation sends it, or a field of the form in the reader's zone."""
    exact_ms = parse_number(form.get(f"{name}_ms", ""), max_digits=15)
    if exact_ms is not None:
        return min(exact_ms, MAX_TIME_MS)
    is_end = name == "to"
    try:
        return read_time_field(form, name, request.zone, is_end=is_end)[0]
    except ValueError:
        raise InvalidPageRequest(
            f"The {'end' if is_end else 'start'} time is not a valid time.",
            "Use a time such as 2026-11-22T10:00, or leave it empty.",
        ) from None


def normalize_recipient(text: str) -> str:
    """Return a phone number as it is stored, without punctuation; any other text unchanged."""
    digits = re.sub(r"[\s()+.\-]", "", text)
    return digits if digits.isascii() and digits.isdecimal() else text
