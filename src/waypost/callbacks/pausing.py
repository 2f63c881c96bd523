"""Pauses subscriptions whose receivers fail, and notifies their apps."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import Connection

from waypost.admission.circuits import Circuit
from waypost.base.ids import Ids
from waypost.base.telemetry.logs import log
from waypost.domain.callbacks import CallbackAttempt, Subscription
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.queue.context import StageContext
from waypost.store.accounts.partners import app_by_id
from waypost.store.callbacks.receivers import pause_subscription
from waypost.wire.callbacks.kinds import PAUSED
from waypost.wire.callbacks.template_events import paused_body

HTTP_GONE: Final = 410
"""The receiver reports that it no longer exists. Source: Standard Webhooks 1.0, "Deliverability and reliability"."""

PAUSE_EVENT_SUBJECT: Final = "account"
"""The scope in which order is kept: the same as for other events that are about no recipient."""

_log = log("callbacks")


@dataclass(frozen=True, slots=True)
class SubscriptionPause:
    """A subscription to be paused."""

    subscription_id: int
    at_ms: int
    since_ms: int  # nothing has been delivered since then
    reason: str  # in a sentence
    ids: Ids


async def pause_if_due(
    context: StageContext,
    subscription: Subscription,
    circuit: Circuit,
    attempt: CallbackAttempt,
    *,
    pause_after_ms: int,
) -> bool | None:
    """Pause a subscription after an attempt that failed; return False if it was paused already, None without a reason.

    Args:
        circuit: of its receiver, with this failure.
        pause_after_ms: of nothing but failures; 0: never for that.
    """
    now_ms = context.clock.now_ms()
    since_ms = circuit.failing_since_ms or now_ms
    if attempt.status == HTTP_GONE:
        reason = "its receiver returned status 410, Gone"
    elif pause_after_ms and now_ms - since_ms >= pause_after_ms:
        failure = attempt.error or f"it returns status {attempt.status}"
        reason = f"its receiver has accepted no callback for {(now_ms - since_ms) // 3_600_000} hours: {failure}"
    else:
        return None
    pause = SubscriptionPause(int(subscription.id), now_ms, since_ms, reason, context.ids)
    if not await context.queue.write_until_reached(_pause_subscriptions, pause):
        return False
    _log.warning(
        "a subscription was paused",
        subscription_id=pause.subscription_id,
        app_id=subscription.app_id,
        failing_since_ms=since_ms,
        why=reason,
        fix_hint=f"waypost callbacks resume {pause.subscription_id}",
    )
    return True


def _pause_subscriptions(connection: Connection, pauses: Sequence[SubscriptionPause]) -> list[bool]:
    """Pause subscriptions, and notify their apps; return for each whether it was done.

    Callbacks that wait for a paused subscription stay, and new ones join them. The app's other
    subscriptions are notified now, the paused one itself once it is resumed.
    """
    rows = [pause_subscription(connection, pause.subscription_id, pause.at_ms, pause.reason) for pause in pauses]
    for pause, row in zip(pauses, rows, strict=True):
        app = None if row is None else app_by_id(connection, row.app_id)
        if row is None or app is None:
            continue
        recorder = StateChangeRecorder(connection, pause.ids, pause.at_ms)
        names = {"subscription_id": str(row.id), "tag": row.tag, "url": row.url}
        recorder.emit_callback(
            app,
            mode=PAUSED.mode,
            subject=PAUSE_EVENT_SUBJECT,
            event_name="subscription-paused",
            render=partial(paused_body, app, pause.at_ms, **names, since_ms=pause.since_ms, reason=pause.reason),
        )
        recorder.write()
    return [row is not None for row in rows]
