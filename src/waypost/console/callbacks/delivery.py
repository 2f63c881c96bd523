"""One callback: its bytes, every try with what was sent and what came, its signature; and sending it again."""

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
"""So many keys that came before are tried."""


def signing_of(
    seals: Seals, held: Subscription | None, body: bytes, sent: Mapping[str, str], now_ms: int
) -> dict[str, Any] | None:
    """What a page explains of a try's signature; None where it carried none.

    Args:
        seals: give the keys.
        held: the subscription; None where it is gone.
        body: the exact bytes.
        sent: the headers of the try.
        now_ms: by the clock that rules follow.
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
            {"text": one, "made_with": _made_with(seals, held, callback_id, int(stamp), body, one, now_ms)}
            for one in signatures
        ],
    }


def _made_with(
    seals: Seals, held: Subscription | None, id: str, at_s: int, body: bytes, signature: str, now_ms: int
) -> str:  # fmt: skip
    if held is None:
        return "a key of a subscription that is gone"
    for serial in range(held.key_serial, max(held.key_serial - _OLD_KEYS, 0), -1):
        key = seals.callback_key(held.id, serial)
        if same(signature_headers(id, at_s, body, [key])["webhook-signature"], signature):
            if serial == held.key_serial:
                return "the key that signs now"
            signs_too = serial in held.serials(now_ms)
            return "the key before, which signs too" if signs_too else "an old key, which has ended"
    return "a key from long ago"


PARTS: Final = "callbacks/delivery_parts.html"


async def show_delivery(desk: PageTools, visit: PageRequest) -> Response:
    """The page."""
    return await desk.page(visit, "callbacks/delivery.html", **await _now(desk, visit))


async def live_delivery(desk: PageTools, visit: PageRequest) -> Response:
    """What changes of it."""
    await _named(desk, visit)

    async def look() -> Sequence[Piece]:
        now = await _now(desk, visit)
        part = desk.parts.pages.part
        return [
            Piece("delivery-state", part(PARTS, "state", visit, now["one"])),
            Piece("delivery-facts", part(PARTS, "facts", visit, now["one"], now["root"])),
            Piece("delivery-tries", part(PARTS, "tries", visit, now["one"])),
        ]

    return desk.live(visit, look, rest_s=0.5)


async def give_body(desk: PageTools, visit: PageRequest) -> Response:
    """The exact bytes, to be kept as a file; without one-time codes where it has any."""
    row = await _named(desk, visit)
    name = f"callback-{row['id']}.json"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    shown = shown_callback(row, text=True)["body"].encode()
    return Response(shown, headers=headers, media_type="application/octet-stream")


async def reveal_body(desk: PageTools, visit: PageRequest) -> Response:
    """The body with what people write; one-time codes stay hidden."""
    now = await _now(desk, visit, text=True)
    part = desk.parts.pages.part
    body = part(PARTS, "body", visit, visit, now["one"], base_of(visit))
    return answer_with([Piece("delivery-body", body)])


async def replay(desk: PageTools, visit: PageRequest) -> Response:
    """Send it again, unless it still waits for its first delivery."""
    row = await _named(desk, visit)
    told = await desk.parts.apis.admin.json(
        "POST",
        "/admin/callbacks/replay",
        {"callback_id": row["id"], "partner_id": visit.partner.id, "app_id": visit.app.id},
    )
    page = f"{base_of(visit)}/deliveries/{row['id']}"
    if told["replayed"]:
        return answer(desk, visit, page, "It goes out again: the same bytes, id and sequence number.")
    if told["still_waiting"]:
        return answer(
            desk, visit, page, "It still waits for its first delivery, and is not sent twice.",
            remedy="It goes as soon as its receiver takes callbacks.", kind="warn",
        )  # fmt: skip
    return answer(
        desk, visit, page, "Its subscription is gone, so there is nobody to tell.",
        remedy="Take the bytes from this page.", kind="warn",
    )  # fmt: skip


async def _named(desk: PageTools, visit: PageRequest) -> dict[str, Any]:
    row = await desk.parts.database.read(delivery, visit.partner.id, visit.app.id, str(visit.path["callback_id"]))
    if row is None:
        raise NotThere("This app has no such callback.")
    return row


async def _now(desk: PageTools, visit: PageRequest, *, text: bool = False) -> dict[str, Any]:
    row = await _named(desk, visit)
    parts = desk.parts

    def look(connection: Connection) -> tuple[Subscription | None, list[Any], dict[str, int | None]]:
        held = subscription_of_partner(connection, visit.partner.id, row["subscription_id"], parts.directory.unseal)
        entries = entries_of(connection, row["subscription_id"], row["id"])
        return held, entries, receiver_failure(connection, row["subscription_id"])

    held, entries, failure = await parts.database.read(look)
    shown = shown_callback(row, text=text or parts.show_text)
    [one] = await described(desk, visit, [shown])
    body = row["body"].encode()
    last = next((one for one in reversed(row["attempts"]) if one["request_headers"]), None)
    signing = None
    if last is not None:
        signing = signing_of(parts.seals, held, body, last["request_headers"], parts.clock.now_ms())
    live = next((entry for entry in entries if not entry.replay), None)
    return {
        "root": base_of(visit),
        "held": held,
        "signing": signing,
        "one": {
            **one,
            "url": held.url if held else "",
            "is_told": held is not None and held.is_told,
            "digest": hashlib.sha256(body).hexdigest(),
            "was_revealed": text,
            "live_entry": live,
            "next_ms": max(live.due_ms if live else 0, failure["next_attempt_ms"] or 0),
            "failing_since_ms": failure["failing_since_ms"],
            "replayed": sum(one["kind"] == AttemptKind.REPLAY for one in row["attempts"]),
            "replays": [entry for entry in entries if entry.replay],
        },
    }
