"""Version 2 callback bodies: the envelope, and what becomes of a message."""

from collections.abc import Callable
from typing import Any

import msgspec

from waypost.domain.app import App
from waypost.domain.event import StatusEvent
from waypost.domain.message import MessageKind, MessageState
from waypost.wire.callbacks.billing import deductions

_encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode


def envelope(app: App, at_ms: int, type: str, payload: dict[str, Any]) -> bytes:
    """The whole body as bytes. Source: spec, "Events"; facts 6.1."""
    return _encode(
        {"app": app.name, "phone": app.phone_number, "timestamp": at_ms, "version": 2, "type": type, "payload": payload}
    )


def enqueued_body(
    app: App, at_ms: int, *, message_id: str, operator_message_id: str, kind: MessageKind, destination: str
) -> bytes:
    """The operator has taken a message: `id` is ours. Source: facts 6.2."""
    payload = {
        "id": message_id,
        "type": "enqueued",
        "destination": destination,
        "payload": {"whatsappMessageId": operator_message_id, "type": kind.value},
    }
    return envelope(app, at_ms, "message-event", payload)


def failed_body(
    app: App, at_ms: int, *, message_id: str, operator_message_id: str | None, destination: str, code: int, reason: str
) -> bytes:
    """A message has failed: before the operator had it `id` is ours, later `id` is the operator's.

    Source: facts 6.2, the two rows `failed`.
    """
    payload = {
        **_ids(message_id, operator_message_id),
        "type": "failed",
        "destination": destination,
        "payload": {"code": code, "reason": reason},
    }
    return envelope(app, at_ms, "message-event", payload)


def status_body(app: App, at_ms: int, event: StatusEvent, *, message_id: str, destination: str) -> bytes:
    """`sent`, `delivered`, `read` or `deleted`: `id` is the operator's, `gsId` ours.

    What it costs, and in which conversation, stands in `sent` only, whichever statuses the operator
    tells it with. Source: facts 6.2.
    """
    payload: dict[str, Any] = {
        **_ids(message_id, event.operator_message_id),
        "type": event.state.value,
        "destination": destination,
        "payload": {"ts": event.at_s},
    }
    tells_price = event.state is MessageState.SENT
    if tells_price and event.conversation:
        payload["conversation"] = _conversation(event.conversation)
    if tells_price and event.pricing:
        payload["pricing"] = _pricing(event.pricing)
    return envelope(app, at_ms, "message-event", payload)


def mismatch_body(
    app: App, at_ms: int, *, operator_message_id: str, message_id: str | None, phone: str, operator_phone: str
) -> bytes:
    """The operator knows a recipient by another number. Source: facts 6.2, `mismatch`.

    Args:
        app: whose.
        at_ms: now.
        operator_message_id: of the message by which it was learnt.
        message_id: ours, where that message was ours.
        phone: as it was until now, or as the partner wrote it.
        operator_phone: as the operator has it.
    """
    payload: dict[str, Any] = {"id": operator_message_id}
    if message_id is not None:
        payload["gsId"] = message_id
    payload |= {"type": "mismatch", "destination": phone, "payload": {"wa_id": operator_phone, "phone": phone}}
    return envelope(app, at_ms, "message-event", payload)


def billing_body(app: App, at_ms: int, event: StatusEvent, *, message_id: str, destination: str) -> bytes:
    """What a message costs. Source: facts 6.7."""
    references = {"id": event.operator_message_id, "gsId": message_id, "destination": destination}
    conversation = (event.conversation or {}).get("id")
    if conversation:
        references["conversationId"] = conversation
    payload = {"deductions": deductions(event), "references": references}
    return envelope(app, at_ms, "billing-event", payload)


def user_body(app: App, at_ms: int, *, phone: str, type: str) -> bytes:
    """A user has opted in or out. Source: facts 6.3."""
    return envelope(app, at_ms, "user-event", {"phone": phone, "type": type})


def check_body(app: App, at_ms: int) -> bytes:
    """The ping of an address at registration. Source: facts 4.5."""
    return user_body(app, at_ms, phone="callbackSetPhone", type="sandbox-start")


def _ids(message_id: str, operator_message_id: str | None) -> dict[str, str]:
    if operator_message_id is None:
        return {"id": message_id}
    return {"id": operator_message_id, "gsId": message_id}


def _conversation(given: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {"id": given.get("id")}
    expires = str(given.get("expiration_timestamp", ""))
    if expires.isdecimal():
        shown["expiresAt"] = int(expires)
    origin = given.get("origin")
    if isinstance(origin, dict):
        shown["type"] = origin.get("type")  # pyright: ignore[reportUnknownMemberType]
    return shown


def _pricing(given: dict[str, Any]) -> dict[str, Any]:
    shown = {"policy": given.get("pricing_model"), "category": given.get("category")}
    if "type" in given:
        shown["type"] = given["type"]
    return shown
