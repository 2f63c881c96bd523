"""Claim, deliver, settle or release."""

import random
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import Connection

from waypost.base.clock import Clock
from waypost.callbacks.deliver import deliver
from waypost.callbacks.retries import wait_ms
from waypost.domain.callback import Attempt, Callback
from waypost.domain.subscription import Subscription
from waypost.journal.entry import Entry
from waypost.journal.in_store import Journal
from waypost.journal.stage import Prepared
from waypost.journal.waiting import Hold
from waypost.outbound.vetted import VettedClient
from waypost.store.callbacks import Tried, callbacks_by_ids, record_attempts
from waypost.store.database import Database
from waypost.store.directory import Directory
from waypost.store.journal import settle_entries
from waypost.store.subscriptions import Unseal, subscriptions_by_ids

FAILING: Final = 3
"""After so many failures in a row an address is only probed."""

SLOW_MS: Final = 1_000
SLOW_SHARE: Final = 8
"""How many places an address gets that takes so long to answer."""

PROBE_EVERY_MS: Final = 250

PAUSED_MS: Final = 2_000
"""How long the callbacks of a paused subscription wait before it is asked again."""


@dataclass(frozen=True, slots=True)
class _Ended:
    position: int
    tried: Tried | None


@dataclass(slots=True)
class Address:
    """How one subscription's address has been lately; not kept in the store."""

    failures: int = 0  # in a row
    is_slow: bool = False  # its last answer
    taken_ms: int = 0  # when it last took a callback
    paused_until_ms: int = 0  # not asked whether it is active before then


def places_of(address: Address) -> int | None:
    """How many places in flight an address gets; None means as many as any."""
    if address.failures >= FAILING:
        return 1
    return SLOW_SHARE if address.is_slow else None


class Callbacks:
    """The work of the callbacks lane.

    Args:
        order_hold_ms: how long a callback that is refused, while others to the same address
            succeed, holds up those that follow it for the same recipient.
    """

    def __init__(
        self,
        *,
        database: Database,
        journal: Journal,
        directory: Directory,
        client: VettedClient,
        clock: Clock,
        chance: random.Random,
        order_hold_ms: int,
    ) -> None:
        self._database = database
        self._journal = journal
        self._directory = directory
        self._client = client
        self._clock = clock
        self._chance = chance
        self._order_hold_ms = order_hold_ms
        self._addresses: dict[str, Address] = {}  # by group

    def pace(self, entry: Entry, now_ms: int, in_flight: int) -> Hold | None:
        """A failing address is tried by one callback at a time, a slow one by a few.

        So a dead address holds one place of those in flight, and not its whole share. What is for a
        paused subscription waits: nothing of it is tried, and nothing of it is lost.
        """
        address = self._addresses.get(entry.group)
        if address is None:
            return None
        if now_ms < address.paused_until_ms:
            return Hold(address.paused_until_ms, whole_group=True)
        places = places_of(address)
        if places is not None and in_flight >= places:
            return Hold(now_ms + PROBE_EVERY_MS, whole_group=True)
        return None

    async def prepare(self, entries: Sequence[Entry]) -> Prepared:
        """Fetch bodies and addresses of a batch in one read."""
        rows, addresses = await self._database.read(
            _look_up, {entry.ref for entry in entries}, self._directory.unseal
        )

        def work_of(entry: Entry) -> Callable[[], Awaitable[None]]:
            row = rows[entry.ref]
            return lambda: self._deliver(entry, row, addresses.get(row.subscription_id))

        return [(entry, work_of(entry)) for entry in entries]

    async def _deliver(self, entry: Entry, row: Any, subscription: Subscription | None) -> None:
        if subscription is None:  # deleted meanwhile; there is nowhere to go
            attempt = Attempt(self._clock.now_ms(), 0, None, error="the subscription was deleted")
            await self._end(entry, Tried(row.id, attempt, ended=False))
            return
        address = self._addresses.setdefault(entry.group, Address())
        if not subscription.active:
            address.paused_until_ms = self._clock.now_ms() + PAUSED_MS
            self._journal.let_go(entry)
            return
        callback = Callback(
            id=row.id,
            subscription_id=subscription.id,
            url=subscription.url,
            headers=subscription.headers,
            sequence=row.sequence,
            body=row.body,
        )
        attempt = await deliver(self._client, self._clock, callback)
        address.is_slow = attempt.duration_ms >= SLOW_MS
        if attempt.delivered:
            address.failures, address.taken_ms = 0, self._clock.now_ms()
            await self._end(entry, Tried(row.id, attempt, ended=True))
            return
        address.failures += 1
        wait = wait_ms(entry.attempt + 1, self._chance)
        if wait is None:
            await self._end(entry, Tried(row.id, attempt, ended=False))
            return
        await self._database.join(_record, _Ended(0, Tried(row.id, attempt, ended=None)))
        await self._journal.release(
            entry,
            due_ms=self._clock.now_ms() + wait,
            note=attempt.error or f"answered {attempt.status}",
            leave_key=self._has_held_long_enough(entry),
        )

    def _has_held_long_enough(self, entry: Entry) -> bool:
        """Whether the followers go on without this one: only when it alone is refused."""
        now_ms = self._clock.now_ms()
        if entry.held_since_ms is None:
            entry.held_since_ms = now_ms
        others_succeed = self._addresses[entry.group].taken_ms >= entry.held_since_ms
        return others_succeed and now_ms - entry.held_since_ms >= self._order_hold_ms

    async def _end(self, entry: Entry, tried: Tried) -> None:
        await self._journal.settle(entry, _record, _Ended(entry.position, tried))


def _record(connection: Connection, ended: Sequence[_Ended]) -> list[None]:
    record_attempts(connection, [one.tried for one in ended if one.tried is not None])
    settle_entries(connection, [one.position for one in ended if one.position])
    return [None] * len(ended)


def _look_up(
    connection: Connection, ids: set[str], unseal: Unseal
) -> tuple[dict[str, Any], dict[int, Subscription]]:
    rows = callbacks_by_ids(connection, ids)
    wanted = {row.subscription_id for row in rows.values()}
    return rows, subscriptions_by_ids(connection, wanted, unseal)
