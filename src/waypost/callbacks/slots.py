"""Assigns the slots in flight to receivers: the table of shares, and the queue for slow receivers.

A slot is what a callback in flight takes. A slow or dead receiver holds few of them, all slow ones
together hold half, and a fast receiver may have many only while many are free.
"""

from collections.abc import Callable
from typing import Final

from waypost.base.clock import Clock
from waypost.callbacks.receivers import Address
from waypost.queue.concurrency_groups import NotBefore
from waypost.queue.job import Job
from waypost.store.callbacks.subscriptions import live_group, replay_group, subscription_in

# fmt: off
SLOW_SHARE: Final = 8      # slots of a slow receiver. Source: decision 0042; the queue has 256, a receiver at most 64
SLOW_POOL: Final = 128     # slots of all slow receivers together
CROWDED: Final = 96        # with so many used by fast receivers, one that holds CROWDED_SHARE gets no more
CROWDED_SHARE: Final = 8
REPLAY_SHARE: Final = 8    # slots of a receiver's replays, so that they delay no live callback
# fmt: on

ASK_AGAIN_MS: Final = 1_000
"""A group that waits for a slot is offered one when it is free; this is the safety net."""


class Places:
    """The slots in flight of one process.

    Args:
        clock: its `now_ms` decides what is due.
        unhold: lets a group be claimed from at once.
    """

    def __init__(self, clock: Clock, unhold: Callable[[str], None]) -> None:
        self._clock = clock
        self._unhold = unhold
        self.addresses: dict[int, Address] = {}
        self._working: dict[int, Address] = {}
        self._busy: dict[int, Address] = {}  # the same, each once, by identity
        self._queue: dict[str, None] = {}  # groups that wait for one of the slow slots, in order
        self._called: dict[str, int] = {}  # and those that may take one now, with the time of the offer
        self._crowded: set[str] = set()
        self.is_travelling = False
        """The clock is being moved by hand: receivers that fail are tried less often."""

    @property
    def taken(self) -> int:
        """Number of slots in use."""
        return len(self._working)

    def ask(self, job: Job, now_ms: int, in_flight: int) -> NotBefore | None:
        """Take a slot for a job and return None, or return how long its group waits."""
        del in_flight  # of its group; a receiver has two groups
        subscription_id = subscription_in(job.concurrency_group)
        receiver = self.addresses.get(subscription_id)
        if receiver is None:
            receiver = self.addresses[subscription_id] = Address()
        until_ms = receiver.held_until_ms(now_ms, is_travelling=self.is_travelling)
        if until_ms is None and not self._has_room(receiver, job):
            until_ms = now_ms + ASK_AGAIN_MS
        if until_ms is not None:
            return NotBefore(until_ms, whole_group=True)
        receiver.let_through(job.position, now_ms)
        receiver.began_ms[job.position] = self._clock.real_ms()
        self._working[job.position] = self._busy[id(receiver)] = receiver
        if job.is_replay:
            receiver.replays.add(job.position)
        return None

    def free(self, job: Job) -> None:
        """Release a job's slot, and offer it to those that wait for one."""
        receiver = self._working.pop(job.position, None)
        if receiver is None:
            return
        receiver.began_ms.pop(job.position, None)
        if not receiver.began_ms:
            self._busy.pop(id(receiver), None)
        receiver.replays.discard(job.position)
        if receiver.probe == job.position:
            receiver.probe = None
        subscription_id = subscription_in(job.concurrency_group)
        for group in (live_group(subscription_id), replay_group(subscription_id)):
            if group not in self._queue:
                self._unhold(group)
        if self._crowded and not self._is_crowded(self._clock.real_ms()):
            for group in self._crowded:
                self._unhold(group)
            self._crowded.clear()
        self._call_next()

    def _has_room(self, address: Address, job: Job) -> bool:
        group = job.concurrency_group
        if job.is_replay and len(address.replays) >= REPLAY_SHARE:
            return False
        real_ms = self._clock.real_ms()
        own = len(address.began_ms)
        if address.is_slow(real_ms):
            return own < SLOW_SHARE and self._has_slow_room(group, real_ms)
        self._queue.pop(group, None)
        self._called.pop(group, None)
        if own >= CROWDED_SHARE and self._is_crowded(real_ms):
            self._crowded.add(group)
            return False
        return True

    def _has_slow_room(self, group: str, real_ms: int) -> bool:
        """Take the slow slot that is offered to a group, or that is free while no group has waited longer."""
        if self._called.pop(group, None) is not None:
            return True
        if not self._queue and self._slow_left(real_ms) > 0:
            return True
        self._queue.setdefault(group)
        self._call_next()
        return self._called.pop(group, None) is not None

    def _call_next(self) -> None:
        real_ms = self._clock.real_ms()
        while self._queue and self._slow_left(real_ms) > 0:
            group = next(iter(self._queue))
            del self._queue[group]
            self._called[group] = real_ms
            self._unhold(group)

    def _slow_left(self, real_ms: int) -> int:
        """Return how many of the slow slots are free; one that was offered and not taken in time is free again."""
        for group in [name for name, offered_ms in self._called.items() if real_ms - offered_ms >= ASK_AGAIN_MS]:
            del self._called[group]
        return SLOW_POOL - self._slow_taken(real_ms) - len(self._called)

    def _is_crowded(self, real_ms: int) -> bool:
        return self.taken >= CROWDED and self.taken - self._slow_taken(real_ms) >= CROWDED

    def _slow_taken(self, real_ms: int) -> int:
        return sum(len(receiver.began_ms) for receiver in self._busy.values() if receiver.is_slow(real_ms))
