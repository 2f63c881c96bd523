"""Webhook bodies as received, and the single items in them."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, insert

from waypost.domain.inbound_webhook import Arrival
from waypost.store.queue.job_subjects import JobSubject, SubjectKind
from waypost.store.queue.jobs import Lane, NewEntry, append_entries
from waypost.store.sql import insert_or, one_of
from waypost.store.tables import arrival_items, arrivals, inbound_messages
from waypost.store.typed_rows import select_row
from waypost.store.write_through_cache import FreshTable, are_fresh


class ItemRow(NamedTuple):
    """One status, message or template change of a webhook, as it is applied."""

    id: int
    item: bytes


FRESH: Final[FreshTable[int, ItemRow]] = FreshTable("arrival_items", lambda row: len(row.item))
"""New items, while this process still has them."""

NO_RECIPIENT: Final = 0
"""In the place of a recipient's id where a group was written to; ids begin with 1."""


def record_arrivals(connection: Connection, received: Sequence[Arrival]) -> list[int]:
    """Keep bodies once, and append an entry for each item that is new; give how many were."""
    connection.execute(
        insert(arrivals),
        [
            {
                "id": arrival.id,
                "operator_account_id": arrival.operator_account_id,
                "received_on_ms": arrival.received_on_ms,
                "body": arrival.body,
            }
            for arrival in received
        ],
    )
    return [_record_items(connection, arrival) for arrival in received]


def _record_items(connection: Connection, arrival: Arrival) -> int:
    if not arrival.items:
        return 0
    by_key = {item.dedupe_key: item for item in reversed(arrival.items)}
    new = connection.execute(
        _ADD_NEW_ITEMS,
        [
            {
                "operator_account_id": arrival.operator_account_id,
                "dedupe_key": item.dedupe_key,
                "arrival_id": arrival.id,
                "place": item.place,
                "item": item.item,
                "received_on_ms": arrival.received_on_ms,
            }
            for item in by_key.values()
        ],
    ).all()
    ids = {row.dedupe_key: row.id for row in new}
    are_fresh(connection, FRESH, ((one, ItemRow(one, by_key[key].item)) for key, one in ids.items()))
    append_entries(
        connection,
        [
            NewEntry(
                Lane.ARRIVALS,
                item.group,
                item.order_key,
                JobSubject(SubjectKind.WEBHOOK_ITEM, str(ids[item.dedupe_key]), arrival.operator_account_id),
                arrival.received_on_ms,
            )
            for item in arrival.items
            if item.dedupe_key in ids and by_key[item.dedupe_key] is item
        ],
    )
    return len(ids)


def items_by_ids(connection: Connection, ids: set[int]) -> dict[int, ItemRow]:
    """Rows of items by id."""
    return {row.id: row for row in map(ItemRow._make, connection.execute(_BY_ID, {"ids": ids}))}


def record_inbound(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Keep which recipient wrote which message; the words stay in the arrival."""
    if rows:
        connection.execute(insert_or(inbound_messages).on_conflict_do_nothing(), list(rows))


_ADD_NEW_ITEMS: Final = (
    insert_or(arrival_items)
    .on_conflict_do_nothing(index_elements=["operator_account_id", "dedupe_key"])
    .returning(arrival_items.c.id, arrival_items.c.dedupe_key, sort_by_parameter_order=False)
)
_BY_ID: Final = select_row(arrival_items, ItemRow).where(one_of(arrival_items.c.id, "ids"))
