"""Version 2 callback bodies: the envelope, and the events of a message."""

from collections.abc import Callable
from typing import Any

import msgspec

from waypost.domain.app import App
from waypost.domain.event import StatusEvent
from waypost.domain.message import MessageKind, MessageState
from waypost.wire.callbacks.billing import deductions

_encode_body: Callable[[Any], bytes] = msgspec.json.Encoder().encode


def envelope(app: App, at_ms: int, type: str, payload: dict[str, Any]) -> bytes:
    """Return the whole body; a member of an enum is encoded as its value. Source: spec, "Events"; facts 6.1."""
    return _encode_body(
        {"app": app.name, "phone": app.phone_number, "timestamp": at_ms, "version": 2, "type": type, "payload": payload}
    )


def account_envelope(app: App, at_ms: int, type: str, payload: dict[str, Any]) -> bytes:
    """Return the whole body of an event of the account, which names the app by its id too. Source: ledger row 30."""
    names = {"app": app.name, "appId": app.id, "phone": app.phone_number}
    return _encode_body({**names, "timestamp": at_ms, "version": 2, "type": type, "payload": payload})


def enqueued_body(
    app: App, at_ms: int, *, message_id: str, operator_message_id: str, kind: MessageKind, destination: str
) -> bytes:
    """Return the body for a message that the operator accepted; `id` is ours. Source: facts 6.2."""
    payload = {
        "id": message_id,
        "type": "enqueued",
        "destination": destination,
        "payload": {"whatsappMessageId": operator_message_id, "type": kind},
    }
    return envelope(app, at_ms, "message-event", payload)


def failed_body(
    app: App, at_ms: int, *, message_id: str, operator_message_id: str | None, destination: str, code: int, reason: str
) -> bytes:
    """Return the body for a failed message; `id` is the operator's if the operator had accepted it, else ours.

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
    """Return the body of `sent`, `delivered`, `read` or `deleted`: `id` is the operator's, `gsId` ours.

    Price and conversation are in `sent` only, whichever statuses contain them at the operator. The user id is
    there if the app has enabled it.

    Source: facts 6.2; ledger row 9.
    """
    payload: dict[str, Any] = {
        **_ids(message_id, event.operator_message_id),
        "type": event.state,
        "destination": destination,
        "payload": {"ts": event.at_s},
    }
    with_price = event.state is MessageState.SENT
    if with_price and event.conversation:
        payload["conversation"] = _conversation(event.conversation)
    if with_price and event.pricing:
        payload["pricing"] = _pricing(event.pricing)
    if app.preferences.user_ids and event.recipient_user_id:
        payload["userId"] = event.recipient_user_id
    return envelope(app, at_ms, "message-event", payload)


def mismatch_body(
    app: App, at_ms: int, *, operator_message_id: str, message_id: str | None, phone: str, operator_phone: str
) -> bytes:
    """Return the body for a recipient with another number at the operator. Source: facts 6.2, `mismatch`.

    Args:
        app: the app.
        at_ms: now.
        operator_message_id: of the message that showed it.
        message_id: ours, if we sent that message.
        phone: the previous number, or the partner's.
        operator_phone: the operator's.
    """
    payload: dict[str, Any] = {"id": operator_message_id}
    if message_id is not None:
        payload["gsId"] = message_id
    payload |= {"type": "mismatch", "destination": phone, "payload": {"wa_id": operator_phone, "phone": phone}}
    return envelope(app, at_ms, "message-event", payload)


def billing_body(app: App, at_ms: int, event: StatusEvent, *, message_id: str | None, destination: str) -> bytes:
    """Return the body for the price of a message; without an id of ours it is an AI provider's. Source: facts 6.7; ledger row 33."""
    references = {"id": event.operator_message_id}
    if message_id is not None:
        references["gsId"] = message_id
    references["destination"] = destination
    conversation = (event.conversation or {}).get("id")
    if conversation:
        references["conversationId"] = conversation
    payload = {"deductions": deductions(event), "references": references}
    return envelope(app, at_ms, "billing-event", payload)


def user_body(app: App, at_ms: int, *, phone: str, type: str) -> bytes:
    """Return the body for a user who has opted in or out. Source: facts 6.3."""
    return envelope(app, at_ms, "user-event", {"phone": phone, "type": type})


def check_body(app: App, at_ms: int) -> bytes:
    """Return the body of the ping of a URL at registration. Source: facts 4.5."""
    return user_body(app, at_ms, phone="callbackSetPhone", type="sandbox-start")


def _ids(message_id: str, operator_message_id: str | None) -> dict[str, str]:
    if operator_message_id is None:
        return {"id": message_id}
    return {"id": operator_message_id, "gsId": message_id}


def _conversation(conversation: dict[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {"id": conversation.get("id")}
    expires = str(conversation.get("expiration_timestamp", ""))
    if expires.isdecimal():
        body["expiresAt"] = int(expires)
    origin = conversation.get("origin")
    if isinstance(origin, dict):
        body["type"] = origin.get("type")  # pyright: ignore[reportUnknownMemberType]
    return body


def _pricing(pricing: dict[str, Any]) -> dict[str, Any]:
    body = {"policy": pricing.get("pricing_model"), "category": pricing.get("category")}
    if "type" in pricing:
        body["type"] = pricing["type"]
    return body
