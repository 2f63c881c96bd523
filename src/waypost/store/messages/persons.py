"""One person under several names: a number, a business-scoped id, an id of linked portfolios, and how they change.

The row of a person that counts has the current number and the current business-scoped id. Other rows of the same
person point to it with `same_as`: a former id, a parent id, or a row that was created before both were known to be
one person. Callbacks are in order within the row that counts.
"""

from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Row, func, insert, select, update

from waypost.domain.app import App
from waypost.store.tables import app_users, callbacks, inbound_messages, messages, recipients, subscriptions

MAX_SEARCHED_CALLBACKS: Final = 1000
"""Among how many of the newest undelivered callbacks of a subscription a person's are searched."""


class PersonNames(NamedTuple):
    """The names of one person in one event; None where the operator gave none."""

    phone_number: str | None
    user_id: str | None
    parent_id: str | None = None


def link_names(connection: Connection, app: App, names: PersonNames, merged: dict[int, int]) -> int:
    """Return the row of the person with these names, which from now on lead to it; a row is created if none does.

    A number and a user id of two rows are one person, unless the number's row has another user id: then the number
    has passed to the other person. A new user id of a number without notice takes the place of the one before, which
    leads to nobody then: the number may have passed to a new person.

    Args:
        connection: the writer's.
        app: the app that the person exchanges messages with.
        names: one of them at least.
        merged: gets the rows that were found to be one person.
    """
    by_number = _person_of(connection, app, recipients.c.phone_number, names.phone_number)
    by_user = _person_of(connection, app, recipients.c.user_id, names.user_id)
    by_parent = _person_of(connection, app, recipients.c.user_id, names.parent_id)
    person = by_user if by_user is not None else by_parent
    if by_number is not None and person is not None and by_number.id != person.id:
        if names.user_id and by_number.user_id and by_user is not None:
            _set(connection, by_number.id, phone_number=None)
        else:
            person = _merge(connection, app, by_number.id, person.id, merged)
    elif person is None:
        person = by_number
    if person is None:
        return _insert_person(connection, app, names)
    if names.phone_number and names.phone_number != person.phone_number:
        _set(connection, person.id, phone_number=names.phone_number)
        _move_opt_in(connection, app, person.user_id or names.user_id, names.phone_number)
    if names.user_id and by_user is None:
        _set(connection, person.id, user_id=names.user_id)
    if names.parent_id and (by_parent is None or (by_user is None and person.user_id == names.parent_id)):
        _add_name(connection, app, person.id, names.parent_id)
    return person.id


def record_user_id_change(
    connection: Connection, app: App, previous: str, names: PersonNames, merged: dict[int, int]
) -> int:
    """Return the row of a person whose business-scoped id has changed; the previous id leads to it too.

    Args:
        connection: the writer's.
        app: the app that the person exchanges messages with.
        previous: the id before.
        names: the current ones.
        merged: gets the rows that were found to be one person.
    """
    person = _person_of(connection, app, recipients.c.user_id, previous)
    if person is not None and person.user_id == previous:
        _set(connection, person.id, user_id=None)
        _add_name(connection, app, person.id, previous)
    if person is not None and names.user_id:
        current = _person_of(connection, app, recipients.c.user_id, names.user_id)
        if current is None:
            _set(connection, person.id, user_id=names.user_id)
        elif current.id != person.id:
            _merge(connection, app, person.id, current.id, merged)
    return link_names(connection, app, names, merged)


def record_number_change(
    connection: Connection, app: App, previous: str, names: PersonNames, merged: dict[int, int]
) -> int:
    """Return the row of a person whose number has changed; the previous number leads to nobody then.

    Args:
        connection: the writer's.
        app: the app that the person exchanges messages with.
        previous: the number before.
        names: the current ones, with the new number.
        merged: gets the rows that were found to be one person.
    """
    person = _person_of(connection, app, recipients.c.phone_number, previous)
    current = _person_of(connection, app, recipients.c.phone_number, names.phone_number)
    if person is not None and current is not None and person.id != current.id:
        _set(connection, person.id, phone_number=None)
        _merge(connection, app, current.id, person.id, merged)
    elif person is not None and names.phone_number:
        _set(connection, person.id, phone_number=names.phone_number)
    return link_names(connection, app, names, merged)


def _person_of(connection: Connection, app: App, column: Any, value: str | None) -> Row[Any] | None:
    """Return the row that counts of the person with a name."""
    if not value:
        return None
    found = select(func.coalesce(recipients.c.same_as, recipients.c.id)).where(
        recipients.c.app_id == app.id, column == value
    )
    return connection.execute(select(recipients).where(recipients.c.id == found.scalar_subquery())).one_or_none()


def _merge(connection: Connection, app: App, first_id: int, second_id: int, merged: dict[int, int]) -> Row[Any]:
    """Make one row of two of the same person count, and return it.

    It is the one that has the newest callbacks still to be delivered, so that later ones follow them; else the first.
    """
    newest = _newest_undelivered(connection, app, str(first_id), str(second_id))
    kept_id, other_id = (second_id, first_id) if newest == str(second_id) else (first_id, second_id)
    kept, other = (_recipient_row(connection, recipient_id) for recipient_id in (kept_id, other_id))
    columns = {
        "phone_number": kept.phone_number or other.phone_number,
        "user_id": kept.user_id or other.user_id,
        "name": kept.name or other.name,
        "window_until_ms": max(kept.window_until_ms or 0, other.window_until_ms or 0) or None,
        "read_until_ms": max(kept.read_until_ms or 0, other.read_until_ms or 0) or None,
    }
    former_id = other.user_id if kept.user_id and other.user_id else None
    _set(connection, other.id, same_as=kept.id, phone_number=None, user_id=former_id)
    connection.execute(update(recipients).where(recipients.c.same_as == other.id).values(same_as=kept.id))
    connection.execute(update(messages).where(messages.c.recipient_id == other.id).values(recipient_id=kept.id))
    received = update(inbound_messages).where(inbound_messages.c.recipient_id == other.id)
    connection.execute(received.values(recipient_id=kept.id))
    _set(connection, kept.id, **columns)
    merged |= {row_id: kept.id for row_id, current in merged.items() if current == other.id} | {other.id: kept.id}
    return _recipient_row(connection, kept.id)


def _recipient_row(connection: Connection, recipient_id: int) -> Row[Any]:
    return connection.execute(select(recipients).where(recipients.c.id == recipient_id)).one()


def _newest_undelivered(connection: Connection, app: App, *subjects: str) -> str | None:
    """Return the subject of the newest undelivered callback of these, as far as it is among the newest of all."""
    newest: tuple[int, str] | None = None
    of_app = select(subscriptions.c.id).where(subscriptions.c.app_id == app.id)
    for subscription_id in connection.execute(of_app).scalars():
        undelivered = (
            select(callbacks.c.position, callbacks.c.subject)
            .where(callbacks.c.subscription_id == subscription_id, callbacks.c.ended_on_ms.is_(None))
            .order_by(callbacks.c.position.desc())
            .limit(MAX_SEARCHED_CALLBACKS)
        )
        for row in connection.execute(undelivered):
            if row.subject in subjects:
                newest = max(newest or (0, ""), (row.position, row.subject))
                break
    return None if newest is None else newest[1]


def _insert_person(connection: Connection, app: App, names: PersonNames) -> int:
    row = {
        "partner_id": app.partner_id,
        "app_id": app.id,
        "phone_number": names.phone_number,
        "user_id": names.user_id or (None if names.phone_number else names.parent_id),
    }
    person_id = connection.execute(insert(recipients).values(**row).returning(recipients.c.id)).scalar_one()
    if names.parent_id and row["user_id"] != names.parent_id:
        _add_name(connection, app, person_id, names.parent_id)
    return person_id


def _add_name(connection: Connection, app: App, person_id: int, user_id: str) -> None:
    row = {"partner_id": app.partner_id, "app_id": app.id, "user_id": user_id, "same_as": person_id}
    connection.execute(insert(recipients).values(**row))


def _move_opt_in(connection: Connection, app: App, user_id: str | None, phone_number: str) -> None:
    """Store under the number what a user has decided while only the user id was known, unless the number has its own."""
    if not user_id:
        return
    of_app = app_users.c.app_id == app.id
    names = select(app_users.c.phone_number).where(of_app, app_users.c.phone_number.in_((user_id, phone_number)))
    if connection.execute(names).scalars().all() == [user_id]:
        is_user = app_users.c.phone_number == user_id
        connection.execute(update(app_users).where(of_app, is_user).values(phone_number=phone_number))


def _set(connection: Connection, id: int, **columns: Any) -> None:
    connection.execute(update(recipients).where(recipients.c.id == id).values(**columns))
