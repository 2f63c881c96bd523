"""Callbacks, their sequence numbers, and every attempt to deliver them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection, bindparam, insert, select, update
from sqlalchemy.dialects.sqlite import insert as insert_or_update

from waypost.domain.callback import Attempt
from waypost.store.prepared import Prepared
from waypost.store.tables import attempts, callbacks, sequences


def count_up(
    connection: Connection, wanted: Mapping[tuple[int, str], int]
) -> dict[tuple[int, str], int]:
    """Reserve sequence numbers.

    Args:
        connection: the writer's.
        wanted: how many for each (subscription, recipient).

    Returns:
        The last number reserved for each.
    """
    if not wanted:
        return {}
    rows = connection.execute(
        _COUNT_UP,
        [
            {"subscription_id": subscription_id, "about": about, "last": count}
            for (subscription_id, about), count in wanted.items()
        ],
    )
    return {(row.subscription_id, row.about): row.last for row in rows}


def add_callbacks(connection: Connection, rows: Sequence[dict[str, Any]]) -> None:
    """Keep rendered callbacks."""
    _ADD.run(connection, rows)


def callbacks_by_ids(connection: Connection, ids: set[str]) -> dict[str, Any]:
    """Rows by id."""
    return {row.id: row for row in connection.execute(_BY_ID, {"ids": list(ids)})}


@dataclass(frozen=True, slots=True)
class Tried:
    """One attempt of one callback.

    Attributes:
        ended: True when it was delivered, False when it is given up, None when it is tried again.
    """

    callback_id: str
    attempt: Attempt
    ended: bool | None


def record_attempts(connection: Connection, tries: Sequence[Tried]) -> None:
    """Keep attempts, and how callbacks ended."""
    _ATTEMPT.run(
        connection,
        [
            {
                "callback_id": one.callback_id,
                "at_ms": one.attempt.at_ms,
                "duration_ms": one.attempt.duration_ms,
                "status": one.attempt.status,
                "answer": one.attempt.answer[:4096],
                "error": one.attempt.error,
            }
            for one in tries
        ],
    )
    ended = [
        {
            "at_id": one.callback_id,
            "new_ended": one.attempt.at_ms + one.attempt.duration_ms,
            "new_delivered": one.ended,
        }
        for one in tries
        if one.ended is not None
    ]
    _END.run(connection, ended)


_BY_ID: Final = select(callbacks).where(callbacks.c.id.in_(bindparam("ids", expanding=True)))
_COUNT = insert_or_update(sequences)
_COUNT_UP: Final = _COUNT.on_conflict_do_update(
    index_elements=["subscription_id", "about"],
    set_={"last": sequences.c.last + _COUNT.excluded.last},
).returning(sequences.c.subscription_id, sequences.c.about, sequences.c.last)
_ADD: Final = Prepared(
    insert(callbacks), "id", "partner_id", "app_id", "subscription_id", "about", "sequence", "message_id",
    "news", "body", "created_on_ms",
)  # fmt: skip
_ATTEMPT: Final = Prepared(
    insert(attempts), "callback_id", "at_ms", "duration_ms", "status", "answer", "error"
)
_END: Final = Prepared(
    update(callbacks)
    .where(callbacks.c.id == bindparam("at_id"))
    .values(ended_on_ms=bindparam("new_ended"), delivered=bindparam("new_delivered"))
)
