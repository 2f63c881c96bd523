"""Callbacks about a user of an app: opted in or out, or a sandbox app was invoked."""

from functools import partial

from sqlalchemy import Connection

from waypost.domain.app import App
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.store.messages.recipients import get_or_create_recipients
from waypost.wire.callbacks.callback_v2 import user_body
from waypost.wire.callbacks.kinds import USER_KINDS, CallbackKind


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
        message_id=None,
        event_name=kind.inner_type,
        render=partial(_render, app, at_ms, phone_number, kind.inner_type),
    )


def _render(app: App, at_ms: int, phone_number: str, type: str, version: int) -> bytes | None:
    return user_body(app, at_ms, phone=phone_number, type=type) if version == 2 else None
