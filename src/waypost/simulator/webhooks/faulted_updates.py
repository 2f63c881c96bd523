"""Updates that faults have judged: told now, later, twice, out of turn, or many at once.

A judged update leaves the outbox for a table of its own, so that no retry and no restart judges it again.
"""

from collections.abc import Sequence
from typing import Any, Final

from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.updates import AT_ONCE, JUDGED, NextDue, Outlet, Parcel, Update, parcel_of
from waypost.simulator.webhooks.outbox import drop_update

TOGETHER_AT_MOST: Final = 1000
"""How many updates one POST has at most. Source: facts 7.1."""
_LEFT: Final = "SELECT 1 FROM judged_updates WHERE waba_id=:waba_id LIMIT 1"
_NEXT_OF_EACH: Final = "SELECT waba_id, app_id, min(until_ms) AS due_ms FROM judged_updates GROUP BY waba_id, app_id"


class JudgedUpdates:
    """Keeps judged updates, and chooses those of the next POST."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._accounts: set[str] = set()  # which may have any
        store.at_reset(self._accounts.clear)

    async def open(self) -> None:
        """See which accounts have any."""
        self._accounts.update(one.waba_id for one in await self._store.rows(NextDue, _NEXT_OF_EACH))

    def may_have(self, waba_id: str) -> bool:
        """Whether an account may have any; without asking the file."""
        return waba_id in self._accounts

    async def keep(
        self, taken: Sequence[Update], kept: Sequence[Parcel], moved: Parcel | None, counts: Sequence[Statement]
    ) -> None:
        """Take updates out of the outbox and keep what faults make of them, in one transaction.

        Args:
            taken: the updates that were judged.
            kept: what `judge` gives of them.
            moved: one that was kept before and stands among `kept` again.
            counts: statements that keep the faults' counts.
        """
        self._accounts.update(one.waba_id for one in taken)
        await self._store.run(
            [
                *map(drop_update, taken),
                *([JUDGED.delete(position=moved.position)] if moved else []),
                *map(JUDGED.insert, kept),
                *counts,
            ]
        )
        self._accounts.update(one.waba_id for one in taken)  # another outlet has seen none meanwhile

    async def ready(self, outlet: Outlet, *, now_ms: int, at_most: int) -> list[Parcel]:
        """What one POST carries now, in this order; at most so many, unless more belong together."""
        if outlet.waba_id not in self._accounts:
            return []
        gathered = await self._parcels(outlet, "together>1", at_most=TOGETHER_AT_MOST)
        wanted = min((one.together for one in gathered), default=0)
        if gathered and (len(gathered) >= wanted or gathered[0].until_ms <= now_ms):
            return _without_copies(gathered[: max(wanted, at_most)])
        ready = await self._parcels(outlet, "together<=1 AND until_ms<=:now_ms", now_ms=now_ms, at_most=at_most)
        if not ready and not await self._store.column(_LEFT, waba_id=outlet.waba_id):
            self._accounts.discard(outlet.waba_id)
        return _without_copies(ready)

    async def before_next(self, outlet: Outlet) -> Parcel | None:
        """The one that is to change places with the outlet's next update."""
        if outlet.waba_id not in self._accounts:
            return None
        return next(iter(await self._parcels(outlet, "together=1", at_most=1)), None)

    async def next_due_ms(self, outlet: Outlet) -> int | None:
        """When the outlet's next one goes, if nothing else happens before."""
        if outlet.waba_id not in self._accounts:
            return None
        statement = f"SELECT min(until_ms) FROM judged_updates WHERE {outlet.condition}"  # noqa: S608
        found: int | None = await self._store.value(statement, **outlet.values)
        return found

    async def next_dues(self) -> list[NextDue]:
        """When the next one goes, by account and app; those that have none are not there."""
        return await self._store.rows(NextDue, _NEXT_OF_EACH) if self._accounts else []

    async def drop(self, parcels: Sequence[Parcel]) -> None:
        """Take judged ones out: they have been told, or nobody will hear them."""
        await self._store.run([JUDGED.delete(position=one.position) for one in parcels])

    async def _parcels(self, outlet: Outlet, condition: str, **values: Any) -> list[Parcel]:
        condition = f"{outlet.condition} AND {condition} ORDER BY position LIMIT :at_most"
        return await JUDGED.rows(self._store, condition, **outlet.values, **values)


def judge(update: Update, *, wait_ms: int = 0, together: int = AT_ONCE) -> Parcel:
    """A judged update, which goes so long after its time, whatever else happens."""
    return parcel_of(update, until_ms=update.due_ms + wait_ms, together=together)


def _without_copies(chosen: Sequence[Parcel]) -> list[Parcel]:
    """The same without the second of any update: each copy has a POST of its own."""
    first: dict[tuple[int, int], Parcel] = {}
    for one in chosen:
        first.setdefault((one.due_ms, one.id), one)
    return list(first.values())
