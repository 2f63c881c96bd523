"""Updates changed by faults: sent now, later, twice, out of order, or many at once.

Once faults have been applied to an update, it moves from the outbox to a table of its own, so that no retry and no
restart applies them again.
"""

from collections.abc import Sequence
from typing import Any, Final

from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.updates import AT_ONCE, JUDGED, NextDue, Outlet, Parcel, Update, parcel_of
from waypost.simulator.webhooks.outbox import drop_update

TOGETHER_AT_MOST: Final = 1000
"""Maximum number of updates in one POST. Source: facts 7.1."""
_LEFT: Final = "SELECT 1 FROM judged_updates WHERE waba_id=:waba_id LIMIT 1"
_NEXT_OF_EACH: Final = "SELECT waba_id, app_id, min(until_ms) AS due_ms FROM judged_updates GROUP BY waba_id, app_id"


class JudgedUpdates:
    """Stores faulted updates, and chooses those of the next POST."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._accounts: set[str] = set()  # those that may have any
        store.at_reset(self._accounts.clear)

    async def open(self) -> None:
        """Load the accounts that have faulted updates."""
        self._accounts.update(next_due.waba_id for next_due in await self._store.rows(NextDue, _NEXT_OF_EACH))

    def may_have(self, waba_id: str) -> bool:
        """True if an account may have faulted updates; does not read the file."""
        return waba_id in self._accounts

    async def keep(
        self, taken: Sequence[Update], kept: Sequence[Parcel], moved: Parcel | None, counts: Sequence[Statement]
    ) -> None:
        """Move updates from the outbox to the faulted updates, in one transaction.

        Args:
            taken: the updates to which faults were applied.
            kept: the faulted updates that result.
            moved: an earlier faulted update that is among them again.
            counts: statements that store the faults' counts.
        """
        self._accounts.update(update.waba_id for update in taken)
        await self._store.run(
            [
                *map(drop_update, taken),
                *([JUDGED.delete(position=moved.position)] if moved else []),
                *map(JUDGED.insert, kept),
                *counts,
            ]
        )
        self._accounts.update(update.waba_id for update in taken)  # again: another outlet may have discarded it

    async def ready(self, outlet: Outlet, *, now_ms: int, at_most: int) -> list[Parcel]:
        """Return the updates of the next POST, in order; at most a limit, unless more belong together."""
        if outlet.waba_id not in self._accounts:
            return []
        batch = await self._parcels(outlet, "together>1", limit=TOGETHER_AT_MOST)
        batch_size = min((update.together for update in batch), default=0)
        if batch and (len(batch) >= batch_size or batch[0].until_ms <= now_ms):
            return _without_copies(batch[: max(batch_size, at_most)])
        ready = await self._parcels(outlet, "together<=1 AND until_ms<=:now_ms", now_ms=now_ms, limit=at_most)
        if not ready and not await self._store.column(_LEFT, waba_id=outlet.waba_id):
            self._accounts.discard(outlet.waba_id)
        return _without_copies(ready)

    async def before_next(self, outlet: Outlet) -> Parcel | None:
        """Return the update that swaps places with the outlet's next one; None if there is none."""
        if outlet.waba_id not in self._accounts:
            return None
        return next(iter(await self._parcels(outlet, "together=1", limit=1)), None)

    async def next_due_ms(self, outlet: Outlet) -> int | None:
        """Return when the outlet's next faulted update is sent at the latest; None if there is none."""
        if outlet.waba_id not in self._accounts:
            return None
        statement = f"SELECT min(until_ms) FROM judged_updates WHERE {outlet.condition}"  # noqa: S608
        due_ms: int | None = await self._store.value(statement, **outlet.values)
        return due_ms

    async def next_dues(self) -> list[NextDue]:
        """Return when the next faulted update is due, by account and app, for those that have any."""
        return await self._store.rows(NextDue, _NEXT_OF_EACH) if self._accounts else []

    async def drop(self, parcels: Sequence[Parcel]) -> None:
        """Delete faulted updates that have been delivered, or will not be."""
        await self._store.run([JUDGED.delete(position=parcel.position) for parcel in parcels])

    async def _parcels(self, outlet: Outlet, condition: str, **values: Any) -> list[Parcel]:
        condition = f"{outlet.condition} AND {condition} ORDER BY position LIMIT :limit"
        return await JUDGED.rows(self._store, condition, **outlet.values, **values)


def judge(update: Update, *, wait_ms: int = 0, together: int = AT_ONCE) -> Parcel:
    """Return a faulted update, which is sent at the latest this long after its due time."""
    return parcel_of(update, until_ms=update.due_ms + wait_ms, together=together)


def _without_copies(chosen: Sequence[Parcel]) -> list[Parcel]:
    """Return the updates without duplicates: each copy has a POST of its own."""
    unique: dict[tuple[int, int], Parcel] = {}
    for update in chosen:
        unique.setdefault((update.due_ms, update.id), update)
    return list(unique.values())
