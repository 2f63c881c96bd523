"""The operator's webhook: handshake, signature, bodies to items. Tolerant: unknown content is not an error."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

import msgspec

from waypost.base.json_values import list_of, object_of
from waypost.domain.app import OperatorAccount
from waypost.domain.event import Event, UnknownEvent
from waypost.domain.inbound_webhook import WebhookItem
from waypost.operators.cloud.tolerant_json import decode, parse_name, parse_text
from waypost.operators.cloud.webhooks.changes import CHANGES, account_event
from waypost.operators.cloud.webhooks.messages import contacts_by_name, inbound_event, sender_contact
from waypost.operators.cloud.webhooks.statuses import read_status_texts, status_event, status_key

MESSAGES_FIELD: Final = "messages"
"""The field whose change holds many items: messages and statuses. Source: operator's facts 7.2."""
_SPLIT_FIELDS: Final = {MESSAGES_FIELD, ""}
_MESSAGES_MEMBERS: Final = {"messaging_product", "metadata", "contacts", "statuses", "messages"}
_encode_item: Final = msgspec.json.Encoder().encode


def is_signed(account: OperatorAccount, headers: Mapping[str, str], body: bytes) -> bool:
    """True if `X-Hub-Signature-256` is correct for exactly these bytes.

    Source: operator's facts 7.1.
    """
    signature = headers.get("x-hub-signature-256", "")
    digest = hmac.new(account["app_secret"].encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(signature.encode(), f"sha256={digest}".encode())


def handshake(account: OperatorAccount, challenge: str, *, is_right: bool) -> dict[str, str]:
    """Return the query of a handshake, or of one with a wrong verify token. Source: operator's facts 7.1."""
    token = account["verify_token"] if is_right else challenge
    return {"hub.mode": "subscribe", "hub.challenge": challenge, "hub.verify_token": token}


def verify_handshake(account: OperatorAccount, query: Mapping[str, str]) -> str | None:
    """Return the challenge if mode and verify token are correct. Source: operator's facts 7.1."""
    token = query.get("hub.verify_token", "")
    is_right = hmac.compare_digest(token.encode(), account["verify_token"].encode())
    return query.get("hub.challenge") if query.get("hub.mode") == "subscribe" and is_right else None


def split(account: OperatorAccount, body: bytes) -> Sequence[WebhookItem]:
    """Return one item per status, message and template change; anything else is one item."""
    try:
        decoded = decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return [_unsplit_item(account, "body", {"unreadable": True, "sha256": _digest(body)})]
    items: list[WebhookItem] = []
    for entry_index, entry in enumerate(list_of(object_of(decoded).get("entry"))):
        members = object_of(entry)
        changes = list_of(members.get("changes"))
        for change_index, change in enumerate(changes):
            items.extend(_split_change(account, f"{entry_index}.{change_index}", members, object_of(change)))
        if not changes:
            items.append(_unsplit_item(account, f"{entry_index}", {"unknown": entry}))
    return items or [_unsplit_item(account, "body", {"unknown": decoded})]


def read(item: bytes) -> Event:
    """Return the event of one item."""
    content = object_of(decode(item))  # an item stored by an earlier version may have zeros
    if "status" in content:
        contact, number = object_of(content.get("contact")), parse_name(content.get("phone_number_id"))
        return status_event(object_of(content["status"]), contact, number)
    if "message" in content:
        return inbound_event(content, object_of(content["message"]))
    if "field" not in content:
        return UnknownEvent("unreadable body" if "unreadable" in content else "body without changes")
    return CHANGES.get(parse_text(content["field"]), account_event)(content)


def _split_change(
    account: OperatorAccount, path: str, entry: dict[str, Any], change: dict[str, Any]
) -> list[WebhookItem]:
    field, value = parse_text(change.get("field")), object_of(change.get("value"))
    if field not in _SPLIT_FIELDS:
        return [_change_item(account, path, entry, field, change.get("value"))]
    metadata = object_of(value.get("metadata"))
    number = parse_name(metadata.get("phone_number_id")) or account.id
    contacts = list_of(value.get("contacts"))
    by_name = contacts_by_name(contacts)
    items = [
        _status_item(number, f"{path}.statuses.{index}", object_of(status), by_name)
        for index, status in enumerate(list_of(value.get("statuses")))
    ]
    items += [
        _message_item(number, f"{path}.messages.{index}", object_of(message), contacts)
        for index, message in enumerate(list_of(value.get("messages")))
    ]
    if items and not {name for name, member in value.items() if member} - _MESSAGES_MEMBERS:
        return items
    # Errors of the account, clicks and other content in addition to messages are items of their own.
    rest = {name: member for name, member in value.items() if name not in ("statuses", "messages")}
    return [*items, _change_item(account, path, entry, field or MESSAGES_FIELD, rest if items else change.get("value"))]


def _status_item(
    number: str, path: str, status_object: dict[str, Any], contacts: dict[str, tuple[int, dict[str, Any]]]
) -> WebhookItem:
    texts = read_status_texts(status_object)
    phone, user = parse_name(texts.recipient_id), parse_name(texts.recipient_user_id)
    content: dict[str, Any] = {"phone_number_id": number, "status": status_object}
    found = [contacts[name] for name in (phone, user) if name in contacts]
    if found:
        content["contact"] = min(found, key=itemgetter(0))[1]
    return WebhookItem(
        dedupe_key=parse_name(status_key(status_object, texts))
        or f"status by its content {path} {_digest(_encode_item(status_object))}",
        concurrency_group=number,
        ordering_key=f"{number} {phone or user or parse_name(texts.id)}",
        path=path,
        payload=_encode_item(content),
    )


def _message_item(number: str, path: str, message: dict[str, Any], contacts: list[Any]) -> WebhookItem:
    user = parse_name(message.get("from")) or parse_name(message.get("from_user_id"))
    group = parse_name(message.get("group_id"))
    message_id = parse_name(message.get("id"))
    content = {"phone_number_id": number, "message": message, "contact": sender_contact(message, contacts)}
    return WebhookItem(
        dedupe_key=f"message {message_id or f'by its content {path} {_digest(_encode_item(message))}'}",
        concurrency_group=number,
        ordering_key=f"{number} group {group}" if group else f"{number} {user}",
        path=path,
        payload=_encode_item(content),
    )


def _change_item(account: OperatorAccount, path: str, entry: dict[str, Any], field: str, value: Any) -> WebhookItem:
    """Return the item of a change of a template, of the business account or of a number, known or not.

    The time has whole seconds, so the content distinguishes two events of one second. Two equal ones of a
    template have one key: whether the second is another event, only the operator can say (decision 0021).
    """
    content = {
        "field": field,
        "business_account_id": parse_name(entry.get("id")),
        "value": value,
        "time": entry.get("time"),
    }
    template = parse_name(object_of(value).get("message_template_id"))
    if not template:
        return _unsplit_item(account, path, content)
    time, event = parse_text(entry.get("time")), parse_text(object_of(value).get("event"))
    return WebhookItem(
        dedupe_key=parse_name(f"template {time} {template} {field} {event} {_digest(_encode_item(value))}"),
        concurrency_group=parse_name(entry.get("id")) or account.id,
        ordering_key=f"template {template}",
        path=path,
        payload=_encode_item(content),
    )


def _unsplit_item(account: OperatorAccount, path: str, content: dict[str, Any]) -> WebhookItem:
    """Return an item that has no id: its content and its position in the body distinguish it.

    The operator redelivers a body unchanged, so that a repetition has the same position.
    """
    item = _encode_item(content)
    return WebhookItem(f"other {path} {_digest(item)}", account.id, account.id, path, item)


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]
