"""Whoever a number talks to, known by phone number, by business-scoped id, or by both."""

from collections.abc import Collection, Set
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, case, func, insert, select, update

from waypost.domain.app import App
from waypost.store.sql import insert_or, one_of
from waypost.store.tables import recipients


def recipient_id(connection: Connection, app: App, phone_number: str | None, user_id: str | None = None) -> int:
    """The recipient with this phone number or business-scoped id, made when it is new.

    Whichever of the two names was missing is added. Where each names another row, both were met
    before it was known that they are one person: the row with the phone number goes on, because what
    was sent hangs on it.
    """
    if phone_number and not phone_number.isdecimal():  # a message's destination may be either
        phone_number, user_id = None, user_id or phone_number
    by_number = _by(connection, app, recipients.c.phone_number, phone_number)
    by_user = _by(connection, app, recipients.c.user_id, user_id)
    if by_number is not None and by_user is not None:
        return by_number.id
    found = by_number if by_number is not None else by_user
    if found is None:
        return connection.execute(
            insert(recipients).returning(recipients.c.id),
            {"partner_id": app.partner_id, "app_id": app.id, "phone_number": phone_number, "user_id": user_id},
        ).scalar_one()
    missing: dict[str, Any] = {}
    if phone_number and found.phone_number is None:
        missing["phone_number"] = phone_number
    if user_id and found.user_id is None:
        missing["user_id"] = user_id
    if missing:
        connection.execute(update(recipients).where(recipients.c.id == found.id).values(**missing))
    return found.id


def recipient_ids(connection: Connection, wanted: Set[tuple[str, int, str]]) -> dict[tuple[str, str], int]:
    """Recipients known by phone number or business-scoped id, made where they are new.

    Args:
        connection: the writer's.
        wanted: of each its app's id, its partner's id, and its phone number or business-scoped id.

    Returns:
        Their ids by app id and that name.
    """
    found = _known(connection, wanted)
    new = [one for one in sorted(wanted) if (one[0], one[2]) not in found]
    if new:
        rows = [
            {"partner_id": partner_id, "app_id": app_id, "name": "", **_named(name)} for app_id, partner_id, name in new
        ]
        connection.execute(_ADD, rows)
        found |= _known(connection, new)
    return found


def _known(connection: Connection, wanted: Collection[tuple[str, int, str]]) -> dict[tuple[str, str], int]:
    """In one statement for all apps; an app's recipients that only another app asks for are left out."""
    pairs = {(app_id, name) for app_id, _, name in wanted}
    names = {name for _, name in pairs}
    app_ids = {app_id for app_id, _ in pairs}
    numbers = {name for name in names if name.isdecimal()}
    known: dict[tuple[str, str], int] = {}
    for statement, some in ((_KNOWN, numbers), (_KNOWN_USERS, names - numbers)):
        if some:
            rows = connection.execute(statement, {"app_ids": app_ids, "names": some}).all()
            known |= {(row.app_id, row.named): row.id for row in rows}
    return {pair: known[pair] for pair in pairs if pair in known}


def _named(name: str) -> dict[str, str | None]:
    is_number = name.isdecimal()
    return {"phone_number": name if is_number else None, "user_id": None if is_number else name}


def has_written(connection: Connection, id: int, name: str, window_until_ms: int) -> None:
    """Note a recipient's name and that its window is open anew; an older message, told late, closes none."""
    is_later = func.coalesce(recipients.c.window_until_ms, 0) < window_until_ms
    connection.execute(
        update(recipients)
        .where(recipients.c.id == id)
        .values(name=name, window_until_ms=case((is_later, window_until_ms), else_=recipients.c.window_until_ms))
    )


def _by(connection: Connection, app: App, column: ColumnElement[Any], value: str | None) -> Any:
    if not value:
        return None
    found = select(recipients).where(recipients.c.app_id == app.id, column == value)
    return connection.execute(found).one_or_none()


_ADD: Final = insert_or(recipients).on_conflict_do_nothing()  # another process may meet them first
_KNOWN: Final = select(recipients.c.id, recipients.c.app_id, recipients.c.phone_number.label("named")).where(
    one_of(recipients.c.app_id, "app_ids"), one_of(recipients.c.phone_number, "names")
)
_KNOWN_USERS: Final = select(recipients.c.id, recipients.c.app_id, recipients.c.user_id.label("named")).where(
    one_of(recipients.c.app_id, "app_ids"), one_of(recipients.c.user_id, "names")
)
