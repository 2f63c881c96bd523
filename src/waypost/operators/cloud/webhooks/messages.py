"""Events of inbound messages."""

from typing import Any

from waypost.base.json_values import object_of
from waypost.domain.event import Event, InboundEvent
from waypost.operators.cloud.tolerant_json import as_name, as_seconds, as_text


def inbound_event(content: dict[str, Any], given: dict[str, Any]) -> Event:
    """Return the event of a message of any kind; for `interactive` the inner kind counts.

    Args:
        content: the item: the message, its sender's contact, the number that received it.
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
    """Return the contact of a message's sender among those of a webhook body; empty if there is none."""
    names = {as_text(message.get("from")), as_text(message.get("from_user_id"))}
    objects = [object_of(contact) for contact in contacts]
    match = contact_named(names, contacts)
    return match or (objects[0] if len(objects) == 1 else {})


def contact_named(names: set[str], contacts: list[Any]) -> dict[str, Any]:
    """Return the contact with one of these names, numbers or business-scoped ids; empty if there is none."""
    names = names - {""}
    for contact in map(object_of, contacts):
        if names & {as_text(contact.get("wa_id")), as_text(contact.get("user_id"))}:
            return contact
    return {}
