"""One message's whole way, as it is stored."""

from typing import Any

from sqlalchemy import Connection, func, select

from waypost.store.tables import attempts, callbacks, message_events, messages


def message_counts(connection: Connection) -> dict[str, int]:
    """How many messages stand in each state."""
    rows = connection.execute(
        select(messages.c.state, func.count().label("messages")).group_by(messages.c.state)
    )
    return {row.state: row.messages for row in rows}


def message_trace(connection: Connection, message_id: str) -> dict[str, Any] | None:
    """A message with its news and its callbacks with every attempt; None when there is none.

    Bodies and answers are text; the message's own words are left out.
    """
    found = select(messages).where(messages.c.id == message_id)
    row = connection.execute(found).mappings().one_or_none()
    if row is None:
        return None
    shown = {name: value for name, value in row.items() if name not in ("content", "request")}
    news = select(message_events).where(message_events.c.message_id == message_id)
    shown["news"] = [
        dict(line) for line in connection.execute(news.order_by(message_events.c.id)).mappings()
    ]
    told = (
        select(callbacks)
        .where(callbacks.c.message_id == message_id)
        .order_by(
            callbacks.c.created_on_ms, callbacks.c.sequence
        )  # ids of one millisecond have no order
    )
    shown["callbacks"] = [
        _callback(connection, dict(line)) for line in connection.execute(told).mappings()
    ]
    return shown


def _callback(connection: Connection, shown: dict[str, Any]) -> dict[str, Any]:
    tries = select(attempts).where(attempts.c.callback_id == shown["id"]).order_by(attempts.c.id)
    shown["body"] = shown["body"].decode()
    shown["attempts"] = [
        {**one, "answer": one["answer"].decode("utf-8", "replace")}
        for one in connection.execute(tries).mappings()
    ]
    return shown
