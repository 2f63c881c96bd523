"""Phones that cannot be reached: offline phones, and phones whose owner has blocked a business.

A change is first made in memory, so that messages accepted from then on respect it. Then the returned function changes
the file in a transaction, which follows those of earlier messages. So no message escapes the change. Messages to groups
are withheld, delivered afterwards, and read in the same way.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

from waypost.simulator.state.accounts import Number
from waypost.simulator.state.outbox import phone_status
from waypost.simulator.state.phone import SimulatedPhone
from waypost.simulator.state.phones import change_phone_list, fill_user_id, find_phone, set_phone_members
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.tables.messages import (
    GROUP_DELIVERIES,
    MESSAGES,
    GroupDelivery,
    SimulatedMessage,
    find_scheduled,
    find_scheduled_group_deliveries,
)
from waypost.simulator.storage.tables.phone_plans import (
    PLANNED_ACTIONS,
    WAITING_MESSAGES,
    WaitingMessage,
    build_waiting_message,
    resume_actions,
)
from waypost.simulator.storage.tables.updates import OUTBOX, Update, delete_scheduled
from waypost.simulator.templates.model import find_template
from waypost.simulator.templates.template import lifetime_ms

_WAITING_IN_GROUPS: Final = (  # for the phone, or for its owner to read them by schedule
    "phone=:phone AND (delivered_ms IS NULL OR read_ms IS NULL AND read_after_ms NOT NULL) ORDER BY position"
)


def change_phone(state: SimulatorState, phone: str, changes: Mapping[str, Any]) -> Callable[[Transaction], None]:
    """Set members of a phone; create the phone if it is new.

    When a phone stops sending read receipts, the planned ones are deleted.
    """
    sent_receipts = find_phone(state, phone).sends_read_receipts
    saved = set_phone_members(state, phone, changes)
    stops_receipts = sent_receipts and not find_phone(state, phone).sends_read_receipts

    def write(transaction: Transaction) -> None:
        transaction.run(saved)
        if not stops_receipts:
            return
        now_ms = state.clock.now_ms()
        for row in find_scheduled(transaction.connection, phone, now_ms):
            waba_id = state.accounts.numbers[row.phone_number_id].waba_id
            transaction.run(delete_scheduled(row.wamid, waba_id, now_ms, "read"))
        for delivery in find_scheduled_group_deliveries(transaction.connection, phone, now_ms):
            _cancel_group_statuses(transaction, delivery, now_ms, "read")

    return write


def go_offline(state: SimulatorState, phone: str) -> Callable[[Transaction], None]:
    """Take the phone offline: messages on their way and planned actions wait."""
    was_offline = find_phone(state, phone).is_offline
    saved = set_phone_members(state, phone, {"is_offline": True})

    def write(transaction: Transaction) -> None:
        transaction.run(saved)
        if was_offline:
            return
        now_ms = state.clock.now_ms()
        for row in find_scheduled(transaction.connection, phone, now_ms):
            _defer_message(state, transaction, row, now_ms)
        for delivery in find_scheduled_group_deliveries(transaction.connection, phone, now_ms):
            _withhold_group_delivery(transaction, delivery, now_ms)
        waits = "UPDATE planned_acts SET due_ms=NULL WHERE phone=:phone AND json_extract(action, '$.do')<>'return'"
        transaction.run((waits, {"phone": phone}))

    return write


def go_online(state: SimulatorState, phone: str) -> Callable[[Transaction], None]:
    """Bring the phone online: waiting messages arrive in order, unless their lifetime is over."""
    was_offline = find_phone(state, phone).is_offline
    saved = set_phone_members(state, phone, {"is_offline": False})
    at_ms = state.clock.now_ms()

    def write(transaction: Transaction) -> None:
        transaction.run(saved)
        transaction.wake_phone(phone)
        if not was_offline:
            return
        handset = fill_user_id(state, find_phone(state, phone))
        for waiting in WAITING_MESSAGES.find_on(transaction.connection, phone=phone):
            _deliver_waiting(state, transaction, handset, waiting, at_ms)
        for delivery in GROUP_DELIVERIES.select(transaction.connection, _WAITING_IN_GROUPS, phone=phone):
            _deliver_withheld(transaction, handset, delivery, at_ms)
        transaction.run(WAITING_MESSAGES.delete(phone=phone), resume_actions(phone, at_ms))

    return write


def block(state: SimulatorState, phone: str, number: Number, *, blocks: bool) -> Callable[[Transaction], None]:
    """Block a business number for the phone's owner, or unblock it.

    Messages on their way never arrive, even after an unblock, and the business is not notified.
    """
    number_id = number.phone_number_id
    saved = change_phone_list(state, phone, "has_blocked", number_id, is_listed=blocks)

    def write(transaction: Transaction) -> None:
        transaction.run(saved)
        if not blocks:
            return
        now_ms = state.clock.now_ms()
        for row in find_scheduled(transaction.connection, phone, now_ms):
            if row.phone_number_id == number_id and (row.delivered_ms or 0) > now_ms:
                _cancel_statuses(transaction, row, number.waba_id, now_ms)
                transaction.run(PLANNED_ACTIONS.delete(phone=phone, wamid=row.wamid))
        for waiting in WAITING_MESSAGES.find_on(transaction.connection, phone=phone, phone_number_id=number_id):
            transaction.run(
                WAITING_MESSAGES.delete(phone=phone, position=waiting.position),
                PLANNED_ACTIONS.delete(phone=phone, wamid=waiting.wamid),
            )

    return write


def _defer_message(state: SimulatorState, transaction: Transaction, message: SimulatedMessage, now_ms: int) -> None:
    """Make one planned message wait."""
    waba_id = state.accounts.numbers[message.phone_number_id].waba_id
    template = find_template(state, waba_id, message.template.get("name", ""), message.template.get("language", ""))
    delivered_ms = message.delivered_ms or 0
    is_delivered = delivered_ms <= now_ms
    due_ms = message.read_ms if is_delivered else delivered_ms
    updates = OUTBOX.find_on(transaction.connection, waba_id=waba_id, due_ms=due_ms, subject=message.wamid)
    status = next((update.content for update in updates if update.kind in ("delivered", "read")), None)
    until_ms = message.at_ms + lifetime_ms(template)
    read_after_ms = None if message.read_ms is None else message.read_ms - delivered_ms
    waiting = build_waiting_message(message, waba_id, until_ms, read_after_ms, status, is_delivered=is_delivered)
    _cancel_statuses(transaction, message, waba_id, now_ms)
    transaction.run(WAITING_MESSAGES.insert(waiting))


def _deliver_waiting(
    state: SimulatorState, transaction: Transaction, phone: SimulatedPhone, waiting: WaitingMessage, at_ms: int
) -> None:
    """Deliver one waiting message, or mark it read."""
    if waiting.until_ms <= at_ms and not waiting.is_delivered:
        transaction.run(PLANNED_ACTIONS.delete(phone=phone.phone, wamid=waiting.wamid))
        return
    read_after_ms = 0 if phone.has_chat_open else waiting.read_after_ms
    read_ms = None if read_after_ms is None else at_ms + read_after_ms
    transaction.run(
        MESSAGES.update({"read_ms": read_ms}, position=waiting.position, read_ms=None)
        if waiting.is_delivered
        else MESSAGES.update({"delivered_ms": at_ms, "read_ms": read_ms}, position=waiting.position)
    )
    is_read = read_ms is not None and phone.sends_read_receipts
    skips_delivered = bool(waiting.is_delivered) or (is_read and phone.has_chat_open)
    if not skips_delivered:
        _send_status(transaction, waiting, "delivered", at_ms, waiting.status)
    if read_ms is not None and is_read and waiting.status:
        unpriced = phone_status(state.settings.value, phone, waiting.callback_data)
        is_first = skips_delivered and not waiting.is_delivered  # it has the price
        _send_status(transaction, waiting, "read", read_ms, waiting.status if is_first else unpriced)


def _cancel_statuses(transaction: Transaction, message: SimulatedMessage, waba_id: str, now_ms: int) -> None:
    """Cancel a message's delivery and reading, as far as they are planned for later."""
    planned = [name for name in ("delivered_ms", "read_ms") if (getattr(message, name) or 0) > now_ms]
    transaction.run(
        MESSAGES.update(dict.fromkeys(planned), position=message.position),
        delete_scheduled(message.wamid, waba_id, now_ms),
    )


def _withhold_group_delivery(transaction: Transaction, delivery: GroupDelivery, now_ms: int) -> None:
    """Cancel what is planned for one message to a group, because its phone goes offline."""
    _cancel_group_statuses(transaction, delivery, now_ms, "delivered", "read")
    delivered_ms = delivery.delivered_ms if (delivery.delivered_ms or 0) <= now_ms else None
    changes = {"delivered_ms": delivered_ms, "read_ms": None}
    transaction.run(GROUP_DELIVERIES.update(changes, phone=delivery.phone, position=delivery.position))


def _cancel_group_statuses(transaction: Transaction, delivery: GroupDelivery, now_ms: int, *kinds: str) -> None:
    """Delete the planned statuses of one participant; those of the others differ in their content."""
    planned = {
        "delivered": (delivery.delivered_ms, delivery.delivered_status),
        "read": (delivery.read_ms, delivery.read_status),
    }
    for kind in kinds:
        due_ms, content = planned[kind]
        if due_ms is not None and due_ms > now_ms:
            key = {"waba_id": delivery.waba_id, "due_ms": due_ms, "subject": delivery.wamid}
            transaction.run(OUTBOX.delete(**key, kind=kind, content=content))


def _deliver_withheld(transaction: Transaction, phone: SimulatedPhone, delivery: GroupDelivery, at_ms: int) -> None:
    """Deliver one message to a group on a phone that is online again, unless its lifetime is over."""
    key = {"phone": delivery.phone, "position": delivery.position}
    if delivery.delivered_ms is None and delivery.at_ms + lifetime_ms(None) <= at_ms:
        transaction.run(GROUP_DELIVERIES.delete(**key))
        return
    read_after_ms = 0 if phone.has_chat_open else delivery.read_after_ms
    read_ms = None if read_after_ms is None else at_ms + read_after_ms
    changes: dict[str, int | None] = {"read_ms": read_ms}
    if delivery.delivered_ms is None:
        changes["delivered_ms"] = at_ms
        _send_status(transaction, delivery, "delivered", at_ms, delivery.delivered_status)
    if read_ms is not None and phone.sends_read_receipts:
        _send_status(transaction, delivery, "read", read_ms, delivery.read_status)
    transaction.run(GROUP_DELIVERIES.update(changes, **key))


def read_group_delivery(transaction: Transaction, phone: SimulatedPhone, delivery: GroupDelivery, at_ms: int) -> None:
    """Mark one delivered message to a group as read, now instead of later."""
    _cancel_group_statuses(transaction, delivery, at_ms, "read")
    if phone.sends_read_receipts:
        _send_status(transaction, delivery, "read", at_ms, delivery.read_status)
    transaction.run(GROUP_DELIVERIES.update({"read_ms": at_ms}, phone=delivery.phone, position=delivery.position))


def _send_status(
    transaction: Transaction,
    delivery: WaitingMessage | GroupDelivery,
    kind: str,
    due_ms: int,
    content: dict[str, Any] | None,
) -> None:
    """Queue a status; without a content no app gets it."""
    if content is not None:
        transaction.send(Update(delivery.waba_id, due_ms, kind, delivery.phone_number_id, delivery.wamid, content))
