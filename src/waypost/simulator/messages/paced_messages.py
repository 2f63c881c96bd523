"""Messages held until their template's quality or their media is known, and then released or dropped."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import msgspec
from msgspec.structs import asdict, replace

from waypost.base.clock import Clock
from waypost.base.written_numbers import ascii_json
from waypost.simulator.keyed_store import KeyedValues
from waypost.simulator.messages.statuses import FAILURE_TEXTS, DeliveryDecision
from waypost.simulator.outbox import Outbox
from waypost.simulator.phones.phones import Phones
from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.messages import MESSAGES, DeliveryPlan, SimulatedMessage
from waypost.simulator.tables.phone_plans import (
    HELD_KIND,
    PLANNED_ACTIONS,
    WAITING_MESSAGES,
    build_waiting_message,
    resume_message_actions,
)
from waypost.simulator.tables.updates import Update, add_update
from waypost.simulator.templates.template import SimulatedTemplate
from waypost.simulator.templates.template import lifetime_ms as template_lifetime_ms

DROPPED_CODE: Final = 132015  # Source: facts 3.2, "pacing"
MEDIA_FAILED_CODE: Final = 131053  # Source: facts 5.2
MEDIA_OWNER: Final = "media"
"""The owner of messages that wait for their media; of others it is the template's id."""


class _HeldMessage(msgspec.Struct, frozen=True):
    """A held message and its statuses: `updates` if it is released, `dropped` if it is not.

    Its times are those of a release at the moment it was accepted.
    """

    waba_id: str
    message: SimulatedMessage  # without its content
    delivery_plan: DeliveryPlan
    is_awaited: bool  # its phone was offline
    lifetime_ms: int
    read_after_ms: int | None
    updates: list[Update]
    dropped: list[Update]
    dropped_code: int = DROPPED_CODE


class PacedMessages:
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
        self._held_messages = KeyedValues(store, HELD_KIND, _HeldMessage)  # of a template, by the message's id
        self.template_ids: set[str] = set()
        store.register_reset(self.template_ids.clear)

    async def open(self) -> None:
        """Load the ids of the templates that have held messages."""
        self.template_ids.update(set(await self._held_messages.owners()) - {MEDIA_OWNER})

    def hold(
        self,
        template: SimulatedTemplate | None,
        message: SimulatedMessage,
        waba_id: str,
        decision: DeliveryDecision,
        updates: list[Update],
        dropped: list[Update],
        *,
        for_media: bool = False,
    ) -> Statement:
        """Hold a message that is being accepted; return the statement for its transaction.

        Args:
            template: the message's template, if it is one.
            message: the message; its own times must be empty.
            waba_id: the sender's account.
            decision: its delivery as if it were not held.
            updates: its statuses in that case.
            dropped: its statuses if it is dropped.
            for_media: whether it waits for its media; if not, for its template's quality.
        """
        delivery_plan = decision.delivery_plan
        read_after_ms = decision.read_after_ms
        if delivery_plan.delivered_ms is not None and delivery_plan.read_ms is not None:
            read_after_ms = delivery_plan.read_ms - delivery_plan.delivered_ms
        plan = _HeldMessage(
            waba_id=waba_id,
            message=replace(message, shown="", body=""),
            delivery_plan=delivery_plan,
            is_awaited=decision.waits_until_ms is not None,
            lifetime_ms=template_lifetime_ms(template),
            read_after_ms=read_after_ms,
            updates=updates,
            dropped=dropped,
            dropped_code=MEDIA_FAILED_CODE if for_media else DROPPED_CODE,
        )
        if for_media or template is None:
            return self._held_messages.save_statement(plan, message.wamid, MEDIA_OWNER)
        self.template_ids.add(template.template_id)
        return self._held_messages.save_statement(plan, message.wamid, template.template_id)

    async def media_wamids(self) -> list[str]:
        """Return the ids of the messages that wait for their media."""
        return list(await self._held_messages.read(MEDIA_OWNER))

    async def decide_media(self, wamid: str, problem: str | None) -> str | None:
        """Release the message whose media was fetched, or drop it for a problem; return its phone.

        None: it no longer waits.
        """
        held_message = (await self._held_messages.read(MEDIA_OWNER)).get(wamid)
        if held_message is None:
            return None
        if problem is not None:
            generic, details = ascii_json(FAILURE_TEXTS[MEDIA_FAILED_CODE]), ascii_json(problem)
            dropped = [replace(update, rest=update.rest.replace(generic, details)) for update in held_message.dropped]
            held_message = replace(held_message, dropped=dropped)
        await self._store.run(
            [
                self._held_messages.delete_statement(wamid, MEDIA_OWNER),
                *self._release_or_drop_message(held_message, is_released=problem is None),
            ]
        )
        self._outbox.wake_events(held_message.waba_id).set()
        return held_message.message.phone

    def notify_held(self, template: SimulatedTemplate) -> None:
        """Wake the loop that releases or drops: a held message of the template has been written."""
        self.template_ids.add(template.template_id)
        self._changed.set()

    def find_decided(self, find: Callable[[str], SimulatedTemplate | None]) -> list[tuple[str, bool]]:
        """Return the templates whose pacing has ended: their ids, and whether their messages are released."""
        templates = [(template_id, find(template_id)) for template_id in sorted(self.template_ids)]
        return [
            (template_id, template is not None and template.pace_verdict == "release")
            for template_id, template in templates
            if template is None or not template.is_paced
        ]

    async def release_or_drop(self, template_id: str, *, is_released: bool) -> list[str]:
        """Release or drop a template's held messages, all in one transaction; return their phones."""
        held_messages = await self._held_messages.read(template_id)
        statements = [
            *(self._held_messages.delete_statement(wamid, template_id) for wamid in held_messages),
            *(
                statement
                for held_message in held_messages.values()
                for statement in self._release_or_drop_message(held_message, is_released=is_released)
            ),
        ]
        self.template_ids.discard(template_id)
        if statements:
            await self._store.run(statements)
        for waba_id in {held_message.waba_id for held_message in held_messages.values()}:
            self._outbox.wake_events(waba_id).set()
        return [held_message.message.phone for held_message in held_messages.values()]

    def _release_or_drop_message(self, held_message: _HeldMessage, *, is_released: bool) -> list[Statement]:
        message, now_ms = held_message.message, self._clock.now_ms()
        delay_ms, position = now_ms - message.at_ms, message.position
        if not is_released:
            failure = DeliveryPlan(failed_ms=now_ms, failed_code=held_message.dropped_code)
            return [
                MESSAGES.update(asdict(failure), position=position),
                PLANNED_ACTIONS.delete(wamid=message.wamid),
                *self._shift_updates(held_message.dropped, delay_ms),
            ]
        if self._phones.find_or_default(message.phone).is_offline:
            rest = held_message.updates[0].rest if held_message.updates else ""
            waiting_message = build_waiting_message(
                message, held_message.waba_id, now_ms + held_message.lifetime_ms, held_message.read_after_ms, rest
            )
            return [WAITING_MESSAGES.insert(waiting_message), *self._shift_updates(held_message.updates[:1], delay_ms)]
        delivery_plan, updates = held_message.delivery_plan, held_message.updates
        if held_message.is_awaited:  # its phone is online again
            delivery_plan = replace(delivery_plan, delivered_ms=message.at_ms, read_ms=None)
            updates = [
                replace(update, kind=kind) for update in held_message.updates[:1] for kind in ("sent", "delivered")
            ]
        times_ms = {name: at_ms + delay_ms for name, at_ms in asdict(delivery_plan).items() if at_ms is not None}
        shifted = DeliveryPlan(**times_ms | {"failed_code": delivery_plan.failed_code})
        return [
            MESSAGES.update(asdict(shifted), position=position),
            resume_message_actions(message.wamid, shifted.delivered_ms),
            *self._shift_updates(updates, delay_ms),
        ]

    def _shift_updates(self, updates: Sequence[Update], by_ms: int) -> list[Statement]:
        return [
            add_update(replace(update, due_ms=update.due_ms + by_ms, id=self._outbox.next_id())) for update in updates
        ]
