"""The leases on shards of the queues, where several processes share a store.

Each process takes its fair part of every queue that it works, renews its leases, and releases the
surplus when another process joins. A process that cannot renew stops claiming before its leases run out
(decision 0052).
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.base.telemetry.logs import log
from waypost.queue.concurrency_groups import QueueScheduler
from waypost.queue.plans import QueuePlan, shard_of
from waypost.store.contract import StoreUnavailable
from waypost.store.database import Database
from waypost.store.queue.job_subjects import QueueName
from waypost.store.queue.leases import (
    SHARD_COUNT,
    LeaseRequest,
    LeaseShare,
    delete_leases,
    release_leases,
    renew_leases,
)

LEASES: Final = "leases"
"""Subject of the notification that a process has joined, has left, or has released shards."""

LEASE_RETRY_S: Final = 0.3
"""Time from a renewal that failed to the next one."""


class Shards:
    """The leases of one process.

    Args:
        clock: its `real_ms` decides when to renew.
        schedulers: the scheduler of each queue; groups of shards that are lost are dropped from it.
        plans: the limits of each queue.
        holder: names this process.
        lease_ms: how long a lease lasts unless renewed.
        queue_names: those that this process works.
        on_gained: called with each queue of which this process has gained shards.
    """

    def __init__(
        self,
        database: Database,
        clock: Clock,
        schedulers: Mapping[QueueName, QueueScheduler],
        *,
        plans: Mapping[QueueName, QueuePlan],
        holder: str,
        lease_ms: int,
        queue_names: Sequence[QueueName],
        on_gained: Callable[[QueueName], None],
    ) -> None:
        self._database = database
        self._clock = clock
        self._schedulers = schedulers
        self._plans = plans
        self._holder = holder
        self._lease_ms = lease_ms
        self._queue_names = tuple(queue_names)
        self.held: dict[QueueName, set[int]] = {queue_name: set[int]() for queue_name in QueueName}
        """The shards whose groups may be claimed now."""
        self.taken: dict[QueueName, Counter[int]] = {queue_name: Counter[int]() for queue_name in QueueName}
        """How often this process has taken each shard that it did not hold; none where no other process is there."""
        self._leaving: dict[QueueName, set[int]] = {queue_name: set[int]() for queue_name in QueueName}
        self._cooldowns: dict[QueueName, dict[int, int]] = {queue_name: dict[int, int]() for queue_name in QueueName}
        self._has_renewed = False
        self._renew_at_ms = 0
        self._is_renewal_requested = False
        self._leases_end_ms = 0
        self._renewal_lock = asyncio.Lock()
        self._wake_event = asyncio.Event()
        self._renewal_task: asyncio.Task[None] | None = None
        self._on_gained = on_gained
        self._closed = False
        self._log = log("leases")

    async def open(self) -> None:
        """Hold every shard where the store is this process's alone; otherwise none before there is work."""
        if self._database.is_exclusive:
            await self._database.write(delete_leases)
            for queue_name in self._queue_names:
                self.held[queue_name] = set(range(SHARD_COUNT))
            return
        self._database.add_notification_listener(self._receive_notification)

    def start(self) -> None:
        """Take and renew leases from now on, also while nothing is claimed.

        A process that works no queue is in the list of processes all the same: `doctor` reads there which
        processes run.
        """
        if not self._database.is_exclusive:
            self._wake_event.set()
            self._renewal_task = asyncio.create_task(self._run_renewals())

    async def close(self) -> None:
        """Release every lease, so that other processes continue at once."""
        self._closed = True
        if self._database.is_exclusive:
            return
        if self._renewal_task is not None:
            self._renewal_task.cancel()
            await asyncio.gather(self._renewal_task, return_exceptions=True)
        if not self._has_renewed:
            return
        async with self._renewal_lock:  # a renewal that is running would come after
            try:
                await self._database.join(_release_leases, (self._holder, self._clock.real_ms()))
            except StoreUnavailable:
                self._log.warning("leases could not be released; they expire by themselves")
            else:
                self._database.notify(LEASES, "")

    async def renew_if_due(self) -> None:
        """Renew, take and release leases, if it is time to.

        Raises:
            StoreUnavailable: the store cannot be reached; nothing may be claimed once the leases have run out.
        """
        if self._database.is_exclusive or self._closed:
            return
        now_ms = self._clock.real_ms()
        if self._leases_end_ms <= now_ms:
            self._drop_shards({queue_name: set[int]() for queue_name in self._queue_names}, leaving_too=True)
        if now_ms >= self._renew_at_ms:
            await self._renew()

    @property
    def are_leases_valid(self) -> bool:
        """True if the leases are valid: a process that cannot renew them works nothing."""
        return self._database.is_exclusive or self._clock.real_ms() < self._leases_end_ms

    def cooldown_end_ms(self, queue_name: QueueName, group: str) -> int:
        """Return until when a group waits because its shard was another process's just now; 0 for not at all."""
        resting = self._cooldowns[queue_name]
        return resting.get(shard_of(group), 0) if resting else 0

    def mark_lease_lost(self, queue_name: QueueName, groups: Iterable[str]) -> None:
        """Drop the shards of these groups: a write has shown that their leases are no longer this process's."""
        shards = {shard_of(group) for group in groups}
        self._drop_shards({queue_name: (self.held[queue_name] | self._leaving[queue_name]) - shards}, leaving_too=True)
        self._renew_soon()

    def renew_if_leaving(self, queue_name: QueueName, group: str) -> None:
        """Renew soon if a group's shard is to be released: nothing of the group is being worked any more."""
        if self._leaving[queue_name] and shard_of(group) in self._leaving[queue_name]:
            self._renew_soon()

    def _renew_soon(self) -> None:
        self._is_renewal_requested = True
        self._renew_at_ms = 0
        self._wake_event.set()

    async def _renew(self) -> None:
        async with self._renewal_lock:
            started_ms = self._clock.real_ms()
            if self._closed or started_ms < self._renew_at_ms:  # another task has done it meanwhile
                return
            idle = {queue_name: self._drop_idle_shards(queue_name) for queue_name in self._queue_names}
            request = LeaseRequest(self._holder, self._queue_names, idle, self._lease_ms, started_ms)
            self._is_renewal_requested = False
            share: LeaseShare = await self._database.join(renew_leases, request)
            if not self._is_renewal_requested:
                self._renew_at_ms = started_ms + self._lease_ms // 3
            self._leases_end_ms = started_ms + self._lease_ms
            self._drop_newly_leased(share)
            for queue_name in self._queue_names:
                self.taken[queue_name].update(lease.shard for lease in share.claimed[queue_name])
                still_worked = {shard_of(name) for name in self._schedulers[queue_name].dropped_groups}
                leaving = (self._leaving[queue_name] - idle[queue_name]) | still_worked
                self._leaving[queue_name] = leaving & share.held[queue_name]
            held = {queue_name: share.held[queue_name] - self._leaving[queue_name] for queue_name in self._queue_names}
            gained = [queue_name for queue_name in self._queue_names if held[queue_name] - self.held[queue_name]]
            self._drop_shards(held)
            self.held |= held
            self._cool_down(share)
            too_much = [self._release_surplus(queue_name, share) for queue_name in self._queue_names]
        for queue_name in gained:
            self._on_gained(queue_name)
        if not self._has_renewed or any(idle.values()):
            self._database.notify(LEASES, "")
        self._has_renewed = True
        if any(too_much):
            self._renew_soon()

    def _drop_shards(self, held: Mapping[QueueName, set[int]], *, leaving_too: bool = False) -> None:
        for queue_name, shards in held.items():
            kept = shards if leaving_too else shards | self._leaving[queue_name]
            lost = (self.held[queue_name] | self._leaving[queue_name]) - kept
            if lost:
                scheduler = self._schedulers[queue_name]
                scheduler.drop_groups([name for name in scheduler.groups if shard_of(name) in lost])
                self.held[queue_name] = self.held[queue_name] - lost
                self._leaving[queue_name] = self._leaving[queue_name] - lost

    def _drop_newly_leased(self, share: LeaseShare) -> None:
        """Drop the jobs of shards that were taken just now: the store knows that they were not ours before.

        Our own clock may not: a machine that its hypervisor has stopped knows nothing of it, and the
        store's clock may have been moved forward. Others may have worked these jobs.
        """
        newly_leased = {
            queue_name: {lease.shard for lease in share.claimed[queue_name]} for queue_name in self._queue_names
        }
        self._drop_shards(
            {queue_name: self.held[queue_name] - newly_leased[queue_name] for queue_name in self._queue_names}
        )

    def _cool_down(self, share: LeaseShare) -> None:
        """Make shards that were another process's just now wait for as long as its pace may still count."""
        now_ms = self._clock.now_ms()
        for queue_name in self._queue_names:
            rests_ms = self._plans[queue_name].cooldown_ms
            cooldowns = {shard: until for shard, until in self._cooldowns[queue_name].items() if until > now_ms}
            for lease in share.claimed[queue_name]:
                if lease.idle_ms is not None and lease.idle_ms < rests_ms:
                    cooldowns[lease.shard] = now_ms + rests_ms - lease.idle_ms
            self._cooldowns[queue_name] = cooldowns

    def _release_surplus(self, queue_name: QueueName, share: LeaseShare) -> bool:
        """Stop claiming from shards beyond the fair part, the idle ones first; return False if there are none."""
        surplus = len(self.held[queue_name]) - share.max_shards[queue_name]
        if surplus <= 0:
            return False
        groups = self._schedulers[queue_name].groups
        load = dict.fromkeys(self.held[queue_name], 0)
        for name, group in groups.items():
            shard = shard_of(name)
            if shard in load:
                load[shard] += 1 + group.in_flight
        surplus_shards = set(sorted(load, key=lambda shard: (load[shard], shard))[:surplus])
        self.held[queue_name] = self.held[queue_name] - surplus_shards
        self._leaving[queue_name] |= surplus_shards
        for name, group in groups.items():
            if shard_of(name) in surplus_shards:
                group.is_leaving = True
        return True

    def _drop_idle_shards(self, queue_name: QueueName) -> set[int]:
        """Return the shards to be released of which nothing is being worked any more; drop their groups."""
        leaving = self._leaving[queue_name]
        if not leaving:
            return set()
        groups = self._schedulers[queue_name].groups
        busy = {shard_of(name) for name, group in groups.items() if group.in_flight or group.is_reading}
        busy |= {shard_of(name) for name in self._schedulers[queue_name].dropped_groups}
        idle = leaving - busy
        self._schedulers[queue_name].drop_groups([name for name in groups if shard_of(name) in idle])
        return idle

    def _receive_notification(self, subject: str, payload: str) -> None:
        if subject == LEASES:
            self._renew_soon()

    async def _run_renewals(self) -> None:
        """Renew also while jobs are being worked that take longer than a lease lasts."""
        while True:
            wait_ms = max(0, self._renew_at_ms - self._clock.real_ms())
            try:
                async with asyncio.timeout(min(wait_ms, self._lease_ms / 3) / 1000):
                    await self._wake_event.wait()
            except TimeoutError:
                pass
            self._wake_event.clear()
            try:
                await self.renew_if_due()
            except StoreUnavailable:
                await asyncio.sleep(LEASE_RETRY_S)
            except Exception:  # noqa: BLE001  logged; the renewals must outlive a defect
                self._log.exception("leases could not be renewed; trying again")
                await asyncio.sleep(1)


def _release_leases(connection: Connection, holders: Sequence[tuple[str, int]]) -> list[None]:
    for holder, now_ms in holders:
        release_leases(connection, holder, now_ms)
    return [None] * len(holders)
