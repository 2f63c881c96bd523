"""Webhook bodies to items, and items to events. Tolerant: what is missing or new is no error."""

import hashlib
import hmac
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from waypost.domain.app import OperatorAccount
from waypost.domain.arrival import ArrivalItem
from waypost.domain.event import Event, InboundEvent, ReviewEvent, StatusEvent, UnknownEvent
from waypost.domain.message import MessageState

_encode: Final = msgspec.json.Encoder().encode
_decode: Final = msgspec.json.Decoder().decode

# fmt: off
STATUSES: Final = {  # Source: operator's facts 7.3; unknown ones are kept and ignored
    "sent":      MessageState.SENT,
    "delivered": MessageState.DELIVERED,
    "read":      MessageState.READ,
    "played":    MessageState.READ,
    "failed":    MessageState.FAILED,
}
REVIEW_FIELD: Final = "message_template_status_update"
# fmt: on


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
    for at, entry in enumerate(_list(_dict(decoded), "entry")):
        for nth, change in enumerate(_list(_dict(entry), "changes")):
            items.extend(_of_change(account, f"{at}.{nth}", _dict(entry), _dict(change)))
    return items or [_whole(account, "body", {"unknown": decoded})]


def read(item: bytes) -> Event:
    """What one item says, in our words."""
    content = _dict(_decode(item))
    if "status" in content:
        return _status(_dict(content["status"]))
    if "message" in content:
        return _inbound(content, _dict(content["message"]))
    if content.get("field") == REVIEW_FIELD:
        return _review(content)
    return UnknownEvent(str(content.get("field", "unknown")))


def _of_change(
    account: OperatorAccount, place: str, entry: dict[str, Any], change: dict[str, Any]
) -> list[ArrivalItem]:
    field, value = _text(change.get("field")), _dict(change.get("value"))
    metadata = _dict(value.get("metadata"))
    number = _text(metadata.get("phone_number_id")) or account.id
    contacts = _list(value, "contacts")
    items: list[ArrivalItem] = []
    for nth, status in enumerate(_list(value, "statuses")):
        given = _dict(status)
        user = _text(given.get("recipient_id")) or _text(given.get("recipient_user_id"))
        items.append(
            ArrivalItem(
                dedupe_key=f"status {_text(given.get('id'))} {_text(given.get('status'))}",
                group=number,
                order_key=f"{number} {user}",
                place=f"{place}.statuses.{nth}",
                item=_encode({"phone_number_id": number, "status": given}),
            )
        )
    for nth, message in enumerate(_list(value, "messages")):
        given = _dict(message)
        user = _text(given.get("from")) or _text(given.get("from_user_id"))
        items.append(
            ArrivalItem(
                dedupe_key=f"message {_text(given.get('id'))}",
                group=number,
                order_key=f"{number} {user}",
                place=f"{place}.messages.{nth}",
                item=_encode(
                    {
                        "phone_number_id": number,
                        "message": given,
                        "contact": _contact_of(given, contacts),
                    }
                ),
            )
        )
    if items:
        return items
    about = {"field": field, "business_account_id": _text(entry.get("id")), "value": value}
    template = _text(value.get("message_template_id"))
    if not template:
        return [_whole(account, place, about | {"time": entry.get("time")})]
    event = _text(value.get("event"))
    digest = _digest(_encode(value))
    return [
        ArrivalItem(
            dedupe_key=f"template {_text(entry.get('time'))} {template} {field} {event} {digest}",
            group=_text(entry.get("id")) or account.id,
            order_key=f"template {template}",
            place=place,
            item=_encode(about),
        )
    ]


def _whole(account: OperatorAccount, place: str, content: dict[str, Any]) -> ArrivalItem:
    item = _encode(content)
    return ArrivalItem(f"other {_digest(item)}", account.id, account.id, place, item)


def _status(given: dict[str, Any]) -> Event:
    state = STATUSES.get(_text(given.get("status")).lower())
    if state is None:
        return UnknownEvent(f"status {_text(given.get('status'))}")
    code = reason = None
    errors = _list(given, "errors")
    if state is MessageState.FAILED:
        error = _dict(errors[0]) if errors else {}
        code = _number(error.get("code")) or 131000
        details = _text(_dict(error.get("error_data")).get("details"))
        reason = details or _text(error.get("message")) or _text(error.get("title")) or "failed"
    return StatusEvent(
        state=state,
        operator_message_id=_text(given.get("id")),
        message_id=_text(given.get("biz_opaque_callback_data")) or None,
        recipient=_text(given.get("recipient_id")) or None,
        at_s=_number(given.get("timestamp")) or 0,
        code=code,
        reason=reason,
        conversation=_dict(given.get("conversation")) or None,
        pricing=_dict(given.get("pricing")) or None,
    )


def _inbound(content: dict[str, Any], given: dict[str, Any]) -> Event:
    kind = _text(given.get("type"))
    context = _dict(given.get("context"))
    button = _dict(given.get("button"))
    contact = _dict(content.get("contact"))
    sender = _text(given.get("from")) or _text(contact.get("wa_id")) or None
    return InboundEvent(
        kind="quick_reply" if kind == "button" else kind,
        operator_message_id=_text(given.get("id")),
        phone_number_id=_text(content.get("phone_number_id")),
        sender=sender,
        sender_user_id=_text(given.get("from_user_id")) or _text(contact.get("user_id")) or None,
        sender_name=_text(_dict(contact.get("profile")).get("name")),
        at_s=_number(given.get("timestamp")) or 0,
        text=_text(button.get("text")) or _text(_dict(given.get("text")).get("body")),
        payload=_text(button.get("payload")),
        reply_to=_text(context.get("id")) or None,
        forwarded=context.get("forwarded") is True,
        frequently_forwarded=context.get("frequently_forwarded") is True,
    )


def _review(content: dict[str, Any]) -> Event:
    value = _dict(content.get("value"))
    reason = _text(value.get("reason"))
    told = _text(_dict(value.get("rejection_info")).get("reason"))
    return ReviewEvent(
        business_account_id=_text(content.get("business_account_id")),
        operator_template_id=_text(value.get("message_template_id")),
        element_name=_text(value.get("message_template_name")),
        language_code=_text(value.get("message_template_language")).replace("-", "_"),
        status=_text(value.get("event")).upper(),
        reason=told or (reason if reason not in ("", "NONE") else None),
        description=_text(_dict(value.get("other_info")).get("description")) or None,
    )


def _contact_of(message: dict[str, Any], contacts: list[Any]) -> dict[str, Any]:
    known = [_dict(contact) for contact in contacts]
    names = {_text(message.get("from")), _text(message.get("from_user_id"))} - {""}
    for contact in known:
        if names & {_text(contact.get("wa_id")), _text(contact.get("user_id"))}:
            return contact
    return known[0] if len(known) == 1 else {}


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:32]


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _list(value: dict[str, Any], name: str) -> list[Any]:
    found = value.get(name)
    return found if isinstance(found, list) else []  # pyright: ignore[reportUnknownVariableType]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def _number(value: Any) -> int | None:
    text = _text(value)
    return int(text) if text.isdecimal() and len(text) < 19 else None
