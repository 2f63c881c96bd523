"""Recipients: the users that a number exchanges messages with, by phone number, business-scoped id, or both."""

from collections.abc import Collection, Iterable, Set
from operator import itemgetter
from typing import Final, NamedTuple, TypeVar

from sqlalchemy import ColumnElement, Connection, case, func, select, update

from waypost.domain.app import App
from waypost.store.bulk_statements import BulkInsert, BulkInsertNew, BulkSelect, BulkUpdate
from waypost.store.messages.persons import PersonNames, link_names
from waypost.store.sql import equals_any
from waypost.store.tables import recipients

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
        connection: the writer's.
        app: the app that the recipient exchanges messages with.
        phone_number: digits; another text is a business-scoped id.
        user_id: the business-scoped id.
        parent_id: the id in a group of linked portfolios.
        merged: gets the rows that were found to be one person: the id of each and that of the row that counts.

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
        return _create_recipient(connection, app, phone_number, user_id)
    names = PersonNames(phone_number, user_id, parent_id)
    return link_names(connection, app, names, merged if merged is not None else {})


def _create_recipient(connection: Connection, app: App, phone_number: str | None, user_id: str | None) -> int:
    if not phone_number and not user_id:
        raise ValueError("a recipient has a number or a user id")
    new = _INSERT_RECIPIENT.run(connection, [(app.partner_id, app.id, phone_number, user_id)])
    # Another process may have inserted it meanwhile.
    return new[0][0] if new else get_or_create_recipient(connection, app, phone_number, user_id)


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
    ids = find_recipients(connection, {(app_id, name) for app_id, _, name in identities})
    new = [identity for identity in sorted(identities) if (identity[0], identity[2]) not in ids]
    if new:
        _INSERT_RECIPIENTS.run(
            connection, [(partner_id, app_id, *_identity_columns(name), "") for app_id, partner_id, name in new]
        )
        ids |= find_recipients(connection, {(app_id, name) for app_id, _, name in new})
    return ids


def add_user_ids(connection: Connection, identities: Collection[NumberWithUserId]) -> set[NumberWithUserId]:
    """Store business-scoped ids with the numbers that they belong to, where neither is anybody else's.

    These are nearly all: the operator gives a user id with the first status to a number. The others change more than
    one row: see `link_names`.

    Args:
        connection: the writer's.
        identities: each number and each user id of an app at most once.

    Returns:
        Those that the store has now.
    """
    app_ids = {identity.app_id for identity in identities}
    by_number = _USERS_BY_PHONE_NUMBER.run(connection, app_ids, {identity.phone_number for identity in identities})
    by_user_id = _IDS_BY_USER_ID.run(connection, app_ids, {identity.user_id for identity in identities})
    users = {(row.app_id, row.phone_number): row for row in by_number if row.same_as is None}
    used_ids = {(row.app_id, row.user_id) for row in by_user_id}
    stored: set[NumberWithUserId] = set()
    new: list[tuple[str, int]] = []
    for identity in identities:
        row = users.get((identity.app_id, identity.phone_number))
        if row is None or row.id != identity.recipient_id or row.user_id not in (None, identity.user_id):
            continue
        if row.user_id is None:
            if (identity.app_id, identity.user_id) in used_ids:
                continue
            new.append((identity.user_id, row.id))
        stored.add(identity)
    _SET_USER_IDS.run(connection, sorted(new, key=itemgetter(1)))
    return stored


def find_recipients(connection: Connection, pairs: Set[tuple[str, str]]) -> dict[tuple[str, str], int]:
    """Return recipients by app id and phone number or business-scoped id, found together; unknown ones are left out."""
    names = {name for _, name in pairs}
    app_ids = {app_id for app_id, _ in pairs}
    numbers = {name for name in names if name.isdecimal()}
    rows = [
        *_IDS_BY_PHONE_NUMBER.run(connection, app_ids, numbers),
        *_IDS_BY_USER_ID.run(connection, app_ids, names - numbers),
    ]
    known = {(app_id, name): same_as or recipient_id for recipient_id, app_id, name, same_as in rows}
    return {pair: known[pair] for pair in pairs if pair in known}


def _identity_columns(name: str) -> tuple[str | None, str | None]:
    """Return the phone number and the business-scoped id: one of them is None."""
    return (name, None) if name.isdecimal() else (None, name)


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
    rows = connection.execute(_NAMES_BY_ID, {"ids": sorted(set(ids.values()))})
    names = {row.id: row.name for row in rows}
    return {address: names[id] for (_, address), id in ids.items() if id in names}  # noqa: A001


def record_recipient_activity(connection: Connection, id: int, name: str, window_until_ms: int) -> None:
    """Store a recipient's name and extend its window; an older message that is processed late does not shorten it."""
    is_later = func.coalesce(recipients.c.window_until_ms, 0) < window_until_ms
    connection.execute(
        update(recipients)
        .where(recipients.c.id == id)
        .values(name=name, window_until_ms=case((is_later, window_until_ms), else_=recipients.c.window_until_ms))
    )


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
    """Return a statement that finds recipients by their app and one name."""
    return BulkSelect(recipients, row, "app_id", column, is_locked=False, index=f"recipients_by_{column}")


class _IdByPhoneNumber(NamedTuple):
    id: int
    app_id: str
    phone_number: str
    same_as: int | None


class _IdByUserId(NamedTuple):
    id: int
    app_id: str
    user_id: str
    same_as: int | None


class _UserByPhoneNumber(NamedTuple):
    id: int
    app_id: str
    phone_number: str
    user_id: str | None
    same_as: int | None


_INSERT_RECIPIENTS: Final = BulkInsert(  # another process may insert them first
    recipients, "partner_id", "app_id", "phone_number", "user_id", "name", skips_existing=True
)
_IDS_BY_PHONE_NUMBER: Final = _select_by("phone_number", _IdByPhoneNumber)
_IDS_BY_USER_ID: Final = _select_by("user_id", _IdByUserId)
_BY_PHONE_NUMBER: Final = _select_by("phone_number", _RecipientRow)
_BY_USER_ID: Final = _select_by("user_id", _RecipientRow)
_USERS_BY_PHONE_NUMBER: Final = _select_by("phone_number", _UserByPhoneNumber)
_SET_USER_IDS: Final = BulkUpdate(recipients, "id", "user_id")
_INSERT_RECIPIENT: Final = BulkInsertNew(recipients, "partner_id", "app_id", "phone_number", "user_id", returned=["id"])
_NAMES_BY_ID: Final = select(recipients.c.id, recipients.c.name).where(
    equals_any(recipients.c.id, "ids"), recipients.c.name != ""
)
