"""What a process remembers of credentials, and how a change in another process reaches it."""

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from tests.support.stores import PostgresPlace
from tests.support.waiting import HANGS_AFTER_S
from waypost.base.clock import ManualClock
from waypost.base.encryption import SecretBox, hash_secret
from waypost.store.accounts import credentials
from waypost.store.accounts.credentials import CredentialKind
from waypost.store.database import Database
from waypost.store.directory import DIRECTORY_CACHE_MS, Directory

KEY_HASH = hash_secret("a key")


@pytest.fixture
def engine() -> str:
    """The one that several processes share."""
    return "postgresql"


@pytest.fixture
def clock() -> ManualClock:
    """Stands still: what is remembered stays remembered."""
    return ManualClock()


@pytest.fixture
async def two(place: PostgresPlace, clock: ManualClock) -> AsyncIterator[list[Directory]]:
    """The directories of two processes; the key is known to both."""
    databases = [Database(place.engine()), Database(place.engine())]
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
    """The one it looks into."""
    return directory._database  # pyright: ignore[reportPrivateUsage]


async def test_change_in_one_process_counts_in_another_at_once(two: list[Directory]) -> None:
    here, there = two

    await database_of(here).write(credentials.revoke_api_key, KEY_HASH)
    here.invalidate()

    async with asyncio.timeout(HANGS_AFTER_S):  # five seconds never pass on this clock
        while await there.partner_of_api_key(KEY_HASH) is not None:  # noqa: ASYNC110  nobody tells
            await asyncio.sleep(0.005)


async def test_change_that_nobody_told_of_counts_after_five_seconds(two: list[Directory], clock: ManualClock) -> None:
    here, there = two
    await database_of(here).write(credentials.revoke_api_key, KEY_HASH)
    before = await there.partner_of_api_key(KEY_HASH)

    clock.advance(ms=DIRECTORY_CACHE_MS)

    assert before == 7
    assert await there.partner_of_api_key(KEY_HASH) is None


@pytest.fixture
def slow_look(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[threading.Event, threading.Event]]:
    """A look-up that has read, and is held up before it says so: set when it has, to be set to go on."""
    has_read, may_go = threading.Event(), threading.Event()
    look = credentials.partner_of_api_key

    def slow(connection: Any, key_hash: str) -> int | None:
        found = look(connection, key_hash)
        if has_read.is_set():  # the revocation looks too
            return found
        has_read.set()
        may_go.wait(20)
        return found

    monkeypatch.setattr(credentials, "partner_of_api_key", slow)
    yield has_read, may_go
    may_go.set()


async def test_look_that_was_under_way_at_a_change_is_not_remembered(
    two: list[Directory], clock: ManualClock, slow_look: tuple[threading.Event, threading.Event]
) -> None:
    here, _ = two
    has_read, may_go = slow_look
    clock.advance(ms=DIRECTORY_CACHE_MS)
    looking = asyncio.create_task(here.partner_of_api_key(KEY_HASH))
    await asyncio.to_thread(has_read.wait)

    await database_of(here).write(credentials.revoke_api_key, KEY_HASH)
    here.invalidate()
    may_go.set()

    assert await looking == 7  # it was asked before
    assert await here.partner_of_api_key(KEY_HASH) is None
