"""What work leaves behind that has ended: marks on disk, slots and marks in memory, tasks, connections.

Written from "Memory and tables return to their size" and "their jobs are marked in flight just before they are sent".
"""

import asyncio
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, Final

from simulation.observed import Exchange, Observed
from waypost.assembly.service import Waypost

IN_FLIGHT: Final = 1
"""The state of such a job in the store."""
CALLBACK_WITHIN_S: Final = 15
"""A callback is given up after 10 s."""
SEND_WITHIN_S: Final = 35
"""A message is uncertain after 30 s."""


def find_stale_marks(observed: Observed, ids: Iterable[tuple[str, int]]) -> Iterable[str]:
    """Yield what is marked in flight on disk, and was at an earlier look, although its last request has ended long ago.

    It may be marked for another request, which has not arrived yet.

    Args:
        ids: of open messages and callbacks, with their states.
    """
    marked = [key for key, state in ids if state == IN_FLIGHT]
    if not marked:
        observed.marks = {}
        return
    now_s = asyncio.get_running_loop().time()
    restarted_s = max((ended_s for _, ended_s in observed.interruptions), default=0)
    last = {key: one for one in observed.exchanges if (key := subject_of(one))}
    seen = [(key, last[key].began_s) for key in marked if key in last]
    observed.marks = {one: observed.marks.get(one, now_s) for one in seen}
    for (key, began_s), since_s in observed.marks.items():
        within_s = SEND_WITHIN_S if last[key].site == "operator" else CALLBACK_WITHIN_S
        if now_s > max(since_s, restarted_s) + within_s:
            yield f"{key} is marked in flight, and its last request came at {began_s:.1f} s"


def subject_of(one: Exchange) -> str:
    """Return the id of a callback, or of the message that is sent; empty for other requests."""
    if one.site == "operator" and one.path.endswith("/messages") and one.is_whole:
        return str(json.loads(one.body).get("biz_opaque_callback_data", "")).split(" ")[0]
    return one.headers.get("waypost-callback-id", "")


def find_leftovers(services: Sequence[Waypost]) -> Iterable[str]:
    """Yield what processes hold for work that has ended, when no work is left."""
    for service in services:
        callbacks: Any = service._callbacks
        dispatch: Any = service._dispatch
        held = {
            "slots of receivers": callbacks.admission.slots.held,
            "slots of operators": dispatch._admission.slots.held,
            "slots of operator accounts": [
                position for source in dispatch._admission._sources.values() for position in source.destination.slots
            ],
            "callbacks that are to be marked in flight": callbacks._marks._unmarked,
            "callbacks that are being marked in flight": callbacks._marks._marking,
            "circuits with a probe": [
                number
                for number, one in callbacks.admission.receivers.items()
                if one.circuit.probe_position is not None
            ],
        }
        for name, entries in held.items():
            if entries:
                yield f"at the end {len(entries)} {name} are left"


def count_tasks() -> Counter[str]:
    """Return how many tasks run each coroutine, but those of a process that was killed."""
    loop: Any = asyncio.get_running_loop()
    killed = set[Any](loop._crashed_tasks)
    return Counter(getattr(task.get_coro(), "__qualname__", "?") for task in asyncio.all_tasks() if task not in killed)


def find_running(tasks_before: Counter[str], transports: Iterable[Any], in_flight: Iterable[str]) -> Iterable[str]:
    """Yield what still runs when no work is left.

    Args:
        tasks_before: before the first message.
        transports: all ends of connections.
        in_flight: what the processes say of themselves.
    """
    for text in in_flight:
        yield f"at the end {text} is in flight"
    for name, count in (count_tasks() - tasks_before).items():
        yield f"{count} more of the task {name} at the end than before"
    if still_open := sum(not transport.is_closing() for transport in transports):
        yield f"{still_open} ends of connections are open although nothing happens"
