"""Answers kept under keys: with what they answer or not at all, once, and for a day."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from sqlalchemy import Connection, func, select, update

from tests.support.builders import APP, PARTNER, message
from tests.support.stores import Place
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

ASKED = KeyedRequest(
    partner_id=PARTNER.id,
    route="POST /wa/api/v1/msg",
    key="order-4711",
    body_hash=b"one body",
    at_ms=SystemClock().now_ms(),
    app_id=APP.id,
)
MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
MARKED = replace(ASKED, holder="one")


@pytest.fixture
async def database(place: Place) -> AsyncIterator[Database]:
    """One of two processes on a store."""
    database = Database(place.engine(sole=False))
    await database.open()
    yield database
    await database.close()


@pytest.fixture
async def other(place: Place, database: Database) -> AsyncIterator[Database]:
    """The other process, on the same store."""
    other = Database(place.engine(sole=False))
    await other.open()
    yield other
    await other.close()


async def pass_time(database: Database, *, ms: int) -> None:
    """All keys run out so much earlier: the clock may be the store's own, which nobody moves."""
    await database.write(_pass_time, ms)


def _pass_time(connection: Connection, ms: int) -> None:
    until_ms = idempotency_keys.c.expires_on_ms
    connection.execute(update(idempotency_keys).values(expires_on_ms=until_ms - ms))


async def send(database: Database, number: int, asked: KeyedRequest = ASKED) -> EarlierRequest | None:
    """Send a message under a key; its answer is its id."""
    sent = message(number)
    item: tuple[KeyedRequest, Message, bytes] = (asked, sent, sent.id.encode())
    return await database.join(record_keyed_messages, item)


async def counts(database: Database) -> tuple[int, int, int]:
    """How many messages, entries and keys there are."""
    return await database.read(_counts)


def _counts(connection: Connection) -> tuple[int, int, int]:
    of = [
        connection.execute(select(func.count()).select_from(table)).scalar_one()
        for table in (messages, queue_jobs, idempotency_keys)
    ]
    return of[0], of[1], of[2]


async def look(database: Database, asked: KeyedRequest = ASKED) -> EarlierRequest | None:
    return await database.read(find_earlier_request, asked)


async def test_message_and_key_are_written_together(database: Database) -> None:
    assert await send(database, 1) is None

    assert await counts(database) == (1, 1, 1)
    held = await look(database)
    assert held == EarlierRequest(b"one body", APP.id, message(1).id.encode())


async def test_second_message_of_a_key_is_not_written_and_finds_the_first(database: Database) -> None:
    await send(database, 1)

    found = await send(database, 2)

    assert found == EarlierRequest(b"one body", APP.id, message(1).id.encode())
    assert await counts(database) == (1, 1, 1)


async def test_one_of_many_in_one_transaction_is_written(database: Database) -> None:
    found = await asyncio.gather(*(send(database, number) for number in range(1, 51)))

    [written] = [number for number, held in enumerate(found, start=1) if held is None]
    others = {held.response for held in found if held is not None}
    assert others == {message(written).id.encode()}
    assert await counts(database) == (1, 1, 1)


async def test_one_of_many_in_two_processes_is_written(database: Database, other: Database) -> None:
    found = await asyncio.gather(*(send(of, number) for number in range(1, 21) for of in (database, other)))

    assert found.count(None) == 1
    assert len({held.response for held in found if held is not None}) == 1
    assert await counts(database) == (1, 1, 1)


async def test_message_that_cannot_be_written_leaves_no_key_and_spoils_no_neighbour(database: Database) -> None:
    await send(database, 1)

    # A second message of an id that is taken breaks the transaction that all share.
    results = await asyncio.gather(
        send(database, 1, replace(ASKED, key="doomed")),
        send(database, 2, replace(ASKED, key="neighbour")),
        return_exceptions=True,
    )

    assert isinstance(results[0], Exception)
    assert results[1] is None
    assert await look(database, replace(ASKED, key="doomed")) is None
    assert await counts(database) == (2, 2, 2)


async def test_keys_of_other_partners_routes_and_words_are_others(database: Database) -> None:
    asked = [
        ASKED,
        replace(ASKED, partner_id=8),
        replace(ASKED, route="POST /partner/app"),
        replace(ASKED, key="Order-4711"),
    ]

    found = [await send(database, number, one) for number, one in enumerate(asked, start=1)]

    assert found == [None] * 4


@pytest.mark.parametrize(
    ("after_ms", "is_new"), [(KEY_RETENTION_MS - HOUR_MS, False), (KEY_RETENTION_MS + HOUR_MS, True)]
)
async def test_key_is_kept_for_a_day(database: Database, after_ms: int, is_new: bool) -> None:
    await send(database, 1)
    await pass_time(database, ms=after_ms)

    assert (await look(database) is None) == is_new
    assert (await send(database, 2, replace(ASKED, body_hash=b"other")) is None) == is_new

    held = await look(database)
    assert held is not None
    assert held.response == message(2 if is_new else 1).id.encode()


async def test_marked_key_is_held_by_one_until_it_is_answered(database: Database, other: Database) -> None:
    assert await database.write(mark_running, MARKED) is None

    found = await other.write(mark_running, replace(MARKED, holder="two"))

    assert found == EarlierRequest(b"one body", APP.id, None)


async def test_answer_ends_the_mark_in_the_transaction_of_the_work(database: Database) -> None:
    await database.write(mark_running, MARKED)

    assert await database.write(write_keyed, MARKED, append, made) is None

    await pass_time(database, ms=KEY_LEASE_MS + MINUTE_MS)
    assert await look(database) == EarlierRequest(b"one body", APP.id, b"made")


async def test_key_given_free_may_be_used_at_once(database: Database) -> None:
    await database.write(mark_running, MARKED)
    await database.write(unmark_running, replace(MARKED, holder="two"))  # not its own
    assert await database.write(mark_running, replace(MARKED, holder="two")) is not None

    await database.write(unmark_running, MARKED)

    assert await database.write(mark_running, replace(MARKED, holder="two")) is None


async def test_mark_of_a_process_that_died_runs_out(database: Database) -> None:
    await database.write(mark_running, MARKED)
    await pass_time(database, ms=KEY_LEASE_MS - MINUTE_MS)
    assert await database.write(mark_running, replace(MARKED, holder="two")) is not None

    await pass_time(database, ms=2 * MINUTE_MS)

    assert await database.write(mark_running, replace(MARKED, holder="three")) is None


async def test_request_that_was_begun_is_known_for_a_day_unless_it_was_undone(database: Database) -> None:
    before = await database.read(has_unknown_outcome, MARKED)
    await database.write(mark_running, MARKED)
    await database.write(mark_outcome_unknown, MARKED)
    await database.write(delete_expired, MARKED.at_ms + HOUR_MS, 10)

    begun = await database.read(has_unknown_outcome, MARKED)
    of_another_body = await database.read(has_unknown_outcome, replace(MARKED, body_hash=b"another body"))
    marked = await database.write(mark_running, MARKED)  # at once
    await database.write(unmark_running, MARKED)
    undone = await database.read(has_unknown_outcome, MARKED)

    assert (before, begun, of_another_body, marked, undone) == (False, True, False, None, False)


async def test_work_whose_mark_was_lost_is_undone(database: Database) -> None:
    await database.write(mark_running, MARKED)
    await pass_time(database, ms=KEY_LEASE_MS + MINUTE_MS)
    assert await database.write(mark_running, replace(MARKED, holder="two")) is None

    with pytest.raises(IdempotencyKeyLost):
        await database.write(write_keyed, MARKED, append, made)

    assert (await counts(database))[0] == 0
    assert await look(database) == EarlierRequest(b"one body", APP.id, None)


async def test_work_that_refuses_leaves_no_key(database: Database) -> None:
    def refuse(_: object) -> bytes:
        raise ValueError("taken")

    with pytest.raises(ValueError, match="taken"):
        await database.write(write_keyed, ASKED, append, refuse)

    assert await counts(database) == (0, 0, 0)


async def test_work_under_a_key_that_holds_an_answer_is_not_done(database: Database) -> None:
    await database.write(write_keyed, ASKED, append, made)

    found = await database.write(write_keyed, ASKED, append, made_again)

    assert found == EarlierRequest(b"one body", APP.id, b"made")
    assert (await counts(database))[0] == 1


async def test_expired_keys_are_deleted_a_few_at_a_time_and_others_stay(database: Database) -> None:
    for number in range(5):
        await send(database, number, replace(ASKED, key=f"old {number}"))
    await pass_time(database, ms=KEY_RETENTION_MS + MINUTE_MS)
    await send(database, 9, replace(ASKED, key="new"))

    deleted = [await database.write(delete_expired, ASKED.at_ms, 3) for _ in range(3)]

    assert deleted == [3, 2, 0]
    assert (await counts(database))[2] == 1


def made(_: object) -> bytes:
    return b"made"


def made_again(_: object) -> bytes:
    return b"made again"


def append(connection: Connection) -> None:
    """Work that leaves a trace: a message."""
    record_messages(connection, [message(77)])
