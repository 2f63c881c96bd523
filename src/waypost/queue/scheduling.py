"""The groups of one lane that this process holds.

All of this can be thrown away at any moment; the store has it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from waypost.queue.concurrency_groups import Group, Pace
from waypost.queue.job import Entry

AGAIN_MS: Final = 60_000
"""How often groups are read from their first entry on."""


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
                group.rest_until(not_before_ms(name) if not_before_ms else 0)
            group.look_again()

    def append(self, name: str, entries: Sequence[Entry]) -> bool:
        """Hold entries that were just appended to a group, in the order of their positions.

        To be called only where every commit is heard of, in order, and where each group that has
        entries in the store is known: then one that is not known has no other.

        Returns:
            False where the store has to be asked: what is held of the group does not reach so far.
        """
        group = self.groups.get(name)
        if group is None:
            group = self.groups[name] = Group(name, is_read=True)
        return group.append(entries)

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
            group.look_from_the_start()

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
        return any(group.is_reading or group.wants_more for group in self.groups.values())

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
