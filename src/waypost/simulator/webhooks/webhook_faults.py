"""Faults of webhooks: which updates are sent, when and how often, and the defects of a POST."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from waypost.base.json_values import object_or_none, text_or_none
from waypost.simulator.accounts.accounts import Accounts
from waypost.simulator.faults.fault import Fault, Subject
from waypost.simulator.faults.faults import Faults
from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.messages import of_wamids
from waypost.simulator.tables.updates import AFTER_NEXT, MESSAGE, Outlet, Parcel, Update
from waypost.simulator.webhooks.faulted_updates import JudgedUpdates, judge
from waypost.simulator.webhooks.outbox import Outbox

COMPANY_MS: Final = 5000
"""How long after its due time an update waits for the others of its batch."""


@dataclass
class _Verdicts:
    """The updates of a batch after faults have been applied.

    Attributes:
        kept: the updates to be sent, in order.
        waiting: the update that swaps places with the next one.
    """

    waiting: Update | None
    kept: list[Parcel] = field(default_factory=list[Parcel])


class WebhookFaults:
    """Applies the armed faults to each update when it is due, and to each POST."""

    def __init__(self, store: Store, accounts: Accounts, outbox: Outbox, faults: Faults, judged: JudgedUpdates) -> None:
        self._store = store
        self._accounts = accounts
        self._outbox = outbox
        self._faults = faults
        self._judged = judged

    def may_spoil(self, waba_id: str) -> bool:
        """True if faults must be applied: a fault is armed, or some updates are still held back."""
        return self._judged.may_have(waba_id) or bool(self._faults.armed("update"))

    async def judge(self, outlet: Outlet, *, now_ms: int, at_most: int) -> None:
        """Apply faults to the due updates of an outlet, exactly once to each."""
        updates = await self._outbox.due(outlet, now_ms=now_ms, at_most=at_most)
        if not updates:
            return
        subjects = await self.subjects(updates)
        swapped = await self._judged.before_next(outlet)
        batch = _Verdicts(swapped)
        counts: list[Statement] = []
        for update, subject in zip(updates, subjects, strict=True):
            if batch.waiting is not None:
                # The next update is sent first, whatever it is; faults do not apply to it.
                batch.kept += [judge(update), judge(batch.waiting)]
                batch.waiting = None
                continue
            fault, statements = self._faults.judge("update", [subject])
            counts += statements
            _apply(batch, update, fault)
        if batch.waiting is not None:
            batch.kept.append(judge(batch.waiting, wait_ms=COMPANY_MS, together=AFTER_NEXT))
        await self._judged.keep(updates, batch.kept, swapped, counts)

    async def spoil_post(self, updates: Sequence[Update]) -> str | None:
        """Return the kind of the fault that changes a POST; None if there is none."""
        if not self._faults.armed("post"):
            return None
        fault, statements = self._faults.judge("post", await self.subjects(updates))
        if statements:
            await self._store.run(statements)
        return fault.kind.name if fault else None

    async def subjects(self, updates: Sequence[Update]) -> list[Subject]:
        """Return the subjects of updates, as far as the armed faults filter by them."""
        known: dict[str, tuple[str, str]] = {}
        if self._faults.asks_for("phone", "template"):
            wamids = {update.subject for update in updates if not update.field}
            messages = await of_wamids(self._store, sorted(wamids))
            known = {message.wamid: (message.phone, _template_sent(message.body)) for message in messages}
        return [self._subject(update, *known.get(update.subject, ("", ""))) for update in updates]

    def _subject(self, update: Update, phone: str, template: str) -> Subject:
        number = self._accounts.numbers.get(update.phone_number_id)
        return Subject(
            name=update.field or (MESSAGE if update.kind == MESSAGE else update.kind),
            app=update.app_id,
            waba_id=update.waba_id,
            number=(number.phone_number_id, number.phone_number) if number else (),
            phone=phone,
            template=template or (_template_told(update) if update.field else ""),
            about=update.subject,
        )


def _apply(verdicts: _Verdicts, update: Update, fault: Fault | None) -> None:
    if fault is None:
        verdicts.kept.append(judge(update))
        return
    match fault.kind.name:
        case "drop":
            pass
        case "delay_ms":
            verdicts.kept.append(judge(update, wait_ms=fault.value))
        case "duplicate":
            verdicts.kept += [judge(update)] * (1 + fault.value)
        case "reorder":
            verdicts.waiting = update
        case "batch":
            verdicts.kept.append(judge(update, wait_ms=COMPANY_MS, together=fault.value))
        case unknown:
            raise AssertionError(f"a fault of kind {unknown} does not apply to updates")


def _template_sent(body: str) -> str:
    """Return the name of the template in a message request; empty if there is none."""
    try:
        request: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return ""
    content = object_or_none((object_or_none(request) or {}).get("template"))
    return (text_or_none(content.get("name")) if content else None) or ""


def _template_told(update: Update) -> str:
    """Return the name of the template that a webhook field is about; empty if there is none."""
    value = object_or_none(msgspec.json.decode(update.rest))
    return (text_or_none(value.get("message_template_name")) if value else None) or ""
