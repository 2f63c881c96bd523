"""The effects of one transaction: message states, their trace, and the callbacks they cause.

Dispatch and events both move messages. A callback is rendered here, once, for every subscription
that includes it at this moment, and joins the callbacks queue in the same transaction as the state.
"""

from collections.abc import Callable, Sequence, Set
from functools import partial
from operator import attrgetter
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection

from waypost.base.ids import Ids
from waypost.domain.app import App
from waypost.domain.callbacks import MODE_ALL
from waypost.domain.event import StatusEvent
from waypost.domain.message import STATE_NAMES, STATES_BY_NAME, MessageKind, MessageState
from waypost.domain.phone_number import parse_group_id
from waypost.store.callbacks.callbacks import CallbackRow, enqueue_callbacks, reserve_sequence_numbers
from waypost.store.callbacks.subscriptions import active_subscriptions
from waypost.store.encoding import TEMPLATE_MESSAGE_KINDS
from waypost.store.messages.messages import TIMED_STATES, MessageChange, MessageRow, change_messages
from waypost.store.trace_events import MessageTraceEvent
from waypost.wire.callbacks import callback_v2, callback_v3
from waypost.wire.callbacks.kinds import GROUP_STATUS, STATUS_KINDS

RenderBody = Callable[[int], bytes | None]
"""Returns the body of a callback in a version, 2 or 3; None where that version has none."""


class _PendingCallback(NamedTuple):
    app: App
    subscription_id: int
    subject: str
    message_id: str | None
    event_name: str
    body: bytes
    due_ms: int


class _ActiveSubscription(NamedTuple):
    """A subscription."""

    subscription_id: int
    version: int
    modes: frozenset[str]
    has_all_modes: bool  # it includes every callback


class StateChangeRecorder:
    """Collects the events of one transaction, and writes them at its end.

    Args:
        ids: for callbacks.
        hold_ms: how long after a message was accepted its events are delayed, so that the sender can
            store the message's id first.
    """

    def __init__(self, connection: Connection, ids: Ids, at_ms: int, *, hold_ms: int = 0) -> None:
        self._connection = connection
        self._ids = ids
        self._at_ms = at_ms
        self._hold_ms = hold_ms
        self._changes: dict[str, MessageChange] = {}
        self._trace_events: list[MessageTraceEvent] = []
        self._traced_names: set[tuple[str, str]] = set()
        self._callbacks: list[_PendingCallback] = []
        self._times_ms: dict[str, list[int | None]] = {}
        self.merged_recipients: dict[int, int] = {}
        """Recipients that this transaction has found to be one person: a row's id, and that of the one that counts."""
        self._subscriptions_by_app: dict[str, list[_ActiveSubscription]] = {}

    def state_of(self, row: MessageRow) -> tuple[MessageState, bool]:
        """Return a message's state with this transaction's changes, and whether its failure is unconfirmed."""
        change = self._changes.get(row.id)
        if change is not None:
            return change.state, change.unconfirmed
        return STATES_BY_NAME[row.state], row.unconfirmed

    def time_of(self, row: MessageRow, state: MessageState) -> int | None:
        """Return when a message reached a state of `TIMED_STATES`; None if it has not, or has passed it by."""
        times_ms = self._times_ms.get(row.id) or _times_of(row)
        return times_ms[_TIME_COLUMNS[state]] if state in _TIME_COLUMNS else None

    def add_trace_event(self, message_id: str, event_name: str, detail: str = "") -> None:
        """Add an event that changes no state: trace only."""
        self._trace_events.append(
            MessageTraceEvent(message_id, event_name, self._at_ms, is_applied=False, detail=detail)
        )
        self._traced_names.add((message_id, event_name))

    def has_trace_event(self, message_id: str, event_name: str) -> bool:
        """True if this transaction has added this event to the trace of a message."""
        return (message_id, event_name) in self._traced_names

    def change_message_state(
        self,
        row: MessageRow,
        app: App,
        states: Sequence[MessageState],
        *,
        recipient_id: int | None,
        operator_message_id: str | None,
        event: StatusEvent | None = None,
        code: int | None = None,
        reason: str | None = None,
        unconfirmed: bool = False,
    ) -> None:
        """Move a message through these states; each but `uncertain` causes a callback.

        Args:
            states: in order; at least one.
            recipient_id: whom it is for; callbacks are in order per recipient.
            operator_message_id: where the operator has given one.
            event: the operator's status, where it is one.
            code: of a failure.
            reason: of a failure.
            unconfirmed: the failure is an assumption of ours.
        """
        times_ms = self._times_ms[row.id] = self._times_ms.get(row.id) or list(_times_of(row))
        for state in states:
            column, name = _TIME_COLUMNS.get(state), STATE_NAMES[state]
            if column is not None:
                times_ms[column] = self._at_ms
            else:
                self._trace_events.append(
                    MessageTraceEvent(row.id, name, self._at_ms, is_applied=True, detail=reason or "")
                )
            if state is MessageState.UNCERTAIN:
                continue
            # The operator's event of a group's message. Source: ledger row 77
            is_group_event = event is not None and event.is_of_group and state is event.state
            render = _render_group_event if is_group_event else _render_message_event
            self.emit_callback(
                app,
                mode=GROUP_STATUS.mode if is_group_event else STATUS_KINDS[name].mode,
                subject=str(recipient_id or row.destination),
                message_id=row.id,
                event_name=name,
                render=partial(render, app, self._at_ms, row, state, operator_message_id, event, code, reason),
                accepted_on_ms=row.accepted_on_ms,
            )
        known = (row.recipient_id, row.operator_message_id)
        self._changes[row.id] = MessageChange(
            row.id,
            states[-1],
            self._at_ms,
            recipient_id,
            operator_message_id,
            unconfirmed,
            code,
            reason,
            tuple(times_ms),
            changes_ids=(recipient_id, operator_message_id) != known,
        )

    def emit_callback(
        self,
        app: App,
        *,
        mode: str,
        subject: str,
        event_name: str,
        render: RenderBody,
        message_id: str | None = None,
        accepted_on_ms: int = 0,
        other_mode: str | None = None,
    ) -> None:
        """Emit one callback for each subscription of the app that has this mode.

        Args:
            app: whose subscriptions.
            mode: of the table of modes.
            subject: the recipient's id, or another text within which order is kept.
            event_name: one word for the trace.
            render: returns the body; called at once, for each version that is subscribed.
            message_id: ours, where it is about a message.
            accepted_on_ms: of the message that it is about; then it is delayed as long as set.
            other_mode: another mode that includes it; a subscription with both gets it once.
        """
        due_ms = max(self._at_ms, accepted_on_ms + self._hold_ms)
        bodies: dict[int, bytes | None] = {}
        for subscription in self._subscriptions_by_app.get(app.id) or self._subscriptions_of(app):
            if not (subscription.has_all_modes or mode in subscription.modes or other_mode in subscription.modes):
                continue
            version = subscription.version
            if version not in bodies:
                bodies[version] = render(version)
            body = bodies[version]
            if body is not None:
                self._callbacks.append(
                    _PendingCallback(app, subscription.subscription_id, subject, message_id, event_name, body, due_ms)
                )

    def has_subscription(self, app: App, mode: str) -> bool:
        """True if any subscription of the app has this mode: for events that cost a query to prepare."""
        for subscription in self._subscriptions_of(app):
            if subscription.has_all_modes or mode in subscription.modes:
                return True
        return False

    def write(self) -> None:
        """Write everything, in the order in which it happened; what is about one person, under one recipient."""
        changes = list(self._changes.values())
        if self.merged_recipients:
            changes = [change._replace(recipient_id=self._current(change.recipient_id)) for change in changes]
            self._callbacks = [
                callback._replace(subject=str(self._current(int(callback.subject))))
                if callback.subject.isdecimal()
                else callback
                for callback in self._callbacks
            ]
        change_messages(self._connection, changes, self._trace_events)
        remaining: dict[tuple[int, str], int] = {}
        for callback in self._callbacks:
            key = (callback.subscription_id, callback.subject)
            remaining[key] = remaining.get(key, 0) + 1
        last_sequences = reserve_sequence_numbers(self._connection, remaining)
        rows: list[CallbackRow] = []
        due_ms: list[int] = []
        for callback_id, callback in zip(self._ids.many(len(self._callbacks)), self._callbacks, strict=True):
            app, subscription_id, subject, message_id, event_name, body, callback_due_ms = callback
            key = (subscription_id, subject)
            remaining[key] -= 1
            rows.append(
                CallbackRow(
                    callback_id,
                    app.partner_id,
                    app.id,
                    subscription_id,
                    subject,
                    last_sequences[key] - remaining[key],
                    message_id,
                    event_name,
                    body,
                    self._at_ms,
                )
            )
            due_ms.append(callback_due_ms)
        enqueue_callbacks(self._connection, rows, due_ms)

    def _current(self, recipient_id: int | None) -> int | None:
        return self.merged_recipients.get(recipient_id or 0, recipient_id)

    def _subscriptions_of(self, app: App) -> list[_ActiveSubscription]:
        if app.id not in self._subscriptions_by_app:
            self.read_subscriptions({app.id})
        return self._subscriptions_by_app[app.id]

    def read_subscriptions(self, apps: Set[str]) -> None:
        """Read the subscriptions of apps, once in a transaction; those of more than one with one query."""
        unknown = apps - self._subscriptions_by_app.keys()
        if not unknown:
            return
        for app_id in unknown:
            self._subscriptions_by_app[app_id] = []
        for row in active_subscriptions(self._connection, unknown):
            modes = frozenset(row.modes.split(","))
            subscription = _ActiveSubscription(row.id, row.version, modes, row.version == 3 and MODE_ALL in modes)
            self._subscriptions_by_app[row.app_id].append(subscription)


_times_of: Final[Callable[[MessageRow], tuple[int | None, ...]]] = attrgetter(
    "enqueued_on_ms", "sent_on_ms", "delivered_on_ms", "read_on_ms"
)
_TIME_COLUMNS: Final = {state: column for column, state in enumerate(TIMED_STATES)}


def _render_message_event(
    app: App,
    at_ms: int,
    row: MessageRow,
    state: MessageState,
    operator_message_id: str | None,
    event: StatusEvent | None,
    code: int | None,
    reason: str | None,
    version: int,
) -> bytes | None:
    """Return the body of a message's event in a version; None where that version has none.

    Args:
        event: the operator's status; None where dispatch emits the event.
    """
    if state is MessageState.ENQUEUED:
        return _enqueued_body(app, at_ms, row, operator_message_id, version)
    if state is MessageState.FAILED and (event is None or version == 2):
        body = callback_v2.failed_body if version == 2 else callback_v3.failed_body
        return body(
            app,
            at_ms,
            message_id=row.id,
            operator_message_id=operator_message_id,
            destination=_bare_destination(row) if version == 2 else row.destination,
            code=code or 0,
            reason=reason or "",
        )
    if event is None:
        return None
    if version == 2:
        return callback_v2.status_body(app, at_ms, event, message_id=row.id, destination=row.destination)
    return callback_v3.status_body(app, event, message_id=row.id)


def _render_group_event(*details: Any) -> bytes | None:
    """Return the body of an operator's event of a group's message, which version 2 does not have."""
    return None if details[-1] == 2 else _render_message_event(*details)


def _enqueued_body(app: App, at_ms: int, row: MessageRow, operator_message_id: str | None, version: int) -> bytes:
    if version == 2:
        of_template = row.kind in TEMPLATE_MESSAGE_KINDS
        return callback_v2.enqueued_body(
            app,
            at_ms,
            message_id=row.id,
            operator_message_id=operator_message_id or "",
            kind=MessageKind.TEMPLATE if of_template else MessageKind.SESSION,
            destination=_bare_destination(row),
        )
    return callback_v3.enqueued_body(
        app, at_ms, message_id=row.id, operator_message_id=operator_message_id, destination=row.destination
    )


def _bare_destination(row: MessageRow) -> str:
    return parse_group_id(row.destination) or row.destination
