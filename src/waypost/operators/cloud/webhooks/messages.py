"""Events of inbound messages."""

from typing import Any, Final

from waypost.base.json_values import boolean_of, object_of, object_or_none
from waypost.domain.event import Event, InboundEvent
from waypost.operators.cloud.tolerant_json import NOT_AN_OBJECT, parse_name, parse_seconds, parse_text, wrong_name


def inbound_event(content: dict[str, Any], message: dict[str, Any]) -> Event:
    """Return the event of a message of any kind; for `interactive` the inner kind counts.

    Args:
        content: the item: the message, its sender's contact, the number that received it.
        message: the message.

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
        number: the id of the number that received it.
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
    names = (parse_text(message.get("from")), parse_text(message.get("from_user_id")))
    matches = [by_name[name] for name in names if name in by_name]
    if matches:
        return min(matches, key=lambda match: match[0])[1]
    return object_of(contacts[0]) if len(contacts) == 1 else {}


def contacts_by_name(contacts: list[Any]) -> dict[str, tuple[int, dict[str, Any]]]:
    """Return contacts by each of their names, number and business-scoped id, with their index; the first one counts."""
    by_name: dict[str, tuple[int, dict[str, Any]]] = {}
    for index, contact in enumerate(map(object_of, contacts)):
        for name in (parse_text(contact.get("wa_id")), parse_text(contact.get("user_id"))):
            if name:
                by_name.setdefault(name, (index, contact))
    return by_name
