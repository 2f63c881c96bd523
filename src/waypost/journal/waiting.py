"""The entries of one lane that this process holds: by group, by order key, by due time.

All of this can be thrown away at any moment; the store has it.
"""

import heapq
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from waypost.journal.entry import Entry
from waypost.journal.lanes import GROUP_WINDOW

LATE_MS: Final = 20_000
"""Longer than a transaction that appends can last: the engines bound it."""

NUMBERED_MS: Final = 2_000
"""Longer than it takes from the moment an entry gets its position until its transaction has a number.

The two are some microseconds apart. What takes longer all the same is found once a minute.
"""


AGAIN_MS: Final = 60_000
"""How often groups are read from their first entry on."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Not yet: the key, or its whole group, waits until then."""

    until_ms: int
    whole_group: bool


class Pace(Protocol):
    """Says whether an entry may be worked now, and spends its slot when it may."""

    def __call__(self, entry: Entry, now_ms: int, in_flight: int) -> Hold | None:
        """None to go.

        Args:
            entry: the head of its key, due.
            now_ms: by the clock that rules follow.
            in_flight: how many of its group are being worked.
        """
        ...


@dataclass(slots=True)
class Group:
    """The held entries of one group.

    Attributes:
        read_to: the last position read from the store.
        more: whether the store may hold entries that have not been read.
        positions: of the held entries.
        ended: positions whose work ended while more was being read: what is read may still have them.
        is_leaving: nothing more of it is begun, because another process shall work it.
        ready: heads of keys that nobody works, by due time and position.
    """

    name: str
    read_to: int = 0
    more: bool = True
    reading: bool = False
    positions: set[int] = field(default_factory=set[int])
    ended: set[int] = field(default_factory=set[int])
    in_flight: int = 0
    is_leaving: bool = False
    not_before_ms: int = 0
    keys: dict[str, deque[Entry]] = field(default_factory=dict[str, deque[Entry]])
    ready: list[tuple[int, int, str]] = field(default_factory=list[tuple[int, int, str]])
    complete_to: int = 0
    marked_to: int = 0
    marked_ms: int = 0
    marked_before: int | None = None

    def add(self, entry: Entry) -> None:
        """Take in an entry read from the store; one that is held or has just ended is known."""
        if entry.position in self.positions or entry.position in self.ended:
            return
        self.positions.add(entry.position)
        queue = self.keys.get(entry.order_key)
        if queue is None:
            self.keys[entry.order_key] = deque([entry])
            self._offer(entry)
        else:
            queue.append(entry)

    @property
    def takes_next(self) -> bool:
        """Whether everything that the store has of it is held, so that what is appended next can be added."""
        return not self.more and not self.reading and len(self.positions) < GROUP_WINDOW // 2

    def works_on(self, entry: Entry) -> bool:
        """Whether this very entry is the head of its key."""
        queue = self.keys.get(entry.order_key)
        return bool(queue) and queue[0] is entry

    def finished(self, entry: Entry, *, again: bool) -> None:
        """End the work on a key's head: it goes, or waits for its new due time."""
        self.in_flight -= 1
        queue = self.keys[entry.order_key]
        if not again:
            queue.popleft()
            self._forget(entry)
        if queue:
            self._offer(queue[0])
        else:
            del self.keys[entry.order_key]

    def park(self) -> None:
        """End the work on a key's head, and do not offer it again before `unpark`."""
        self.in_flight -= 1

    def unpark(self, entry: Entry) -> None:
        """Offer a parked head again."""
        self._offer(entry)

    def leave_key(self, entry: Entry, new_key: str) -> None:
        """A head leaves its key to its followers and waits under a key of its own."""
        self.in_flight -= 1
        queue = self.keys[entry.order_key]
        queue.popleft()
        if queue:
            self._offer(queue[0])
        else:
            del self.keys[entry.order_key]
        self.positions.discard(entry.position)
        entry.order_key = new_key
        self.add(entry)

    def take(self, now_ms: int, pace: Pace | None) -> Entry | None:
        """The next head that is due and may go, now being worked; None when there is none."""
        while self.ready and self.ready[0][0] <= now_ms and self.not_before_ms <= now_ms:
            _, _, key = heapq.heappop(self.ready)
            entry = self.keys[key][0]
            hold = pace(entry, now_ms, self.in_flight) if pace else None
            if hold is None:
                self.in_flight += 1
                return entry
            if hold.whole_group:
                self.not_before_ms = hold.until_ms
            else:
                entry.due_ms = hold.until_ms
            self._offer(entry)
        return None

    @property
    def next_due_ms(self) -> int | None:
        """When the earliest ready head is due; None without one."""
        return max(self.ready[0][0], self.not_before_ms) if self.ready else None

    @property
    def wants_more(self) -> bool:
        """Whether to read further: there may be more, and half the room is free."""
        return self.more and not self.reading and not self.is_leaving and len(self.positions) < GROUP_WINDOW // 2

    @property
    def is_empty(self) -> bool:
        """Whether nothing of it is held or to be read."""
        return not self.keys and not self.more and not self.reading

    @property
    def can_go(self) -> bool:
        """Whether to forget it at once when it is empty.

        Where positions are committed out of order it stays for a minute, because it knows how far it is
        complete: to read from a group's beginning again costs as much as all that was deleted there lately.
        """
        return self.is_empty and not self.marked_ms

    def read_from(self, real_ms: int) -> int:
        """The position beyond which entries may still appear, where positions are committed out of order.

        What was read so long ago that every transaction of then has ended is complete.
        """
        if real_ms - self.marked_ms >= LATE_MS:
            self._is_complete(real_ms, before=None)
        return self.complete_to

    def has_read(self, real_ms: int, *, oldest: int, before: int) -> None:
        """All that was there beyond `read_from` has been added.

        Args:
            real_ms: now.
            oldest: the number of the oldest transaction that was still running.
            before: every transaction with a lower number had begun; none with this one or a higher.
        """
        if self.marked_before is None:
            self.marked_to, self.marked_ms, self.marked_before = self.read_to, real_ms, before
        elif oldest >= self.marked_before and real_ms - self.marked_ms >= NUMBERED_MS:
            self._is_complete(real_ms, before=before)

    def _is_complete(self, real_ms: int, *, before: int | None) -> None:
        self.complete_to, self.marked_to = self.marked_to, self.read_to
        self.marked_ms, self.marked_before = real_ms, before

    def _forget(self, entry: Entry) -> None:
        self.positions.discard(entry.position)
        if self.reading:
            self.ended.add(entry.position)

    def _offer(self, entry: Entry) -> None:
        heapq.heappush(self.ready, (entry.due_ms, entry.position, entry.order_key))


class Waiting:
    """The groups of one lane."""

    def __init__(self) -> None:
        self.groups: dict[str, Group] = {}
        self._looked_ms = 0
        self.ending: dict[str, list[Group]] = {}
        """Forgotten groups of which entries are still being worked here: their shards may not come back before."""

    def wake(self, names: Iterable[str], not_before_ms: Callable[[str], int] | None = None) -> None:
        """The store may hold new entries of these groups.

        Args:
            names: of the groups.
            not_before_ms: until when a group rests that has not been held so far.
        """
        for name in names:
            group = self.groups.get(name)
            if group is None:
                group = self.groups[name] = Group(name)
                group.not_before_ms = not_before_ms(name) if not_before_ms else 0
            group.more = True

    def append(self, name: str, entries: Sequence[Entry]) -> bool:
        """Hold entries that were just appended to a group, in the order of their positions.

        To be called only where every commit is heard of, in order, and where each group that has
        entries in the store is known: then one that is not known has no other.

        Returns:
            False where the store has to be asked: what is held of the group does not reach so far.
        """
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = Group(name, more=False)
        elif not group.takes_next:
            return False
        for entry in entries:
            if entry.position > group.read_to:  # else it was read before it was heard of
                group.read_to = entry.position
                group.add(entry)
        return True

    def look_from_the_start(self, real_ms: int) -> None:
        """Once a minute, read each group as if it were new: whatever was missed is found then.

        Nothing should be. What a commit that waits for a standby holds back for long is why it is done.
        """
        if real_ms - self._looked_ms < AGAIN_MS:
            return
        self._looked_ms = real_ms
        for name in [name for name, group in self.groups.items() if group.is_empty]:
            del self.groups[name]
        for group in self.groups.values():
            group.complete_to = group.marked_to = 0
            group.marked_before = None

    def forget(self, names: Iterable[str]) -> None:
        """Another process works these groups now, or may."""
        for name in list(names):
            group = self.groups.pop(name, None)
            if group is not None and group.in_flight:
                self.ending.setdefault(name, []).append(group)

    def group_of(self, entry: Entry) -> Group | None:
        """The group in which this very entry is the head of its key; None when it has been forgotten."""
        group = self.groups.get(entry.group)
        return group if group is not None and group.works_on(entry) else None

    def ended_elsewhere(self, entry: Entry) -> None:
        """The work on an entry of a forgotten group has ended."""
        forgotten = self.ending.get(entry.group, ())
        for group in forgotten:
            if group.works_on(entry):
                group.finished(entry, again=True)
        still = [group for group in forgotten if group.in_flight]
        if still:
            self.ending[entry.group] = still
        else:
            self.ending.pop(entry.group, None)

    @property
    def is_reading(self) -> bool:
        """Whether something is being read from the store, or is about to be."""
        return any(group.reading or group.wants_more for group in self.groups.values())

    def to_read(self) -> list[Group]:
        """Groups of which more should be read."""
        return [group for group in self.groups.values() if group.wants_more]

    def take(self, *, at_most: int, share: int, now_ms: int, pace: Pace | None) -> list[Entry]:
        """Due heads, one of each group in turn, no group beyond its share."""
        taken: list[Entry] = []
        open_groups = [group for group in self.groups.values() if group.ready and not group.is_leaving]
        while open_groups and len(taken) < at_most:
            still_open: list[Group] = []
            for group in open_groups:
                if len(taken) >= at_most:
                    break
                entry = group.take(now_ms, pace) if group.in_flight < share else None
                if entry is not None:
                    taken.append(entry)
                    still_open.append(group)
            open_groups = still_open
        for name in [name for name, group in self.groups.items() if group.can_go]:
            del self.groups[name]
        return taken

    def next_due_ms(self, share: int) -> int | None:
        """When the next head is due, of the groups that have room."""
        dues = [
            group.next_due_ms
            for group in self.groups.values()
            if group.in_flight < share and group.ready and not group.is_leaving
        ]
        return min((due for due in dues if due is not None), default=None)
