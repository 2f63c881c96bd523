"""How entries come into memory: read from the store group by group, or handed on as they are written.

Where a process has the store to itself and has looked through a lane, what is appended goes straight
into its group; else the group is read on from where it was read to (decisions 0007, 0055).
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final

from waypost.base.clock import Clock
from waypost.queue.job import Entry, new_entry, stored_entries
from waypost.queue.plans import LanePlan, shard_of
from waypost.queue.scheduling import Waiting
from waypost.queue.shards import Shards
from waypost.store.database import APPENDED_TO, MISSED, Database
from waypost.store.queue.jobs import Lane, NewEntry, entries_after, groups_of
from waypost.store.write_through_cache import Appended

POLL_MS: Final = 5_000
"""How often, in real time, the store is asked for groups that no wake-up told of: the safety net."""

Heard = Callable[[str], None]


class Feed:
    """What fills the lanes of one process.

    It alone brings groups and entries in; the journal's work and lost shards take them out. Its own
    state is when each lane was last looked through, and of which lanes every group is known.

    Args:
        database: open.
        clock: `now_ms` says what cannot be due so late; when to look again follows `real_ms`.
        waiting: the entries held of each lane; filled here.
        shards: whose groups may be read.
        plans: how far ahead an entry of a lane may be due.
        rouse: told of each lane in which there may be something to claim.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        waiting: Mapping[Lane, Waiting],
        shards: Shards,
        *,
        plans: Mapping[Lane, LanePlan],
        rouse: Callable[[Lane], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._waiting = waiting
        self._shards = shards
        self._plans = plans
        self._rouse = rouse
        self._polled_ms: dict[Lane, int] = {}
        self._surveyed: set[Lane] = set()
        """Lanes of which every group that the store has entries of is known, and each commit is heard of."""
        self._hearers: dict[Lane, list[Heard]] = {}

    def open(self) -> None:
        """Begin to hear of what is appended, and of shards that are gained."""
        self._database.on_append(self._hear)
        self._database.on_told(self._told)
        self._shards.on_gained(self._look_anew)

    def on_wake(self, lane: Lane, heard: Heard) -> None:
        """Call this, on the loop, with each group of the lane that something was appended to, or told of."""
        self._hearers.setdefault(lane, []).append(heard)

    def has_looked(self, lane: Lane) -> bool:
        """Whether the lane has been looked through since it last had to be."""
        return lane in self._polled_ms

    async def read_on(self, lane: Lane) -> None:
        """Read what is new of a lane's groups, as far as there is room; all its groups when it is time to."""
        waiting = self._waiting[lane]
        real_ms = self._clock.real_ms()
        polled_ms = self._polled_ms.get(lane)
        if polled_ms is None or real_ms - polled_ms >= POLL_MS:
            self._polled_ms[lane] = real_ms
            waiting.look_from_the_start(real_ms)
            names = await self._database.read(groups_of, lane)
            waiting.wake(
                (name for name in names if shard_of(name) in self._shards.held[lane]),
                partial(self._shards.not_before_ms, lane),
            )
            if self._database.sole and lane in self._polled_ms:
                self._surveyed.add(lane)
        groups = waiting.to_read()
        if not groups:
            return
        for group in groups:
            group.begin_read()
        real_ms = self._clock.real_ms()
        cursors = [group.cursor(real_ms, in_order=self._database.in_order) for group in groups]
        try:
            read = await self._database.read(entries_after, lane, cursors)
            found = [(group, stored_entries(lane, group.name, read.rows[group.name])) for group in groups]
        except BaseException:
            for group in groups:
                group.fail_read()
            raise
        for group, entries in found:
            for entry in entries:
                self._mistrust(entry)
            group.end_read(entries, real_ms=real_ms, transactions=read.transactions)

    def _mistrust(self, entry: Entry) -> None:
        """What cannot be due so late was written by a clock that ran ahead: another process's, or ours once."""
        ahead_ms = self._plans[entry.lane].ahead_ms
        if ahead_ms is None or entry.attempt or entry.defects:
            return
        now_ms = self._clock.now_ms()
        if entry.due_ms > now_ms + ahead_ms:
            entry.due_ms = now_ms

    def _hear(self, appended: Appended) -> None:
        for (number, group), told in appended.entries.items():
            # What has to be looked for may stand before what is told: then all of it is read, in order.
            if (number, group) in appended.groups or not self._hold(Lane(number), group, told):
                appended.look_at(number, group)
        for number, group in appended.groups:
            if not self._wake(Lane(number), group):
                self._database.tell(APPENDED_TO, f"{number} {group}")

    def _hold(self, lane: Lane, group: str, told: Sequence[tuple[int, NewEntry]]) -> bool:
        """Hold new entries without reading them; False where the store has to be asked."""
        if lane not in self._surveyed:
            return False
        entries = [new_entry(position, entry) for position, entry in told]
        for entry in entries:
            self._mistrust(entry)
        if not self._waiting[lane].append(group, entries):
            return False
        self._has_grown(lane, group)
        return True

    def _told(self, subject: str, words: str) -> None:
        if subject == APPENDED_TO:
            number, _, group = words.partition(" ")
            self._wake(Lane(int(number)), group)
        elif subject == MISSED:
            for lane in Lane:
                self._look_anew(lane)

    def _wake(self, lane: Lane, group: str) -> bool:
        """Look at a group; False where another process works it."""
        if shard_of(group) not in self._shards.held[lane]:
            return False
        self._waiting[lane].wake([group], partial(self._shards.not_before_ms, lane))
        self._has_grown(lane, group)
        return True

    def _has_grown(self, lane: Lane, group: str) -> None:
        self._rouse(lane)
        for heard in self._hearers.get(lane, ()):
            heard(group)

    def _look_anew(self, lane: Lane) -> None:
        """Ask the store for every group that this process may work."""
        self._polled_ms.pop(lane, None)
        self._surveyed.discard(lane)
        self._rouse(lane)
