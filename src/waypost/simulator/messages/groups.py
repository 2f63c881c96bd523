"""Messages of a business to a group: checked, stored, and delivered to the phones of its participants."""

from typing import Any

from msgspec.structs import replace

from waypost.simulator.apis.errors import message_error
from waypost.simulator.groups.model import GROUPS
from waypost.simulator.messages.message_checks import GROUP_PREFIX
from waypost.simulator.messages.statuses import SENT_ONLY_TYPES, failure_errors, pricing_member
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.outbox import status_content
from waypost.simulator.state.phone import SimulatedPhone
from waypost.simulator.state.phones import delivery_delays_ms, fill_user_id, find_phone
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.tables.messages import GROUP_DELIVERIES, MESSAGES, GroupDelivery, SimulatedMessage
from waypost.simulator.storage.tables.updates import Update


def write_group_message(
    transaction: Transaction, number: Number, message: SimulatedMessage, category: str, fail_code: int | None
) -> None:
    """Store a message with the status of its group, and the planned statuses of the participants.

    A phone whose owner has blocked the business gets nothing, and an offline one later.

    Raises:
        GraphApiError: 131041, the number has no such group; 131020, it has no participants.

    Source: the operator's page "Groups".
    """
    state, group = transaction.state, transaction.find(GROUPS, message.phone.removeprefix(GROUP_PREFIX))
    if group is None or group.phone_number_id != number.phone_number_id:
        raise message_error(131041, "The group was not found, or the business is not in it")
    if not group.participants:
        raise message_error(131020, "Nobody has joined the group")
    recipient = {"recipient_id": group.group_id, "recipient_type": "group"}

    def send(kind: str, due_ms: int | None, content: dict[str, Any] | None) -> None:
        if due_ms is not None and content is not None:
            transaction.send(Update(number.waba_id, due_ms, kind, number.phone_number_id, message.wamid, content))

    if fail_code is not None:
        transaction.run(MESSAGES.insert(replace(message, failed_ms=message.at_ms, failed_code=fail_code)))
        send("failed", message.at_ms, status_content(recipient, message.callback_data, failure_errors(fail_code)))
        return
    transaction.run(MESSAGES.insert(message))
    send("sent", message.at_ms, status_content(recipient, message.callback_data))
    for participant in group.participants:
        phone = fill_user_id(state, find_phone(state, participant.phone))
        transaction.wake_phone(phone.phone)
        if number.phone_number_id not in phone.has_blocked:
            delivery = _plan_delivery(state, number, message, recipient, phone, category)
            transaction.run(GROUP_DELIVERIES.insert(delivery))
            send("delivered", delivery.delivered_ms, delivery.delivered_status)
            send("read", delivery.read_ms, delivery.read_status)


def _plan_delivery(
    state: SimulatorState,
    number: Number,
    message: SimulatedMessage,
    group_members: dict[str, str],
    phone: SimulatedPhone,
    category: str,
) -> GroupDelivery:
    deliver_after_ms, read_after_ms = delivery_delays_ms(state, phone)
    if phone.has_chat_open:
        read_after_ms = 0
    delivered_ms = None if phone.is_offline else message.at_ms + deliver_after_ms
    read_ms = None if delivered_ms is None or read_after_ms is None else delivered_ms + read_after_ms
    identity = phone.identity_members("recipient_participant_id", "recipient_participant_user_id")
    contact = phone if state.settings.value.statuses_contacts else None
    pricing = pricing_member(f"group_{category}", is_free=category == "service")
    is_reported = state.accounts.has_receiver(number.waba_id) and message.type not in SENT_ONLY_TYPES

    def content(members: dict[str, Any]) -> dict[str, Any]:
        return status_content({**group_members, **identity}, message.callback_data, members, contact=contact)

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
        delivered_status=content(pricing) if is_reported else None,
        read_status=content({}) if is_reported and phone.sends_read_receipts else None,
    )
