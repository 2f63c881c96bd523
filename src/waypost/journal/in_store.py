"""The journal on a store: claims are held in memory under a lease, everything else is written.

A claim needs no write, because only the process that leases a shard works its groups. What a crash
must not lose is written: the entry itself, the in-hand mark, a release, and settling.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeVar

from waypost.base.clock import Clock
from waypost.base.logs import log
from waypost.journal.entry import Entry
from waypost.journal.lanes import (
    DEFECT_DELAYS_S,
    GROUP_WINDOW,
    PLANS,
    SHARDS,
    LanePlan,
    shard_of,
)
from waypost.journal.waiting import Pace, Waiting
from waypost.store.database import Database
from waypost.store.journal import (
    EntryState,
    Lane,
    Release,
    entries_after,
    forget_leases,
    give_back_leases,
    groups_of,
    release_entries,
    take_in_hand,
    take_leases,
)

Item = TypeVar("Item")

POLL_MS: Final = 5_000
"""How often the store is asked for groups that no wake-up told of: the safety net."""


class Journal:
    """Lanes of entries, claimed in batches, one at a time per order key.

    Args:
        database: open.
        clock: `now_ms` decides what is due; leases follow `real_ms`.
        holder: names this process in leases.
        lease_ms: how long a lease lasts unless renewed; unused where the store has one process.
        plans: how each lane is shared out.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        *,
        holder: str,
        lease_ms: int = 15_000,
        plans: Mapping[Lane, LanePlan] = PLANS,
    ) -> None:
        self._database = database
        self._clock = clock
        self._holder = holder
        self._lease_ms = lease_ms
        self.plans = plans
        self._waiting: dict[Lane, Waiting] = {lane: Waiting() for lane in Lane}
        self._woken: dict[Lane, asyncio.Event] = {lane: asyncio.Event() for lane in Lane}
        self._polled_ms: dict[Lane, int] = {}
        self._held_shards: dict[Lane, set[int]] = {lane: set[int]() for lane in Lane}
        self._leased_ms: dict[Lane, int] = {}
        self._closed = False
        self._log = log("journal")

    async def open(self) -> None:
        """Begin to hear of what is appended; where the store has one process, hold every shard."""
        self._database.on_append(self._hear)
        if self._database.sole:
            await self._database.write(forget_leases)
            for lane in Lane:
                self._held_shards[lane] = set(range(SHARDS))

    async def close(self) -> None:
        """Give the leases back, so that others go on at once."""
        self._closed = True
        if not self._database.sole:
            await self._database.write(give_back_leases, self._holder)

    async def claim(self, lane: Lane, *, at_most: int, pace: Pace | None = None) -> list[Entry]:
        """Due entries to work now: one of each key, oldest first, no group beyond its share.

        Each must be ended by `settle`, `release`, `release_defect` or `let_go`.
        """
        self._woken[lane].clear()  # before reading: what is appended meanwhile sets it again
        await self._keep_leases(lane)
        await self._read_on(lane)
        return self._waiting[lane].take(
            at_most=at_most, share=self.plans[lane].share, now_ms=self._clock.now_ms(), pace=pace
        )

    async def wait(self, lane: Lane) -> None:
        """Return when there may be something to claim."""
        now_ms = self._clock.now_ms()
        due_ms = self._waiting[lane].next_due_ms(self.plans[lane].share)
        until_ms = now_ms + POLL_MS if due_ms is None else min(due_ms, now_ms + POLL_MS)
        await self._clock.wait(self._woken[lane], until_ms=until_ms)

    def is_still(self, lane: Lane) -> bool:
        """Whether the lane has been looked through and nothing has been appended since."""
        return (
            lane in self._polled_ms
            and not self._woken[lane].is_set()
            and not self._waiting[lane].is_reading
        )

    def next_due_ms(self, lane: Lane) -> int | None:
        """When the next entry that this process holds may be worked; None when it holds none."""
        return self._waiting[lane].next_due_ms(self.plans[lane].share)

    def rouse(self, lane: Lane) -> None:
        """Let `wait` return."""
        self._woken[lane].set()

    async def take_in_hand(self, entries: Sequence[Entry]) -> None:
        """Mark entries, on disk, as being sent right now.

        When a mark cannot be written, that is raised once all have been tried. None counts as in
        hand then, and none may be sent.
        """
        positions = [entry.position for entry in entries]
        for mark in await self._database.join_all(take_in_hand, positions):
            if isinstance(mark, BaseException):
                raise mark
        for entry in entries:
            entry.in_hand = True

    async def settle(
        self, entry: Entry, work: Callable[[Any, Sequence[Item]], Sequence[Any]], item: Item
    ) -> None:
        """Hand the item to a write that deletes the entry with the state it changes; then let the key go on."""
        await self._database.join(work, item)
        self._end(entry, again=False)

    async def settle_all(
        self,
        pieces: Sequence[tuple[Entry, Item]],
        work: Callable[[Any, Sequence[Item]], Sequence[Any]],
    ) -> list[tuple[Entry, BaseException]]:
        """Settle many at once; give those that failed, each with its own error, still to be ended."""
        results = await self._database.join_all(work, [item for _, item in pieces])
        failed: list[tuple[Entry, BaseException]] = []
        for (entry, _), result in zip(pieces, results, strict=True):
            if isinstance(result, BaseException):
                failed.append((entry, result))
            else:
                self._end(entry, again=False)
        return failed

    async def release(
        self, entry: Entry, *, due_ms: int, note: str, leave_key: bool = False
    ) -> None:
        """Give an entry back, to be tried again from `due_ms` on.

        Args:
            entry: claimed.
            due_ms: not before then.
            note: why; kept.
            leave_key: its followers wait for it no longer.
        """
        key = f"{entry.order_key} late {entry.position}" if leave_key else entry.order_key
        release = Release(
            entry.position, due_ms, entry.attempt + 1, entry.defects, EntryState.OPEN, key, note
        )
        await self._database.join(release_entries, release)
        entry.due_ms = due_ms
        entry.attempt += 1
        entry.in_hand = entry.was_in_hand = False
        group = self._waiting[entry.lane].groups.get(entry.group)
        if leave_key and group is not None and group.works_on(entry):
            group.leave_key(entry, key)
            self._woken[entry.lane].set()
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
            ref=entry.ref,
            defects=defects,
            set_aside=set_aside,
            exc_info=error,
        )
        state = _LEFT[entry.was_in_hand, set_aside]
        delay_ms = 0 if set_aside else 1000 * DEFECT_DELAYS_S[defects - 1]
        due_ms = self._clock.now_ms() + delay_ms
        release = Release(
            entry.position, due_ms, entry.attempt, defects, state, entry.order_key, repr(error)
        )
        await self._database.join(release_entries, release)
        # Counted once it is written: a store that is away is nobody's defect.
        entry.due_ms, entry.defects = due_ms, defects
        self._end(entry, again=not set_aside)

    def park(self, entry: Entry) -> None:
        """Give back an entry that waits for something of this process, until `unpark`.

        It takes no place, and stays the head of its key. Nothing is written: after a crash it is
        simply claimed.
        """
        group = self._waiting[entry.lane].groups.get(entry.group)
        if group is not None and group.works_on(entry):
            group.park()

    def unpark(self, entry: Entry) -> bool:
        """Let a parked entry be claimed again; false where another process works its group now."""
        group = self._waiting[entry.lane].groups.get(entry.group)
        if group is None or not group.works_on(entry):
            return False
        group.unpark(entry)
        self._woken[entry.lane].set()
        return True

    def let_go(self, entry: Entry) -> None:
        """Give back an entry whose work was not begun, or cannot be written down; nothing is written."""
        entry.was_in_hand = entry.was_in_hand or entry.in_hand
        self._end(entry, again=True)

    def _end(self, entry: Entry, *, again: bool) -> None:
        group = self._waiting[entry.lane].groups.get(entry.group)
        if group is not None and group.works_on(entry):  # not when its lease was lost meanwhile
            group.finished(entry, again=again)
            self._woken[entry.lane].set()

    def _hear(self, appended: set[tuple[int, str]]) -> None:
        for number, group in appended:
            lane = Lane(number)
            if shard_of(group) in self._held_shards[lane]:
                self._waiting[lane].wake([group])
                self._woken[lane].set()

    async def _read_on(self, lane: Lane) -> None:
        waiting = self._waiting[lane]
        now_ms = self._clock.now_ms()
        if now_ms - self._polled_ms.get(lane, -POLL_MS) >= POLL_MS:
            self._polled_ms[lane] = now_ms
            names = await self._database.read(groups_of, lane)
            waiting.wake(name for name in names if shard_of(name) in self._held_shards[lane])
        groups = waiting.to_read()
        if not groups:
            return
        for group in groups:
            group.more = False  # what is appended from now on sets it again
            group.reading = True
        cursors = [(group.name, group.read_to, GROUP_WINDOW // 2) for group in groups]
        try:
            rows_of = await self._database.read(entries_after, lane, cursors)
        except BaseException:
            for group in groups:
                group.more = True
            raise
        finally:
            for group in groups:
                group.reading = False
        for group in groups:
            rows = rows_of[group.name]
            for row in rows:
                group.read_to = row.position
                group.add(_entry(lane, group.name, row))
            group.more = group.more or len(rows) == GROUP_WINDOW // 2

    async def _keep_leases(self, lane: Lane) -> None:
        if self._database.sole or self._closed:
            return
        now_ms = self._clock.real_ms()
        if now_ms - self._leased_ms.get(lane, -self._lease_ms) < self._lease_ms // 3:
            return
        self._leased_ms[lane] = now_ms
        held = await self._database.write(
            take_leases, lane, range(SHARDS), self._holder, now_ms, now_ms + self._lease_ms
        )
        lost = self._held_shards[lane] - held
        waiting = self._waiting[lane]
        waiting.forget(name for name in waiting.groups if shard_of(name) in lost)
        if held - self._held_shards[lane]:
            self._polled_ms.pop(lane, None)
        self._held_shards[lane] = held


# fmt: off
_LEFT: Final = {  # how an entry with a defect is left in the store: may it have been sent, is it set aside
    (False, False): EntryState.OPEN,
    (True,  False): EntryState.IN_HAND,
    (False, True):  EntryState.SET_ASIDE,
    (True,  True):  EntryState.SET_ASIDE_IN_HAND,
}
# fmt: on


def _entry(lane: Lane, group: str, row: Any) -> Entry:
    return Entry(
        position=row.position,
        lane=lane,
        group=group,
        order_key=row.order_key,
        ref=row.ref,
        due_ms=row.due_ms,
        attempt=row.attempt,
        defects=row.defects,
        was_in_hand=row.state == EntryState.IN_HAND,
    )
