"""The list of callbacks of an app, and the page of one: body, attempts, signature; and its replay."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlencode

from sqlalchemy import Connection
from starlette.responses import Response

from waypost.base.encryption import SecretBox, secrets_equal
from waypost.console.callbacks.lookup import callbacks_path, replay_callbacks, respond
from waypost.console.callbacks.replays import CALLBACK_ID, EVENT_SUGGESTIONS, count_failures, normalize_recipient
from waypost.console.list_filters import FilterContext, FilterField, FilterForm, ListFilter, Members, one_of
from waypost.console.lists import ListPage, ListQuery, ListRows, members
from waypost.console.page_request import PageRequest
from waypost.console.web.errors import NotFound
from waypost.console.web.formatting import format_duration
from waypost.console.web.forms import parse_number
from waypost.console.web.streams import PageElement, elements_response
from waypost.console.web.zones import iso_time
from waypost.domain.callbacks import AttemptKind, Subscription
from waypost.store.callbacks.deliveries import (
    DELIVERY_STATES,
    MAX_SCANNED_CALLBACKS,
    DeliveryCursor,
    DeliveryFilter,
    OpenCallback,
    SubscriptionHealth,
    attempts_by_callback_ids,
    find_delivery,
    find_delivery_jobs,
    list_deliveries,
    open_callbacks_by_ids,
    subject_names,
    subscription_health_by_app,
)
from waypost.store.callbacks.receivers import receiver_failure
from waypost.store.callbacks.subscriptions import subscription_of_partner
from waypost.store.queue.job_subjects import JobState
from waypost.wire.callbacks.signatures import signature_headers
from waypost.wire.redaction import redact_callback

QUICK_FILTERS: Final = (  # label, state, time
    ("All", "", ""),
    ("Waiting", "waiting", ""),
    ("Not delivered", "given up", ""),
    ("Not delivered today", "given up", "today"),
    ("Not delivered yesterday", "given up", "yesterday"),
)
_STATES: Final = (
    ("", "Any state"),
    *((state, "not delivered" if state == "given up" else state) for state in DELIVERY_STATES),
)


_EVENTS: Final = tuple((event, event) for event in EVENT_SUGGESTIONS)


@dataclass(frozen=True, slots=True)
class DeliveryStatus:
    """Status of a callback: the state of its badge, and a text that is followed by a time, if there is one."""

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
        response = response_text(responses[-1]) if responses else ""
        if callback["delivered"]:
            return DeliveryStatus("delivered", response or "Delivered")
        return DeliveryStatus("given up", f"Not delivered: {response}" if response else "Not delivered")
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
        is_due = due_ms <= now_ms
        return DeliveryStatus("retrying", f"{text} now") if is_due else DeliveryStatus("retrying", text, due_ms)
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


async def describe_deliveries(request: PageRequest, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return callbacks with the recipient, the subscription's tag, the status and the attempts of each."""
    scope = request.partner.id, request.app.id
    ids, now_ms = [row["id"] for row in rows], request.now_ms()

    def read(connection: Connection) -> list[dict[str, Any]]:
        names = subject_names(connection, *scope, {row["subject"] for row in rows})
        health = subscription_health_by_app(connection, *scope)
        attempts = attempts_by_callback_ids(connection, ids)
        jobs = open_callbacks_by_ids(connection, [row["id"] for row in rows if row["ended_on_ms"] is None])
        described: list[dict[str, Any]] = []
        for row in rows:
            all_attempts, subscription = attempts.get(row["id"], []), health.get(row["subscription_id"])
            own = [attempt.status for attempt in all_attempts if attempt.kind != AttemptKind.REPLAY]
            described.append(
                {
                    **row,
                    "status": delivery_status(row, own, jobs.get(row["id"]), subscription, now_ms),
                    "recipient": names.get(row["subject"], row["subject"]),
                    "tag": subscription.tag if subscription else "",
                    "tries": len(own),
                    "replays": len(all_attempts) - len(own),
                    "duration": format_duration(all_attempts[-1].duration_ms) if all_attempts else "",
                }
            )
        return described

    return await request.read(read)


def _parse_search(text: str, _context: FilterContext) -> Members:
    if CALLBACK_ID.fullmatch(text):
        return {"message_id": text.lower()}
    return {"recipient": normalize_recipient(text)}


def _parse_subscription(text: str, _context: FilterContext) -> Members:
    subscription_id = parse_number(text)
    if subscription_id is None:
        raise ValueError("Unknown subscription. Accepted: the number of one of this app.")
    return {"subscription_id": subscription_id}


async def _read(request: PageRequest, filters: ListFilter, query: ListQuery) -> ListRows:
    read: Any = partial(
        list_deliveries, before=_parse_cursor(query.before), at_most=query.at_most,
        scan_limit=query.scan_limit or MAX_SCANNED_CALLBACKS,
    )  # fmt: skip
    page = await request.read_own(read, filters.search)
    older = "" if page.next is None else _encode_cursor(page.next)
    return ListRows(await describe_deliveries(request, page.rows), older, page.searched_to_ms)


async def _find(request: PageRequest, ids: Sequence[str]) -> Sequence[dict[str, Any]]:
    def find(connection: Connection) -> list[dict[str, Any]]:
        scope = request.partner.id, request.app.id
        rows = (find_delivery(connection, *scope, callback_id) for callback_id in ids)
        return sorted((row for row in rows if row is not None), key=lambda row: row["created_on_ms"], reverse=True)

    return await describe_deliveries(request, await request.read(find))


async def _values(request: PageRequest, filters: ListFilter) -> Mapping[str, Any]:
    health = await _read_health(request)
    is_first = not filters.before and not filters.wrong
    subscriptions = [("", "All subscriptions"), *((str(one.id), one.tag) for one in health.values())]
    return {
        "options": {"subscription": subscriptions},
        "has_subscriptions": bool(health),
        "failing": _failing(health),
        "quick": [
            (label, urlencode({"subscription": filters.given["subscription"], "state": state, "time": time}),
             (filters.given["state"], filters.given["time"]) == (state, time))
            for label, state, time in QUICK_FILTERS
        ],
        "failures": await count_failures(request, filters.search) if is_first else 0,
    }  # fmt: skip


async def _page_of_one(request: PageRequest, filters: ListFilter, _found: ListRows) -> str:
    callback_id = filters.given["q"].lower()
    if not CALLBACK_ID.fullmatch(callback_id):
        return ""
    row = await request.read_own(find_delivery, callback_id)
    return "" if row is None else f"{callbacks_path(request)}/deliveries/{callback_id}"


async def _outages(request: PageRequest) -> Sequence[PageElement]:
    failing = _failing(await _read_health(request))
    base = callbacks_path(request)
    html = request.macro("callbacks/parts.html", "outages", request, base, failing)
    return [PageElement("outages", html)]


async def _read_health(request: PageRequest) -> dict[int, SubscriptionHealth]:
    return await request.read_own(subscription_health_by_app)


def _failing(health: dict[int, SubscriptionHealth]) -> list[SubscriptionHealth]:
    """Return the subscriptions whose receivers fail and are called all the same: no one has paused them."""
    return [one for one in health.values() if one.failing_since_ms is not None and one.active and not one.paused_on_ms]


def _encode_cursor(cursor: DeliveryCursor) -> str:
    return f"{cursor.created_on_ms}~{cursor.sequence}~{cursor.subscription_id}~{cursor.subject}"


def _parse_cursor(text: str) -> DeliveryCursor | None:
    *numbers, about = text.split("~", 3)
    match [parse_number(number, max_digits=17) for number in numbers]:
        case [int(created_on_ms), int(sequence), int(subscription_id)]:
            return DeliveryCursor(created_on_ms, about, sequence, subscription_id)
        case _:
            return None


DELIVERIES: Final = ListPage(
    name="deliveries",
    path="/apps/{app_id}/callbacks/deliveries",
    title="Deliveries",
    noun="callbacks",
    macros="callbacks/delivery_list.html",
    sheets=("callbacks",),
    columns=("Status", "Event", "Recipient", "Subscription", "Attempts", "Created"),
    form=FilterForm(
        (
            FilterField(
                "q", "Search", _parse_search, kind="search", placeholder="Phone number, message ID or callback ID"
            ),
            FilterField("subscription", "Subscription", _parse_subscription, kind="select"),
            FilterField("state", "State", one_of("state", _STATES, "state"), kind="select", options=_STATES),
            FilterField("event", "Event", "event", kind="suggestions", options=_EVENTS, placeholder="Any event"),
        ),
        DeliveryFilter,
        {"from": "from_ms", "to": "to_ms"},
    ),
    read=_read,
    find=_find,
    element_id=lambda row: f"delivery-{row['id']}",
    cursor=lambda row: _encode_cursor(
        DeliveryCursor(row["created_on_ms"], row["subject"], row["sequence"], row["subscription_id"])
    ),
    export={
        **members("id", "subscription_id", "tag", "event", "recipient", "sequence", "message_id", "tries", "replays"),
        "status": lambda row: row["status"].text,
        "created": lambda row: iso_time(row["created_on_ms"]),
        "ended": lambda row: iso_time(row["ended_on_ms"]),
    },
    values=_values,
    page_of_one=_page_of_one,
    beside=_outages,
    keeps=lambda filters: filters.given["state"] != "waiting",
)


_MAX_OLD_KEYS: Final = 5
"""Number of earlier keys that a signature is compared with."""


def explain_signature(
    secret_box: SecretBox,
    subscription: Subscription | None,
    body: bytes,
    request_headers: Mapping[str, str],
    now_ms: int,
) -> dict[str, Any] | None:
    """Return what the page explains about the signature of an attempt; None if it carried none.

    Args:
        subscription: None if it is deleted.
        body: the exact bytes.
    """
    headers = {name.lower(): text for name, text in request_headers.items()}
    callback_id, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    signatures = headers.get("webhook-signature", "").split()
    if not (callback_id and stamp.isdecimal() and signatures):
        return None
    return {
        "id": callback_id,
        "timestamp": int(stamp),
        "signed": f"{callback_id}.{stamp}." + body.decode("utf-8", "replace"),
        "signatures": [
            {
                "text": text,
                "made_with": _describe_key(secret_box, subscription, callback_id, int(stamp), body, text, now_ms),
            }
            for text in signatures
        ],
    }


def _describe_key(
    secret_box: SecretBox,
    subscription: Subscription | None,
    id: str,
    at_s: int,
    body: bytes,
    signature: str,
    now_ms: int,
) -> str:
    if subscription is None:
        return "a key of a deleted subscription"
    for serial in range(subscription.key_serial, max(subscription.key_serial - _MAX_OLD_KEYS, 0), -1):
        keys = secret_box.callback_keys(subscription.id, serial)
        signed = (signature_headers(id, at_s, body, [key])["webhook-signature"] for key in keys)
        found = [secrets_equal(expected, signature) for expected in signed]
        if any(found[1:]):
            return "the key from before the secret_key was replaced, still valid"
        if found[0]:
            if serial == subscription.key_serial:
                return "the current key"
            is_valid = serial in subscription.serials(now_ms)
            return "the previous key, still valid" if is_valid else "an old key, no longer valid"
    return "an unknown, older key"


DELIVERY_MACROS: Final = "callbacks/delivery_parts.html"


async def show_delivery(request: PageRequest) -> Response:
    """Return the page."""
    return await request.page("callbacks/delivery.html", **await _read_delivery(request))


async def live_delivery(request: PageRequest) -> Response:
    """Stream what changes on it."""
    await _get_callback(request)

    async def render_pieces() -> Sequence[PageElement]:
        now = await _read_delivery(request)
        callback = now["callback"]
        facts = request.macro(DELIVERY_MACROS, "facts", request, callback, now["root"])
        return [
            PageElement("delivery-state", request.macro(DELIVERY_MACROS, "state", callback)),
            PageElement("delivery-facts", facts),
            PageElement("delivery-tries", request.macro(DELIVERY_MACROS, "tries", callback)),
        ]

    return request.live(render_pieces, rest_s=0.5)


async def download_body(request: PageRequest) -> Response:
    """Return the exact bytes as a file to download; one-time codes are masked."""
    row = await _get_callback(request)
    headers = {"Content-Disposition": f'attachment; filename="callback-{row["id"]}.json"'}
    body = redact_callback(row, text=True)["body"].encode()
    return Response(body, headers=headers, media_type="application/octet-stream")


async def reveal_body(request: PageRequest) -> Response:
    """Return the body with message texts; one-time codes stay masked."""
    now = await _read_delivery(request, text=True)
    body = request.macro(DELIVERY_MACROS, "body", request, now["callback"], now["root"])
    return elements_response([PageElement("delivery-body", body)])


async def replay(request: PageRequest) -> Response:
    """Replay it, unless it still waits for its first delivery."""
    callback_id = (await _get_callback(request))["id"]
    response = await replay_callbacks(request, callback_id=callback_id)
    page = f"{callbacks_path(request)}/deliveries/{callback_id}"
    if response["replayed"]:
        return respond(request, page, "Replay queued: same bytes, id and sequence number.")
    if response["still_waiting"]:
        notice = "Not replayed: it still waits for its first delivery."
        hint = "It is sent as soon as its receiver accepts callbacks."
    else:
        notice, hint = "Not replayed: its subscription is deleted.", "You can save the body from this page."
    return respond(request, page, notice, hint=hint, kind="warn")


async def _get_callback(request: PageRequest) -> dict[str, Any]:
    row = await request.read_own(find_delivery, str(request.path_params["callback_id"]))
    if row is None:
        raise NotFound("This app has no such callback.")
    return row


async def _read_delivery(request: PageRequest, *, text: bool = False) -> dict[str, Any]:
    row = await _get_callback(request)
    services = request.services

    def read(connection: Connection) -> tuple[Subscription | None, list[Any], dict[str, int | None]]:
        subscription = subscription_of_partner(
            connection, request.partner.id, row["subscription_id"], services.directory.unseal
        )
        jobs = find_delivery_jobs(connection, row["subscription_id"], row["id"])
        return subscription, jobs, receiver_failure(connection, row["subscription_id"])

    subscription, jobs, failure = await request.read(read)
    shown = redact_callback(row, text=text or services.show_text)
    [callback] = await describe_deliveries(request, [shown])
    body = row["body"].encode()
    last = next((attempt for attempt in reversed(row["attempts"]) if attempt["request_headers"]), None)
    signing = None
    if last is not None:
        signing = explain_signature(services.secret_box, subscription, body, last["request_headers"], request.now_ms())
    live = next((job for job in jobs if not job.replay), None)
    wait = None
    if live is not None:
        show = "GET /admin/callbacks/{callback_id}"
        wait = (await request.services.apis.admin.call(show, callback_id=row["id"]))["wait"]
    return {
        "root": callbacks_path(request),
        "subscription": subscription,
        "signing": signing,
        "callback": {
            **callback,
            "url": subscription.url if subscription else "",
            "is_active": subscription is not None and subscription.receives_callbacks,
            "digest": hashlib.sha256(body).hexdigest(),
            "was_revealed": text,
            "live_job": live,
            "wait": wait,
            "next_ms": max(live.due_ms if live else 0, failure["next_attempt_ms"] or 0),
            "failing_since_ms": failure["failing_since_ms"],
            "replayed": sum(attempt["kind"] == AttemptKind.REPLAY for attempt in row["attempts"]),
            "replays": [job for job in jobs if job.replay],
        },
    }
