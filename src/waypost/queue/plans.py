"""Tables: how each lane is shared out, and what happens to an entry with a defect."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final
from zlib import crc32

from waypost.store.queue.jobs import Lane
from waypost.store.queue.leases import SHARDS


@dataclass(frozen=True, slots=True)
class LanePlan:
    """How a lane is worked.

    Attributes:
        in_flight: how many entries one process works at once.
        share: how many of them one group may hold, so that a slow one holds up only itself.
        ahead_ms: how far ahead of now an entry that was never tried may be due. What is further was
            written by a clock that ran ahead, and is due now. None where entries are meant to wait.
        rests_ms: how long a group rests that another process worked until just now.
    """

    in_flight: int
    share: int
    ahead_ms: int | None = 1_000
    rests_ms: int = 0


# fmt: off
PLANS: Final = {  # Source: decisions 0006, 0007
    #                 in flight     share   ahead ms  rests ms
    Lane.SUBMISSIONS: LanePlan(64,   48,    1_000,    1_000),  # the operator counts a source's messages by the second
    Lane.ARRIVALS:    LanePlan(512, 512,    1_000),  # work in the store only: nothing outside can be slow
    Lane.CALLBACKS:   LanePlan(256,  64,   61_000),  # `hold_events_s` is 60 at most
    Lane.DOUBTS:      LanePlan(256, 256,     None),
    Lane.MEDIA:       LanePlan(32,   16,    1_000),  # what recipients have sent: large, and never urgent
}
LANES_OF: Final[Mapping[str, tuple[Lane, ...]]] = {  # what a process with `--stages` works. Source: decision 0053
    "accept":    (),
    "dispatch":  (Lane.SUBMISSIONS, Lane.DOUBTS),
    "events":    (Lane.ARRIVALS, Lane.MEDIA),
    "callbacks": (Lane.CALLBACKS,),
}
DEFECT_DELAYS_S: Final = (1, 5, 30, 120)  # after the fifth defect an entry is set aside. Source: decision 0086
# fmt: on


def plans_with(in_flight: int) -> dict[Lane, LanePlan]:
    """The table with another bound on submissions; one source's share grows with it."""
    usual = PLANS[Lane.SUBMISSIONS]
    share = max(1, in_flight * usual.share // usual.in_flight)
    return {**PLANS, Lane.SUBMISSIONS: replace(usual, in_flight=in_flight, share=share)}


def lanes_of(stages: Collection[str]) -> tuple[Lane, ...]:
    """The lanes that a process with these stages works."""
    return tuple(lane for stage, lanes in LANES_OF.items() if stage in stages for lane in lanes)


def stage_of(lane: Lane) -> str:
    """The stage that works a lane."""
    return next(stage for stage, lanes in LANES_OF.items() if lane in lanes)


GROUP_WINDOW: Final = 20_000
"""How many entries of one group are held in memory; the rest wait in the store."""


def shard_of(group: str) -> int:
    """Which shard a group belongs to. By group, so that its pacing lives in one process."""
    return crc32(group.encode()) % SHARDS
