"""Phones that cannot be reached: offline phones, and phones whose owner has blocked a business.

A change is first made in memory, so that messages accepted from then on respect it. Then the pending writes of
earlier messages are awaited, and only then the file is changed. So no message escapes the change. Messages to groups
are withheld, delivered afterwards, and read in the same way.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from waypost.base.clock import Clock
from waypost.base.json_values import object_or_none
from waypost.simulator.accounts.accounts import Accounts, Number
from waypost.simulator.delivery_signals import DeliverySignals
from waypost.simulator.messages.statuses import read_status_json
from waypost.simulator.outbox import Outbox
from waypost.simulator.phones.phone import SimulatedPhone
from waypost.simulator.phones.phones import Phones
from waypost.simulator.settings import SimulatorSettingsStore
from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.group_deliveries import (
    GROUP_DELIVERIES,
    GroupDelivery,
    find_scheduled_group_deliveries,
    find_waiting_group_deliveries,
)
from waypost.simulator.tables.messages import MESSAGES, SimulatedMessage, find_scheduled
from waypost.simulator.tables.phone_plans import (
    PLANNED_ACTIONS,
    WAITING_MESSAGES,
    WaitingMessage,
    build_waiting_message,
    postpone_actions,
    resume_actions,
)
from waypost.simulator.tables.updates import OUTBOX, Update, add_update, delete_delivery_statuses
from waypost.simulator.templates.template import lifetime_ms
from waypost.simulator.templates.templates import Templates


class PhoneReachability:
    """Takes phones offline and online, and blocks businesses."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: SimulatorSettingsStore,
        accounts: Accounts,
        templates: Templates,
        phones: Phones,
        signals: DeliverySignals,
        outbox: Outbox,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._accounts = accounts
        self._templates = templates
        self._phones = phones
        self._signals = signals
        self._outbox = outbox
        self._lock = asyncio.Lock()

    async def change_phone(
        self, phone: str, changes: Mapping[str, Any], extra_statements: Sequence[Statement] = ()
    ) -> None:
        """Set members of a phone; create the phone if it is new.

        When a phone stops sending read receipts, the planned ones are deleted.

        Args:
            phone: its digits.
            changes: new values by member.
            extra_statements: written in the same transaction.
        """
        async with self._lock:
            known = self._phones.find_or_default(phone)
            changed = replace(known, **changes)
            self._phones.put(changed)
            statements = [self._phones.save_statement(changed)]
            if known.sends_read_receipts and not changed.sends_read_receipts:
                await self._flush_pending_writes()
                now_ms = self._clock.now_ms()
                for row in await find_scheduled(self._store, phone, now_ms):
                    waba_id = self._accounts.numbers[row.phone_number_id].waba_id
                    planned_read = {"waba_id": waba_id, "due_ms": row.read_ms, "subject": row.wamid, "kind": "read"}
                    statements.append(OUTBOX.delete(**planned_read))
                for delivery in await find_scheduled_group_deliveries(self._store, phone, now_ms):
                    statements += cancel_planned_read(delivery, now_ms)
            await self._store.run([*statements, *extra_statements])

    async def go_offline(self, phone: str, extra_statements: Sequence[Statement] = ()) -> None:
        """Take the phone offline: messages on their way and planned actions wait.

        Args:
            phone: its digits.
            extra_statements: written in the same transaction.
        """
        async with self._lock:
            known = self._phones.find_or_default(phone)
            changed = replace(known, is_offline=True)
            self._phones.put(changed)
            statements = [self._phones.save_statement(changed)]
            if not known.is_offline:
                await self._flush_pending_writes()
                now_ms = self._clock.now_ms()
                for row in await find_scheduled(self._store, phone, now_ms):
                    statements += await self._defer_message(phone, row, now_ms)
                for delivery in await find_scheduled_group_deliveries(self._store, phone, now_ms):
                    statements += withhold_delivery(delivery, now_ms)
                statements.append(postpone_actions(phone))
            await self._store.run([*statements, *extra_statements])

    async def go_online(self, phone: str, extra_statements: Sequence[Statement] = ()) -> None:
        """Bring the phone online: waiting messages arrive in order, unless their lifetime is over.

        Args:
            phone: its digits.
            extra_statements: written in the same transaction.
        """
        async with self._lock:
            known = self._phones.find_or_default(phone)
            changed = replace(known, is_offline=False)
            self._phones.put(changed)
            at_ms = self._clock.now_ms()
            statements = [self._phones.save_statement(changed)]
            accounts: set[str] = set()
            if known.is_offline:
                await self._flush_pending_writes()
                for row in await WAITING_MESSAGES.find(self._store, phone=phone):
                    accounts.add(row.waba_id)
                    statements += self._deliver_waiting(self._phones.fill_user_id(changed), row, at_ms)
                for delivery in await find_waiting_group_deliveries(self._store, phone):
                    accounts.add(delivery.waba_id)
                    statements += deliver_withheld(
                        changed, delivery, at_ms, self._outbox, lifetime_ms=lifetime_ms(None)
                    )
                statements += [WAITING_MESSAGES.delete(phone=phone), resume_actions(phone, at_ms)]
            await self._store.run([*statements, *extra_statements])
        for waba_id in accounts:
            self._outbox.wake_events(waba_id).set()
        self._signals.wake(phone)

    async def block(
        self, phone: str, number: Number, *, blocks: bool, extra_statements: Sequence[Statement] = ()
    ) -> None:
        """Block a business number for the phone's owner, or unblock it.

        Messages on their way never arrive, even after an unblock, and the business is not notified.

        Args:
            phone: its digits.
            number: the business number.
            blocks: True to block, False to unblock.
            extra_statements: written in the same transaction.
        """
        async with self._lock:
            changed = self._phones.change_list(phone, "has_blocked", number.phone_number_id, is_listed=blocks)
            self._phones.put(changed)
            statements = [self._phones.save_statement(changed)]
            if blocks:
                await self._flush_pending_writes()
                now_ms = self._clock.now_ms()
                for row in await find_scheduled(self._store, phone, now_ms):
                    if row.phone_number_id == number.phone_number_id and (row.delivered_ms or 0) > now_ms:
                        statements += [
                            *_cancel_statuses(row, number.waba_id),
                            PLANNED_ACTIONS.delete(phone=phone, wamid=row.wamid),
                        ]
                for waiting_message in await WAITING_MESSAGES.find(self._store, phone=phone):
                    if waiting_message.phone_number_id == number.phone_number_id:
                        statements.append(WAITING_MESSAGES.delete(phone=phone, position=waiting_message.position))
                        statements.append(PLANNED_ACTIONS.delete(phone=phone, wamid=waiting_message.wamid))
            await self._store.run([*statements, *extra_statements])

    async def _flush_pending_writes(self) -> None:
        """Wait until all earlier writes are on disk."""
        await self._store.run([])

    async def _defer_message(self, phone: str, message: SimulatedMessage, now_ms: int) -> list[Statement]:
        """Return the statements that make one planned message wait."""
        waba_id = self._accounts.numbers[message.phone_number_id].waba_id
        reference = object_or_none(message.content.get("template")) or {}
        template = self._templates.by_key.get((waba_id, reference.get("name", ""), reference.get("language", "")))
        delivered_ms = message.delivered_ms or 0
        is_delivered = delivered_ms <= now_ms
        due_ms = message.read_ms if is_delivered else delivered_ms
        updates = await OUTBOX.find(self._store, waba_id=waba_id, due_ms=due_ms, subject=message.wamid)
        rest = next((update.rest for update in updates if update.kind in ("delivered", "read")), "")
        until_ms = message.at_ms + lifetime_ms(template)
        read_after_ms = None if message.read_ms is None else message.read_ms - delivered_ms
        waiting_message = build_waiting_message(
            message, waba_id, until_ms, read_after_ms, rest, is_delivered=is_delivered
        )
        return [
            *_cancel_statuses(message, waba_id, keeps_delivery=is_delivered),
            WAITING_MESSAGES.insert(waiting_message),
        ]

    def _deliver_waiting(self, phone: SimulatedPhone, waiting_message: WaitingMessage, at_ms: int) -> list[Statement]:
        """Return the statements that deliver one waiting message, or mark it read."""
        if waiting_message.until_ms <= at_ms and not waiting_message.is_delivered:
            return [PLANNED_ACTIONS.delete(phone=phone.phone, wamid=waiting_message.wamid)]
        read_after_ms = 0 if phone.has_chat_open else waiting_message.read_after_ms
        read_ms = None if read_after_ms is None else at_ms + read_after_ms
        statements: list[Statement] = [
            MESSAGES.update({"read_ms": read_ms}, position=waiting_message.position, read_ms=None)
            if waiting_message.is_delivered
            else MESSAGES.update({"delivered_ms": at_ms, "read_ms": read_ms}, position=waiting_message.position)
        ]
        if not waiting_message.rest:  # no app is subscribed
            return statements
        is_read = read_ms is not None and phone.sends_read_receipts
        skips_delivered = bool(waiting_message.is_delivered) or (is_read and phone.has_chat_open)

        def status_update(kind: str, due_ms: int, text: str) -> Statement:
            return add_update(
                Update(
                    waiting_message.waba_id,
                    due_ms,
                    self._outbox.next_id(),
                    kind,
                    waiting_message.phone_number_id,
                    waiting_message.wamid,
                    text,
                )
            )

        if not skips_delivered:
            statements.append(status_update("delivered", at_ms, waiting_message.rest))
        if read_ms is not None and is_read:
            priced = waiting_message.rest if skips_delivered and not waiting_message.is_delivered else None
            unpriced = read_status_json(
                phone, waiting_message.callback_data, has_contacts=self._settings.value.statuses_contacts
            )
            statements.append(status_update("read", read_ms, priced or unpriced))
        return statements


def _cancel_statuses(message: SimulatedMessage, waba_id: str, *, keeps_delivery: bool = False) -> list[Statement]:
    """Return the statements that delete a message's planned statuses."""
    dues_ms = [message.read_ms] if keeps_delivery else [message.delivered_ms, message.read_ms]
    changes = {"read_ms": None} if keeps_delivery else {"delivered_ms": None, "read_ms": None}
    return [
        MESSAGES.update(changes, position=message.position),
        *delete_delivery_statuses(message.wamid, waba_id, dues_ms),
    ]


def withhold_delivery(delivery: GroupDelivery, now_ms: int) -> list[Statement]:
    """Return the statements that cancel what is planned for one message, because its phone goes offline."""
    statements = cancel_planned_read(delivery, now_ms)
    key = {"phone": delivery.phone, "position": delivery.position}
    if delivery.delivered_ms is not None and delivery.delivered_ms > now_ms:
        statements += [
            _cancel_status(delivery, "delivered", delivery.delivered_ms, delivery.delivered_rest),
            GROUP_DELIVERIES.update({"delivered_ms": None}, **key),
        ]
    return [*statements, GROUP_DELIVERIES.update({"read_ms": None}, **key)]


def cancel_planned_read(delivery: GroupDelivery, now_ms: int) -> list[Statement]:
    """Return the statements that cancel the planned status `read`."""
    if delivery.read_ms is None or delivery.read_ms <= now_ms:
        return []
    return [_cancel_status(delivery, "read", delivery.read_ms, delivery.read_rest)]


def deliver_withheld(
    phone: SimulatedPhone, delivery: GroupDelivery, at_ms: int, outbox: Outbox, *, lifetime_ms: int
) -> list[Statement]:
    """Return the statements that deliver one message to a phone that is online again, unless its lifetime is over."""
    key = {"phone": delivery.phone, "position": delivery.position}
    if delivery.delivered_ms is None and delivery.at_ms + lifetime_ms <= at_ms:
        return [GROUP_DELIVERIES.delete(**key)]
    read_after_ms = 0 if phone.has_chat_open else delivery.read_after_ms
    read_ms = None if read_after_ms is None else at_ms + read_after_ms
    changes: dict[str, int | None] = {"read_ms": read_ms}
    statements: list[Statement] = []
    if delivery.delivered_ms is None:
        changes["delivered_ms"] = at_ms
        statements += add_status(delivery, "delivered", at_ms, delivery.delivered_rest, outbox)
    if read_ms is not None and phone.sends_read_receipts:
        statements += add_status(delivery, "read", read_ms, delivery.read_rest, outbox)
    return [GROUP_DELIVERIES.update(changes, **key), *statements]


def read_delivery(phone: SimulatedPhone, delivery: GroupDelivery, at_ms: int, outbox: Outbox) -> list[Statement]:
    """Return the statements that mark one delivered message as read, now instead of later."""
    statements = cancel_planned_read(delivery, at_ms)
    if phone.sends_read_receipts:
        statements += add_status(delivery, "read", at_ms, delivery.read_rest, outbox)
    key = {"phone": delivery.phone, "position": delivery.position}
    return [*statements, GROUP_DELIVERIES.update({"read_ms": at_ms}, **key)]


def add_status(delivery: GroupDelivery, kind: str, due_ms: int, rest: str, outbox: Outbox) -> list[Statement]:
    """Return the statement that queues a status; none if no app gets it."""
    if not rest:
        return []
    update = Update(delivery.waba_id, due_ms, outbox.next_id(), kind, delivery.phone_number_id, delivery.wamid, rest)
    return [add_update(update)]


def _cancel_status(delivery: GroupDelivery, kind: str, due_ms: int, rest: str) -> Statement:
    return OUTBOX.delete(waba_id=delivery.waba_id, due_ms=due_ms, subject=delivery.wamid, kind=kind, rest=rest)
