"""Which shards of the queues this process works, where several processes share a store.

Each process takes its fair part of every queue that it works, renews its leases, and gives back what is
too much when another one comes. A process that cannot renew stops claiming before its leases run out
(decision 0052).
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.base.telemetry.logs import log
from waypost.queue.plans import QueuePlan, shard_of
from waypost.queue.scheduling import QueueScheduler
from waypost.store.contract import StoreAway
from waypost.store.database import Database
from waypost.store.queue.jobs import QueueName
from waypost.store.queue.leases import SHARDS, Keeping, Share, forget_leases, give_back_leases, keep_leases

LEASES: Final = "leases"
"""What processes tell each other when one comes, goes, or has given shards back."""

AGAIN_S: Final = 0.3
"""How long after a renewal that failed the next one is tried."""

Gained = Callable[[QueueName], None]


class Shards:
    """The leases of one process.

    Args:
        database: open.
        clock: its `real_ms` says when to renew.
        waiting: the entries held of each queue; those of shards that are lost are forgotten.
        plans: how each queue is worked.
        holder: names this process.
        lease_ms: how long a lease lasts unless renewed.
        queue_names: those that this process works.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        waiting: Mapping[QueueName, QueueScheduler],
        *,
        plans: Mapping[QueueName, QueuePlan],
        holder: str,
        lease_ms: int,
        queue_names: Sequence[QueueName],
    ) -> None:
        self._database = database
        self._clock = clock
        self._waiting = waiting
        self._plans = plans
        self._holder = holder
        self._lease_ms = lease_ms
        self._queue_names = tuple(queue_names)
        self.held: dict[QueueName, set[int]] = {queue_name: set[int]() for queue_name in QueueName}
        """The shards whose groups may be claimed now."""
        self._leaving: dict[QueueName, set[int]] = {queue_name: set[int]() for queue_name in QueueName}
        self._resting: dict[QueueName, dict[int, int]] = {queue_name: dict[int, int]() for queue_name in QueueName}
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
        """Call this when shards of a queue have become this process's."""
        self._gained.append(gained)

    async def open(self) -> None:
        """Hold every shard where the store is this process's alone; else none before there is work."""
        if self._database.sole:
            await self._database.write(forget_leases)
            for queue_name in self._queue_names:
                self.held[queue_name] = set(range(SHARDS))
            return
        self._database.on_notification(self._told)

    def start(self) -> None:
        """Take and keep leases from now on, also while nothing is claimed.

        A process that works no queue is in the list of processes all the same: the doctor reads there
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
                await self._database.join(_release_leases, (self._holder, self._clock.real_ms()))
            except StoreAway:
                self._log.warning("leases could not be given back; they run out by themselves")
            else:
                self._database.notify(LEASES, "")

    async def keep(self) -> None:
        """Renew, take and give back, if it is time to.

        Raises:
            StoreAway: and nothing may be claimed once what is held has run out.
        """
        if self._database.sole or self._closed:
            return
        now_ms = self._clock.real_ms()
        if self._until_ms <= now_ms:
            self._drop_shards({queue_name: set[int]() for queue_name in self._queue_names}, leaving_too=True)
        if now_ms >= self._renew_at_ms:
            await self._renew()

    @property
    def is_kept(self) -> bool:
        """Whether the leases hold: a process that cannot renew them works nothing."""
        return self._database.sole or self._clock.real_ms() < self._until_ms

    def not_before_ms(self, queue_name: QueueName, group: str) -> int:
        """Until when a group rests because its shard was another's a moment ago; 0 for not at all."""
        resting = self._resting[queue_name]
        return resting.get(shard_of(group), 0) if resting else 0

    def mark_lease_lost(self, queue_name: QueueName, groups: Iterable[str]) -> None:
        """A write has shown that the leases of these groups are not this process's any more."""
        shards = {shard_of(group) for group in groups}
        self._drop_shards({queue_name: (self.held[queue_name] | self._leaving[queue_name]) - shards}, leaving_too=True)
        self._renew_soon()

    def has_ended(self, queue_name: QueueName, group: str) -> None:
        """Nothing of a group is being worked any more: where its shard is on its way out, let it go."""
        if self._leaving[queue_name] and shard_of(group) in self._leaving[queue_name]:
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
            idle = {queue_name: self._idle(queue_name) for queue_name in self._queue_names}
            asked = Keeping(self._holder, self._queue_names, idle, self._lease_ms, asked_ms)
            self._asked_again = False
            share: Share = await self._database.join(keep_leases, asked)
            if not self._asked_again:
                self._renew_at_ms = asked_ms + self._lease_ms // 3
            self._until_ms = asked_ms + self._lease_ms
            self._lose_taken(share)
            for queue_name in self._queue_names:
                still_worked = {shard_of(name) for name in self._waiting[queue_name].ending}
                leaving = (self._leaving[queue_name] - idle[queue_name]) | still_worked
                self._leaving[queue_name] = leaving & share.held[queue_name]
            held = {queue_name: share.held[queue_name] - self._leaving[queue_name] for queue_name in self._queue_names}
            gained = [queue_name for queue_name in self._queue_names if held[queue_name] - self.held[queue_name]]
            self._drop_shards(held)
            self.held |= held
            self._cool_down(share)
            too_much = [self._leave(queue_name, share) for queue_name in self._queue_names]
        for queue_name in gained:
            for tell in self._gained:
                tell(queue_name)
        if not self._began or any(idle.values()):
            self._database.notify(LEASES, "")
        self._began = True
        if any(too_much):
            self._renew_soon()

    def _drop_shards(self, held: Mapping[QueueName, set[int]], *, leaving_too: bool = False) -> None:
        for queue_name, shards in held.items():
            kept = shards if leaving_too else shards | self._leaving[queue_name]
            lost = (self.held[queue_name] | self._leaving[queue_name]) - kept
            if lost:
                waiting = self._waiting[queue_name]
                waiting.forget([name for name in waiting.groups if shard_of(name) in lost])
                self.held[queue_name] = self.held[queue_name] - lost
                self._leaving[queue_name] = self._leaving[queue_name] - lost

    def _lose_taken(self, share: Share) -> None:
        """Forget what is held of shards that were taken just now: the store knows that they were not ours.

        Our own clock may not: a machine that its hypervisor has stopped knows nothing of it, and the
        store's may have been put on. Others may have worked what we hold.
        """
        taken = {queue_name: {one.shard for one in share.taken[queue_name]} for queue_name in self._queue_names}
        self._drop_shards({queue_name: self.held[queue_name] - taken[queue_name] for queue_name in self._queue_names})

    def _cool_down(self, share: Share) -> None:
        """What was another's a moment ago rests for as long as that one's pace may still count."""
        now_ms = self._clock.now_ms()
        for queue_name in self._queue_names:
            rests_ms = self._plans[queue_name].rests_ms
            resting = {shard: until for shard, until in self._resting[queue_name].items() if until > now_ms}
            for one in share.taken[queue_name]:
                if one.rested_ms is not None and one.rested_ms < rests_ms:
                    resting[one.shard] = now_ms + rests_ms - one.rested_ms
            self._resting[queue_name] = resting

    def _leave(self, queue_name: QueueName, share: Share) -> bool:
        """Stop claiming from shards beyond the fair part, the idle ones first."""
        surplus = len(self.held[queue_name]) - share.most[queue_name]
        if surplus <= 0:
            return False
        groups = self._waiting[queue_name].groups
        load = dict.fromkeys(self.held[queue_name], 0)
        for name, group in groups.items():
            shard = shard_of(name)
            if shard in load:
                load[shard] += 1 + group.in_flight
        going = set(sorted(load, key=lambda shard: (load[shard], shard))[:surplus])
        self.held[queue_name] = self.held[queue_name] - going
        self._leaving[queue_name] |= going
        for name, group in groups.items():
            if shard_of(name) in going:
                group.leave()
        return True

    def _idle(self, queue_name: QueueName) -> set[int]:
        """The shards on their way out of which nothing is being worked any more."""
        leaving = self._leaving[queue_name]
        if not leaving:
            return set()
        groups = self._waiting[queue_name].groups
        busy = {shard_of(name) for name, group in groups.items() if group.in_flight or group.is_reading}
        busy |= {shard_of(name) for name in self._waiting[queue_name].ending}
        idle = leaving - busy
        self._waiting[queue_name].forget([name for name in groups if shard_of(name) in idle])
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


def _release_leases(connection: Connection, holders: Sequence[tuple[str, int]]) -> list[None]:
    for holder, now_ms in holders:
        give_back_leases(connection, holder, now_ms)
    return [None] * len(holders)
