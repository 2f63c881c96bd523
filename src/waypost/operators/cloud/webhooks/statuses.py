"""Statuses of messages, read in our words."""

import hashlib
from typing import Any, Final

import msgspec

from waypost.base.json_values import list_of, object_of
from waypost.domain.event import Event, OddStatusEvent, PaymentEvent, StatusEvent, UnknownEvent
from waypost.domain.message import MessageState
from waypost.operators.cloud.messages.bodies import our_id_in
from waypost.operators.cloud.tolerant_json import as_name, as_number, as_seconds, as_text

# fmt: off
STATUSES: Final = {  # Source: operator's facts 7.3; unknown ones, `warning` among them, move nothing
    "sent":      MessageState.SENT,
    "delivered": MessageState.DELIVERED,
    "read":      MessageState.READ,
    "played":    MessageState.READ,
    "deleted":   MessageState.DELETED,
    "failed":    MessageState.FAILED,
}
# fmt: on
PAYMENT: Final = "payment"
"""The type of a status that is about a payment, not about the message that asked for it."""


def status_key(given: dict[str, Any]) -> str | None:
    """What makes a status the same news; None where it does not say whose it is.

    A payment may go on under the same status: another attempt fails, a part is refunded. So its content
    counts too.

    Source: operator's facts 7.1, dedupe keys: of a group's message each member's counts.
    """
    message_id, status = as_text(given.get("id")), as_text(given.get("status")).lower()
    if not message_id:
        return None
    word = ""
    if as_text(given.get("type")) == PAYMENT:
        content = msgspec.json.encode(given.get("payment"), order="sorted")
        word = f"{PAYMENT} {hashlib.sha256(content).hexdigest()[:16]} "
    member = as_text(given.get("recipient_participant_id"))
    return f"status {word}{message_id} {status}" + (f" {member}" if member else "")


def status_event(given: dict[str, Any], contact: dict[str, Any]) -> Event:
    """What a status says.

    Args:
        given: the status.
        contact: of its recipient, where the webhook has one: it may alone know the business-scoped id.
    """
    operator_id = as_name(given.get("id"))
    message_id = as_name(our_id_in(given.get("biz_opaque_callback_data"))) or None
    is_of_group = as_text(given.get("recipient_type")).lower() == "group"
    if as_text(given.get("type")) == PAYMENT:
        return PaymentEvent(operator_id, message_id, given)
    state = STATUSES.get(as_text(given.get("status")).lower())
    if state is None:
        word = as_text(given.get("status"))
        if not word or not (operator_id or message_id):
            return UnknownEvent(f"status {word}")
        return OddStatusEvent(word, operator_id, message_id, given)
    code, reason = _failure(given) if state is MessageState.FAILED else (None, None)
    return StatusEvent(
        state=state,
        operator_message_id=operator_id,
        message_id=message_id,
        recipient=None if is_of_group else as_name(given.get("recipient_id")) or None,
        at_s=as_seconds(given.get("timestamp")),
        code=code,
        reason=reason,
        conversation=object_of(given.get("conversation")) or None,
        pricing=object_of(given.get("pricing")) or None,
        recipient_user_id=None
        if is_of_group
        else as_name(given.get("recipient_user_id")) or as_name(contact.get("user_id")) or None,
        raw=given,
        is_of_group=is_of_group,
    )


def _failure(given: dict[str, Any]) -> tuple[int, str]:
    errors = list_of(given.get("errors"))
    error = object_of(errors[0]) if errors else {}
    details = as_text(object_of(error.get("error_data")).get("details"))
    told = details or as_text(error.get("message")) or as_text(error.get("title"))
    return as_number(error.get("code")) or 131000, told or "failed"
