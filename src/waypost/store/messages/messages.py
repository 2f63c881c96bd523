"""Messages, and the jobs that submit them to the operator."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, cast

import msgspec
from sqlalchemy import Connection, or_, select

from waypost.domain.message import STATE_NAMES, Message, MessageState, TemplateSend
from waypost.domain.templates.template import Category
from waypost.store.bulk_statements import BulkInsert, BulkSelect, BulkUpdate
from waypost.store.encoding import (
    MARKETING_PASSTHROUGH,
    REQUESTS,
    TEMPLATE_PASSTHROUGH,
    content_kind,
    decode_content,
    encode_content,
    json_values,
)
from waypost.store.queue.job_subjects import JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import NewJob, enqueue_jobs
from waypost.store.sql import equals_any, read_dicts
from waypost.store.tables import messages, templates
from waypost.store.trace_events import MessageTraceEvent, add_trace_events
from waypost.store.write_through_cache import CachedTable, cache_new_rows


class MessageRow(NamedTuple):
    """A message as stored, without the partner's request. Columns with a default are set after acceptance."""

    id: str
    partner_id: int
    app_id: str
    source: str
    destination: str
    kind: str
    template_id: str | None
    content: bytes
    sandbox: bool
    state: str
    unconfirmed: bool
    accepted_on_ms: int
    changed_on_ms: int
    recipient_id: int | None = None
    operator_message_id: str | None = None
    code: int | None = None
    reason: str | None = None
    enqueued_on_ms: int | None = None
    sent_on_ms: int | None = None
    delivered_on_ms: int | None = None
    read_on_ms: int | None = None
    request_id: str | None = None


TIMED_STATES: Final = (MessageState.ENQUEUED, MessageState.SENT, MessageState.DELIVERED, MessageState.READ)
"""States whose times are columns of a message's row, in the order of these columns; others are trace events."""

CACHED_MESSAGES: Final[CachedTable[str, MessageRow]] = CachedTable("messages", attrgetter("content"))
"""Newly accepted messages, while this process has them in memory."""


def record_messages(connection: Connection, accepted: Sequence[Message]) -> list[None]:
    """Write messages and the jobs that carry them, within one transaction.

    Called with everything that waits at this moment. Ids are new, so none can exist already.
    """
    rows: list[MessageRow] = []
    stored_rows: list[tuple[Any, ...]] = []
    jobs: list[NewJob] = []
    for message in accepted:
        row = _accepted_row(message)
        rows.append(row)
        request = REQUESTS.compress(message.request.encode())
        stored_rows.append((*row[:_ACCEPTED_COLUMNS], "", request, row.request_id))
        jobs.append(submission_job(message))
    _INSERT_MESSAGES.run(connection, stored_rows)
    cache_new_rows(connection, CACHED_MESSAGES, rows)
    enqueue_jobs(connection, jobs)
    return [None] * len(accepted)


def read_request(row: Any) -> str:
    """Return the partner's request from a row with `request` and `compressed_request`; empty if it was cleared."""
    return row.request if row.compressed_request is None else REQUESTS.decompress(row.compressed_request).decode()


def _accepted_row(message: Message) -> MessageRow:
    content = message.content
    return MessageRow(
        message.id,
        message.partner_id,
        message.app_id,
        message.source,
        message.destination,
        content_kind(content),
        content.template_id if isinstance(content, TemplateSend) else None,
        encode_content(content),
        message.sandbox,
        STATE_NAMES[MessageState.ACCEPTED],
        False,
        message.accepted_on_ms,
        message.accepted_on_ms,
        request_id=message.request_id or None,
    )


def submission_job(message: Message) -> NewJob:
    """Return the job that carries a message: paced by source, in order per source and destination."""
    return NewJob(
        QueueName.OUTBOUND,
        concurrency_group=message.source,
        ordering_key=f"{message.source} {message.destination}",
        subject=JobSubject(SubjectKind.MESSAGE, message.id),
        due_ms=message.accepted_on_ms,
    )


def decode_message(row: MessageRow) -> Message:
    """Return a message from its row, without the partner's request."""
    return Message(
        id=row.id,
        partner_id=row.partner_id,
        app_id=row.app_id,
        source=row.source,
        destination=row.destination,
        content=decode_content(row.kind, row.content),
        accepted_on_ms=row.accepted_on_ms,
        sandbox=row.sandbox,
        request_id=row.request_id or "",
    )


def messages_by_ids(connection: Connection, ids: set[str]) -> dict[str, MessageRow]:
    """Return rows by our id, locked in a writing transaction; ids without a row are left out."""
    rows = _MESSAGES_BY_IDS.run(connection, ids)
    return dict(zip(map(_message_id, rows), rows, strict=True))


def messages_by_operator_ids(connection: Connection, ids: set[str]) -> dict[str, MessageRow]:
    """Return rows by the operator's id, locked in a writing transaction; ids without a row are left out."""
    rows = sorted(_MESSAGES_BY_OPERATOR_IDS.run(connection, ids), key=lambda row: row.id)
    return {row.operator_message_id: row for row in rows if row.operator_message_id}


class MessageChange(NamedTuple):
    """The new state of a message after an event."""

    id: str
    state: MessageState
    at_ms: int
    recipient_id: int | None
    operator_message_id: str | None
    unconfirmed: bool = False
    code: int | None = None
    reason: str | None = None
    # when it reached each of `TIMED_STATES`; None where it has not
    times_ms: tuple[int | None, ...] = (None,) * len(TIMED_STATES)
    # its recipient or its id at the operator differs from its row. Both are indexed, at random places, so that they are
    # written only then
    changes_ids: bool = True


def change_messages(
    connection: Connection, changes: Sequence[MessageChange], events: Sequence[MessageTraceEvent]
) -> None:
    """Write the new states of messages, and the events that led to them."""
    with_ids: list[tuple[Any, ...]] = []
    others: list[tuple[Any, ...]] = []
    for change in changes:
        state = STATE_NAMES[change.state]
        columns = (state, change.at_ms, change.unconfirmed, change.code, change.reason, *change.times_ms)
        if change.changes_ids:
            with_ids.append((*columns, change.recipient_id, change.operator_message_id, change.id))
        else:
            others.append((*columns, change.id))
    if with_ids:
        _UPDATE_STATES_AND_IDS.run(connection, with_ids)
    if others:
        _UPDATE_STATES.run(connection, others)
    if events:
        add_trace_events(connection, events)


_TIME_COLUMNS: Final = [f"{state.value}_on_ms" for state in TIMED_STATES]
_STATE_COLUMNS: Final = ("state", "changed_on_ms", "unconfirmed", "code", "reason", *_TIME_COLUMNS)
_message_id: Final = attrgetter("id")
_MESSAGES_BY_IDS: Final = BulkSelect(messages, MessageRow, "id")
_MESSAGES_BY_OPERATOR_IDS: Final = BulkSelect(messages, MessageRow, "operator_message_id")
_ACCEPTED_COLUMNS: Final = MessageRow._fields.index("recipient_id")
_INSERT_MESSAGES: Final = BulkInsert(
    messages, *MessageRow._fields[:_ACCEPTED_COLUMNS], "request", "compressed_request", "request_id"
)
_UPDATE_STATES: Final = BulkUpdate(messages, "id", *_STATE_COLUMNS)
_UPDATE_STATES_AND_IDS: Final = BulkUpdate(messages, "id", *_STATE_COLUMNS, "recipient_id", "operator_message_id")


_MESSAGE_ID_MEMBERS: Final = frozenset({"id", "gsId", "gs_id", "message_id", "msgId"})
MAX_NAMED_MESSAGES: Final = 500  # maximum number of messages that one callback may refer to
_AUTHENTICATION: Final = Category.AUTHENTICATION.value
_decode_json = msgspec.json.Decoder().decode


def find_messages_with_codes(connection: Connection, partner_id: int, rows: Collection[Mapping[Any, Any]]) -> set[str]:
    """Return the ids of those of a partner's messages that hold a one-time code.

    A passthrough names its template and has no template id: if no template of that name is known here, or
    one of them is for authentication, its values count as codes.

    Args:
        rows: with `id`, `kind`, `template_id` and `content`.
    """
    template_ids = {row["template_id"] for row in rows if row["template_id"]}
    names = {row["id"]: _template_name(row) for row in rows if row["kind"] in _NAMING_KINDS}
    authentication_ids = _authentication_template_ids(connection, template_ids) if template_ids else set[str]()
    names_without_codes = _names_without_codes(connection, partner_id, set(names.values())) if names else set[str]()
    return {
        row["id"]
        for row in rows
        if row["template_id"] in authentication_ids
        or (row["id"] in names and names[row["id"]] not in names_without_codes)
    }


def add_code_flags(connection: Connection, partner_id: int, rows: Collection[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows, each with `holds_code`."""
    codes = find_messages_with_codes(connection, partner_id, rows)
    return [{**row, "holds_code": row["id"] in codes} for row in rows]


def find_ids_with_codes(connection: Connection, partner_id: int, names: Iterable[str]) -> set[str]:
    """Return those of these ids, ours or the operator's, that belong to a partner's messages with one-time codes."""
    ids = sorted(set(names))[:MAX_NAMED_MESSAGES]
    if not ids:
        return set()
    queries = (_MESSAGES_BY_ID, _MESSAGES_BY_OPERATOR_ID)
    own = (query.where(messages.c.partner_id == partner_id) for query in queries)
    rows = [row for query in own for row in read_dicts(connection, query, ids=ids)]
    codes = find_messages_with_codes(connection, partner_id, rows)
    named = {name for row in rows if row["id"] in codes for name in (row["id"], row["operator_message_id"])}
    return named.intersection(ids)


def callback_holds_code(connection: Connection, row: Mapping[str, Any]) -> bool:
    """Return True if a callback is about a message with a one-time code, or about a reply to one.

    Args:
        row: with `partner_id`, `message_id` and `body`, its bytes.
    """
    ids = set[str]() if row["message_id"] is None else {str(row["message_id"])}
    try:
        named = json_values(_decode_json(row["body"]))
        ids |= {value for name, value in named if name in _MESSAGE_ID_MEMBERS and isinstance(value, str)}
    except (msgspec.DecodeError, RecursionError):
        return True  # an unreadable body is not shown
    return bool(find_ids_with_codes(connection, row["partner_id"], ids))


def find_templates_without_codes(connection: Connection, ids: Collection[str]) -> set[str]:
    """Return those of these ids that belong to templates that are known, and are not for authentication."""
    if not ids:
        return set()
    known = set(connection.execute(_KNOWN_TEMPLATES, {"ids": sorted(ids)}).scalars())
    return known - _authentication_template_ids(connection, ids)


def _template_name(row: Mapping[Any, Any]) -> str:
    """Return the template name in a passthrough; empty once retention has cleared it."""
    if not row["content"]:
        return ""
    body = cast("Mapping[str, Any]", _decode_json(row["content"])).get("body")
    name = cast("Mapping[str, Any]", body).get("name") if isinstance(body, Mapping) else None
    return name if isinstance(name, str) else ""


def _authentication_template_ids(connection: Connection, ids: Collection[str]) -> set[str]:
    return set(connection.execute(_AUTHENTICATION_TEMPLATES, {"ids": sorted(ids)}).scalars())


def _names_without_codes(connection: Connection, partner_id: int, names: Collection[str]) -> set[str]:
    """Return the names that are known here, but not of a template for authentication."""
    query = _TEMPLATES_BY_NAME.where(templates.c.partner_id == partner_id)
    rows = connection.execute(query, {"names": sorted(names)}).all()
    authentication_names = {row.element_name for row in rows if _AUTHENTICATION in (row.category, row.old_category)}
    return {row.element_name for row in rows} - authentication_names


_NAMING_KINDS: Final = (TEMPLATE_PASSTHROUGH, MARKETING_PASSTHROUGH)
_SELECT_MESSAGES: Final = select(
    *(messages.c[name] for name in ("id", "operator_message_id", "kind", "template_id", "content"))
)
_MESSAGES_BY_ID: Final = _SELECT_MESSAGES.where(equals_any(messages.c.id, "ids"))
_MESSAGES_BY_OPERATOR_ID: Final = _SELECT_MESSAGES.where(equals_any(messages.c.operator_message_id, "ids"))
_AUTHENTICATION_TEMPLATES: Final = select(templates.c.id).where(
    equals_any(templates.c.id, "ids"),
    or_(templates.c.category == _AUTHENTICATION, templates.c.old_category == _AUTHENTICATION),
)
_KNOWN_TEMPLATES: Final = select(templates.c.id).where(equals_any(templates.c.id, "ids"))
_TEMPLATES_BY_NAME: Final = select(templates.c.element_name, templates.c.category, templates.c.old_category).where(
    equals_any(templates.c.element_name, "names")
)
