"""Tables: how each lane is shared out, and what happens to an entry with a defect."""

from dataclasses import dataclass
from typing import Final
from zlib import crc32

from waypost.store.journal import Lane

SHARDS: Final = 256


@dataclass(frozen=True, slots=True)
class LanePlan:
    """How a lane is worked.

    Attributes:
        in_flight: how many entries one process works at once.
        share: how many of them one group may hold, so that a slow one holds up only itself.
    """

    in_flight: int
    share: int


# fmt: off
PLANS: Final = {  # Source: design, section 3 and promise 2 (`in_flight`, 64 a process)
    #                 in flight     share
    Lane.SUBMISSIONS: LanePlan(64,   48),
    Lane.ARRIVALS:    LanePlan(512, 512),  # work in the store only: nothing outside can be slow
    Lane.CALLBACKS:   LanePlan(256,  64),
    Lane.DOUBTS:      LanePlan(256, 256),
    Lane.MEDIA:       LanePlan(32,   16),  # what recipients have sent: large, and never urgent
}
DEFECT_DELAYS_S: Final = (1, 5, 30, 120)  # after the fifth defect an entry is set aside. Source: design, section 3
# fmt: on


def plans_with(in_flight: int) -> dict[Lane, LanePlan]:
    """The table with another bound on submissions; one source's share grows with it."""
    usual = PLANS[Lane.SUBMISSIONS]
    share = max(1, in_flight * usual.share // usual.in_flight)
    return {**PLANS, Lane.SUBMISSIONS: LanePlan(in_flight, share)}


GROUP_WINDOW: Final = 20_000
"""How many entries of one group are held in memory; the rest wait in the store."""


def shard_of(group: str) -> int:
    """Which shard a group belongs to. By group, so that its pacing lives in one process."""
    return crc32(group.encode()) % SHARDS
