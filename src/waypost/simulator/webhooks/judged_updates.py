"""Updates that faults have judged: told now, later, twice, out of turn, or many at once.

A judged update leaves the outbox for a table of its own, so that no retry and no restart judges it again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from waypost.simulator.accounts.accounts import Outlet
from waypost.simulator.store import Row, Store
from waypost.simulator.webhooks.outbox import Update

AT_ONCE: Final = 0
AFTER_NEXT: Final = 1
"""How an update goes: by itself, or after the outlet's next one; more is with so many together."""
TOGETHER_AT_MOST: Final = 1000
"""How many updates one POST has at most. Source: facts 7.1."""

_KEEP: Final = (
    "INSERT INTO judged_updates (waba_id, due_ms, id, kind, phone_number_id, subject, rest, app_id, "
    "until_ms, together) VALUES (?,?,?,?,?,?,?,?,?,?)"
)
_TAKE_OUT: Final = "DELETE FROM outbox WHERE waba_id=? AND app_id=? AND due_ms=? AND id=?"
_OF_OUTLET: Final = (
    "SELECT waba_id, due_ms, id, kind, phone_number_id, subject, rest, app_id, until_ms, together, "
    "position FROM judged_updates WHERE {} AND "
)
_READY: Final = _OF_OUTLET + "together<=1 AND until_ms<=? ORDER BY position LIMIT ?"
_GATHERED: Final = _OF_OUTLET + "together>1 ORDER BY position LIMIT ?"
_BEFORE_NEXT: Final = _OF_OUTLET + "together=1"
_NEXT: Final = "SELECT min(until_ms) FROM judged_updates WHERE {}"
_NEXT_OF_EACH: Final = "SELECT waba_id, app_id, min(until_ms) FROM judged_updates GROUP BY waba_id, app_id"
_LEFT: Final = "SELECT 1 FROM judged_updates WHERE waba_id=? LIMIT 1"
_DROP: Final = "DELETE FROM judged_updates WHERE position=?"


@dataclass(frozen=True)
class Parcel:
    """An update on its way.

    Args:
        until_ms: when it goes whatever else happens.
        together: `AT_ONCE`, `AFTER_NEXT`, or with how many it goes.
        position: among the judged; 0 where it was not judged, and is in the outbox still.
    """

    update: Update
    until_ms: int = 0
    together: int = AT_ONCE
    position: int = 0


class JudgedUpdates:
    """Keeps judged updates, and chooses those of the next POST."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._accounts: set[str] = set()  # which may have any

    async def open(self) -> None:
        """See which accounts have any."""
        rows = await self._store.rows("SELECT DISTINCT waba_id FROM judged_updates")
        self._accounts = {waba_id for (waba_id,) in rows}

    def may_have(self, waba_id: str) -> bool:
        """Whether an account may have any; without asking the file."""
        return waba_id in self._accounts

    async def keep(
        self, taken: Sequence[Update], kept: Sequence[Row], moved: Parcel | None, counts: Sequence[tuple[str, Row]]
    ) -> None:
        """Take updates out of the outbox and keep what faults make of them, in one transaction.

        Args:
            taken: the updates that were judged.
            kept: rows as `judged_row` gives them.
            moved: one that was kept before and stands among `kept` again.
            counts: statements that keep the faults' counts.
        """
        self._accounts.update(one.waba_id for one in taken)
        await self._store.run(
            [
                *((_TAKE_OUT, (one.waba_id, one.app_id, one.due_ms, one.id)) for one in taken),
                *([(_DROP, (moved.position,))] if moved else []),
                *((_KEEP, row) for row in kept),
                *counts,
            ]
        )
        self._accounts.update(one.waba_id for one in taken)  # another outlet has seen none meanwhile

    async def ready(self, outlet: Outlet, *, now_ms: int, at_most: int) -> list[Parcel]:
        """What one POST carries now, in this order; at most so many, unless more belong together."""
        if outlet.waba_id not in self._accounts:
            return []
        gathered = await self._parcels(_GATHERED, outlet, TOGETHER_AT_MOST)
        wanted = min((one.together for one in gathered), default=0)
        if gathered and (len(gathered) >= wanted or gathered[0].until_ms <= now_ms):
            return _without_copies(gathered[: max(wanted, at_most)])
        ready = await self._parcels(_READY, outlet, now_ms, at_most)
        if not ready and not await self._store.rows(_LEFT, (outlet.waba_id,)):
            self._accounts.discard(outlet.waba_id)
        return _without_copies(ready)

    async def before_next(self, outlet: Outlet) -> Parcel | None:
        """The one that is to change places with the outlet's next update."""
        if outlet.waba_id not in self._accounts:
            return None
        waiting = await self._parcels(_BEFORE_NEXT, outlet)
        return waiting[0] if waiting else None

    async def next_due_ms(self, outlet: Outlet) -> int | None:
        """When the outlet's next one goes, if nothing else happens before."""
        if outlet.waba_id not in self._accounts:
            return None
        condition, values = outlet.condition
        [(due_ms,)] = await self._store.rows(_NEXT.format(condition), values)
        return due_ms

    async def next_dues(self) -> list[tuple[str, str, int]]:
        """Account, app, and when the next one goes; those that have none are not there."""
        rows = await self._store.rows(_NEXT_OF_EACH) if self._accounts else []
        return [(row[0], row[1], row[2]) for row in rows]

    async def drop(self, parcels: Sequence[Parcel]) -> None:
        """Take judged ones out: they have been told, or nobody will hear them."""
        await self._store.run([(_DROP, (one.position,)) for one in parcels])

    def forget(self) -> None:
        """There are none any more; the file is the caller's matter."""
        self._accounts.clear()

    async def _parcels(self, question: str, outlet: Outlet, *more: int) -> list[Parcel]:
        condition, values = outlet.condition
        rows = await self._store.rows(question.format(condition), (*values, *more))
        return [Parcel(Update(*row[:8]), *row[8:]) for row in rows]


def judged_row(update: Update, *, wait_ms: int = 0, together: int = AT_ONCE) -> Row:
    """The row of a judged update, which goes so long after its time, whatever else happens."""
    return (
        update.waba_id, update.due_ms, update.id, update.kind, update.phone_number_id,
        update.subject, update.rest, update.app_id, update.due_ms + wait_ms, together,
    )  # fmt: skip


def _without_copies(chosen: Sequence[Parcel]) -> list[Parcel]:
    """The same without the second of any update: each copy has a POST of its own."""
    first: dict[tuple[int, int], Parcel] = {}
    for one in chosen:
        first.setdefault((one.update.due_ms, one.update.id), one)
    return list(first.values())
