"""Erasure of what is stored about one recipient, part by part, each a limited number of rows in one transaction.

The rows by which a person is found are erased last. So an erasure that was interrupted is continued by beginning
again, and finds what is left. Rows that work is still done for are left and counted: a message that waits to be sent,
a callback that waits for its receiver, an item that waits to be applied.
"""

import re
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec
from sqlalchemy import Column, ColumnElement, Connection, Table, delete, func, select, tuple_, update

from waypost.base.encryption import SecretBox
from waypost.domain.event import unreadable_body
from waypost.store.accounts.instance_keys import ENCRYPTED_COLUMNS
from waypost.store.encoding import CALLBACK_BODIES, json_values
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.jobs import read_subject
from waypost.store.retention.columns import PERSONAL_COLUMNS, Holds, columns_of, is_named
from waypost.store.retention.export import Person, find_person, is_message_of, is_received_from
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

MAX_SEARCHED_ROWS: Final = 2_000  # rows that one call searches: a few milliseconds of one transaction
ERASED: Final = "erased"  # stands in the audit log where the number was


@dataclass(frozen=True, slots=True)
class ErasurePosition:
    """The position where an erasure continues."""

    part: str  # name of the part
    after: str = ""  # the last key that was searched, as JSON; empty at the beginning of a part
    waiting: int = 0  # how many rows were left so far because work is still done for them
    callbacks: int | None = None  # how many there had been about the person when it began; None: it begins now


@dataclass(slots=True)
class ErasurePage:
    """The results of one call."""

    erased: dict[str, int] = field(default_factory=dict[str, int])  # number of rows by table
    # number of rows by table that are left because work is still done for them
    waiting: dict[str, int] = field(default_factory=dict[str, int])
    files: set[str] = field(default_factory=set[str])  # digests of files that no row refers to any more
    following: ErasurePosition | None = None  # where to continue; None: everything was searched

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
    callbacks_before: int
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
            return any(value.lstrip("+") in self.names for value in _texts_in(json_text))
        except (msgspec.DecodeError, UnicodeError):
            return self.is_in(json_text)


_ErasePart = Callable[[Connection, _Search, Any], Any]
"""Erases the next rows after a key; returns the last key that was searched, None at the end."""


def erase_recipient(
    connection: Connection, number: str, position: ErasurePosition, secret_box: SecretBox
) -> ErasurePage:
    """Erase the next rows about the recipients with a phone number, of every partner.

    Args:
        number: digits.
        secret_box: decrypts stored responses, which may have the number.

    Raises:
        KeyError: there is no such part.
    """
    part = _PARTS[position.part]
    person = find_person(connection, number)
    counted = _count_callbacks(connection, person) if position.callbacks is None else position.callbacks
    search = _Search(person, secret_box, position.waiting, counted)
    after = None if not position.after else msgspec.json.decode(position.after)
    erase = partial(_erase_scanned, part) if isinstance(part, _Scanned) else part
    last = erase(connection, search, after)
    waiting = position.waiting + sum(search.page.waiting.values())
    if last is not None:
        search.page.following = ErasurePosition(position.part, msgspec.json.encode(last).decode(), waiting, counted)
    elif position.part != ERASURE_PARTS[-1]:
        following = ERASURE_PARTS[ERASURE_PARTS.index(position.part) + 1]
        search.page.following = ErasurePosition(following, "", waiting, counted)
    return search.page


@dataclass(frozen=True, slots=True)
class _Scanned:
    """A table that is searched in the order of its key."""

    key: Column[Any]
    columns: tuple[Column[Any], ...] = ()  # what the other functions read of a row, after its key
    # of rows that concern the person; None: `concerns` decides
    condition: Callable[[Person], ColumnElement[bool]] | None = None
    # whether a row that satisfies the condition concerns the person
    concerns: Callable[[_Search, Any], bool] = lambda _search, _row: True
    is_open: Callable[[Any], bool] = lambda _: False  # whether work is still done for a row
    dependent: Column[Any] | None = None  # rows that are erased with those that they refer to
    erase_more: Callable[[Connection, _Search, Sequence[Any]], None] | None = None  # erases what rows of the table name


def _erase_scanned(scanned: _Scanned, connection: Connection, search: _Search, after: Any) -> Any:
    key = scanned.key
    beyond = [] if after is None else [key > after]
    limit = select(key).where(*beyond).order_by(key).offset(MAX_SEARCHED_ROWS - 1).limit(1)
    last = connection.execute(limit).scalar_one_or_none()
    within = [*beyond, *([] if last is None else [key <= last])]
    if scanned.condition is not None:
        within.append(scanned.condition(search.person))
    rows = connection.execute(select(key, *scanned.columns).where(*within).order_by(key)).all()
    found = [row for row in rows if scanned.concerns(search, row)]
    open_ids = _open_item_ids(connection) if found and key is webhook_items.c.id else ()
    ended = [row for row in found if row[0] not in open_ids and not scanned.is_open(row)]
    if scanned.erase_more is not None:
        scanned.erase_more(connection, search, ended)
    ids = [row[0] for row in ended]
    if scanned.dependent is not None:
        search.page.count(scanned.dependent.table, _delete(connection, scanned.dependent, ids))
    search.page.count(key.table, _delete(connection, key, ids), len(found) - len(ids))
    return last


def _is_callback_of(search: _Search, row: Any) -> bool:
    """True for a callback to the person's subject, and one of an app or account that names the person."""
    if row.subject.isdecimal():
        return int(row.subject) in search.person.recipient_ids
    return search.is_value_of(CALLBACK_BODIES.decompress(row.body))


def _erase_files_of_items(connection: Connection, search: _Search, rows: Sequence[Any]) -> None:
    """Delete the rows of the files that received messages name, and note the files that no other row refers to."""
    readable = [row.item for row in rows if unreadable_body(row.item) is None]
    media_ids = {media_id for item in readable for media_id in _media_ids_in(item)}
    if not media_ids:
        return
    is_own = inbound_media.c.operator_media_id.in_(list(media_ids))
    digests = set(connection.execute(select(inbound_media.c.sha256).where(is_own)).scalars()) - {None}
    search.page.count(inbound_media, connection.execute(delete(inbound_media).where(is_own)).rowcount)
    for table in (media, inbound_media):
        digests -= set(connection.execute(select(table.c.sha256).where(table.c.sha256.in_(list(digests)))).scalars())
    search.page.files.update(digests)


def _open_item_ids(connection: Connection) -> set[int]:
    query = select(queue_jobs.c.ref).where(queue_jobs.c.queue == int(QueueName.WEBHOOKS)).limit(MAX_OPEN_WEBHOOKS)
    refs = connection.execute(query).scalars()
    return {int(read_subject(QueueName.WEBHOOKS, ref).id) for ref in refs}


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


def _erase_rest(connection: Connection, search: _Search, _after: Any) -> Any:
    """Erase what an index leads to, the rows that identify the person last."""
    names = search.names
    _erase_named(connection, search, rate_windows)
    for name in names:
        for column in columns_of(audit_log, Holds.TEXT):
            has_name = column.contains(name, autoescape=True)
            connection.execute(update(audit_log).where(has_name).values({column: func.replace(column, name, ERASED)}))
    waiting = connection.execute(select(func.count()).where(is_named(queue_jobs, names))).scalar_one()
    search.page.count(queue_jobs, 0, waiting)
    if waiting:
        return None
    _erase_named(connection, search, app_users)
    return None


def _erase_identity(connection: Connection, search: _Search, _after: Any) -> Any:
    """Erase the rows by which the person is found, unless anything is left that an erasure has to find again.

    A callback that was enqueued meanwhile, where this erasure had already searched, is found by them only.
    """
    person = search.person
    is_own = recipients.c.id.in_(person.recipient_ids)
    connection.execute(select(recipients.c.id).where(is_own).with_for_update())  # what is about to enqueue one has it
    meanwhile = max(0, _count_callbacks(connection, person) - search.callbacks_before)
    search.page.count(callbacks, 0, meanwhile)
    if not search.waiting_before and not meanwhile:
        search.page.count(sequences, connection.execute(delete(sequences).where(_is_sequence_of(person))).rowcount)
        search.page.count(recipients, _delete(connection, recipients.c.id, person.recipient_ids))


def _count_callbacks(connection: Connection, person: Person) -> int:
    """Return how many callbacks about a person were ever enqueued, as far as their sequence numbers are stored."""
    query = select(func.coalesce(func.sum(sequences.c.last), 0)).where(_is_sequence_of(person))
    return int(connection.execute(query).scalar_one())


def _is_sequence_of(person: Person) -> ColumnElement[bool]:
    subjects = map(str, person.recipient_ids)
    return sequences.c.subscription_id.in_(select(subscriptions.c.id)) & sequences.c.subject.in_(list(subjects))


_PARTS: Final[dict[str, _Scanned | _ErasePart]] = {  # in this order
    "messages": _Scanned(
        messages.c.id,
        columns=(messages.c.state,),
        condition=is_message_of,
        is_open=lambda row: row.state in OPEN_MESSAGE_STATES,
        dependent=message_events.c.message_id,
    ),
    "callbacks": _Scanned(
        callbacks.c.id,
        columns=(callbacks.c.subject, callbacks.c.body, callbacks.c.ended_on_ms),
        concerns=_is_callback_of,
        is_open=lambda row: row.ended_on_ms is None,
        dependent=attempts.c.callback_id,
    ),
    "items": _Scanned(
        webhook_items.c.id,
        columns=(webhook_items.c.item,),
        concerns=lambda search, row: search.is_value_of(row.item),
        erase_more=_erase_files_of_items,
    ),
    "received": _Scanned(inbound_messages.c.operator_message_id, condition=is_received_from),
    "webhooks": _Scanned(  # those with other people too: their items are stored or applied
        inbound_webhooks.c.id,
        columns=(inbound_webhooks.c.body, inbound_webhooks.c.compressed),
        concerns=lambda search, row: search.is_in(zlib.decompress(row.body) if row.compressed else row.body),
    ),
    "responses": _erase_responses,
    "requests": _Scanned(
        request_log.c.id,
        columns=tuple(columns_of(request_log, *Holds)),
        concerns=lambda search, row: search.is_in(" ".join(row[1:])),
    ),
    "rest": _erase_rest,
    "identity": _erase_identity,
}
ERASURE_PARTS: Final = tuple(_PARTS)  # the parts, in the order of an erasure
ERASED_TABLES: Final = (*dict.fromkeys(row.column.table for row in PERSONAL_COLUMNS), sequences)
"""The tables whose free space may hold what was erased, until it is compacted; ordering keys of jobs that have ended,
and names of expired uploads, too."""


def _erase_named(connection: Connection, search: _Search, table: Table) -> None:
    search.page.count(table, connection.execute(delete(table).where(is_named(table, search.names))).rowcount)


def _delete(connection: Connection, column: Column[Any], values: Collection[Any]) -> int:
    if not values:
        return 0
    return connection.execute(delete(column.table).where(column.in_(list(values)))).rowcount


def _texts_in(json_text: bytes) -> list[str]:
    return [value for _, value in json_values(msgspec.json.decode(json_text)) if isinstance(value, str)]


def _media_ids_in(item: bytes) -> Iterator[str]:
    """Yield the ids of the media objects in an item: those with a MIME type."""
    for _, value in json_values(msgspec.json.decode(item)):
        match value:
            case {"id": str(media_id), "mime_type": str()}:
                yield media_id
            case _:
                pass
