"""Partners and their tokens, apps, business accounts and operator accounts."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, bindparam, delete, false, func, insert, select, update

from waypost.domain.app import App, BusinessAccount, OperatorAccount
from waypost.domain.partner import Partner
from waypost.store.accounts.credentials import valid_secrets
from waypost.store.bulk_statements import BulkSelect
from waypost.store.encoding import (
    app_columns,
    decode_app,
    decode_business_account,
    decode_operator_account,
    decode_partner,
    operator_account_columns,
    partner_columns,
)
from waypost.store.sql import read_all, read_one, row_values, upsert
from waypost.store.tables import (
    apps,
    business_accounts,
    client_secrets,
    old_app_tokens,
    operator_accounts,
    partner_tokens,
    partners,
)


@dataclass(frozen=True, slots=True)
class LoginRecord:
    """A partner with the data that a login is checked against."""

    partner: Partner
    password_hash: str
    password_changed: bool  # since the partner was created; the API then no longer accepts the password
    secret_hashes: frozenset[str]  # of every client secret that has not expired


def find_login_record(connection: Connection, email: str, now_ms: int) -> LoginRecord | None:
    """Return the partner with this e-mail address, or None."""
    row = connection.execute(select(partners).where(partners.c.email == email.lower())).one_or_none()
    if row is None:
        return None
    secrets = valid_secrets(connection, row.id, now_ms)
    return LoginRecord(decode_partner(row), row.password_hash, row.password_changed, secrets)


def change_password(connection: Connection, partner_id: int, password_hash: str) -> None:
    """Set a partner's password; the API does not accept a changed one."""
    connection.execute(
        update(partners).where(partners.c.id == partner_id).values(password_hash=password_hash, password_changed=True)
    )


def add_partner(connection: Connection, partner: Partner, password_hash: str, now_ms: int) -> int | None:
    """Store a partner; return its id, or None if the e-mail address is in use. An id of 0 requests a new id."""
    duplicate = select(partners.c.id).where(partners.c.email == partner.email.lower())
    if connection.execute(duplicate).one_or_none() is not None:
        return None
    columns = partner_columns(partner) | {"password_hash": password_hash, "created_on_ms": now_ms}
    if partner.id:
        columns["id"] = partner.id
    return connection.execute(insert(partners).returning(partners.c.id), columns).scalar_one()


def partner_by_id(connection: Connection, partner_id: int) -> Partner | None:
    """Return one partner, or None."""
    return read_one(connection, _PARTNER_BY_ID, decode_partner, partner_id=partner_id)


def partner_by_email(connection: Connection, email: str) -> Partner | None:
    """Return the partner with this e-mail address, or None."""
    return read_one(connection, select(partners).where(partners.c.email == email.lower()), decode_partner)


def change_partner(connection: Connection, email: str, values: Mapping[str, str]) -> None:
    """Set fields of a partner's profile, such as its name; without effect if there is no such partner."""
    has_email = partners.c.email == email.lower()
    row = connection.execute(select(partners).where(has_email).with_for_update()).one_or_none()
    if row is not None:
        columns = partner_columns(replace(decode_partner(row), **values))
        connection.execute(update(partners).where(has_email).values(profile=columns["profile"]))


def all_partners(connection: Connection) -> list[Partner]:
    """Return every partner, oldest first."""
    return read_all(connection, select(partners).order_by(partners.c.id), decode_partner)


def add_partner_token(
    connection: Connection,
    token_hash: str,
    partner_id: int,
    now_ms: int,
    expires_on_ms: int,
    secret_hash: str | None = None,
) -> bool:
    """Store a partner token's hash, and delete expired tokens.

    Args:
        secret_hash: of the client secret that the login used; revoking that one ends the token too.

    Returns:
        False if that client secret has been revoked meanwhile: then nothing is stored.
    """
    connection.execute(delete(partner_tokens).where(partner_tokens.c.expires_on_ms <= now_ms))
    if secret_hash is not None:
        # Its row is locked, so that a revocation waits for the token that it has to end.
        secret = select(client_secrets.c.hash).where(client_secrets.c.hash == secret_hash)
        if connection.execute(secret.with_for_update()).first() is None:
            return False
    connection.execute(
        insert(partner_tokens),
        {"hash": token_hash, "partner_id": partner_id, "expires_on_ms": expires_on_ms, "secret_hash": secret_hash},
    )
    return True


def delete_partner_tokens(connection: Connection, partner_id: int) -> int:
    """End every partner token of a partner, and return how many."""
    statement = delete(partner_tokens).where(partner_tokens.c.partner_id == partner_id)
    return connection.execute(statement).rowcount


def partner_of_token(connection: Connection, token_hash: str) -> tuple[int, int] | None:
    """Return partner id and expiry of a partner token, or None."""
    columns = (partner_tokens.c.partner_id, partner_tokens.c.expires_on_ms)
    return read_one(connection, select(*columns).where(partner_tokens.c.hash == token_hash), _owner_and_expiry)


def partner_of_app_token(connection: Connection, token_hash: str) -> int | None:
    """Return the partner that owns the app with this app token, or None. Additional keys are in `app_keys`."""
    return connection.execute(
        select(apps.c.partner_id).where(apps.c.token_hash == token_hash).limit(1)
    ).scalar_one_or_none()


def partner_of_old_app_token(connection: Connection, token_hash: str) -> tuple[int, int] | None:
    """Return partner and expiry of an app token of before the instance key was replaced, or None."""
    columns = (old_app_tokens.c.partner_id, old_app_tokens.c.expires_on_ms)
    return read_one(connection, select(*columns).where(old_app_tokens.c.hash == token_hash), _owner_and_expiry)


def replace_app_tokens(
    connection: Connection, new_hash: Callable[[App], str], app_ids: Collection[str], expires_on_ms: int
) -> int:
    """Give apps the hashes of new tokens, and accept their present ones until a time; return how many have changed."""
    replaced = 0
    for row in connection.execute(select(apps).where(apps.c.id.in_(app_ids)).with_for_update()).all():
        token_hash = new_hash(decode_app(row))
        if token_hash == row.token_hash:
            continue
        replaced += 1
        old = row_values(old_app_tokens, row, hash=row.token_hash, app_id=row.id, expires_on_ms=expires_on_ms)
        connection.execute(upsert(old_app_tokens).on_conflict_do_nothing(), old)
        connection.execute(update(apps).where(apps.c.id == row.id).values(token_hash=token_hash))
    return replaced


def add_app(connection: Connection, app: App, token_hash: str) -> bool:
    """Store an app; return False if its name or its source number is in use."""
    duplicates = select(func.count()).where(
        (apps.c.id == app.id)
        | ((apps.c.phone_number == app.phone_number) if app.phone_number else false())
        | ((apps.c.partner_id == app.partner_id) & (apps.c.name == app.name))
    )
    if connection.execute(duplicates).scalar_one():
        return False
    connection.execute(insert(apps), app_columns(app, token_hash))
    return True


def renew_app_token(connection: Connection, app_id: str, serial: int, token_hash: str, now_ms: int) -> None:
    """Revoke an app's token by raising its serial."""
    connection.execute(delete(old_app_tokens).where(old_app_tokens.c.app_id == app_id))
    connection.execute(
        update(apps)
        .where(apps.c.id == app_id)
        .values(token_serial=serial, token_hash=token_hash, modified_on_ms=now_ms)
    )


def app_by_id(connection: Connection, app_id: str) -> App | None:
    """Return one app of any partner, or None; the caller compares `partner_id`."""
    return read_one(connection, _APP_BY_ID, decode_app, app_id=app_id)


def apps_with_operators(connection: Connection, ids: Collection[str]) -> dict[str, tuple[App, str | None]]:
    """Return apps by id, each with the id of its operator account."""
    found = list(map(decode_app, _APPS_BY_IDS.run(connection, ids)))
    operators = dict(_OPERATORS_BY_ACCOUNTS.run(connection, set(map(attrgetter("business_account_id"), found))))
    return {app.id: (app, operators.get(app.business_account_id)) for app in found}


def app_by_source(connection: Connection, partner_id: int, source: str) -> App | None:
    """Return the partner's app with this source number, or None."""
    return read_one(connection, _APP_BY_SOURCE, decode_app, source=source, partner_id=partner_id)


def app_by_phone_number_id(connection: Connection, operator_account_id: str, phone_number_id: str) -> App | None:
    """Return the app of this number, within the operator account of the webhook."""
    numbers = {"number_id": phone_number_id, "operator_id": operator_account_id}
    row = connection.execute(_APP_BY_PHONE_NUMBER_ID, numbers).first()
    return None if row is None else decode_app(row)


def all_apps(connection: Connection) -> list[App]:
    """Return every app, oldest first."""
    return read_all(connection, select(apps).order_by(apps.c.created_on_ms), decode_app)


def add_business_account(connection: Connection, account: BusinessAccount) -> bool:
    """Store a business account; return False if its id is in use."""
    if business_account_by_id(connection, account.id) is not None:
        return False
    connection.execute(insert(business_accounts), row_values(business_accounts, account))
    return True


def business_account_by_id(connection: Connection, account_id: str) -> BusinessAccount | None:
    """Return one business account, or None."""
    return read_one(connection, _BUSINESS_ACCOUNT_BY_ID, decode_business_account, account_id=account_id)


def put_operator_account(connection: Connection, account: OperatorAccount, seal: Callable[[str, str], bytes]) -> None:
    """Store an operator account, or replace the one with this id."""
    connection.execute(delete(operator_accounts).where(operator_accounts.c.id == account.id))
    connection.execute(insert(operator_accounts), operator_account_columns(account, seal))


def operator_account_by_id(
    connection: Connection, account_id: str, unseal: Callable[[bytes, str], str]
) -> OperatorAccount | None:
    """Return one operator account with its secrets decrypted, or None."""
    return read_one(
        connection, _OPERATOR_ACCOUNT_BY_ID, lambda row: decode_operator_account(row, unseal), account_id=account_id
    )


def all_operator_accounts(connection: Connection, unseal: Callable[[bytes, str], str]) -> list[OperatorAccount]:
    """Return every operator account with its secrets decrypted, in the order of ids."""
    rows = connection.execute(select(operator_accounts).order_by(operator_accounts.c.id))
    return [decode_operator_account(row, unseal) for row in rows]


def all_business_accounts(connection: Connection) -> list[BusinessAccount]:
    """Return every business account, in the order of ids."""
    return read_all(connection, select(business_accounts).order_by(business_accounts.c.id), decode_business_account)


def first_operator_account_id(connection: Connection) -> str | None:
    """Return the id of the operator account of the plain webhook path."""
    return connection.execute(
        select(operator_accounts.c.id).order_by(operator_accounts.c.id).limit(1)
    ).scalar_one_or_none()


_PARTNER_BY_ID: Final = select(partners).where(partners.c.id == bindparam("partner_id"))
_APP_BY_ID: Final = select(apps).where(apps.c.id == bindparam("app_id"))
_APP_BY_SOURCE: Final = select(apps).where(
    apps.c.phone_number == bindparam("source"), apps.c.partner_id == bindparam("partner_id")
)
_APP_BY_PHONE_NUMBER_ID: Final = (
    select(apps)
    .join(business_accounts, business_accounts.c.id == apps.c.business_account_id)
    .where(
        apps.c.phone_number_id == bindparam("number_id"),
        business_accounts.c.operator_account_id == bindparam("operator_id"),
    )
)
_BUSINESS_ACCOUNT_BY_ID: Final = select(business_accounts).where(business_accounts.c.id == bindparam("account_id"))
_OPERATOR_ACCOUNT_BY_ID: Final = select(operator_accounts).where(operator_accounts.c.id == bindparam("account_id"))


def _owner_and_expiry(row: Any) -> tuple[int, int]:
    return row.partner_id, row.expires_on_ms


class _AppRow(NamedTuple):
    id: str
    partner_id: int
    name: str
    phone_number: str | None
    phone_number_id: str
    business_account_id: str
    created_on_ms: int
    modified_on_ms: int
    live: bool
    hosting: str
    token_serial: int
    per_second: int | None
    preferences: str
    rates: str


class _OperatorRow(NamedTuple):
    id: str
    operator_account_id: str


_APPS_BY_IDS: Final = BulkSelect(apps, _AppRow, "id", is_locked=False)
_OPERATORS_BY_ACCOUNTS: Final = BulkSelect(business_accounts, _OperatorRow, "id", is_locked=False)


def set_block_enabled(connection: Connection, partner_id: int, enabled: bool) -> None:
    """Store a partner's preference for blocking users."""
    connection.execute(update(partners).where(partners.c.id == partner_id).values(block_enabled=enabled))
