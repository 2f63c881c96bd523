"""Storing an accepted message together with its planned statuses and its phone's planned actions."""

import sqlite3
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from waypost.simulator.accounts.accounts import Number
from waypost.simulator.delivery_signals import DeliverySignals
from waypost.simulator.messages.marketing import MARKETING_CATEGORY
from waypost.simulator.messages.media_links import MediaChecks
from waypost.simulator.messages.message_checks import CheckedMessage
from waypost.simulator.messages.paced_messages import DROPPED_CODE, MEDIA_FAILED_CODE, PacedMessages
from waypost.simulator.messages.statuses import SENT_ONLY_TYPES, DeliveryPlanner, StatusContext, plan_updates
from waypost.simulator.outbox import Outbox
from waypost.simulator.phones.phones import Phones
from waypost.simulator.phones.scripts import NO_PLAN, ScriptPlan
from waypost.simulator.settings import SimulatorSettingsStore
from waypost.simulator.store import Statement, Store, run_statements
from waypost.simulator.tables.messages import MESSAGES, DeliveryPlan, SimulatedMessage
from waypost.simulator.tables.phone_plans import (
    PLANNED_ACTIONS,
    WAITING_MESSAGES,
    WaitingMessage,
    build_waiting_message,
    count_planned_step,
)
from waypost.simulator.tables.updates import Update, add_updates


@dataclass(frozen=True)
class MessageWrite:
    """One message to be written, and what belongs to it.

    Args:
        message: the message.
        updates: its statuses.
        extra_statements: statements of the counts, and of its phone if that is new.
        waiting_message: set if its phone is offline.
        script_plan: the plan of the phone's script.
    """

    message: SimulatedMessage
    updates: Sequence[Update]
    extra_statements: Sequence[Statement] = ()
    waiting_message: WaitingMessage | None = None
    script_plan: ScriptPlan = NO_PLAN


def write_messages(connection: sqlite3.Connection, writes: Sequence[MessageWrite]) -> Sequence[None]:
    """Write messages and what belongs to them, within the caller's transaction."""
    MESSAGES.insert_all(connection, [write.message for write in writes])
    add_updates(connection, [update for write in writes for update in write.updates])
    chosen = Counter(step for write in writes for step in write.script_plan.counted_steps)
    run_statements(
        connection,
        [
            *(note for write in writes for note in write.extra_statements),
            *(WAITING_MESSAGES.insert(write.waiting_message) for write in writes if write.waiting_message is not None),
            *(PLANNED_ACTIONS.insert(act) for write in writes for act in write.script_plan.actions),
            *(count_planned_step(owner, step, count) for (owner, step), count in chosen.items()),
            *(uses for write in writes for uses in write.script_plan.use_statements),
        ],
    )
    return [None] * len(writes)


class MessageWriter:
    """Stores messages with everything planned for them, each in one transaction."""

    def __init__(
        self,
        store: Store,
        settings: SimulatorSettingsStore,
        phones: Phones,
        outbox: Outbox,
        delivery_planner: DeliveryPlanner,
        paced_messages: PacedMessages,
        media_checks: MediaChecks,
        signals: DeliverySignals,
    ) -> None:
        self._store = store
        self._settings = settings
        self._phones = phones
        self._outbox = outbox
        self._delivery_planner = delivery_planner
        self._paced_messages = paced_messages
        self._media_checks = media_checks
        self._signals = signals

    async def write(
        self,
        number: Number,
        message: SimulatedMessage,
        checked: CheckedMessage,
        *,
        is_in_window: bool,
        fail_code: int | None,
        extra_statements: Sequence[Statement],
        template_id: str = "",
    ) -> None:
        """Store a message to a phone, with its planned statuses and actions.

        Args:
            number: the sender.
            message: the message.
            checked: its checked content.
            is_in_window: whether the phone wrote in the last 24 hours.
            fail_code: the code with which it fails whatever the phone; None: no such failure.
            extra_statements: statements of the counts; written in the same transaction.
            template_id: of the template generated for a Direct Send message; empty: not such a message.
        """
        template, rendered, direct = checked.template, checked.rendered, checked.direct
        phone, now_ms = message.phone, message.at_ms
        handset, is_new = self._phones.find_or_create(phone)
        decision = self._delivery_planner.decide(
            number,
            handset,
            template,
            rendered,
            wamid=message.wamid,
            now_ms=now_ms,
            is_in_window=is_in_window,
            direct=direct,
            fail_code=fail_code,
        )
        sent = StatusContext(
            message=message,
            waba_id=number.waba_id,
            phone=self._phones.seen_by(handset, number.phone_number_id, now_ms),
            has_contacts=self._settings.value.statuses_contacts,
            skips_delivered=self._settings.value.skips_delivered,
            category=_price_category(checked),
            is_in_window=is_in_window,
            template_id=template_id,
        )
        updates = self._plan_updates(sent, decision.delivery_plan)
        if is_new:
            extra_statements = [*extra_statements, self._phones.add_statement(phone)]
        links, not_fetched = self._media_checks.find_links(rendered)
        if not_fetched:
            shown = msgspec.json.encode({**rendered, "not_fetched": not_fetched}).decode()
            message = msgspec.structs.replace(message, shown=shown)
        is_paced = template is not None and template.is_paced
        if links and not is_paced and decision.delivery_plan.failed_code is None:
            failed = self._plan_updates(sent, DeliveryPlan(failed_ms=now_ms, failed_code=MEDIA_FAILED_CODE))
            held_statement = self._paced_messages.hold(
                template, message, number.waba_id, decision, updates, failed, for_media=True
            )
            statements = [*extra_statements, held_statement]
            await self._store.write(
                write_messages, MessageWrite(message, [], statements, script_plan=decision.script_plan.postpone())
            )
            self._media_checks.start(message.wamid, links)
            return
        if template is not None and is_paced:
            dropped = self._plan_updates(sent, DeliveryPlan(failed_ms=now_ms, failed_code=DROPPED_CODE))
            held_statement = self._paced_messages.hold(template, message, number.waba_id, decision, updates, dropped)
            await self._store.write(
                write_messages,
                MessageWrite(
                    message, [], [*extra_statements, held_statement], script_plan=decision.script_plan.postpone()
                ),
            )
            self._paced_messages.notify_held(template)  # it may have been released meanwhile: check again
            return
        message = msgspec.structs.replace(message, **msgspec.structs.asdict(decision.delivery_plan))
        waiting_message: WaitingMessage | None = None
        if decision.waits_until_ms is not None:  # the later status has the same price as `sent`
            rest = updates[0].rest if updates and message.type not in SENT_ONLY_TYPES else ""
            waiting_message = build_waiting_message(
                message, number.waba_id, decision.waits_until_ms, decision.read_after_ms, rest
            )
        await self._store.write(
            write_messages, MessageWrite(message, updates, extra_statements, waiting_message, decision.script_plan)
        )
        if decision.script_plan.actions:
            self._signals.actions_planned.set()
        self._outbox.wake_events(number.waba_id).set()
        self._signals.wake(phone)

    def _plan_updates(self, context: StatusContext, delivery_plan: DeliveryPlan) -> list[Update]:
        if not self._outbox.has_subscribers(context.waba_id):
            return []
        return plan_updates(context, delivery_plan, self._outbox, self._settings.value.statuses_version)


def _price_category(checked: CheckedMessage) -> str:
    """Return the category of a message's price. Source: facts 7.3."""
    if checked.is_marketing:
        return MARKETING_CATEGORY
    if checked.template is not None:
        return checked.template.category.lower()
    return checked.direct.category or "service"
