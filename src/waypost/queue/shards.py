"""Which shards of the lanes this process works, where several processes share a store.

Each process takes its fair part of every lane that it works, renews its leases, and gives back what is
too much when another one comes. A process that cannot renew stops claiming before its leases run out
(decision 0052).
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.base.telemetry.logs import log
from waypost.queue.plans import LanePlan, shard_of
from waypost.queue.scheduling import Waiting
from waypost.store.contract import StoreAway
from waypost.store.database import Database
from waypost.store.queue.jobs import Lane
from waypost.store.queue.leases import SHARDS, Keeping, Share, forget_leases, give_back_leases, keep_leases

LEASES: Final = "leases"
"""What processes tell each other when one comes, goes, or has given shards back."""

AGAIN_S: Final = 0.3
"""How long after a renewal that failed the next one is tried."""

Gained = Callable[[Lane], None]


class Shards:
    """The leases of one process.

    Args:
        database: open.
        clock: its `real_ms` says when to renew.
        waiting: the entries held of each lane; those of shards that are lost are forgotten.
        plans: how each lane is worked.
        holder: names this process.
        lease_ms: how long a lease lasts unless renewed.
        lanes: those that this process works.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        waiting: Mapping[Lane, Waiting],
        *,
        plans: Mapping[Lane, LanePlan],
        holder: str,
        lease_ms: int,
        lanes: Sequence[Lane],
    ) -> None:
        self._database = database
        self._clock = clock
        self._waiting = waiting
        self._plans = plans
        self._holder = holder
        self._lease_ms = lease_ms
        self._lanes = tuple(lanes)
        self.held: dict[Lane, set[int]] = {lane: set[int]() for lane in Lane}
        """The shards whose groups may be claimed now."""
        self._leaving: dict[Lane, set[int]] = {lane: set[int]() for lane in Lane}
        self._resting: dict[Lane, dict[int, int]] = {lane: dict[int, int]() for lane in Lane}
        self._began = False
        self._renew_at_ms = 0
        self._asked_again = False
        self._until_ms = 0
        self._keeping = asyncio.Lock()
        self._stir = asyncio.Event()
        self._keeper: asyncio.Task[None] | None = None
        self._gained: list[Gained] = []
        self._closed = False
        self._log = log("leases")

    def on_gained(self, gained: Gained) -> None:
        """Call this when shards of a lane have become this process's."""
        self._gained.append(gained)

    async def open(self) -> None:
        """Hold every shard where the store is this process's alone; else none before there is work."""
        if self._database.sole:
            await self._database.write(forget_leases)
            for lane in self._lanes:
                self.held[lane] = set(range(SHARDS))
            return
        self._database.on_told(self._told)

    def start(self) -> None:
        """Take and keep leases from now on, also while nothing is claimed.

        A process that works no lane is in the list of processes all the same: the doctor reads there
        who is at work.
        """
        if not self._database.sole:
            self._stir.set()
            self._keeper = asyncio.create_task(self._keep_on())

    async def close(self) -> None:
        """Give every lease back, so that others go on at once."""
        self._closed = True
        if self._database.sole:
            return
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.gather(self._keeper, return_exceptions=True)
        if not self._began:
            return
        async with self._keeping:  # a renewal that is under way would come after
            try:
                await self._database.join(_give_back, (self._holder, self._clock.real_ms()))
            except StoreAway:
                self._log.warning("leases could not be given back; they run out by themselves")
            else:
                self._database.tell(LEASES, "")

    async def keep(self) -> None:
        """Renew, take and give back, if it is time to.

        Raises:
            StoreAway: and nothing may be claimed once what is held has run out.
        """
        if self._database.sole or self._closed:
            return
        now_ms = self._clock.real_ms()
        if self._until_ms <= now_ms:
            self._lose({lane: set[int]() for lane in self._lanes}, leaving_too=True)
        if now_ms >= self._renew_at_ms:
            await self._renew()

    @property
    def is_kept(self) -> bool:
        """Whether the leases hold: a process that cannot renew them works nothing."""
        return self._database.sole or self._clock.real_ms() < self._until_ms

    def not_before_ms(self, lane: Lane, group: str) -> int:
        """Until when a group rests because its shard was another's a moment ago; 0 for not at all."""
        resting = self._resting[lane]
        return resting.get(shard_of(group), 0) if resting else 0

    def doubt(self, lane: Lane, groups: Iterable[str]) -> None:
        """A write has shown that the leases of these groups are not this process's any more."""
        shards = {shard_of(group) for group in groups}
        self._lose({lane: (self.held[lane] | self._leaving[lane]) - shards}, leaving_too=True)
        self._renew_soon()

    def has_ended(self, lane: Lane, group: str) -> None:
        """Nothing of a group is being worked any more: where its shard is on its way out, let it go."""
        if self._leaving[lane] and shard_of(group) in self._leaving[lane]:
            self._renew_soon()

    def _renew_soon(self) -> None:
        self._asked_again = True
        self._renew_at_ms = 0
        self._stir.set()

    async def _renew(self) -> None:
        async with self._keeping:
            asked_ms = self._clock.real_ms()
            if self._closed or asked_ms < self._renew_at_ms:  # another has done it meanwhile
                return
            idle = {lane: self._idle(lane) for lane in self._lanes}
            asked = Keeping(self._holder, self._lanes, idle, self._lease_ms, asked_ms)
            self._asked_again = False
            share: Share = await self._database.join(keep_leases, asked)
            if not self._asked_again:
                self._renew_at_ms = asked_ms + self._lease_ms // 3
            self._until_ms = asked_ms + self._lease_ms
            self._lose_taken(share)
            for lane in self._lanes:
                still_worked = {shard_of(name) for name in self._waiting[lane].ending}
                leaving = (self._leaving[lane] - idle[lane]) | still_worked
                self._leaving[lane] = leaving & share.held[lane]
            held = {lane: share.held[lane] - self._leaving[lane] for lane in self._lanes}
            gained = [lane for lane in self._lanes if held[lane] - self.held[lane]]
            self._lose(held)
            self.held |= held
            self._let_rest(share)
            too_much = [self._leave(lane, share) for lane in self._lanes]
        for lane in gained:
            for tell in self._gained:
                tell(lane)
        if not self._began or any(idle.values()):
            self._database.tell(LEASES, "")
        self._began = True
        if any(too_much):
            self._renew_soon()

    def _lose(self, held: Mapping[Lane, set[int]], *, leaving_too: bool = False) -> None:
        for lane, shards in held.items():
            kept = shards if leaving_too else shards | self._leaving[lane]
            lost = (self.held[lane] | self._leaving[lane]) - kept
            if lost:
                waiting = self._waiting[lane]
                waiting.forget([name for name in waiting.groups if shard_of(name) in lost])
                self.held[lane] = self.held[lane] - lost
                self._leaving[lane] = self._leaving[lane] - lost

    def _lose_taken(self, share: Share) -> None:
        """Forget what is held of shards that were taken just now: the store knows that they were not ours.

        Our own clock may not: a machine that its hypervisor has stopped knows nothing of it, and the
        store's may have been put on. Others may have worked what we hold.
        """
        taken = {lane: {one.shard for one in share.taken[lane]} for lane in self._lanes}
        self._lose({lane: self.held[lane] - taken[lane] for lane in self._lanes})

    def _let_rest(self, share: Share) -> None:
        """What was another's a moment ago rests for as long as that one's pace may still count."""
        now_ms = self._clock.now_ms()
        for lane in self._lanes:
            rests_ms = self._plans[lane].rests_ms
            resting = {shard: until for shard, until in self._resting[lane].items() if until > now_ms}
            for one in share.taken[lane]:
                if one.rested_ms is not None and one.rested_ms < rests_ms:
                    resting[one.shard] = now_ms + rests_ms - one.rested_ms
            self._resting[lane] = resting

    def _leave(self, lane: Lane, share: Share) -> bool:
        """Stop claiming from shards beyond the fair part, the idle ones first."""
        surplus = len(self.held[lane]) - share.most[lane]
        if surplus <= 0:
            return False
        groups = self._waiting[lane].groups
        load = dict.fromkeys(self.held[lane], 0)
        for name, group in groups.items():
            shard = shard_of(name)
            if shard in load:
                load[shard] += 1 + group.in_flight
        going = set(sorted(load, key=lambda shard: (load[shard], shard))[:surplus])
        self.held[lane] = self.held[lane] - going
        self._leaving[lane] |= going
        for name, group in groups.items():
            if shard_of(name) in going:
                group.leave()
        return True

    def _idle(self, lane: Lane) -> set[int]:
        """The shards on their way out of which nothing is being worked any more."""
        leaving = self._leaving[lane]
        if not leaving:
            return set()
        groups = self._waiting[lane].groups
        busy = {shard_of(name) for name, group in groups.items() if group.in_flight or group.is_reading}
        busy |= {shard_of(name) for name in self._waiting[lane].ending}
        idle = leaving - busy
        self._waiting[lane].forget([name for name in groups if shard_of(name) in idle])
        return idle

    def _told(self, subject: str, words: str) -> None:
        if subject == LEASES:
            self._renew_soon()

    async def _keep_on(self) -> None:
        """Renew while entries are being worked that take longer than a lease lasts."""
        while True:
            wait_ms = max(0, self._renew_at_ms - self._clock.real_ms())
            try:
                async with asyncio.timeout(min(wait_ms, self._lease_ms / 3) / 1000):
                    await self._stir.wait()
            except TimeoutError:
                pass
            self._stir.clear()
            try:
                await self.keep()
            except StoreAway:
                await asyncio.sleep(AGAIN_S)
            except Exception:  # noqa: BLE001  logged; whoever keeps the leases must outlive a defect
                self._log.exception("leases could not be renewed; trying again")
                await asyncio.sleep(1)


def _give_back(connection: Connection, holders: Sequence[tuple[str, int]]) -> list[None]:
    for holder, now_ms in holders:
        give_back_leases(connection, holder, now_ms)
    return [None] * len(holders)
