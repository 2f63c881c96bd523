"""Slots in flight: how many jobs each source, operator account and receiver may have in work at once.

A slot is what a job takes from its claim to its end. Tables: what the jobs of a class may hold, of operators and of
receivers. Those of operators shrink with what is free, because a crash makes uncertain what is in flight; those of
receivers are fixed numbers. Either way a slow one gets few, and a fast one always finds some. Source: decisions 0042,
0098, 0119.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from math import inf
from typing import Final, Generic, TypeVar

from waypost.base.clock import Clock

SLOW_RESPONSE_MS: Final = 1_000
"""What takes so long to respond is slow."""

SLOT_RETRY_MS: Final = 500
"""A group that waits for a slot is offered one when one becomes free; this is the safety net."""

OFFER_MS: Final = 1_000
"""A slot that is offered to a group, and not taken after this time, is free again."""

FAST_ACTIVE_MS: Final = 10_000
"""For so long after a fast source requested a slot, slow ones keep more free for it."""


class SlotClass(StrEnum):
    """The class of a source, an account or a receiver, by its response times."""

    FAST = "fast"
    NEW = "new"  # nothing is known
    SLOW = "slow"


@dataclass(frozen=True, slots=True)
class SlotRule:
    """The slots that jobs of one class may hold."""

    reserve: float = 0  # part of all slots that the class leaves free
    per_free: float = inf  # how many slots one holder may have for each slot that is free beyond the reserve
    per_free_alone: float = inf  # the same while no fast holder is active
    each: float = inf  # how many a source or receiver may have
    each_when_crowded: float = inf  # the same while fast ones have `CROWDED_SLOTS`
    together: float = inf  # how many all of the class may have; who waits for them gets them in order
    account_share: float = 1  # part of all slots that jobs of the class of one account may have


OPERATOR_SLOTS: Final = {  # Source: decision 0098; a source whose response time is unknown gets one slot
    SlotClass.FAST: SlotRule(per_free=3, per_free_alone=3),
    SlotClass.NEW: SlotRule(reserve=1 / 8, each=1, account_share=1 / 8),
    SlotClass.SLOW: SlotRule(reserve=1 / 4, per_free=1 / 2, per_free_alone=3),
}
RECEIVER_SLOTS: Final = {  # Source: decision 0042; of 256, and a group has at most 64 by its queue
    SlotClass.FAST: SlotRule(each_when_crowded=8),
    SlotClass.SLOW: SlotRule(each=8, together=128),
}
CROWDED_SLOTS: Final = 96


@dataclass(slots=True, eq=False)
class SlotHolder(ABC):
    """A holder of slots: a source, an operator account or a receiver."""

    # positions of its jobs that hold one, the oldest first, with the real time when they got it
    slots: dict[int, int] = field(default_factory=dict[int, int])
    new_slots: set[int] = field(default_factory=set[int])  # those of them that were of the class NEW when they got it
    waiting: set[str] = field(default_factory=set[str])  # groups that wait for the end of one of its own jobs

    @abstractmethod
    def slot_class(self, real_ms: int) -> SlotClass:
        """Return its class by its response times."""


Holder = TypeVar("Holder", bound=SlotHolder)


class Slots(Generic[Holder]):
    """The slots of one queue in one process.

    Args:
        total: number of slots.
        rules: the table, by class.
        clear_not_before: lets a group be claimed from at once.

    Attributes:
        held: whose slot each job has, by position: its source or receiver, and its account.
    """

    def __init__(
        self, clock: Clock, total: int, rules: Mapping[SlotClass, SlotRule], clear_not_before: Callable[[str], None]
    ) -> None:
        self._clock = clock
        self._total = total
        self._rules = rules
        self._clear_not_before = clear_not_before
        self.held: dict[int, Sequence[Holder]] = {}
        self._active: dict[int, Holder] = {}  # the first holder of each of them, once, by identity
        self._fast_active_ms: int | None = None
        # Groups that wait for any slot, in order, by: are they slow.
        self._waiting: dict[bool, dict[str, None]] = {False: {}, True: {}}
        self._line: dict[str, None] = {}  # groups that wait for a slot of a class that has so many together
        self._offered_ms: dict[str, int] = {}  # and those that may take one now, with the real time of the offer

    @property
    def slots_in_use(self) -> int:
        """Number of slots in use."""
        return len(self.held)

    def has_room(self, group: str, slot_class: SlotClass, holders: Sequence[Holder], real_ms: int) -> bool:
        """Return True if a job may have a slot now; otherwise its group is claimed from again once it may.

        Args:
            holders: whose slots are limited: the job's source or receiver, and its account.
        """
        rule, own = self._rules[slot_class], holders[0]
        if slot_class is SlotClass.FAST:
            self._fast_active_ms = real_ms
        if len(own.slots) >= rule.each:
            own.waiting.add(group)
            return False
        if rule.together < inf:
            return self._is_next_in_line(group, real_ms)
        if self._line or self._offered_ms:  # it is not slow any more
            self._line.pop(group, None)
            self._offered_ms.pop(group, None)
        in_use = len(self.held)
        free = self._total - in_use - int(rule.reserve * self._total)
        is_alone = self._fast_active_ms is None or real_ms - self._fast_active_ms >= FAST_ACTIVE_MS
        limit = free * (rule.per_free_alone if is_alone else rule.per_free) if free > 0 else 0
        is_at_most = len(own.slots) >= rule.each_when_crowded
        if is_at_most and in_use >= CROWDED_SLOTS and in_use - self._count_slow(real_ms) >= CROWDED_SLOTS:
            limit = 0
        if rule.account_share < 1 and len(holders[-1].new_slots) >= max(1, rule.account_share * self._total):
            limit = 0
        for holder in holders:
            if len(holder.slots) >= limit:
                self._waiting[slot_class is SlotClass.SLOW].setdefault(group)
                return False
        return True

    def take(self, position: int, slot_class: SlotClass, holders: Sequence[Holder], real_ms: int) -> None:
        """Give a slot to a job; `holders` are its source or receiver, and its account."""
        self.held[position] = holders
        self._active[id(holders[0])] = holders[0]
        for holder in holders:
            holder.slots[position] = real_ms
            if slot_class is SlotClass.NEW:
                holder.new_slots.add(position)

    def move(self, position: int, holders: Sequence[Holder]) -> None:
        """Give the slot of a job to the account that it turns out to have."""
        previous = self.held.get(position)
        if previous is None or previous[-1] is holders[-1]:
            return
        account, previous_account = holders[-1], previous[-1]
        account.slots[position] = previous_account.slots.pop(position)
        if position in previous_account.new_slots:
            previous_account.new_slots.remove(position)
            account.new_slots.add(position)
        self.held[position] = holders
        self._wake_waiting()

    def release(self, position: int) -> None:
        """Release the slot of a job, and let the groups be claimed from that may have it."""
        holders = self.held.pop(position, ())
        for holder in holders:
            del holder.slots[position]
            holder.new_slots.discard(position)
        if holders:
            own = holders[0]
            if not own.slots:
                self._active.pop(id(own), None)
            for group in own.waiting:
                self._clear_not_before(group)
            own.waiting.clear()
        if self._waiting[False] or self._waiting[True]:
            self._wake_waiting()
        if self._line:
            self._offer(self._clock.real_ms())

    def _wake_waiting(self) -> None:
        """Let the groups be claimed from that have waited longest; one that may not start yet waits again."""
        for waiting, at_most in (self._waiting[False], 2), (self._waiting[True], 1):
            if waiting:
                for group in list(islice(waiting, at_most)):
                    del waiting[group]
                    self._clear_not_before(group)

    def _is_next_in_line(self, group: str, real_ms: int) -> bool:
        """Return True if a slow slot is offered to a group, or is free while no group has waited longer."""
        if self._offered_ms.pop(group, None) is not None:
            return True
        if not self._line and self._count_free_slow(real_ms) > 0:
            return True
        self._line.setdefault(group)
        self._offer(real_ms)
        return self._offered_ms.pop(group, None) is not None

    def _offer(self, real_ms: int) -> None:
        while self._line and self._count_free_slow(real_ms) > 0:
            group = next(iter(self._line))
            del self._line[group]
            self._offered_ms[group] = real_ms
            self._clear_not_before(group)

    def _count_free_slow(self, real_ms: int) -> float:
        """Return how many of the slow slots are free; one that was offered and not taken in time is free again."""
        for group in [name for name, offered_ms in self._offered_ms.items() if real_ms - offered_ms >= OFFER_MS]:
            del self._offered_ms[group]
        return self._rules[SlotClass.SLOW].together - self._count_slow(real_ms) - len(self._offered_ms)

    def _count_slow(self, real_ms: int) -> int:
        """Return how many slots the slow holders have."""
        count = 0
        for holder in self._active.values():
            if holder.slot_class(real_ms) is SlotClass.SLOW:
                count += len(holder.slots)
        return count
