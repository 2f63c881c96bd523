"""Webhooks under faults: which updates are told, when, how often, and what is wrong with a POST."""

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
"""How long after its time an update waits for others that it is to go with."""


@dataclass
class _Verdicts:
    """What becomes of a batch of updates.

    Attributes:
        kept: the updates that are to be told, in their order.
        waiting: the update that changes places with the next one.
    """

    waiting: Update | None
    kept: list[Parcel] = field(default_factory=list[Parcel])


class WebhookFaults:
    """Asks the armed faults about each update when it is due, and about each POST."""

    def __init__(self, store: Store, accounts: Accounts, outbox: Outbox, faults: Faults, judged: JudgedUpdates) -> None:
        self._store = store
        self._accounts = accounts
        self._outbox = outbox
        self._faults = faults
        self._judged = judged

    def may_spoil(self, waba_id: str) -> bool:
        """Whether updates have to be judged: a fault is armed, or something is held back still."""
        return self._judged.may_have(waba_id) or bool(self._faults.armed("update"))

    async def judge(self, outlet: Outlet, *, now_ms: int, at_most: int) -> None:
        """Judge the updates of an outlet that are due, each once and for ever."""
        updates = await self._outbox.due(outlet, now_ms=now_ms, at_most=at_most)
        if not updates:
            return
        subjects = await self.subjects(updates)
        before = await self._judged.before_next(outlet)
        verdicts = _Verdicts(before)
        counts: list[Statement] = []
        for update, subject in zip(updates, subjects, strict=True):
            if verdicts.waiting is not None:
                # Whatever comes next goes first, and is not asked about.
                verdicts.kept += [judge(update), judge(verdicts.waiting)]
                verdicts.waiting = None
                continue
            fault, statements = self._faults.judge("update", [subject])
            counts += statements
            _apply(verdicts, update, fault)
        if verdicts.waiting is not None:
            verdicts.kept.append(judge(verdicts.waiting, wait_ms=COMPANY_MS, together=AFTER_NEXT))
        await self._judged.keep(updates, verdicts.kept, before, counts)

    async def spoil_post(self, updates: Sequence[Update]) -> str | None:
        """What is wrong with a POST: the name of a kind, or nothing."""
        if not self._faults.armed("post"):
            return None
        fault, statements = self._faults.judge("post", await self.subjects(updates))
        if statements:
            await self._store.run(statements)
        return fault.kind.name if fault else None

    async def subjects(self, updates: Sequence[Update]) -> list[Subject]:
        """What updates are about, as far as the armed faults ask."""
        known: dict[str, tuple[str, str]] = {}
        if self._faults.asks_for("phone", "template"):
            wamids = {one.subject for one in updates if not one.field}
            rows = await of_wamids(self._store, sorted(wamids))
            known = {row.wamid: (row.phone, _template_sent(row.body)) for row in rows}
        return [self._subject(one, *known.get(one.subject, ("", ""))) for one in updates]

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
            raise AssertionError(f"no update can be spoiled by {unknown}")


def _template_sent(body: str) -> str:
    """The template that a message was made of."""
    try:
        sent: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        return ""
    content = object_or_none((object_or_none(sent) or {}).get("template"))
    return (text_or_none(content.get("name")) if content else None) or ""


def _template_told(update: Update) -> str:
    """The template that a webhook's field is about."""
    value = object_or_none(msgspec.json.decode(update.rest))
    return (text_or_none(value.get("message_template_name")) if value else None) or ""
