"""Messages held until their template's quality is known, and then released or dropped."""

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
    """A held message and its statuses: `updates` if it is released, `dropped` if it is not.

    Its times are those of a release at the moment it was accepted.
    """

    waba_id: str
    message: Message  # without its content
    fate: Fate
    is_awaited: bool  # its phone was offline
    lives_ms: int
    read_after_ms: int | None
    updates: list[Update]
    dropped: list[Update]


class Held:
    """Stores held messages in the file, and the ids of their templates in memory.

    Args:
        changed: set when a template gets another held message.
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
        """Load the ids of the templates that have held messages."""
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
        """Hold a message that is being accepted; return the statement for its transaction.

        Args:
            template: the message's template.
            message: the message; its own times must be empty.
            waba_id: the sender's account.
            reception: its delivery as if it were not held.
            updates: its statuses in that case.
            dropped: its statuses if it is dropped.
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
        """Wake the loop that releases or drops: a held message of the template has been written."""
        self.template_ids.add(template.template_id)
        self._changed.set()

    def unsettled(self, find: Callable[[str], Template | None]) -> list[tuple[str, bool]]:
        """Return the templates whose pacing has ended: their ids, and whether their messages are released."""
        templates = [(template_id, find(template_id)) for template_id in sorted(self.template_ids)]
        return [
            (template_id, template is not None and template.pace_verdict == "release")
            for template_id, template in templates
            if template is None or not template.is_paced
        ]

    async def settle(self, template_id: str, *, is_released: bool) -> list[str]:
        """Release or drop a template's held messages, all in one transaction; return their phones."""
        held_messages = await self._held.read(template_id)
        statements = [
            *(self._held.delete_statement(wamid, template_id) for wamid in held_messages),
            *(
                statement
                for held_message in held_messages.values()
                for statement in self._let_go(held_message, is_released=is_released)
            ),
        ]
        self.template_ids.discard(template_id)
        if statements:
            await self._store.run(statements)
        for waba_id in {held_message.waba_id for held_message in held_messages.values()}:
            self._outbox.wake_of(waba_id).set()
        return [held_message.message.phone for held_message in held_messages.values()]

    def _let_go(self, plan: _Plan, *, is_released: bool) -> list[Statement]:
        message, now_ms = plan.message, self._clock.now_ms()
        delay_ms, position = now_ms - message.at_ms, message.position
        if not is_released:
            failure = Fate(failed_ms=now_ms, failed_code=DROPPED_WITH)
            return [
                MESSAGES.update(asdict(failure), position=position),
                ACTS.delete(wamid=message.wamid),
                *self._later(plan.dropped, delay_ms),
            ]
        if self._phones.known(message.phone).is_offline:
            rest = plan.updates[0].rest if plan.updates else ""
            waiting_message = waiting(message, plan.waba_id, now_ms + plan.lives_ms, plan.read_after_ms, rest)
            return [WAITING.insert(waiting_message), *self._later(plan.updates[:1], delay_ms)]
        fate, updates = plan.fate, plan.updates
        if plan.is_awaited:  # its phone is online again
            fate = replace(fate, delivered_ms=message.at_ms, read_ms=None)
            updates = [replace(update, kind=kind) for update in plan.updates[:1] for kind in ("sent", "delivered")]
        times_ms = {name: at_ms + delay_ms for name, at_ms in asdict(fate).items() if at_ms is not None}
        shifted = Fate(**times_ms | {"failed_code": fate.failed_code})
        return [
            MESSAGES.update(asdict(shifted), position=position),
            resume_acts_about(message.wamid, shifted.delivered_ms),
            *self._later(updates, delay_ms),
        ]

    def _later(self, updates: Sequence[Update], by_ms: int) -> list[Statement]:
        return [
            add_update(replace(update, due_ms=update.due_ms + by_ms, id=self._outbox.next_id())) for update in updates
        ]
