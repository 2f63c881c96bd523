"""Storing an accepted message together with its planned statuses and its phone's planned actions."""

from collections.abc import Sequence

import msgspec

from waypost.simulator.accounts.accounts import Number
from waypost.simulator.messages.delivery_planning import Receptions
from waypost.simulator.messages.delivery_signals import Arrivals
from waypost.simulator.messages.groups import group_sent
from waypost.simulator.messages.message_checks import CheckedMessage
from waypost.simulator.messages.message_writes import Taken, take_all
from waypost.simulator.messages.paced_messages import DROPPED_WITH, Held
from waypost.simulator.messages.statuses import Sent, errors_of, planned_updates
from waypost.simulator.phones.phones import Phones
from waypost.simulator.settings import LiveSettings
from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.messages import Fate, Message
from waypost.simulator.tables.phone_plans import Waiting, waiting
from waypost.simulator.tables.updates import Update
from waypost.simulator.webhooks.outbox import Outbox


class MessagePlans:
    """Stores messages with everything planned for them, each in one transaction."""

    def __init__(
        self,
        store: Store,
        settings: LiveSettings,
        phones: Phones,
        outbox: Outbox,
        receptions: Receptions,
        held: Held,
        arrivals: Arrivals,
    ) -> None:
        self._store = store
        self._settings = settings
        self._phones = phones
        self._outbox = outbox
        self._receptions = receptions
        self._held = held
        self._arrivals = arrivals

    async def keep(
        self,
        number: Number,
        message: Message,
        checked: CheckedMessage,
        *,
        is_in_window: bool,
        fail_code: int | None,
        notes: Sequence[Statement],
    ) -> None:
        """Store a message to a phone, with its planned statuses and actions.

        Args:
            number: the sender.
            message: the message.
            checked: its checked content.
            is_in_window: whether the phone wrote in the last 24 hours.
            fail_code: the code with which it fails whatever the phone; None: no such failure.
            notes: statements of the counts; written in the same transaction.
        """
        template, rendered, direct = checked.template, checked.shown, checked.direct
        phone, now_ms = message.phone, message.at_ms
        handset, is_new = self._phones.meet(phone)
        reception = self._receptions.of(
            number,
            handset,
            template,
            rendered,
            wamid=message.wamid,
            now_ms=now_ms,
            is_in_window=is_in_window,
            direct=direct,
            sender_fails=fail_code,
        )
        sent = Sent(
            message=message,
            waba_id=number.waba_id,
            handset=handset,
            has_contacts=self._settings.value.statuses_contacts,
            skips_delivered=self._settings.value.skips_delivered,
            category=direct.category or "service" if template is None else template.category.lower(),
            is_in_window=is_in_window,
        )
        updates = self._planned(sent, reception.fate)
        if is_new:
            notes = [*notes, self._phones.add_statement(phone)]
        if template is not None and template.is_paced:
            dropped = self._planned(sent, Fate(failed_ms=now_ms, failed_code=DROPPED_WITH))
            held_statement = self._held.hold(template, message, number.waba_id, reception, updates, dropped)
            await self._store.write(
                take_all, Taken(message, [], [*notes, held_statement], plan=reception.plan.put_off())
            )
            self._held.wake(template)  # it may have been released meanwhile: check again
            return
        message = msgspec.structs.replace(message, **msgspec.structs.asdict(reception.fate))
        waiting_message: Waiting | None = None
        if reception.until_ms is not None:  # the later status has the same price as `sent`
            rest = updates[0].rest if updates else ""
            waiting_message = waiting(message, number.waba_id, reception.until_ms, reception.read_after_ms, rest)
        await self._store.write(take_all, Taken(message, updates, notes, waiting_message, reception.plan))
        if reception.plan.acts:
            self._arrivals.planned.set()
        self._outbox.wake_of(number.waba_id).set()
        self._arrivals.tell(phone)

    async def keep_of_group(self, number: Number, message: Message, fail_code: int | None) -> None:
        """Store a message to a group with its first status; the simulator has no phones of members."""
        if fail_code:
            message = msgspec.structs.replace(message, failed_ms=message.at_ms, failed_code=fail_code)
        updates: list[Update] = []
        if self._outbox.listens(number.waba_id):
            errors = errors_of(fail_code) if fail_code else ""
            updates.append(group_sent(message, number.waba_id, self._outbox.next_id(), errors))
        await self._store.write(take_all, Taken(message, updates))
        self._outbox.wake_of(number.waba_id).set()

    def _planned(self, sent: Sent, fate: Fate) -> list[Update]:
        if not self._outbox.listens(sent.waba_id):
            return []
        return planned_updates(sent, fate, self._outbox, self._settings.value.statuses_version)
