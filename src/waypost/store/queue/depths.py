"""How much waits in the lanes, asked so that the answer costs the same however much it is."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, bindparam, case, func, select

from waypost.store.queue.jobs import IS_SET_ASIDE, EntryState, Lane
from waypost.store.tables import journal, subscriptions

MOST: Final = 20_000
"""How many entries of a lane are counted; of a longer one it is known that it is longer."""


@dataclass(frozen=True, slots=True)
class Depth:
    """One lane.

    Attributes:
        entries: by state, of those that were counted.
        oldest_due_ms: of what may be worked; None where there is nothing.
        is_longer: there are more entries than were counted.
    """

    entries: Mapping[EntryState, int]
    oldest_due_ms: int | None
    is_longer: bool


@dataclass(frozen=True, slots=True)
class Depths:
    """Everything that waits.

    Attributes:
        paused: subscriptions, by who paused them.
    """

    lanes: Mapping[Lane, Depth]
    paused: Mapping[str, int]


def depths(connection: Connection) -> Depths:
    """Count what waits, reading at most `MOST` entries of each lane."""
    found = connection.execute(_PAUSED, {"most": MOST}).one()
    paused = {"service": found.by_service, "partner": found.by_partner}
    return Depths({lane: _depth(connection, lane) for lane in Lane}, paused)


def _depth(connection: Connection, lane: Lane) -> Depth:
    rows = connection.execute(_OF_LANE, {"lane": int(lane), "most": MOST}).all()
    counted = {EntryState(row.state): row.entries for row in rows}
    dues = [row.oldest_due_ms for row in rows if row.state < EntryState.SET_ASIDE]
    # What is set aside has a small index of its own, so that none is missed behind a long lane.
    aside = connection.execute(_ASIDE, {"lane": int(lane), "most": MOST}).all()
    return Depth(
        {state: counted.get(state, 0) for state in _WORKED}
        | dict.fromkeys(_ASIDES, 0)
        | {EntryState(row.state): row.entries for row in aside},
        min(dues, default=None),
        sum(counted.values()) >= MOST,
    )


_WORKED: Final = (EntryState.OPEN, EntryState.IN_HAND)
_ASIDES: Final = (EntryState.SET_ASIDE, EntryState.SET_ASIDE_IN_HAND)
_counted = (
    select(journal.c.state, journal.c.due_ms)
    .where(journal.c.lane == bindparam("lane"))
    .order_by(journal.c.grp, journal.c.position)
    .limit(bindparam("most"))
    .subquery()
)
_OF_LANE: Final = select(
    _counted.c.state, func.count().label("entries"), func.min(_counted.c.due_ms).label("oldest_due_ms")
).group_by(_counted.c.state)

_set_aside = (
    select(journal.c.state).where(journal.c.lane == bindparam("lane"), IS_SET_ASIDE).limit(bindparam("most")).subquery()
)
_ASIDE: Final = select(_set_aside.c.state, func.count().label("entries")).group_by(_set_aside.c.state)

_looked_at = select(subscriptions.c.active, subscriptions.c.paused_on_ms).limit(bindparam("most")).subquery()
_PAUSED: Final = select(
    func.count(_looked_at.c.paused_on_ms).label("by_service"),
    func.count(case((_looked_at.c.active.is_(False), 1))).label("by_partner"),
)
