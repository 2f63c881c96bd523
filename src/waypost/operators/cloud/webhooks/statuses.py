"""Events of message statuses."""

import hashlib
from typing import Any, Final

import msgspec

from waypost.base.json_values import list_of, object_of
from waypost.domain.event import Event, OtherStatusEvent, PaymentEvent, StatusEvent, UnknownEvent
from waypost.domain.message import MessageState
from waypost.operators.cloud.messages.bodies import parse_message_id
from waypost.operators.cloud.tolerant_json import parse_name, parse_number, parse_seconds, parse_text

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
PAYMENT_STATUS_TYPE: Final = "payment"
"""The type of a status that is about a payment, not about the message that requested it."""


def status_key(status_object: dict[str, Any]) -> str | None:
    """Return the deduplication key of a status; None if it has no message id.

    A payment may repeat a status: another attempt fails, a part is refunded. So its content is part
    of the key.

    Source: operator's facts 7.1, dedupe keys: in a group, each member has a status of its own.
    """
    message_id, status = parse_text(status_object.get("id")), parse_text(status_object.get("status")).lower()
    if not message_id:
        return None
    payment_part = ""
    if parse_text(status_object.get("type")) == PAYMENT_STATUS_TYPE:
        content = msgspec.json.encode(status_object.get("payment"), order="sorted")
        payment_part = f"{PAYMENT_STATUS_TYPE} {hashlib.sha256(content).hexdigest()[:16]} "
    member = parse_text(status_object.get("recipient_participant_id"))
    return f"status {payment_part}{message_id} {status}" + (f" {member}" if member else "")


def status_event(status_object: dict[str, Any], contact: dict[str, Any]) -> Event:
    """Return the event of a status.

    Args:
        status_object: the status.
        contact: of its recipient, if the webhook has one: perhaps the only place of the business-scoped id.
    """
    operator_id = parse_name(status_object.get("id"))
    message_id = parse_name(parse_message_id(status_object.get("biz_opaque_callback_data"))) or None
    is_of_group = parse_text(status_object.get("recipient_type")).lower() == "group"
    if parse_text(status_object.get("type")) == PAYMENT_STATUS_TYPE:
        return PaymentEvent(operator_id, message_id, status_object)
    state = STATUSES.get(parse_text(status_object.get("status")).lower())
    if state is None:
        status_text = parse_text(status_object.get("status"))
        if not status_text or not (operator_id or message_id):
            return UnknownEvent(f"status {status_text}")
        return OtherStatusEvent(status_text, operator_id, message_id, status_object)
    code, reason = _failure(status_object) if state is MessageState.FAILED else (None, None)
    return StatusEvent(
        state=state,
        operator_message_id=operator_id,
        message_id=message_id,
        recipient=None if is_of_group else parse_name(status_object.get("recipient_id")) or None,
        at_s=parse_seconds(status_object.get("timestamp")),
        code=code,
        reason=reason,
        conversation=object_of(status_object.get("conversation")) or None,
        pricing=object_of(status_object.get("pricing")) or None,
        recipient_user_id=None
        if is_of_group
        else parse_name(status_object.get("recipient_user_id")) or parse_name(contact.get("user_id")) or None,
        raw=status_object,
        is_of_group=is_of_group,
    )


def _failure(status_object: dict[str, Any]) -> tuple[int, str]:
    errors = list_of(status_object.get("errors"))
    error = object_of(errors[0]) if errors else {}
    details = parse_text(object_of(error.get("error_data")).get("details"))
    text = details or parse_text(error.get("message")) or parse_text(error.get("title"))
    return parse_number(error.get("code")) or 131000, text or "failed"
