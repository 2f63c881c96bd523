"""The overview of one app: counted within bounds, its own only, the same on every engine."""

from dataclasses import replace

from sqlalchemy import Connection, insert, update

from tests.support.builders import ANN, APP, AT_MS, PARTNER, draft, message, template
from waypost.domain.message import MessageState
from waypost.domain.templates.template import TemplateStatus
from waypost.store.callbacks.callbacks import CallbackRow, enqueue_callbacks
from waypost.store.console.overview import (
    MINUTE_MS,
    app_queue_depths,
    counts_by_minute,
    dead_letters_of_app,
    last_webhook_ms,
    onboarding_progress,
    operator_activity,
    receivers_of_app,
    templates_with_problems,
)
from waypost.store.database import Database
from waypost.store.messages.messages import MessageChange, change_messages, record_messages
from waypost.store.queue.job_subjects import JobState, QueueName
from waypost.store.tables import callbacks, inbound_messages, inbound_webhooks
from waypost.store.templates.templates import record_template

MINUTE = AT_MS // MINUTE_MS
FROM_MS = MINUTE * MINUTE_MS
OTHER = PARTNER.id + 1


async def seed(database: Database) -> None:
    """Three messages of one minute and two of the next; the first of each minute has failed."""
    messages = [message(n, destination=ANN, accepted_on_ms=FROM_MS + (n > 3) * MINUTE_MS + n) for n in range(1, 6)]
    await database.join_all(record_messages, messages)
    failed = [
        MessageChange(messages[at].id, MessageState.FAILED, AT_MS + at, None, None, code=131047, reason="closed")
        for at in (0, 3)
    ]
    accepted = MessageChange(messages[1].id, MessageState.SENT, AT_MS + 9, None, "wamid.2")
    await database.write(change_messages, [*failed, accepted], [])


async def counted(database: Database, at_most: int, *, partner_id: int = PARTNER.id) -> list[str]:
    """Return `minute state code messages` of each row, minutes from the first, sorted; and how far back."""
    until_ms = FROM_MS + 2 * MINUTE_MS
    counts = await database.read(counts_by_minute, partner_id, APP.id, FROM_MS, until_ms, at_most)
    rows = [f"{r.minute - MINUTE} {r.state} {r.code} {r.messages} {r.reason}" for r in counts.rows]
    return [*sorted(rows), f"from {(counts.from_ms - FROM_MS) // MINUTE_MS}"]


async def test_messages_are_counted_by_minute_state_and_reason(database: Database) -> None:
    await seed(database)

    assert await counted(database, 100) == [
        "0 accepted None 1 None",
        "0 failed 131047 1 closed",
        "0 sent None 1 None",
        "1 accepted None 1 None",
        "1 failed 131047 1 closed",
        "from 0",
    ]
    assert await counted(database, 100, partner_id=OTHER) == ["from 0"]


async def test_minute_that_was_not_read_to_its_end_is_left_out(database: Database) -> None:
    await seed(database)

    assert await counted(database, 3) == ["1 accepted None 1 None", "1 failed 131047 1 closed", "from 1"]


async def test_minute_longer_than_a_scan_counts_as_far_as_it_was_read(database: Database) -> None:
    await seed(database)

    assert await counted(database, 1) == ["1 accepted None 1 None", "from 1"]


async def test_only_an_apps_own_queues_are_counted_and_dead_letters_separately(database: Database) -> None:
    await seed(database)
    await database.write(_add_dead_letter)

    waiting = {depth.queue: depth for depth in await database.read(app_queue_depths, APP, [7])}
    others = await database.read(
        app_queue_depths, replace(APP, phone_number="15559990000", business_account_id="9"), [8]
    )
    dead_letters = await database.read(dead_letters_of_app, APP, [7])
    others_dead_letters = await database.read(dead_letters_of_app, APP, [8])

    assert waiting[QueueName.OUTBOUND].jobs == 5
    assert waiting[QueueName.OUTBOUND].oldest_due_ms == FROM_MS + 1
    assert waiting[QueueName.CALLBACKS].jobs == 1
    assert (waiting[QueueName.CALLBACKS].tries, waiting[QueueName.CALLBACKS].note) == (3, "timed out")
    assert [depth.jobs for depth in others] == [0, 0, 0, 0, 0]
    assert [row.ref for row in dead_letters] == ["stuck"]
    assert others_dead_letters == []


def _add_dead_letter(connection: Connection) -> None:
    rows = [
        CallbackRow(name, PARTNER.id, APP.id, 7, "ann", sequence, None, "sent", b"{}", AT_MS)
        for sequence, name in enumerate(("stuck", "tried"), 1)
    ]
    enqueue_callbacks(connection, rows, [AT_MS, AT_MS])
    dead_letter = {"state": int(JobState.DEAD_LETTER), "note": "a defect"}
    connection.execute(update(callbacks).where(callbacks.c.id == "stuck").values(**dead_letter))
    tried = {"attempt": 3, "note": "timed out"}
    connection.execute(update(callbacks).where(callbacks.c.id == "tried").values(**tried))


async def test_operator_activity_has_the_last_acceptance_and_the_last_failure(database: Database) -> None:
    await seed(database)

    activity = await database.read(operator_activity, PARTNER.id, APP.id)
    others = await database.read(operator_activity, OTHER, APP.id)

    assert (activity.accepted_ms, activity.failed_ms, activity.failed_why) == (AT_MS + 9, AT_MS + 3, "closed")
    assert (others.accepted_ms, others.failed_ms) == (None, None)


async def test_onboarding_advances_by_sending_and_by_a_reply_since(database: Database) -> None:
    before = await database.read(onboarding_progress, PARTNER.id, APP, [])
    await seed(database)
    await database.write(_receive, "early", FROM_MS - 1)
    sent = await database.read(onboarding_progress, PARTNER.id, APP, [1])
    await database.write(_receive, "reply", FROM_MS + 5)
    replied = await database.read(onboarding_progress, PARTNER.id, APP, [1])

    assert (before.has_message, before.has_inbound, before.has_callback) == (False, False, False)
    assert (sent.has_message, sent.has_inbound) == (True, False)
    assert (replied.has_inbound, replied.has_callback) == (True, False)


def _receive(connection: Connection, name: str, at_ms: int) -> None:
    row = {
        "operator_message_id": name, "partner_id": PARTNER.id, "app_id": APP.id, "recipient_id": 1,
        "kind": "text", "item_id": 1, "received_on_ms": at_ms,
    }  # fmt: skip
    connection.execute(insert(inbound_messages), row)


async def test_last_onboarding_step_needs_a_delivered_callback(database: Database) -> None:
    await seed(database)
    await database.write(_add_callback, 1, None)
    await database.write(_add_callback, 2, True)

    pending = await database.read(onboarding_progress, PARTNER.id, APP, [1])
    delivered = await database.read(onboarding_progress, PARTNER.id, APP, [1, 2])

    assert (pending.has_callback, delivered.has_callback) == (False, True)


def _add_callback(connection: Connection, subscription_id: int, delivered: bool | None) -> None:
    row = {
        "id": f"callback {subscription_id}", "partner_id": PARTNER.id, "app_id": APP.id,
        "subscription_id": subscription_id, "subject": "ann", "sequence": 1, "event": "sent",
        "body": b"{}", "created_on_ms": 1, "delivered": delivered,
    }  # fmt: skip
    connection.execute(insert(callbacks), row)


async def test_templates_with_problems_are_the_accounts_own_and_rejected_ones_only_recent(database: Database) -> None:
    rows = [
        ("paused", "PAUSED", "UNKNOWN", 1), ("low", "APPROVED", "LOW", 1), ("well", "APPROVED", "HIGH", 9),
        ("rejected", "REJECTED", "UNKNOWN", 9), ("long ago", "REJECTED", "UNKNOWN", 1),
    ]  # fmt: skip
    for number, (name, status, quality, at_ms) in enumerate(rows):
        status_now, content = TemplateStatus(status), draft(element_name=name)
        new_template = template(number + 1, content, status=status_now, quality=quality, modified_on_ms=at_ms)
        await database.write(record_template, new_template)

    problems = await database.read(templates_with_problems, PARTNER.id, APP.business_account_id, 5)
    others = await database.read(templates_with_problems, PARTNER.id + 1, APP.business_account_id, 5)

    assert sorted(row.element_name for row in problems) == ["low", "paused", "rejected"]
    assert others == []


async def test_last_webhook_is_the_operator_accounts_own(database: Database) -> None:
    def add_webhooks(connection: Connection) -> None:
        rows = [("a", "main", 1), ("b", "main", 2), ("c", "other", 3)]
        connection.execute(
            insert(inbound_webhooks),
            [
                {"id": name, "operator_account_id": account_id, "received_on_ms": at, "body": b""}
                for name, account_id, at in rows
            ],
        )

    await database.write(add_webhooks)

    assert await database.read(last_webhook_ms, "main") == 2
    assert await database.read(last_webhook_ms, "nobody") is None


async def test_empty_app_has_no_receivers_and_no_problems(database: Database) -> None:
    assert await database.read(receivers_of_app, PARTNER.id, APP.id) == []
    assert await database.read(templates_with_problems, PARTNER.id, APP.business_account_id, 0) == []
