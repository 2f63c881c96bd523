"""Writing accepted messages and everything that belongs to them, in one transaction."""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from waypost.simulator.phones.scripts import NO_PLAN, Plan
from waypost.simulator.store import Statement, run_statements
from waypost.simulator.tables.messages import MESSAGES, Message
from waypost.simulator.tables.phone_plans import ACTS, WAITING, Waiting, count_planned
from waypost.simulator.tables.updates import Update, add_updates


@dataclass(frozen=True)
class Taken:
    """One message to be written, and what belongs to it.

    Args:
        message: the message.
        updates: its statuses.
        notes: statements of the counts, and of its phone if that is new.
        waiting: set if its phone is offline.
        plan: the plan of the phone's script.
    """

    message: Message
    updates: Sequence[Update]
    notes: Sequence[Statement] = ()
    waiting: Waiting | None = None
    plan: Plan = NO_PLAN


def take_all(connection: sqlite3.Connection, taken: Sequence[Taken]) -> Sequence[None]:
    """Write messages and what belongs to them, within the caller's transaction."""
    MESSAGES.insert_all(connection, [write.message for write in taken])
    add_updates(connection, [update for write in taken for update in write.updates])
    chosen = Counter(step for write in taken for step in write.plan.chosen)
    run_statements(
        connection,
        [
            *(note for write in taken for note in write.notes),
            *(WAITING.insert(write.waiting) for write in taken if write.waiting is not None),
            *(ACTS.insert(act) for write in taken for act in write.plan.acts),
            *(count_planned(owner, step, count) for (owner, step), count in chosen.items()),
            *(uses for write in taken for uses in write.plan.uses),
        ],
    )
    return [None] * len(taken)
