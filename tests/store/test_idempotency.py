"""Responses stored under idempotency keys: with their work or not at all, once, and for a day."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from sqlalchemy import Connection, func, select, update

from tests.support.builders import APP, PARTNER, message
from tests.support.store_locations import StoreLocation
from waypost.base.clock import SystemClock
from waypost.domain.message import Message
from waypost.store.database import Database
from waypost.store.messages.messages import record_messages
from waypost.store.requests.idempotency import (
    KEY_LEASE_MS,
    KEY_RETENTION_MS,
    EarlierRequest,
    IdempotencyKeyLost,
    KeyedRequest,
    delete_expired,
    find_earlier_request,
    has_unknown_outcome,
    mark_outcome_unknown,
    mark_running,
    record_keyed_messages,
    unmark_running,
    write_keyed,
)
from waypost.store.tables import idempotency_keys, messages, queue_jobs

REQUEST = KeyedRequest(
    partner_id=PARTNER.id,
    route="POST /wa/api/v1/msg",
    key="order-4711",
    body_hash=b"one body",
    at_ms=SystemClock().now_ms(),
    app_id=APP.id,
)
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
MARKED = replace(REQUEST, holder="one")


@pytest.fixture
async def database(store_location: StoreLocation) -> AsyncIterator[Database]:
    """One of two processes on a store."""
    database = Database(store_location.engine(sole=False))
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def other_process(store_location: StoreLocation, database: Database) -> AsyncIterator[Database]:
    """The other process, on the same store."""
    other_process = Database(store_location.engine(sole=False))
    await other_process.open()
    yield other_process
    await other_process.close()


async def pass_time(database: Database, *, ms: int) -> None:
    """Expire all keys earlier: the clock may be the store's own, which a test cannot move."""
    await database.write(_pass_time, ms)


def _pass_time(connection: Connection, ms: int) -> None:
    until_ms = idempotency_keys.c.expires_on_ms
    connection.execute(update(idempotency_keys).values(expires_on_ms=until_ms - ms))


async def send(database: Database, number: int, request: KeyedRequest = REQUEST) -> EarlierRequest | None:
    """Send a message under a key; its response is its id."""
    sent = message(number)
    item: tuple[KeyedRequest, Message, bytes] = (request, sent, sent.id.encode())
    return await database.join(record_keyed_messages, item)


async def counts(database: Database) -> tuple[int, int, int]:
    """Return how many messages, jobs and keys there are."""
    return await database.read(_counts)


def _counts(connection: Connection) -> tuple[int, int, int]:
    totals = [
        connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in (messages, queue_jobs, idempotency_keys)
    ]
    return totals[0], totals[1], totals[2]


async def find_request(database: Database, request: KeyedRequest = REQUEST) -> EarlierRequest | None:
    return await database.read(find_earlier_request, request)


async def test_message_and_key_are_written_together(database: Database) -> None:
    assert await send(database, 1) is None

    assert await counts(database) == (1, 1, 1)
    earlier = await find_request(database)
    assert earlier == EarlierRequest(b"one body", APP.id, message(1).id.encode())


async def test_second_message_of_a_key_is_not_written_and_finds_the_first(database: Database) -> None:
    await send(database, 1)

    earlier = await send(database, 2)

    assert earlier == EarlierRequest(b"one body", APP.id, message(1).id.encode())
    assert await counts(database) == (1, 1, 1)


async def test_one_of_many_in_one_transaction_is_written(database: Database) -> None:
    results = await asyncio.gather(*(send(database, number) for number in range(1, 51)))

    [written] = [number for number, earlier in enumerate(results, start=1) if earlier is None]
    others = {earlier.response for earlier in results if earlier is not None}
    assert others == {message(written).id.encode()}
    assert await counts(database) == (1, 1, 1)


async def test_one_of_many_in_two_processes_is_written(database: Database, other_process: Database) -> None:
    results = await asyncio.gather(
        *(send(process, number) for number in range(1, 21) for process in (database, other_process))
    )

    assert results.count(None) == 1
    assert len({earlier.response for earlier in results if earlier is not None}) == 1
    assert await counts(database) == (1, 1, 1)


async def test_message_that_cannot_be_written_leaves_no_key_and_does_not_affect_others(database: Database) -> None:
    await send(database, 1)

    # A second message with the same id breaks the transaction that all share.
    results = await asyncio.gather(
        send(database, 1, replace(REQUEST, key="doomed")),
        send(database, 2, replace(REQUEST, key="neighbour")),
        return_exceptions=True,
    )

    assert isinstance(results[0], Exception)
    assert results[1] is None
    assert await find_request(database, replace(REQUEST, key="doomed")) is None
    assert await counts(database) == (2, 2, 2)


async def test_keys_of_other_partners_routes_and_spellings_are_separate(database: Database) -> None:
    requests = [
        REQUEST,
        replace(REQUEST, partner_id=8),
        replace(REQUEST, route="POST /partner/app"),
        replace(REQUEST, key="Order-4711"),
    ]

    results = [await send(database, number, request) for number, request in enumerate(requests, start=1)]

    assert results == [None] * 4


@pytest.mark.parametrize(
    ("after_ms", "is_new"), [(KEY_RETENTION_MS - HOUR_MS, False), (KEY_RETENTION_MS + HOUR_MS, True)]
)
async def test_key_is_retained_for_a_day(database: Database, after_ms: int, is_new: bool) -> None:
    await send(database, 1)
    await pass_time(database, ms=after_ms)

    assert (await find_request(database) is None) == is_new
    assert (await send(database, 2, replace(REQUEST, body_hash=b"other")) is None) == is_new

    earlier = await find_request(database)
    assert earlier is not None
    assert earlier.response == message(2 if is_new else 1).id.encode()


async def test_marked_key_is_held_by_one_process_until_its_response(
    database: Database, other_process: Database
) -> None:
    assert await database.write(mark_running, MARKED) is None

    earlier = await other_process.write(mark_running, replace(MARKED, holder="two"))

    assert earlier == EarlierRequest(b"one body", APP.id, None)


async def test_response_ends_the_mark_in_the_transaction_of_the_work(database: Database) -> None:
    await database.write(mark_running, MARKED)

    assert await database.write(write_keyed, MARKED, add_message, make_response) is None

    await pass_time(database, ms=KEY_LEASE_MS + MINUTE_MS)
    assert await find_request(database) == EarlierRequest(b"one body", APP.id, b"made")


async def test_released_key_may_be_used_at_once(database: Database) -> None:
    await database.write(mark_running, MARKED)
    await database.write(unmark_running, replace(MARKED, holder="two"))  # not its own
    assert await database.write(mark_running, replace(MARKED, holder="two")) is not None

    await database.write(unmark_running, MARKED)

    assert await database.write(mark_running, replace(MARKED, holder="two")) is None


async def test_mark_of_a_process_that_died_expires(database: Database) -> None:
    await database.write(mark_running, MARKED)
    await pass_time(database, ms=KEY_LEASE_MS - MINUTE_MS)
    assert await database.write(mark_running, replace(MARKED, holder="two")) is not None

    await pass_time(database, ms=2 * MINUTE_MS)

    assert await database.write(mark_running, replace(MARKED, holder="three")) is None


async def test_started_request_is_known_for_a_day_unless_it_was_undone(database: Database) -> None:
    before = await database.read(has_unknown_outcome, MARKED)
    await database.write(mark_running, MARKED)
    await database.write(mark_outcome_unknown, MARKED)
    await database.write(delete_expired, MARKED.at_ms + HOUR_MS, 10)

    started = await database.read(has_unknown_outcome, MARKED)
    of_another_body = await database.read(has_unknown_outcome, replace(MARKED, body_hash=b"another body"))
    marked = await database.write(mark_running, MARKED)  # at once
    await database.write(unmark_running, MARKED)
    undone = await database.read(has_unknown_outcome, MARKED)

    assert (before, started, of_another_body, marked, undone) == (False, True, False, None, False)


async def test_work_that_lost_its_mark_is_rolled_back(database: Database) -> None:
    await database.write(mark_running, MARKED)
    await pass_time(database, ms=KEY_LEASE_MS + MINUTE_MS)
    assert await database.write(mark_running, replace(MARKED, holder="two")) is None

    with pytest.raises(IdempotencyKeyLost):
        await database.write(write_keyed, MARKED, add_message, make_response)

    assert (await counts(database))[0] == 0
    assert await find_request(database) == EarlierRequest(b"one body", APP.id, None)


async def test_work_that_fails_leaves_no_key(database: Database) -> None:
    def fail(_: object) -> bytes:
        raise ValueError("taken")

    with pytest.raises(ValueError, match="taken"):
        await database.write(write_keyed, REQUEST, add_message, fail)

    assert await counts(database) == (0, 0, 0)


async def test_work_under_a_key_with_a_response_is_not_done(database: Database) -> None:
    await database.write(write_keyed, REQUEST, add_message, make_response)

    earlier = await database.write(write_keyed, REQUEST, add_message, make_second_response)

    assert earlier == EarlierRequest(b"one body", APP.id, b"made")
    assert (await counts(database))[0] == 1


async def test_expired_keys_are_deleted_a_few_at_a_time_and_others_stay(database: Database) -> None:
    for number in range(5):
        await send(database, number, replace(REQUEST, key=f"old {number}"))
    await pass_time(database, ms=KEY_RETENTION_MS + MINUTE_MS)
    await send(database, 9, replace(REQUEST, key="new"))

    deleted = [await database.write(delete_expired, REQUEST.at_ms, 3) for _ in range(3)]

    assert deleted == [3, 2, 0]
    assert (await counts(database))[2] == 1


def make_response(_: object) -> bytes:
    return b"made"


def make_second_response(_: object) -> bytes:
    return b"made again"


def add_message(connection: Connection) -> None:
    """Add a message: work whose result can be counted."""
    record_messages(connection, [message(77)])
