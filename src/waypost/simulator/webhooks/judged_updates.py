"""Updates that faults have judged: told now, later, twice, out of turn, or many at once.

A judged update leaves the outbox for a table of its own, so that no retry and no restart judges it again.
"""

from collections.abc import Sequence
from typing import Final

from waypost.simulator.store import Statement, Store
from waypost.simulator.tables import updates as table
from waypost.simulator.tables.updates import Outlet, Parcel, Update

TOGETHER_AT_MOST: Final = 1000
"""How many updates one POST has at most. Source: facts 7.1."""


class JudgedUpdates:
    """Keeps judged updates, and chooses those of the next POST."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._accounts: set[str] = set()  # which may have any
        store.at_reset(self._accounts.clear)

    async def open(self) -> None:
        """See which accounts have any."""
        self._accounts.update(one.waba_id for one in await table.next_judged(self._store))

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
                *map(table.drop_from_outbox, taken),
                *([table.drop_judged(moved)] if moved else []),
                *map(table.add_judged, kept),
                *counts,
            ]
        )
        self._accounts.update(one.waba_id for one in taken)  # another outlet has seen none meanwhile

    async def ready(self, outlet: Outlet, *, now_ms: int, at_most: int) -> list[Parcel]:
        """What one POST carries now, in this order; at most so many, unless more belong together."""
        if outlet.waba_id not in self._accounts:
            return []
        gathered = await table.gathered(self._store, outlet, at_most=TOGETHER_AT_MOST)
        wanted = min((one.together for one in gathered), default=0)
        if gathered and (len(gathered) >= wanted or gathered[0].until_ms <= now_ms):
            return _without_copies(gathered[: max(wanted, at_most)])
        ready = await table.ready(self._store, outlet, now_ms=now_ms, at_most=at_most)
        if not ready and not await table.has_judged(self._store, outlet.waba_id):
            self._accounts.discard(outlet.waba_id)
        return _without_copies(ready)

    async def before_next(self, outlet: Outlet) -> Parcel | None:
        """The one that is to change places with the outlet's next update."""
        if outlet.waba_id not in self._accounts:
            return None
        return await table.before_next(self._store, outlet)

    async def next_due_ms(self, outlet: Outlet) -> int | None:
        """When the outlet's next one goes, if nothing else happens before."""
        return await table.next_judged_ms(self._store, outlet) if outlet.waba_id in self._accounts else None

    async def next_dues(self) -> list[table.NextDue]:
        """When the next one goes, by account and app; those that have none are not there."""
        return await table.next_judged(self._store) if self._accounts else []

    async def drop(self, parcels: Sequence[Parcel]) -> None:
        """Take judged ones out: they have been told, or nobody will hear them."""
        await self._store.run([table.drop_judged(one) for one in parcels])


def judge(update: Update, *, wait_ms: int = 0, together: int = table.AT_ONCE) -> Parcel:
    """A judged update, which goes so long after its time, whatever else happens."""
    return table.parcel_of(update, until_ms=update.due_ms + wait_ms, together=together)


def _without_copies(chosen: Sequence[Parcel]) -> list[Parcel]:
    """The same without the second of any update: each copy has a POST of its own."""
    first: dict[tuple[int, int], Parcel] = {}
    for one in chosen:
        first.setdefault((one.due_ms, one.id), one)
    return list(first.values())
