"""The log of requests: rows that are written in batches, read by page, and limited in number for each partner."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from operator import eq, ge, le, lt
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Connection, delete, insert, select

from waypost.base.ids import uuid7_text
from waypost.store.messages.messages import find_templates_without_codes
from waypost.store.sql import contains_escaped, filter_conditions, read_all, read_one
from waypost.store.tables import api_keys, app_keys, apps, request_log, universal_tokens

MAX_SEARCHED_ENTRIES: Final = 5_000  # entries that one page looks at: a few milliseconds on either engine
MAX_TRIMMED_ENTRIES: Final = 200  # of one transaction


@dataclass(frozen=True, slots=True)
class RequestLogEntry:
    """One request."""

    id: str  # begins with its time
    at_ms: int
    partner_id: int | None  # None: not known, because the request had no valid credential
    app_id: str  # empty: not known
    route: str  # method and path template
    credential: str  # its kind and name, never its value
    status: int
    error: str  # the error code; empty: accepted
    message: str  # of the error response
    explanation: str  # the text of the header `Waypost-Reason`
    field: str  # the invalid field; empty: the error is not about one field
    accepted: str  # what the field would accept
    request: str  # JSON with path, query, type and body, redacted; empty: not stored
    response: str  # JSON with headers, as pairs, and body, redacted; empty: not stored
    recipient: str  # the phone number or user id in the request; empty: none
    size_bytes: int  # of the body
    took_us: int  # microseconds from its headers to its response
    request_id: str  # the id in the header `X-Request-Id` of its response; empty: it had none


@dataclass(frozen=True, slots=True)
class RequestLogFilter:
    """Filter of entries; None matches all."""

    partner_id: int | None = None
    app_id: str | None = None
    statuses: tuple[int, int] | None = None  # the lowest and the highest status
    route: str | None = None  # a part of method and path template
    request_id: str | None = None
    before_id: str | None = None  # entries older than this one


class RequestLogPage(NamedTuple):
    """Matching entries, newest first."""

    entries: list[RequestLogEntry]
    following: str | None  # search on before this id; None: there are no more


class CallerNames(NamedTuple):
    """Names of the callers of some requests, from the store."""

    partners: Mapping[str, int]  # the partner of each app, by id
    apps: Mapping[str, str]  # the app of each phone number
    credentials: Mapping[str, str]  # kind and name of each credential, by its hash
    templates: Collection[str]  # ids of templates that are known, and send no one-time codes


def read_caller_names(
    connection: Connection,
    app_ids: Collection[str],
    numbers: Collection[str],
    hashes: Collection[str],
    template_ids: Collection[str],
) -> CallerNames:
    """Return the partners of apps, by their ids and phone numbers, the names of credentials, and templates."""
    rows: list[Any] = []
    for column, values in ((apps.c.id, app_ids), (apps.c.phone_number, numbers)):
        if values:
            query = select(apps.c.id, apps.c.partner_id, apps.c.phone_number).where(column.in_(list(values)))
            rows += connection.execute(query).all()
    partners = {row.id: row.partner_id for row in rows}
    app_of_number = {row.phone_number: row.id for row in rows}
    credentials: dict[str, str] = {}
    for kind, table in (("API key", api_keys), ("app token", app_keys), ("universal token", universal_tokens)):
        if hashes:
            query = select(table.c.hash, table.c.name).where(table.c.hash.in_(list(hashes)))
            credentials |= {row.hash: f"{kind} {row.name}".strip() for row in connection.execute(query)}
    return CallerNames(partners, app_of_number, credentials, find_templates_without_codes(connection, template_ids))


def add_request_entries(connection: Connection, entries: Sequence[RequestLogEntry]) -> None:
    """Add entries."""
    connection.execute(insert(request_log), [asdict(entry) for entry in entries])


def read_request_page(connection: Connection, query: RequestLogFilter, at_most: int) -> RequestLogPage:
    """Return the newest matching entries, among a limited number of rows, and where to search on."""
    columns = request_log.c
    scope = filter_conditions(
        (eq, columns.partner_id, query.partner_id),
        (eq, columns.request_id, query.request_id),
        (lt, columns.id, query.before_id),
    )
    matching = filter_conditions(
        (eq, columns.app_id, query.app_id),
        (ge, columns.status, query.statuses and query.statuses[0]),
        (le, columns.status, query.statuses and query.statuses[1]),
        (contains_escaped, columns.route, query.route),
    )
    newest = select(columns.id).where(*scope).order_by(columns.id.desc())
    last = connection.execute(newest.offset(MAX_SEARCHED_ENTRIES - 1).limit(1)).scalar_one_or_none()
    if last is not None:
        matching.append(columns.id >= last)
    found = select(request_log).where(*scope, *matching).order_by(columns.id.desc()).limit(at_most + 1)
    rows = read_all(connection, found, _read_entry)
    if len(rows) > at_most:
        return RequestLogPage(rows[:at_most], rows[at_most - 1].id)
    return RequestLogPage(rows, last)


def read_request_entry(connection: Connection, entry_id: str, partner_id: int | None) -> RequestLogEntry | None:
    """Return an entry, of this partner unless None; None if there is none."""
    statement = select(request_log).where(request_log.c.id == entry_id)
    if partner_id is not None:
        statement = statement.where(request_log.c.partner_id == partner_id)
    return read_one(connection, statement, _read_entry)


def trim_request_log(connection: Connection, partner_id: int | None, max_rows: int) -> bool:
    """Delete some of a partner's oldest entries beyond the newest `max_rows`; return True if there may be more.

    Args:
        partner_id: None: the entries that belong to no partner.
        max_rows: at least 1.
    """
    columns = request_log.c
    is_own = columns.partner_id.is_(None) if partner_id is None else columns.partner_id == partner_id
    newest = select(columns.id).where(is_own).order_by(columns.id.desc())
    last = connection.execute(newest.offset(max_rows - 1).limit(1)).scalar_one_or_none()
    return last is not None and _delete_oldest(connection, is_own, columns.id < last)


def delete_request_entries(connection: Connection, before_ms: int, _after: str) -> str | None:
    """Delete some entries older than a time; None if there are no more."""
    return "more" if _delete_oldest(connection, request_log.c.id < uuid7_text(before_ms, bytes(10))) else None


def delete_partner_requests(connection: Connection, partner_id: int, before_ms: int) -> bool:
    """Delete some entries of a partner older than a time; return True if there may be more."""
    is_old = request_log.c.id < uuid7_text(before_ms, bytes(10))
    return _delete_oldest(connection, request_log.c.partner_id == partner_id, is_old)


def _delete_oldest(connection: Connection, *conditions: ColumnElement[bool]) -> bool:
    oldest = select(request_log.c.id).where(*conditions).order_by(request_log.c.id).limit(MAX_TRIMMED_ENTRIES)
    ids = connection.execute(oldest).scalars().all()
    if ids:
        connection.execute(delete(request_log).where(request_log.c.id.in_(ids)))
    return len(ids) == MAX_TRIMMED_ENTRIES


def _read_entry(row: Any) -> RequestLogEntry:
    return RequestLogEntry(**{field.name: getattr(row, field.name) for field in fields(RequestLogEntry)})
