"""Events of message statuses."""

import hashlib
from typing import Any, Final

import msgspec

from waypost.base.json_values import list_of, object_of
from waypost.domain.event import Event, OddStatusEvent, PaymentEvent, StatusEvent, UnknownEvent
from waypost.domain.message import MessageState
from waypost.operators.cloud.messages.bodies import our_id_in
from waypost.operators.cloud.tolerant_json import as_name, as_number, as_seconds, as_text

# fmt: off
STATUSES: Final = {  # Source: operator's facts 7.3; unknown ones, such as `warning`, change no state
    "sent":      MessageState.SENT,
    "delivered": MessageState.DELIVERED,
    "read":      MessageState.READ,
    "played":    MessageState.READ,
    "deleted":   MessageState.DELETED,
    "failed":    MessageState.FAILED,
}
# fmt: on
PAYMENT: Final = "payment"
"""The type of a status that is about a payment, not about the message that requested it."""


def status_key(given: dict[str, Any]) -> str | None:
    """Return the deduplication key of a status; None if it has no message id.

    A payment may repeat a status: another attempt fails, a part is refunded. So its content is part
    of the key.

    Source: operator's facts 7.1, dedupe keys: in a group, each member has a status of its own.
    """
    message_id, status = as_text(given.get("id")), as_text(given.get("status")).lower()
    if not message_id:
        return None
    payment_part = ""
    if as_text(given.get("type")) == PAYMENT:
        content = msgspec.json.encode(given.get("payment"), order="sorted")
        payment_part = f"{PAYMENT} {hashlib.sha256(content).hexdigest()[:16]} "
    member = as_text(given.get("recipient_participant_id"))
    return f"status {payment_part}{message_id} {status}" + (f" {member}" if member else "")


def status_event(given: dict[str, Any], contact: dict[str, Any]) -> Event:
    """Return the event of a status.

    Args:
        given: the status.
        contact: of its recipient, if the webhook has one: perhaps the only place of the business-scoped id.
    """
    operator_id = as_name(given.get("id"))
    message_id = as_name(our_id_in(given.get("biz_opaque_callback_data"))) or None
    is_of_group = as_text(given.get("recipient_type")).lower() == "group"
    if as_text(given.get("type")) == PAYMENT:
        return PaymentEvent(operator_id, message_id, given)
    state = STATUSES.get(as_text(given.get("status")).lower())
    if state is None:
        status_text = as_text(given.get("status"))
        if not status_text or not (operator_id or message_id):
            return UnknownEvent(f"status {status_text}")
        return OddStatusEvent(status_text, operator_id, message_id, given)
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
    text = details or as_text(error.get("message")) or as_text(error.get("title"))
    return as_number(error.get("code")) or 131000, text or "failed"
