"""Credentials of partners and sessions of the console: only their hashes are stored.

Client secrets log in and may expire, API keys send, universal tokens open every app and expire. All have one life
cycle, implemented here; the tokens that they issue are in `partners.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Final

from sqlalchemy import ColumnElement, Connection, Table, and_, bindparam, delete, func, insert, select, update

from waypost.domain.app import MAX_ENDED_TOKENS, KeyStatus
from waypost.domain.partner import Partner, PartnerCredential
from waypost.store.encoding import decode_partner
from waypost.store.sql import read_all, read_one, upsert
from waypost.store.tables import api_keys, client_secrets, console_sessions, partner_tokens, partners, universal_tokens

MAX_UNIVERSAL_TOKENS: Final = 3  # active at once. Source: ledger C4
CREDENTIAL_ID_CHARS: Final = 16  # how many characters of a credential's hash are its id


class CredentialKind(StrEnum):
    """Kinds of credentials, as named to people."""

    CLIENT_SECRET = "client secret"  # noqa: S105  a kind of credential, not one
    API_KEY = "API key"
    UNIVERSAL_TOKEN = "universal token"  # noqa: S105  likewise


CREDENTIAL_TABLES: Final[Mapping[CredentialKind, Table]] = {
    CredentialKind.CLIENT_SECRET: client_secrets,
    CredentialKind.API_KEY: api_keys,
    CredentialKind.UNIVERSAL_TOKEN: universal_tokens,
}
_PARTNERS_BY_HASH: Final = {
    kind: select(table.c.partner_id).where(table.c.hash == bindparam("hash"))
    for kind, table in CREDENTIAL_TABLES.items()
}


def add_credential(
    connection: Connection,
    kind: CredentialKind,
    partner_id: int,
    credential_hash: str,
    now_ms: int,
    name: str = "",
    expires_on_ms: int | None = None,
) -> bool:
    """Store a credential's hash, with a name or an expiry if its kind has them; False: the hash is stored already."""
    table = CREDENTIAL_TABLES[kind]
    values = {"hash": credential_hash, "partner_id": partner_id, "created_on_ms": now_ms}
    values |= {
        column: value for column, value in (("name", name), ("expires_on_ms", expires_on_ms)) if column in table.c
    }
    return connection.execute(upsert(table).on_conflict_do_nothing(), values).rowcount == 1


class DuplicateTokenName(Exception):
    """An active universal token of the partner has this name."""


class TooManyTokens(Exception):
    """The partner has as many active universal tokens as it may."""


def add_universal_token(
    connection: Connection,
    partner_id: int,
    token_hash: str,
    now_ms: int,
    name: str,
    expires_on_ms: int,
    is_name_unique: bool = False,
) -> str:
    """Store a universal token's hash, and return its id.

    Raises:
        DuplicateTokenName: names must be unique, and an active one has this name.
        TooManyTokens: the maximum of active ones is reached.

    Source: ledger C4.
    """
    kind = CredentialKind.UNIVERSAL_TOKEN
    tokens = list_credentials(connection, kind, partner_id)
    active = [token for token in tokens if token.status(now_ms) is KeyStatus.ACTIVE]
    if is_name_unique and name in {token.name for token in active}:
        raise DuplicateTokenName(name)
    if len(active) >= MAX_UNIVERSAL_TOKENS:
        raise TooManyTokens(partner_id)
    ended = [token.id for token in tokens if token.status(now_ms) is not KeyStatus.ACTIVE]
    for token_id in ended[:-MAX_ENDED_TOKENS]:
        connection.execute(delete(universal_tokens).where(_is_token(partner_id, token_id)))
    add_credential(connection, kind, partner_id, token_hash, now_ms, name, expires_on_ms)
    return token_hash[:CREDENTIAL_ID_CHARS]


def universal_token(connection: Connection, token_hash: str) -> tuple[int, int] | None:
    """Return partner and expiry of the universal token with this hash, or None; the caller checks the expiry."""
    query = select(universal_tokens).where(universal_tokens.c.hash == token_hash)
    return read_one(connection, query, lambda row: (row.partner_id, row.expires_on_ms))


def list_credentials(connection: Connection, kind: CredentialKind, partner_id: int) -> list[PartnerCredential]:
    """Return a partner's credentials of one kind, oldest first, the expired and the revoked too."""
    table = CREDENTIAL_TABLES[kind]
    query = select(table).where(table.c.partner_id == partner_id).order_by(table.c.created_on_ms, table.c.hash)
    return [
        PartnerCredential(
            row.hash[:CREDENTIAL_ID_CHARS],
            row.created_on_ms,
            getattr(row, "name", ""),
            getattr(row, "expires_on_ms", None),
            getattr(row, "revoked_on_ms", None),
        )
        for row in connection.execute(query)
    ]


def valid_secrets(connection: Connection, partner_id: int, now_ms: int) -> frozenset[str]:
    """Return the hashes of a partner's client secrets that have not expired."""
    ends = client_secrets.c.expires_on_ms
    is_valid = (client_secrets.c.partner_id == partner_id) & (ends.is_(None) | (ends > now_ms))
    return frozenset(connection.execute(select(client_secrets.c.hash).where(is_valid)).scalars())


def partner_of_api_key(connection: Connection, key_hash: str) -> int | None:
    """Return the partner whose API key this is, or None."""
    return partner_of_credential(connection, CredentialKind.API_KEY, key_hash)


def partner_of_credential(connection: Connection, kind: CredentialKind, credential_hash: str) -> int | None:
    """Return the partner whose credential this is, expired or not, or None."""
    return connection.execute(_PARTNERS_BY_HASH[kind], {"hash": credential_hash}).scalar_one_or_none()


def revoke_credential(
    connection: Connection, kind: CredentialKind, partner_id: int, credential_id: str, keep_tokens: bool = False
) -> int | None:
    """Delete a client secret or an API key of a partner, and the partner tokens that a secret has issued.

    Returns:
        How many tokens have ended; None if the partner has no such credential.
    """
    table = CREDENTIAL_TABLES[kind]
    has_id = func.substr(table.c.hash, 1, CREDENTIAL_ID_CHARS) == credential_id
    revoked = delete(table).where(table.c.partner_id == partner_id, has_id).returning(table.c.hash)
    hashes = connection.execute(revoked).scalars().all()
    if not hashes:
        return None
    if keep_tokens:
        return 0
    issued = (partner_tokens.c.partner_id == partner_id) & partner_tokens.c.secret_hash.in_(hashes)
    return connection.execute(delete(partner_tokens).where(issued)).rowcount


def revoke_universal_token(connection: Connection, partner_id: int, token_id: str, now_ms: int) -> bool:
    """Revoke a universal token if it is active; it stays listed. False: the partner has no such token.

    Of its hash only the id stays, so that no process accepts the token, not even one of a version that does not
    know that tokens stay listed.
    """
    is_token, columns = _is_token(partner_id, token_id), universal_tokens.c
    is_active = columns.revoked_on_ms.is_(None) & (columns.expires_on_ms > now_ms)
    connection.execute(update(universal_tokens).where(is_token, is_active).values(hash=token_id, revoked_on_ms=now_ms))
    return connection.execute(select(columns.hash).where(is_token)).first() is not None


def revoke_api_key(connection: Connection, key_hash: str) -> int | None:
    """Delete the API key with this hash, of any partner; return like `revoke_credential`."""
    partner_id = partner_of_api_key(connection, key_hash)
    if partner_id is None:
        return None
    return revoke_credential(connection, CredentialKind.API_KEY, partner_id, key_hash[:CREDENTIAL_ID_CHARS])


def _is_token(partner_id: int, token_id: str) -> ColumnElement[bool]:
    columns = universal_tokens.c
    return and_(columns.partner_id == partner_id, func.substr(columns.hash, 1, CREDENTIAL_ID_CHARS) == token_id)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session; its token is stored as a hash."""

    hash: str
    partner_id: int
    created_on_ms: int
    expires_on_ms: int
    admin_until_ms: int | None = None


def add_session(connection: Connection, row: SessionRow, now_ms: int) -> None:
    """Store a session, unless it exists or its partner does not; delete sessions that have expired."""
    connection.execute(delete(console_sessions).where(console_sessions.c.expires_on_ms <= now_ms))
    existing = select(console_sessions.c.hash).where(console_sessions.c.hash == row.hash)
    partner = select(partners.c.id).where(partners.c.id == row.partner_id)
    if connection.execute(existing).first() is None and connection.execute(partner).first():
        connection.execute(insert(console_sessions), asdict(row))


def session_with_partner(connection: Connection, hash: str, now_ms: int) -> tuple[SessionRow, Partner] | None:
    """Return an unexpired session and its partner."""
    query = select(console_sessions).where(console_sessions.c.hash == hash, console_sessions.c.expires_on_ms > now_ms)
    session = read_one(connection, query, lambda row: SessionRow(*row))
    if session is None:
        return None
    of_session = select(partners).where(partners.c.id == session.partner_id)
    return read_one(connection, of_session, lambda row: (session, decode_partner(row)))


def list_sessions_with_emails(connection: Connection, now_ms: int) -> list[tuple[SessionRow, str]]:
    """Return every unexpired session with its partner's e-mail address."""
    query = (
        select(console_sessions, partners.c.email)
        .join(partners, partners.c.id == console_sessions.c.partner_id)
        .where(console_sessions.c.expires_on_ms > now_ms)
    )
    return [(SessionRow(*row[:-1]), row[-1]) for row in connection.execute(query)]


def restore_sessions(connection: Connection, sessions: Sequence[tuple[SessionRow, str]], now_ms: int) -> None:
    """Replace all sessions by these: used after a snapshot is loaded, so that sessions do not end.

    A session is dropped if its partner's id belongs to a different e-mail address there.
    """
    connection.execute(delete(console_sessions))
    for row, email in sessions:
        partner_email = select(partners.c.email).where(partners.c.id == row.partner_id)
        if connection.execute(partner_email).scalar() == email:
            add_session(connection, row, now_ms)


def list_sessions(connection: Connection, partner_id: int, now_ms: int) -> list[SessionRow]:
    """Return a partner's unexpired sessions, newest first."""
    unexpired = select(console_sessions).where(
        console_sessions.c.partner_id == partner_id, console_sessions.c.expires_on_ms > now_ms
    )
    newest = unexpired.order_by(console_sessions.c.created_on_ms.desc())
    return read_all(connection, newest, lambda row: SessionRow(*row))


def delete_session(connection: Connection, hash: str) -> None:
    """End a session."""
    connection.execute(delete(console_sessions).where(console_sessions.c.hash == hash))


def delete_sessions(connection: Connection, partner_id: int, except_hash: str = "") -> int:
    """End a partner's sessions except one; return how many."""
    statement = delete(console_sessions).where(
        console_sessions.c.partner_id == partner_id, console_sessions.c.hash != except_hash
    )
    return connection.execute(statement).rowcount


def set_administration(connection: Connection, hash: str, until_ms: int | None) -> None:
    """Set until when a session has the administrator's rights; None: it has none."""
    connection.execute(update(console_sessions).where(console_sessions.c.hash == hash).values(admin_until_ms=until_ms))
