"""Groups on phones: the messages that a participant sees, and reading them."""

from typing import Final

from waypost.simulator.groups.model import GroupParticipant, SimulatedGroup
from waypost.simulator.handsets.inboxes import MessageView, message_view, wait_until
from waypost.simulator.handsets.reachability import read_group_delivery
from waypost.simulator.messages.message_checks import GROUP_PREFIX
from waypost.simulator.state.phones import fill_user_id, find_phone
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.tables.messages import GROUP_DELIVERIES, MESSAGES, GroupDelivery, SimulatedMessage

_SHOWN: Final = (
    "phone=:recipient AND position>:after AND failed_ms IS NULL AND at_ms>=:joined_ms AND (is_inbound=1 OR EXISTS ("
    "SELECT 1 FROM group_deliveries AS delivery WHERE delivery.phone=:phone AND delivery.position=messages.position "
    "AND delivery.delivered_ms<=:now_ms)) ORDER BY position DESC LIMIT :limit"
)
_UNREAD: Final = (
    "phone=:phone AND delivered_ms<=:now_ms AND (read_ms IS NULL OR read_ms>:now_ms) AND position IN "
    "(SELECT position FROM messages WHERE phone=:recipient) ORDER BY position"
)
_NEXT_DELIVERY: Final = "SELECT min(delivered_ms) FROM group_deliveries WHERE phone=:phone AND delivered_ms>:now_ms"


async def list_group_messages(
    state: SimulatorState, group: SimulatedGroup, participant: GroupParticipant, *, after: int, limit: int
) -> list[MessageView]:
    """Return the messages that a participant sees, newest last: those written since it joined."""
    now_ms = state.clock.now_ms()
    rows = await MESSAGES.rows(
        state.store,
        _SHOWN,
        recipient=GROUP_PREFIX + group.group_id,
        phone=participant.phone,
        joined_ms=participant.joined_ms,
        now_ms=now_ms,
        after=after,
        limit=limit,
    )
    deliveries = {row.position: row for row in await GROUP_DELIVERIES.find(state.store, phone=participant.phone)}
    return [_view(message, deliveries.get(message.position), now_ms) for message in rows[::-1]]


async def wait_for_group_messages(
    state: SimulatorState,
    group: SimulatedGroup,
    participant: GroupParticipant,
    *,
    wait_ms: int,
    after: int | None,
    limit: int,
) -> list[MessageView]:
    """Return the messages once one is after `after`, or without it unread or new, or those when the time is over."""

    async def read() -> list[MessageView]:
        return await list_group_messages(state, group, participant, after=after or 0, limit=limit)

    known = {view["wamid"] for view in await read()}

    def is_complete(shown: list[MessageView]) -> bool:
        if after is not None:
            return bool(shown)
        unread = ("to_phone", "delivered")
        return any(view["wamid"] not in known or (view["direction"], view["state"]) == unread for view in shown)

    return await wait_until(state, participant.phone, wait_ms, read, is_complete, _NEXT_DELIVERY)


def read_group(transaction: Transaction, phone: str, group: SimulatedGroup) -> int:
    """Mark what has arrived from a group as read on a phone; return how many messages that was."""
    state, recipient = transaction.state, GROUP_PREFIX + group.group_id
    handset, now_ms = fill_user_id(state, find_phone(state, phone)), state.clock.now_ms()
    unread = GROUP_DELIVERIES.select(transaction.connection, _UNREAD, phone=phone, recipient=recipient, now_ms=now_ms)
    for delivery in unread:
        read_group_delivery(transaction, handset, delivery, now_ms)
    return len(unread)


def _view(message: SimulatedMessage, delivery: GroupDelivery | None, now_ms: int) -> MessageView:
    view = message_view(message, now_ms)
    if delivery is None:
        return view
    is_read = delivery.read_ms is not None and delivery.read_ms <= now_ms
    view["state"] = "read" if is_read else "delivered"
    view["delivered_ms"], view["read_ms"] = delivery.delivered_ms, delivery.read_ms
    return view
