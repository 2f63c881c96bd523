"""Users of an app: opt-ins, opt-outs, and users that its number has blocked."""

from collections.abc import Collection
from typing import Any, Final

from sqlalchemy import Connection, Row, Select, select

from waypost.domain.app import CUSTOMER_SERVICE_WINDOW_MS, App, AppUser
from waypost.store.sql import select_for_update, upsert
from waypost.store.tables import app_users, recipients
from waypost.store.typed_rows import RowReader

_read_app_user: Final = RowReader(AppUser)


def set_opt_in(connection: Connection, app: App, phone_number: str, *, opted_in: bool, source: str, at_ms: int) -> bool:
    """Record that a user has opted in or out; return False if that was recorded already."""
    current = select(app_users.c.opted_in).where(app_users.c.app_id == app.id, app_users.c.phone_number == phone_number)
    if connection.execute(select_for_update(connection, current)).scalar_one_or_none() is opted_in:
        return False
    columns = {"opted_in": opted_in, "source": source, "opted_on_ms": at_ms}
    _write(connection, app, [phone_number], columns)
    return True


def set_blocked(connection: Connection, app: App, phone_numbers: Collection[str], *, blocked: bool) -> None:
    """Record that the operator has blocked or unblocked users for the app's number."""
    if phone_numbers:
        _write(connection, app, sorted(phone_numbers), {"blocked": blocked})


def app_user(connection: Connection, app: App, phone_number: str) -> AppUser:
    """Return one user, known or not."""
    row = connection.execute(_select_users(app).where(app_users.c.phone_number == phone_number)).one_or_none()
    if row is not None:
        return _decode_user(row)
    window_query = select(recipients.c.window_until_ms).where(
        recipients.c.app_id == app.id, recipients.c.phone_number == phone_number
    )
    until_ms = connection.execute(window_query).scalar_one_or_none()
    return AppUser(phone_number, last_written_ms=_last_written_ms(until_ms))


def list_opted_users(connection: Connection, app: App, *, offset: int, at_most: int) -> list[AppUser]:
    """Return the users that have opted in or out, the latest change first.

    Args:
        connection: any.
        app: the app.
        offset: how many to skip.
        at_most: how many to return.
    """
    chosen = (
        _select_users(app)
        .where(app_users.c.opted_on_ms.is_not(None))
        .order_by(app_users.c.opted_on_ms.desc(), app_users.c.phone_number)
        .offset(offset)
        .limit(at_most)
    )
    return [_decode_user(row) for row in connection.execute(chosen)]


def list_users(connection: Connection, app: App, *, offset: int, at_most: int) -> list[AppUser]:
    """Return the users that have opted in or out or were blocked, by phone number.

    Args:
        connection: any.
        app: the app.
        offset: how many to skip.
        at_most: how many to return.
    """
    page = _select_users(app).order_by(app_users.c.phone_number).offset(offset).limit(at_most)
    return [_decode_user(row) for row in connection.execute(page)]


def _select_users(app: App) -> Select[Any]:
    return (
        select(app_users, recipients.c.window_until_ms)
        .outerjoin(
            recipients,
            (recipients.c.app_id == app_users.c.app_id) & (recipients.c.phone_number == app_users.c.phone_number),
        )
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


_USER_KEY_COLUMNS: Final = ["app_id", "phone_number"]
