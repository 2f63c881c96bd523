"""Tables: the limits of each queue, and the retry delays of a job with a defect."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Final
from zlib import crc32

from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.leases import SHARD_COUNT


@dataclass(frozen=True, slots=True)
class QueuePlan:
    """The limits of one queue."""

    in_flight: int  # how many jobs one process works at once
    share: int  # how many of them one group may hold, so that a slow group delays only itself
    # how far ahead of now a job that was never tried may be due. A later due time was written by a clock that ran
    # ahead, and counts as now. None where jobs are meant to wait.
    ahead_ms: int | None = 1_000
    cooldown_ms: int = 0  # how long a group waits that another process worked until just now


QUEUE_PLANS: Final = {  # Source: decisions 0006, 0007
    # in flight, share, ahead ms, cooldown ms
    QueueName.OUTBOUND: QueuePlan(64, 48, 1_000, 1_000),  # the operator counts a source's messages by the second
    QueueName.WEBHOOKS: QueuePlan(512, 512, 1_000),  # work in the store only: nothing outside can be slow
    QueueName.CALLBACKS: QueuePlan(256, 64, 61_000),  # `hold_events_s` is 60 at most
    QueueName.UNCONFIRMED: QueuePlan(256, 256, None),
    QueueName.MEDIA: QueuePlan(32, 16, 1_000),  # inbound media: large, and never urgent
}
QUEUES_OF_STAGE: Final[
    Mapping[str, tuple[QueueName, ...]]
] = {  # the queues that a process with `--stages` works. Source: decision 0053
    "api": (),
    "dispatch": (QueueName.OUTBOUND, QueueName.UNCONFIRMED),
    "events": (QueueName.WEBHOOKS, QueueName.MEDIA),
    "callbacks": (QueueName.CALLBACKS,),
}
DEFECT_DELAYS_S: Final = (1, 5, 30, 120)  # after the fifth defect a job becomes a dead letter. Source: decision 0086


def make_queue_plans(in_flight: int) -> dict[QueueName, QueuePlan]:
    """Return the table with another limit for the outbound queue; the share of one source changes with it."""
    usual = QUEUE_PLANS[QueueName.OUTBOUND]
    share = max(1, in_flight * usual.share // usual.in_flight)
    return {**QUEUE_PLANS, QueueName.OUTBOUND: replace(usual, in_flight=in_flight, share=share)}


def queues_of_stages(stages: Collection[str]) -> tuple[QueueName, ...]:
    """Return the queues that a process with these stages works."""
    return tuple(
        queue_name for stage, queue_names in QUEUES_OF_STAGE.items() if stage in stages for queue_name in queue_names
    )


def stage_of_queue(queue_name: QueueName) -> str:
    """Return the stage that works a queue."""
    return next(stage for stage, queue_names in QUEUES_OF_STAGE.items() if queue_name in queue_names)


GROUP_WINDOW: Final = 20_000
"""Maximum number of jobs of one group in memory; the rest wait in the store."""


def shard_of(group: str) -> int:
    """Return the shard of a group. The group decides, so that its pacing lives in one process."""
    return crc32(group.encode()) % SHARD_COUNT
