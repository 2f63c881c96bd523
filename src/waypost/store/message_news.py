"""What a message's trace tells."""

from typing import Final

from sqlalchemy import Connection, bindparam, select

from waypost.store.tables import message_events


def has_news(connection: Connection, message_id: str, news: str) -> bool:
    """Whether a message's trace has this news."""
    asked = {"at_id": message_id, "at_news": news}
    return connection.execute(_HAS_NEWS, asked).first() is not None


_HAS_NEWS: Final = (
    select(message_events.c.id)
    .where(
        message_events.c.message_id == bindparam("at_id"),
        message_events.c.news == bindparam("at_news"),
    )
    .limit(1)
)
