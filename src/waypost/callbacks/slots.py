"""Who may have one of the places in flight: the table of shares, and the queue for those of slow addresses.

A place is what a callback on its way takes. A slow or dead address holds few of them, all slow ones
together hold half, and an address that is quick may have many only while many are free.
"""

from collections.abc import Callable
from typing import Final

from waypost.base.clock import Clock
from waypost.callbacks.receivers import Address
from waypost.queue.concurrency_groups import NotBefore
from waypost.queue.job import Job
from waypost.store.callbacks.subscriptions import live_group, replay_group, subscription_in

# fmt: off
SLOW_SHARE: Final = 8      # places of a slow address. Source: decision 0042; the queue has 256, an address at most 64
SLOW_POOL: Final = 128     # places of all slow addresses together
CROWDED: Final = 96        # with so many taken by quick ones, one that holds CROWDED_SHARE gets no more
CROWDED_SHARE: Final = 8
REPLAY_SHARE: Final = 8    # places of an address's replays, so that they hold up no live callback
# fmt: on

ASK_AGAIN_MS: Final = 1_000
"""Whoever waits for a place is called when one is free; this is the safety net."""


class Places:
    """The places in flight of one process.

    Args:
        clock: says what is due.
        unhold: lets a group ask again at once.
    """

    def __init__(self, clock: Clock, unhold: Callable[[str], None]) -> None:
        self._clock = clock
        self._unhold = unhold
        self.addresses: dict[int, Address] = {}
        self._working: dict[int, Address] = {}
        self._busy: dict[int, Address] = {}  # the same, each once, by identity
        self._queue: dict[str, None] = {}  # groups that wait for one of the slow places, in order
        self._called: dict[str, int] = {}  # and those that may take one now, with when they were told
        self._crowded: set[str] = set()
        self.is_travelling = False
        """Time is being moved by hand: addresses that fail are tried less often."""

    @property
    def taken(self) -> int:
        """How many places are taken."""
        return len(self._working)

    def ask(self, job: Job, now_ms: int, in_flight: int) -> NotBefore | None:
        """Take a place for an entry: None, and it is taken; or how long its group is held."""
        del in_flight  # of its group; an address has two
        subscription_id = subscription_in(job.concurrency_group)
        address = self.addresses.get(subscription_id)
        if address is None:
            address = self.addresses[subscription_id] = Address()
        until_ms = address.held_until_ms(now_ms, is_travelling=self.is_travelling)
        if until_ms is None and not self._has_room(address, job):
            until_ms = now_ms + ASK_AGAIN_MS
        if until_ms is not None:
            return NotBefore(until_ms, whole_group=True)
        address.let_through(job.position, now_ms)
        address.began_ms[job.position] = self._clock.real_ms()
        self._working[job.position] = self._busy[id(address)] = address
        if job.is_replay:
            address.replays.add(job.position)
        return None

    def free(self, job: Job) -> None:
        """Give an entry's place back, and call those that wait for one."""
        address = self._working.pop(job.position, None)
        if address is None:
            return
        address.began_ms.pop(job.position, None)
        if not address.began_ms:
            self._busy.pop(id(address), None)
        address.replays.discard(job.position)
        if address.probe == job.position:
            address.probe = None
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
        """One of the slow places is free, and nobody has waited for it longer."""
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
        """How many of the slow places are free; one that was offered and not taken for a while is."""
        for group in [one for one, at in self._called.items() if real_ms - at >= ASK_AGAIN_MS]:
            del self._called[group]
        return SLOW_POOL - self._slow_taken(real_ms) - len(self._called)

    def _is_crowded(self, real_ms: int) -> bool:
        return self.taken >= CROWDED and self.taken - self._slow_taken(real_ms) >= CROWDED

    def _slow_taken(self, real_ms: int) -> int:
        return sum(len(one.began_ms) for one in self._busy.values() if one.is_slow(real_ms))
