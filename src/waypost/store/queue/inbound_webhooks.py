"""Webhook bodies as received, and the single items in them."""

import zlib
from collections import Counter
from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, delete, insert, select

from waypost.domain.event import REPETITION_MS, InboundWebhook, WebhookItem
from waypost.store.bulk_statements import BulkFilter, BulkInsert, BulkSelect, bulk_insert_new
from waypost.store.queue.job_subjects import JobState, JobSubject, QueueName, SubjectKind
from waypost.store.queue.jobs import NewJob, enqueue_jobs
from waypost.store.sql import upsert
from waypost.store.tables import inbound_messages, inbound_webhooks, queue_jobs, webhook_items
from waypost.store.write_through_cache import CachedTable, cache_new_rows


class WebhookItemRow(NamedTuple):
    """One status, message or template change of a webhook, as it is applied."""

    id: int
    item: bytes


CACHED_ITEMS: Final[CachedTable[int, WebhookItemRow]] = CachedTable("webhook_items", attrgetter("item"))
"""New items, while this process has them in memory."""

MIN_COMPRESSED_BYTES: Final = 1_024
"""A body of this size is compressed: it is a tenth of its size then, and a single status would save little."""

NO_RECIPIENT: Final = 0  # stands in for a recipient's id if a group was written to; ids begin with 1


class NewItem(NamedTuple):
    """An item of a webhook to be stored."""

    webhook: InboundWebhook
    item: WebhookItem
    # it is applied by a job, and not in the transaction that stores it; one that cannot be read is a dead letter
    # instead
    is_queued: bool


def record_webhooks(connection: Connection, received: Sequence[InboundWebhook]) -> list[int]:
    """Store bodies once, enqueue a job for each item that is new, and return how many were new.

    An item that cannot be read becomes a dead letter at once.
    """
    record_bodies(connection, received)
    new_items = [NewItem(webhook, item, True) for webhook in received for item in webhook.items]
    ids = record_items(connection, new_items)
    counts = Counter(new_item.webhook.id for new_item, item_id in zip(new_items, ids, strict=True) if item_id)
    return [counts[webhook.id] for webhook in received]


def record_bodies(connection: Connection, received: Sequence[InboundWebhook]) -> None:
    """Store the bodies of webhooks; a large one compressed, since the items in it are alike."""
    rows: list[tuple[str, str, int, bytes, bool]] = []
    for webhook in received:
        is_large = len(webhook.body) >= MIN_COMPRESSED_BYTES
        body = zlib.compress(webhook.body, 1) if is_large else webhook.body
        rows.append((webhook.id, webhook.operator_account_id, webhook.received_on_ms, body, is_large))
    _INSERT_BODIES.run(connection, rows)


def record_items(connection: Connection, new_items: Sequence[NewItem]) -> list[int | None]:
    """Store items, and enqueue jobs for those that are applied later.

    Returns:
        The id of each item that is new; None for one that is stored already, or comes before in the list.
    """
    if not new_items:
        return []
    first: dict[tuple[str, str], int] = {}
    for n, (webhook, item, _) in enumerate(new_items):
        key = _key_of_undated(connection, webhook, item) if item.is_undated else item.dedupe_key
        first.setdefault((webhook.operator_account_id, key), n)
    rows = _INSERT_NEW_ITEMS.fetch(
        connection,
        [
            (account_id, key, webhook.id, item.path, item.payload, webhook.received_on_ms)
            for (account_id, key), (webhook, item, _) in ((key, new_items[n]) for key, n in first.items())
        ],
    )
    ids: list[int | None] = [None] * len(new_items)
    for item_id, *key in rows:
        ids[first[tuple(key)]] = item_id
    added = [(item_id, new) for item_id, new in zip(ids, new_items, strict=True) if item_id is not None]
    queued = [(item_id, new) for item_id, new in added if new.is_queued and new.item.defect is None]
    unreadable = [(item_id, new) for item_id, new in added if new.item.defect is not None]
    if unreadable:
        _add_dead_letters(connection, unreadable)
    cache_new_rows(
        connection, CACHED_ITEMS, (WebhookItemRow(item_id, item.payload) for item_id, (_, item, _) in queued)
    )
    enqueue_jobs(
        connection,
        [
            NewJob(
                QueueName.WEBHOOKS,
                item.concurrency_group,
                item.ordering_key,
                JobSubject(SubjectKind.WEBHOOK_ITEM, str(item_id), webhook.operator_account_id),
                webhook.received_on_ms,
            )
            for item_id, (webhook, item, _) in queued
        ],
    )
    return ids


def _key_of_undated(connection: Connection, webhook: InboundWebhook, item: WebhookItem) -> str:
    """Return the key of the same item of a short time before, or one for another event."""
    columns = webhook_items.c
    equal = (columns.dedupe_key >= item.dedupe_key) & (columns.dedupe_key <= f"{item.dedupe_key} ~")
    query = select(columns.dedupe_key, columns.received_on_ms).where(
        columns.operator_account_id == webhook.operator_account_id, equal
    )
    newest = connection.execute(query.order_by(columns.received_on_ms.desc()).limit(1)).first()
    if newest is None:
        return item.dedupe_key
    if webhook.received_on_ms - newest.received_on_ms < REPETITION_MS:
        return newest.dedupe_key
    return f"{item.dedupe_key} {webhook.received_on_ms // REPETITION_MS}"


def _add_dead_letters(connection: Connection, unreadable: Sequence[tuple[int, NewItem]]) -> None:
    """Store the jobs of items that cannot be read as dead letters, which no worker claims."""
    rows = [
        {
            "queue": int(QueueName.WEBHOOKS),
            "concurrency_group": item.concurrency_group,
            "ordering_key": item.ordering_key,
            "ref": JobSubject(SubjectKind.WEBHOOK_ITEM, str(item_id), webhook.operator_account_id).ref,
            "due_ms": webhook.received_on_ms,
            "defects": 1,
            "state": int(JobState.DEAD_LETTER),
            "note": f"an unreadable part of a webhook ({item.path}): {item.defect}",
        }
        for item_id, (webhook, item, _) in unreadable
    ]
    connection.execute(insert(queue_jobs), rows)


def take_items(connection: Connection, ids: Collection[int]) -> dict[int, tuple[str, int]]:
    """Delete items that others replace; return the webhook in which each came, and when."""
    columns = (webhook_items.c.id, webhook_items.c.webhook_id, webhook_items.c.received_on_ms)
    rows = connection.execute(delete(webhook_items).where(webhook_items.c.id.in_(ids)).returning(*columns))
    return {row.id: (row.webhook_id, row.received_on_ms) for row in rows}


def busy_groups(connection: Connection, groups: Collection[str]) -> set[str]:
    """Return those of these groups of which an earlier item still has to be applied by its job."""
    return _BUSY_GROUPS.run(connection, groups)


def items_by_ids(connection: Connection, ids: set[int]) -> dict[int, WebhookItemRow]:
    """Return rows of items by id."""
    return {row.id: row for row in _ITEMS_BY_IDS.run(connection, ids)}


def record_inbound_messages(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Store which recipient sent which message; its content stays in the webhook item."""
    if rows:
        connection.execute(upsert(inbound_messages).on_conflict_do_nothing(), list(rows))


_INSERT_BODIES: Final = BulkInsert(
    inbound_webhooks, "id", "operator_account_id", "received_on_ms", "body", "compressed"
)
_INSERT_NEW_ITEMS: Final = bulk_insert_new(
    webhook_items,
    "operator_account_id",
    "dedupe_key",
    "webhook_id",
    "path",
    "item",
    "received_on_ms",
    returned=["id", "operator_account_id", "dedupe_key"],
)
_ITEMS_BY_IDS: Final = BulkSelect(webhook_items, WebhookItemRow, "id")
_BUSY_GROUPS: Final = BulkFilter(
    f"EXISTS (SELECT 1 FROM {queue_jobs.name} WHERE queue = {int(QueueName.WEBHOOKS)} "  # noqa: S608
    f"AND concurrency_group = member.value AND state < {int(JobState.DEAD_LETTER)})"
)
