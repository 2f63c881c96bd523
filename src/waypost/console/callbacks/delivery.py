"""The page of one callback: body, attempts with request and response, signature; and its replay."""

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection
from starlette.responses import Response

from waypost.base.encryption import Seals, same
from waypost.console.callbacks.deliveries import described
from waypost.console.callbacks.lookup import answer, base_of
from waypost.console.page_tools import PageTools
from waypost.console.web.not_found import NotThere
from waypost.console.web.page_request import PageRequest
from waypost.console.web.streams import Piece, answer_with
from waypost.domain.callbacks.callback import AttemptKind
from waypost.domain.callbacks.subscription import Subscription
from waypost.store.callbacks.deliveries import delivery, entries_of
from waypost.store.callbacks.receivers import receiver_failure
from waypost.store.callbacks.subscriptions import subscription_of_partner
from waypost.wire.callbacks.signatures import signature_headers
from waypost.wire.redaction import shown_callback

_OLD_KEYS: Final = 5
"""Number of earlier keys that a signature is compared with."""


def signing_of(
    seals: Seals, held: Subscription | None, body: bytes, sent: Mapping[str, str], now_ms: int
) -> dict[str, Any] | None:
    """Return what the page explains about the signature of an attempt; None if it carried none.

    Args:
        seals: derives the keys.
        held: the subscription; None if it is deleted.
        body: the exact bytes.
        sent: request headers of the attempt.
        now_ms: by the service's clock.
    """
    headers = {name.lower(): text for name, text in sent.items()}
    callback_id, stamp = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    signatures = headers.get("webhook-signature", "").split()
    if not (callback_id and stamp.isdecimal() and signatures):
        return None
    return {
        "id": callback_id,
        "timestamp": int(stamp),
        "signed": f"{callback_id}.{stamp}." + body.decode("utf-8", "replace"),
        "signatures": [
            {"text": text, "made_with": _made_with(seals, held, callback_id, int(stamp), body, text, now_ms)}
            for text in signatures
        ],
    }


def _made_with(
    seals: Seals, held: Subscription | None, id: str, at_s: int, body: bytes, signature: str, now_ms: int
) -> str:  # fmt: skip
    if held is None:
        return "a key of a deleted subscription"
    for serial in range(held.key_serial, max(held.key_serial - _OLD_KEYS, 0), -1):
        key = seals.callback_key(held.id, serial)
        if same(signature_headers(id, at_s, body, [key])["webhook-signature"], signature):
            if serial == held.key_serial:
                return "the current key"
            is_valid = serial in held.serials(now_ms)
            return "the previous key, still valid" if is_valid else "an old key, no longer valid"
    return "an unknown, older key"


PARTS: Final = "callbacks/delivery_parts.html"


async def show_delivery(desk: PageTools, visit: PageRequest) -> Response:
    """Return the page."""
    return await desk.page(visit, "callbacks/delivery.html", **await _now(desk, visit))


async def live_delivery(desk: PageTools, visit: PageRequest) -> Response:
    """Stream what changes on it."""
    await _named(desk, visit)

    async def render_pieces() -> Sequence[Piece]:
        now = await _now(desk, visit)
        part = desk.parts.pages.part
        return [
            Piece("delivery-state", part(PARTS, "state", visit, now["callback"])),
            Piece("delivery-facts", part(PARTS, "facts", visit, now["callback"], now["root"])),
            Piece("delivery-tries", part(PARTS, "tries", visit, now["callback"])),
        ]

    return desk.live(visit, render_pieces, rest_s=0.5)


async def give_body(desk: PageTools, visit: PageRequest) -> Response:
    """Return the exact bytes as a file to download; one-time codes are masked."""
    row = await _named(desk, visit)
    name = f"callback-{row['id']}.json"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    body = shown_callback(row, text=True)["body"].encode()
    return Response(body, headers=headers, media_type="application/octet-stream")


async def reveal_body(desk: PageTools, visit: PageRequest) -> Response:
    """Return the body with message texts; one-time codes stay masked."""
    now = await _now(desk, visit, text=True)
    part = desk.parts.pages.part
    body = part(PARTS, "body", visit, visit, now["callback"], base_of(visit))
    return answer_with([Piece("delivery-body", body)])


async def replay(desk: PageTools, visit: PageRequest) -> Response:
    """Replay it, unless it still waits for its first delivery."""
    row = await _named(desk, visit)
    response = await desk.parts.apis.admin.json(
        "POST",
        "/admin/callbacks/replay",
        {"callback_id": row["id"], "partner_id": visit.partner.id, "app_id": visit.app.id},
    )
    page = f"{base_of(visit)}/deliveries/{row['id']}"
    if response["replayed"]:
        return answer(desk, visit, page, "Replay queued: same bytes, id and sequence number.")
    if response["still_waiting"]:
        return answer(
            desk, visit, page, "Not replayed: it still waits for its first delivery.",
            remedy="It is sent as soon as its receiver accepts callbacks.", kind="warn",
        )  # fmt: skip
    return answer(
        desk, visit, page, "Not replayed: its subscription is deleted.",
        remedy="You can save the body from this page.", kind="warn",
    )  # fmt: skip


async def _named(desk: PageTools, visit: PageRequest) -> dict[str, Any]:
    row = await desk.parts.database.read(delivery, visit.partner.id, visit.app.id, str(visit.path["callback_id"]))
    if row is None:
        raise NotThere("This app has no such callback.")
    return row


async def _now(desk: PageTools, visit: PageRequest, *, text: bool = False) -> dict[str, Any]:
    row = await _named(desk, visit)
    parts = desk.parts

    def read(connection: Connection) -> tuple[Subscription | None, list[Any], dict[str, int | None]]:
        subscription = subscription_of_partner(
            connection, visit.partner.id, row["subscription_id"], parts.directory.unseal
        )
        jobs = entries_of(connection, row["subscription_id"], row["id"])
        return subscription, jobs, receiver_failure(connection, row["subscription_id"])

    subscription, jobs, failure = await parts.database.read(read)
    shown = shown_callback(row, text=text or parts.show_text)
    [callback] = await described(desk, visit, [shown])
    body = row["body"].encode()
    last = next((attempt for attempt in reversed(row["attempts"]) if attempt["request_headers"]), None)
    signing = None
    if last is not None:
        signing = signing_of(parts.seals, subscription, body, last["request_headers"], parts.clock.now_ms())
    live = next((job for job in jobs if not job.replay), None)
    return {
        "root": base_of(visit),
        "subscription": subscription,
        "signing": signing,
        "callback": {
            **callback,
            "url": subscription.url if subscription else "",
            "is_active": subscription is not None and subscription.is_told,
            "digest": hashlib.sha256(body).hexdigest(),
            "was_revealed": text,
            "live_job": live,
            "next_ms": max(live.due_ms if live else 0, failure["next_attempt_ms"] or 0),
            "failing_since_ms": failure["failing_since_ms"],
            "replayed": sum(attempt["kind"] == AttemptKind.REPLAY for attempt in row["attempts"]),
            "replays": [job for job in jobs if job.replay],
        },
    }
