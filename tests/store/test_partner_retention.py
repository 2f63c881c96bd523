"""Retention of partners with shorter periods: their old rows are deleted, those of others and open ones stay."""

from dataclasses import replace
from typing import Any, Final

from sqlalchemy import Connection, insert, select, update

from tests.support.builders import APP, OPERATOR, PARTNER, message
from tests.support.manual_clock import ManualClock
from tests.support.store_locations import StoreLocation
from tests.support.store_statements import execute, fetch_column
from waypost.base.clock import DAY_MS
from waypost.base.ids import uuid7_text
from waypost.domain.callbacks import CallbackAttempt
from waypost.domain.event import InboundWebhook, WebhookItem
from waypost.domain.media import INBOUND_LIFE_MS, MEDIA_LIFE_MS
from waypost.domain.message import Message, MessageState
from waypost.domain.session_messages.plain import SessionText
from waypost.operations.retention_loop import RetentionLoop
from waypost.store.accounts.partners import add_app, add_partner
from waypost.store.callbacks.callbacks import AttemptRecord, CallbackRow, enqueue_callbacks, record_attempts
from waypost.store.database import Database
from waypost.store.messages.messages import MessageChange, change_messages, record_messages
from waypost.store.queue.inbound_webhooks import record_webhooks
from waypost.store.retention.columns import RetentionPeriods
from waypost.store.retention.partner_rules import change_own_periods
from waypost.store.retention.rules import MAX_BATCH_ROWS
from waypost.store.tables import (
    attempts,
    callbacks,
    inbound_media,
    inbound_messages,
    inbound_webhooks,
    media,
    message_events,
    messages,
    queue_jobs,
    webhook_items,
)
from waypost.store.trace_events import MessageTraceEvent

PERIODS: Final = RetentionPeriods(bodies_days=30, messages_days=400, dedupe_days=8, attempts_days=30)
START_MS: Final = 1_930_000_000_000
OTHER: Final = replace(PARTNER, id=8, email="ben@acme.test")
OTHER_APP: Final = replace(
    APP, id="01990000-0000-7000-8000-00000000000b", partner_id=OTHER.id, phone_number="15550002222",
    phone_number_id="2000000000000003",
)  # fmt: skip
APPS: Final = (APP, OTHER_APP)


async def add_partners(database: Database) -> None:
    """Add two partners with an app each."""
    for partner, app in zip((PARTNER, OTHER), APPS, strict=True):
        await database.write(add_partner, partner, "", START_MS)
        await database.write(add_app, app, app.id)


async def set_periods(database: Database, **days: int | None) -> None:
    """Set the periods of the first partner."""
    await database.write(change_own_periods, PARTNER.id, days)


async def run_retention(database: Database, at_ms: int, periods: RetentionPeriods = PERIODS) -> RetentionLoop:
    """Run retention once at a time."""
    loop = RetentionLoop(database, ManualClock(at_ms), periods, rest_factor=0)
    await loop.run_turn()
    return loop


def id_at(at_ms: int, number: int) -> str:
    """Return an id of that time."""
    return uuid7_text(at_ms, number.to_bytes(10, "big"))


async def add_message(
    database: Database, at_ms: int, number: int, *, state: MessageState = MessageState.DELIVERED, app: Any = APP
) -> str:
    """Add a message with its trace."""
    new: Message = message(content=SessionText("Hello"), id=id_at(at_ms, number), accepted_on_ms=at_ms)
    new = replace(new, partner_id=app.partner_id, app_id=app.id, source=app.phone_number, request="text=Hello")
    await database.join(record_messages, new)
    if state is not MessageState.ACCEPTED:
        event = MessageTraceEvent(new.id, state.value, at_ms, is_applied=True)
        await database.write(change_messages, [MessageChange(new.id, state, at_ms, None, None)], [event])
    return new.id


async def add_callback(database: Database, at_ms: int, number: int, *, is_ended: bool, app: Any = APP) -> str:
    """Add a callback with a failed attempt, and a second one if it has ended."""
    row = CallbackRow(id_at(at_ms, number), app.partner_id, app.id, 1, "1", 1, None, "sent", b"{}", at_ms)
    await database.write(enqueue_callbacks, [row], [at_ms])
    await database.write(record_attempts, [AttemptRecord(row.id, 1, CallbackAttempt(at_ms, 5, 503), None)])
    if is_ended:
        await database.write(record_attempts, [AttemptRecord(row.id, 1, CallbackAttempt(at_ms, 5, 200), True)])
    return row.id


async def add_webhook(database: Database, at_ms: int, number: int, *, app: Any = APP, is_open: bool = False) -> None:
    """Add a webhook with an item that is applied, unless it is open."""
    payload = f'{{"phone_number_id":"{app.phone_number_id}","message":{{}}}}'.encode()
    key = f"{app.name} {app.partner_id} {number}"
    item = WebhookItem(key, app.phone_number_id, key, "0", payload)
    body = b'{"entry":[' + payload * 100 + b"]}"  # large enough to be compressed
    await database.join(record_webhooks, InboundWebhook(id_at(at_ms, number), OPERATOR.id, at_ms, body, (item,)))
    if not is_open:
        await execute(database, queue_jobs.delete().where(queue_jobs.c.ordering_key == key))


async def add_files(database: Database, at_ms: int, app: Any) -> None:
    """Add an upload, a received file, and one that is not fetched yet."""
    common = {"partner_id": app.partner_id, "app_id": app.id, "mime_type": "image/png", "file_name": ""}
    upload = {"id": f"{app.partner_id:016}", "size_bytes": 1, "sha256": "aa", "created_on_ms": at_ms}
    await execute(database, media.insert(), [common | upload | {"expires_on_ms": at_ms + MEDIA_LIFE_MS}])
    received = common | {"operator_media_id": "1", "expires_on_ms": at_ms + INBOUND_LIFE_MS}
    rows = [
        received | {"key": f"{name} {app.partner_id}", "sha256": sha} for name, sha in (("in", "bb"), ("open", None))
    ]
    await execute(database, inbound_media.insert(), rows)


async def live_files(database: Database, now_ms: int) -> set[str]:
    """Return uploads and received files that have not expired."""
    names: set[str] = set()
    for table, key in ((media, media.c.id), (inbound_media, inbound_media.c.key)):
        names |= set(await fetch_column(database, select(key).where(table.c.expires_on_ms > now_ms)))
    return names


async def test_old_content_of_one_partner_is_deleted_and_that_of_another_stays(database: Database) -> None:
    await add_partners(database)
    await set_periods(database, keep_bodies_days=3)
    for number, app in enumerate(APPS):
        await add_message(database, START_MS, number, app=app)
        await add_callback(database, START_MS, number, is_ended=True, app=app)
        await add_webhook(database, START_MS, number, app=app)
        await add_files(database, START_MS, app)
    now_ms = START_MS + 4 * DAY_MS
    young = await add_message(database, now_ms - 2 * DAY_MS, 9)

    await run_retention(database, now_ms)

    other_id = id_at(START_MS, 1)
    with_content = select(messages.c.id).where(messages.c.content != b"").order_by(messages.c.id)
    assert await fetch_column(database, with_content) == [other_id, young]
    assert len(await fetch_column(database, select(messages.c.id))) == 3
    assert await fetch_column(database, select(callbacks.c.id)) == [other_id]
    assert set(await fetch_column(database, select(attempts.c.callback_id))) == {other_id}
    assert await fetch_column(database, select(inbound_webhooks.c.id)) == [other_id]
    assert len(await fetch_column(database, select(webhook_items.c.id))) == 2  # a repeated webhook is still recognized
    assert await live_files(database, now_ms) == {"open 7", "0000000000000008", "in 8", "open 8"}


async def test_old_messages_and_items_of_one_partner_are_deleted_and_those_of_another_stay(database: Database) -> None:
    await add_partners(database)
    await set_periods(database, keep_bodies_days=3, keep_messages_days=10)
    for number, app in enumerate(APPS):
        await add_message(database, START_MS, number, app=app)
        await add_webhook(database, START_MS, number, app=app)
    rows = [
        {"operator_message_id": f"wamid.{app.partner_id}.{days}", "partner_id": app.partner_id, "app_id": app.id,
         "recipient_id": 1, "kind": "text", "item_id": 1, "received_on_ms": START_MS + days * DAY_MS}
        for days in (0, 8) for app in APPS
    ]  # fmt: skip
    await execute(database, inbound_messages.insert(), rows)

    await run_retention(database, START_MS + 11 * DAY_MS)

    assert await fetch_column(database, select(messages.c.id)) == [id_at(START_MS, 1)]
    assert await fetch_column(database, select(message_events.c.message_id)) == [id_at(START_MS, 1)]
    assert await fetch_column(database, select(webhook_items.c.dedupe_key)) == ["AcmeShop 8 1"]
    left = set(await fetch_column(database, select(inbound_messages.c.operator_message_id)))
    assert left == {"wamid.7.8", "wamid.8.0", "wamid.8.8"}


async def test_open_rows_stay_until_they_are_done_after_a_restart_too(store_location: StoreLocation) -> None:
    database = Database(store_location.engine())
    await database.open()
    await add_partners(database)
    await set_periods(database, keep_bodies_days=3, keep_messages_days=3)
    waiting = await add_message(database, START_MS, 1, state=MessageState.ACCEPTED)
    uncertain = await add_message(database, START_MS, 2, state=MessageState.UNCERTAIN)
    await add_message(database, START_MS, 3)
    undelivered = await add_callback(database, START_MS, 1, is_ended=False)
    await add_callback(database, START_MS, 2, is_ended=True)
    await add_webhook(database, START_MS, 1, is_open=True)
    jobs = await fetch_column(database, select(queue_jobs.c.ref).order_by(queue_jobs.c.position))

    for days in (10, 11):  # the second run passes them by
        await run_retention(database, START_MS + days * DAY_MS)
    await database.close()
    database = Database(store_location.engine())
    await database.open()
    try:
        assert await fetch_column(database, select(messages.c.id).where(messages.c.content != b"")) == [
            waiting,
            uncertain,
        ]
        assert await fetch_column(database, select(callbacks.c.id)) == [undelivered]
        assert await fetch_column(database, select(attempts.c.callback_id)) == [undelivered]
        assert len(await fetch_column(database, select(webhook_items.c.id))) == 1
        assert await fetch_column(database, select(queue_jobs.c.ref).order_by(queue_jobs.c.position)) == jobs
        changes = [MessageChange(each, MessageState.SENT, START_MS, None, None) for each in (waiting, uncertain)]
        await database.write(change_messages, changes, [])
        delivered = AttemptRecord(undelivered, 1, CallbackAttempt(START_MS, 5, 200), True)
        await database.write(record_attempts, [delivered])

        await run_retention(database, START_MS + 11 * DAY_MS)

        for column in (messages.c.id, message_events.c.message_id, callbacks.c.id, attempts.c.callback_id):
            assert await fetch_column(database, select(column)) == []
    finally:
        await database.close()


async def test_many_rows_are_deleted_in_batches_and_later_runs_look_only_at_later_ones(database: Database) -> None:
    await add_partners(database)
    count = 2 * MAX_BATCH_ROWS + 17
    await database.write(_add_delivered, count)
    without = await run_retention(database, START_MS + 4 * DAY_MS)
    await set_periods(database, keep_bodies_days=3)

    first = await run_retention(database, START_MS + 4 * DAY_MS)
    later = await run_retention(database, START_MS + 5 * DAY_MS)
    await set_periods(database, keep_bodies_days=10)
    longer = await run_retention(database, START_MS + 5 * DAY_MS)

    with_content = select(messages.c.partner_id).where(messages.c.content != b"").distinct()
    assert await fetch_column(database, with_content) == [OTHER.id]
    assert not [name for name in without.transactions if name.startswith("partner")]
    assert first.transactions["partner contents"] == 3
    assert later.transactions["partner contents"] == longer.transactions["partner contents"] == 1


async def test_upload_that_a_waiting_message_needs_stays(database: Database) -> None:
    await add_partners(database)
    await set_periods(database, keep_bodies_days=3)
    await add_files(database, START_MS, APP)
    waiting = await add_message(database, START_MS, 1, state=MessageState.ACCEPTED)
    content = b'{"text":"%s"}' % f"{PARTNER.id:016}".encode()
    await execute(database, update(messages).where(messages.c.id == waiting).values(content=content))
    now_ms = START_MS + 8 * DAY_MS

    await run_retention(database, now_ms)
    while_waiting = await live_files(database, now_ms)
    await execute(database, queue_jobs.delete())
    await run_retention(database, now_ms)

    assert while_waiting == {f"{PARTNER.id:016}"}
    assert await live_files(database, now_ms) == set()


def _add_delivered(connection: Connection, count: int) -> None:
    rows = [
        {
            "id": id_at(START_MS, 2 * number + position), "partner_id": app.partner_id, "app_id": app.id,
            "source": app.phone_number, "destination": "1", "kind": "text", "content": b"{}", "request": "",
            "sandbox": False, "state": MessageState.DELIVERED.value, "unconfirmed": False,
            "accepted_on_ms": START_MS, "changed_on_ms": START_MS,
        }
        for number in range(count) for position, app in enumerate(APPS)
    ]  # fmt: skip
    connection.execute(insert(messages), rows)
