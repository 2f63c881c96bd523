"""Writing accepted messages and everything that belongs to them, in one transaction."""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from waypost.simulator.phones.scripts import NO_PLAN, ScriptPlan
from waypost.simulator.store import Statement, run_statements
from waypost.simulator.tables.messages import MESSAGES, SimulatedMessage
from waypost.simulator.tables.phone_plans import PLANNED_ACTIONS, WAITING_MESSAGES, WaitingMessage, count_planned_step
from waypost.simulator.tables.updates import Update, add_updates


@dataclass(frozen=True)
class MessageWrite:
    """One message to be written, and what belongs to it.

    Args:
        message: the message.
        updates: its statuses.
        extra_statements: statements of the counts, and of its phone if that is new.
        waiting_message: set if its phone is offline.
        script_plan: the plan of the phone's script.
    """

    message: SimulatedMessage
    updates: Sequence[Update]
    extra_statements: Sequence[Statement] = ()
    waiting_message: WaitingMessage | None = None
    script_plan: ScriptPlan = NO_PLAN


def write_messages(connection: sqlite3.Connection, writes: Sequence[MessageWrite]) -> Sequence[None]:
    """Write messages and what belongs to them, within the caller's transaction."""
    MESSAGES.insert_all(connection, [write.message for write in writes])
    add_updates(connection, [update for write in writes for update in write.updates])
    chosen = Counter(step for write in writes for step in write.script_plan.counted_steps)
    run_statements(
        connection,
        [
            *(note for write in writes for note in write.extra_statements),
            *(WAITING_MESSAGES.insert(write.waiting_message) for write in writes if write.waiting_message is not None),
            *(PLANNED_ACTIONS.insert(act) for write in writes for act in write.script_plan.actions),
            *(count_planned_step(owner, step, count) for (owner, step), count in chosen.items()),
            *(uses for write in writes for uses in write.script_plan.use_statements),
        ],
    )
    return [None] * len(writes)
