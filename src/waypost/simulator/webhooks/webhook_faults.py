"""Faults of webhooks: which updates are sent, when and how often, and the defects of a POST."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from waypost.base.json_values import object_or_none, text_or_none
from waypost.simulator.accounts.accounts import Accounts
from waypost.simulator.faults.fault import ArmedFault, FaultSubject
from waypost.simulator.faults.faults import Faults
from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.messages import find_by_wamids
from waypost.simulator.tables.updates import MESSAGE_UPDATE, SEND_AFTER_NEXT, Outlet, PendingUpdate, Update
from waypost.simulator.webhooks.faulted_updates import FaultedWebhooks, build_faulted_update
from waypost.simulator.webhooks.outbox import Outbox

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
