"""The log of one message of an app: its own steps, and the callbacks about it. Every query is found by an index."""

from typing import Any, Final

from sqlalchemy import Connection, select

from waypost.domain.message import LoggedEvent
from waypost.store.callbacks.callbacks import read_callback_body
from waypost.store.messages.messages import TIMED_STATES
from waypost.store.tables import callbacks, inbound_messages, message_events, messages, subscriptions

MAX_LOGGED_EVENTS: Final = 200
"""Maximum events of one log; a message has about ten."""


def sent_message_events(
    connection: Connection, app_id: str, message_id: str, from_ms: int, to_ms: int
) -> list[LoggedEvent]:
    """Return the steps of a message that an app has sent, of a time range, oldest first.

    Args:
        connection: any.
        app_id: the app; of another app's message nothing is returned.
        message_id: ours, or the operator's.
        from_ms: completed from then on.
        to_ms: and before then.
    """
    row = _find_message(connection, app_id, message_id)
    if row is None:
        return []
    steps: list[tuple[int, str]] = [(row["accepted_on_ms"], "accepted")]
    steps += [
        (row[f"{state.value}_on_ms"], state.value) for state in TIMED_STATES if row[f"{state.value}_on_ms"] is not None
    ]
    query = select(message_events.c.event, message_events.c.at_ms).where(message_events.c.message_id == row["id"])
    newest = query.order_by(message_events.c.id).limit(MAX_LOGGED_EVENTS)
    steps += [(event.at_ms, event.event) for event in connection.execute(newest)]
    steps.sort(key=lambda step: step[0])
    begun = [None, *(at_ms for at_ms, _ in steps)]
    events = [
        LoggedEvent(name, at_ms, start_ms, row["destination"])
        for (at_ms, name), start_ms in zip(steps, begun, strict=False)
    ]
    return [event for event in events if from_ms <= (event.end_ms or 0) < to_ms][:MAX_LOGGED_EVENTS]


def callback_events(
    connection: Connection, app_id: str, message_id: str, from_ms: int, to_ms: int
) -> list[LoggedEvent]:
    """Return the callbacks about a message that were emitted within a time range, oldest first.

    Args:
        connection: any.
        app_id: the app; of another app's message nothing is returned.
        message_id: of a message that the app has sent or received; ours, or the operator's.
        from_ms: emitted from then on.
        to_ms: and before then; a few minutes later, because the callbacks of a received message are found by time.
    """
    row = _find_message(connection, app_id, message_id)
    in_range = (callbacks.c.app_id == app_id, callbacks.c.created_on_ms >= from_ms, callbacks.c.created_on_ms < to_ms)
    query = select(callbacks).where(*in_range).order_by(callbacks.c.created_on_ms).limit(MAX_LOGGED_EVENTS)
    if row is not None:
        found = connection.execute(query.where(callbacks.c.message_id == row["id"])).mappings()
        return [_callback_event(callback, row["destination"]) for callback in found]
    received = select(inbound_messages.c.recipient_id).where(
        inbound_messages.c.operator_message_id == message_id, inbound_messages.c.app_id == app_id
    )
    recipient_id = connection.execute(received).scalar_one_or_none()
    if recipient_id is None:
        return []
    own = select(subscriptions.c.id).where(subscriptions.c.app_id == app_id)
    of_sender = query.where(callbacks.c.subscription_id.in_(own), callbacks.c.subject == str(recipient_id))
    return [
        _callback_event(callback, "")
        for callback in connection.execute(of_sender).mappings()
        if message_id.encode() in read_callback_body(callback["body"], callback["message_id"])
    ]


def _find_message(connection: Connection, app_id: str, message_id: str) -> Any:
    for column in (messages.c.id, messages.c.operator_message_id):
        query = select(messages).where(column == message_id, messages.c.app_id == app_id).limit(1)
        row = connection.execute(query).mappings().one_or_none()
        if row is not None:
            return row
    return None


def _callback_event(row: Any, destination: str) -> LoggedEvent:
    end_ms = row["ended_on_ms"]
    if row["attempted_on_ms"] is not None:  # the first attempt delivered it
        end_ms = row["attempted_on_ms"] + (row["duration_ms"] or 0)
    return LoggedEvent(row["event"], end_ms, row["created_on_ms"], destination, row["delivered"])
