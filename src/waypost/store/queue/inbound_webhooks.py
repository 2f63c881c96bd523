"""Webhook bodies as received, and the single items in them."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, insert

from waypost.domain.inbound_webhook import InboundWebhook
from waypost.store.queue.job_subjects import JobSubject, SubjectKind
from waypost.store.queue.jobs import NewJob, QueueName, enqueue_jobs
from waypost.store.sql import equals_any, upsert
from waypost.store.tables import inbound_messages, inbound_webhooks, webhook_items
from waypost.store.typed_rows import select_row
from waypost.store.write_through_cache import CachedTable, cache_new_rows


class WebhookItemRow(NamedTuple):
    """One status, message or template change of a webhook, as it is applied."""

    id: int
    item: bytes


CACHED_ITEMS: Final[CachedTable[int, WebhookItemRow]] = CachedTable("webhook_items", lambda row: len(row.item))
"""New items, while this process has them in memory."""

NO_RECIPIENT: Final = 0
"""Stands in for a recipient's id if a group was written to; ids begin with 1."""


def record_webhooks(connection: Connection, received: Sequence[InboundWebhook]) -> list[int]:
    """Store bodies once, enqueue a job for each item that is new, and return how many were new."""
    connection.execute(
        insert(inbound_webhooks),
        [
            {
                "id": webhook.id,
                "operator_account_id": webhook.operator_account_id,
                "received_on_ms": webhook.received_on_ms,
                "body": webhook.body,
            }
            for webhook in received
        ],
    )
    return [_record_items(connection, webhook) for webhook in received]


def _record_items(connection: Connection, webhook: InboundWebhook) -> int:
    if not webhook.items:
        return 0
    by_key = {item.dedupe_key: item for item in reversed(webhook.items)}
    new = connection.execute(
        _INSERT_NEW_ITEMS,
        [
            {
                "operator_account_id": webhook.operator_account_id,
                "dedupe_key": item.dedupe_key,
                "webhook_id": webhook.id,
                "path": item.path,
                "item": item.payload,
                "received_on_ms": webhook.received_on_ms,
            }
            for item in by_key.values()
        ],
    ).all()
    ids = {row.dedupe_key: row.id for row in new}
    cache_new_rows(
        connection,
        CACHED_ITEMS,
        ((item_id, WebhookItemRow(item_id, by_key[key].payload)) for key, item_id in ids.items()),
    )
    enqueue_jobs(
        connection,
        [
            NewJob(
                QueueName.WEBHOOKS,
                item.concurrency_group,
                item.ordering_key,
                JobSubject(SubjectKind.WEBHOOK_ITEM, str(ids[item.dedupe_key]), webhook.operator_account_id),
                webhook.received_on_ms,
            )
            for item in webhook.items
            if item.dedupe_key in ids and by_key[item.dedupe_key] is item
        ],
    )
    return len(ids)


def items_by_ids(connection: Connection, ids: set[int]) -> dict[int, WebhookItemRow]:
    """Return rows of items by id."""
    return {row.id: row for row in map(WebhookItemRow._make, connection.execute(_ITEMS_BY_IDS, {"ids": ids}))}


def record_inbound_messages(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Store which recipient sent which message; its content stays in the webhook item."""
    if rows:
        connection.execute(upsert(inbound_messages).on_conflict_do_nothing(), list(rows))


_INSERT_NEW_ITEMS: Final = (
    upsert(webhook_items)
    .on_conflict_do_nothing(index_elements=["operator_account_id", "dedupe_key"])
    .returning(webhook_items.c.id, webhook_items.c.dedupe_key, sort_by_parameter_order=False)
)
_ITEMS_BY_IDS: Final = select_row(webhook_items, WebhookItemRow).where(equals_any(webhook_items.c.id, "ids"))
