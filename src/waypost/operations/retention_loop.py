"""Deletes data whose retention is over, alongside the pipeline: a small part at a time, with pauses between.

On PostgreSQL it also creates the partitions of tomorrow, and drops those that are no longer needed.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Final, TypeVar

from waypost.base.clock import DAY_MS, Clock
from waypost.base.telemetry.logs import log
from waypost.store.database import Database
from waypost.store.retention.columns import RetentionPeriods
from waypost.store.retention.partitions import (
    attach_partition,
    drop_partition,
    floor_id,
    is_partition_in_use,
    missing_partitions,
    partition_start_ms,
    past_partitions,
)
from waypost.store.retention.partner_rules import (
    PARTITION_DELAY_MS,
    PARTNER_RULES,
    PartnerScan,
    apply_own_periods,
    list_own_periods,
    run_partner_batch,
)
from waypost.store.retention.rules import RETENTION_RULES, RetentionRule, begin_retention_run

Result = TypeVar("Result")

RETENTION_EVERY_MS: Final = 60 * 60 * 1000
RETENTION_START_DELAY_MS: Final = 60 * 1000
"""Delay after the start, which has more urgent things to do."""
RETENTION_REST_FACTOR: Final = 4
"""The pipeline gets four fifths of the time, and a turn the rest."""


class RetentionLoop:
    """Runs a minute after the start and then every hour; of several processes on one store, only one.

    Args:
        rest_factor: how many times as long as a transaction took is waited before the next.

    Attributes:
        transactions: how many transactions have been run, by rule.
    """

    def __init__(
        self, database: Database, clock: Clock, keep: RetentionPeriods, *, rest_factor: float = RETENTION_REST_FACTOR
    ) -> None:
        self._rest_factor = rest_factor
        self._database = database
        self._clock = clock
        self._keep = keep
        self._stopped = asyncio.Event()
        self._log = log("retention")
        self.transactions: Counter[str] = Counter()

    async def run(self) -> None:
        """Run turns until `stop`; a store that cannot be reached makes it wait for the next time."""
        await self._clock.wait(self._stopped, until_ms=self._clock.now_ms() + RETENTION_START_DELAY_MS)
        while not self._stopped.is_set():
            try:
                if await self._database.write_in_background(
                    begin_retention_run, self._clock.now_ms(), RETENTION_EVERY_MS // 2
                ):
                    await self.run_turn()
            except Exception:  # noqa: BLE001  logged; the next turn does what this one did not
                self._log.exception("expired data could not be deleted")
            await self._clock.wait(self._stopped, until_ms=self._clock.now_ms() + RETENTION_EVERY_MS)

    async def run_turn(self) -> None:
        """Delete everything whose retention is over."""
        has_ranges = self._database.engine == "postgresql"
        if has_ranges:
            for partition in await self._database.read(missing_partitions, self._clock.now_ms()):
                await self._run_transaction(attach_partition, partition)
        for rule in RETENTION_RULES:
            if not rule.is_due(self._keep):
                continue
            before_ms = self._clock.now_ms() - rule.period.days(self._keep) * DAY_MS
            if has_ranges:
                before_ms = await self._drop_partitions(rule, before_ms)
            after: str | None = ""
            while after is not None and not self._stopped.is_set():
                after = await self._run_transaction(rule.delete_batch, before_ms, after)
                self.transactions[rule.name] += 1
        for partner_id, own in (await self._database.read(list_own_periods)).items():
            await self._run_partner_rules(partner_id, apply_own_periods(self._keep, own))

    def stop(self) -> None:
        """Make `run` return."""
        self._stopped.set()

    async def _run_partner_rules(self, partner_id: int, own: RetentionPeriods) -> None:
        """Delete what a partner with shorter periods has beyond them."""
        for rule in PARTNER_RULES:
            days, service_days = rule.period.days(own), rule.period.days(self._keep)
            if days >= service_days:
                continue
            now_ms = self._clock.now_ms()
            from_ms = now_ms - service_days * DAY_MS - PARTITION_DELAY_MS
            scan = PartnerScan(partner_id, from_ms, now_ms - days * DAY_MS, now_ms, is_first=True)
            is_more = True
            while is_more and not self._stopped.is_set():
                is_more = await self._run_transaction(run_partner_batch, rule, scan)
                self.transactions[f"partner {rule.name}"] += 1
                scan = replace(scan, is_first=False)

    async def _drop_partitions(self, rule: RetentionRule, before_ms: int) -> int:
        """Drop the partitions that are past; return the time up to which the rest is deleted row by row."""
        for table in rule.partitioned_tables:
            for partition in await self._database.read(past_partitions, table, floor_id(before_ms)):
                if not self._stopped.is_set() and not await self._run_transaction(is_partition_in_use, partition):
                    await self._run_transaction(drop_partition, partition)
            before_ms = await self._database.read(partition_start_ms, table, before_ms)
        return before_ms

    async def _run_transaction(self, work: Callable[..., Result], *args: Any) -> Result:
        """Run one transaction, and then pause to leave the store to others."""
        began_s = time.monotonic()
        result = await self._database.write_in_background(work, *args)
        rest_s = min(self._rest_factor * (time.monotonic() - began_s), 1)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), rest_s)
        return result
