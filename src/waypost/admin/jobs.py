"""The admin API's operations on what waits: queues, entries that were set aside, and messages."""

from typing import Any

from waypost.admin.context import Office
from waypost.domain.errors import Reason, Refused, unknown
from waypost.store.console.trace import message_counts, message_trace
from waypost.store.queue.jobs import (
    QueueName,
    count_jobs_by_state,
    read_dead_letters,
    remove_dead_letter,
    reopen_dead_letter,
)


async def list_queues(office: Office) -> Any:
    """Return how many entries of each queue are in which state."""
    read = office.database.read
    depths = {queue_name: await read(count_jobs_by_state, queue_name) for queue_name in QueueName}
    return {
        queue_name.name.lower(): {state.name.lower(): count for state, count in depth.items()}
        for queue_name, depth in depths.items()
    }


async def list_dead_letters(office: Office) -> Any:
    """Return the entries that wait for a person."""
    rows = await office.database.read(read_dead_letters)
    return {
        "dead_letters": [
            {
                "position": row.position,
                "queue": QueueName(row.queue).name.lower(),
                "ref": row.ref,
                "defects": row.defects,
                "note": row.note,
            }
            for row in rows
        ]
    }


async def retry_dead_letter(office: Office, position: int) -> Any:
    """Put an entry back, to be worked again."""
    if not await office.database.write(reopen_dead_letter, position, office.clock.now_ms()):
        raise _unknown_entry()
    return {"retried": position}


async def delete_dead_letter(office: Office, position: int) -> Any:
    """Delete an entry; what it was about is not done."""
    if not await office.database.write(remove_dead_letter, position):
        raise _unknown_entry()
    return {"deleted": position}


async def count_messages(office: Office) -> Any:
    """Return how many messages are in which state."""
    return {"messages": await office.database.read(message_counts)}


async def show_message(office: Office, message_id: str) -> Any:
    """Return one message's states, callbacks and attempts, without its text."""
    trace = await office.database.read(message_trace, message_id)
    if trace is None:
        raise unknown("message", "message_id")
    return trace


def _unknown_entry() -> Refused:
    return Refused(Reason.NOT_FOUND, "There is no such entry set aside.", field="position")
