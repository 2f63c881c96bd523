"""Applies inbound messages: stores them, and emits a callback with the context that we know."""

from dataclasses import dataclass
from typing import Final

from waypost.base.telemetry.logs import log
from waypost.domain.app import WINDOW_MS, App
from waypost.domain.event import InboundEvent
from waypost.domain.inbound_context import Around, MediaLink
from waypost.domain.media import INBOUND_LIFE_MS, InboundMedia
from waypost.domain.message import Content, TemplateSend
from waypost.domain.outcome import MOST_ID_CHARS
from waypost.domain.phone_number import group_destination
from waypost.domain.postback import answered_id_of, postback_text_of, reply_of
from waypost.domain.session_messages.content import MediaKind
from waypost.events.lookup import EventContext, reacted_to
from waypost.store.accounts.partners import app_by_phone_number_id
from waypost.store.apps.operator_history import app_that_left
from waypost.store.encoding import kept_content_of
from waypost.store.media.media import add_inbound_media
from waypost.store.messages.recipients import has_written, recipient_id
from waypost.store.queue.inbound_webhooks import NO_RECIPIENT, record_inbound
from waypost.store.templates.templates import template_by_id
from waypost.wire.callbacks import callback_v3
from waypost.wire.callbacks.callback_v2 import mismatch_body
from waypost.wire.callbacks.inbound_v2 import inbound_body
from waypost.wire.callbacks.kinds import GROUP_INBOUND, inbound_kind

_log = log("events")
REPLIES: Final = ("button_reply", "list_reply")
MESSAGE_MODE: Final = "MESSAGE"  # everything that recipients send. Source: ledger 1.4
NUMBER_CHANGED: Final = "system"
"""The kind of the notice that a recipient has another number. Source: operator's facts 7.4."""


@dataclass(frozen=True, slots=True)
class _Answered:
    """Our message that an inbound one replies or reacts to; everything None where we know none."""

    id: str | None = None
    content: Content | None = None


def message_has_come(context: EventContext, account_id: str, item_id: int, event: InboundEvent) -> None:
    """Record the sender, open the window, and emit a callback; a group's message opens none and has no recipient.

    Args:
        context: the transaction.
        account_id: of the operator account that reports it.
        item_id: of the webhook item; the content stays there.
        event: the inbound message.
    """
    connection, at_ms = context.connection, context.at_ms
    app = app_by_phone_number_id(connection, account_id, event.phone_number_id)
    app = app or _app_that_left(context, account_id, event)
    if app is None:
        _log.info("an inbound message for a number that belongs to no app was stored")
        return
    sender_id = NO_RECIPIENT
    if event.group_id is None:
        sender_id = recipient_id(connection, app, event.sender, event.sender_user_id)
        if event.kind != NUMBER_CHANGED:
            sent_ms = event.at_s * 1000 or at_ms
            has_written(connection, sender_id, event.sender_name, sent_ms + WINDOW_MS)
    record_inbound(
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
    inbound_context = _around(context, app, account_id, event)

    def render(version: int) -> bytes | None:
        if version == 3:
            return callback_v3.inbound_body(app, event, inbound_context)
        if event.group_id is not None:
            return None
        if event.kind == NUMBER_CHANGED:
            return _number_changed(app, at_ms, event)
        return inbound_body(app, at_ms, event, inbound_context)

    is_of_group = event.group_id is not None
    context.recorder.emit_callback(
        app,
        mode=GROUP_INBOUND.mode if is_of_group else inbound_kind(event.kind).mode,
        about=group_destination(event.group_id) if event.group_id else str(sender_id),
        message_id=None,
        news=event.kind,
        render=render,
        also=MESSAGE_MODE if is_of_group else None,
    )


def _app_that_left(context: EventContext, account_id: str, event: InboundEvent) -> App | None:
    """Return the app that has left this account, if the event is of the time before or replies to a message of then.

    Source: decision 0033.
    """
    app_and_time = app_that_left(context.connection, account_id, event.phone_number_id)
    if app_and_time is None:
        return None
    app, left_ms = app_and_time
    replied_to = context.book.message(answered_id_of(event), event.reply_to or reacted_to(event))
    if replied_to is not None and replied_to.app_id == app.id:
        since_ms = replied_to.accepted_on_ms
    else:
        since_ms = event.at_s * 1000
    return app if 0 < since_ms <= left_ms else None


def _around(context: EventContext, app: App, account_id: str, event: InboundEvent) -> Around:
    replied_to = _answered(context, app, event)
    template = (
        template_by_id(context.connection, replied_to.content.template_id)
        if event.is_tap and isinstance(replied_to.content, TemplateSend)
        else None
    )
    return Around(
        answered_id=replied_to.id,
        postback_text=postback_text_of(event, replied_to.content, template),
        reply=reply_of(event, replied_to.content) if event.kind in REPLIES else None,
        media=_medium(context, app, account_id, event),
    )


def _answered(context: EventContext, app: App, event: InboundEvent) -> _Answered:
    """Find the app's message by the operator's id, or by the reference that came back."""
    row = context.book.message(answered_id_of(event), event.reply_to or reacted_to(event))
    return (
        _Answered()
        if row is None or row.app_id != app.id
        else _Answered(row.id, kept_content_of(row.kind, row.content))
    )


def _medium(context: EventContext, app: App, account_id: str, event: InboundEvent) -> MediaLink | None:
    """Give a medium a URL that cannot be guessed; its bytes are fetched by a queue of their own."""
    operator_id = event.text("id")
    if event.kind not in set(MediaKind) or not 0 < len(operator_id) <= MOST_ID_CHARS:
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


def _number_changed(app: App, at_ms: int, event: InboundEvent) -> bytes | None:
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
