"""Callbacks about an app and its users: it became live, a user opted in or out, or invoked a sandbox app."""

from sqlalchemy import Connection

from waypost.base.ids import Ids
from waypost.domain.app import App
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.store.accounts.partners import business_account_by_id
from waypost.store.messages.recipients import get_or_create_recipients
from waypost.wire.callbacks import callback_v2 as account_v2
from waypost.wire.callbacks import callback_v3
from waypost.wire.callbacks.callback_v2 import user_body
from waypost.wire.callbacks.kinds import LIVE, CallbackKind


def emit_user_event(
    recorder: StateChangeRecorder,
    connection: Connection,
    app: App,
    phone_number: str,
    *,
    kind: CallbackKind,
    at_ms: int,
) -> None:
    """Emit a user event, such as an opt-in; version 3 has no shape for it. Source: facts 6.3."""
    inner_type = kind.inner_type
    [recipient_id] = get_or_create_recipients(connection, {(app.id, app.partner_id, phone_number)}).values()
    recorder.emit_callback(
        app,
        mode=kind.mode,
        subject=str(recipient_id),
        event_name=inner_type,
        render=lambda version: user_body(app, at_ms, phone=phone_number, type=inner_type) if version == 2 else None,
    )


def emit_live_event(connection: Connection, ids: Ids, app: App, at_ms: int) -> None:
    """Emit the event of a sandbox app that is live now, and write it. Source: ledger rows 30, 65."""
    account = business_account_by_id(connection, app.business_account_id)
    recorder = StateChangeRecorder(connection, ids, at_ms)
    recorder.emit_callback(
        app,
        mode=LIVE.mode,
        subject="account",
        event_name=LIVE.inner_type,
        render=lambda version: (
            account_v2.live_body(app, at_ms, "" if account is None else account.namespace)
            if version == 2
            else callback_v3.live_body(app, at_ms)
        ),
    )
    recorder.write()
