"""Sessions of the console. Times are the machine's."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, delete, insert, select, update

from waypost.domain.partner import Partner
from waypost.store.encoding import decode_partner
from waypost.store.tables import console_sessions, partners


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
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    partner = connection.execute(select(partners).where(partners.c.id == row.partner_id)).one_or_none()
    return None if partner is None else (SessionRow(*row), decode_partner(partner))


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
    query = (
        select(console_sessions)
        .where(console_sessions.c.partner_id == partner_id, console_sessions.c.expires_on_ms > now_ms)
        .order_by(console_sessions.c.created_on_ms.desc())
    )
    return [SessionRow(*row) for row in connection.execute(query)]


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
