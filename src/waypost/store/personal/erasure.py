"""Erasure of what is stored about one recipient, part by part, each a limited number of rows in one transaction.

The rows by which a person is found are erased last. So an erasure that was interrupted is continued by beginning
again, and finds what is left. Rows that work is still done for are left and counted: a message that waits to be sent,
a callback that waits for its receiver, an item that waits to be applied.
"""

import re
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from sqlalchemy import Column, ColumnElement, Connection, Table, delete, func, select, tuple_, update

from waypost.base.encryption import SecretBox
from waypost.domain.event import unreadable_body
from waypost.store.accounts.instance_keys import ENCRYPTED_COLUMNS
from waypost.store.encoding import CALLBACK_BODIES
from waypost.store.personal.export import Person, find_person, is_message_of
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import read_subject
from waypost.store.retention.rules import MAX_OPEN_WEBHOOKS, OPEN_MESSAGE_STATES
from waypost.store.tables import (
    app_users,
    attempts,
    audit_log,
    callbacks,
    idempotency_keys,
    inbound_media,
    inbound_messages,
    inbound_webhooks,
    media,
    message_events,
    messages,
    queue_jobs,
    rate_windows,
    recipients,
    request_log,
    sequences,
    subscriptions,
    webhook_items,
)

MAX_SEARCHED_ROWS: Final = 2_000
"""Rows that one call searches: a few milliseconds of one transaction."""
ERASED: Final = "erased"
"""Stands in the audit log where the number was."""


@dataclass(frozen=True, slots=True)
class ErasurePosition:
    """The position where an erasure continues.

    Attributes:
        part: name of the part.
        after: the last key that was searched, as JSON; empty at the beginning of a part.
        waiting: how many rows were left so far because work is still done for them.
    """

    part: str
    after: str = ""
    waiting: int = 0


@dataclass(slots=True)
class ErasurePage:
    """The results of one call.

    Attributes:
        erased: number of rows by table.
        waiting: number of rows by table that are left because work is still done for them.
        files: digests of files that no row refers to any more.
        following: where to continue; None: everything was searched.
    """

    erased: dict[str, int] = field(default_factory=dict[str, int])
    waiting: dict[str, int] = field(default_factory=dict[str, int])
    files: set[str] = field(default_factory=set[str])
    following: ErasurePosition | None = None

    def count(self, table: Table, erased: int, waiting: int = 0) -> None:
        """Count rows of a table."""
        for counts, number in ((self.erased, erased), (self.waiting, waiting)):
            if number:
                counts[table.name] = counts.get(table.name, 0) + number


@dataclass(frozen=True, slots=True)
class _Search:
    """One person, and what recognises values that concern it."""

    person: Person
    secret_box: SecretBox
    waiting_before: int
    page: ErasurePage = field(default_factory=ErasurePage)

    @property
    def names(self) -> Sequence[str]:
        return self.person.names

    def is_in(self, content: str | bytes) -> bool:
        """True if a name is anywhere in a content, and not within a longer number."""
        text = content.decode("utf-8", "replace") if isinstance(content, bytes) else content
        return any(re.search(rf"(?<![0-9]){re.escape(name)}(?![0-9])", text) for name in self.names)

    def is_value_of(self, json_text: bytes) -> bool:
        """True if a name is the whole of a value of a JSON text: other people's texts may mention it."""
        try:
            return any(value.lstrip("+") in self.names for value in _texts_in(msgspec.json.decode(json_text)))
        except (msgspec.DecodeError, UnicodeError):
            return self.is_in(json_text)


def erase_recipient(
    connection: Connection, number: str, position: ErasurePosition, secret_box: SecretBox
) -> ErasurePage:
    """Erase the next rows about the recipients with a phone number, of every partner.

    Args:
        connection: the writer's.
        number: digits.
        position: as returned before.
        secret_box: decrypts stored responses, which may have the number.

    Raises:
        KeyError: there is no such part.
    """
    part = _PARTS[position.part]
    search = _Search(find_person(connection, number), secret_box, position.waiting)
    after = None if not position.after else msgspec.json.decode(position.after)
    last = part(connection, search, after)
    waiting = position.waiting + sum(search.page.waiting.values())
    if last is not None:
        search.page.following = ErasurePosition(position.part, msgspec.json.encode(last).decode(), waiting)
    elif position.part != ERASURE_PARTS[-1]:
        following = ERASURE_PARTS[ERASURE_PARTS.index(position.part) + 1]
        search.page.following = ErasurePosition(following, "", waiting)
    return search.page


def _erase_messages(connection: Connection, search: _Search, after: Any) -> Any:
    rows, last = _window(
        connection, (messages.c.id, messages.c.state), messages.c.id, after, is_message_of(search.person)
    )
    ids = [row.id for row in rows if row.state not in OPEN_MESSAGE_STATES]
    search.page.count(message_events, _delete(connection, message_events.c.message_id, ids))
    search.page.count(messages, _delete(connection, messages.c.id, ids), len(rows) - len(ids))
    return last


def _erase_callbacks(connection: Connection, search: _Search, after: Any) -> Any:
    """Erase callbacks to the person's subject, and those of an app or account that name the person."""
    columns = (callbacks.c.id, callbacks.c.subject, callbacks.c.body, callbacks.c.ended_on_ms)
    rows, last = _window(connection, columns, callbacks.c.id, after)
    subjects = set(map(str, search.person.recipient_ids))
    found = [
        row
        for row in rows
        if row.subject in subjects
        or (not row.subject.isdecimal() and search.is_value_of(CALLBACK_BODIES.decompress(row.body)))
    ]
    ids = [row.id for row in found if row.ended_on_ms is not None]
    search.page.count(attempts, _delete(connection, attempts.c.callback_id, ids))
    search.page.count(callbacks, _delete(connection, callbacks.c.id, ids), len(found) - len(ids))
    return last


def _erase_items(connection: Connection, search: _Search, after: Any) -> Any:
    """Erase received messages and statuses, with the files that the messages name."""
    columns = (webhook_items.c.id, webhook_items.c.item)
    rows, last = _window(connection, columns, webhook_items.c.id, after)
    found = [row for row in rows if search.is_value_of(row.item)]
    open_ids = _open_item_ids(connection) if found else set[int]()
    ended = [row for row in found if row.id not in open_ids]
    readable = [row.item for row in ended if unreadable_body(row.item) is None]
    media_ids = {media_id for item in readable for media_id in _media_ids_in(msgspec.json.decode(item))}
    _erase_files(connection, search, media_ids)
    ids = [row.id for row in ended]
    search.page.count(webhook_items, _delete(connection, webhook_items.c.id, ids), len(found) - len(ended))
    return last


def _erase_received(connection: Connection, search: _Search, after: Any) -> Any:
    columns = (inbound_messages.c.operator_message_id,)
    is_own = inbound_messages.c.recipient_id.in_(search.person.recipient_ids)
    rows, last = _window(connection, columns, inbound_messages.c.operator_message_id, after, is_own)
    ids = [row.operator_message_id for row in rows]
    search.page.count(inbound_messages, _delete(connection, inbound_messages.c.operator_message_id, ids))
    return last


def _erase_webhooks(connection: Connection, search: _Search, after: Any) -> Any:
    """Erase bodies of webhooks that name the person, also those with others: their items are stored or applied."""
    columns = (inbound_webhooks.c.id, inbound_webhooks.c.body, inbound_webhooks.c.compressed)
    rows, last = _window(connection, columns, inbound_webhooks.c.id, after)
    ids = [row.id for row in rows if search.is_in(zlib.decompress(row.body) if row.compressed else row.body)]
    search.page.count(inbound_webhooks, _delete(connection, inbound_webhooks.c.id, ids))
    return last


def _erase_responses(connection: Connection, search: _Search, after: Any) -> Any:
    """Erase idempotency keys whose key, path or response has the number, and what rate limits count by it."""
    table, owner = idempotency_keys, ENCRYPTED_COLUMNS[-1].owner
    primary = list(table.primary_key.columns)
    query = select(*primary, table.c.response).order_by(*primary).limit(MAX_SEARCHED_ROWS)
    if after is not None:
        query = query.where(tuple_(*primary) > tuple_(*after))
    rows = connection.execute(query).all()
    for row in rows:
        response = "" if row.response is None else search.secret_box.open(row.response, owner=owner(row))
        if search.is_in(f"{row.route} {row.key} {response}"):
            is_row = [column == value for column, value in zip(primary, row, strict=False)]
            search.page.count(table, connection.execute(delete(table).where(*is_row)).rowcount)
    return list(rows[-1][: len(primary)]) if len(rows) == MAX_SEARCHED_ROWS else None


def _erase_requests(connection: Connection, search: _Search, after: Any) -> Any:
    """Erase logged requests that name the person."""
    columns = request_log.c
    texts = (
        columns.recipient,
        columns.request,
        columns.response,
        columns.explanation,
        columns.message,
        columns.request_id,
    )
    rows, last = _window(connection, (columns.id, *texts), columns.id, after)
    ids = [row.id for row in rows if search.is_in(" ".join(row[1:]))]
    search.page.count(request_log, _delete(connection, columns.id, ids))
    return last


def _erase_rest(connection: Connection, search: _Search, _after: Any) -> Any:
    """Erase what an index leads to, the rows that identify the person last."""
    names, ids = search.names, search.person.recipient_ids
    search.page.count(rate_windows, _delete(connection, rate_windows.c.subject, names))
    for name in names:
        for column in (audit_log.c.subject, audit_log.c.detail):
            has_name = column.contains(name, autoescape=True)
            connection.execute(update(audit_log).where(has_name).values({column: func.replace(column, name, ERASED)}))
    waiting = connection.execute(
        select(func.count()).where(queue_jobs.c.ordering_key.in_(names) | queue_jobs.c.concurrency_group.in_(names))
    ).scalar_one()
    search.page.count(queue_jobs, 0, waiting)
    if waiting:
        return None
    search.page.count(app_users, _delete(connection, app_users.c.phone_number, names))
    of_person = sequences.c.subscription_id.in_(select(subscriptions.c.id)) & sequences.c.subject.in_(map(str, ids))
    search.page.count(sequences, connection.execute(delete(sequences).where(of_person)).rowcount)
    return None


def _erase_identity(connection: Connection, search: _Search, _after: Any) -> Any:
    """Erase the rows by which the person is found, unless anything is left that an erasure has to find again."""
    ids = search.person.recipient_ids
    search.page.count(recipients, 0 if search.waiting_before else _delete(connection, recipients.c.id, ids))
    return None


# fmt: off
_PARTS: Final[dict[str, Callable[[Connection, _Search, Any], Any]]] = {  # in this order
    "messages":  _erase_messages,
    "callbacks": _erase_callbacks,
    "items":     _erase_items,
    "received":  _erase_received,
    "webhooks":  _erase_webhooks,
    "responses": _erase_responses,
    "requests":  _erase_requests,
    "rest":      _erase_rest,
    "identity":  _erase_identity,
}
# fmt: on
ERASURE_PARTS: Final = tuple(_PARTS)
"""The parts, in the order of an erasure."""
ERASED_TABLES: Final = (
    messages, message_events, callbacks, attempts, webhook_items, inbound_messages, inbound_webhooks, inbound_media,
    idempotency_keys, request_log, rate_windows, audit_log, app_users, recipients, sequences, queue_jobs, media,
)  # fmt: skip
"""The tables whose free space may hold what was erased, until it is compacted; ordering keys of jobs that have ended, and names of
expired uploads, too."""


def _window(
    connection: Connection,
    columns: Sequence[Column[Any]],
    key: Column[Any],
    after: Any,
    condition: ColumnElement[bool] | None = None,
) -> tuple[Sequence[Any], Any]:
    """Return the rows of the next window that satisfy a condition, and the last key of the window; None at the end."""
    beyond = [] if after is None else [key > after]
    limit = select(key).where(*beyond).order_by(key).offset(MAX_SEARCHED_ROWS - 1).limit(1)
    last = connection.execute(limit).scalar_one_or_none()
    within = [*beyond, *([] if last is None else [key <= last]), *([] if condition is None else [condition])]
    return connection.execute(select(*columns).where(*within).order_by(key)).all(), last


def _delete(connection: Connection, column: Column[Any], values: Collection[Any]) -> int:
    if not values:
        return 0
    return connection.execute(delete(column.table).where(column.in_(list(values)))).rowcount


def _open_item_ids(connection: Connection) -> set[int]:
    query = select(queue_jobs.c.ref).where(queue_jobs.c.queue == int(QueueName.WEBHOOKS)).limit(MAX_OPEN_WEBHOOKS)
    refs = connection.execute(query).scalars()
    return {int(read_subject(QueueName.WEBHOOKS, ref).id) for ref in refs}


def _erase_files(connection: Connection, search: _Search, media_ids: Collection[str]) -> None:
    """Delete the rows of received files, and note the files that no other row refers to."""
    if not media_ids:
        return
    is_own = inbound_media.c.operator_media_id.in_(list(media_ids))
    digests = set(connection.execute(select(inbound_media.c.sha256).where(is_own)).scalars()) - {None}
    search.page.count(inbound_media, connection.execute(delete(inbound_media).where(is_own)).rowcount)
    for table in (media, inbound_media):
        digests -= set(connection.execute(select(table.c.sha256).where(table.c.sha256.in_(list(digests)))).scalars())
    search.page.files.update(digests)


def _texts_in(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():  # pyright: ignore[reportUnknownVariableType]
                yield from _texts_in(item)
        case list():
            for item in value:  # pyright: ignore[reportUnknownVariableType]
                yield from _texts_in(item)
        case _:
            return


def _media_ids_in(value: Any) -> Iterator[str]:
    """Yield the ids of the media objects in an item: those with a MIME type."""
    match value:
        case {"id": str(media_id), "mime_type": str(), **_others}:
            yield media_id
        case dict():
            for item in value.values():  # pyright: ignore[reportUnknownVariableType]
                yield from _media_ids_in(item)
        case list():
            for item in value:  # pyright: ignore[reportUnknownVariableType]
                yield from _media_ids_in(item)
        case _:
            return
