"""Items of webhooks: messages of recipients, statuses of messages, and the fields that both have."""

import hashlib
from operator import attrgetter
from typing import Annotated, Any, Final, NamedTuple

import msgspec

from waypost.base.json_values import boolean_of, list_of, object_of, object_or_none
from waypost.base.written_numbers import json_encoder
from waypost.domain.direct_calls import MissingWebhookField
from waypost.domain.event import Event, InboundEvent, OtherStatusEvent, PaymentEvent, StatusEvent, UnknownEvent
from waypost.domain.message import MessageState
from waypost.operators.cloud.messages import CALLBACK_DATA, parse_message_id
from waypost.operators.cloud.tolerant_json import (
    MAX_NAME_CHARS,
    NOT_AN_OBJECT,
    parse_name,
    parse_number,
    parse_seconds,
    parse_text,
    wrong_name,
)


def inbound_event(content: dict[str, Any], message: dict[str, Any]) -> Event:
    """Return the event of a message of any kind; for `interactive` the inner kind counts.

    Args:
        content: the item: the message, its sender's contact, the number that received it.

    Source: operator's facts 7.4, 7.5.
    """
    kind = parse_text(message.get("type"))
    body: Any = message.get(kind)
    if kind == "interactive":
        kind = parse_text(object_of(body).get("type"))
        body = object_of(body).get(kind)
    context = object_of(message.get("context"))
    contact = object_of(content.get("contact"))
    sender = parse_name(message.get("from")) or parse_name(contact.get("wa_id")) or None
    return InboundEvent(
        kind=parse_name(kind),
        operator_message_id=parse_name(message.get("id")),
        phone_number_id=parse_name(content.get("phone_number_id")),
        sender=sender,
        sender_user_id=parse_name(message.get("from_user_id")) or parse_name(contact.get("user_id")) or None,
        sender_name=parse_text(object_of(contact.get("profile")).get("name")),
        at_s=parse_seconds(message.get("timestamp")),
        content=body,
        reply_to=parse_name(context.get("id")) or None,
        forwarded=boolean_of(context.get("forwarded"), default=False),
        frequently_forwarded=boolean_of(context.get("frequently_forwarded"), default=False),
        referral=object_of(message.get("referral")) or None,
        raw=message,
        contact=contact,
        group_id=parse_name(message.get("group_id")) or None,
        sender_parent_id=(
            parse_name(message.get("from_parent_user_id")) or parse_name(contact.get("parent_user_id")) or None
        ),
    )


def message_defect(message: Any, contact: Any, number: str) -> str | None:
    """Return why no callback can be made of a message; None for one that can be read.

    Args:
        message: the value in the list of messages.
        contact: of its sender, as `sender_contact` returns it.
    """
    members = object_or_none(message)
    if members is None:
        return NOT_AN_OBJECT
    if not number:
        return "metadata.phone_number_id is missing"
    wrong = wrong_name(members, _NAMES)
    if wrong is not None:
        return wrong
    names = (*map(members.get, _SENDER_NAMES), *map(object_of(contact).get, _CONTACT_NAMES))
    is_notice = members.get("type") == "system"
    return None if is_notice or any(names) else "it has no sender"


_SENDER_NAMES: Final = ("from", "from_user_id", "group_id")
_CONTACT_NAMES: Final = ("wa_id", "user_id")
_NAMES: Final = (*_SENDER_NAMES, "id", "type")


def sender_contact(message: dict[str, Any], contacts: list[Any]) -> dict[str, Any]:
    """Return the contact of a message's sender among those of a webhook body; empty if there is none."""
    by_name = contacts_by_name(contacts)
    names = (parse_name(message.get("from")), parse_name(message.get("from_user_id")))
    matches = [by_name[name] for name in names if name in by_name]
    if matches:
        return min(matches, key=attrgetter("nth")).members
    return object_of(contacts[0]) if len(contacts) == 1 else {}


class Contact(NamedTuple):
    """One contact of a webhook body."""

    nth: int
    members: dict[str, Any]
    names: "ContactNames"


def contacts_by_name(contacts: list[Any]) -> dict[str, Contact]:
    """Return contacts by each of their names, number and business-scoped id; the first one counts."""
    by_name: dict[str, Contact] = {}
    for nth, members in enumerate(map(object_of, contacts)):
        names = read_contact_names(members)
        contact = Contact(nth, members, names)
        for name in (names.wa_id, names.user_id):
            if name:
                by_name.setdefault(name, contact)
    return by_name


_Name = Annotated[str, msgspec.Meta(max_length=MAX_NAME_CHARS)]
"""An identifying text as `parse_name` returns it, where it needs no change."""


class ContactNames(msgspec.Struct):
    """The names in a contact; one that is missing or null is empty."""

    wa_id: _Name = ""
    user_id: _Name = ""
    parent_user_id: _Name = ""


def read_contact_names(contact: dict[str, Any]) -> ContactNames:
    """Return the names in a contact; another value than a text is converted to one."""
    try:
        return msgspec.convert(contact, ContactNames)
    except msgspec.ValidationError:
        return ContactNames(*[parse_name(contact.get(name)) for name in ContactNames.__struct_fields__])


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
_encode_sorted: Final = json_encoder(order="sorted").encode
PAYMENT_STATUS_TYPE: Final = "payment"
"""The type of a status that is about a payment, not about the message that requested it."""


class StatusTexts(msgspec.Struct):
    """The members of a status that are texts; one that is missing or null is empty."""

    status: str = ""
    type: str = ""
    timestamp: str = ""
    recipient_type: str = ""
    id: _Name = ""
    recipient_id: _Name = ""
    recipient_user_id: _Name = ""
    recipient_parent_user_id: _Name = ""
    recipient_participant_id: _Name = ""
    recipient_participant_user_id: _Name = ""


def check_status(status: Any) -> StatusTexts | str:
    """Return the texts of a status, or why it can belong to no message."""
    members = object_or_none(status)
    if members is None:
        return NOT_AN_OBJECT
    try:
        texts = msgspec.convert(members, StatusTexts)  # all members at once, as they usually are
    except msgspec.ValidationError:
        wrong = wrong_name(members, _STATUS_NAMES)
        if wrong is not None:
            return wrong
        texts = read_status_texts(members)
    if not texts.status:
        return "status is missing"
    if not texts.id and not parse_message_id(members.get(CALLBACK_DATA)):
        return "id is missing"
    return texts


_STATUS_NAMES: Final = ("id", "status", "recipient_id", "recipient_user_id", "recipient_participant_id")


def read_status_texts(status_object: dict[str, Any]) -> StatusTexts:
    """Return the texts of a status; another value than a text is converted to one."""
    try:
        return msgspec.convert(status_object, StatusTexts)
    except msgspec.ValidationError:
        texts = [parse_text(status_object.get(name)) for name in _TEXT_MEMBERS]
        return StatusTexts(*texts, *[parse_name(status_object.get(name)) for name in _NAME_MEMBERS])


_TEXT_MEMBERS: Final = StatusTexts.__struct_fields__[:4]
_NAME_MEMBERS: Final = StatusTexts.__struct_fields__[4:]


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
        content = _encode_sorted(status_object)
        content_part = f"{texts.type or 'other'} {hashlib.sha256(content).hexdigest()[:16]} "
    member = texts.recipient_participant_id or texts.recipient_participant_user_id
    return f"status {content_part}{texts.id} {texts.status.lower()}" + (f" {member}" if member else "")


def status_event(
    status_object: dict[str, Any],
    contact: dict[str, Any],
    phone_number_id: str = "",
    texts: StatusTexts | None = None,
    names: ContactNames | None = None,
) -> Event:
    """Return the event of a status.

    Args:
        contact: of its recipient, if the webhook has one: perhaps the only place of the business-scoped id.
        phone_number_id: of the number that sent the message.
        texts: of the status, if they have been read.
        names: of the contact, if they have been read.
    """
    texts = texts or read_status_texts(status_object)
    operator_id = texts.id
    message_id = parse_name(parse_message_id(status_object.get(CALLBACK_DATA))) or None
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
        names = names or read_contact_names(contact)
        recipient = texts.recipient_id or None
        recipient_user_id = texts.recipient_user_id or names.user_id or None
        recipient_parent_id = texts.recipient_parent_user_id or names.parent_user_id or None
    conversation, pricing = status_object.get("conversation"), status_object.get("pricing")
    return StatusEvent(
        state=state,
        operator_message_id=operator_id,
        message_id=message_id,
        recipient=recipient,
        at_s=parse_seconds(texts.timestamp),
        code=code,
        reason=reason,
        conversation=(conversation or None) if isinstance(conversation, dict) else None,
        pricing=(pricing or None) if isinstance(pricing, dict) else None,
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


_LIMITS: Final = "no callbacks about limits and reviews"
_SYNC_ONLY: Final = "quality, category and texts of templates are updated by a sync only"
NEEDED_FIELDS: Final = (  # Source: operator's facts 7.2
    MissingWebhookField("messages", "no statuses, no inbound messages", is_serious=True),
    MissingWebhookField("message_template_status_update", "templates stay PENDING until a sync", is_serious=False),
    MissingWebhookField("message_template_quality_update", _SYNC_ONLY, is_serious=False),
    MissingWebhookField("template_category_update", _SYNC_ONLY, is_serious=False),
    MissingWebhookField("message_template_components_update", _SYNC_ONLY, is_serious=False),
    MissingWebhookField("phone_number_quality_update", _LIMITS, is_serious=False),
    MissingWebhookField("account_update", _LIMITS, is_serious=False),
    MissingWebhookField("account_alerts", _LIMITS, is_serious=False),
    MissingWebhookField("business_capability_update", _LIMITS, is_serious=False),
    MissingWebhookField(
        "user_preferences", "no callbacks about recipients who stopped marketing messages", is_serious=False
    ),
)
_FEATURES: Final = (
    "account_review_update account_settings_update business_status_update calls flows group_lifecycle_update "
    "group_participants_update group_settings_update group_status_update history partner_solutions "
    "payment_configuration_update phone_number_name_update security smb_app_state_sync smb_message_echoes "
    "template_correct_category_detection tracking_events user_id_update"
)
FEATURE_FIELDS: Final = tuple(_FEATURES.split())
"""Fields that are called back as received: calls, groups, payments, the app on a phone."""
