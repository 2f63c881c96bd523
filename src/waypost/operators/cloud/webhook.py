"""The operator's webhook: handshake, signature, bodies to items. Tolerant: what is new is no error."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from waypost.domain.app import OperatorAccount
from waypost.domain.arrival import ArrivalItem
from waypost.domain.event import Event, UnknownEvent
from waypost.operators.cloud.loose import as_dict, as_list, as_text
from waypost.operators.cloud.webhook_changes import CHANGES
from waypost.operators.cloud.webhook_messages import contact_of, inbound_event
from waypost.operators.cloud.webhook_statuses import status_event, status_key

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode


def is_signed(account: OperatorAccount, headers: Mapping[str, str], body: bytes) -> bool:
    """Whether `X-Hub-Signature-256` is right for exactly these bytes.

    Source: operator's facts 7.1.
    """
    given = headers.get("x-hub-signature-256", "")
    digest = hmac.new(account.app_secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(given.encode(), f"sha256={digest}".encode())


def answer_handshake(account: OperatorAccount, query: Mapping[str, str]) -> str | None:
    """The challenge, when mode and verify token are right. Source: operator's facts 7.1."""
    token = query.get("hub.verify_token", "")
    is_right = hmac.compare_digest(token.encode(), account.verify_token.encode())
    return query.get("hub.challenge") if query.get("hub.mode") == "subscribe" and is_right else None


def split(account: OperatorAccount, body: bytes) -> Sequence[ArrivalItem]:
    """One item per status, message and template change; anything else is one item."""
    try:
        decoded = _decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return [_whole(account, "body", {"unreadable": True, "sha256": _digest(body)})]
    items: list[ArrivalItem] = []
    for at, entry in enumerate(as_list(as_dict(decoded), "entry")):
        for nth, change in enumerate(as_list(as_dict(entry), "changes")):
            items.extend(_of_change(account, f"{at}.{nth}", as_dict(entry), as_dict(change)))
    return items or [_whole(account, "body", {"unknown": decoded})]


def read(item: bytes) -> Event:
    """What one item says, in our words."""
    content = as_dict(_decode(item))
    if "status" in content:
        return status_event(as_dict(content["status"]))
    if "message" in content:
        return inbound_event(content, as_dict(content["message"]))
    field = as_text(content.get("field"))
    event_of = CHANGES.get(field)
    return UnknownEvent(field or "unknown") if event_of is None else event_of(content)


def _of_change(
    account: OperatorAccount, place: str, entry: dict[str, Any], change: dict[str, Any]
) -> list[ArrivalItem]:
    field, value = as_text(change.get("field")), as_dict(change.get("value"))
    metadata = as_dict(value.get("metadata"))
    number = as_text(metadata.get("phone_number_id")) or account.id
    contacts = as_list(value, "contacts")
    items: list[ArrivalItem] = []
    for nth, status in enumerate(as_list(value, "statuses")):
        given = as_dict(status)
        user = as_text(given.get("recipient_id")) or as_text(given.get("recipient_user_id"))
        items.append(
            ArrivalItem(
                dedupe_key=status_key(given),
                group=number,
                order_key=f"{number} {user}",
                place=f"{place}.statuses.{nth}",
                item=_encode({"phone_number_id": number, "status": given}),
            )
        )
    for nth, message in enumerate(as_list(value, "messages")):
        given = as_dict(message)
        user = as_text(given.get("from")) or as_text(given.get("from_user_id"))
        content = {
            "phone_number_id": number,
            "message": given,
            "contact": contact_of(given, contacts),
        }
        items.append(
            ArrivalItem(
                dedupe_key=f"message {as_text(given.get('id'))}",
                group=number,
                order_key=f"{number} {user}",
                place=f"{place}.messages.{nth}",
                item=_encode(content),
            )
        )
    return items or [_about(account, place, entry, field, value)]


def _about(
    account: OperatorAccount,
    place: str,
    entry: dict[str, Any],
    field: str,
    value: dict[str, Any],
) -> ArrivalItem:
    """A change of a template, of the business account or of one of its numbers."""
    about = {"field": field, "business_account_id": as_text(entry.get("id")), "value": value}
    time = as_text(entry.get("time"))
    template = as_text(value.get("message_template_id"))
    if not template:
        return _whole(account, place, about | {"time": entry.get("time")})
    event = as_text(value.get("event"))
    return ArrivalItem(
        dedupe_key=f"template {time} {template} {field} {event} {_digest(_encode(value))}",
        group=as_text(entry.get("id")) or account.id,
        order_key=f"template {template}",
        place=place,
        item=_encode(about),
    )


def _whole(account: OperatorAccount, place: str, content: dict[str, Any]) -> ArrivalItem:
    item = _encode(content)
    return ArrivalItem(f"other {_digest(item)}", account.id, account.id, place, item)


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]
