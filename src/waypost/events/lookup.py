"""The messages and apps that a transaction's events are about, looked up together."""

from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import Connection

from waypost.base.ids import Ids
from waypost.domain.app import App
from waypost.domain.event import Event, InboundEvent, OddStatusEvent, PaymentEvent, StatusEvent
from waypost.domain.postback import answered_id_of
from waypost.notifications.state_changes import StateChangeRecorder
from waypost.store.accounts.partners import apps_with_operators
from waypost.store.apps.operator_history import has_carried
from waypost.store.messages.messages import MessageRow, messages_by_ids, messages_by_operator_ids


class EventLookup:
    """Looks up once what several events of a batch are about.

    Args:
        connection: the writer's.
        events: the batch.
    """

    def __init__(self, connection: Connection, events: Iterable[Event]) -> None:
        self._connection = connection
        ours: set[str] = set()
        theirs: set[str] = set()
        statuses: list[StatusEvent | PaymentEvent | OddStatusEvent] = []
        for event in events:
            match event:
                case StatusEvent() | PaymentEvent() | OddStatusEvent():
                    statuses.append(event)
                    if event.message_id is not None:
                        ours.add(event.message_id)
                    else:
                        theirs.add(event.operator_message_id)
                case InboundEvent():
                    theirs |= {one for one in (event.reply_to, reacted_to(event)) if one}
                    answered = answered_id_of(event)
                    if answered is not None:
                        ours.add(answered)
                case _:
                    continue
        self._left: dict[tuple[str, str, int], bool] = {}
        self._by_id = messages_by_ids(connection, ours)
        missing = {
            event.operator_message_id
            for event in statuses
            if event.message_id is not None and event.message_id not in self._by_id
        }
        self._by_operator_id = messages_by_operator_ids(connection, theirs | missing)
        self._known: dict[str, tuple[App | None, str | None]] = {}
        rows = (*self._by_id.values(), *self._by_operator_id.values())
        self._known |= apps_with_operators(connection, {row.app_id for row in rows})

    def message(self, message_id: str | None, operator_message_id: str | None) -> MessageRow | None:
        """The message's row: by our id first, by the operator's second; None when it is not ours."""
        found = self._by_id.get(message_id or "")
        return found if found is not None else self._by_operator_id.get(operator_message_id or "")

    def app_of_message(self, row: MessageRow, operator_account_id: str) -> App | None:
        """The message's app, where this operator account may speak of the message.

        The one that carries the app may, and one that the app has left since, of what it may have been
        handed before (decision 0033).
        """
        app = self.app(row.app_id, operator_account_id)
        if app is not None:
            return app
        key = (row.app_id, operator_account_id, row.accepted_on_ms)
        if key not in self._left:
            self._left[key] = has_carried(self._connection, *key)
        return self._known[row.app_id][0] if self._left[key] else None

    def app_of(self, operator_account_id: str, app_id: str) -> App | None:
        """As `app`, the other way round, for handing on."""
        return self.app(app_id, operator_account_id)

    def app(self, app_id: str, operator_account_id: str) -> App | None:
        """One app, where it is this operator account's: nobody speaks for another account's apps."""
        if app_id not in self._known:
            found = apps_with_operators(self._connection, {app_id})
            self._known[app_id] = found.get(app_id, (None, None))
        app, carried_by = self._known[app_id]
        return app if carried_by == operator_account_id else None


def reacted_to(event: InboundEvent) -> str | None:
    """The operator's id of the message that a reaction is to; None where it is no reaction."""
    return event.text("message_id") or None if event.kind == "reaction" else None


@dataclass(frozen=True, slots=True)
class EventContext:
    """One transaction in which events are applied.

    Attributes:
        public_url: where receivers fetch media, without a slash at its end.
    """

    connection: Connection
    recorder: StateChangeRecorder
    book: EventLookup
    ids: Ids
    at_ms: int
    public_url: str
