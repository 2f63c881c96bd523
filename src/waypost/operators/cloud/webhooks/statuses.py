"""Events of message statuses."""

import hashlib
from typing import Any, Final

import msgspec

from waypost.base.json_values import list_of, object_of
from waypost.domain.event import Event, OtherStatusEvent, PaymentEvent, StatusEvent, UnknownEvent
from waypost.domain.message import MessageState
from waypost.operators.cloud.messages.bodies import parse_message_id
from waypost.operators.cloud.tolerant_json import (
    NOT_AN_OBJECT,
    parse_name,
    parse_number,
    parse_seconds,
    parse_text,
    wrong_name,
)

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


class StatusTexts(msgspec.Struct):
    """The members of a status that are texts; one that is missing or null is empty."""

    id: str = ""
    status: str = ""
    type: str = ""
    timestamp: str = ""
    recipient_id: str = ""
    recipient_user_id: str = ""
    recipient_parent_user_id: str = ""
    recipient_participant_id: str = ""
    recipient_participant_user_id: str = ""
    recipient_type: str = ""


def check_status(status: Any) -> StatusTexts | str:
    """Return the texts of a status, or why it can belong to no message."""
    if not isinstance(status, dict):
        return NOT_AN_OBJECT
    members = object_of(status)  # pyright: ignore[reportUnknownArgumentType]
    try:
        texts = msgspec.convert(members, StatusTexts)  # all members at once, as they usually are
    except msgspec.ValidationError:
        wrong = wrong_name(members, _NAMES)
        if wrong is not None:
            return wrong
        texts = read_status_texts(members)
    if not texts.status:
        return "status is missing"
    if not texts.id and not parse_message_id(members.get("biz_opaque_callback_data")):
        return "id is missing"
    return texts


_NAMES: Final = ("id", "status", "recipient_id", "recipient_user_id", "recipient_participant_id")


def read_status_texts(status_object: dict[str, Any]) -> StatusTexts:
    """Return the texts of a status; another value than a text is converted to one."""
    try:
        return msgspec.convert(status_object, StatusTexts)
    except msgspec.ValidationError:
        return StatusTexts(*(parse_text(status_object.get(name)) for name in StatusTexts.__struct_fields__))


def status_key(status_object: dict[str, Any], texts: StatusTexts) -> str | None:
    """Return the deduplication key of a status; None if it has no message id.

    A payment may repeat a status: another attempt fails, a part is refunded; and so may a status that changes
    no state, such as a second warning. So their content is part of the key.

    Source: operator's facts 7.1, dedupe keys: in a group, each member has a status of its own.
    """
    if not texts.id:
        return None
    content_part = ""
    if texts.type == PAYMENT_STATUS_TYPE or texts.status.lower() not in STATUSES:
        content = msgspec.json.encode(status_object, order="sorted")
        content_part = f"{texts.type or 'other'} {hashlib.sha256(content).hexdigest()[:16]} "
    member = texts.recipient_participant_id or texts.recipient_participant_user_id
    return f"status {content_part}{texts.id} {texts.status.lower()}" + (f" {member}" if member else "")


def status_event(status_object: dict[str, Any], contact: dict[str, Any], phone_number_id: str = "") -> Event:
    """Return the event of a status.

    Args:
        status_object: the status.
        contact: of its recipient, if the webhook has one: perhaps the only place of the business-scoped id.
        phone_number_id: of the number that sent the message.
    """
    texts = read_status_texts(status_object)
    operator_id = parse_name(texts.id)
    message_id = parse_name(parse_message_id(status_object.get("biz_opaque_callback_data"))) or None
    if texts.type == PAYMENT_STATUS_TYPE:
        return PaymentEvent(operator_id, message_id, status_object)
    state = STATUSES.get(texts.status.lower())
    if state is None:
        if not texts.status or not (operator_id or message_id):
            return UnknownEvent(f"status {texts.status}")
        return OtherStatusEvent(texts.status, operator_id, message_id, status_object)
    code, reason = _failure(status_object) if state is MessageState.FAILED else (None, None)
    recipient = recipient_user_id = recipient_parent_id = None
    is_of_group = texts.recipient_type.lower() == "group"
    if not is_of_group:
        recipient = parse_name(texts.recipient_id) or None
        recipient_user_id = parse_name(texts.recipient_user_id) or parse_name(contact.get("user_id")) or None
        recipient_parent_id = (
            parse_name(texts.recipient_parent_user_id) or parse_name(contact.get("parent_user_id")) or None
        )
    return StatusEvent(
        state=state,
        operator_message_id=operator_id,
        message_id=message_id,
        recipient=recipient,
        at_s=parse_seconds(texts.timestamp),
        code=code,
        reason=reason,
        conversation=object_of(status_object.get("conversation")) or None,
        pricing=object_of(status_object.get("pricing")) or None,
        recipient_user_id=recipient_user_id,
        raw=status_object,
        is_of_group=is_of_group,
        phone_number_id=phone_number_id,
        contact=contact,
        recipient_parent_id=recipient_parent_id,
    )


def _failure(status_object: dict[str, Any]) -> tuple[int, str]:
    errors = list_of(status_object.get("errors"))
    error = object_of(errors[0]) if errors else {}
    details = parse_text(object_of(error.get("error_data")).get("details"))
    text = details or parse_text(error.get("message")) or parse_text(error.get("title"))
    return parse_number(error.get("code")) or 131000, text or "failed"
