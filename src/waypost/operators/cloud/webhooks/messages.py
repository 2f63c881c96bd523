"""What recipients have sent, read in our words."""

from typing import Any

from waypost.base.json_values import object_of
from waypost.domain.event import Event, InboundEvent
from waypost.operators.cloud.tolerant_json import as_name, as_seconds, as_text


def inbound_event(content: dict[str, Any], given: dict[str, Any]) -> Event:
    """What a message says, whatever its kind; of `interactive` the inner kind counts.

    Args:
        content: the item: the message, its sender's contact, the number that it came to.
        given: the message.

    Source: operator's facts 7.4, 7.5.
    """
    kind = as_text(given.get("type"))
    body: Any = given.get(kind)
    if kind == "interactive":
        kind = as_text(object_of(body).get("type"))
        body = object_of(body).get(kind)
    context = object_of(given.get("context"))
    contact = object_of(content.get("contact"))
    sender = as_name(given.get("from")) or as_name(contact.get("wa_id")) or None
    return InboundEvent(
        kind=as_name(kind),
        operator_message_id=as_name(given.get("id")),
        phone_number_id=as_name(content.get("phone_number_id")),
        sender=sender,
        sender_user_id=as_name(given.get("from_user_id")) or as_name(contact.get("user_id")) or None,
        sender_name=as_text(object_of(contact.get("profile")).get("name")),
        at_s=as_seconds(given.get("timestamp")),
        content=body,
        reply_to=as_name(context.get("id")) or None,
        forwarded=context.get("forwarded") is True,
        frequently_forwarded=context.get("frequently_forwarded") is True,
        referral=object_of(given.get("referral")) or None,
        raw=given,
        contact=contact,
        group_id=as_name(given.get("group_id")) or None,
    )


def contact_of(message: dict[str, Any], contacts: list[Any]) -> dict[str, Any]:
    """Which of a body's contacts is a message's sender; an empty one where none is."""
    names = {as_text(message.get("from")), as_text(message.get("from_user_id"))}
    known = [object_of(contact) for contact in contacts]
    found = contact_named(names, contacts)
    return found or (known[0] if len(known) == 1 else {})


def contact_named(names: set[str], contacts: list[Any]) -> dict[str, Any]:
    """Which of a body's contacts has one of these names, numbers or business-scoped ids; or an empty one."""
    names = names - {""}
    for contact in map(object_of, contacts):
        if names & {as_text(contact.get("wa_id")), as_text(contact.get("user_id"))}:
            return contact
    return {}
