"""The credentials cache of a process, and how a change in another process reaches it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.support.manual_clock import ManualClock
from tests.support.polling import HANGS_AFTER_S
from tests.support.store_locations import PostgresLocation
from waypost.base.encryption import SecretBox, hash_secret
from waypost.store.accounts import credentials
from waypost.store.accounts.credentials import CredentialKind
from waypost.store.database import Database
from waypost.store.directory import DIRECTORY_CACHE_MS, Directory

KEY_HASH = hash_secret("a key")


@pytest.fixture
def engine() -> str:
    """The engine that several processes can share."""
    return "postgresql"


@pytest.fixture
def clock() -> ManualClock:
    """A stopped clock: cached entries do not expire."""
    return ManualClock()


@pytest.fixture
async def directories(store_location: PostgresLocation, clock: ManualClock) -> AsyncIterator[list[Directory]]:
    """The directories of two processes; the key is known to both."""
    databases = [Database(store_location.engine()), Database(store_location.engine())]
    for database in databases:
        await database.open()
    await databases[0].write(credentials.add_credential, CredentialKind.API_KEY, 7, KEY_HASH, 0)
    directories = [Directory(database, SecretBox("k" * 64), clock) for database in databases]
    for directory in directories:
        assert await directory.partner_of_api_key(KEY_HASH) == 7
    yield directories
    for database in databases:
        await database.close()


def database_of(directory: Directory) -> Database:
    """Return the database that the directory reads."""
    return directory._database  # pyright: ignore[reportPrivateUsage]


async def test_change_in_one_process_counts_in_another_at_once(directories: list[Directory]) -> None:
    local, remote = directories

    await database_of(local).write(credentials.revoke_api_key, KEY_HASH)
    local.invalidate()

    async with asyncio.timeout(HANGS_AFTER_S):  # five seconds never pass on this clock
        while await remote.partner_of_api_key(KEY_HASH) is not None:  # noqa: ASYNC110  no event to wait for
            await asyncio.sleep(0.005)


async def test_change_without_a_notification_counts_after_five_seconds(
    directories: list[Directory], clock: ManualClock
) -> None:
    local, remote = directories
    await database_of(local).write(credentials.revoke_api_key, KEY_HASH)
    before = await remote.partner_of_api_key(KEY_HASH)

    clock.advance(ms=DIRECTORY_CACHE_MS)

    assert before == 7
    assert await remote.partner_of_api_key(KEY_HASH) is None


@pytest.fixture
def slow_lookup(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """A lookup that blocks after its read: it sets the first event, and continues at the second."""
    has_read, may_continue = threading.Event(), threading.Event()
    lookup = credentials.partner_of_api_key

    def slow(connection: Any, key_hash: str) -> int | None:
        partner_id = lookup(connection, key_hash)
        if has_read.is_set():  # the revocation reads too
            return partner_id
        has_read.set()
        may_continue.wait(20)
        return partner_id

    monkeypatch.setattr(credentials, "partner_of_api_key", slow)
    yield has_read, may_continue
    may_continue.set()


async def test_lookup_in_progress_during_a_change_is_not_cached(
    directories: list[Directory], clock: ManualClock, slow_lookup: tuple[threading.Event, threading.Event]
) -> None:
    local, _ = directories
    has_read, may_continue = slow_lookup
    clock.advance(ms=DIRECTORY_CACHE_MS)
    reading = asyncio.ensure_future(local.partner_of_api_key(KEY_HASH))
    await asyncio.to_thread(has_read.wait)

    await database_of(local).write(credentials.revoke_api_key, KEY_HASH)
    local.invalidate()
    may_continue.set()

    assert await reading == 7  # it was read before the change
    assert await local.partner_of_api_key(KEY_HASH) is None
