"""Apps as their partner changes them, and as the administrator connects them."""

from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection, Table, delete, false, func, select, update

from waypost.domain.app import App
from waypost.domain.event import AccountEvent
from waypost.store.accounts.partners import app_by_phone_number_id
from waypost.store.apps.keys import forget_app_keys
from waypost.store.encoding import app_columns, app_of
from waypost.store.tables import (
    app_stays,
    app_users,
    apps,
    business_accounts,
    messages,
    queue_jobs,
    subscriptions,
    template_events,
    template_stays,
    templates,
)

OF_ONE_NUMBER: Final = {  # what is about a number, and not about its account. Source: facts 6.6, 6.8
    "phone_number_name_update",
    "phone_number_quality_update",
    "user_preferences",
}


def apps_concerned(connection: Connection, operator_account_id: str, event: AccountEvent) -> list[App]:
    """The app of the number that it names, or else every app of the business account, oldest first.

    What is about one number is nobody's where no app has that number. Only apps of this operator
    account: nobody speaks for another account's apps.
    """
    if event.phone_number_id:
        app = app_by_phone_number_id(connection, operator_account_id, event.phone_number_id)
        return [] if app is None else [app]
    account_ids = [event.business_account_id, event.other_account_id or ""]
    of_account = (
        select(apps)
        .join(business_accounts, business_accounts.c.id == apps.c.business_account_id)
        .where(business_accounts.c.id.in_(account_ids), business_accounts.c.operator_account_id == operator_account_id)
        .order_by(apps.c.id)
    )
    found = [app_of(row) for row in connection.execute(of_account)]
    if event.phone_number is None:
        return found
    named = [app for app in found if app.phone_number == event.phone_number]
    return named if named or event.field in OF_ONE_NUMBER else found


ID_CHARS: Final = 36
"""Of the ids of messages and templates."""

_FIXED: Final = ("id", "partner_id", "token_serial", "token_hash", "created_on_ms")


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
    row = connection.execute(select(apps).where(apps.c.partner_id == partner_id, apps.c.name == name)).one_or_none()
    return None if row is None else app_of(row)


class Taken(Exception):
    """Another app has the name or the number that an app was to get."""


def change_app(connection: Connection, app_id: str, change: Callable[[App], App]) -> App | None:
    """Change an app as it is now, and give it; None where it is there no longer.

    Only the columns that the change makes different are written, and none of its identity, its
    credential or its birth.

    Args:
        connection: the writer's, so that nothing comes between the look and the change.
        app_id: whose.
        change: gives the app as it is to be from the app as it is.

    Raises:
        Taken: its name or its number is another app's.
    """
    row = connection.execute(select(apps).where(apps.c.id == app_id)).one_or_none()
    if row is None:
        return None
    before = app_of(row)
    app = change(before)
    clash = select(func.count()).where(
        apps.c.id != app.id,
        ((apps.c.partner_id == app.partner_id) & (apps.c.name == app.name))
        | ((apps.c.phone_number == app.phone_number) if app.phone_number else false()),
    )
    if connection.execute(clash).scalar_one():
        raise Taken(app.id)
    was = app_columns(before, "")
    columns = {name: value for name, value in app_columns(app, "").items() if name not in _FIXED and value != was[name]}
    if columns:
        connection.execute(update(apps).where(apps.c.id == app.id).values(**columns))
    return app


def delete_app(connection: Connection, app: App) -> bool:
    """Delete a sandbox app with its credentials, its subscriptions, and what still waits to be submitted for it.

    False when it has been made live meanwhile: then nothing is deleted.

    Templates belong to the business account under which they were made, which need not be the app's of
    today: another app of that one takes them over. Those of an account without another app go.
    """
    is_live = select(apps.c.live).where(apps.c.id == app.id)
    if connection.execute(is_live).scalar_one_or_none():
        return False
    _drop_entries(connection, messages, app.id)
    of_app = templates.c.app_id == app.id
    accounts = select(templates.c.business_account_id).where(of_app).distinct()
    for account_id in connection.execute(accounts).scalars().all():
        heir = connection.execute(
            select(apps.c.id)
            .where(apps.c.business_account_id == account_id, apps.c.id != app.id)
            .order_by(apps.c.id)
            .limit(1)
        ).scalar_one_or_none()
        if heir is not None:
            of_account = of_app & (templates.c.business_account_id == account_id)
            connection.execute(update(templates).where(of_account).values(app_id=heir))
    _drop_entries(connection, templates, app.id)
    gone = select(templates.c.id).where(of_app)
    for table in (template_stays, template_events):
        connection.execute(delete(table).where(table.c.template_id.in_(gone)))
    connection.execute(delete(app_stays).where(app_stays.c.app_id == app.id))
    connection.execute(delete(app_users).where(app_users.c.app_id == app.id))
    connection.execute(delete(templates).where(of_app))
    connection.execute(delete(subscriptions).where(subscriptions.c.app_id == app.id))
    forget_app_keys(connection, app.id)
    connection.execute(delete(apps).where(apps.c.id == app.id))
    return True


def _drop_entries(connection: Connection, things: Table, app_id: str) -> None:
    """Delete the open entries about an app's messages or templates.

    Entries are few and messages many, so the way is from the entry to what it is about: a reference
    ends with its id.
    """
    jobs = queue_jobs.alias()
    about = func.substr(jobs.c.ref, func.length(jobs.c.ref) - ID_CHARS + 1)
    positions = select(jobs.c.position).join(things, things.c.id == about).where(things.c.app_id == app_id)
    connection.execute(delete(queue_jobs).where(queue_jobs.c.position.in_(positions)))
