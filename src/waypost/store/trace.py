"""One message's whole way, as it is stored; and what an app has lately sent and submitted."""

from typing import Any

from sqlalchemy import Connection, func, select

from waypost.store.journal import Lane
from waypost.store.tables import (
    attempts,
    callbacks,
    journal,
    message_events,
    messages,
    templates,
)


def message_counts(connection: Connection) -> dict[str, int]:
    """How many messages stand in each state."""
    rows = connection.execute(
        select(messages.c.state, func.count().label("messages")).group_by(messages.c.state)
    )
    return {row.state: row.messages for row in rows}


def newest_messages(connection: Connection, app_id: str, at_most: int) -> list[dict[str, Any]]:
    """What an app has sent, newest first: where each message stands, without its words."""
    columns = (
        messages.c.id, messages.c.destination, messages.c.kind, messages.c.state, messages.c.code,
        messages.c.reason, messages.c.operator_message_id, messages.c.accepted_on_ms,
    )  # fmt: skip
    found = select(*columns).where(messages.c.app_id == app_id)
    newest = found.order_by(messages.c.accepted_on_ms.desc(), messages.c.id.desc()).limit(at_most)
    return [dict(row) for row in connection.execute(newest).mappings()]


def newest_templates(connection: Connection, app_id: str, at_most: int) -> list[dict[str, Any]]:
    """What an app has submitted, newest first, and what became of it; deleted ones are left out."""
    columns = (
        templates.c.id, templates.c.element_name, templates.c.language_code, templates.c.category,
        templates.c.status, templates.c.quality, templates.c.reason, templates.c.operator_template_id,
        templates.c.created_on_ms,
    )  # fmt: skip
    found = select(*columns).where(templates.c.app_id == app_id, templates.c.status != "DELETED")
    newest = found.order_by(templates.c.id.desc()).limit(at_most)
    return [dict(row) for row in connection.execute(newest).mappings()]


def message_trace(connection: Connection, message_id: str) -> dict[str, Any] | None:
    """A message with its news and its callbacks with every attempt; None when there is none.

    Bodies and answers are text; the message's own words are left out. `waiting` is its entry in the
    journal while it has not been settled: how often it was tried, when it is due, and why it was put off.
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
    shown["waiting"] = _waiting(connection, row["source"], message_id)
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


def _waiting(connection: Connection, source: str, message_id: str) -> dict[str, Any] | None:
    columns = (journal.c.lane, journal.c.attempt, journal.c.due_ms, journal.c.note)
    found = select(*columns).where(
        journal.c.lane.in_((int(Lane.SUBMISSIONS), int(Lane.DOUBTS))),
        journal.c.grp == source,
        journal.c.ref == f"message {message_id}",
    )
    row = connection.execute(found.limit(1)).mappings().one_or_none()
    return None if row is None else {**row, "lane": Lane(row["lane"]).name.lower()}


def _callback(connection: Connection, shown: dict[str, Any]) -> dict[str, Any]:
    tries = select(attempts).where(attempts.c.callback_id == shown["id"]).order_by(attempts.c.id)
    shown["body"] = shown["body"].decode()
    shown["attempts"] = [
        {**one, "answer": one["answer"].decode("utf-8", "replace")}
        for one in connection.execute(tries).mappings()
    ]
    return shown
