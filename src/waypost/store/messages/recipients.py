"""Recipients: the users that a number exchanges messages with, by phone number, business-scoped id, or both."""

from collections.abc import Collection, Set
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, case, func, insert, select, update

from waypost.domain.app import App
from waypost.store.sql import equals_any, upsert
from waypost.store.tables import recipients


def get_or_create_recipient(
    connection: Connection, app: App, phone_number: str | None, user_id: str | None = None
) -> int:
    """Return the id of the recipient with this phone number or business-scoped id, created if it is new.

    Whichever of the two was missing is added. If each belongs to a different row, both rows were created
    before it was known that they are one person: the row with the phone number is used, because messages
    refer to it.
    """
    if phone_number and not phone_number.isdecimal():  # a message's destination may be either
        phone_number, user_id = None, user_id or phone_number
    by_number = _find_recipient(connection, app, recipients.c.phone_number, phone_number)
    by_user = _find_recipient(connection, app, recipients.c.user_id, user_id)
    if by_number is not None and by_user is not None:
        return by_number.id
    recipient = by_number if by_number is not None else by_user
    if recipient is None:
        return connection.execute(
            insert(recipients).returning(recipients.c.id),
            {"partner_id": app.partner_id, "app_id": app.id, "phone_number": phone_number, "user_id": user_id},
        ).scalar_one()
    missing: dict[str, Any] = {}
    if phone_number and recipient.phone_number is None:
        missing["phone_number"] = phone_number
    if user_id and recipient.user_id is None:
        missing["user_id"] = user_id
    if missing:
        connection.execute(update(recipients).where(recipients.c.id == recipient.id).values(**missing))
    return recipient.id


def get_or_create_recipients(
    connection: Connection, identities: Set[tuple[str, int, str]]
) -> dict[tuple[str, str], int]:
    """Return recipients by phone number or business-scoped id, created if they are new.

    Args:
        connection: the writer's.
        identities: for each its app's id, its partner's id, and its phone number or business-scoped id.

    Returns:
        Their ids by app id and phone number or business-scoped id.
    """
    ids = _find_ids(connection, identities)
    new = [identity for identity in sorted(identities) if (identity[0], identity[2]) not in ids]
    if new:
        rows = [
            {"partner_id": partner_id, "app_id": app_id, "name": "", **_identity_columns(name)}
            for app_id, partner_id, name in new
        ]
        connection.execute(_INSERT_RECIPIENTS, rows)
        ids |= _find_ids(connection, new)
    return ids


def _find_ids(connection: Connection, identities: Collection[tuple[str, int, str]]) -> dict[tuple[str, str], int]:
    """Find recipients in one statement for all apps; pairs of app and name that were not requested are left out."""
    pairs = {(app_id, name) for app_id, _, name in identities}
    names = {name for _, name in pairs}
    app_ids = {app_id for app_id, _ in pairs}
    numbers = {name for name in names if name.isdecimal()}
    known: dict[tuple[str, str], int] = {}
    for statement, chosen in ((_IDS_BY_PHONE_NUMBER, numbers), (_IDS_BY_USER_ID, names - numbers)):
        if chosen:
            rows = connection.execute(statement, {"app_ids": app_ids, "names": chosen}).all()
            known |= {(row.app_id, row.named): row.id for row in rows}
    return {pair: known[pair] for pair in pairs if pair in known}


def _identity_columns(name: str) -> dict[str, str | None]:
    is_number = name.isdecimal()
    return {"phone_number": name if is_number else None, "user_id": None if is_number else name}


def record_recipient_activity(connection: Connection, id: int, name: str, window_until_ms: int) -> None:
    """Store a recipient's name and extend its window; an older message that is processed late does not shorten it."""
    is_later = func.coalesce(recipients.c.window_until_ms, 0) < window_until_ms
    connection.execute(
        update(recipients)
        .where(recipients.c.id == id)
        .values(name=name, window_until_ms=case((is_later, window_until_ms), else_=recipients.c.window_until_ms))
    )


def _find_recipient(connection: Connection, app: App, column: ColumnElement[Any], value: str | None) -> Any:
    if not value:
        return None
    query = select(recipients).where(recipients.c.app_id == app.id, column == value)
    return connection.execute(query).one_or_none()


_INSERT_RECIPIENTS: Final = upsert(recipients).on_conflict_do_nothing()  # another process may insert them first
_IDS_BY_PHONE_NUMBER: Final = select(
    recipients.c.id, recipients.c.app_id, recipients.c.phone_number.label("named")
).where(equals_any(recipients.c.app_id, "app_ids"), equals_any(recipients.c.phone_number, "names"))
_IDS_BY_USER_ID: Final = select(recipients.c.id, recipients.c.app_id, recipients.c.user_id.label("named")).where(
    equals_any(recipients.c.app_id, "app_ids"), equals_any(recipients.c.user_id, "names")
)
