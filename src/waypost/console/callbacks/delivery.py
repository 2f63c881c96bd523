"""The page of one callback: body, attempts with request and response, signature; and its replay."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection
from starlette.responses import Response

from waypost.base.encryption import SecretBox, secrets_equal
from waypost.console.callbacks.deliveries import describe_deliveries
from waypost.console.callbacks.lookup import callbacks_path, replay_callbacks, respond
from waypost.console.page_tools import PageTools
from waypost.console.web.page_request import NotFound, PageRequest
from waypost.console.web.streams import PageElement, elements_response
from waypost.domain.callbacks import AttemptKind, Subscription
from waypost.store.callbacks.deliveries import find_delivery, find_delivery_jobs
from waypost.store.callbacks.receivers import receiver_failure
from waypost.store.callbacks.subscriptions import subscription_of_partner
from waypost.wire.callbacks.signatures import signature_headers
from waypost.wire.redaction import redact_callback

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


async def show_delivery(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the page."""
    return await tools.page(page_request, "callbacks/delivery.html", **await _read_delivery(tools, page_request))


async def live_delivery(tools: PageTools, page_request: PageRequest) -> Response:
    """Stream what changes on it."""
    await _get_callback(tools, page_request)

    async def render_pieces() -> Sequence[PageElement]:
        now = await _read_delivery(tools, page_request)
        part, callback = tools.services.pages.render_macro, now["callback"]
        facts = part(DELIVERY_MACROS, "facts", page_request, page_request, callback, now["root"])
        return [
            PageElement("delivery-state", part(DELIVERY_MACROS, "state", page_request, callback)),
            PageElement("delivery-facts", facts),
            PageElement("delivery-tries", part(DELIVERY_MACROS, "tries", page_request, callback)),
        ]

    return tools.live(page_request, render_pieces, rest_s=0.5)


async def download_body(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the exact bytes as a file to download; one-time codes are masked."""
    row = await _get_callback(tools, page_request)
    headers = {"Content-Disposition": f'attachment; filename="callback-{row["id"]}.json"'}
    body = redact_callback(row, text=True)["body"].encode()
    return Response(body, headers=headers, media_type="application/octet-stream")


async def reveal_body(tools: PageTools, page_request: PageRequest) -> Response:
    """Return the body with message texts; one-time codes stay masked."""
    now = await _read_delivery(tools, page_request, text=True)
    part = tools.services.pages.render_macro
    body = part(DELIVERY_MACROS, "body", page_request, page_request, now["callback"], now["root"])
    return elements_response([PageElement("delivery-body", body)])


async def replay(tools: PageTools, page_request: PageRequest) -> Response:
    """Replay it, unless it still waits for its first delivery."""
    callback_id = (await _get_callback(tools, page_request))["id"]
    response = await replay_callbacks(tools, page_request, callback_id=callback_id)
    page = f"{callbacks_path(page_request)}/deliveries/{callback_id}"
    if response["replayed"]:
        return respond(tools, page_request, page, "Replay queued: same bytes, id and sequence number.")
    if response["still_waiting"]:
        notice = "Not replayed: it still waits for its first delivery."
        hint = "It is sent as soon as its receiver accepts callbacks."
    else:
        notice, hint = "Not replayed: its subscription is deleted.", "You can save the body from this page."
    return respond(tools, page_request, page, notice, hint=hint, kind="warn")


async def _get_callback(tools: PageTools, page_request: PageRequest) -> dict[str, Any]:
    row = await tools.services.database.read(
        find_delivery, page_request.partner.id, page_request.app.id, str(page_request.path_params["callback_id"])
    )
    if row is None:
        raise NotFound("This app has no such callback.")
    return row


async def _read_delivery(tools: PageTools, page_request: PageRequest, *, text: bool = False) -> dict[str, Any]:
    row = await _get_callback(tools, page_request)
    parts = tools.services

    def read(connection: Connection) -> tuple[Subscription | None, list[Any], dict[str, int | None]]:
        subscription = subscription_of_partner(
            connection, page_request.partner.id, row["subscription_id"], parts.directory.unseal
        )
        jobs = find_delivery_jobs(connection, row["subscription_id"], row["id"])
        return subscription, jobs, receiver_failure(connection, row["subscription_id"])

    subscription, jobs, failure = await parts.database.read(read)
    shown = redact_callback(row, text=text or parts.show_text)
    [callback] = await describe_deliveries(tools, page_request, [shown])
    body = row["body"].encode()
    last = next((attempt for attempt in reversed(row["attempts"]) if attempt["request_headers"]), None)
    signing = None
    if last is not None:
        signing = explain_signature(parts.secret_box, subscription, body, last["request_headers"], parts.clock.now_ms())
    live = next((job for job in jobs if not job.replay), None)
    return {
        "root": callbacks_path(page_request),
        "subscription": subscription,
        "signing": signing,
        "callback": {
            **callback,
            "url": subscription.url if subscription else "",
            "is_active": subscription is not None and subscription.receives_callbacks,
            "digest": hashlib.sha256(body).hexdigest(),
            "was_revealed": text,
            "live_job": live,
            "next_ms": max(live.due_ms if live else 0, failure["next_attempt_ms"] or 0),
            "failing_since_ms": failure["failing_since_ms"],
            "replayed": sum(attempt["kind"] == AttemptKind.REPLAY for attempt in row["attempts"]),
            "replays": [job for job in jobs if job.replay],
        },
    }
