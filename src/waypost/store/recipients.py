"""Whoever a number talks to, known by phone number, by business-scoped id, or by both."""

from typing import Any

from sqlalchemy import Connection, insert, select, update

from waypost.domain.app import App
from waypost.store.tables import recipients


def recipient_id(
    connection: Connection, app: App, phone_number: str | None, user_id: str | None = None
) -> int:
    """The recipient with this phone number or business-scoped id, made when it is new.

    Whichever of the two names was missing is added.
    """
    found = _by(connection, app, phone_number, user_id)
    if found is None:
        return connection.execute(
            insert(recipients).returning(recipients.c.id),
            {
                "partner_id": app.partner_id,
                "app_id": app.id,
                "phone_number": phone_number,
                "user_id": user_id,
            },
        ).scalar_one()
    missing: dict[str, Any] = {}
    if phone_number and found.phone_number is None:
        missing["phone_number"] = phone_number
    if user_id and found.user_id is None:
        missing["user_id"] = user_id
    if missing:
        connection.execute(update(recipients).where(recipients.c.id == found.id).values(**missing))
    return found.id


def has_written(connection: Connection, id: int, name: str, window_until_ms: int) -> None:
    """Note a recipient's name and that its window is open anew."""
    connection.execute(
        update(recipients)
        .where(recipients.c.id == id)
        .values(name=name, window_until_ms=window_until_ms)
    )


def _by(connection: Connection, app: App, phone_number: str | None, user_id: str | None) -> Any:
    for column, value in (
        (recipients.c.user_id, user_id),
        (recipients.c.phone_number, phone_number),
    ):
        if value:
            row = connection.execute(
                select(recipients).where(recipients.c.app_id == app.id, column == value)
            ).one_or_none()
            if row is not None:
                return row
    return None
