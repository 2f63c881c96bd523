"""What a message's trace tells, and the writing of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, select

from waypost.store.bulk_statements import Adding
from waypost.store.tables import message_events

TRIED: Final = "tried"
"""The word of an attempt at the operator that did not end a message: the detail says why, and its code first."""


@dataclass(frozen=True, slots=True)
class MessageTraceEvent:
    """One line of a message's trace."""

    message_id: str
    news: str
    at_ms: int
    moved: bool
    detail: str = ""


def add_trace_events(connection: Connection, news: Sequence[MessageTraceEvent]) -> None:
    """Add lines to the traces of messages, in the order in which they happened."""
    _ADD.run(
        connection,
        [
            {
                "message_id": line.message_id,
                "news": line.news,
                "at_ms": line.at_ms,
                "moved": line.moved,
                "detail": line.detail,
            }
            for line in news
        ],
    )


def has_news(connection: Connection, message_id: str, news: str) -> bool:
    """Whether a message's trace has this news."""
    asked = {"at_id": message_id, "at_news": news}
    return connection.execute(_HAS_NEWS, asked).first() is not None


_ADD: Final = Adding(message_events, "message_id", "news", "at_ms", "moved", "detail")
_HAS_NEWS: Final = (
    select(message_events.c.id)
    .where(message_events.c.message_id == bindparam("at_id"), message_events.c.news == bindparam("at_news"))
    .limit(1)
)
