"""Messages to groups on a phone: withheld while it is offline, delivered afterwards, and read."""

from waypost.simulator.phones.phone import SimulatedPhone
from waypost.simulator.store import Statement
from waypost.simulator.tables.group_deliveries import GROUP_DELIVERIES, GroupDelivery
from waypost.simulator.tables.updates import OUTBOX, Update, add_update
from waypost.simulator.webhooks.outbox import Outbox


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
