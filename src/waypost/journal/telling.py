"""What one transaction has to tell: message states, their trace, and the callbacks they cause.

Dispatch and events both move messages. A callback is rendered here, once, for every subscription
that wants it at this moment, and joins the callbacks lane in the same transaction as the state.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, bindparam, select

from waypost.base.ids import Ids
from waypost.domain.app import App
from waypost.domain.event import StatusEvent
from waypost.domain.message import MessageKind, MessageState
from waypost.store.callbacks import add_callbacks, count_up
from waypost.store.journal import Lane, NewEntry, append_entries
from waypost.store.messages import MessageChange, MessageNews, change_messages
from waypost.store.tables import subscriptions
from waypost.wire.callback_v2 import enqueued_body, failed_body, status_body

_LISTENING: Final = select(subscriptions.c.id, subscriptions.c.app_id, subscriptions.c.modes).where(
    subscriptions.c.app_id.in_(bindparam("apps", expanding=True)), subscriptions.c.active
)


@dataclass(frozen=True, slots=True)
class _Callback:
    app: App
    mode: str
    about: str
    message_id: str | None
    news: str
    body: bytes


class Telling:
    """Collects what happened in one transaction, and writes it at its end.

    Args:
        connection: the writer's.
        ids: for callbacks.
        at_ms: now.
    """

    def __init__(self, connection: Connection, ids: Ids, at_ms: int) -> None:
        self._connection = connection
        self._ids = ids
        self._at_ms = at_ms
        self._changes: dict[str, MessageChange] = {}
        self._news: list[MessageNews] = []
        self._callbacks: list[_Callback] = []

    def state_of(self, row: Any) -> tuple[MessageState, bool]:
        """Where a message stands with this transaction's news, and whether a failure is doubted."""
        change = self._changes.get(row.id)
        if change is not None:
            return change.state, change.doubted
        return MessageState(row.state), row.doubted

    def note(self, message_id: str, news: str, detail: str = "") -> None:
        """News that moves nothing: trace only."""
        self._news.append(MessageNews(message_id, news, self._at_ms, moved=False, detail=detail))

    def message_moves(
        self,
        row: Any,
        app: App,
        steps: Sequence[MessageState],
        *,
        recipient_id: int | None,
        operator_message_id: str | None,
        event: StatusEvent | None = None,
        code: int | None = None,
        reason: str | None = None,
        doubted: bool = False,
    ) -> None:
        """A message goes through these states; each but `uncertain` is called back.

        Args:
            row: of the message.
            app: its app.
            steps: in order; at least one.
            recipient_id: whom it is for; callbacks are in order per recipient.
            operator_message_id: where the operator has named it.
            event: what the operator said, of a status.
            code: of a failure.
            reason: of a failure.
            doubted: the failure is our doubt.
        """
        for state in steps:
            self._news.append(
                MessageNews(row.id, state.value, self._at_ms, moved=True, detail=reason or "")
            )
            body = _body(app, self._at_ms, row, state, operator_message_id, event, code, reason)
            if body is not None:
                self.call_back(
                    app,
                    mode=state.value.upper(),
                    about=str(recipient_id or row.destination),
                    message_id=row.id,
                    news=state.value,
                    body=body,
                )
        self._changes[row.id] = MessageChange(
            row.id, steps[-1], self._at_ms, recipient_id, operator_message_id, doubted, code, reason
        )

    def call_back(
        self, app: App, *, mode: str, about: str, message_id: str | None, news: str, body: bytes
    ) -> None:
        """One callback for each subscription of the app that wants this mode.

        Args:
            app: whose.
            mode: of the table of modes.
            about: the recipient's id, or another text within which order is kept.
            message_id: ours, where it is about a message.
            news: one word for the trace.
            body: version 2.
        """
        self._callbacks.append(_Callback(app, mode, about, message_id, news, body))

    def write(self) -> None:
        """Write it all, in the order in which it happened."""
        change_messages(self._connection, list(self._changes.values()), self._news)
        wanted = self._wanted()
        left = Counter((subscription, callback.about) for subscription, callback in wanted)
        last = count_up(self._connection, left)
        rows: list[dict[str, Any]] = []
        entries: list[NewEntry] = []
        for subscription_id, callback in wanted:
            key = (subscription_id, callback.about)
            left[key] -= 1
            callback_id = self._ids.new()
            rows.append(
                {
                    "id": callback_id,
                    "partner_id": callback.app.partner_id,
                    "app_id": callback.app.id,
                    "subscription_id": subscription_id,
                    "about": callback.about,
                    "sequence": last[key] - left[key],
                    "message_id": callback.message_id,
                    "news": callback.news,
                    "body": callback.body,
                    "created_on_ms": self._at_ms,
                }
            )
            entries.append(
                NewEntry(
                    Lane.CALLBACKS,
                    group=f"subscription {subscription_id}",
                    order_key=f"{subscription_id} {callback.about}",
                    ref=callback_id,
                    due_ms=self._at_ms,
                )
            )
        add_callbacks(self._connection, rows)
        append_entries(self._connection, entries)

    def _wanted(self) -> list[tuple[int, _Callback]]:
        if not self._callbacks:
            return []
        apps = {callback.app.id for callback in self._callbacks}
        listening: dict[str, list[tuple[int, set[str]]]] = {}
        for row in self._connection.execute(_LISTENING, {"apps": list(apps)}):
            listening.setdefault(row.app_id, []).append((row.id, set(row.modes.split(","))))
        return [
            (subscription, callback)
            for callback in self._callbacks
            for subscription, modes in listening.get(callback.app.id, [])
            if callback.mode in modes or "ALL" in modes
        ]


def _body(
    app: App,
    at_ms: int,
    row: Any,
    state: MessageState,
    operator_message_id: str | None,
    event: StatusEvent | None,
    code: int | None,
    reason: str | None,
) -> bytes | None:
    match state:
        case MessageState.ENQUEUED:
            kind = MessageKind.SESSION if row.template_id is None else MessageKind.TEMPLATE
            return enqueued_body(
                app,
                at_ms,
                message_id=row.id,
                operator_message_id=operator_message_id or "",
                kind=kind,
                destination=row.destination,
            )
        case MessageState.FAILED:
            return failed_body(
                app,
                at_ms,
                message_id=row.id,
                operator_message_id=operator_message_id,
                destination=row.destination,
                code=code or 0,
                reason=reason or "",
            )
        case MessageState.SENT | MessageState.DELIVERED | MessageState.READ if event is not None:
            return status_body(app, at_ms, event, message_id=row.id, destination=row.destination)
        case _:
            return None
