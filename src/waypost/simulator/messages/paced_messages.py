"""Messages that are held until their template's quality is known, and what then becomes of them."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import asdict, replace

from waypost.base.clock import Clock
from waypost.simulator.keyed_store import StoredKind
from waypost.simulator.messages.delivery_planning import Reception
from waypost.simulator.phones.conditions import lifetime_ms
from waypost.simulator.phones.phones import Phones
from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.messages import MESSAGES, Fate, Message
from waypost.simulator.tables.phone_plans import ACTS, HELD, WAITING, resume_acts_about, waiting
from waypost.simulator.tables.updates import Update, add_update
from waypost.simulator.templates.template import Template
from waypost.simulator.webhooks.outbox import Outbox

DROPPED_WITH: Final = 132015  # Source: facts 3.2, "pacing"


class _Plan(msgspec.Struct, frozen=True):
    """What a held message will have: `updates` when it is released, `dropped` when it is not.

    Its times are as if it were released when it was taken.
    """

    waba_id: str
    message: Message  # without what it says
    fate: Fate
    is_awaited: bool  # its phone was offline
    lives_ms: int
    read_after_ms: int | None
    updates: list[Update]
    dropped: list[Update]


class Held:
    """Keeps held messages in the file, and knows which templates have any.

    Args:
        changed: set when a template has one more.
    """

    def __init__(self, store: Store, clock: Clock, outbox: Outbox, phones: Phones, changed: asyncio.Event) -> None:
        self._store = store
        self._clock = clock
        self._outbox = outbox
        self._phones = phones
        self._changed = changed
        self._held = StoredKind(store, HELD, _Plan)  # of a template, by the message's id
        self.template_ids: set[str] = set()
        store.at_reset(self.template_ids.clear)

    async def open(self) -> None:
        """Learn which templates have held messages."""
        self.template_ids.update(await self._held.owners())

    def hold(
        self,
        template: Template,
        message: Message,
        waba_id: str,
        reception: Reception,
        updates: list[Update],
        dropped: list[Update],
    ) -> Statement:
        """Hold a message that is being taken; the statement belongs into its transaction.

        Args:
            template: what it is sent with.
            message: itself, whose own times must be empty.
            waba_id: who sends.
            reception: when it would arrive and be read if it were not held.
            updates: its statuses in that case.
            dropped: its statuses if it is not released.
        """
        fate = reception.fate
        read_after_ms = reception.read_after_ms
        if fate.delivered_ms is not None and fate.read_ms is not None:
            read_after_ms = fate.read_ms - fate.delivered_ms
        plan = _Plan(
            waba_id=waba_id,
            message=replace(message, shown="", body=""),
            fate=fate,
            is_awaited=reception.until_ms is not None,
            lives_ms=lifetime_ms(template),
            read_after_ms=read_after_ms,
            updates=updates,
            dropped=dropped,
        )
        self.template_ids.add(template.template_id)
        return self._held.save_statement(plan, message.wamid, template.template_id)

    def wake(self, template: Template) -> None:
        """A held message of the template has been written: who settles them looks again."""
        self.template_ids.add(template.template_id)
        self._changed.set()

    def unsettled(self, find: Callable[[str], Template | None]) -> list[tuple[str, bool]]:
        """Templates whose held messages have had their verdict: the ids, and whether it is good."""
        found = [(template_id, find(template_id)) for template_id in sorted(self.template_ids)]
        return [
            (template_id, template is not None and template.pace_verdict == "release")
            for template_id, template in found
            if template is None or not template.is_paced
        ]

    async def settle(self, template_id: str, *, is_released: bool) -> list[str]:
        """Let go of a template's held messages, all in one transaction; gives their phones."""
        plans = await self._held.read(template_id)
        statements = [
            *(self._held.delete_statement(wamid, template_id) for wamid in plans),
            *(statement for plan in plans.values() for statement in self._let_go(plan, is_released=is_released)),
        ]
        self.template_ids.discard(template_id)
        if statements:
            await self._store.run(statements)
        for waba_id in {plan.waba_id for plan in plans.values()}:
            self._outbox.wake_of(waba_id).set()
        return [plan.message.phone for plan in plans.values()]

    def _let_go(self, plan: _Plan, *, is_released: bool) -> list[Statement]:
        message, now_ms = plan.message, self._clock.now_ms()
        late_ms, position = now_ms - message.at_ms, message.position
        if not is_released:
            failed = Fate(failed_ms=now_ms, failed_code=DROPPED_WITH)
            return [
                MESSAGES.update(asdict(failed), position=position),
                ACTS.delete(wamid=message.wamid),
                *self._later(plan.dropped, late_ms),
            ]
        if self._phones.known(message.phone).is_offline:
            rest = plan.updates[0].rest if plan.updates else ""
            waits = waiting(message, plan.waba_id, now_ms + plan.lives_ms, plan.read_after_ms, rest)
            return [WAITING.insert(waits), *self._later(plan.updates[:1], late_ms)]
        fate, updates = plan.fate, plan.updates
        if plan.is_awaited:  # its phone has come back meanwhile
            fate = replace(fate, delivered_ms=message.at_ms, read_ms=None)
            updates = [replace(one, kind=kind) for one in plan.updates[:1] for kind in ("sent", "delivered")]
        times_ms = {name: at_ms + late_ms for name, at_ms in asdict(fate).items() if at_ms is not None}
        later = Fate(**times_ms | {"failed_code": fate.failed_code})
        return [
            MESSAGES.update(asdict(later), position=position),
            resume_acts_about(message.wamid, later.delivered_ms),
            *self._later(updates, late_ms),
        ]

    def _later(self, updates: Sequence[Update], by_ms: int) -> list[Statement]:
        return [add_update(replace(one, due_ms=one.due_ms + by_ms, id=self._outbox.next_id())) for one in updates]
