"""Deletes data whose retention is over, beside the pipeline: a small part at a time, with pauses between.

On PostgreSQL it also creates the partitions of tomorrow, and drops those that are no longer needed.
"""

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable
from typing import Any, Final, TypeVar

from waypost.base.clock import DAY_MS, Clock
from waypost.base.telemetry.logs import log
from waypost.store.database import Database
from waypost.store.retention.partitions import (
    add_part,
    begin_of_range,
    drop_part,
    floor_id,
    holds_open,
    missing_parts,
    past_parts,
)
from waypost.store.retention.rules import RULES, Keep, Rule, begin_turn

Result = TypeVar("Result")

EVERY_MS: Final = 60 * 60 * 1000
FIRST_MS: Final = 60 * 1000
"""Delay after the start, which has more urgent things to do."""
REST: Final = 4
"""The pipeline gets four fifths of the time, and a turn the rest."""


class Retention:
    """Runs a minute after the start and then every hour; of several processes on one store, only one.

    Args:
        rest: how many times as long as a transaction took is waited before the next.

    Attributes:
        forgotten: how many transactions have been run, by rule.
    """

    def __init__(self, database: Database, clock: Clock, keep: Keep, *, rest: float = REST) -> None:
        self._rest = rest
        self._database = database
        self._clock = clock
        self._keep = keep
        self._stopped = asyncio.Event()
        self._log = log("retention")
        self.forgotten: Counter[str] = Counter()

    async def run(self) -> None:
        """Run turns until `stop`; a store that cannot be reached makes it wait for the next time."""
        await self._clock.wait(self._stopped, until_ms=self._clock.now_ms() + FIRST_MS)
        while not self._stopped.is_set():
            try:
                if await self._database.tidy(begin_turn, self._clock.now_ms(), EVERY_MS // 2):
                    await self.turn()
            except Exception:  # noqa: BLE001  logged; the next turn does what this one did not
                self._log.exception("expired data could not be deleted")
            await self._clock.wait(self._stopped, until_ms=self._clock.now_ms() + EVERY_MS)

    async def turn(self) -> None:
        """Delete everything whose retention is over."""
        has_ranges = self._database.engine == "postgresql"
        if has_ranges:
            await self._add_parts()
        for rule in RULES:
            before_ms = self._clock.now_ms() - rule.days(self._keep) * DAY_MS
            if has_ranges:
                before_ms = await self._drop_parts(rule, before_ms)
            after: str | None = ""
            while after is not None and not self._stopped.is_set():
                after = await self._piece(rule.forget, before_ms, after)
                self.forgotten[rule.name] += 1

    def stop(self) -> None:
        """Make `run` return."""
        self._stopped.set()

    async def _add_parts(self) -> None:
        for partition in await self._database.read(missing_parts, self._clock.now_ms()):
            await self._piece(add_part, partition)

    async def _drop_parts(self, rule: Rule, before_ms: int) -> int:
        """Drop the partitions that are past; return the time up to which the rest is deleted row by row."""
        for table in rule.ranges:
            for partition in await self._database.read(past_parts, table, floor_id(before_ms)):
                if not self._stopped.is_set() and not await self._piece(holds_open, partition):
                    await self._piece(drop_part, partition)
            before_ms = await self._database.read(begin_of_range, table, before_ms)
        return before_ms

    async def _piece(self, work: Callable[..., Result], *args: Any) -> Result:
        """Run one transaction, and then pause to leave the store to others."""
        began_s = time.monotonic()
        result = await self._database.tidy(work, *args)
        rest_s = min(self._rest * (time.monotonic() - began_s), 1)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stopped.wait(), rest_s)
        return result
