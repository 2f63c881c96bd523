"""Applies inbound messages: finds the sender, stores the message, emits a callback with the context that we know."""

import re
from dataclasses import dataclass
from typing import Any, Final

from waypost.base.json_values import list_of, object_of
from waypost.domain.app import CUSTOMER_SERVICE_WINDOW_MS, App
from waypost.domain.event import AccountEvent, InboundEvent
from waypost.domain.media import INBOUND_LIFE_MS, InboundMedia
from waypost.domain.message import Content, TemplateSend
from waypost.domain.outcome import MAX_OPERATOR_ID_CHARS
from waypost.domain.phone_number import group_destination
from waypost.domain.postback import InboundContext, MediaLink, find_choice, find_postback_text, referenced_message_id
from waypost.domain.session_messages.content import MediaKind
from waypost.events.lookup import EventContext, IgnoredEvent, reaction_target
from waypost.notifications.user_events import emit_user_event
from waypost.store.accounts.partners import app_by_phone_number_id
from waypost.store.apps.operator_history import find_former_app
from waypost.store.encoding import decode_retained_content
from waypost.store.media.media import add_inbound_media
from waypost.store.messages.recipients import (
    PersonNames,
    record_number_change,
    record_recipient_activity,
    record_user_id_change,
)
from waypost.store.queue.inbound_webhooks import NO_RECIPIENT, record_inbound_messages
from waypost.store.templates.templates import template_by_id
from waypost.wire.callbacks import callback_v3
from waypost.wire.callbacks.callback_v2 import inbound_body, mismatch_body
from waypost.wire.callbacks.kinds import GROUP_INBOUND, PROXY, event_name, inbound_kind

REPLY_KINDS: Final = ("button_reply", "list_reply")
MESSAGE_MODE: Final = "MESSAGE"  # everything that recipients send. Source: ledger 1.4
OTHER_MODES: Final = {
    "request_welcome": "OTHERS",
    "edit": "OTHERS",
    "revoke": "OTHERS",
}  # by kind: the mode under which version 3 had it before
NUMBER_CHANGE_KIND: Final = "system"
"""The kind of the notice that a recipient has another number. Source: operator's facts 7.4."""
_WINDOWLESS_KINDS: Final = {NUMBER_CHANGE_KIND, "edit", "revoke"}
"""The kinds that open no window: notices, and changes of an earlier message. Source: decision 0124."""


@dataclass(frozen=True, slots=True)
class _RepliedMessage:
    """Our message that an inbound one replies or reacts to; everything None where we know none."""

    id: str | None = None
    content: Content | None = None


def apply_inbound_message(context: EventContext, account_id: str, item_id: int, event: InboundEvent) -> None:
    """Record the sender, open the window, and emit a callback; a group's message opens none and has no recipient.

    Args:
        account_id: of the operator account that reports it.
        item_id: of the webhook item; the content stays there.
    """
    connection, at_ms = context.connection, context.at_ms
    app = app_by_phone_number_id(connection, account_id, event.phone_number_id)
    app = app or _find_former_app(context, account_id, event)
    if app is None:
        context.ignore(IgnoredEvent.NUMBER_OF_NO_APP, kind=event.kind)
        return
    sender_id = NO_RECIPIENT
    if event.group_id is None:
        sender_id = find_sender(context, app, event)
        if sender_id is None:
            context.ignore(IgnoredEvent.NO_SENDER, kind=event.kind)
            return
        if event.kind not in _WINDOWLESS_KINDS:
            sent_ms = event.at_s * 1000 or at_ms
            record_recipient_activity(connection, sender_id, event.sender_name, sent_ms + CUSTOMER_SERVICE_WINDOW_MS)
    record_inbound_messages(
        connection,
        [
            {
                "operator_message_id": event.operator_message_id,
                "partner_id": app.partner_id,
                "app_id": app.id,
                "recipient_id": sender_id,
                "kind": event.kind,
                "item_id": item_id,
                "received_on_ms": at_ms,
            }
        ],
    )
    inbound_context = _make_inbound_context(context, app, account_id, event)

    def render(version: int) -> bytes | None:
        if version == 3:
            return callback_v3.inbound_body(app, event, inbound_context)
        if event.group_id is not None:
            return None
        if event.kind == NUMBER_CHANGE_KIND:
            return _number_change_body(app, at_ms, event)
        return inbound_body(app, at_ms, event, inbound_context)

    is_of_group = event.group_id is not None
    context.recorder.emit_callback(
        app,
        mode=GROUP_INBOUND.mode if is_of_group else inbound_kind(event.kind).mode,
        subject=group_destination(event.group_id) if event.group_id else str(sender_id),
        event_name=event_name(event.kind),
        render=render,
        other_mode=MESSAGE_MODE if is_of_group else OTHER_MODES.get(event.kind),
    )
    if event.sender and not app.live and _is_proxy_command(app, event):
        emit_user_event(context.recorder, connection, app, event.sender, kind=PROXY, at_ms=at_ms)


def _is_proxy_command(app: App, event: InboundEvent) -> bool:
    """True if a user invokes a sandbox app by its name. Source: ledger row 12."""
    return event.kind == "text" and event.text("body").strip().casefold() == f"proxy {app.name}".casefold()


def _find_former_app(context: EventContext, account_id: str, event: InboundEvent) -> App | None:
    """Return the app that has left this account, if the event is of the time before or replies to a message of then.

    Source: decision 0033.
    """
    app_and_time = find_former_app(context.connection, account_id, event.phone_number_id)
    if app_and_time is None:
        return None
    app, left_ms = app_and_time
    replied_to = context.lookup.find_message(referenced_message_id(event), event.reply_to or reaction_target(event))
    if replied_to is not None and replied_to.app_id == app.id:
        since_ms = replied_to.accepted_on_ms
    else:
        since_ms = event.at_s * 1000
    return app if 0 < since_ms <= left_ms else None


def _make_inbound_context(context: EventContext, app: App, account_id: str, event: InboundEvent) -> InboundContext:
    replied_to = _find_replied_message(context, app, event)
    template = (
        template_by_id(context.connection, replied_to.content.template_id)
        if event.is_tap and isinstance(replied_to.content, TemplateSend)
        else None
    )
    return InboundContext(
        reply_target_id=replied_to.id,
        postback_text=find_postback_text(event, replied_to.content, template),
        reply=find_choice(event, replied_to.content) if event.kind in REPLY_KINDS else None,
        media=_add_media_link(context, app, account_id, event),
    )


def _find_replied_message(context: EventContext, app: App, event: InboundEvent) -> _RepliedMessage:
    """Find the app's message by the operator's id, or by the reference that came back."""
    row = context.lookup.find_message(referenced_message_id(event), event.reply_to or reaction_target(event))
    return (
        _RepliedMessage()
        if row is None or row.app_id != app.id
        else _RepliedMessage(row.id, decode_retained_content(row.kind, row.content))
    )


def _add_media_link(context: EventContext, app: App, account_id: str, event: InboundEvent) -> MediaLink | None:
    """Give a medium a URL that cannot be guessed; its bytes are fetched by a queue of their own."""
    operator_id = event.text("id")
    if event.kind not in set(MediaKind) or not 0 < len(operator_id) <= MAX_OPERATOR_ID_CHARS:
        return None
    key = context.ids.secret()
    until_ms = context.at_ms + INBOUND_LIFE_MS
    add_inbound_media(
        context.connection,
        InboundMedia(
            key=key,
            partner_id=app.partner_id,
            app_id=app.id,
            operator_media_id=operator_id,
            mime_type=event.text("mime_type"),
            file_name=event.text("filename"),
            expires_on_ms=until_ms,
        ),
        operator_account_id=account_id,
        phone_number_id=event.phone_number_id,
        now_ms=context.at_ms,
    )
    return MediaLink(f"{context.public_url}/media/{key}", until_ms)


def _number_change_body(app: App, at_ms: int, event: InboundEvent) -> bytes | None:
    """Return the body of a mismatch; None where the operator did not give the new number. Source: facts 6.2."""
    new = event.text("wa_id") or event.text("new_wa_id")
    if not new:
        return None
    return mismatch_body(
        app,
        at_ms,
        operator_message_id=event.operator_message_id,
        message_id=None,
        phone=event.sender or event.sender_user_id or "",
        operator_phone=new,
    )


USER_ID_CHANGE_TYPE: Final = "user_changed_user_id"
USER_ID_FIELD: Final = "user_id_update"
"""The field with changes of user ids. Source: the operator's page "Business-scoped user IDs"."""
_CHANGE: Final = re.compile(r"changed from (\S+) to (\S+)")


def find_sender(context: EventContext, app: App, event: InboundEvent) -> int | None:
    """Return the recipient who sent a message, created if new; None if the operator named nobody.

    A notice of another number or user id keeps the person: the previous name and the new one lead to one recipient.

    Source: operator's facts 7.4, 7.5; the operator's page "Business-scoped user IDs".
    """
    content = object_of(event.content) if event.kind == "system" else {}
    names = PersonNames(event.sender, event.sender_user_id, event.sender_parent_id)
    current = PersonNames(
        _text(content, "wa_id") or _text(content, "new_wa_id"),
        _text(content, "user_id"),
        _text(content, "parent_user_id"),
    )
    merged = context.recorder.merged_recipients
    if content.get("type") == USER_ID_CHANGE_TYPE and current.user_id:
        previous = _previous_user_id(event, content, current.user_id)
        kept = current._replace(phone_number=current.phone_number or event.sender)
        if previous is not None:
            return record_user_id_change(context.connection, app, previous, kept, merged)
        names = kept
    elif current.phone_number and event.sender and current.phone_number != event.sender:
        kept = current._replace(user_id=current.user_id or event.sender_user_id)
        return record_number_change(context.connection, app, event.sender, kept, merged)
    if not any(names):
        return None
    return context.find_recipient(app, *names)


def apply_user_id_changes(context: EventContext, app: App, event: AccountEvent) -> int | None:
    """Record the changes of a webhook of user ids; return the recipient if it is about one person only."""
    ids: set[int] = set()
    for item in map(object_of, list_of(event.members.get(USER_ID_FIELD))):
        user, parent = object_of(item.get("user_id")), object_of(item.get("parent_user_id"))
        previous, current = _text(user, "previous"), _text(user, "current")
        if previous is None or current is None:
            continue
        names = PersonNames(_text(item, "wa_id"), current, _text(parent, "current"))
        merged = context.recorder.merged_recipients
        ids.add(record_user_id_change(context.connection, app, previous, names, merged))
    return ids.pop() if len(ids) == 1 else None


def _previous_user_id(event: InboundEvent, content: dict[str, Any], current: str) -> str | None:
    """Return the id before: the operator has it as the sender, as a member, or in the text of the notice only."""
    found = _CHANGE.search(_text(content, "body") or "")
    candidates = (event.sender_user_id, _text(content, "previous_user_id"), found[1] if found else None)
    return next((name for name in candidates if name and name != current), None)


def _text(value: dict[str, Any], name: str) -> str | None:
    member = value.get(name)
    return member if isinstance(member, str) and member else None
