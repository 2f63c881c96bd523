"""Faults of webhooks: which updates are sent, when, how often and in which order, and the defects of a POST.

Once faults have been applied to an update, it moves from the outbox to a table of its own, so that no retry and no
restart applies them again.
"""

import sqlite3
from collections.abc import Sequence
from typing import Any, Final

import msgspec

from waypost.base.json_values import text_or_none
from waypost.simulator.faults.model import FaultSubject, armed_faults, select_fault
from waypost.simulator.state.outbox import delete_update
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.tables.messages import MESSAGES, WITH_WAMIDS
from waypost.simulator.storage.tables.updates import (
    FAULTED_UPDATES,
    MESSAGE_UPDATE,
    OUTBOX,
    SEND_AFTER_NEXT,
    SEND_ALONE,
    NextDue,
    Outlet,
    PendingUpdate,
    Update,
    build_pending_update,
)

BATCH_WAIT_MS: Final = 5000
"""How long after its due time an update waits for the others of its batch."""
MAX_UPDATES_PER_POST: Final = 1000
"""Maximum number of updates in one POST. Source: facts 7.1."""
_SELECT_ANY_FAULTED: Final = "SELECT 1 FROM judged_updates WHERE waba_id=:waba_id LIMIT 1"
_SELECT_NEXT_FAULTED: Final = (
    "SELECT waba_id, app_id, min(until_ms) AS due_ms FROM judged_updates GROUP BY waba_id, app_id"
)


def may_be_faulted(state: SimulatorState, waba_id: str) -> bool:
    """True if a fault of updates is armed, or updates of the account may still be held back; reads no file."""
    return waba_id in state.faulted_accounts or bool(armed_faults(state, "update"))


async def apply_due_faults(state: SimulatorState, outlet: Outlet, *, now_ms: int, limit: int) -> None:
    """Apply faults to the due updates of an outlet, exactly once to each, and move them from the outbox."""
    due = f"{outlet.condition} AND due_ms<=:now_ms ORDER BY due_ms, id LIMIT :limit"
    to_swap = f"{outlet.condition} AND together={SEND_AFTER_NEXT} ORDER BY position LIMIT 1"

    def write(transaction: Transaction) -> bool:
        updates = OUTBOX.select(transaction.connection, due, **outlet.values, now_ms=now_ms, limit=limit)
        if not updates:
            return False
        subjects = _find_subjects(state, transaction.connection, updates)
        swapped: Update | None = None
        for earlier in FAULTED_UPDATES.select(transaction.connection, to_swap, **outlet.values):
            transaction.run(FAULTED_UPDATES.delete(position=earlier.position))
            swapped = earlier
        faulted: list[PendingUpdate] = []
        for update, subject in zip(updates, subjects, strict=True):
            transaction.run(delete_update(update))
            if swapped is not None:
                # The next update is sent first, whatever it is; faults do not apply to it.
                faulted += [_build_faulted(update), _build_faulted(swapped)]
                swapped = None
                continue
            fault = select_fault(state, transaction, "update", [subject])
            match (fault.fault_kind.name, fault.value) if fault is not None else ("", 0):
                case "drop", _:
                    pass
                case "delay_ms", wait_ms:
                    faulted.append(_build_faulted(update, wait_ms=wait_ms))
                case "duplicate", times:
                    faulted += [_build_faulted(update)] * (1 + times)
                case "reorder", _:
                    swapped = update
                case "batch", size:
                    faulted.append(_build_faulted(update, wait_ms=BATCH_WAIT_MS, together=size))
                case _:
                    faulted.append(_build_faulted(update))
        if swapped is not None:
            faulted.append(_build_faulted(swapped, wait_ms=BATCH_WAIT_MS, together=SEND_AFTER_NEXT))
        transaction.run(*map(FAULTED_UPDATES.insert, faulted))
        return True

    if await state.transact(write):
        state.faulted_accounts.add(outlet.waba_id)


def _build_faulted(update: Update, *, wait_ms: int = 0, together: int = SEND_ALONE) -> PendingUpdate:
    """Return a faulted update, which is sent at the latest this long after its due time."""
    return build_pending_update(update, until_ms=update.due_ms + wait_ms, together=together)


async def find_post_fault(state: SimulatorState, updates: Sequence[Update]) -> str | None:
    """Return the kind of the fault that changes a POST; None if there is none."""
    if not armed_faults(state, "post"):
        return None

    def write(transaction: Transaction) -> str | None:
        subjects = _find_subjects(state, transaction.connection, updates)
        fault = select_fault(state, transaction, "post", subjects)
        return fault.fault_kind.name if fault else None

    return await state.transact(write)


def _find_subjects(
    state: SimulatorState, connection: sqlite3.Connection, updates: Sequence[Update]
) -> list[FaultSubject]:
    """Return the subjects of updates, as far as the armed faults filter by them."""
    known: dict[str, tuple[str, str]] = {}
    filters = {name for fault in armed_faults(state, "update", "post") for name in fault.given}
    if filters & {"phone", "template"}:
        wamids = msgspec.json.encode([update.subject for update in updates if not update.field]).decode()
        messages = MESSAGES.select(connection, WITH_WAMIDS, wamids=wamids)
        known = {message.wamid: (message.phone, message.template.get("name", "")) for message in messages}
    return [_build_subject(state, update, *known.get(update.subject, ("", ""))) for update in updates]


def _build_subject(state: SimulatorState, update: Update, phone: str, template: str) -> FaultSubject:
    number = state.accounts.numbers.get(update.phone_number_id)
    if update.field and not template:
        template = text_or_none(update.content.get("message_template_name")) or ""
    return FaultSubject(
        name=update.field or (MESSAGE_UPDATE if update.kind == MESSAGE_UPDATE else update.kind),
        app=update.app_id,
        waba_id=update.waba_id,
        number=(number.phone_number_id, number.phone_number) if number else (),
        phone=phone,
        template=template,
        subject=update.subject,
    )


async def next_faulted_batch(state: SimulatorState, outlet: Outlet, *, now_ms: int, limit: int) -> list[PendingUpdate]:
    """Return the updates of the next POST, in order; at most a limit, unless more belong together."""
    if outlet.waba_id not in state.faulted_accounts:
        return []
    batch = await _find_updates(state, outlet, "together>1", limit=MAX_UPDATES_PER_POST)
    batch_size = min((update.together for update in batch), default=0)
    if batch and (len(batch) >= batch_size or batch[0].until_ms <= now_ms):
        return _drop_copies(batch[: max(batch_size, limit)])
    ready = await _find_updates(state, outlet, "together<=1 AND until_ms<=:now_ms", now_ms=now_ms, limit=limit)
    if not ready and not await state.store.column(_SELECT_ANY_FAULTED, waba_id=outlet.waba_id):
        state.faulted_accounts.discard(outlet.waba_id)
    return _drop_copies(ready)


async def next_faulted_ms(state: SimulatorState, outlet: Outlet) -> int | None:
    """Return when the outlet's next faulted update is sent at the latest; None if there is none."""
    if outlet.waba_id not in state.faulted_accounts:
        return None
    statement = f"SELECT min(until_ms) FROM judged_updates WHERE {outlet.condition}"  # noqa: S608
    due_ms: int | None = await state.store.value(statement, **outlet.values)
    return due_ms


async def next_faulted_times(state: SimulatorState) -> list[NextDue]:
    """Return when the next faulted update is due, by account and app, for those that have any."""
    return await state.store.rows(NextDue, _SELECT_NEXT_FAULTED)


async def _find_updates(state: SimulatorState, outlet: Outlet, condition: str, **values: Any) -> list[PendingUpdate]:
    condition = f"{outlet.condition} AND {condition} ORDER BY position LIMIT :limit"
    return await FAULTED_UPDATES.rows(state.store, condition, **outlet.values, **values)


def _drop_copies(updates: Sequence[PendingUpdate]) -> list[PendingUpdate]:
    """Return the updates without duplicates: each copy has a POST of its own."""
    unique: dict[tuple[int, int], PendingUpdate] = {}
    for update in updates:
        unique.setdefault((update.due_ms, update.id), update)
    return list(unique.values())
