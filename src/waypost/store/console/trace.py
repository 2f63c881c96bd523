"""One message's whole way, as it is stored; and what an app has lately sent and submitted."""

from typing import Any, Final

from sqlalchemy import Connection, func, select

from waypost.domain.message import MessageState
from waypost.store.callbacks.callbacks import shown_callback
from waypost.store.callbacks.receivers import receiver_failure
from waypost.store.callbacks.subscriptions import live_group
from waypost.store.messages.one_time_codes import codes_among
from waypost.store.queue.job_subjects import JobSubject, SubjectKind
from waypost.store.queue.jobs import JobState, QueueName
from waypost.store.tables import callbacks, message_events, messages, queue_jobs, templates

MOST_LOOKED_AT: Final = 20_000
"""Of a group's entries, where one is looked for by what it is about: no index leads there."""


def message_counts(connection: Connection) -> dict[str, int]:
    """How many messages stand in each state."""
    rows = connection.execute(select(messages.c.state, func.count().label("messages")).group_by(messages.c.state))
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
    `holds_code`: it was sent with a one-time code. `words_kept` is false once retention has cleared what it said; its callbacks are gone by then too.
    """
    found = select(messages).where(messages.c.id == message_id)
    row = connection.execute(found).mappings().one_or_none()
    if row is None:
        return None
    shown = {name: value for name, value in row.items() if name not in ("content", "request")}
    shown["words_kept"] = bool(row["content"])
    shown["holds_code"] = bool(codes_among(connection, row["partner_id"], [row]))
    news = select(message_events).where(message_events.c.message_id == message_id)
    shown["news"] = [dict(line) for line in connection.execute(news.order_by(message_events.c.id)).mappings()]
    shown["waiting"] = _waiting(connection, row["source"], message_id, row["state"])
    told = (
        select(callbacks)
        .where(callbacks.c.message_id == message_id)
        .order_by(callbacks.c.created_on_ms, callbacks.c.sequence)  # ids of one millisecond have no order
    )
    shown["callbacks"] = [shown_callback(connection, dict(line)) for line in connection.execute(told).mappings()]
    return shown


def whole_way(connection: Connection, message_id: str) -> dict[str, Any] | None:
    """As `message_trace`, with the request as it came, and what still waits of its callbacks.

    Args:
        connection: any.
        message_id: ours; the operator's where we have no such id.
    """
    trace = message_trace(connection, message_id)
    if trace is None:
        by_operators = select(messages.c.id).where(messages.c.operator_message_id == message_id)
        ours = connection.execute(by_operators.limit(1)).scalar_one_or_none()
        trace = None if ours is None else message_trace(connection, ours)
        if trace is None:
            return None
    request = select(messages.c.request).where(messages.c.id == trace["id"])
    trace["request"] = connection.execute(request).scalar_one()
    for told in trace["callbacks"]:
        is_open = told["ended_on_ms"] is None
        group = live_group(told["subscription_id"])
        told["waiting"] = (
            _find_job(connection, QueueName.CALLBACKS, group, JobSubject(SubjectKind.CALLBACK, told["id"]))
            if is_open
            else None
        )
        if told["waiting"] is not None:
            told["waiting"] |= receiver_failure(connection, told["subscription_id"])
    return trace


def way_of_app(connection: Connection, partner_id: int, app_id: str, message_id: str) -> dict[str, Any] | None:
    """As `whole_way`, of one of an app's messages; None where there is none, or it is another's."""
    mine = (messages.c.partner_id == partner_id, messages.c.app_id == app_id)
    for name in (messages.c.id, messages.c.operator_message_id):
        found = select(messages.c.id).where(name == message_id, *mine).limit(1)
        ours = connection.execute(found).scalar_one_or_none()
        if ours is not None:
            return whole_way(connection, ours)
    return None


def words_of_app(connection: Connection, partner_id: int, app_id: str, message_id: str) -> tuple[Any, bool] | None:
    """Kind, content and request of one of an app's messages, and whether it has a one-time code; None: it has none such."""
    found = select(
        messages.c.id, messages.c.kind, messages.c.content, messages.c.request, messages.c.destination,
        messages.c.template_id,
    ).where(
        messages.c.id == message_id,
        messages.c.partner_id == partner_id,
        messages.c.app_id == app_id,
    )  # fmt: skip
    row = connection.execute(found).one_or_none()
    if row is None:
        return None
    sent = {"id": row.id, "kind": row.kind, "template_id": row.template_id, "content": row.content}
    return row, bool(codes_among(connection, partner_id, [sent]))


def _waiting(connection: Connection, source: str, message_id: str, state: str) -> dict[str, Any] | None:
    """The message's own entry: it waits to be sent, or, where it is uncertain, for news."""
    waits = _find_job(connection, QueueName.OUTBOUND, source, JobSubject(SubjectKind.MESSAGE, message_id))
    if waits is None and state == MessageState.UNCERTAIN:
        waits = _find_job(
            connection, QueueName.UNCONFIRMED, source, JobSubject(SubjectKind.UNCONFIRMED_MESSAGE, message_id)
        )
    return waits


def _find_job(connection: Connection, queue_name: QueueName, group: str, subject: JobSubject) -> dict[str, Any] | None:
    """The entry of a group that is about something, looked for among the oldest `MOST_LOOKED_AT`."""
    oldest = (
        select(queue_jobs)
        .where(queue_jobs.c.queue == int(queue_name), queue_jobs.c.concurrency_group == group)
        .order_by(queue_jobs.c.position)
        .limit(MOST_LOOKED_AT)
        .subquery()
    )
    names = ("queue", "position", "attempt", "defects", "due_ms", "state", "note")
    columns = [oldest.c[name] for name in names]
    found = select(*columns).where(oldest.c.ref == subject.ref).order_by(oldest.c.position).limit(1)
    row = connection.execute(found).mappings().one_or_none()
    if row is None:
        return None
    words = {"queue": QueueName(row["queue"]).name, "state": JobState(row["state"]).name}
    return {**row, **{name: word.lower() for name, word in words.items()}}
