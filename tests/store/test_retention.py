"""Retention: rows past their period are deleted, open or young ones stay, and PostgreSQL drops whole partitions."""

import asyncio
import re
import threading
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from sqlalchemy import Connection, func, select, text, update

from tests.support.builders import ACCOUNT, APP, OPERATOR, PARTNER, message
from tests.support.manual_clock import ManualClock
from tests.support.store_locations import Databases
from tests.support.store_statements import execute, fetch_column, fetch_row
from waypost.base.clock import DAY_MS, SystemClock
from waypost.base.ids import uuid7_text
from waypost.domain.callbacks import AttemptKind, CallbackAttempt
from waypost.domain.event import InboundWebhook, WebhookItem
from waypost.domain.message import Message, MessageState
from waypost.domain.session_messages.plain import SessionText
from waypost.operations.retention_loop import RetentionLoop
from waypost.store.accounts.credentials import CredentialKind, add_credential
from waypost.store.callbacks.callbacks import AttemptRecord, CallbackRow, enqueue_callbacks, record_attempts
from waypost.store.console.trace import message_trace
from waypost.store.database import Database
from waypost.store.engines.postgresql import PostgresEngine
from waypost.store.messages.messages import MessageChange, change_messages, read_request, record_messages
from waypost.store.queue.inbound_webhooks import record_webhooks
from waypost.store.retention.columns import RetentionPeriods
from waypost.store.retention.partitions import (
    Partition,
    attach_partition,
    existing_partitions,
    floor_id,
    required_partitions,
)
from waypost.store.retention.rules import MAX_BATCH_ROWS, begin_retention_run
from waypost.store.tables import (
    app_keys,
    attempts,
    callbacks,
    client_secrets,
    inbound_messages,
    inbound_webhooks,
    message_events,
    messages,
    queue_jobs,
    sequences,
    subscriptions,
    universal_tokens,
    webhook_items,
)
from waypost.store.trace_events import MessageTraceEvent

PERIODS: Final = RetentionPeriods(bodies_days=30, messages_days=400, dedupe_days=8, attempts_days=30)
MONDAY: Final = datetime(2031, 3, 3, tzinfo=UTC)
TODAY_MS: Final = int(MONDAY.timestamp() * 1000)
"""The first moment of a partition: rows of that time wait longest for the end of their partition."""
WEEK_DAYS: Final = 7
DATES: Final = (
    *(MONDAY + timedelta(days=days, hours=10) for days in range(WEEK_DAYS)),
    datetime(2031, 1, 31, 23, 59, 59, tzinfo=UTC),
    datetime(2031, 12, 31, 23, 59, 59, tzinfo=UTC),
    datetime(2032, 1, 1, tzinfo=UTC),
    datetime(2032, 2, 29, 12, tzinfo=UTC),
    datetime(2031, 3, 30, 1, tzinfo=UTC),
    datetime(2031, 10, 26, 1, tzinfo=UTC),
)
"""Each weekday, ends of a month and a year, a leap day, both changes of Central European summer time."""


@pytest.fixture(autouse=True)
async def partitions_of_today(database: Database) -> None:
    """Create the partitions of the tests' day: PostgreSQL creates those of a new store by its own time."""
    await retention_at(database, TODAY_MS).run_turn()


def latest_ms(database: Database, days: int, *, partition_days: int = WEEK_DAYS) -> int:
    """Return the time at which a row of `TODAY_MS` that is retained for `days` has certainly been deleted.

    Args:
        partition_days: the length of the partitions that PostgreSQL drops whole.
    """
    late_days = partition_days if database.engine == "postgresql" else 0
    return TODAY_MS + (days + late_days) * DAY_MS + 1


def id_at(at_ms: int, number: int = 0) -> str:
    """Return an id of that time."""
    return uuid7_text(at_ms, number.to_bytes(10, "big"))


def retention_at(database: Database, at_ms: int, periods: RetentionPeriods = PERIODS) -> RetentionLoop:
    """Return a retention loop whose clock reads `at_ms`."""
    return RetentionLoop(database, ManualClock(at_ms), periods, rest_factor=0)


async def add_message(
    database: Database, at_ms: int, state: MessageState = MessageState.DELIVERED, number: int = 0
) -> str:
    """Add a message of a time in a state, with its trace; return its id."""
    new_message = message(content=SessionText("Hello"), id=id_at(at_ms, number), accepted_on_ms=at_ms)
    await database.join(record_messages, replace(new_message, request="channel=whatsapp"))
    if state is not MessageState.ACCEPTED:
        change = MessageChange(new_message.id, state, at_ms, None, None)
        event = MessageTraceEvent(new_message.id, state.value, at_ms, is_applied=True)
        await database.write(change_messages, [change], [event])
    return new_message.id


async def add_callback(database: Database, at_ms: int, *, ended: bool, number: int = 0) -> str:
    """Add a callback of a time, with an attempt that failed, and a retry if it has ended; return its id."""
    callback_id = id_at(at_ms, number)
    await database.write(enqueue_callbacks, [_callback_row(at_ms, number)], [at_ms])
    await database.write(record_attempts, [AttemptRecord(callback_id, 1, CallbackAttempt(at_ms, 5, 503), None)])
    if ended:
        delivered = CallbackAttempt(at_ms, 5, 200)
        await database.write(record_attempts, [AttemptRecord(callback_id, 1, delivered, True, AttemptKind.RETRY)])
    return callback_id


def webhook_at(at_ms: int, *keys: str, number: int = 0) -> InboundWebhook:
    """Return a webhook of a time with an item for each key."""
    items = tuple(WebhookItem(key, ACCOUNT.id, key, str(index), b"{}") for index, key in enumerate(keys))
    return InboundWebhook(id_at(at_ms, number), OPERATOR.id, at_ms, b"{}", items)


async def count(database: Database, table: Any) -> int:
    """Return how many rows there are."""
    [rows] = await fetch_column(database, select(func.count()).select_from(table))
    return rows


async def content_of(database: Database, message_id: str) -> tuple[bytes, str]:
    """Return the stored content and request of a message."""
    query = select(messages.c.content, messages.c.request, messages.c.compressed_request)
    row = await fetch_row(database, query.where(messages.c.id == message_id))
    return bytes(row.content), read_request(row)


async def test_content_of_a_message_is_deleted_and_its_row_stays(database: Database) -> None:
    old = await add_message(database, TODAY_MS)
    young = await add_message(database, TODAY_MS + 2 * DAY_MS)

    await retention_at(database, latest_ms(database, 30, partition_days=0)).run_turn()

    assert await content_of(database, old) == (b"", "")
    assert (await content_of(database, young))[1] == "channel=whatsapp"
    trace = await database.read(message_trace, old)
    assert trace is not None
    assert (trace["state"], trace["content_retained"]) == ("delivered", False)
    assert [line["event"] for line in trace["events"]] == ["delivered"]


async def test_content_of_an_open_message_stays_until_it_is_sent(database: Database) -> None:
    waiting = await add_message(database, TODAY_MS, MessageState.ACCEPTED)
    unconfirmed = await add_message(database, TODAY_MS, MessageState.UNCERTAIN, number=1)
    await add_message(database, TODAY_MS, number=2)
    retention = retention_at(database, latest_ms(database, 30))

    await retention.run_turn()
    before = [await content_of(database, message_id) for message_id in (waiting, unconfirmed)]
    changes = [
        MessageChange(message_id, MessageState.SENT, TODAY_MS, None, None) for message_id in (waiting, unconfirmed)
    ]
    await database.write(change_messages, changes, [])
    await retention.run_turn()

    assert all(content[0] for content in before)
    assert [await content_of(database, message_id) for message_id in (waiting, unconfirmed)] == [(b"", "")] * 2


async def test_many_batches_clear_everything(database: Database) -> None:
    many = 2 * MAX_BATCH_ROWS + 17
    await database.join_all(record_messages, [_new_message(number) for number in range(many)])
    await database.write(_deliver_all)

    await retention_at(database, latest_ms(database, 30)).run_turn()

    left = select(func.count()).select_from(messages).where(messages.c.content != b"")
    assert await fetch_column(database, left) == [0]
    assert await count(database, messages) == many


async def test_row_of_a_message_is_deleted_with_its_trace_and_an_open_one_stays(database: Database) -> None:
    await add_message(database, TODAY_MS)
    waiting = await add_message(database, TODAY_MS, MessageState.ACCEPTED, number=1)
    young = await add_message(database, TODAY_MS + 200 * DAY_MS)

    await retention_at(database, TODAY_MS + 440 * DAY_MS).run_turn()

    left = await fetch_column(database, select(messages.c.id))
    assert set(left) == {waiting, young}
    traces = select(message_events.c.message_id)
    assert await fetch_column(database, traces) == [young]
    assert await count(database, queue_jobs) == 3  # none has been worked


async def test_ended_callbacks_are_deleted_with_their_attempts_and_others_stay(database: Database) -> None:
    for number in range(3):
        await add_callback(database, TODAY_MS, ended=True, number=number)
    waiting = await add_callback(database, TODAY_MS, ended=False, number=7)
    young = await add_callback(database, TODAY_MS + 10 * DAY_MS, ended=True)

    await retention_at(database, latest_ms(database, 30)).run_turn()

    for column in (callbacks.c.id, attempts.c.callback_id):
        left = await fetch_column(database, select(column))
        assert set(left) == {waiting, young}


async def test_attempts_may_be_retained_for_less_time_than_their_callbacks(database: Database) -> None:
    await add_callback(database, TODAY_MS, ended=True)
    periods = replace(PERIODS, attempts_days=3)

    await retention_at(database, latest_ms(database, 3), periods).run_turn()

    assert await count(database, attempts) == 0
    assert await count(database, callbacks) == 1


@pytest.mark.parametrize("date", DATES, ids=lambda date: f"{date:%a-%Y-%m-%d}")
async def test_callback_is_retained_as_long_as_set_and_deleted_a_week_later_at_most(
    database: Database, date: datetime
) -> None:
    """It is deleted at once on SQLite, and with the week in which it was stored on PostgreSQL."""
    stored_ms = int(date.timestamp() * 1000)
    late_days = WEEK_DAYS if database.engine == "postgresql" else 0
    await retention_at(database, stored_ms).run_turn()
    await add_callback(database, stored_ms, ended=True)

    await retention_at(database, stored_ms + 30 * DAY_MS).run_turn()
    before = await count(database, callbacks), await count(database, attempts)
    await retention_at(database, stored_ms + (30 + late_days) * DAY_MS + 1).run_turn()
    after = await count(database, callbacks), await count(database, attempts)

    assert (before, after) == ((1, 2), (0, 0))


async def test_first_attempt_in_a_callbacks_row_is_retained_for_as_long_as_other_attempts(database: Database) -> None:
    ids = [id_at(TODAY_MS + days * DAY_MS, 0) for days in (0, 1, 6)]
    for days, callback_id in zip((0, 1, 6), ids, strict=True):
        at_ms = TODAY_MS + days * DAY_MS
        await database.write(enqueue_callbacks, [_callback_row(at_ms, 0)], [at_ms])
        delivered = AttemptRecord(callback_id, 1, CallbackAttempt(at_ms, 5, 200, b"ok"), True)
        await database.write(record_attempts, [delivered])
    periods = replace(PERIODS, attempts_days=3)

    for now_ms in (TODAY_MS + 4 * DAY_MS, TODAY_MS + 5 * DAY_MS):  # the second run continues where the first ended
        await retention_at(database, now_ms, periods).run_turn()

    assert await fetch_column(database, select(callbacks.c.response_body).order_by(callbacks.c.id)) == [
        None,
        None,
        b"ok",
    ]
    times_ms = await fetch_column(database, select(callbacks.c.attempted_on_ms).order_by(callbacks.c.id))
    assert times_ms == [None, None, TODAY_MS + 6 * DAY_MS]


async def test_webhook_items_are_deleted_except_those_still_to_be_applied(database: Database) -> None:
    await database.join(record_webhooks, webhook_at(TODAY_MS, "a", "b"))
    await execute(database, queue_jobs.delete().where(queue_jobs.c.ordering_key == "a"))
    await database.join(record_webhooks, webhook_at(TODAY_MS + 20 * DAY_MS, "c"))

    await retention_at(database, latest_ms(database, 30)).run_turn()

    assert await count(database, inbound_webhooks) == 1
    keys = select(webhook_items.c.dedupe_key).order_by(webhook_items.c.id)
    assert await fetch_column(database, keys) == ["b", "c"]


async def test_repeated_webhook_is_recognized_for_eight_days_whatever_else_is_retained(database: Database) -> None:
    periods = replace(PERIODS, bodies_days=1)
    await database.join(record_webhooks, webhook_at(TODAY_MS, "a"))
    await execute(database, queue_jobs.delete())

    await retention_at(database, TODAY_MS + 7 * DAY_MS, periods).run_turn()
    repeated = await database.join(record_webhooks, webhook_at(TODAY_MS + 7 * DAY_MS, "a"))
    await retention_at(database, TODAY_MS + 9 * DAY_MS, periods).run_turn()
    much_later = await database.join(record_webhooks, webhook_at(TODAY_MS + 9 * DAY_MS, "a"))

    assert (repeated, much_later) == (0, 1)


async def test_inbound_messages_are_deleted_with_the_rows_of_messages(database: Database) -> None:
    rows = [
        {"operator_message_id": f"wamid.{days}", "partner_id": PARTNER.id, "app_id": APP.id,
         "recipient_id": 1, "kind": "text", "item_id": 1, "received_on_ms": TODAY_MS + days * DAY_MS}
        for days in (0, 100)
    ]  # fmt: skip
    await execute(database, inbound_messages.insert(), rows)

    await retention_at(database, TODAY_MS + 401 * DAY_MS).run_turn()

    query = select(inbound_messages.c.operator_message_id)
    assert await fetch_column(database, query) == ["wamid.100"]


async def test_credentials_are_deleted_long_after_they_expired_or_were_revoked(database: Database) -> None:
    expired_ms, young_ms = TODAY_MS, TODAY_MS + 40 * DAY_MS
    secrets = {"over": expired_ms, "young": young_ms, "for ever": None}
    keys = {
        "over": (expired_ms, None),
        "revoked": (None, expired_ms),
        "young": (young_ms, None),
        "just revoked": (None, young_ms),
        "for ever": (None, None),
    }
    for name, expires_on_ms in secrets.items():
        await database.write(
            add_credential, CredentialKind.CLIENT_SECRET, PARTNER.id, name, TODAY_MS, "", expires_on_ms
        )
    tokens = {"over": (expired_ms, None), "revoked": (young_ms, expired_ms), "just revoked": (young_ms, young_ms)}
    token_rows = [
        {"hash": name, "partner_id": PARTNER.id, "name": name, "created_on_ms": TODAY_MS,
         "expires_on_ms": expires_on_ms, "revoked_on_ms": revoked_on_ms}
        for name, (expires_on_ms, revoked_on_ms) in tokens.items()
    ]  # fmt: skip
    await execute(database, universal_tokens.insert(), token_rows)
    rows = [
        {"id": name, "hash": name, "partner_id": PARTNER.id, "app_id": APP.id, "name": name,
         "created_on_ms": TODAY_MS, "expires_on_ms": expires_on_ms, "revoked_on_ms": revoked_on_ms}
        for name, (expires_on_ms, revoked_on_ms) in keys.items()
    ]  # fmt: skip
    await execute(database, app_keys.insert(), rows)

    await retention_at(database, TODAY_MS + 50 * DAY_MS).run_turn()

    left = set(await fetch_column(database, select(client_secrets.c.hash)))
    assert left == {"young", "for ever"}
    left = set(await fetch_column(database, select(app_keys.c.id)))
    assert left == {"young", "just revoked", "for ever"}
    assert await fetch_column(database, select(universal_tokens.c.hash)) == ["just revoked"]


async def test_sequences_of_a_deleted_subscription_are_deleted_and_others_stay(database: Database) -> None:
    row = {
        "partner_id": PARTNER.id, "app_id": APP.id, "url": "", "version": 2, "modes": "ALL", "active": True,
        "show_on_ui": False, "created_on_ms": 1, "modified_on_ms": 1,
    }  # fmt: skip
    await execute(database, subscriptions.insert(), [row | {"tag": tag} for tag in ("a", "b", "c")])
    first, gone, last = await fetch_column(database, select(subscriptions.c.id).order_by("id"))
    counts = [
        {"subscription_id": its_id, "subject": str(number), "last": 1}
        for its_id in (first, gone, last)
        for number in range(MAX_BATCH_ROWS + 1)
    ]
    await execute(database, sequences.insert(), counts)
    await execute(database, subscriptions.delete().where(subscriptions.c.id == gone))

    await retention_at(database, TODAY_MS).run_turn()

    left = await fetch_column(database, select(sequences.c.subscription_id).distinct())
    assert set(left) == {first, last}
    assert await count(database, sequences) == 2 * (MAX_BATCH_ROWS + 1)


async def test_one_of_several_processes_takes_a_turn(database: Database) -> None:
    hour_ms = 60 * 60 * 1000

    started = [await database.write_in_background(begin_retention_run, TODAY_MS, hour_ms) for _ in range(2)]
    later = await database.write_in_background(begin_retention_run, TODAY_MS + hour_ms, hour_ms)

    assert (started, later) == ([True, False], True)


class TestPartitions:
    """Partitions that PostgreSQL creates by its own time."""

    @pytest.fixture
    def now_ms(self) -> int:
        """Return the time of the server, which runs on this machine."""
        return SystemClock().now_ms()

    @pytest.fixture(autouse=True)
    async def partitions_of_today(self) -> None:
        """Create none besides the partitions of a new store."""

    @pytest.fixture
    async def database(self, databases: Databases) -> AsyncIterator[Database]:
        """A new store, with new partitions."""
        url = databases.take_empty()
        database = Database(PostgresEngine(url))
        await database.open()
        yield database
        await database.close()
        databases.drop(url)

    async def test_new_store_has_partitions_of_today_and_of_weeks_to_come(
        self, database: Database, now_ms: int
    ) -> None:
        existing = {partition.name for partition in await database.read(existing_partitions)}

        assert {partition.name for partition in required_partitions(now_ms)} <= existing
        assert len(existing) == 3 * 4 + 3

    async def test_rows_of_today_are_in_a_partition_and_those_of_other_times_in_the_default_one(
        self, database: Database, now_ms: int
    ) -> None:
        await add_callback(database, now_ms, ended=True)
        await add_callback(database, now_ms - 700 * DAY_MS, ended=True)

        assert await database.read(_count_of, "callbacks_default") == 1
        assert await count(database, callbacks) == 2

    async def test_turn_creates_the_partitions_of_weeks_to_come(self, database: Database, now_ms: int) -> None:
        later_ms = now_ms + 21 * DAY_MS

        await retention_at(database, later_ms).run_turn()

        existing = {partition.name for partition in await database.read(existing_partitions)}
        assert {partition.name for partition in required_partitions(later_ms)} <= existing

    async def test_partition_with_rows_in_the_default_one_is_not_created(self, database: Database, now_ms: int) -> None:
        later_ms = now_ms + 60 * DAY_MS
        await add_callback(database, later_ms, ended=True)

        await retention_at(database, later_ms).run_turn()
        await add_callback(database, later_ms, ended=True, number=1)

        assert await database.read(_count_of, "callbacks_default") == 2

    async def test_row_that_waits_while_its_partition_is_added_goes_there(
        self, database: Database, now_ms: int
    ) -> None:
        later_ms = now_ms + 60 * DAY_MS
        partition = next(part for part in required_partitions(later_ms) if part.parent.table is callbacks)
        is_attached = threading.Event()

        adding = asyncio.create_task(database.write_in_background(_attach_once_awaited, partition, is_attached))
        await asyncio.to_thread(is_attached.wait)
        await add_callback(database, int(partition.low.replace("-", ""), 16), ended=True)
        await adding

        assert await database.read(_count_of, partition.name) == 1
        assert await database.read(_count_of, "callbacks_default") == 0

    async def test_past_partitions_are_dropped(self, database: Database, now_ms: int) -> None:
        await add_callback(database, now_ms, ended=True)
        await database.join(record_webhooks, webhook_at(now_ms))
        past = {partition.name for partition in await database.read(existing_partitions)}

        await retention_at(database, now_ms + 80 * DAY_MS).run_turn()

        existing = {partition.name for partition in await database.read(existing_partitions)}
        dropped = past - existing
        assert {name.rpartition("_")[0] for name in dropped} == {"callbacks", "attempts", "inbound_webhooks"}
        assert len(dropped) == 3 * 4
        for table in (callbacks, attempts, inbound_webhooks):
            assert await count(database, table) == 0

    async def test_rows_of_a_partition_that_is_not_all_past_are_left_to_be_dropped_with_it(
        self, database: Database, now_ms: int
    ) -> None:
        week = next(partition for partition in required_partitions(now_ms) if partition.parent.table is callbacks)
        begin_ms = int(week.low.replace("-", ""), 16)
        await add_callback(database, begin_ms, ended=True)
        await add_callback(database, begin_ms - 500 * DAY_MS, ended=True)  # in the default partition

        await retention_at(database, begin_ms + 33 * DAY_MS).run_turn()
        before = await fetch_column(database, select(callbacks.c.id))
        await retention_at(database, begin_ms + 38 * DAY_MS).run_turn()

        assert before == [id_at(begin_ms)]
        assert await count(database, callbacks) == 0

    async def test_partition_with_an_open_callback_stays_and_its_ended_ones_are_deleted(
        self, database: Database, now_ms: int
    ) -> None:
        ended = await add_callback(database, now_ms, ended=True)
        waiting = await add_callback(database, now_ms, ended=False, number=1)

        await retention_at(database, now_ms + 80 * DAY_MS).run_turn()

        left = await fetch_column(database, select(callbacks.c.id))
        assert left == [waiting]
        attempt_ids = select(attempts.c.callback_id)
        assert ended not in await fetch_column(database, attempt_ids)
        existing = [
            partition for partition in await database.read(existing_partitions) if partition.parent.table is callbacks
        ]
        assert existing[0].low <= waiting < existing[0].high

    async def test_traces_are_dropped_by_month_once_the_month_has_no_message(
        self, database: Database, now_ms: int
    ) -> None:
        await add_message(database, now_ms)

        await retention_at(database, now_ms + 440 * DAY_MS).run_turn()

        assert await count(database, message_events) == 0
        names = {partition.name for partition in await database.read(existing_partitions)}
        first = next(partition for partition in required_partitions(now_ms) if partition.parent.table is message_events)
        assert first.name not in names

    async def test_hot_statements_touch_one_partition(self, database: Database, now_ms: int) -> None:
        row_id = id_at(now_ms)
        for table, column in (
            (callbacks, callbacks.c.id),
            (attempts, attempts.c.callback_id),
            (message_events, message_events.c.message_id),
        ):
            plan = await database.read(_plan_of, select(table).where(column.in_([row_id])))

            touched = set(re.findall(rf"{table.name}_(?:\d+|default)", " ".join(plan)))
            assert len(touched) == 1, plan

    async def test_changing_rows_reads_no_whole_partition_even_without_statistics(
        self, database: Database, now_ms: int
    ) -> None:
        weeks = [now_ms + week * 7 * DAY_MS for week in range(3)]
        await database.write(_add_many, [(at_ms, 12_000) for at_ms in weeks])
        ended = [
            AttemptRecord(id_at(now_ms, number), 1, CallbackAttempt(now_ms, 5, 200), True) for number in range(100)
        ]

        scans = await database.write(_scans_of, ended)

        assert scans == []
        left = select(func.count()).select_from(callbacks).where(callbacks.c.ended_on_ms.is_(None))
        assert await fetch_column(database, left) == [35_900]

    async def test_ids_of_a_time_are_not_less_than_its_first(self, now_ms: int) -> None:
        assert floor_id(now_ms) <= id_at(now_ms) < floor_id(now_ms + 1)


def _new_message(number: int) -> Message:
    new_message = message(content=SessionText("Hello"), id=id_at(TODAY_MS, number), accepted_on_ms=TODAY_MS)
    return replace(new_message, request="channel=whatsapp")


def _deliver_all(connection: Connection) -> None:
    connection.execute(update(messages).values(state=MessageState.DELIVERED.value))


def _callback_row(at_ms: int, number: int) -> CallbackRow:
    return CallbackRow(id_at(at_ms, number), PARTNER.id, APP.id, 1, "1", 1, None, "sent", b"{}", at_ms)


def _add_many(connection: Connection, batches: list[tuple[int, int]]) -> None:
    rows = [_callback_row(at_ms, n) for at_ms, count in batches for n in range(count)]
    enqueue_callbacks(connection, rows, [row.created_on_ms for row in rows])


def _scans_of(connection: Connection, records: list[AttemptRecord]) -> list[str]:
    """Return the partitions of callbacks that are read from end to end while these are recorded."""
    before = _scans(connection)
    record_attempts(connection, records)
    return [name for name, count in _scans(connection).items() if count > before.get(name, 0)]


def _scans(connection: Connection) -> dict[str, int]:
    rows = connection.exec_driver_sql(
        "SELECT relname, seq_scan FROM pg_stat_xact_user_tables WHERE relname LIKE 'callbacks%%'"
    )
    return {row.relname: row.seq_scan for row in rows}


def _count_of(connection: Connection, table: str) -> int:
    return connection.exec_driver_sql(f'SELECT count(*) FROM "{table}"').scalar_one()


def _attach_once_awaited(connection: Connection, partition: Partition, is_attached: threading.Event) -> None:
    """Attach a partition, and commit once another transaction waits for its table."""
    assert attach_partition(connection, partition)
    is_attached.set()
    waiting = text("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'callbacks_default'::regclass")
    while not connection.execute(waiting).scalar_one():
        time.sleep(0.002)


def _plan_of(connection: Connection, statement: Any) -> list[str]:
    text = str(statement.compile(connection, compile_kwargs={"literal_binds": True}))
    return [row[0] for row in connection.exec_driver_sql(f"EXPLAIN {text}")]
