"""Messages of a business to a group: checked, stored, and delivered to the phones of its participants."""

from collections.abc import Mapping
from typing import Any

import msgspec

from waypost.base.written_numbers import ascii_json
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.delivery_signals import DeliverySignals
from waypost.simulator.errors import message_error
from waypost.simulator.groups.model import SimulatedGroup
from waypost.simulator.messages.message_checks import GROUP_PREFIX
from waypost.simulator.messages.message_writer import MessageWrite, write_messages
from waypost.simulator.messages.statuses import SENT_ONLY_TYPES, contact_json, failure_errors_json, pricing_json
from waypost.simulator.outbox import Outbox, status_json
from waypost.simulator.phones.phone import SimulatedPhone
from waypost.simulator.phones.phones import Phones
from waypost.simulator.settings import SimulatorSettingsStore
from waypost.simulator.store import Store
from waypost.simulator.tables.group_deliveries import GROUP_DELIVERIES, GroupDelivery
from waypost.simulator.tables.messages import SimulatedMessage
from waypost.simulator.tables.updates import Update


def group_contact(recipient: str) -> dict[str, Any]:
    """Return the contact of a group for the response."""
    group_id = recipient.removeprefix(GROUP_PREFIX)
    return {"input": group_id, "wa_id": group_id}


class GroupMessages:
    """Stores messages to groups with their planned statuses, each in one transaction."""

    def __init__(
        self,
        store: Store,
        settings: SimulatorSettingsStore,
        groups: Mapping[str, SimulatedGroup],
        phones: Phones,
        signals: DeliverySignals,
        outbox: Outbox,
    ) -> None:
        self._store = store
        self._settings = settings
        self._groups = groups
        self._phones = phones
        self._signals = signals
        self._outbox = outbox

    def find_group(self, number: Number, recipient: str) -> SimulatedGroup:
        """Return the group of a recipient.

        Raises:
            GraphApiError: 131041, the number has no such group; 131020, it has no participants.

        Source: the operator's page "Groups".
        """
        group = self._groups.get(recipient.removeprefix(GROUP_PREFIX))
        if group is None or group.phone_number_id != number.phone_number_id:
            raise message_error(131041, "The group was not found, or the business is not in it")
        if not group.participants:
            raise message_error(131020, "Nobody has joined the group")
        return group

    async def write(
        self, number: Number, message: SimulatedMessage, group: SimulatedGroup, category: str, fail_code: int | None
    ) -> None:
        """Store a message with the status of the group, and the planned statuses of its participants.

        A phone whose owner has blocked the business gets nothing, and an offline one later.

        Args:
            number: the sender.
            message: the message.
            group: the recipient.
            category: of its price: service, utility or marketing.
            fail_code: the code with which it fails; None: no failure.

        Source: the operator's page "Groups".
        """
        has_receivers = self._outbox.has_subscribers(number.waba_id)
        is_reported = has_receivers and message.type not in SENT_ONLY_TYPES
        if fail_code:
            message = msgspec.structs.replace(message, failed_ms=message.at_ms, failed_code=fail_code)
            errors = failure_errors_json(fail_code)
            updates = [self._group_update(number, message, group, "failed", errors)] if has_receivers else []
            await self._store.write(write_messages, MessageWrite(message, updates))
            self._outbox.wake_events(number.waba_id).set()
            return
        phones = [
            self._phones.fill_user_id(self._phones.find_or_default(participant.phone))
            for participant in group.participants
        ]
        deliveries = [
            self._plan_delivery(number, message, group, phone, category)
            for phone in phones
            if number.phone_number_id not in phone.has_blocked
        ]
        updates: list[Update] = []
        if has_receivers:
            updates.append(self._group_update(number, message, group, "sent", ""))
        if is_reported:
            updates += [update for delivery in deliveries for update in self._delivery_updates(delivery)]
        else:
            deliveries = [msgspec.structs.replace(row, delivered_rest="", read_rest="") for row in deliveries]
        statements = [GROUP_DELIVERIES.insert(delivery) for delivery in deliveries]
        await self._store.write(write_messages, MessageWrite(message, updates, statements))
        self._outbox.wake_events(number.waba_id).set()
        for phone in phones:
            self._signals.wake(phone.phone)

    def _plan_delivery(
        self, number: Number, message: SimulatedMessage, group: SimulatedGroup, phone: SimulatedPhone, category: str
    ) -> GroupDelivery:
        deliver_after_ms, read_after_ms = self._phones.delivery_delays_ms(phone)
        if phone.has_chat_open:
            read_after_ms = 0
        delivered_ms = None if phone.is_offline else message.at_ms + deliver_after_ms
        read_ms = None if delivered_ms is None or read_after_ms is None else delivered_ms + read_after_ms
        identity = phone.identity_members("recipient_participant_id", "recipient_participant_user_id")
        recipient = ascii_json({"recipient_id": group.group_id, "recipient_type": "group", **identity})[1:-1]
        contact = contact_json(phone) if self._settings.value.statuses_contacts else ""
        pricing = pricing_json(f"group_{category}", is_free=category == "service")
        return GroupDelivery(
            phone=phone.phone,
            position=message.position,
            wamid=message.wamid,
            waba_id=number.waba_id,
            phone_number_id=number.phone_number_id,
            at_ms=message.at_ms,
            delivered_ms=delivered_ms,
            read_ms=read_ms,
            read_after_ms=read_after_ms,
            delivered_rest=status_json(recipient, message.callback_data, pricing, contact=contact),
            read_rest=status_json(recipient, message.callback_data, contact=contact)
            if phone.sends_read_receipts
            else "",
        )

    def _delivery_updates(self, delivery: GroupDelivery) -> list[Update]:
        planned = (
            ("delivered", delivery.delivered_ms, delivery.delivered_rest),
            ("read", delivery.read_ms, delivery.read_rest),
        )
        return [
            Update(
                delivery.waba_id, due_ms, self._outbox.next_id(), kind,
                delivery.phone_number_id, delivery.wamid, rest,
            )
            for kind, due_ms, rest in planned
            if due_ms is not None and rest
        ]  # fmt: skip

    def _group_update(
        self, number: Number, message: SimulatedMessage, group: SimulatedGroup, kind: str, errors: str
    ) -> Update:
        """Return the status of the whole group: `sent`, or `failed` with errors."""
        recipient = f'"recipient_id":{ascii_json(group.group_id)},"recipient_type":"group"'
        rest = status_json(recipient, message.callback_data, errors)
        return Update(
            number.waba_id, message.at_ms, self._outbox.next_id(), kind,
            number.phone_number_id, message.wamid, rest,
        )  # fmt: skip
