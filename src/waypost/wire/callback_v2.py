"""Version 2 callback bodies."""

from collections.abc import Callable
from typing import Any

import msgspec

from waypost.domain.app import App
from waypost.domain.event import InboundEvent, ReviewEvent, StatusEvent
from waypost.domain.message import MessageKind
from waypost.domain.phone_number import country_and_national

_encode: Callable[[Any], bytes] = msgspec.json.Encoder().encode


def envelope(app: App, at_ms: int, type: str, payload: dict[str, Any]) -> bytes:
    """The whole body as bytes. Source: spec, "Events"; facts 6.1."""
    return _encode(
        {
            "app": app.name,
            "phone": app.phone_number,
            "timestamp": at_ms,
            "version": 2,
            "type": type,
            "payload": payload,
        }
    )


def enqueued_body(
    app: App,
    at_ms: int,
    *,
    message_id: str,
    operator_message_id: str,
    kind: MessageKind,
    destination: str,
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
    app: App,
    at_ms: int,
    *,
    message_id: str,
    operator_message_id: str | None,
    destination: str,
    code: int,
    reason: str,
) -> bytes:
    """A message has failed: before the operator had it `id` is ours, later `id` is the operator's.

    Source: facts 6.2, the two rows `failed`.
    """
    ids = _ids(message_id, operator_message_id)
    payload = {
        **ids,
        "type": "failed",
        "destination": destination,
        "payload": {"code": code, "reason": reason},
    }
    return envelope(app, at_ms, "message-event", payload)


def status_body(
    app: App, at_ms: int, event: StatusEvent, *, message_id: str, destination: str
) -> bytes:
    """`sent`, `delivered` or `read`: `id` is the operator's, `gsId` ours. Source: facts 6.2."""
    payload: dict[str, Any] = {
        **_ids(message_id, event.operator_message_id),
        "type": event.state.value,
        "destination": destination,
        "payload": {"ts": event.at_s},
    }
    if event.conversation:
        payload["conversation"] = _conversation(event.conversation)
    if event.pricing:
        payload["pricing"] = _pricing(event.pricing)
    return envelope(app, at_ms, "message-event", payload)


def inbound_body(
    app: App,
    at_ms: int,
    event: InboundEvent,
    *,
    reply_to_message_id: str | None,
    postback_text: str | None,
) -> bytes:
    """A recipient has written a text or tapped a template's quick reply.

    Args:
        app: whose number it came to.
        at_ms: now; the operator's own time has whole seconds and would run backwards.
        event: what came.
        reply_to_message_id: our id of the message it answers, where we know it.
        postback_text: what the sender gave for the tapped button; None where it gave none.

    Source: spec, "Events"; facts 6.4 (`context.id` is the operator's id, `context.gsId` ours).
    """
    if event.kind == "quick_reply":
        inner: dict[str, Any] = {"text": event.text, "type": "button"}
        if postback_text is not None:
            inner["postbackText"] = postback_text
    else:
        inner = {"text": event.text}
    phone = event.sender or event.sender_user_id or ""
    country_code, national = country_and_national(event.sender) if event.sender else ("", "")
    payload: dict[str, Any] = {
        "id": event.operator_message_id,
        "source": phone,
        "type": event.kind,
        "payload": inner,
        "sender": {
            "phone": phone,
            "name": event.sender_name,
            "country_code": country_code,
            "dial_code": national,
        },
    }
    if event.reply_to is not None or event.forwarded or event.frequently_forwarded:
        context: dict[str, Any] = {}
        if event.reply_to is not None:
            context["id"] = event.reply_to
        if reply_to_message_id is not None:
            context["gsId"] = reply_to_message_id
        context["forwarded"] = event.forwarded
        context["frequently_forwarded"] = event.frequently_forwarded
        payload["context"] = context
    return envelope(app, at_ms, "message", payload)


def review_body(
    app: App, at_ms: int, event: ReviewEvent, *, template_id: str, status: str
) -> bytes:
    """A template's status has changed. Source: facts 6.5."""
    payload: dict[str, Any] = {
        "type": "status-update",
        "id": template_id,
        "status": status.lower(),
        "elementName": event.element_name,
        "languageCode": event.language_code,
    }
    if event.reason:
        payload["rejectedReason"] = event.reason
    if event.description:
        payload["description"] = event.description
    return envelope(app, at_ms, "template-event", payload)


def check_body(app: App, at_ms: int) -> bytes:
    """The ping of an address at registration. Source: facts 4.5."""
    return envelope(
        app, at_ms, "user-event", {"phone": "callbackSetPhone", "type": "sandbox-start"}
    )


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
