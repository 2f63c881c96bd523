"""Assigns the slots in flight to sources and operator accounts, so that a slow one delays nobody else.

A slot is what a job takes from its claim to its end. How many one source or account may hold depends on
how many are free: the fuller the queue, the less each gets, and a slow one gets less than a fast one. Some
slots are given to no slow one, and some to none whose response time is unknown. Source: decision 0098.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from itertools import islice
from typing import Final

from waypost.base.clock import Clock
from waypost.domain.wait_reasons import WaitReason
from waypost.queue.concurrency_groups import MayStart
from waypost.queue.job import Job, NotBefore

SLOW_CALL_MS: Final = 1_000
"""An operator that takes so long to respond is slow."""

SLOT_RETRY_MS: Final = 500
"""A source that waits for a slot is offered one when one becomes free; this is the safety net."""

FAST_ACTIVE_MS: Final = 10_000
"""For so long after a fast source requested a slot, slow ones keep more free for it."""

RESPONSE_WEIGHT: Final = 0.25
"""Weight of the last response in the mean time."""


class SlotClass(Enum):
    """The class of a source, an account, or of both together, by its response times."""

    FAST = "fast"
    NEW = "new"  # nothing is known
    SLOW = "slow"


@dataclass(frozen=True, slots=True)
class SlotShare:
    """The share of one class.

    Attributes:
        reserve: part of all slots that the class leaves free.
        per_free: how many slots one source or account may hold for each slot that is free beyond the reserve.
        per_free_alone: the same while no fast source is active.
    """

    reserve: float
    per_free: float
    per_free_alone: float


# fmt: off
SLOT_SHARES: Final = {  # Source: decision 0098
    # class                      reserve  per free  alone
    SlotClass.FAST: SlotShare(   0,       3,        3),
    SlotClass.NEW:  SlotShare(   1 / 8,   3,        3),    # a source whose response time is unknown gets one slot
    SlotClass.SLOW: SlotShare(   1 / 4,   1 / 2,    3),
}
JOINT_CLASSES: Final = {  # of a job, by the classes of its account and its source
    # account           source
    (SlotClass.FAST, SlotClass.FAST): SlotClass.FAST,
    (SlotClass.FAST, SlotClass.NEW):  SlotClass.NEW,
    (SlotClass.FAST, SlotClass.SLOW): SlotClass.SLOW,
    (SlotClass.NEW,  SlotClass.FAST): SlotClass.NEW,
    (SlotClass.NEW,  SlotClass.NEW):  SlotClass.NEW,
    (SlotClass.NEW,  SlotClass.SLOW): SlotClass.SLOW,
    (SlotClass.SLOW, SlotClass.FAST): SlotClass.NEW,   # perhaps only another source of the account is slow
    (SlotClass.SLOW, SlotClass.NEW):  SlotClass.SLOW,
    (SlotClass.SLOW, SlotClass.SLOW): SlotClass.SLOW,
}
# fmt: on
NEW_SHARE: Final = 1 / 8
"""Part of all slots that jobs of the class NEW of one account may hold."""


@dataclass(slots=True, eq=False)
class SlotHolder:
    """The slots of one source or one operator account, and how it responds.

    Attributes:
        slots: positions of the jobs that hold one.
        new_slots: those of them that were of the class NEW when they got it.
        calls: calls without a response, the oldest first: position, and the real time of the beginning.
        mean_ms: of the last response times; None before the first.
        fast_ms: real time of the last fast response.
    """

    slots: set[int] = field(default_factory=set[int])
    new_slots: set[int] = field(default_factory=set[int])
    calls: dict[int, int] = field(default_factory=dict[int, int])
    mean_ms: float | None = None
    fast_ms: int | None = None

    def slot_class(self, real_ms: int) -> SlotClass:
        """Return its class: it is slow if its mean is, or if a call takes long and none has been fast meanwhile."""
        oldest_ms = next(iter(self.calls.values()), None)
        is_fast_now = self.fast_ms is not None and real_ms - self.fast_ms < SLOW_CALL_MS
        if oldest_ms is not None and real_ms - oldest_ms >= SLOW_CALL_MS and not is_fast_now:
            return SlotClass.SLOW
        if self.mean_ms is None:
            return SlotClass.NEW
        return SlotClass.SLOW if self.mean_ms >= SLOW_CALL_MS else SlotClass.FAST

    def take(self, position: int, slot_class: SlotClass) -> None:
        """Give a slot to a job."""
        self.slots.add(position)
        if slot_class is SlotClass.NEW:
            self.new_slots.add(position)

    def release(self, position: int) -> None:
        """Release the slot of a job."""
        self.slots.discard(position)
        self.new_slots.discard(position)
        self.calls.pop(position, None)

    def end_call(self, position: int, real_ms: int) -> None:
        """Record that the call of a job has ended."""
        began_ms = self.calls.pop(position, None)
        if began_ms is None:
            return
        took_ms = real_ms - began_ms
        if took_ms < SLOW_CALL_MS:
            self.fast_ms = real_ms
        mean_ms = took_ms if self.mean_ms is None else self.mean_ms
        self.mean_ms = mean_ms + RESPONSE_WEIGHT * (took_ms - mean_ms)


class OperatorSlots:
    """The slots in flight of one process.

    Args:
        clock: its real time decides what is slow.
        in_flight: number of slots.
        pace: decides about a job that has a slot.
        clear_not_before: lets a group be claimed from at once.
    """

    def __init__(
        self, clock: Clock, *, in_flight: int, pace: MayStart, clear_not_before: Callable[[str], None]
    ) -> None:
        self._clock = clock
        self._in_flight = in_flight
        self._pace = pace
        self._clear_not_before = clear_not_before
        self._held: dict[int, tuple[SlotHolder, SlotHolder]] = {}  # by position: the source and the account
        self._sources: dict[str, SlotHolder] = {}  # by concurrency group
        self._accounts: dict[str, SlotHolder] = {}
        self._account_of: dict[str, SlotHolder] = {}  # by concurrency group
        self._unknown_account = SlotHolder()  # of groups whose account has not been found yet
        self._fast_active_ms: int | None = None
        self._waiting: dict[bool, dict[str, None]] = {False: {}, True: {}}  # groups, in order, by: are they slow

    @property
    def slots_in_use(self) -> int:
        """Number of slots in use."""
        return len(self._held)

    def may_start(self, job: Job, now_ms: int, in_flight: int) -> NotBefore | None:
        """Take a slot for a job and return None, or return how long its group waits for one."""
        group, real_ms = job.concurrency_group, self._clock.real_ms()
        source = self._sources.get(group)
        if source is None:
            source = self._sources[group] = SlotHolder()
        account = self._account_of.get(group, self._unknown_account)
        slot_class = JOINT_CLASSES[account.slot_class(real_ms), source.slot_class(real_ms)]
        if slot_class is SlotClass.FAST:
            self._fast_active_ms = real_ms
        if not self._may_take(source, account, slot_class, real_ms):
            self._waiting[slot_class is SlotClass.SLOW].setdefault(group)
            return NotBefore(now_ms + SLOT_RETRY_MS, WaitReason.SLOTS, whole_group=True)
        wait = self._pace(job, now_ms, in_flight)
        if wait is None:
            self._held[job.position] = source, account
            source.take(job.position, slot_class)
            account.take(job.position, slot_class)
        return wait

    def set_account(self, job: Job, account_id: str) -> None:
        """Note the operator account of a job, and of its group."""
        account = self._accounts.get(account_id)
        if account is None:
            account = self._accounts[account_id] = SlotHolder()
        self._account_of[job.concurrency_group] = account
        held = self._held.get(job.position)
        if held is None or held[1] is account:
            return
        source, previous = held
        account.take(job.position, SlotClass.NEW if job.position in previous.new_slots else SlotClass.FAST)
        previous.release(job.position)
        self._held[job.position] = source, account
        self._wake_waiting()

    def begin_call(self, job: Job) -> None:
        """Note that the operator is called for a job."""
        real_ms = self._clock.real_ms()
        for holder in self._held.get(job.position, ()):
            holder.calls[job.position] = real_ms

    def end_call(self, job: Job) -> None:
        """Note that the operator has responded, or will not any more."""
        real_ms = self._clock.real_ms()
        for holder in self._held.get(job.position, ()):
            holder.end_call(job.position, real_ms)

    def release(self, job: Job) -> None:
        """Release a job's slot, and let those be claimed from that wait for one."""
        for holder in self._held.pop(job.position, ()):
            holder.release(job.position)
        self._wake_waiting()

    def _wake_waiting(self) -> None:
        """Let the groups be claimed from that have waited longest; one that may not start yet waits again."""
        for waiting, at_most in (self._waiting[False], 2), (self._waiting[True], 1):
            for group in list(islice(waiting, at_most)):
                del waiting[group]
                self._clear_not_before(group)

    def _may_take(self, source: SlotHolder, account: SlotHolder, slot_class: SlotClass, real_ms: int) -> bool:
        share = SLOT_SHARES[slot_class]
        free = self._in_flight - len(self._held) - int(share.reserve * self._in_flight)
        if free <= 0:
            return False
        if slot_class is SlotClass.NEW:
            return not source.slots and len(account.new_slots) < max(1, NEW_SHARE * self._in_flight)
        is_alone = self._fast_active_ms is None or real_ms - self._fast_active_ms >= FAST_ACTIVE_MS
        limit = free * (share.per_free_alone if is_alone else share.per_free)
        if len(source.slots) >= limit:
            return False
        is_only_account = len(self._accounts) == 1 and slot_class is SlotClass.FAST
        return is_only_account or len(account.slots) < limit
