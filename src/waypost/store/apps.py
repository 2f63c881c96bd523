"""Apps as their partner changes them, and as the administrator connects them."""

from typing import Final

from sqlalchemy import Connection, Table, delete, false, func, select, update

from waypost.domain.app import App
from waypost.store.app_keys import forget_app_keys
from waypost.store.rows import app_columns, app_of
from waypost.store.tables import apps, journal, messages, subscriptions, templates

ID_CHARS: Final = 36
"""Of the ids of messages and templates."""


def apps_of(
    connection: Connection,
    partner_id: int,
    *,
    name: str = "",
    phone: str = "",
    first: int = 0,
    at_most: int | None = None,
) -> list[App]:
    """A partner's apps, oldest first.

    Args:
        connection: any.
        partner_id: whose.
        name: part of the name, in any letters; empty for all.
        phone: part of the source number; empty for all.
        first: how many to leave out.
        at_most: how many to give; None for all.
    """
    chosen = select(apps).where(apps.c.partner_id == partner_id)
    if name:
        chosen = chosen.where(func.lower(apps.c.name).contains(name.lower(), autoescape=True))
    if phone:
        chosen = chosen.where(apps.c.phone_number.contains(phone, autoescape=True))
    chosen = chosen.order_by(apps.c.created_on_ms, apps.c.id).offset(first)
    if at_most is not None:
        chosen = chosen.limit(at_most)
    return [app_of(row) for row in connection.execute(chosen)]


def app_by_name(connection: Connection, partner_id: int, name: str) -> App | None:
    """The partner's app with this name, or None."""
    row = connection.execute(
        select(apps).where(apps.c.partner_id == partner_id, apps.c.name == name)
    ).one_or_none()
    return None if row is None else app_of(row)


def change_app(connection: Connection, app: App) -> bool:
    """Keep an app's name, number, account and preferences; False when its name or number is taken."""
    clash = select(func.count()).where(
        apps.c.id != app.id,
        ((apps.c.partner_id == app.partner_id) & (apps.c.name == app.name))
        | ((apps.c.phone_number == app.phone_number) if app.phone_number else false()),
    )
    if connection.execute(clash).scalar_one():
        return False
    columns = app_columns(app, "")
    for fixed in ("id", "partner_id", "token_serial", "token_hash", "created_on_ms"):
        del columns[fixed]
    connection.execute(update(apps).where(apps.c.id == app.id).values(**columns))
    return True


def delete_app(connection: Connection, app: App) -> None:
    """Delete an app with its credentials, its subscriptions, and what still waits to be submitted for it.

    Templates belong to the business account: another app of it takes them over.
    """
    heir = connection.execute(
        select(apps.c.id)
        .where(
            apps.c.business_account_id == app.business_account_id,
            apps.c.business_account_id != "",
            apps.c.id != app.id,
        )
        .limit(1)
    ).scalar_one_or_none()
    _drop_entries(connection, messages, app.id)
    if heir is None:
        _drop_entries(connection, templates, app.id)
        connection.execute(delete(templates).where(templates.c.app_id == app.id))
    else:
        of_app = update(templates).where(templates.c.app_id == app.id)
        connection.execute(of_app.values(app_id=heir))
    connection.execute(delete(subscriptions).where(subscriptions.c.app_id == app.id))
    forget_app_keys(connection, app.id)
    connection.execute(delete(apps).where(apps.c.id == app.id))


def _drop_entries(connection: Connection, things: Table, app_id: str) -> None:
    """Delete the open entries about an app's messages or templates.

    Entries are few and messages many, so the way is from the entry to what it is about: a reference
    ends with its id.
    """
    entries = journal.alias()
    about = func.substr(entries.c.ref, func.length(entries.c.ref) - ID_CHARS + 1)
    positions = (
        select(entries.c.position)
        .join(things, things.c.id == about)
        .where(things.c.app_id == app_id)
    )
    connection.execute(delete(journal).where(journal.c.position.in_(positions)))
