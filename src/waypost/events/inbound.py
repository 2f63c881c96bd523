"""What recipients send: kept, and called back with what we know around it."""

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
MESSAGE_MODE: Final = "MESSAGE"  # all that recipients send. Source: ledger 1.4
NUMBER_CHANGED: Final = "system"
"""The kind that says that a recipient has another number. Source: operator's facts 7.4."""


@dataclass(frozen=True, slots=True)
class _Answered:
    """Our message that an inbound one answers, or reacts to; everything None where we know none."""

    id: str | None = None
    content: Content | None = None


def message_has_come(context: EventContext, account_id: str, item_id: int, event: InboundEvent) -> None:
    """Keep who wrote, open the window, and call back; a group's message opens none and has no recipient.

    Args:
        context: the transaction.
        account_id: of the operator account that says so.
        item_id: of the arrival's item; the words stay there.
        event: what came.
    """
    connection, at_ms = context.connection, context.at_ms
    app = app_by_phone_number_id(connection, account_id, event.phone_number_id)
    app = app or _app_that_left(context, account_id, event)
    if app is None:
        _log.info("an inbound message for a number that is no app's is kept")
        return
    who = NO_RECIPIENT
    if event.group_id is None:
        who = recipient_id(connection, app, event.sender, event.sender_user_id)
        if event.kind != NUMBER_CHANGED:
            sent_ms = event.at_s * 1000 or at_ms
            has_written(connection, who, event.sender_name, sent_ms + WINDOW_MS)
    record_inbound(
        connection,
        [
            {
                "operator_message_id": event.operator_message_id,
                "partner_id": app.partner_id,
                "app_id": app.id,
                "recipient_id": who,
                "kind": event.kind,
                "item_id": item_id,
                "received_on_ms": at_ms,
            }
        ],
    )
    around = _around(context, app, account_id, event)

    def render(version: int) -> bytes | None:
        if version == 3:
            return callback_v3.inbound_body(app, event, around)
        if event.group_id is not None:
            return None
        if event.kind == NUMBER_CHANGED:
            return _number_changed(app, at_ms, event)
        return inbound_body(app, at_ms, event, around)

    is_of_group = event.group_id is not None
    context.recorder.emit_callback(
        app,
        mode=GROUP_INBOUND.mode if is_of_group else inbound_kind(event.kind).mode,
        about=group_destination(event.group_id) if event.group_id else str(who),
        message_id=None,
        news=event.kind,
        render=render,
        also=MESSAGE_MODE if is_of_group else None,
    )


def _app_that_left(context: EventContext, account_id: str, event: InboundEvent) -> App | None:
    """The app that has left this operator account, where this is of the time before, or answers what is.

    Source: decision 0033.
    """
    found = app_that_left(context.connection, account_id, event.phone_number_id)
    if found is None:
        return None
    app, left_ms = found
    answered = context.book.message(answered_id_of(event), event.reply_to or reacted_to(event))
    if answered is not None and answered.app_id == app.id:
        since_ms = answered.accepted_on_ms
    else:
        since_ms = event.at_s * 1000
    return app if 0 < since_ms <= left_ms else None


def _around(context: EventContext, app: App, account_id: str, event: InboundEvent) -> Around:
    answered = _answered(context, app, event)
    template = (
        template_by_id(context.connection, answered.content.template_id)
        if event.is_tap and isinstance(answered.content, TemplateSend)
        else None
    )
    return Around(
        answered_id=answered.id,
        postback_text=postback_text_of(event, answered.content, template),
        reply=reply_of(event, answered.content) if event.kind in REPLIES else None,
        media=_medium(context, app, account_id, event),
    )


def _answered(context: EventContext, app: App, event: InboundEvent) -> _Answered:
    """Found by the operator's id, or by the reference that came back; another app's is not ours."""
    row = context.book.message(answered_id_of(event), event.reply_to or reacted_to(event))
    return (
        _Answered()
        if row is None or row.app_id != app.id
        else _Answered(row.id, kept_content_of(row.kind, row.content))
    )


def _medium(context: EventContext, app: App, account_id: str, event: InboundEvent) -> MediaLink | None:
    """Give a medium an address that nobody can guess; its bytes are fetched by a queue of their own."""
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
    """As a mismatch; None where the operator did not tell the new number. Source: facts 6.2."""
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
