"""Callbacks about an app and its users: it became live, a user opted in or out, or invoked a sandbox app."""

from functools import partial

from sqlalchemy import Connection

from waypost.base.ids import Ids
from waypost.domain.app import App
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.store.accounts.partners import business_account_by_id
from waypost.store.messages.recipients import get_or_create_recipients
from waypost.wire.callbacks import callback_v2 as account_v2
from waypost.wire.callbacks import callback_v3
from waypost.wire.callbacks.callback_v2 import user_body
from waypost.wire.callbacks.kinds import LIVE, USER_KINDS, CallbackKind


def emit_opt_event(
    recorder: StateChangeRecorder, connection: Connection, app: App, phone_number: str, *, opted_in: bool, at_ms: int
) -> None:
    """Emit the user event `opted-in` or `opted-out`; version 3 has no shape for it.

    Source: facts 6.3.
    """
    kind = USER_KINDS["resume" if opted_in else "stop"]
    emit_user_event(recorder, connection, app, phone_number, kind=kind, at_ms=at_ms)


def emit_user_event(
    recorder: StateChangeRecorder,
    connection: Connection,
    app: App,
    phone_number: str,
    *,
    kind: CallbackKind,
    at_ms: int,
) -> None:
    """Emit a user event of any kind; version 3 has no shape for it. Source: facts 6.3."""
    [recipient_id] = get_or_create_recipients(connection, {(app.id, app.partner_id, phone_number)}).values()
    recorder.emit_callback(
        app,
        mode=kind.mode,
        subject=str(recipient_id),
        event_name=kind.inner_type,
        render=partial(_render, app, at_ms, phone_number, kind.inner_type),
    )


def _render(app: App, at_ms: int, phone_number: str, type: str, version: int) -> bytes | None:
    return user_body(app, at_ms, phone=phone_number, type=type) if version == 2 else None


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
