"""What is written of a message that is taken: all of it together, or nothing."""

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
    """One message to be written, and what goes with it.

    Args:
        message: itself.
        updates: its statuses.
        notes: what it counts for, and its phone, if that is new.
        waiting: set when its phone is offline.
        plan: what the phone's script says.
    """

    message: Message
    updates: Sequence[Update]
    notes: Sequence[Statement] = ()
    waiting: Waiting | None = None
    plan: Plan = NO_PLAN


def take_all(connection: sqlite3.Connection, taken: Sequence[Taken]) -> Sequence[None]:
    """Write messages and all that goes with them, within the caller's transaction."""
    MESSAGES.insert_all(connection, [one.message for one in taken])
    add_updates(connection, [update for one in taken for update in one.updates])
    chosen = Counter(step for one in taken for step in one.plan.chosen)
    run_statements(
        connection,
        [
            *(note for one in taken for note in one.notes),
            *(WAITING.insert(one.waiting) for one in taken if one.waiting is not None),
            *(ACTS.insert(act) for one in taken for act in one.plan.acts),
            *(count_planned(owner, step, count) for (owner, step), count in chosen.items()),
            *(uses for one in taken for uses in one.plan.uses),
        ],
    )
    return [None] * len(taken)
