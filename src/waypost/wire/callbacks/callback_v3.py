"""Callback bodies of version 3, and business-scoped user ids in them: included or left out, as the app has set."""

from collections.abc import Mapping
from typing import Any, Final, cast

from waypost.base.ids import is_uuid
from waypost.base.written_numbers import encode_json
from waypost.domain.app import App
from waypost.domain.event import InboundEvent, OtherStatusEvent, PaymentEvent, StatusEvent
from waypost.domain.message import MessageState
from waypost.domain.phone_number import parse_group_id
from waypost.domain.postback import InboundContext, is_reference
from waypost.wire.callbacks.callback_v2 import deductions

NUMBERS_OF_USER_IDS: Final = {  # with the member of the user's number. Source: ledger rows 36, 59, 73
    "user_id": "wa_id",
    "from_user_id": "from",
    "to_user_id": "to",
    "recipient_user_id": "recipient_id",
}
OTHER_USER_MEMBERS: Final = {  # removed in any case. Source: public page "BSUID"
    "parent_user_id",
    "from_parent_user_id",
    "to_parent_user_id",
    "recipient_parent_user_id",
    "username",
}
FIELDS_WITH_USER_IDS: Final = {  # besides `messages`. Source: public page "BSUID"; the last three are ours
    "user_preferences",
    "calls",
    "smb_message_echoes",
    "history",
    "group_participants_update",
    "message_echoes",
}


def hide_user_ids(value: Any) -> Any:
    """Return a value as received without user ids, except where there is no number."""
    if isinstance(value, list):
        return [hide_user_ids(item) for item in cast(list[Any], value)]
    if not isinstance(value, dict):
        return value
    members = cast(dict[str, Any], value)
    return {name: hide_user_ids(member) for name, member in members.items() if not _is_hidden(name, members)}


def _is_hidden(name: str, members: Mapping[str, Any]) -> bool:
    if name in OTHER_USER_MEMBERS:
        return True
    number = NUMBERS_OF_USER_IDS.get(name)
    return number is not None and bool(members.get(number))


_CALLBACK_DATA: Final = "biz_opaque_callback_data"
TEMPLATE_ID_MEMBER: Final = "gs_template_id"
"""The member with our template id in a change of a template. Source: ledger rows 63, 64."""
OPERATOR_ID_MEMBER: Final = "meta_msg_id"
"""The member with the operator's message id in statuses and contexts. Source: ledger row 59."""


def change_body(app: App, field: str, value: Any, *, time: Any = None) -> bytes:
    """Return the whole body with one change.

    Args:
        time: of the entry, as received; omitted where there was none.

    Source: facts 7; ledger rows 63 to 66.
    """
    entry: dict[str, Any] = {"id": app.business_account_id}
    if time is not None:
        entry["time"] = time
    if field in FIELDS_WITH_USER_IDS and not app.preferences.user_ids_v3:
        value = hide_user_ids(value)
    entry["changes"] = [{"field": field, "value": value}]
    return _body(app, entry)


def _body(app: App, entry: dict[str, Any]) -> bytes:
    return encode_json({"object": "whatsapp_business_account", "entry": [entry], "gs_app_id": app.id})


def enqueued_body(app: App, at_ms: int, *, message_id: str, operator_message_id: str | None, destination: str) -> bytes:
    """Return the body for a message that the operator accepted, with its time in ms. Source: ledger row 53."""
    status = {
        "id": operator_message_id or message_id,
        "gs_id": message_id,
        "status": "enqueued",
        "timestamp": at_ms,
        **_recipient(destination),
    }
    return _own_status_body(app, status)


def failed_body(
    app: App, at_ms: int, *, message_id: str, operator_message_id: str | None, destination: str, code: int, reason: str
) -> bytes:
    """Return the body for a message that failed without a status from the operator.

    `errors` is what a status of the operator has, for receivers that read nothing else.

    Source: ledger row 54; facts 7, failed.
    """
    status = {
        "id": operator_message_id or message_id,
        "gs_id": message_id,
        "status": "failed",
        "timestamp": str(at_ms // 1000),
        **_recipient(destination),
        "code": code,
        "reason": reason,
        "errors": [{"code": code, "title": reason, "message": reason}],
    }
    return _own_status_body(app, status)


def status_body(app: App, event: StatusEvent | PaymentEvent | OtherStatusEvent, *, message_id: str) -> bytes:
    """Return the body of a status as received, with our id, and the operator's under its own name too.

    Source: facts 7, statuses; ledger row 59.
    """
    ids = {"gs_id": message_id, OPERATOR_ID_MEMBER: event.operator_message_id}
    status = {name: value for name, value in event.raw.items() if name != _CALLBACK_DATA}
    ours, _, theirs = str(event.raw.get(_CALLBACK_DATA, "")).partition(" ")
    if theirs and is_uuid(ours):  # the partner's own callback data stays
        status[_CALLBACK_DATA] = theirs
    status |= ids
    if not app.preferences.user_ids_v3:
        return _messages_body(app, {"statuses": [hide_user_ids(status)]})
    contact = _recipient_contact(event)
    return _messages_body(app, {"contacts": [contact], "statuses": [status]} if contact else {"statuses": [status]})


def _recipient_contact(event: StatusEvent | PaymentEvent | OtherStatusEvent) -> Mapping[str, Any]:
    """Return the contact of a status's recipient: the operator's, or one of its names. Source: ledger row 59.

    A failed status has none at the operator.
    """
    if not isinstance(event, StatusEvent) or event.state is MessageState.FAILED:
        return {}
    names = {"user_id": event.recipient_user_id, "wa_id": event.recipient}
    shown_names = {name: value for name, value in names.items() if value}
    return event.contact or (shown_names if event.recipient_user_id else {})


def inbound_body(app: App, event: InboundEvent, context: InboundContext) -> bytes:
    """Return the body of a recipient's message as received.

    A medium gets a `url` that needs no token, a context both ids, and a tapped button or a choice the
    partner's own payload.

    Source: facts 7, messages, context, flow reply; facts 17.
    """
    message = dict(event.raw)
    kind = message.get("type")
    inner = message.get(kind) if isinstance(kind, str) else None
    if isinstance(inner, dict) and isinstance(kind, str):
        message[kind] = _type_object(event, context, dict(inner))  # pyright: ignore[reportUnknownArgumentType]
    reply_context = message.get("context")
    if isinstance(reply_context, dict) and event.reply_to is not None:
        ids = {OPERATOR_ID_MEMBER: event.reply_to}
        if context.reply_target_id is not None:
            ids["gs_id"] = context.reply_target_id
        message["context"] = {**reply_context, **ids}
    value = {"messages": [message]}
    if event.contact:
        value = {"contacts": [event.contact], **value}
    return _messages_body(app, value if app.preferences.user_ids_v3 else hide_user_ids(value))


def billing_body(app: App, event: StatusEvent, *, message_id: str | None, destination: str) -> bytes:
    """Return the body for a price; without an id of ours it is an AI provider's. Source: facts 7, billing; 6.7."""
    references = {"id": event.operator_message_id}
    if message_id is not None:
        references["gs_id"] = message_id
    references["destination"] = destination
    conversation = (event.conversation or {}).get("id")
    if conversation:
        references["conversation_id"] = conversation
    billing = {"deductions": deductions(event), "references": references}
    return change_body(app, "billing-event", {**_metadata(app), "billing": billing})


def call_billing_body(app: App, at_ms: int, call: Mapping[str, Any], *, source: str, billable: bool) -> bytes:
    """Return the body for the price of a call that has ended. Source: ledger row 68."""
    deductions_of_call = {"billable": str(billable).lower(), "conversation_type": "call", "source": source}
    references = {
        "conversation_type": "CALL",
        "destination": call.get("to"),
        "source": call.get("from"),
        "direction": call.get("direction"),
        "id": call.get("id"),
        "duration": read_number(call.get("duration")),
        "start_time": read_number(call.get("start_time")),
        "end_time": read_number(call.get("end_time")),
    }
    value = {"billing": {"deductions": deductions_of_call, "references": references}}
    return _body(app, {"time": at_ms, "changes": [{"field": "billing-event", "value": value}]})


def read_number(value: Any) -> int:
    """Return a number that the operator may write as a text; 0 where there is none."""
    text = str(value)
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else 0


def check_body(app: App) -> bytes:
    """Return the body of the ping of a URL at registration. Source: facts 4.5; ledger row 52."""
    return _own_status_body(app, {"type": "set-callback"})


def live_body(app: App, at_ms: int) -> bytes:
    """Return the body for an app that is live now. Source: ledger row 65."""
    value = {"type": "status-event", "payload": {"status": "ACCOUNT_VERIFIED"}}
    return change_body(app, "account-event", value, time=at_ms)


def _own_status_body(app: App, status: dict[str, Any]) -> bytes:
    """Return the body of a status of our own, without the entry's id and metadata. Source: ledger rows 52 to 54."""
    value = {"messaging_product": "whatsapp", "statuses": [status]}
    return _body(app, {"changes": [{"field": "messages", "value": value}]})


def _messages_body(app: App, value: dict[str, Any]) -> bytes:
    return change_body(app, "messages", {**_metadata(app), **value})


def _metadata(app: App) -> dict[str, Any]:
    metadata = {"display_phone_number": app.phone_number, "phone_number_id": app.phone_number_id}
    return {"messaging_product": "whatsapp", "metadata": metadata}


def _type_object(event: InboundEvent, context: InboundContext, inner: dict[str, Any]) -> dict[str, Any]:
    if context.media is not None:
        return {**inner, "url": context.media.url}
    if event.is_tap and is_reference(event.text("payload")):
        return {**inner, "payload": context.postback_text or event.text("text")}
    if context.reply is not None and is_reference(event.text("id")):
        chosen = context.reply.postback_text or event.text("title")
        return {**inner, event.kind: {**event.content, "id": chosen}}
    return inner


def _recipient(destination: str) -> dict[str, str]:
    group_id = parse_group_id(destination)
    if group_id is not None:
        return {"recipient_id": group_id, "recipient_type": "group"}
    name = "recipient_id" if destination.isdecimal() else "recipient_user_id"
    return {name: destination}
