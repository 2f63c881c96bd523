"""Users of an app: opt-ins, opt-outs, and users that its number has blocked."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, func, select

from waypost.domain.app import CUSTOMER_SERVICE_WINDOW_MS, App, AppUser
from waypost.store.messages.recipients import find_names, get_or_create_recipient, link_number
from waypost.store.sql import RowReader, read_all, select_for_update, upsert
from waypost.store.tables import app_users, recipients

_read_app_user: Final = RowReader(AppUser)


def set_opt_in(connection: Connection, app: App, phone_number: str, *, opted_in: bool, source: str, at_ms: int) -> bool:
    """Record that a user has opted in or out; return False if that was recorded already."""
    known = _find_users(connection, app, [phone_number]).get(phone_number)
    if known is not None and known.opted_in is opted_in:
        return False
    columns = {"opted_in": opted_in, "source": source, "opted_on_ms": at_ms}
    _write(connection, app, [phone_number if known is None else known.phone_number], columns)
    return True


def set_blocked(connection: Connection, app: App, whatsapp_ids: Mapping[str, str], *, blocked: bool) -> None:
    """Record that the operator has blocked or unblocked users for the app's number.

    Args:
        whatsapp_ids: the operator's numbers of the users, by the numbers by which they were requested.
    """
    for number, whatsapp_id in sorted(whatsapp_ids.items()):
        if number != whatsapp_id:
            link_number(connection, app, get_or_create_recipient(connection, app, whatsapp_id), number, {})
    numbers = set(whatsapp_ids.values())
    if numbers:
        known = _find_users(connection, app, numbers)
        stored = {known[number].phone_number if number in known else number for number in numbers}
        _write(connection, app, sorted(stored), {"blocked": blocked})


def app_user(connection: Connection, app: App, phone_number: str) -> AppUser:
    """Return one user, known or not, by the number of the request."""
    row = _find_users(connection, app, [phone_number]).get(phone_number)
    if row is not None:
        return replace(_decode_user(row), phone_number=phone_number)
    window_query = (
        select(_person.c.window_until_ms)
        .select_from(recipients.join(_person, _is_person))
        .where(recipients.c.app_id == app.id, recipients.c.phone_number == phone_number)
    )
    until_ms = connection.execute(window_query).scalar_one_or_none()
    return AppUser(phone_number, last_written_ms=_last_written_ms(until_ms))


def list_opted_users(connection: Connection, app: App, *, offset: int, at_most: int) -> list[AppUser]:
    """Return the users that have opted in or out, the latest change first."""
    chosen = (
        _select_users(app)
        .where(app_users.c.opted_on_ms.is_not(None))
        .order_by(app_users.c.opted_on_ms.desc(), app_users.c.phone_number)
        .offset(offset)
        .limit(at_most)
    )
    return read_all(connection, chosen, _decode_user)


def list_users(connection: Connection, app: App, *, offset: int, at_most: int) -> list[AppUser]:
    """Return the users that have opted in or out or were blocked, by phone number."""
    page = _select_users(app).order_by(app_users.c.phone_number).offset(offset).limit(at_most)
    return read_all(connection, page, _decode_user)


def _find_users(connection: Connection, app: App, numbers: Collection[str]) -> dict[str, Row[Any]]:
    """Return users by the numbers that lead to them; each may be stored under any of its names."""
    names = find_names(connection, app.id, numbers)
    query = _select_users(app).where(app_users.c.phone_number.in_({name for known in names.values() for name in known}))
    locked = select_for_update(connection, query.order_by(app_users.c.phone_number), of=app_users)
    rows = {row.phone_number: row for row in connection.execute(locked)}
    return {number: rows[name] for number in names for name in names[number] if name in rows}


def _select_users(app: App) -> Select[Any]:
    is_number = (recipients.c.app_id == app_users.c.app_id) & (recipients.c.phone_number == app_users.c.phone_number)
    return (
        select(app_users, _person.c.window_until_ms)
        .outerjoin(recipients, is_number)
        .outerjoin(_person, _is_person)
        .where(app_users.c.app_id == app.id)
    )


def _decode_user(row: Row[Any]) -> AppUser:
    last_ms = _last_written_ms(row.window_until_ms)
    return _read_app_user(row, opted_on_ms=row.opted_on_ms or 0, last_written_ms=last_ms)


def _last_written_ms(window_until_ms: int | None) -> int:
    return 0 if window_until_ms is None else window_until_ms - CUSTOMER_SERVICE_WINDOW_MS


def _write(connection: Connection, app: App, phone_numbers: Collection[str], columns: dict[str, Any]) -> None:
    """Write these columns of these users, and insert users that are new."""
    rows = [
        {"app_id": app.id, "partner_id": app.partner_id, "phone_number": phone_number, **columns}
        for phone_number in phone_numbers
    ]
    statement = upsert(app_users)
    connection.execute(
        statement.on_conflict_do_update(
            index_elements=_USER_KEY_COLUMNS, set_={name: statement.excluded[name] for name in columns}
        ),
        rows,
    )


_person: Final = recipients.alias("person")
_is_person: Final = _person.c.id == func.coalesce(recipients.c.same_as, recipients.c.id)
_USER_KEY_COLUMNS: Final = ["app_id", "phone_number"]
