"""Assigns the slots in flight to receivers: the table of shares, and the queue for slow receivers.

A slot is what a callback in flight takes. A slow or dead receiver holds few of them, all slow ones
together hold half, and a fast receiver may have many only while many are free.
"""

from collections.abc import Callable
from typing import Final

from waypost.base.clock import Clock
from waypost.callbacks.receivers import CallbackReceiver
from waypost.domain.wait_reasons import WaitReason
from waypost.queue.job import Job, NotBefore
from waypost.store.queue.jobs import group_subscription_id, live_group, replay_group

# Source: decision 0042; the queue has 256 slots, a receiver at most 64
MAX_SLOTS_PER_SLOW_RECEIVER: Final = 8
MAX_SLOW_SLOTS: Final = 128  # of all slow receivers together
CONGESTION_THRESHOLD: Final = 96  # with so many used by fast receivers, one that has this many gets no more:
MAX_SLOTS_WHEN_CONGESTED: Final = 8
REPLAY_SHARE: Final = 8  # slots of a receiver's replays, so that they delay no live callback

SLOT_RETRY_MS: Final = 1_000
"""A group that waits for a slot is offered one when it is free; this is the safety net."""


class ConcurrencySlots:
    """The slots in flight of one process.

    Args:
        clock: its `now_ms` decides what is due.
        clear_not_before: lets a group be claimed from at once.
    """

    def __init__(self, clock: Clock, clear_not_before: Callable[[str], None]) -> None:
        self._clock = clock
        self._clear_not_before = clear_not_before
        self.receivers: dict[int, CallbackReceiver] = {}
        self._receivers_by_position: dict[int, CallbackReceiver] = {}
        self._active_receivers: dict[int, CallbackReceiver] = {}  # the same, each once, by identity
        self._slow_queue: dict[str, None] = {}  # groups that wait for one of the slow slots, in order
        self._offered_ms: dict[str, int] = {}  # and those that may take one now, with the time of the offer
        self._crowded_groups: set[str] = set()
        self.is_travelling = False
        """The clock is being advanced: receivers that fail are tried less often."""

    @property
    def slots_in_use(self) -> int:
        """Number of slots in use."""
        return len(self._receivers_by_position)

    def acquire(self, job: Job, now_ms: int, in_flight: int) -> NotBefore | None:
        """Take a slot for a job and return None, or return how long its group waits."""
        del in_flight  # of its group; a receiver has two groups
        subscription_id = group_subscription_id(job.concurrency_group)
        receiver = self.receivers.get(subscription_id)
        if receiver is None:
            receiver = self.receivers[subscription_id] = CallbackReceiver()
        if job.was_in_flight:
            return None  # nothing is sent: its attempt was cut short, and is only counted
        until_ms = receiver.blocked_until_ms(now_ms, is_travelling=self.is_travelling)
        reason = receiver.wait_reason
        real_ms = self._clock.real_ms()
        if until_ms is None and not self._may_start(receiver, job, real_ms):
            until_ms, reason = now_ms + SLOT_RETRY_MS, WaitReason.SLOTS
        if until_ms is not None:
            receiver.has_waiting_group = True
            return NotBefore(until_ms, reason, whole_group=True)
        receiver.admit(job.position, now_ms)
        receiver.started_ms[job.position] = real_ms
        self._receivers_by_position[job.position] = self._active_receivers[id(receiver)] = receiver
        if job.is_replay:
            receiver.replays.add(job.position)
        return None

    def release(self, job: Job) -> None:
        """Release a job's slot, and offer it to those that wait for one."""
        receiver = self._receivers_by_position.pop(job.position, None)
        if receiver is None:
            return
        receiver.started_ms.pop(job.position, None)
        if not receiver.started_ms:
            self._active_receivers.pop(id(receiver), None)
        receiver.replays.discard(job.position)
        if receiver.probe_position == job.position:
            receiver.probe_position = None
        if receiver.has_waiting_group:
            subscription_id = group_subscription_id(job.concurrency_group)
            groups = (live_group(subscription_id), replay_group(subscription_id))
            receiver.has_waiting_group = any(group in self._slow_queue for group in groups)
            for group in groups:
                if group not in self._slow_queue:
                    self._clear_not_before(group)
        if self._crowded_groups and not self._is_congested(self._clock.real_ms()):
            for group in self._crowded_groups:
                self._clear_not_before(group)
            self._crowded_groups.clear()
        if self._slow_queue:
            self._offer_slow_slots()

    def _may_start(self, receiver: CallbackReceiver, job: Job, real_ms: int) -> bool:
        group = job.concurrency_group
        if job.is_replay and len(receiver.replays) >= REPLAY_SHARE:
            return False
        own = len(receiver.started_ms)
        if receiver.is_slow(real_ms):
            return own < MAX_SLOTS_PER_SLOW_RECEIVER and self._take_slow_slot(group, real_ms)
        self._slow_queue.pop(group, None)
        self._offered_ms.pop(group, None)
        if own >= MAX_SLOTS_WHEN_CONGESTED and self._is_congested(real_ms):
            self._crowded_groups.add(group)
            return False
        return True

    def _take_slow_slot(self, group: str, real_ms: int) -> bool:
        """Take the slow slot that is offered to a group, or that is free while no group has waited longer."""
        if self._offered_ms.pop(group, None) is not None:
            return True
        if not self._slow_queue and self._count_free_slow(real_ms) > 0:
            return True
        self._slow_queue.setdefault(group)
        self._offer_slow_slots()
        return self._offered_ms.pop(group, None) is not None

    def _offer_slow_slots(self) -> None:
        real_ms = self._clock.real_ms()
        while self._slow_queue and self._count_free_slow(real_ms) > 0:
            group = next(iter(self._slow_queue))
            del self._slow_queue[group]
            self._offered_ms[group] = real_ms
            self._clear_not_before(group)

    def _count_free_slow(self, real_ms: int) -> int:
        """Return how many of the slow slots are free; one that was offered and not taken in time is free again."""
        for group in [name for name, offered_ms in self._offered_ms.items() if real_ms - offered_ms >= SLOT_RETRY_MS]:
            del self._offered_ms[group]
        return MAX_SLOW_SLOTS - self._count_used_slow(real_ms) - len(self._offered_ms)

    def _is_congested(self, real_ms: int) -> bool:
        return (
            self.slots_in_use >= CONGESTION_THRESHOLD
            and self.slots_in_use - self._count_used_slow(real_ms) >= CONGESTION_THRESHOLD
        )

    def _count_used_slow(self, real_ms: int) -> int:
        return sum(
            len(receiver.started_ms) for receiver in self._active_receivers.values() if receiver.is_slow(real_ms)
        )
