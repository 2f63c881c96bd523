"""Pauses subscriptions whose receivers fail, and notifies their apps."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.base.telemetry.logs import log
from waypost.callbacks.circuits import Circuit
from waypost.domain.callbacks import CallbackAttempt, Subscription
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.store.accounts.partners import app_by_id
from waypost.store.callbacks.receivers import pause_subscription
from waypost.store.database import Database
from waypost.wire.callbacks.kinds import PAUSED
from waypost.wire.callbacks.template_events import paused_body

HTTP_GONE: Final = 410
"""The receiver reports that it no longer exists. Source: Standard Webhooks 1.0, "Deliverability and reliability"."""

PAUSE_EVENT_SUBJECT: Final = "account"
"""The scope in which order is kept: the same as for other events that are about no recipient."""

_log = log("callbacks")


@dataclass(frozen=True, slots=True)
class SubscriptionPause:
    """A subscription to be paused.

    Attributes:
        reason: in a sentence.
        since_ms: nothing has been delivered since then.
    """

    subscription_id: int
    at_ms: int
    since_ms: int
    reason: str
    ids: Ids


class SubscriptionPauser:
    """Pauses subscriptions whose receivers keep failing.

    Args:
        pause_after_ms: after so long of nothing but failures a subscription is paused; 0: never.

    Attributes:
        pauses: how many subscriptions this process has paused.
    """

    def __init__(self, *, database: Database, clock: Clock, ids: Ids, pause_after_ms: int) -> None:
        self._database = database
        self._clock = clock
        self._ids = ids
        self._pause_after_ms = pause_after_ms
        self.pauses = 0

    async def pause_if_due(self, subscription: Subscription, circuit: Circuit, attempt: CallbackAttempt) -> bool:
        """Pause a subscription after an attempt that failed; return False where there is no reason to.

        Args:
            subscription: which.
            circuit: of its receiver, with this failure.
            attempt: that failed.
        """
        now_ms = self._clock.now_ms()
        reason = find_pause_reason(circuit, attempt, now_ms, self._pause_after_ms)
        if reason is None:
            return False
        since_ms = circuit.failing_since_ms or now_ms
        subscription_pause = SubscriptionPause(int(subscription.id), now_ms, since_ms, reason, self._ids)
        if await self._database.join(pause_subscriptions, subscription_pause):
            self.pauses += 1
            log_pause(subscription_pause, subscription.app_id)
        return True


def find_pause_reason(circuit: Circuit, attempt: CallbackAttempt, now_ms: int, pause_after_ms: int) -> str | None:
    """Return why the subscription is to be paused after an attempt that failed; None where it is not.

    Args:
        circuit: of its receiver, with this failure.
        attempt: that failed.
        now_ms: by the clock that due times follow.
        pause_after_ms: of nothing but failures; 0: never for that.
    """
    failure = attempt.error or f"it returns status {attempt.status}"
    if attempt.status == HTTP_GONE:
        return "its receiver returned status 410, Gone"
    since_ms = circuit.failing_since_ms
    if pause_after_ms and since_ms is not None and now_ms - since_ms >= pause_after_ms:
        hours = (now_ms - since_ms) // 3_600_000
        return f"its receiver has accepted no callback for {hours} hours: {failure}"
    return None


def pause_subscriptions(connection: Connection, pauses: Sequence[SubscriptionPause]) -> list[bool]:
    """Pause subscriptions, and notify their apps; return for each whether it was done.

    Callbacks that wait for a paused subscription stay, and new ones join them. The app's other
    subscriptions are notified now, the paused one itself once it is resumed.
    """
    return [_pause_and_notify(connection, subscription_pause) for subscription_pause in pauses]


def _pause_and_notify(connection: Connection, subscription_pause: SubscriptionPause) -> bool:
    row = pause_subscription(
        connection, subscription_pause.subscription_id, subscription_pause.at_ms, subscription_pause.reason
    )
    if row is None:
        return False
    app = app_by_id(connection, row.app_id)
    if app is not None:
        recorder = StateChangeRecorder(connection, subscription_pause.ids, subscription_pause.at_ms)
        recorder.emit_callback(
            app,
            mode=PAUSED.mode,
            subject=PAUSE_EVENT_SUBJECT,
            message_id=None,
            event_name="subscription-paused",
            render=partial(
                paused_body,
                app,
                subscription_pause.at_ms,
                subscription_id=str(row.id),
                tag=row.tag,
                url=row.url,
                since_ms=subscription_pause.since_ms,
                reason=subscription_pause.reason,
            ),
        )
        recorder.write()
    return True


def log_pause(subscription_pause: SubscriptionPause, subscription_app_id: str) -> None:
    """Write one log record of a pause."""
    _log.warning(
        "a subscription was paused",
        subscription_id=subscription_pause.subscription_id,
        app_id=subscription_app_id,
        failing_since_ms=subscription_pause.since_ms,
        why=subscription_pause.reason,
        fix_hint=f"waypost callbacks resume {subscription_pause.subscription_id}",
    )
