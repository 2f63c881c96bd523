"""Messages that a business sends, edits and revokes with its own app: on phones, and as `smb_message_echoes`.

They need no window and open none, and the API learns no status of them. Source: the operator's page "Onboard WhatsApp
Business app users"; decision 0124.
"""

from collections.abc import Callable
from typing import Any, Final

from waypost.simulator.handsets.message_changes import record_change
from waypost.simulator.handsets.phone_messages import PhoneMessage
from waypost.simulator.messages.sending import sent_wamid
from waypost.simulator.state.accounts import Number
from waypost.simulator.state.business_apps import is_disconnected
from waypost.simulator.state.phones import delivery_delays_ms, find_or_create_phone, show_to_business
from waypost.simulator.state.simulator_state import SimulatorState, Transaction
from waypost.simulator.storage.tables.messages import MESSAGES, SimulatedMessage
from waypost.simulator.storage.tables.phone_plans import WAITING_MESSAGES, build_waiting_message
from waypost.simulator.templates.template import lifetime_ms

ECHOES_FIELD: Final = "smb_message_echoes"
SENT_BY_APP: Final = {"sent_by": "business_app"}
"""What marks such a message in the file."""


def send_from_app(
    state: SimulatorState, number: Number, phone: str, message: PhoneMessage, context: dict[str, str] | None
) -> Callable[[Transaction], str]:
    """Send a message from the app to a phone; the result is its id.

    Args:
        context: the message that it replies to: `from` and `id`.
    """
    handset, at_ms = find_or_create_phone(state, phone), state.clock.now_ms()
    deliver_after_ms, read_after_ms = delivery_delays_ms(state, handset)
    read_after_ms = 0 if handset.has_chat_open else read_after_ms
    waits, is_blocked = handset.is_offline, number.phone_number_id in handset.has_blocked
    delivered_ms = None if waits or is_blocked else at_ms + deliver_after_ms
    stored = SimulatedMessage(
        position=state.delivery_signals.next_position(),
        wamid=sent_wamid(state.ids, phone),
        phone=phone,
        phone_number_id=number.phone_number_id,
        is_inbound=0,
        type=message.type,
        at_ms=at_ms,
        content={**message.rendered, **SENT_BY_APP},
        context_id=context["id"] if context else None,
        delivered_ms=delivered_ms,
        read_ms=None if delivered_ms is None or read_after_ms is None else delivered_ms + read_after_ms,
    )
    members = {**({"context": context} if context else {}), "type": message.type, **message.content}

    def write(transaction: Transaction) -> str:
        transaction.run(MESSAGES.insert(stored))
        if waits and not is_blocked:
            until_ms = at_ms + lifetime_ms(None)
            waiting = build_waiting_message(stored, number.waba_id, until_ms, read_after_ms, None)
            transaction.run(WAITING_MESSAGES.insert(waiting))
        _echo(transaction, number, phone, stored.wamid, at_ms, members)
        transaction.wake_phone(phone)
        return stored.wamid

    return write


def change_from_app(
    state: SimulatorState, number: Number, original: SimulatedMessage, notice: PhoneMessage
) -> Callable[[Transaction], str]:
    """Edit or revoke a message of the app, also on the phone that has it; the result is the id of the notice.

    Args:
        notice: of `message_changes`.
    """
    at_ms, wamid = state.clock.now_ms(), sent_wamid(state.ids, original.phone)

    def write(transaction: Transaction) -> str:
        record_change(transaction, original, notice, at_ms)
        _echo(transaction, number, original.phone, wamid, at_ms, {"type": notice.type, **notice.content})
        return wamid

    return write


def _echo(
    transaction: Transaction, number: Number, phone: str, wamid: str, at_ms: int, members: dict[str, Any]
) -> None:
    """Send the webhook about one message of the app; `contacts` and `to_user_id` came with user ids."""
    state = transaction.state
    if is_disconnected(transaction, number):
        return
    seen = show_to_business(state, find_or_create_phone(state, phone), number.phone_number_id, at_ms)
    echo = {
        "from": number.phone_number,
        **seen.identity_members("to", "to_user_id"),
        "id": wamid,
        "timestamp": str(at_ms // 1000),
        **members,
    }
    contacts = {"contacts": [seen.contact()]} if seen.user_id else {}
    transaction.notify(number.waba_id, ECHOES_FIELD, number.webhook_value(**contacts, message_echoes=[echo]))
