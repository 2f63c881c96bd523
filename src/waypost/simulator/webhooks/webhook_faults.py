"""Faults of webhooks: which updates are sent, when, how often and in which order, and the defects of a POST.

Once faults have been applied to an update, it moves from the outbox to a table of its own, so that no retry and no
restart applies them again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from waypost.base.json_values import object_or_none, text_or_none
from waypost.simulator.accounts.accounts import Accounts
from waypost.simulator.faults.faults import ArmedFault, Faults, FaultSubject
from waypost.simulator.outbox import Outbox, delete_update
from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.messages import find_by_wamids
from waypost.simulator.tables.updates import (
    FAULTED_UPDATES,
    MESSAGE_UPDATE,
    SEND_AFTER_NEXT,
    SEND_ALONE,
    NextDue,
    Outlet,
    PendingUpdate,
    Update,
    build_pending_update,
)

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


BATCH_WAIT_MS: Final = 5000
"""How long after its due time an update waits for the others of its batch."""


@dataclass
class _FaultedBatch:
    """The updates of a batch after faults have been applied.

    Attributes:
        updates: the updates to be sent, in order.
        swapped: the update that swaps places with the next one.
    """

    swapped: Update | None
    updates: list[PendingUpdate] = field(default_factory=list[PendingUpdate])


class WebhookFaults:
    """Applies the armed faults to each update when it is due, and to each POST."""

    def __init__(
        self, store: Store, accounts: Accounts, outbox: Outbox, faults: Faults, faulted: FaultedWebhooks
    ) -> None:
        self._store = store
        self._accounts = accounts
        self._outbox = outbox
        self._faults = faults
        self._faulted = faulted

    def may_apply(self, waba_id: str) -> bool:
        """True if faults must be applied: a fault is armed, or some updates are still held back."""
        return self._faulted.may_have(waba_id) or bool(self._faults.armed("update"))

    async def apply_due(self, outlet: Outlet, *, now_ms: int, limit: int) -> None:
        """Apply faults to the due updates of an outlet, exactly once to each."""
        updates = await self._outbox.due_updates(outlet, now_ms=now_ms, limit=limit)
        if not updates:
            return
        subjects = await self.find_subjects(updates)
        swapped = await self._faulted.find_swap(outlet)
        batch = _FaultedBatch(swapped)
        counts: list[Statement] = []
        for update, subject in zip(updates, subjects, strict=True):
            if batch.swapped is not None:
                # The next update is sent first, whatever it is; faults do not apply to it.
                batch.updates += [build_faulted_update(update), build_faulted_update(batch.swapped)]
                batch.swapped = None
                continue
            fault, statements = self._faults.select_fault("update", [subject])
            counts += statements
            _apply_fault(batch, update, fault)
        if batch.swapped is not None:
            batch.updates.append(build_faulted_update(batch.swapped, wait_ms=BATCH_WAIT_MS, together=SEND_AFTER_NEXT))
        await self._faulted.store_faulted(updates, batch.updates, swapped, counts)

    async def find_post_fault(self, updates: Sequence[Update]) -> str | None:
        """Return the kind of the fault that changes a POST; None if there is none."""
        if not self._faults.armed("post"):
            return None
        fault, statements = self._faults.select_fault("post", await self.find_subjects(updates))
        if statements:
            await self._store.run(statements)
        return fault.fault_kind.name if fault else None

    async def find_subjects(self, updates: Sequence[Update]) -> list[FaultSubject]:
        """Return the subjects of updates, as far as the armed faults filter by them."""
        known: dict[str, tuple[str, str]] = {}
        if self._faults.filters_by("phone", "template"):
            wamids = {update.subject for update in updates if not update.field}
            messages = await find_by_wamids(self._store, sorted(wamids))
            known = {message.wamid: (message.phone, _find_sent_template(message.body)) for message in messages}
        return [self._subject(update, *known.get(update.subject, ("", ""))) for update in updates]

    def _subject(self, update: Update, phone: str, template: str) -> FaultSubject:
        number = self._accounts.numbers.get(update.phone_number_id)
        return FaultSubject(
            name=update.field or (MESSAGE_UPDATE if update.kind == MESSAGE_UPDATE else update.kind),
            app=update.app_id,
            waba_id=update.waba_id,
            number=(number.phone_number_id, number.phone_number) if number else (),
            phone=phone,
            template=template or (_find_field_template(update) if update.field else ""),
            subject=update.subject,
        )


def _apply_fault(batch: _FaultedBatch, update: Update, fault: ArmedFault | None) -> None:
    if fault is None:
        batch.updates.append(build_faulted_update(update))
        return
    match fault.fault_kind.name:
        case "drop":
            pass
        case "delay_ms":
            batch.updates.append(build_faulted_update(update, wait_ms=fault.value))
        case "duplicate":
            batch.updates += [build_faulted_update(update)] * (1 + fault.value)
        case "reorder":
            batch.swapped = update
        case "batch":
            batch.updates.append(build_faulted_update(update, wait_ms=BATCH_WAIT_MS, together=fault.value))
        case unknown:
            raise AssertionError(f"a fault of kind {unknown} does not apply to updates")


def _find_sent_template(body: str) -> str:
    """Return the name of the template in a message request; empty if there is none."""
    try:
        request: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return ""
    content = object_or_none((object_or_none(request) or {}).get("template"))
    return (text_or_none(content.get("name")) if content else None) or ""


def _find_field_template(update: Update) -> str:
    """Return the name of the template that a webhook field is about; empty if there is none."""
    value = object_or_none(msgspec.json.decode(update.rest))
    return (text_or_none(value.get("message_template_name")) if value else None) or ""
