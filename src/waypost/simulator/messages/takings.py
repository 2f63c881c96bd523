"""What is written of a message that is taken: all of it together, or nothing."""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from waypost.simulator.messages.receptions import Reception
from waypost.simulator.messages.statuses import Sent
from waypost.simulator.phones.phone import Phone
from waypost.simulator.phones.phones import ADD_PHONE, row_of
from waypost.simulator.phones.scripts import ADD_ACT, COUNT_PLANNED, KEEP_USES, NO_PLAN, Plan
from waypost.simulator.store import Row, Statement
from waypost.simulator.webhooks.outbox import ADD_UPDATE

ADD_MESSAGE: Final = "INSERT INTO messages VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)"
ADD_WAITING: Final = "INSERT OR REPLACE INTO waiting VALUES (?,?,?,?,?,?,?,?,?)"


@dataclass(frozen=True)
class Taken:
    """One message to be written, and what goes with it.

    Args:
        message: for `ADD_MESSAGE`.
        updates: its statuses, for `ADD_UPDATE`.
        new_phone: its phone, if that is new.
        notes: what it counts for.
        waiting: for `ADD_WAITING`, when its phone is offline.
        plan: what the phone's script says.
    """

    message: Row
    updates: list[Row]
    new_phone: Phone | None
    notes: Sequence[Statement] = ()
    waiting: Row | None = None
    plan: Plan = NO_PLAN


def waiting_row(sent: Sent, reception: Reception, position: int, updates: list[Row]) -> Row | None:
    """The row of a message that waits for its phone; what is told then costs what `sent` said."""
    if reception.until_ms is None:
        return None
    rest = updates[0][6] if updates else ""
    return (
        sent.handset.phone, position, sent.wamid, sent.waba_id, sent.phone_number_id,
        reception.until_ms, 0, reception.read_after_ms, rest,
    )  # fmt: skip


def take_all(connection: sqlite3.Connection, taken: Sequence[Taken]) -> Sequence[None]:
    """Write messages and all that goes with them, within the caller's transaction."""
    connection.executemany(ADD_MESSAGE, [one.message for one in taken])
    connection.executemany(ADD_UPDATE, [row for one in taken for row in one.updates])
    new_phones = [row_of(one.new_phone) for one in taken if one.new_phone is not None]
    if new_phones:
        connection.executemany(ADD_PHONE, new_phones)
    for statement, values in (note for one in taken for note in one.notes):
        connection.execute(statement, values)
    waiting = [one.waiting for one in taken if one.waiting is not None]
    if waiting:
        connection.executemany(ADD_WAITING, waiting)
    chosen = Counter(step for one in taken for step in one.plan.chosen)
    if chosen:
        connection.executemany(ADD_ACT, [row for one in taken for row in one.plan.acts])
        connection.executemany(COUNT_PLANNED, [(n, *step) for step, n in chosen.items()])
        connection.executemany(KEEP_USES, [row for one in taken for row in one.plan.uses])
    return [None] * len(taken)
