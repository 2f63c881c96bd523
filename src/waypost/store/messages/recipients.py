"""Recipients: the users that a number exchanges messages with, by phone number, business-scoped id, or both.

The row of a person that counts has the current number and the current business-scoped id. Other rows of the same
person point to it with `same_as`: a former id, a parent id, a number whose WhatsApp id is the current number, or a row
that was created before both were known to be one person. Callbacks are in order within the row that counts.
Functions that link names add to `merged` the rows that were found to be one person: the id of each and that of the row
that counts.
"""

from collections.abc import Collection, Iterable, Set
from operator import attrgetter, itemgetter
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    case,
    delete,
    func,
    insert,
    or_,
    select,
    union_all,
    update,
)

from waypost.domain.app import App
from waypost.store.bulk_statements import BulkInsert, BulkSelect, BulkUpdate, bulk_insert_new
from waypost.store.sql import equals_any, read_all, upsert
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
    """
    by_number = _person_of(connection, app, recipients.c.phone_number, names.phone_number)
    by_user = _person_of(connection, app, recipients.c.user_id, names.user_id)
    by_parent = _person_of(connection, app, recipients.c.user_id, names.parent_id)
    person = by_user if by_user is not None else by_parent
    is_new_number = by_number is None
    if by_number is not None and person is not None and by_number.id != person.id:
        if names.user_id and by_number.user_id and by_user is not None:
            _clear_numbers(connection, _has_name(app, recipients.c.phone_number, names.phone_number))
            is_new_number = True
        else:
            _clear_numbers(connection, _is_of_person(person.id))
            person = _merge(connection, app, by_number.id, person.id, merged)
    elif person is None:
        person = by_number
    if person is None:
        user_id = names.user_id or (None if names.phone_number else names.parent_id)
        row = {"partner_id": app.partner_id, "app_id": app.id, "phone_number": names.phone_number, "user_id": user_id}
        person_id = connection.execute(insert(recipients).values(**row).returning(recipients.c.id)).scalar_one()
        if names.parent_id and user_id != names.parent_id:
            _add_name(connection, app, person_id, names.parent_id)
        return person_id
    if names.phone_number and is_new_number:
        _replace_number(connection, person.id, names.phone_number)
        _move_opt_in(connection, app, person.user_id or names.user_id, names.phone_number)
    if names.user_id and by_user is None:
        _set(connection, person.id, user_id=names.user_id)
    if names.parent_id and (by_parent is None or (by_user is None and person.user_id == names.parent_id)):
        _add_name(connection, app, person.id, names.parent_id)
    return person.id


def link_number(connection: Connection, app: App, person_id: int, number: str, merged: dict[int, int]) -> int:
    """Return the row of a person, to which from now on another number leads too: one whose WhatsApp id the person has.

    A row that the number has of its own is the same person's. If it has another user id, or the number has led to
    another person as here, the number has passed to this person.
    """
    is_number = _has_name(app, recipients.c.phone_number, number)
    row = connection.execute(select(recipients).where(is_number)).one_or_none()
    if row is not None and person_id in (row.id, row.same_as):
        return person_id
    person = _recipient_row(connection, person_id)
    if row is not None and row.same_as is None and not (row.user_id and person.user_id):
        older_id, newer_id = sorted((person.id, row.id))  # the older one has numbered callbacks
        kept = _merge(connection, app, older_id, newer_id, merged)
        if person.phone_number and kept.phone_number == number:
            _set(connection, person.id, phone_number=None)
            _set(connection, kept.id, phone_number=person.phone_number)
            _set(connection, person.id, phone_number=number)
        _unite_users(connection, app, kept.id)
        return kept.id
    if row is not None:
        _clear_numbers(connection, is_number)
    columns = {"partner_id": app.partner_id, "app_id": app.id, "phone_number": number, "same_as": person_id}
    insertion = upsert(recipients).values(**columns).on_conflict_do_nothing().returning(recipients.c.id)
    if connection.execute(insertion).one_or_none() is None:  # another process has inserted it meanwhile
        return link_number(connection, app, person_id, number, merged)
    _unite_users(connection, app, person_id)
    return person_id


def find_names(connection: Connection, app_id: str, numbers: Collection[str]) -> dict[str, list[str]]:
    """Return all names of the persons that numbers lead to, by number; an unknown number is the only name."""
    person_id = func.coalesce(recipients.c.same_as, recipients.c.id)
    query = select(recipients.c.phone_number, person_id.label("person_id"))
    of_app = query.where(recipients.c.app_id == app_id, recipients.c.phone_number.in_(numbers))
    persons = {row.phone_number: row.person_id for row in connection.execute(of_app)}
    names = names_of_persons(connection, set(persons.values()))
    return {number: names[persons[number]] if number in persons else [number] for number in numbers}


def names_of_persons(connection: Connection, person_ids: Collection[int]) -> dict[int, list[str]]:
    """Return the numbers and the business-scoped ids of persons, by the id of the row that counts."""
    names: dict[int, list[str]] = {person_id: [] for person_id in person_ids}
    columns = (recipients.c.phone_number, recipients.c.user_id)
    own = select(recipients.c.id.label("person_id"), *columns).where(recipients.c.id.in_(person_ids))
    others = select(recipients.c.same_as, *columns).where(recipients.c.same_as.in_(person_ids))
    for row in connection.execute(union_all(own, others)):
        names[row.person_id] += [name for name in (row.phone_number, row.user_id) if name]
    return names


def record_user_id_change(
    connection: Connection, app: App, previous: str, names: PersonNames, merged: dict[int, int]
) -> int:
    """Return the row of a person whose business-scoped id has changed; the previous id leads to it too."""
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
    """Return the row of a person whose number has changed; the previous number leads to nobody then."""
    person = _person_of(connection, app, recipients.c.phone_number, previous)
    current = _person_of(connection, app, recipients.c.phone_number, names.phone_number)
    if person is not None and current is not None and person.id != current.id:
        _clear_numbers(connection, _is_of_person(person.id))
        _merge(connection, app, current.id, person.id, merged)
    elif person is not None and names.phone_number:
        _replace_number(connection, person.id, names.phone_number)
    return link_names(connection, app, names, merged)


def _person_of(connection: Connection, app: App, column: Any, value: str | None) -> Row[Any] | None:
    if not value:
        return None
    found = select(func.coalesce(recipients.c.same_as, recipients.c.id)).where(_has_name(app, column, value))
    return connection.execute(select(recipients).where(recipients.c.id == found.scalar_subquery())).one_or_none()


def _has_name(app: App, column: ColumnElement[Any], value: str | None) -> ColumnElement[bool]:
    return and_(recipients.c.app_id == app.id, column == value)


def _is_of_person(person_id: int) -> ColumnElement[bool]:
    return or_(recipients.c.id == person_id, recipients.c.same_as == person_id)


def _merge(connection: Connection, app: App, first_id: int, second_id: int, merged: dict[int, int]) -> Row[Any]:
    """Make one row of two of the same person count, and return it; a second number leads to it too.

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
    second_number = other.phone_number if kept.phone_number and other.phone_number else None
    _set(connection, other.id, same_as=kept.id, phone_number=second_number, user_id=former_id)
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


def _add_name(connection: Connection, app: App, person_id: int, user_id: str) -> None:
    row = {"partner_id": app.partner_id, "app_id": app.id, "user_id": user_id, "same_as": person_id}
    connection.execute(insert(recipients).values(**row))


def _move_opt_in(connection: Connection, app: App, user_id: str | None, phone_number: str) -> None:
    """Store under the number what a user decided while only the user id was known, unless the number has its own."""
    if not user_id:
        return
    of_app = app_users.c.app_id == app.id
    names = select(app_users.c.phone_number).where(of_app, app_users.c.phone_number.in_((user_id, phone_number)))
    if connection.execute(names).scalars().all() == [user_id]:
        is_user = app_users.c.phone_number == user_id
        connection.execute(update(app_users).where(of_app, is_user).values(phone_number=phone_number))


def _unite_users(connection: Connection, app: App, person_id: int) -> None:
    """Make one row of those that a person has under several names: the latest opt-in or opt-out, and any block."""
    of_app = app_users.c.app_id == app.id
    names = names_of_persons(connection, [person_id])[person_id]
    latest = app_users.c.opted_on_ms.desc().nulls_last(), app_users.c.phone_number
    rows = connection.execute(select(app_users).where(of_app, app_users.c.phone_number.in_(names)).order_by(*latest))
    users = rows.all()
    if len(users) < 2:
        return
    kept, *others = users
    other_names = [other.phone_number for other in others]
    connection.execute(delete(app_users).where(of_app, app_users.c.phone_number.in_(other_names)))
    if any(other.blocked for other in others):
        is_kept = app_users.c.phone_number == kept.phone_number
        connection.execute(update(app_users).where(of_app, is_kept).values(blocked=True))


def _replace_number(connection: Connection, person_id: int, number: str) -> None:
    _clear_numbers(connection, _is_of_person(person_id))
    _set(connection, person_id, phone_number=number)


def _clear_numbers(connection: Connection, condition: ColumnElement[bool]) -> None:
    connection.execute(update(recipients).where(condition).values(phone_number=None))


def _set(connection: Connection, id: int, **columns: Any) -> None:
    connection.execute(update(recipients).where(recipients.c.id == id).values(**columns))


_Row = TypeVar("_Row", bound=NamedTuple)


class NumberWithUserId(NamedTuple):
    """A number of a recipient, and the business-scoped id that the operator gave for it."""

    app_id: str
    recipient_id: int
    phone_number: str
    user_id: str


def get_or_create_recipient(
    connection: Connection,
    app: App,
    phone_number: str | None,
    user_id: str | None = None,
    parent_id: str | None = None,
    merged: dict[int, int] | None = None,
) -> int:
    """Return the id of the recipient with these names, created if it is new; what is newly known of it is stored.

    Args:
        phone_number: digits; another text is a business-scoped id.
        parent_id: the id in a group of linked portfolios.

    Raises:
        ValueError: there is no name at all.
    """
    if phone_number and not phone_number.isdecimal():  # a message's destination may be either
        phone_number, user_id = None, user_id or phone_number
    by_number = _find_recipient(connection, _BY_PHONE_NUMBER, app, phone_number)
    by_user = _find_recipient(connection, _BY_USER_ID, app, user_id)
    found = {row.person_id for row in (by_number, by_user) if row is not None}
    is_complete = (by_number is not None or not phone_number) and (by_user is not None or not user_id)
    if is_complete and len(found) == 1 and not parent_id:
        return found.pop()
    if not found and not parent_id:
        if not phone_number and not user_id:
            raise ValueError("a recipient has a number or a user id")
        new = _INSERT_RECIPIENT.fetch(connection, [(app.partner_id, app.id, phone_number, user_id)])
        # Another process may have inserted it meanwhile.
        return new[0][0] if new else get_or_create_recipient(connection, app, phone_number, user_id)
    names = PersonNames(phone_number, user_id, parent_id)
    return link_names(connection, app, names, merged if merged is not None else {})


def get_or_create_recipients(
    connection: Connection, identities: Set[tuple[str, int, str]]
) -> dict[tuple[str, str], int]:
    """Return recipients by app id and phone number or business-scoped id, created if they are new.

    Args:
        identities: for each its app's id, its partner's id, and its phone number or business-scoped id.
    """
    ids = find_recipients(connection, {(app_id, name) for app_id, _, name in identities})
    new = [identity for identity in sorted(identities) if (identity[0], identity[2]) not in ids]
    if new:
        rows = [
            (partner_id, app_id, *((name, None) if name.isdecimal() else (None, name)), "")
            for app_id, partner_id, name in new
        ]
        _INSERT_RECIPIENTS.run(connection, rows)
        ids |= find_recipients(connection, {(app_id, name) for app_id, _, name in new})
    return ids


def add_user_ids(connection: Connection, identities: Collection[NumberWithUserId]) -> list[NumberWithUserId]:
    """Store business-scoped ids with the numbers that they belong to, where neither is anybody else's.

    These are nearly all: the operator gives a user id with the first status to a number. The others change more than
    one row: see `link_names`.

    Args:
        identities: each number and each user id of an app at most once.

    Returns:
        Those that the store has now, in the same order.
    """
    app_ids = set(map(attrgetter("app_id"), identities))
    by_number = _NAMED_BY_PHONE_NUMBER.run(connection, app_ids, set(map(attrgetter("phone_number"), identities)))
    by_user_id = _NAMED_BY_USER_ID.run(connection, app_ids, set(map(attrgetter("user_id"), identities)))
    users = {(row.app_id, row.phone_number): row for row in by_number if row.same_as is None}
    used_ids = set(map(attrgetter("app_id", "user_id"), by_user_id))
    stored: list[NumberWithUserId] = []
    new: list[tuple[str, int]] = []
    for identity in identities:
        row = users.get((identity.app_id, identity.phone_number))
        if row is None or row.id != identity.recipient_id or row.user_id not in (None, identity.user_id):
            continue
        if row.user_id is None:
            if (identity.app_id, identity.user_id) in used_ids:
                continue
            new.append((identity.user_id, row.id))
        stored.append(identity)
    _SET_USER_IDS.run(connection, sorted(new, key=itemgetter(1)))
    return stored


def find_recipients(connection: Connection, pairs: Set[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Return recipients by app id and phone number or business-scoped id, found together; unknown ones are left out."""
    app_ids, numbers, user_ids = set[str](), set[str](), set[str]()
    for app_id, name in pairs:
        app_ids.add(app_id)
        (numbers if name.isdecimal() else user_ids).add(name)
    found: dict[tuple[str, str], int] = {}
    for row in _NAMED_BY_PHONE_NUMBER.run(connection, app_ids, numbers):
        found[row.app_id, row.phone_number or ""] = row.same_as or row.id
    for row in _NAMED_BY_USER_ID.run(connection, app_ids, user_ids) if user_ids else ():
        found[row.app_id, row.user_id or ""] = row.same_as or row.id
    for pair in found.keys() - pairs:  # the name of one app, found for another
        del found[pair]
    return found


def name_of_recipient(connection: Connection, id: int) -> str:
    """Return a recipient's number, or its business-scoped id where no number is known."""
    query = select(func.coalesce(recipients.c.phone_number, recipients.c.user_id)).where(recipients.c.id == id)
    return connection.execute(query).scalar_one()


def recipient_names(connection: Connection, app_id: str, addresses: Iterable[str]) -> dict[str, str]:
    """Return the names that recipients of an app use, by their number or business-scoped id.

    A recipient has a name once it has written; others are left out.
    """
    ids = find_recipients(connection, {(app_id, address) for address in addresses})
    if not ids:
        return {}
    names = dict(read_all(connection, _NAMES_BY_ID, tuple, ids=sorted(set(ids.values()))))
    return {address: names[id] for (_, address), id in ids.items() if id in names}  # noqa: A001


def record_recipient_activity(connection: Connection, id: int, name: str, window_until_ms: int) -> None:
    """Store a recipient's name and extend its window; an older message that is processed late does not shorten it."""
    connection.execute(_RECORD_ACTIVITY, {"of_id": id, "new_name": name, "until_ms": window_until_ms})


def recipient_ids(connection: Connection, condition: ColumnElement[bool]) -> list[int]:
    """Return the ids of recipients that satisfy a condition, and of all rows of the same persons."""
    persons_query = select(func.coalesce(recipients.c.same_as, recipients.c.id)).where(condition)
    persons = sorted(set(connection.execute(persons_query).scalars()))
    if not persons:
        return []
    others = connection.execute(select(recipients.c.id).where(recipients.c.same_as.in_(persons))).scalars()
    return [*persons, *others]


class _RecipientRow(NamedTuple):
    id: int
    same_as: int | None

    @property
    def person_id(self) -> int:
        """The id of the row that counts."""
        return self.same_as or self.id


def _find_recipient(
    connection: Connection, statement: BulkSelect[_RecipientRow], app: App, value: str | None
) -> _RecipientRow | None:
    rows = statement.run(connection, [app.id], [value]) if value else []
    return rows[0] if rows else None


def _select_by(column: str, row: type[_Row]) -> BulkSelect[_Row]:
    return BulkSelect(recipients, row, "app_id", column, is_locked=False, index=f"recipients_by_{column}")


class _NamedRow(NamedTuple):
    id: int
    app_id: str
    phone_number: str | None
    user_id: str | None
    same_as: int | None


_INSERT_RECIPIENTS: Final = BulkInsert(  # another process may insert them first
    recipients, "partner_id", "app_id", "phone_number", "user_id", "name", skips_existing=True
)
_NAMED_BY_PHONE_NUMBER: Final = _select_by("phone_number", _NamedRow)
_NAMED_BY_USER_ID: Final = _select_by("user_id", _NamedRow)
_BY_PHONE_NUMBER: Final = _select_by("phone_number", _RecipientRow)
_BY_USER_ID: Final = _select_by("user_id", _RecipientRow)
_SET_USER_IDS: Final = BulkUpdate(recipients, "id", "user_id")
_INSERT_RECIPIENT: Final = bulk_insert_new(
    recipients, "partner_id", "app_id", "phone_number", "user_id", returned=["id"]
)
_UNTIL_MS: Final = bindparam("until_ms", type_=recipients.c.window_until_ms.type)
_RECORD_ACTIVITY: Final = (
    update(recipients)
    .where(recipients.c.id == bindparam("of_id"))
    .values(
        name=bindparam("new_name"),
        window_until_ms=case(
            (func.coalesce(recipients.c.window_until_ms, 0) < _UNTIL_MS, _UNTIL_MS), else_=recipients.c.window_until_ms
        ),
    )
)
_NAMES_BY_ID: Final = select(recipients.c.id, recipients.c.name).where(
    equals_any(recipients.c.id, "ids"), recipients.c.name != ""
)
