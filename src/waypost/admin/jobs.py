"""The admin API's operations on what waits: lanes, entries that were set aside, and messages."""

from typing import Any

from waypost.admin.context import Office
from waypost.domain.errors import Reason, Refused, unknown
from waypost.store.console.trace import message_counts, message_trace
from waypost.store.queue.jobs import Lane, depth_of, drop_set_aside, return_set_aside, set_aside_entries


async def list_lanes(office: Office) -> Any:
    """Return how many entries of each lane are in which state."""
    read = office.database.read
    depths = {lane: await read(depth_of, lane) for lane in Lane}
    return {
        lane.name.lower(): {state.name.lower(): count for state, count in depth.items()}
        for lane, depth in depths.items()
    }


async def list_entries(office: Office) -> Any:
    """Return the entries that wait for a person."""
    rows = await office.database.read(set_aside_entries)
    return {
        "set_aside": [
            {
                "position": row.position,
                "lane": Lane(row.lane).name.lower(),
                "ref": row.ref,
                "defects": row.defects,
                "note": row.note,
            }
            for row in rows
        ]
    }


async def release_entry(office: Office, position: int) -> Any:
    """Put an entry back, to be worked again."""
    if not await office.database.write(return_set_aside, position, office.clock.now_ms()):
        raise _unknown_entry()
    return {"released": position}


async def drop_entry(office: Office, position: int) -> Any:
    """Delete an entry; what it was about is not done."""
    if not await office.database.write(drop_set_aside, position):
        raise _unknown_entry()
    return {"dropped": position}


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
