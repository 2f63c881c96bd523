"""The journal on a store: claims are held in memory under a lease, everything else is written.

A claim needs no write, because only the process that leases a shard works its groups. What a crash
must not lose is written: the entry itself, the in-hand mark, a release, and settling.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from waypost.base.clock import Clock
from waypost.base.telemetry.counters import LaneCounts
from waypost.base.telemetry.logs import log
from waypost.base.telemetry.tracing import Step, steps
from waypost.queue.concurrency_groups import Group, Pace
from waypost.queue.job import Entry
from waypost.queue.plans import DEFECT_DELAYS_S, PLANS, LanePlan, shard_of
from waypost.queue.reader import POLL_MS, Feed, Heard
from waypost.queue.scheduling import Waiting
from waypost.queue.shards import Shards
from waypost.store.contract import StoreAway
from waypost.store.database import Database
from waypost.store.queue.job_subjects import SubjectKind
from waypost.store.queue.jobs import EntryState, Fence, Lane, Mark, Release, release_entries, take_in_hand
from waypost.store.trace_events import MessageNews

Item = TypeVar("Item")
Result = TypeVar("Result")

AWAY_S: Final = 0.5
"""How long after a store could not be reached it is asked again."""


class Journal:
    """Lanes of entries, claimed in batches, one at a time per order key.

    Args:
        database: open.
        clock: `now_ms` decides what is due; leases follow `real_ms`.
        holder: names this process in leases.
        lease_ms: how long a lease lasts unless renewed; unused where the store has one process.
        plans: how each lane is shared out.
        lanes: those that this process works.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        holder: str,
        lease_ms: int = 15_000,
        plans: Mapping[Lane, LanePlan] = PLANS,
        lanes: Sequence[Lane] = tuple(Lane),
    ) -> None:
        self._database = database
        self._clock = clock
        self._holder = holder
        self.plans = plans
        self._waiting: dict[Lane, Waiting] = {lane: Waiting() for lane in Lane}
        self.shards = Shards(database, clock, self._waiting, plans=plans, holder=holder, lease_ms=lease_ms, lanes=lanes)
        self._woken: dict[Lane, asyncio.Event] = {lane: asyncio.Event() for lane in Lane}
        self._feed = Feed(database, clock, self._waiting, self.shards, plans=plans, rouse=self.rouse)
        self.counts: dict[Lane, LaneCounts] = {lane: LaneCounts() for lane in Lane}
        self._log = log("journal")

    async def open(self) -> None:
        """Begin to hear of what is appended; where the store has one process, hold every shard."""
        self._feed.open()
        await self.shards.open()

    def start(self) -> None:
        """Begin to take work: a process that only opens the store takes none."""
        self.shards.start()

    async def close(self) -> None:
        """Give the leases back, so that others go on at once."""
        await self.shards.close()

    async def claim(self, lane: Lane, *, at_most: int, pace: Pace | None = None) -> list[Entry]:
        """Due entries to work now: one of each key, oldest first, no group beyond its share.

        Each must be ended by `settle`, `release`, `release_defect` or `let_go`.
        """
        await self.shards.keep()
        self._woken[lane].clear()  # before reading: what is appended meanwhile sets it again
        await self._feed.read_on(lane)
        now_ms = self._clock.now_ms()
        taken = self._waiting[lane].take(at_most=at_most, share=self.plans[lane].share, now_ms=now_ms, pace=pace)
        counts = self.counts[lane]
        counts.claimed += len(taken)
        for entry in taken:
            counts.lag_s.add((now_ms - entry.due_ms) / 1000)
        return taken

    def held(self, lane: Lane) -> int:
        """How many entries of a lane this process has read and not ended."""
        return sum(group.held for group in self._waiting[lane].groups.values())

    async def wait(self, lane: Lane) -> None:
        """Return when there may be something to claim."""
        due_ms = self._waiting[lane].next_due_ms(self.plans[lane].share)
        await self._clock.wait(self._woken[lane], until_ms=due_ms, poll_ms=POLL_MS)

    def is_still(self, lane: Lane) -> bool:
        """Whether the lane has been looked through and nothing has been appended since."""
        return self._feed.has_looked(lane) and not self._woken[lane].is_set() and not self._waiting[lane].is_reading

    def next_due_ms(self, lane: Lane) -> int | None:
        """When the next entry that this process holds may be worked; None when it holds none."""
        return self._waiting[lane].next_due_ms(self.plans[lane].share)

    def rouse(self, lane: Lane) -> None:
        """Let `wait` return."""
        self._woken[lane].set()

    def on_wake(self, lane: Lane, heard: Heard) -> None:
        """Call this, on the loop, with each group of the lane that something was appended to, or told of."""
        self._feed.on_wake(lane, heard)

    def unhold(self, lane: Lane, group: str) -> None:
        """Let a group that was held be asked for again at once."""
        held = self._waiting[lane].groups.get(group)
        if held is not None and held.unhold():
            self._woken[lane].set()

    async def take_in_hand(self, entries: Sequence[Entry]) -> list[Entry]:
        """Mark entries, on disk, as being sent right now; give those that are marked.

        One that is not among them is another process's by now: it may not be sent, and is let go.
        When a mark cannot be written, that is raised once all have been tried. None counts as in
        hand then, and none may be sent.
        """
        marks = [Mark(entry.position, self._fence(entry)) for entry in entries]
        written = await self._database.join_all(take_in_hand, marks)
        for mark in written:
            if isinstance(mark, BaseException):
                raise mark
        marked = [entry for entry, mark in zip(entries, written, strict=True) if mark]
        if len(marked) < len(entries):
            lost = [entry for entry, mark in zip(entries, written, strict=True) if not mark]
            self.shards.doubt(lost[0].lane, {entry.group for entry in lost})
        for entry in marked:
            entry.in_hand = True
        return marked

    async def settle(self, entry: Entry, work: Callable[[Any, Sequence[Item]], Sequence[Any]], item: Item) -> None:
        """Hand the item to a write that deletes the entry with the state it changes; then let the key go on.

        What has happened is written down however long the store is away.
        """
        await self._until_written(work, item)
        self.counts[entry.lane].settled += 1
        self._end(entry, again=False)

    async def settle_all(
        self, pieces: Sequence[tuple[Entry, Item]], work: Callable[[Any, Sequence[Item]], Sequence[Any]]
    ) -> list[tuple[Entry, BaseException]]:
        """Settle many at once; give those that failed, each with its own error, still to be ended."""
        results = await self._database.join_all(work, [item for _, item in pieces])
        failed: list[tuple[Entry, BaseException]] = []
        for (entry, _), result in zip(pieces, results, strict=True):
            if isinstance(result, BaseException):
                failed.append((entry, result))
            else:
                self.counts[entry.lane].settled += 1
                self._end(entry, again=False)
        return failed

    async def release(
        self, entry: Entry, *, due_ms: int, note: str, detach: bool = False, news: MessageNews | None = None
    ) -> None:
        """Give an entry back, to be tried again from `due_ms` on.

        Args:
            entry: claimed.
            due_ms: not before then.
            note: why; kept.
            detach: its followers wait for it no longer.
            news: a line of the trace of the message that it carries; written in the same transaction.
        """
        release = Release(
            entry.position,
            due_ms,
            entry.attempt + 1,
            entry.defects,
            EntryState.OPEN,
            entry.is_detached or detach,
            note,
            self._fence(entry),
            news,
        )
        if not await self._until_written(release_entries, release):
            self.shards.doubt(entry.lane, [entry.group])
        self.counts[entry.lane].released += 1
        entry.due_ms = due_ms
        entry.attempt += 1
        if steps.on and entry.subject.kind is SubjectKind.MESSAGE:
            steps.tell(Step.RELEASED, entry.subject.id, position=entry.position, attempt=entry.attempt, due_ms=due_ms)
        entry.in_hand = entry.was_in_hand = False
        group = self._waiting[entry.lane].group_of(entry)
        if detach and group is not None:
            group.detach(entry)
            self._has_ended(entry, group)
        else:
            self._end(entry, again=True)

    async def release_defect(self, entry: Entry, error: BaseException) -> None:
        """Give back an entry on which our own code failed; after five times, set it aside.

        Its followers go on once it is set aside. An entry in hand stays in hand: whether it was
        sent is then as uncertain as after a crash.
        """
        # Set before anything can fail: what may have been sent is never taken for unsent again.
        entry.was_in_hand = entry.was_in_hand or entry.in_hand
        defects = entry.defects + 1
        set_aside = defects > len(DEFECT_DELAYS_S)
        self._log.error(
            "defect",
            lane=entry.lane.name,
            position=entry.position,
            ref=entry.subject.ref,
            defects=defects,
            set_aside=set_aside,
            exc_info=error,
        )
        state = _LEFT[entry.was_in_hand, set_aside]
        delay_ms = 0 if set_aside else 1000 * DEFECT_DELAYS_S[defects - 1]
        due_ms = self._clock.now_ms() + delay_ms
        release = Release(
            entry.position, due_ms, entry.attempt, defects, state, entry.is_detached, repr(error), self._fence(entry)
        )
        if not await self._database.join(release_entries, release):
            self.shards.doubt(entry.lane, [entry.group])
        counts = self.counts[entry.lane]
        counts.defects += 1
        counts.set_aside += set_aside
        # Counted once it is written: a store that is away is nobody's defect.
        entry.due_ms, entry.defects = due_ms, defects
        self._end(entry, again=not set_aside)

    def park(self, entry: Entry) -> None:
        """Give back an entry that waits for something of this process, until `unpark`.

        It takes no place, and stays the head of its key. Nothing is written: after a crash it is
        simply claimed.
        """
        group = self._waiting[entry.lane].group_of(entry)
        if group is None:
            self._end(entry, again=True)
            return
        group.park()
        self._has_ended(entry, group)

    def unpark(self, entry: Entry) -> bool:
        """Let a parked entry be claimed again; false where another process works its group now."""
        group = self._waiting[entry.lane].group_of(entry)
        if group is None:
            return False
        group.unpark(entry)
        self._woken[entry.lane].set()
        return True

    def is_ours(self, entry: Entry) -> bool:
        """Whether a claimed entry may still be worked: asked just before something leaves for outside.

        A process that was stopped for longer than its leases last finds here that others went on.
        """
        if self._database.sole:
            return True
        return self.shards.is_kept and self._waiting[entry.lane].group_of(entry) is not None

    def let_go(self, entry: Entry) -> None:
        """Give back an entry whose work was not begun, or cannot be written down; nothing is written."""
        entry.was_in_hand = entry.was_in_hand or entry.in_hand
        self.counts[entry.lane].let_go += 1
        self._end(entry, again=True)

    def _end(self, entry: Entry, *, again: bool) -> None:
        group = self._waiting[entry.lane].group_of(entry)
        if group is None:  # its lease was lost meanwhile
            self._waiting[entry.lane].ended_elsewhere(entry)
        else:
            group.finished(entry, again=again)
        self._has_ended(entry, group)

    def _has_ended(self, entry: Entry, group: Group | None) -> None:
        if group is None or not group.in_flight:
            self.shards.has_ended(entry.lane, entry.group)
        self._woken[entry.lane].set()

    def _fence(self, entry: Entry) -> Fence:
        shard = None if self._database.sole else shard_of(entry.group)
        return Fence(entry.lane, shard, self._holder)

    async def _until_written(self, work: Callable[[Any, Sequence[Item]], Sequence[Result]], item: Item) -> Result:
        """Write, however often the store is away meanwhile: nobody else knows what is being written."""
        while True:
            try:
                return await self._database.join(work, item)
            except StoreAway:
                await asyncio.sleep(AWAY_S)


# fmt: off
_LEFT: Final = {  # how an entry with a defect is left in the store: may it have been sent, is it set aside
    (False, False): EntryState.OPEN,
    (True,  False): EntryState.IN_HAND,
    (False, True):  EntryState.SET_ASIDE,
    (True,  True):  EntryState.SET_ASIDE_IN_HAND,
}
# fmt: on
