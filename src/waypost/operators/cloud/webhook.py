"""The operator's webhook: handshake, signature, bodies to items. Tolerant: unknown content is not an error."""

import hashlib
import hmac
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from waypost.base.json_values import list_of, list_or_none, object_of
from waypost.base.written_numbers import encode_json
from waypost.domain.app import OperatorAccount
from waypost.domain.event import (
    AccountEvent,
    CategoryEvent,
    Event,
    QualityEvent,
    ReviewEvent,
    UnknownEvent,
    WebhookItem,
    unreadable_group,
    unreadable_item,
)
from waypost.domain.phone_number import read_phone_number
from waypost.operators.cloud.tolerant_json import (
    NOT_JSON,
    decode_parts,
    decode_webhook,
    is_too_deep,
    parse_name,
    parse_seconds,
    parse_text,
)
from waypost.operators.cloud.webhook_items import (
    Contact,
    StatusTexts,
    check_status,
    contacts_by_name,
    inbound_event,
    message_defect,
    sender_contact,
    status_event,
    status_key,
)


def _review(content: dict[str, Any]) -> Event:
    value = object_of(content.get("value"))
    reason = parse_text(value.get("reason"))
    rejection_reason = parse_text(object_of(value.get("rejection_info")).get("reason"))
    return ReviewEvent(
        **_template(content),
        status=parse_text(value.get("event")).upper(),
        reason=rejection_reason or (reason if reason not in ("", "NONE") else None),
        description=parse_text(object_of(value.get("other_info")).get("description")) or None,
        at_s=parse_seconds(content.get("time")),
    )


def _quality(content: dict[str, Any]) -> Event:
    value = object_of(content.get("value"))
    return QualityEvent(**_template(content), quality=parse_text(value.get("new_quality_score")).upper())


def _category(content: dict[str, Any]) -> Event:
    """Return a category event; a notice has `correct_category` and the current one as the new one, a change has both.

    Source: operator's facts 3.3.
    """
    value = object_of(content.get("value"))
    correct = parse_text(value.get("correct_category"))
    new = parse_text(value.get("new_category")).upper()
    return CategoryEvent(
        **_template(content),
        category=new if correct else parse_text(value.get("previous_category")).upper(),
        next_category=correct.upper() if correct else new,
        is_done=not correct,
    )


def account_event(content: dict[str, Any]) -> Event:
    """Return the event of a change that has no event of its own, whatever its field, with its value unchanged.

    A change with the id of one of our numbers, in the metadata or in settings, is about that number.
    An unknown field is read the same way, so that it causes a callback and is not lost.
    """
    value = object_of(content.get("value"))
    objects = [value, object_of(value.get("metadata")), object_of(value.get("phone_number_settings"))]
    ids = [parse_text(source.get("phone_number_id")) for source in objects]
    number = parse_text(value.get("display_phone_number")) or parse_text(value.get("phone_number"))
    shared = parse_text(object_of(value.get("waba_info")).get("waba_id"))
    return AccountEvent(
        business_account_id=parse_text(content.get("business_account_id")),
        field=parse_text(content.get("field")),
        value=content.get("value"),
        phone_number_id=next((number_id for number_id in ids if number_id), None),
        phone_number=read_phone_number(number),
        other_account_id=shared or None,
        operator_template_id=parse_name(value.get("message_template_id")) or None,
        time=content.get("time"),
    )


def _template(content: dict[str, Any]) -> dict[str, Any]:
    value = object_of(content.get("value"))
    return {
        "business_account_id": parse_text(content.get("business_account_id")),
        "operator_template_id": parse_name(value.get("message_template_id")),
        "element_name": parse_text(value.get("message_template_name")),
        "language_code": parse_text(value.get("message_template_language")).replace("-", "_"),
        "raw": {"field": content.get("field"), "value": value, "time": content.get("time")},
    }


CHANGES: Final[
    dict[str, Callable[[dict[str, Any]], Event]]
] = {  # every other field is an account event. Source: operator's facts 3.3
    "message_template_status_update": _review,
    "message_template_quality_update": _quality,
    "template_category_update": _category,
}


MESSAGES_FIELD: Final = "messages"
"""The field whose change holds many items: messages and statuses. Source: operator's facts 7.2."""
_SPLIT_FIELDS: Final = {MESSAGES_FIELD, ""}
_MESSAGES_MEMBERS: Final = {"messaging_product", "metadata", "contacts", "statuses", "messages"}
_ITEM_LEVELS: Final = 7
"""Containers around a message or a status: body, entry, its object, changes, its object, value, messages."""
_TIME: Final = re.compile(rb'"(time|timestamp|[a-z_]+_time|[a-z_]+_timestamp)":"?[0-9]')
"""A member that says when an item happened. Source: operator's facts 7.2."""


def is_signed(account: OperatorAccount, headers: Mapping[str, str], body: bytes) -> bool:
    """True if `X-Hub-Signature-256` is correct for exactly these bytes.

    Source: operator's facts 7.1.
    """
    signature = headers.get("x-hub-signature-256", "")
    digest = hmac.new(account.fields["app_secret"].encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(signature.encode(), f"sha256={digest}".encode())


def handshake(account: OperatorAccount, challenge: str, *, is_right: bool) -> dict[str, str]:
    """Return the query of a handshake, or of one with a wrong verify token. Source: operator's facts 7.1.

    Only who knows the verify token can make the wrong one of a challenge, so that our own checks are recognised.
    """
    right = account["verify_token"]
    token = right if is_right else hmac.new(right.encode(), challenge.encode(), hashlib.sha256).hexdigest()
    return {"hub.mode": "subscribe", "hub.challenge": challenge, "hub.verify_token": token}


def verify_handshake(account: OperatorAccount, query: Mapping[str, str]) -> str | None:
    """Return the challenge if mode and verify token are correct. Source: operator's facts 7.1."""
    token = query.get("hub.verify_token", "")
    is_right = hmac.compare_digest(token.encode(), account["verify_token"].encode())
    return query.get("hub.challenge") if query.get("hub.mode") == "subscribe" and is_right else None


def split(account: OperatorAccount, body: bytes) -> Sequence[WebhookItem]:
    """Return one item per status, message and template change; anything else is one item.

    An item that cannot be read costs no other one: each part of the body is read alone then.
    """
    try:
        items = _split_body(account, body, decode_webhook(body), is_damaged=False)
    except NOT_JSON:
        items = None
    if items is None or any(map(is_too_deep, map(_payload_of, items))):
        items = _split_body(account, body, decode_parts(body, _ITEM_LEVELS), is_damaged=True)
    return items


_payload_of: Final = attrgetter("payload")


def read(item: bytes) -> Event:
    """Return the event of one item."""
    content = object_of(decode_webhook(item))  # an item stored by an earlier version may have zeros
    if "status" in content:
        contact, number = object_of(content.get("contact")), parse_name(content.get("phone_number_id"))
        return status_event(object_of(content["status"]), contact, number)
    if "message" in content:
        return inbound_event(content, object_of(content["message"]))
    if "field" not in content:
        return UnknownEvent("body without changes")
    return CHANGES.get(parse_text(content["field"]), account_event)(content)


def _split_body(account: OperatorAccount, body: bytes, decoded: Any, *, is_damaged: bool) -> list[WebhookItem]:
    """Return the items of a body; in one that is damaged, `msgspec.Raw` stands for each part that cannot be read."""
    entries: list[Any] | None = list_or_none(object_of(decoded).get("entry"))
    if entries is None and "metadata" in object_of(decoded) and "history" in object_of(decoded):
        # The documented sample of a declined history has no envelope. Source: decision 0124.
        entries = list[Any]([{"changes": [{"field": "history", "value": decoded}]}])
    if entries is None:
        return [unreadable_item(unreadable_group(account.id), "body", body, "it is not an object with a list entry")]
    items: list[WebhookItem] = []
    for entry_index, entry in enumerate(entries):
        path, members = f"{entry_index}", object_of(entry)
        changes = list_or_none(members.get("changes") or [])
        if not isinstance(entry, dict) or changes is None:
            alone = encode_json({"entry": [entry]})
            group = parse_name(members.get("id")) or unreadable_group(account.id)
            items.append(unreadable_item(group, path, alone, "it is not an object with a list changes"))
            continue
        for change_index, change in enumerate(changes):
            place = _ChangePlace(account, f"{path}.{change_index}", members, is_damaged)
            items.extend(_split_change(place, change))
        if not changes:
            items.append(_unsplit_item(account, path, {"unknown": entry}))
    return items or [_unsplit_item(account, "body", {"unknown": decoded})]


class _ChangePlace(NamedTuple):
    """Position of a change in a body, and what surrounds it."""

    account: OperatorAccount
    path: str  # the indexes of the entry and of the change
    entry: dict[str, Any]  # the object that has it
    is_damaged: bool  # parts of the body cannot be read

    def unreadable(self, change: Any, defect: str, *, number: str = "", suffix: str = "") -> WebhookItem:
        """Return the item of a change, or of a part that stands alone in it, that cannot be read."""
        alone = encode_json({"entry": [{**self.entry, "changes": [change]}]})
        group = number or parse_name(self.entry.get("id")) or unreadable_group(self.account.id)
        return unreadable_item(group, self.path + suffix, alone, defect)


def _split_change(place: _ChangePlace, change_or_other: Any) -> list[WebhookItem]:
    change = object_of(change_or_other)
    if not change:
        return [place.unreadable(change_or_other, "it is not an object with members")]
    field, value = parse_text(change.get("field")), object_of(change.get("value"))
    if field not in _SPLIT_FIELDS:
        return [_change_item(place, field, change)]
    number = parse_name(object_of(value.get("metadata")).get("phone_number_id"))
    contacts = list_of(value.get("contacts"))
    by_name = contacts_by_name(contacts)
    items: list[WebhookItem] = []

    def add_unreadable(name: str, alone: Any, defect: str, suffix: str = "") -> None:
        part = {**change, "value": {**_select_other_members(value), name: alone}}
        items.append(place.unreadable(part, defect, number=number, suffix=f".{name}{suffix}"))

    lists: dict[str, list[Any]] = {}
    for name in ("statuses", "messages"):
        members = value.get(name)
        if isinstance(members, list):
            lists[name] = members
        elif members:
            add_unreadable(name, members, "it is not a list")
    group = number or place.account.id
    for index, status in enumerate(lists.get("statuses", ())):
        texts = check_status(status)
        if isinstance(texts, str):
            add_unreadable("statuses", [status], texts, f".{index}")
        else:
            path = f"{place.path}.statuses.{index}"
            items.append(_status_item(group, path, status, texts, by_name, is_damaged=place.is_damaged))
    for index, message in enumerate(lists.get("messages", ())):
        contact = sender_contact(object_of(message), contacts)
        defect = message_defect(message, contact, number)
        if defect is None:
            items.append(_message_item(number, f"{place.path}.messages.{index}", message, contact))
        else:
            add_unreadable("messages", [message], defect, f".{index}")
    if items and (value.keys() <= _MESSAGES_MEMBERS or not any(map(value.get, value.keys() - _MESSAGES_MEMBERS))):
        return items
    # Errors of the account, clicks and other content in addition to messages are items of their own.
    rest = {**change, "value": _select_other_members(value)} if items else change
    return [*items, _change_item(place, field or MESSAGES_FIELD, rest)]


def _select_other_members(value: dict[str, Any]) -> dict[str, Any]:
    """Return the members of a value that are not its statuses and messages."""
    return {name: member for name, member in value.items() if name not in ("statuses", "messages")}


def _status_item(
    number: str,
    path: str,
    status_object: dict[str, Any],
    texts: StatusTexts,
    contacts: dict[str, Contact],
    *,
    is_damaged: bool,
) -> WebhookItem:
    phone, user = texts.recipient_id, texts.recipient_user_id
    content: dict[str, Any] = {"phone_number_id": number, "status": status_object}
    found, other = contacts.get(phone), contacts.get(user)
    if found is None or (other is not None and other.nth < found.nth):
        found = other
    contact: dict[str, Any] = {}
    names = None
    if found is not None:
        _, contact, names = found
        content["contact"] = contact
    return WebhookItem(
        dedupe_key=parse_name(status_key(status_object, texts))
        or f"status by its content {path} {_digest(encode_json(status_object))}",
        concurrency_group=number,
        ordering_key=f"{number} {phone or user or texts.id}",
        path=path,
        payload=encode_json(content),
        read_event=None if is_damaged else partial(status_event, status_object, contact, number, texts, names),
    )


def _message_item(number: str, path: str, message: dict[str, Any], contact: dict[str, Any]) -> WebhookItem:
    user = parse_name(message.get("from")) or parse_name(message.get("from_user_id"))
    group = parse_name(message.get("group_id"))
    message_id = parse_name(message.get("id"))
    content = {"phone_number_id": number, "message": message, "contact": contact}
    return WebhookItem(
        dedupe_key=f"message {message_id or f'by its content {path} {_digest(encode_json(message))}'}",
        concurrency_group=number,
        ordering_key=f"{number} group {group}" if group else f"{number} {user}",
        path=path,
        payload=encode_json(content),
    )


def _change_item(place: _ChangePlace, field: str, change: dict[str, Any]) -> WebhookItem:
    """Return the item of a change of a template, of the business account or of a number, known or not.

    The time has whole seconds, so the content distinguishes two events of one second. Two equal ones of a
    template have one key: whether the second is another event, only the operator can say (decision 0021).
    """
    entry, value = place.entry, change.get("value")
    account = parse_name(entry.get("id"))
    content = {"field": field, "business_account_id": account, "value": value, "time": entry.get("time")}
    if place.is_damaged and isinstance(decode_parts(encode_json(content), 0), msgspec.Raw):
        return place.unreadable(change, "it is not JSON")
    template = parse_name(object_of(value).get("message_template_id"))
    if not template:
        return _unsplit_item(place.account, place.path, content)
    time, event = parse_text(entry.get("time")), parse_text(object_of(value).get("event"))
    return WebhookItem(
        dedupe_key=parse_name(f"template {time} {template} {field} {event} {_digest(encode_json(value))}"),
        concurrency_group=account or place.account.id,
        ordering_key=f"template {template}",
        path=place.path,
        payload=encode_json(content),
    )


def _unsplit_item(account: OperatorAccount, path: str, content: dict[str, Any]) -> WebhookItem:
    """Return an item that has no id: its content, with its time, and its position in the body distinguish it.

    No source says that a repeated body is unchanged byte for byte, so nothing else of the body is in the key. Two
    events of one position and one second that are equal in every member count as one: they cannot be distinguished
    from a repetition, and the second has nothing new. An equal one without any time counts again later (decision 0060).
    """
    item = encode_json(content)
    key = f"other {path} {_digest(item)}"
    return WebhookItem(key, account.id, account.id, path, item, is_undated=not _TIME.search(item))


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]
