"""Console sessions: found by the hash of their token until they expire or are ended."""

from dataclasses import replace

from sqlalchemy import Connection, delete

from tests.support.builders import AT_MS, PARTNER
from waypost.store.accounts.credentials import (
    SessionRow,
    add_session,
    delete_session,
    delete_sessions,
    list_sessions_with_emails,
    restore_sessions,
    session_with_partner,
)
from waypost.store.accounts.partners import add_partner
from waypost.store.database import Database
from waypost.store.tables import partners

OTHER = replace(PARTNER, id=8, email="bob@other.test")
FIRST = SessionRow("hash of the first", PARTNER.id, AT_MS, AT_MS + 1000)
SECOND = SessionRow("hash of the second", PARTNER.id, AT_MS, AT_MS + 2000)
BOBS = SessionRow("hash of bob's", OTHER.id, AT_MS, AT_MS + 2000)


async def seed_sessions(database: Database) -> None:
    def insert_rows(connection: Connection) -> None:
        for partner in (PARTNER, OTHER):
            add_partner(connection, partner, "no password", AT_MS)
        for row in (FIRST, SECOND, BOBS):
            add_session(connection, row, AT_MS)

    await database.write(insert_rows)


def active_sessions(connection: Connection, now_ms: int) -> list[SessionRow]:
    return [row for row, _ in list_sessions_with_emails(connection, now_ms)]


async def test_session_is_found_by_its_hash_with_its_partner(database: Database) -> None:
    await seed_sessions(database)

    assert await database.read(session_with_partner, FIRST.hash, AT_MS) == (FIRST, PARTNER)
    assert await database.read(session_with_partner, BOBS.hash, AT_MS) == (BOBS, OTHER)
    assert await database.read(session_with_partner, "another hash", AT_MS) is None


async def test_session_expires_exactly_at_its_expiry_time(database: Database) -> None:
    await seed_sessions(database)

    assert await database.read(session_with_partner, FIRST.hash, AT_MS + 999) is not None
    assert await database.read(session_with_partner, FIRST.hash, AT_MS + 1000) is None
    assert await database.read(active_sessions, AT_MS + 1000) in ([SECOND, BOBS], [BOBS, SECOND])


async def test_new_session_deletes_expired_sessions(database: Database) -> None:
    await seed_sessions(database)
    new = SessionRow("hash of a new one", PARTNER.id, AT_MS + 1500, AT_MS + 9000)

    await database.write(add_session, new, AT_MS + 1500)

    assert {row.hash for row in await database.read(active_sessions, 0)} == {
        SECOND.hash, BOBS.hash, new.hash
    }  # fmt: skip


async def test_session_is_stored_once_and_only_for_an_existing_partner(database: Database) -> None:
    await seed_sessions(database)

    await database.write(add_session, replace(FIRST, expires_on_ms=AT_MS + 99_000), AT_MS)
    await database.write(add_session, replace(FIRST, hash="nobody's", partner_id=99), AT_MS)

    assert await database.read(session_with_partner, FIRST.hash, AT_MS) == (FIRST, PARTNER)
    assert len(await database.read(active_sessions, AT_MS)) == 3


async def test_sessions_end_one_by_one_or_all_of_a_partner_but_one(database: Database) -> None:
    await seed_sessions(database)

    ended = await database.write(delete_sessions, PARTNER.id, SECOND.hash)
    await database.write(delete_session, BOBS.hash)

    assert ended == 1
    assert await database.read(active_sessions, AT_MS) == [SECOND]


async def test_session_of_a_deleted_partner_is_none(database: Database) -> None:
    await seed_sessions(database)

    def delete_partners(connection: Connection) -> None:
        connection.execute(delete(partners))

    await database.write(delete_partners)

    assert await database.read(session_with_partner, FIRST.hash, AT_MS) is None


async def test_active_sessions_are_restored_and_ended_ones_are_not(database: Database) -> None:
    await seed_sessions(database)
    saved = await database.read(list_sessions_with_emails, AT_MS)
    active = [(row, email) for row, email in saved if row != FIRST]

    await database.write(restore_sessions, active, AT_MS)

    assert await database.read(session_with_partner, FIRST.hash, AT_MS) is None
    assert await database.read(session_with_partner, BOBS.hash, AT_MS) == (BOBS, OTHER)


async def test_session_is_not_restored_for_another_partner_with_the_same_id(database: Database) -> None:
    await seed_sessions(database)

    await database.write(restore_sessions, [(FIRST, PARTNER.email), (BOBS, "eve@other.test")], AT_MS)

    assert await database.read(active_sessions, AT_MS) == [FIRST]
