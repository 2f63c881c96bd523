"""What is kept long enough goes, what is open or young stays, and PostgreSQL drops whole ranges."""

import re
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from sqlalchemy import Connection, func, select, update

from tests.support.builders import ACCOUNT, APP, OPERATOR, PARTNER, message
from tests.support.store_statements import column_of, do, row_of
from tests.support.stores import Databases
from waypost.base.clock import DAY_MS, ManualClock, SystemClock
from waypost.base.ids import uuid7_text
from waypost.domain.callbacks.callback import CallbackAttempt
from waypost.domain.inbound_webhook import InboundWebhook, WebhookItem
from waypost.domain.message import Message, MessageState
from waypost.domain.session_messages.plain import SessionText
from waypost.operations.retention_loop import RetentionLoop
from waypost.store.accounts.credentials import CredentialKind, add_credential
from waypost.store.callbacks.callbacks import AttemptRecord, CallbackRow, add_callbacks, record_attempts
from waypost.store.console.trace import message_trace
from waypost.store.database import Database
from waypost.store.engines.postgresql import PostgresEngine
from waypost.store.messages.messages import MessageChange, change_messages, record_messages
from waypost.store.queue.inbound_webhooks import record_webhooks
from waypost.store.retention.partitions import existing_partitions, floor_id, required_partitions
from waypost.store.retention.rules import MAX_BATCH_ROWS, RetentionPeriods, begin_retention_run
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
    webhook_items,
)
from waypost.store.trace_events import MessageTraceEvent

KEEP: Final = RetentionPeriods(bodies_days=30, messages_days=400, dedupe_days=8, attempts_days=30)
MONDAY: Final = datetime(2031, 3, 3, tzinfo=UTC)
TODAY_MS: Final = int(MONDAY.timestamp() * 1000)
"""The first moment of a range: what is stored then waits longest for the end of its range."""
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
async def ranges_of_today(database: Database) -> None:
    """PostgreSQL makes the ranges of a new store by its own time: make those of the tests' day too."""
    await retention_at(database, TODAY_MS).run_turn()


def latest_ms(database: Database, days: int, *, range_days: int = WEEK_DAYS) -> int:
    """Return the time at which what was stored at `TODAY_MS` and is kept for `days` is certainly gone.

    Args:
        range_days: the length of the ranges that PostgreSQL drops whole.
    """
    late_days = range_days if database.engine == "postgresql" else 0
    return TODAY_MS + (days + late_days) * DAY_MS + 1


def id_at(at_ms: int, number: int = 0) -> str:
    """An id of that time."""
    return uuid7_text(at_ms, number.to_bytes(10, "big"))


def retention_at(database: Database, at_ms: int, keep: RetentionPeriods = KEEP) -> RetentionLoop:
    """Ready to take a turn at a time."""
    return RetentionLoop(database, ManualClock(at_ms), keep, rest_factor=0)


async def add_message(
    database: Database, at_ms: int, state: MessageState = MessageState.DELIVERED, number: int = 0
) -> str:
    """A message of a time that has come to a state, with its trace."""
    one = message(content=SessionText("Hello"), id=id_at(at_ms, number), accepted_on_ms=at_ms)
    await database.join(record_messages, replace(one, request="channel=whatsapp"))
    if state is not MessageState.ACCEPTED:
        change = MessageChange(one.id, state, at_ms, None, None)
        news = MessageTraceEvent(one.id, state.value, at_ms, is_applied=True)
        await database.write(change_messages, [change], [news])
    return one.id


async def add_callback(database: Database, at_ms: int, *, ended: bool, number: int = 0) -> str:
    """A callback of a time, with one attempt."""
    callback_id = id_at(at_ms, number)
    status = 200 if ended else 503
    tried = AttemptRecord(callback_id, 1, CallbackAttempt(at_ms, 5, status), True if ended else None)
    await database.write(add_callbacks, [_callback_row(at_ms, number)])
    await database.write(record_attempts, [tried])
    return callback_id


def arrival_at(at_ms: int, *keys: str, number: int = 0) -> InboundWebhook:
    """A webhook of a time with an item for each key."""
    items = tuple(WebhookItem(key, ACCOUNT.id, key, str(place), b"{}") for place, key in enumerate(keys))
    return InboundWebhook(id_at(at_ms, number), OPERATOR.id, at_ms, b"{}", items)


async def count(database: Database, table: Any) -> int:
    """How many rows there are."""
    [rows] = await column_of(database, select(func.count()).select_from(table))
    return rows


async def words_of(database: Database, message_id: str) -> tuple[bytes, str]:
    """What is kept of what a message said."""
    found = select(messages.c.content, messages.c.request).where(messages.c.id == message_id)
    row = await row_of(database, found)
    return bytes(row.content), row.request


async def test_words_of_a_message_go_and_its_row_stays(database: Database) -> None:
    old = await add_message(database, TODAY_MS)
    young = await add_message(database, TODAY_MS + 2 * DAY_MS)

    await retention_at(database, latest_ms(database, 30, range_days=0)).run_turn()

    assert await words_of(database, old) == (b"", "")
    assert (await words_of(database, young))[1] == "channel=whatsapp"
    trace = await database.read(message_trace, old)
    assert trace is not None
    assert (trace["state"], trace["words_kept"]) == ("delivered", False)
    assert [line["news"] for line in trace["news"]] == ["delivered"]


async def test_words_of_an_open_message_stay_until_it_is_sent(database: Database) -> None:
    waiting = await add_message(database, TODAY_MS, MessageState.ACCEPTED)
    doubtful = await add_message(database, TODAY_MS, MessageState.UNCERTAIN, number=1)
    await add_message(database, TODAY_MS, number=2)
    retention = retention_at(database, latest_ms(database, 30))

    await retention.run_turn()
    kept = [await words_of(database, one) for one in (waiting, doubtful)]
    changes = [MessageChange(one, MessageState.SENT, TODAY_MS, None, None) for one in (waiting, doubtful)]
    await database.write(change_messages, changes, [])
    await retention.run_turn()

    assert all(words[0] for words in kept)
    assert [await words_of(database, one) for one in (waiting, doubtful)] == [(b"", "")] * 2


async def test_many_pieces_clear_everything(database: Database) -> None:
    many = 2 * MAX_BATCH_ROWS + 17
    await database.join_all(record_messages, [_sent(number) for number in range(many)])
    await database.write(_deliver_all)

    await retention_at(database, latest_ms(database, 30)).run_turn()

    left = select(func.count()).select_from(messages).where(messages.c.content != b"")
    assert await column_of(database, left) == [0]
    assert await count(database, messages) == many


async def test_row_of_a_message_goes_with_its_trace_and_an_open_one_stays(database: Database) -> None:
    await add_message(database, TODAY_MS)
    waiting = await add_message(database, TODAY_MS, MessageState.ACCEPTED, number=1)
    young = await add_message(database, TODAY_MS + 200 * DAY_MS)

    await retention_at(database, TODAY_MS + 440 * DAY_MS).run_turn()

    left = await column_of(database, select(messages.c.id))
    assert set(left) == {waiting, young}
    traces = select(message_events.c.message_id)
    assert await column_of(database, traces) == [young]
    assert await count(database, queue_jobs) == 3  # nobody has worked them


async def test_callbacks_that_ended_go_with_their_attempts_and_others_stay(database: Database) -> None:
    for number in range(3):
        await add_callback(database, TODAY_MS, ended=True, number=number)
    waiting = await add_callback(database, TODAY_MS, ended=False, number=7)
    young = await add_callback(database, TODAY_MS + 10 * DAY_MS, ended=True)

    await retention_at(database, latest_ms(database, 30)).run_turn()

    for column in (callbacks.c.id, attempts.c.callback_id):
        left = await column_of(database, select(column))
        assert set(left) == {waiting, young}


async def test_attempts_may_be_kept_for_less_than_their_callbacks(database: Database) -> None:
    await add_callback(database, TODAY_MS, ended=True)
    keep = replace(KEEP, attempts_days=3)

    await retention_at(database, latest_ms(database, 3), keep).run_turn()

    assert await count(database, attempts) == 0
    assert await count(database, callbacks) == 1


@pytest.mark.parametrize("date", DATES, ids=lambda date: f"{date:%a-%Y-%m-%d}")
async def test_callback_is_there_for_as_long_as_set_and_gone_a_week_later_at_most(
    database: Database, date: datetime
) -> None:
    """On SQLite it is gone at once, on PostgreSQL with the week in which it was stored."""
    stored_ms = int(date.timestamp() * 1000)
    late_days = WEEK_DAYS if database.engine == "postgresql" else 0
    await retention_at(database, stored_ms).run_turn()
    await add_callback(database, stored_ms, ended=True)

    await retention_at(database, stored_ms + 30 * DAY_MS).run_turn()
    kept = await count(database, callbacks), await count(database, attempts)
    await retention_at(database, stored_ms + (30 + late_days) * DAY_MS + 1).run_turn()
    left = await count(database, callbacks), await count(database, attempts)

    assert (kept, left) == ((1, 1), (0, 0))


async def test_items_of_webhooks_go_but_for_those_still_to_be_applied(database: Database) -> None:
    await database.join(record_webhooks, arrival_at(TODAY_MS, "a", "b"))
    await do(database, queue_jobs.delete().where(queue_jobs.c.ordering_key == "a"))
    await database.join(record_webhooks, arrival_at(TODAY_MS + 20 * DAY_MS, "c"))

    await retention_at(database, latest_ms(database, 30)).run_turn()

    assert await count(database, inbound_webhooks) == 1
    keys = select(webhook_items.c.dedupe_key).order_by(webhook_items.c.id)
    assert await column_of(database, keys) == ["b", "c"]


async def test_webhook_that_comes_again_is_known_for_eight_days_whatever_else_is_kept(database: Database) -> None:
    keep = replace(KEEP, bodies_days=1)
    await database.join(record_webhooks, arrival_at(TODAY_MS, "a"))
    await do(database, queue_jobs.delete())

    await retention_at(database, TODAY_MS + 7 * DAY_MS, keep).run_turn()
    again = await database.join(record_webhooks, arrival_at(TODAY_MS + 7 * DAY_MS, "a"))
    await retention_at(database, TODAY_MS + 9 * DAY_MS, keep).run_turn()
    much_later = await database.join(record_webhooks, arrival_at(TODAY_MS + 9 * DAY_MS, "a"))

    assert (again, much_later) == (0, 1)


async def test_who_wrote_which_message_goes_with_the_rows_of_messages(database: Database) -> None:
    rows = [
        {"operator_message_id": f"wamid.{days}", "partner_id": PARTNER.id, "app_id": APP.id,
         "recipient_id": 1, "kind": "text", "item_id": 1, "received_on_ms": TODAY_MS + days * DAY_MS}
        for days in (0, 100)
    ]  # fmt: skip
    await do(database, inbound_messages.insert(), rows)

    await retention_at(database, TODAY_MS + 401 * DAY_MS).run_turn()

    found = select(inbound_messages.c.operator_message_id)
    assert await column_of(database, found) == ["wamid.100"]


async def test_credentials_go_long_after_they_have_run_out_or_were_revoked(database: Database) -> None:
    over_ms, young_ms = TODAY_MS, TODAY_MS + 40 * DAY_MS
    secrets = {"over": over_ms, "young": young_ms, "for ever": None}
    keys = {
        "over": (over_ms, None),
        "revoked": (None, over_ms),
        "young": (young_ms, None),
        "just revoked": (None, young_ms),
        "for ever": (None, None),
    }
    for name, expires_on_ms in secrets.items():
        await database.write(
            add_credential, CredentialKind.CLIENT_SECRET, PARTNER.id, name, TODAY_MS, "", expires_on_ms
        )
    rows = [
        {"id": name, "hash": name, "partner_id": PARTNER.id, "app_id": APP.id, "name": name,
         "created_on_ms": TODAY_MS, "expires_on_ms": expires_on_ms, "revoked_on_ms": revoked_on_ms}
        for name, (expires_on_ms, revoked_on_ms) in keys.items()
    ]  # fmt: skip
    await do(database, app_keys.insert(), rows)

    await retention_at(database, TODAY_MS + 50 * DAY_MS).run_turn()

    left = set(await column_of(database, select(client_secrets.c.hash)))
    assert left == {"young", "for ever"}
    left = set(await column_of(database, select(app_keys.c.id)))
    assert left == {"young", "just revoked", "for ever"}


async def test_counts_of_a_subscription_that_is_gone_go_and_those_of_others_stay(database: Database) -> None:
    row = {
        "partner_id": PARTNER.id, "app_id": APP.id, "url": "", "version": 2, "modes": "ALL", "active": True,
        "show_on_ui": False, "created_on_ms": 1, "modified_on_ms": 1,
    }  # fmt: skip
    await do(database, subscriptions.insert(), [row | {"tag": tag} for tag in ("a", "b", "c")])
    first, gone, last = await column_of(database, select(subscriptions.c.id).order_by("id"))
    counts = [
        {"subscription_id": its_id, "about": str(number), "last": 1}
        for its_id in (first, gone, last)
        for number in range(MAX_BATCH_ROWS + 1)
    ]
    await do(database, sequences.insert(), counts)
    await do(database, subscriptions.delete().where(subscriptions.c.id == gone))

    await retention_at(database, TODAY_MS).run_turn()

    left = await column_of(database, select(sequences.c.subscription_id).distinct())
    assert set(left) == {first, last}
    assert await count(database, sequences) == 2 * (MAX_BATCH_ROWS + 1)


async def test_of_several_processes_one_takes_a_turn(database: Database) -> None:
    hour_ms = 60 * 60 * 1000

    begun = [await database.write_in_background(begin_retention_run, TODAY_MS, hour_ms) for _ in range(2)]
    later = await database.write_in_background(begin_retention_run, TODAY_MS + hour_ms, hour_ms)

    assert (begun, later) == ([True, False], True)


class TestRanges:
    """Ranges that PostgreSQL makes by its own time."""

    @pytest.fixture
    def now_ms(self) -> int:
        """Return the time of the server, which runs on this machine."""
        return SystemClock().now_ms()

    @pytest.fixture(autouse=True)
    async def ranges_of_today(self) -> None:
        """Make none besides the ranges of a new store."""

    @pytest.fixture
    async def database(self, databases: Databases) -> AsyncIterator[Database]:
        """New, so that its ranges are."""
        url = databases.take_bare()
        database = Database(PostgresEngine(url))
        await database.open()
        yield database
        await database.close()
        databases.drop(url)

    async def test_new_store_has_those_of_today_and_of_weeks_to_come(self, database: Database, now_ms: int) -> None:
        there = {part.name for part in await database.read(existing_partitions)}

        assert {part.name for part in required_partitions(now_ms)} <= there
        assert len(there) == 3 * 4 + 3

    async def test_rows_of_today_are_in_a_range_and_those_of_any_other_time_in_the_default_part(
        self, database: Database, now_ms: int
    ) -> None:
        await add_callback(database, now_ms, ended=True)
        await add_callback(database, now_ms - 700 * DAY_MS, ended=True)

        assert await database.read(_count_of, "callbacks_default") == 1
        assert await count(database, callbacks) == 2

    async def test_turn_makes_the_ranges_of_weeks_to_come(self, database: Database, now_ms: int) -> None:
        later_ms = now_ms + 21 * DAY_MS

        await retention_at(database, later_ms).run_turn()

        there = {part.name for part in await database.read(existing_partitions)}
        assert {part.name for part in required_partitions(later_ms)} <= there

    async def test_range_of_which_rows_are_in_the_default_part_already_stays_there(
        self, database: Database, now_ms: int
    ) -> None:
        later_ms = now_ms + 60 * DAY_MS
        await add_callback(database, later_ms, ended=True)

        await retention_at(database, later_ms).run_turn()
        await add_callback(database, later_ms, ended=True, number=1)

        assert await database.read(_count_of, "callbacks_default") == 2

    async def test_ranges_that_are_past_are_dropped(self, database: Database, now_ms: int) -> None:
        await add_callback(database, now_ms, ended=True)
        await database.join(record_webhooks, arrival_at(now_ms))
        past = {part.name for part in await database.read(existing_partitions)}

        await retention_at(database, now_ms + 80 * DAY_MS).run_turn()

        there = {part.name for part in await database.read(existing_partitions)}
        gone = past - there
        assert {name.rpartition("_")[0] for name in gone} == {"callbacks", "attempts", "inbound_webhooks"}
        assert len(gone) == 3 * 4
        for table in (callbacks, attempts, inbound_webhooks):
            assert await count(database, table) == 0

    async def test_rows_of_a_range_that_is_not_all_past_are_left_to_be_dropped_with_it(
        self, database: Database, now_ms: int
    ) -> None:
        week = next(part for part in required_partitions(now_ms) if part.parent.table is callbacks)
        begin_ms = int(week.low.replace("-", ""), 16)
        await add_callback(database, begin_ms, ended=True)
        await add_callback(database, begin_ms - 500 * DAY_MS, ended=True)  # in the default part

        await retention_at(database, begin_ms + 33 * DAY_MS).run_turn()
        kept = await column_of(database, select(callbacks.c.id))
        await retention_at(database, begin_ms + 38 * DAY_MS).run_turn()

        assert kept == [id_at(begin_ms)]
        assert await count(database, callbacks) == 0

    async def test_range_with_an_open_callback_stays_and_the_others_in_it_go(
        self, database: Database, now_ms: int
    ) -> None:
        ended = await add_callback(database, now_ms, ended=True)
        waiting = await add_callback(database, now_ms, ended=False, number=1)

        await retention_at(database, now_ms + 80 * DAY_MS).run_turn()

        left = await column_of(database, select(callbacks.c.id))
        assert left == [waiting]
        tries = select(attempts.c.callback_id)
        assert ended not in await column_of(database, tries)
        there = [part for part in await database.read(existing_partitions) if part.parent.table is callbacks]
        assert there[0].low <= waiting < there[0].high

    async def test_traces_go_by_months_once_no_message_of_the_month_is_there(
        self, database: Database, now_ms: int
    ) -> None:
        await add_message(database, now_ms)

        await retention_at(database, now_ms + 440 * DAY_MS).run_turn()

        assert await count(database, message_events) == 0
        names = {part.name for part in await database.read(existing_partitions)}
        first = next(part for part in required_partitions(now_ms) if part.parent.table is message_events)
        assert first.name not in names

    async def test_hot_statements_touch_one_range(self, database: Database, now_ms: int) -> None:
        given = id_at(now_ms)
        for table, column in (
            (callbacks, callbacks.c.id),
            (attempts, attempts.c.callback_id),
            (message_events, message_events.c.message_id),
        ):
            plan = await database.read(_plan_of, select(table).where(column.in_([given])))

            touched = set(re.findall(rf"{table.name}_(?:\d+|default)", " ".join(plan)))
            assert len(touched) == 1, plan

    async def test_changing_rows_reads_no_whole_range_even_without_statistics(
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
        assert await column_of(database, left) == [35_900]

    async def test_ids_of_a_time_are_not_less_than_its_first(self, now_ms: int) -> None:
        assert floor_id(now_ms) <= id_at(now_ms) < floor_id(now_ms + 1)


def _sent(number: int) -> Message:
    one = message(content=SessionText("Hello"), id=id_at(TODAY_MS, number), accepted_on_ms=TODAY_MS)
    return replace(one, request="channel=whatsapp")


def _deliver_all(connection: Connection) -> None:
    connection.execute(update(messages).values(state=MessageState.DELIVERED.value))


def _callback_row(at_ms: int, number: int) -> CallbackRow:
    return CallbackRow(id_at(at_ms, number), PARTNER.id, APP.id, 1, "1", 1, None, "sent", b"{}", at_ms)


def _add_many(connection: Connection, wanted: list[tuple[int, int]]) -> None:
    add_callbacks(connection, [_callback_row(at_ms, n) for at_ms, count in wanted for n in range(count)])


def _scans_of(connection: Connection, tries: list[AttemptRecord]) -> list[str]:
    """Which ranges of callbacks are read from end to end when these are recorded."""
    before = _scans(connection)
    record_attempts(connection, tries)
    return [name for name, count in _scans(connection).items() if count > before.get(name, 0)]


def _scans(connection: Connection) -> dict[str, int]:
    seen = connection.exec_driver_sql(
        "SELECT relname, seq_scan FROM pg_stat_xact_user_tables WHERE relname LIKE 'callbacks%%'"
    )
    return {row.relname: row.seq_scan for row in seen}


def _count_of(connection: Connection, table: str) -> int:
    return connection.exec_driver_sql(f'SELECT count(*) FROM "{table}"').scalar_one()


def _plan_of(connection: Connection, statement: Any) -> list[str]:
    text = str(statement.compile(connection, compile_kwargs={"literal_binds": True}))
    return [row[0] for row in connection.exec_driver_sql(f"EXPLAIN {text}")]
