"""The callback when an app becomes live."""

from functools import partial

from sqlalchemy import Connection

from waypost.base.ids import Ids
from waypost.domain.app import App
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.store.accounts.partners import business_account_by_id
from waypost.wire.callbacks import callback_v2 as account_v2
from waypost.wire.callbacks import callback_v3
from waypost.wire.callbacks.kinds import LIVE


def emit_live_event(connection: Connection, ids: Ids, app: App, at_ms: int) -> None:
    """Emit the event of a sandbox app that is live now, and write it. Source: ledger rows 30, 65."""
    account = business_account_by_id(connection, app.business_account_id)
    recorder = StateChangeRecorder(connection, ids, at_ms)
    recorder.emit_callback(
        app,
        mode=LIVE.mode,
        subject="account",
        message_id=None,
        event_name=LIVE.inner_type,
        render=partial(_render, app, at_ms, "" if account is None else account.namespace),
    )
    recorder.write()


def _render(app: App, at_ms: int, namespace: str, version: int) -> bytes:
    return account_v2.live_body(app, at_ms, namespace) if version == 2 else callback_v3.live_body(app, at_ms)
