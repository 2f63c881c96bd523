"""Export of what is stored about one recipient, part by part, each a limited number of rows at a time.

No index leads from a number to all its rows: a message that was just accepted has no recipient yet, and a
callback is found by its recipient only. So messages and callbacks are read once in the order of their ids,
in windows of a limited number of rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final, NamedTuple

import msgspec
from sqlalchemy import Column, ColumnElement, Connection, Table, and_, or_, select

from waypost.store.callbacks.callbacks import read_callback_details
from waypost.store.messages.messages import find_messages_with_codes, read_request
from waypost.store.messages.recipients import recipient_ids
from waypost.store.retention.columns import is_mentioned, is_named
from waypost.store.sql import read_dicts
from waypost.store.tables import (
    app_users,
    apps,
    callbacks,
    inbound_messages,
    message_events,
    messages,
    recipients,
    request_log,
    webhook_items,
)

MAX_WINDOW_ROWS: Final = 20_000  # maximum rows among which one call searches
MAX_PAGE_RECORDS: Final = 50  # maximum messages, received messages or callbacks of one call


class ExportPosition(NamedTuple):
    """The position where an export continues: the kind of record, and the last key that was searched."""

    kind: str
    after: str = ""


@dataclass(frozen=True, slots=True)
class ExportPage:
    """Some records of an export."""

    records: list[dict[str, Any]]  # each with its kind in `record`
    following: ExportPosition | None  # where to continue; None: the export is complete


@dataclass(frozen=True, slots=True)
class Person:
    """One person: the names, and what belongs to them in all apps."""

    names: Sequence[str]  # the numbers and the business-scoped ids, former and parent ids too
    recipient_ids: Sequence[int]  # ids of `recipients`


def export_recipient(connection: Connection, name: str, position: ExportPosition) -> ExportPage:
    """Return the next records about the recipients with a phone number or a business-scoped id, of every partner.

    Args:
        name: digits, or the id.
        position: as returned with the page before.

    Returns:
        Records, perhaps none although more follow.

    Raises:
        KeyError: there is no such kind of record.
    """
    part = _PARTS[position.kind]
    person = find_person(connection, name)
    condition = part.condition(person)
    last = None
    if part.is_indexed:
        rows = read_dicts(connection, select(part.table).where(condition).order_by(part.key))
    else:
        beyond = part.key > position.after
        keys = select(part.key).where(beyond).order_by(part.key).offset(MAX_WINDOW_ROWS - 1).limit(1)
        last = connection.execute(keys).scalar_one_or_none()
        window = [beyond] if last is None else [beyond, part.key <= last]
        query = select(part.table).where(*window, condition).order_by(part.key).limit(MAX_PAGE_RECORDS)
        rows = read_dicts(connection, query)
        if len(rows) == MAX_PAGE_RECORDS:
            last = rows[-1][part.key.name]
    records = [{"record": position.kind, **record} for record in part.read(connection, rows)]
    if last is not None:
        return ExportPage(records, ExportPosition(position.kind, str(last)))
    following = EXPORT_KINDS[EXPORT_KINDS.index(position.kind) + 1 :]
    return ExportPage(records, ExportPosition(following[0]) if following else None)


def find_person(connection: Connection, name: str) -> Person:
    """Return what belongs to a phone number or a business-scoped id in all apps.

    Another app may know only the WhatsApp id of a number, so that a number leads to what belongs to its others too.
    """
    names: set[str] = {name}
    searched: set[str] = set()
    user_ids: set[str] = set()
    ids: set[int] = set()
    while new := names - searched:
        searched |= new
        # The indexes by app and name serve it: numbers, or one business-scoped id
        column = recipients.c.phone_number if all(map(str.isdecimal, new)) else recipients.c.user_id
        found = recipient_ids(connection, and_(recipients.c.app_id.in_(select(apps.c.id)), column.in_(new)))
        query = select(recipients.c.phone_number, recipients.c.user_id).where(recipients.c.id.in_(found))
        numbers: set[str] = set()
        for row in connection.execute(query):
            numbers |= {row.phone_number} - {None}
            user_ids |= {row.user_id} - {None}
        ids |= set(found)
        names |= numbers
        if not name.isdecimal():
            break
    return Person(sorted(names | user_ids), sorted(ids))


def _read_messages(connection: Connection, rows: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield messages with `request`, `events`, and `holds_code`: whether it was sent with a one-time code."""
    codes: set[str] = set()
    for partner_id in {row["partner_id"] for row in rows}:
        own = [row for row in rows if row["partner_id"] == partner_id]
        codes |= find_messages_with_codes(connection, partner_id, own)
    events: dict[str, list[dict[str, Any]]] = {row["id"]: [] for row in rows}
    columns = (message_events.c[name] for name in ("message_id", "event", "at_ms", "detail"))
    query = select(*columns).where(message_events.c.message_id.in_(list(events))).order_by(message_events.c.id)
    for event in read_dicts(connection, query):
        events[event.pop("message_id")].append(event)
    for row in rows:
        stored = {name: value for name, value in row.items() if name not in ("content", "compressed_request")}
        request = read_request(SimpleNamespace(**row))
        yield {**stored, "request": request, "events": events[row["id"]], "holds_code": row["id"] in codes}


def _read_inbound_messages(connection: Connection, rows: Sequence[Any]) -> Iterator[dict[str, Any]]:
    """Yield received messages with `item` as the operator sent it; None once retention has deleted it."""
    query = select(webhook_items.c.id, webhook_items.c.item)
    items = query.where(webhook_items.c.id.in_([row["item_id"] for row in rows]))
    texts = {row.id: msgspec.json.decode(row.item) for row in connection.execute(items)}
    for row in rows:
        yield {**row, "item": texts.get(row["item_id"])}


@dataclass(frozen=True, slots=True)
class _ExportPart:
    """The records of one kind."""

    table: Table
    key: Column[Any]  # they are read in its order
    condition: Callable[[Person], ColumnElement[bool]]  # whether a row belongs to a person
    read: Callable[[Connection, Sequence[Any]], Iterator[dict[str, Any]]] = lambda _, rows: iter(rows)
    is_indexed: bool = False  # an index serves the condition, which few rows satisfy: all are read at once


def is_message_of(person: Person) -> ColumnElement[bool]:
    """Return the condition of messages to a person; no index serves it."""
    return or_(is_named(messages, person.names), messages.c.recipient_id.in_(person.recipient_ids))


def is_received_from(person: Person) -> ColumnElement[bool]:
    """Return the condition of received messages of a person."""
    return inbound_messages.c.recipient_id.in_(person.recipient_ids)


_PARTS: Final = {  # in this order
    # table, key, condition
    "recipient": _ExportPart(
        recipients,
        key=recipients.c.app_id,
        condition=lambda person: recipients.c.id.in_(person.recipient_ids),
        is_indexed=True,
    ),
    "user": _ExportPart(
        app_users,
        key=app_users.c.app_id,
        condition=lambda person: and_(app_users.c.app_id.in_(select(apps.c.id)), is_named(app_users, person.names)),
        is_indexed=True,
    ),
    "message": _ExportPart(messages, messages.c.id, is_message_of, _read_messages),
    "inbound_message": _ExportPart(
        inbound_messages,
        key=inbound_messages.c.operator_message_id,
        condition=is_received_from,
        read=_read_inbound_messages,
    ),
    "callback": _ExportPart(
        callbacks,
        key=callbacks.c.id,
        condition=lambda person: callbacks.c.subject.in_([*map(str, person.recipient_ids)]),
        read=lambda connection, rows: (read_callback_details(connection, row) for row in rows),
    ),
    "request": _ExportPart(request_log, request_log.c.id, lambda person: is_mentioned(request_log, person.names)),
}
EXPORT_KINDS: Final = tuple(_PARTS)  # the kinds of records, in the order of an export
