"""Traces of messages as stored, and what an app has recently sent and submitted."""

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, func, select

from waypost.domain.message import MessageState
from waypost.store.callbacks.callbacks import read_callback_details
from waypost.store.callbacks.receivers import receiver_failure
from waypost.store.messages.lists import MESSAGE_ORDER
from waypost.store.messages.messages import TIMED_STATES, find_messages_with_codes, read_request
from waypost.store.queue.job_subjects import JobState, JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import find_open_callback
from waypost.store.sql import is_of_app, read_all, read_dict, read_dicts
from waypost.store.tables import callbacks, message_events, messages, queue_jobs, templates
from waypost.store.trace_events import SEND_ATTEMPTED

_TIME_COLUMNS: Final = {state: f"{state.value}_on_ms" for state in TIMED_STATES}
_EVENT_ORDER: Final = {  # of events of one millisecond; others come later
    name: n for n, name in enumerate((SEND_ATTEMPTED, MessageState.UNCERTAIN.value, *_TIME_COLUMNS))
}
MAX_SCANNED_JOBS: Final = 20_000  # of a group's jobs, when one is searched for by its subject: no index leads there


def message_counts(connection: Connection) -> dict[str, int]:
    """Return the number of messages in each state."""
    counted = select(messages.c.state, func.count()).group_by(messages.c.state)
    return dict(read_all(connection, counted, tuple))


def newest_messages(connection: Connection, app_id: str, at_most: int) -> list[dict[str, Any]]:
    """Return the messages that an app has sent, newest first: their states, without content."""
    names = "id destination kind state code reason operator_message_id accepted_on_ms"
    query = select(*(messages.c[name] for name in names.split())).where(messages.c.app_id == app_id)
    return read_dicts(connection, MESSAGE_ORDER.sort_newest_first(query, None).limit(at_most))


def newest_templates(connection: Connection, app_id: str, at_most: int) -> list[dict[str, Any]]:
    """Return the templates that an app has submitted, newest first, with their status, without deleted ones."""
    names = "id element_name language_code category status quality reason operator_template_id created_on_ms"
    query = select(*(templates.c[name] for name in names.split())).where(
        templates.c.app_id == app_id, templates.c.status != "DELETED"
    )
    return read_dicts(connection, query.order_by(templates.c.id.desc()).limit(at_most))


def message_trace(connection: Connection, message_id: str) -> dict[str, Any] | None:
    """Return a message with its events and its callbacks with every attempt; None if there is none.

    Bodies and responses are text; the message's own content is left out. `waiting` is its unfinished job:
    its attempts, when it is due, and why it was retried later. `holds_code`: it was sent with a one-time
    code. `content_retained` is false once retention has cleared the content; its callbacks are deleted by then.
    """
    query = select(messages).where(messages.c.id == message_id)
    row = read_dict(connection, query)
    if row is None:
        return None
    trace = {name: value for name, value in row.items() if name not in ("content", "request", "compressed_request")}
    trace["content_retained"] = bool(row["content"])
    trace["holds_code"] = bool(find_messages_with_codes(connection, row["partner_id"], [row]))
    for name in _TIME_COLUMNS.values():
        del trace[name]
    trace["events"] = _read_events(connection, row)
    # Its own job: it waits to be sent or, if the message is uncertain, for a status
    waiting = _find_job(connection, QueueName.OUTBOUND, row["source"], JobSubject(SubjectKind.MESSAGE, message_id))
    if waiting is None and row["state"] == MessageState.UNCERTAIN:
        subject = JobSubject(SubjectKind.UNCONFIRMED_MESSAGE, message_id)
        waiting = _find_job(connection, QueueName.UNCONFIRMED, row["source"], subject)
    trace["waiting"] = waiting
    callback_query = (
        select(callbacks)
        .where(callbacks.c.message_id == message_id)
        .order_by(callbacks.c.created_on_ms, callbacks.c.sequence)  # ids of one millisecond have no order
    )
    trace["callbacks"] = [read_callback_details(connection, row) for row in read_dicts(connection, callback_query)]
    return trace


def _read_events(connection: Connection, row: Mapping[Any, Any]) -> list[dict[str, Any]]:
    """Return the events of a message, oldest first: the times in its row, and the events with rows of their own."""
    columns = ("id", "message_id", "event", "at_ms", "applied", "detail")
    query = select(*(message_events.c[name] for name in columns)).where(message_events.c.message_id == row["id"])
    events: list[dict[str, Any]] = [
        dict(zip(columns, (state.value, row["id"], state.value, row[column], True, ""), strict=True))
        for state, column in _TIME_COLUMNS.items()
        if row[column] is not None
    ]
    events += read_dicts(connection, query.order_by(message_events.c.id))
    return sorted(events, key=lambda event: (event["at_ms"], _EVENT_ORDER.get(event["event"], len(_EVENT_ORDER))))


def full_message_trace(connection: Connection, message_id: str) -> dict[str, Any] | None:
    """Like `message_trace`, with the request as received, and the waiting jobs of its callbacks.

    Args:
        message_id: ours; the operator's where we have no such id.
    """
    trace = message_trace(connection, message_id)
    if trace is None:
        by_operator_id = select(messages.c.id).where(messages.c.operator_message_id == message_id)
        own_id = connection.execute(by_operator_id.limit(1)).scalar_one_or_none()
        trace = None if own_id is None else message_trace(connection, own_id)
        if trace is None:
            return None
    request_query = select(messages.c.request, messages.c.compressed_request).where(messages.c.id == trace["id"])
    trace["request"] = read_request(connection.execute(request_query).one())
    for callback in trace["callbacks"]:
        job = find_open_callback(connection, callback["id"])
        callback["waiting"] = None
        if job is not None:
            failure = receiver_failure(connection, callback["subscription_id"])
            callback["waiting"] = _job_details(job) | failure
    return trace


def app_message_trace(connection: Connection, partner_id: int, app_id: str, message_id: str) -> dict[str, Any] | None:
    """Like `full_message_trace`, for one of an app's messages; None if the app has no such message."""
    own = is_of_app(messages, partner_id, app_id)
    for id_column in (messages.c.id, messages.c.operator_message_id):
        query = select(messages.c.id).where(id_column == message_id, own).limit(1)
        own_id = connection.execute(query).scalar_one_or_none()
        if own_id is not None:
            return full_message_trace(connection, own_id)
    return None


class MessageContent(NamedTuple):
    """The content of one message, and how a partner requested it."""

    id: str
    kind: str
    content: bytes
    request: str  # the form as received; empty once retention has cleared it, as `content` is
    template_id: str | None


def app_message_content(
    connection: Connection, partner_id: int, app_id: str, message_id: str
) -> tuple[MessageContent, bool] | None:
    """Return the content of one of an app's messages, and whether it holds a one-time code; or None."""
    own = is_of_app(messages, partner_id, app_id)
    stored = connection.execute(select(messages).where(messages.c.id == message_id, own)).one_or_none()
    if stored is None:
        return None
    row = MessageContent(stored.id, stored.kind, stored.content, read_request(stored), stored.template_id)
    return row, bool(find_messages_with_codes(connection, partner_id, [row._asdict()]))


def _find_job(connection: Connection, queue_name: QueueName, group: str, subject: JobSubject) -> dict[str, Any] | None:
    """Return the job of a group with this subject, searched among the oldest `MAX_SCANNED_JOBS`."""
    oldest = (
        select(queue_jobs)
        .where(queue_jobs.c.queue == int(queue_name), queue_jobs.c.concurrency_group == group)
        .order_by(queue_jobs.c.position)
        .limit(MAX_SCANNED_JOBS)
        .subquery()
    )
    query = select(oldest).where(oldest.c.ref == subject.ref).order_by(oldest.c.position).limit(1)
    row = read_dict(connection, query)
    return None if row is None else _job_details(row)


def _job_details(row: Mapping[Any, Any]) -> dict[str, Any]:
    names = ("queue", "position", "attempt", "defects", "due_ms", "state", "note")
    value_names = {"queue": QueueName(row["queue"]).name, "state": JobState(row["state"]).name}
    return {name: row[name] for name in names} | {name: text.lower() for name, text in value_names.items()}
