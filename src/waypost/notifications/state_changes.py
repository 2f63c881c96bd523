"""The effects of one transaction: message states, their trace, and the callbacks they cause.

Dispatch and events both move messages. A callback is rendered here, once, for every subscription
that includes it at this moment, and joins the callbacks queue in the same transaction as the state.
"""

from collections import Counter
from collections.abc import Callable, Sequence, Set
from typing import NamedTuple

from sqlalchemy import Connection

from waypost.base.ids import Ids
from waypost.domain.app import App
from waypost.domain.callbacks import MODE_ALL
from waypost.domain.event import StatusEvent
from waypost.domain.message import MessageKind, MessageState
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
    modes: tuple[str, ...]
    subject: str
    message_id: str | None
    event_name: str
    render: RenderBody
    not_before_ms: int


class _ActiveSubscription(NamedTuple):
    """A subscription.

    Attributes:
        has_all_modes: it includes every callback.
    """

    subscription_id: int
    version: int
    modes: frozenset[str]
    has_all_modes: bool


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
        return MessageState(row.state), row.unconfirmed

    def time_of(self, row: MessageRow, state: MessageState) -> int | None:
        """Return when a message reached a state of `TIMED_STATES`; None if it has not, or has passed it by."""
        return self._times_of(row)[TIMED_STATES.index(state)] if state in TIMED_STATES else None

    def _times_of(self, row: MessageRow) -> list[int | None]:
        times_ms = self._times_ms.get(row.id)
        if times_ms is None:
            times_ms = [row.enqueued_on_ms, row.sent_on_ms, row.delivered_on_ms, row.read_on_ms]
            self._times_ms[row.id] = times_ms
        return times_ms

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
        times_ms = self._times_of(row)
        for state in states:
            if state in TIMED_STATES:
                times_ms[TIMED_STATES.index(state)] = self._at_ms
            else:
                self._trace_events.append(
                    MessageTraceEvent(row.id, state.value, self._at_ms, is_applied=True, detail=reason or "")
                )
            if state is not MessageState.UNCERTAIN:
                self.emit_callback(
                    app,
                    mode=GROUP_STATUS.mode if is_group_event(state, event) else STATUS_KINDS[state.value].mode,
                    subject=str(recipient_id or row.destination),
                    message_id=row.id,
                    event_name=state.value,
                    render=MessageEventBody(app, self._at_ms, row, state, operator_message_id, event, code, reason),
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
            render: returns the body; called once for each version that is subscribed.
            message_id: ours, where it is about a message.
            accepted_on_ms: of the message that it is about; then it is delayed as long as set.
            other_mode: another mode that includes it; a subscription with both gets it once.
        """
        not_before_ms = accepted_on_ms + self._hold_ms
        modes = (mode,) if other_mode is None else (mode, other_mode)
        self._callbacks.append(_PendingCallback(app, modes, subject, message_id, event_name, render, not_before_ms))

    def has_subscription(self, app: App, mode: str) -> bool:
        """True if any subscription of the app has this mode: for events that cost a query to prepare."""
        self.read_subscriptions({app.id})
        return any(
            subscription.has_all_modes or mode in subscription.modes
            for subscription in self._subscriptions_by_app[app.id]
        )

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
        rendered = self._render_callbacks()
        remaining = Counter((subscription, callback.subject) for subscription, callback, _ in rendered)
        last_sequences = reserve_sequence_numbers(self._connection, remaining)
        rows: list[CallbackRow] = []
        due_ms: list[int] = []
        for subscription_id, callback, body in rendered:
            key = (subscription_id, callback.subject)
            remaining[key] -= 1
            rows.append(
                CallbackRow(
                    self._ids.new(),
                    callback.app.partner_id,
                    callback.app.id,
                    subscription_id,
                    callback.subject,
                    last_sequences[key] - remaining[key],
                    callback.message_id,
                    callback.event_name,
                    body,
                    self._at_ms,
                )
            )
            due_ms.append(max(self._at_ms, callback.not_before_ms))
        enqueue_callbacks(self._connection, rows, due_ms)

    def _current(self, recipient_id: int | None) -> int | None:
        return self.merged_recipients.get(recipient_id or 0, recipient_id)

    def _render_callbacks(self) -> list[tuple[int, _PendingCallback, bytes]]:
        """Return each callback for each subscription that includes it: the subscription, the callback and the body."""
        if not self._callbacks:
            return []
        self.read_subscriptions({callback.app.id for callback in self._callbacks})
        rendered: list[tuple[int, _PendingCallback, bytes]] = []
        for callback in self._callbacks:
            bodies: dict[int, bytes | None] = {}
            for subscription in self._subscriptions_by_app[callback.app.id]:
                if not subscription.has_all_modes and subscription.modes.isdisjoint(callback.modes):
                    continue
                if subscription.version not in bodies:
                    bodies[subscription.version] = callback.render(subscription.version)
                body = bodies[subscription.version]
                if body is not None:
                    rendered.append((subscription.subscription_id, callback, body))
        return rendered

    def read_subscriptions(self, apps: Set[str]) -> None:
        """Read the subscriptions of apps, once in a transaction; those of more than one with one query."""
        unknown = apps - self._subscriptions_by_app.keys()
        if not unknown:
            return
        self._subscriptions_by_app |= {app_id: [] for app_id in unknown}
        for row in active_subscriptions(self._connection, unknown):
            modes = frozenset(row.modes.split(","))
            subscription = _ActiveSubscription(row.id, row.version, modes, row.version == 3 and MODE_ALL in modes)
            self._subscriptions_by_app[row.app_id].append(subscription)


def is_group_event(state: MessageState, event: StatusEvent | None) -> bool:
    """True if a state comes of the operator's event of a group's message. Source: ledger row 77."""
    return event is not None and event.is_of_group and state is event.state


class MessageEventBody(NamedTuple):
    """The body of one message event, rendered when a subscription includes it.

    Attributes:
        row: of the message.
        event: the operator's status; None where dispatch emits the event.
    """

    app: App
    at_ms: int
    row: MessageRow
    state: MessageState
    operator_message_id: str | None
    event: StatusEvent | None
    code: int | None
    reason: str | None

    def __call__(self, version: int) -> bytes | None:
        """Return the body in a version; None where that version has none."""
        match self.state:
            case _ if version == 2 and is_group_event(self.state, self.event):
                return None
            case MessageState.ENQUEUED:
                return self._enqueued_body(version)
            case MessageState.FAILED if self.event is None or version == 2:
                return self._failed_body(version)
            case _ if self.event is None:
                return None
            case _ if version == 2:
                return callback_v2.status_body(
                    self.app, self.at_ms, self.event, message_id=self.row.id, destination=self.row.destination
                )
            case _:
                return callback_v3.status_body(self.app, self.event, message_id=self.row.id)

    @property
    def _bare_destination(self) -> str:
        return parse_group_id(self.row.destination) or self.row.destination

    def _enqueued_body(self, version: int) -> bytes:
        if version == 2:
            of_template = self.row.kind in TEMPLATE_MESSAGE_KINDS
            return callback_v2.enqueued_body(
                self.app,
                self.at_ms,
                message_id=self.row.id,
                operator_message_id=self.operator_message_id or "",
                kind=MessageKind.TEMPLATE if of_template else MessageKind.SESSION,
                destination=self._bare_destination,
            )
        return callback_v3.enqueued_body(
            self.app,
            self.at_ms,
            message_id=self.row.id,
            operator_message_id=self.operator_message_id,
            destination=self.row.destination,
        )

    def _failed_body(self, version: int) -> bytes:
        body = callback_v2.failed_body if version == 2 else callback_v3.failed_body
        return body(
            self.app,
            self.at_ms,
            message_id=self.row.id,
            operator_message_id=self.operator_message_id,
            destination=self._bare_destination if version == 2 else self.row.destination,
            code=self.code or 0,
            reason=self.reason or "",
        )
