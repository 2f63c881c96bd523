"""Updates changed by faults: sent now, later, twice, out of order, or many at once.

Once faults have been applied to an update, it moves from the outbox to a table of its own, so that no retry and no
restart applies them again.
"""

from collections.abc import Sequence
from typing import Any, Final

from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.updates import (
    FAULTED_UPDATES,
    SEND_ALONE,
    NextDue,
    Outlet,
    PendingUpdate,
    Update,
    build_pending_update,
)
from waypost.simulator.webhooks.outbox import delete_update

MAX_UPDATES_PER_POST: Final = 1000
"""Maximum number of updates in one POST. Source: facts 7.1."""
_SELECT_ANY_FAULTED: Final = "SELECT 1 FROM judged_updates WHERE waba_id=:waba_id LIMIT 1"
_SELECT_NEXT_FAULTED: Final = (
    "SELECT waba_id, app_id, min(until_ms) AS due_ms FROM judged_updates GROUP BY waba_id, app_id"
)


class FaultedWebhooks:
    """Stores faulted updates, and chooses those of the next POST."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._accounts: set[str] = set()  # those that may have any
        store.register_reset(self._accounts.clear)

    async def open(self) -> None:
        """Load the accounts that have faulted updates."""
        self._accounts.update(next_due.waba_id for next_due in await self._store.rows(NextDue, _SELECT_NEXT_FAULTED))

    def may_have(self, waba_id: str) -> bool:
        """True if an account may have faulted updates; does not read the file."""
        return waba_id in self._accounts

    async def store_faulted(
        self,
        updates: Sequence[Update],
        faulted: Sequence[PendingUpdate],
        swapped: PendingUpdate | None,
        counts: Sequence[Statement],
    ) -> None:
        """Move updates from the outbox to the faulted updates, in one transaction.

        Args:
            updates: the updates to which faults were applied.
            faulted: the faulted updates that result.
            swapped: an earlier faulted update that is among them again.
            counts: statements that store the faults' counts.
        """
        self._accounts.update(update.waba_id for update in updates)
        await self._store.run(
            [
                *map(delete_update, updates),
                *([FAULTED_UPDATES.delete(position=swapped.position)] if swapped else []),
                *map(FAULTED_UPDATES.insert, faulted),
                *counts,
            ]
        )
        self._accounts.update(update.waba_id for update in updates)  # again: another outlet may have discarded it

    async def next_batch(self, outlet: Outlet, *, now_ms: int, limit: int) -> list[PendingUpdate]:
        """Return the updates of the next POST, in order; at most a limit, unless more belong together."""
        if outlet.waba_id not in self._accounts:
            return []
        batch = await self._find_updates(outlet, "together>1", limit=MAX_UPDATES_PER_POST)
        batch_size = min((update.together for update in batch), default=0)
        if batch and (len(batch) >= batch_size or batch[0].until_ms <= now_ms):
            return _drop_copies(batch[: max(batch_size, limit)])
        ready = await self._find_updates(outlet, "together<=1 AND until_ms<=:now_ms", now_ms=now_ms, limit=limit)
        if not ready and not await self._store.column(_SELECT_ANY_FAULTED, waba_id=outlet.waba_id):
            self._accounts.discard(outlet.waba_id)
        return _drop_copies(ready)

    async def find_swap(self, outlet: Outlet) -> PendingUpdate | None:
        """Return the update that swaps places with the outlet's next one; None if there is none."""
        if outlet.waba_id not in self._accounts:
            return None
        return next(iter(await self._find_updates(outlet, "together=1", limit=1)), None)

    async def next_due_ms(self, outlet: Outlet) -> int | None:
        """Return when the outlet's next faulted update is sent at the latest; None if there is none."""
        if outlet.waba_id not in self._accounts:
            return None
        statement = f"SELECT min(until_ms) FROM judged_updates WHERE {outlet.condition}"  # noqa: S608
        due_ms: int | None = await self._store.value(statement, **outlet.values)
        return due_ms

    async def next_due_times(self) -> list[NextDue]:
        """Return when the next faulted update is due, by account and app, for those that have any."""
        return await self._store.rows(NextDue, _SELECT_NEXT_FAULTED) if self._accounts else []

    async def delete(self, updates: Sequence[PendingUpdate]) -> None:
        """Delete faulted updates that have been delivered, or will not be."""
        await self._store.run([FAULTED_UPDATES.delete(position=parcel.position) for parcel in updates])

    async def _find_updates(self, outlet: Outlet, condition: str, **values: Any) -> list[PendingUpdate]:
        condition = f"{outlet.condition} AND {condition} ORDER BY position LIMIT :limit"
        return await FAULTED_UPDATES.rows(self._store, condition, **outlet.values, **values)


def build_faulted_update(update: Update, *, wait_ms: int = 0, together: int = SEND_ALONE) -> PendingUpdate:
    """Return a faulted update, which is sent at the latest this long after its due time."""
    return build_pending_update(update, until_ms=update.due_ms + wait_ms, together=together)


def _drop_copies(updates: Sequence[PendingUpdate]) -> list[PendingUpdate]:
    """Return the updates without duplicates: each copy has a POST of its own."""
    unique: dict[tuple[int, int], PendingUpdate] = {}
    for update in updates:
        unique.setdefault((update.due_ms, update.id), update)
    return list(unique.values())
