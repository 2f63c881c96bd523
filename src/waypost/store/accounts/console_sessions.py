"""Who is signed in to the console. Times are the machine's."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from sqlalchemy import Connection, delete, insert, select, update

from waypost.domain.partner import Partner
from waypost.store.encoding import partner_of
from waypost.store.tables import console_sessions, partners


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One session; its token is known by its hash."""

    hash: str
    partner_id: int
    began_ms: int
    expires_on_ms: int
    administers_until_ms: int | None = None


def add_session(connection: Connection, row: SessionRow, now_ms: int) -> None:
    """Keep a session, unless it is there or its partner is not; and forget those that have expired."""
    connection.execute(delete(console_sessions).where(console_sessions.c.expires_on_ms <= now_ms))
    is_there = select(console_sessions.c.hash).where(console_sessions.c.hash == row.hash)
    whose = select(partners.c.id).where(partners.c.id == row.partner_id)
    if connection.execute(is_there).first() is None and connection.execute(whose).first():
        connection.execute(insert(console_sessions), asdict(row))


def session_with_partner(connection: Connection, hash: str, now_ms: int) -> tuple[SessionRow, Partner] | None:
    """A session that has not expired, and whose it is."""
    found = select(console_sessions).where(console_sessions.c.hash == hash, console_sessions.c.expires_on_ms > now_ms)
    row = connection.execute(found).one_or_none()
    if row is None:
        return None
    partner = connection.execute(select(partners).where(partners.c.id == row.partner_id)).one_or_none()
    return None if partner is None else (SessionRow(*row), partner_of(partner))


def sessions_to_carry(connection: Connection, now_ms: int) -> list[tuple[SessionRow, str]]:
    """Every session that has not expired, each with its partner's e-mail address."""
    found = (
        select(console_sessions, partners.c.email)
        .join(partners, partners.c.id == console_sessions.c.partner_id)
        .where(console_sessions.c.expires_on_ms > now_ms)
    )
    return [(SessionRow(*row[:-1]), row[-1]) for row in connection.execute(found)]


def carry_sessions(connection: Connection, carried: Sequence[tuple[SessionRow, str]], now_ms: int) -> None:
    """Have these sessions and no others: in another state of the store, some have not ended yet.

    One is left behind where its partner's number is another partner's there, by the e-mail address.
    """
    connection.execute(delete(console_sessions))
    for row, email in carried:
        whose = select(partners.c.email).where(partners.c.id == row.partner_id)
        if connection.execute(whose).scalar() == email:
            add_session(connection, row, now_ms)


def sessions_of(connection: Connection, partner_id: int, now_ms: int) -> list[SessionRow]:
    """A partner's sessions that have not expired, the newest first."""
    found = (
        select(console_sessions)
        .where(console_sessions.c.partner_id == partner_id, console_sessions.c.expires_on_ms > now_ms)
        .order_by(console_sessions.c.began_ms.desc())
    )
    return [SessionRow(*row) for row in connection.execute(found)]


def drop_session(connection: Connection, hash: str) -> None:
    """End a session."""
    connection.execute(delete(console_sessions).where(console_sessions.c.hash == hash))


def drop_sessions_of(connection: Connection, partner_id: int, but_hash: str = "") -> int:
    """End a partner's sessions, but for one; gives how many."""
    ended = delete(console_sessions).where(
        console_sessions.c.partner_id == partner_id, console_sessions.c.hash != but_hash
    )
    return connection.execute(ended).rowcount


def put_administration(connection: Connection, hash: str, until_ms: int | None) -> None:
    """Note until when a session administrates; None: not any more."""
    connection.execute(
        update(console_sessions).where(console_sessions.c.hash == hash).values(administers_until_ms=until_ms)
    )
