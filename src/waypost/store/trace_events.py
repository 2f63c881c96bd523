"""Trace events of messages, and the statements that store and find them."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from sqlalchemy import Connection, bindparam, select

from waypost.store.bulk_statements import BulkInsert
from waypost.store.tables import message_events

SEND_ATTEMPTED: Final = "attempted"
"""Event of an attempt at the operator that did not end a message; its detail has the error code and the reason."""


class MessageTraceEvent(NamedTuple):
    """One event in a message's trace, as its row has it."""

    message_id: str
    event: str
    at_ms: int
    is_applied: bool
    detail: str = ""


def add_trace_events(connection: Connection, events: Sequence[MessageTraceEvent]) -> None:
    """Add events to the traces of messages, in the order in which they happened."""
    _INSERT_EVENTS.run(connection, events)


def has_trace_event(connection: Connection, message_id: str, event: str) -> bool:
    """Return True if a message's trace has this event."""
    parameters = {"at_id": message_id, "at_event": event}
    return connection.execute(_FIND_EVENT, parameters).first() is not None


_INSERT_EVENTS: Final = BulkInsert(message_events, "message_id", "event", "at_ms", "applied", "detail")
_FIND_EVENT: Final = (
    select(message_events.c.id)
    .where(message_events.c.message_id == bindparam("at_id"), message_events.c.event == bindparam("at_event"))
    .limit(1)
)
