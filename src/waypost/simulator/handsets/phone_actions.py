"""Actions on a phone, each written in one transaction: reading what has arrived, and sending a message."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from waypost.base.json_values import object_of
from waypost.simulator.accounts.accounts import Number
from waypost.simulator.messages.delivery_signals import DeliverySignals
from waypost.simulator.messages.statuses import CHAT_MEMORY_MS, SENT_ONLY_TYPES, read_status_json
from waypost.simulator.phones.phone import SimulatedPhone
from waypost.simulator.phones.phones import Phones
from waypost.simulator.store import Statement, Store, run_statements
from waypost.simulator.tables.messages import MESSAGES, SimulatedMessage, find_chat_number_ids, find_unread
from waypost.simulator.tables.updates import MESSAGE_UPDATE, OUTBOX, Update, add_update
from waypost.simulator.webhooks.outbox import Outbox


@dataclass(frozen=True)
class SimulatedPhoneAction:
    """One action on a phone, written in one transaction.

    First everything that has arrived from the number is read, then the phone sends its message.

    Args:
        sends_webhook: whether the business gets webhooks about it.
        wamid: the id of the message that the phone sends; empty: it sends none.
        reads: whether the messages that have arrived are read.
        opens_window: whether it opens the 24-hour window.
        has_contacts: whether the webhook of a status also names the recipient in `contacts`.
        chat: the group that the message is for; empty: the chat with the business.
        extra_statements: written in the same transaction.
    """

    phone: SimulatedPhone
    is_new: bool
    number: Number
    at_ms: int
    sends_webhook: bool
    wamid: str = ""
    type: str = ""
    rendered: str = ""
    update: str = ""
    context_id: str | None = None
    reads: bool = True
    opens_window: bool = True
    has_contacts: bool = True
    chat: str = ""
    extra_statements: Sequence[Statement] = ()


class PhoneActionWriter:
    """Writes actions on phones."""

    def __init__(self, store: Store, phones: Phones, signals: DeliverySignals, outbox: Outbox) -> None:
        self._store = store
        self._phones = phones
        self._signals = signals
        self._outbox = outbox

    async def carry_out(self, action: SimulatedPhoneAction) -> int:
        """Write an action, wake its waiters, and return how many messages were read."""
        count: int = await self._store.write(self._write_actions, action)
        self._outbox.wake_events(action.number.waba_id).set()
        self._signals.wake(action.phone.phone)
        return count

    async def chat_number_ids(self, phone: str) -> set[str]:
        """Return the ids of the business numbers that the phone has a chat with."""
        return await find_chat_number_ids(self._store, phone)

    def _write_actions(self, connection: sqlite3.Connection, actions: Sequence[SimulatedPhoneAction]) -> Sequence[int]:
        return [self._write_action(connection, act) for act in actions]

    def _write_action(self, connection: sqlite3.Connection, action: SimulatedPhoneAction) -> int:
        number, phone = action.number, action.phone.phone
        number_id = number.phone_number_id
        unread = find_unread(connection, phone, number_id, action.at_ms) if action.reads else []
        statements: list[Statement] = [self._phones.add_statement(phone)] if action.is_new else []
        for item in unread:
            statements.append(MESSAGES.update({"read_ms": action.at_ms}, position=item.position))
            if item.read_ms is not None:
                due = {"waba_id": number.waba_id, "due_ms": item.read_ms, "subject": item.wamid, "kind": "read"}
                statements.append(OUTBOX.update({"due_ms": action.at_ms}, **due))
            elif action.sends_webhook and action.phone.sends_read_receipts and item.type not in SENT_ONLY_TYPES:
                rest = read_status_json(action.phone, item.callback_data, has_contacts=action.has_contacts)
                statements.append(add_update(self._build_update(action, "read", item.wamid, rest)))
        if action.wamid:
            message = SimulatedMessage(
                position=self._signals.next_position(),
                wamid=action.wamid,
                phone=action.chat or phone,
                phone_number_id=number_id,
                is_inbound=1,
                type=action.type,
                at_ms=action.at_ms,
                shown=action.rendered,
                body=action.update,
                context_id=action.context_id,
            )
            MESSAGES.insert_all(connection, [message])
            if action.opens_window:
                statements.append(self._phones.window_statement(number_id, phone, action.at_ms))
            if action.sends_webhook and not _reacts_to_old(connection, action):
                statements.append(add_update(self._build_update(action, MESSAGE_UPDATE, action.wamid, action.update)))
        run_statements(connection, [*statements, *action.extra_statements])
        return len(unread)

    def _build_update(self, action: SimulatedPhoneAction, kind: str, subject: str, rest: str) -> Update:
        number = action.number
        return Update(
            number.waba_id, action.at_ms, self._outbox.next_id(), kind, number.phone_number_id, subject, rest
        )  # fmt: skip


def _reacts_to_old(connection: sqlite3.Connection, action: SimulatedPhoneAction) -> bool:
    """True for a reaction to a message of more than 30 days ago: businesses do not learn of it.

    Source: the operator's page "Reaction messages".
    """
    if action.type != "reaction":
        return False
    reaction = object_of(object_of(msgspec.json.decode(action.rendered)).get("reaction"))
    targets = MESSAGES.find_on(connection, wamid=reaction.get("message_id"))
    return any(target.at_ms < action.at_ms - CHAT_MEMORY_MS for target in targets)
