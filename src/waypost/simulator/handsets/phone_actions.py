"""Actions on a phone, each written in one transaction: reading what has arrived, and sending a message."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from waypost.simulator.accounts.accounts import Number
from waypost.simulator.messages.delivery_signals import Arrivals
from waypost.simulator.messages.statuses import read_rest
from waypost.simulator.phones.phone import Phone
from waypost.simulator.phones.phones import Phones
from waypost.simulator.store import Statement, Store, run_statements
from waypost.simulator.tables.messages import MESSAGES, Message, numbers_of, unread_on
from waypost.simulator.tables.updates import MESSAGE, OUTBOX, Update, add_update
from waypost.simulator.webhooks.outbox import Outbox


@dataclass(frozen=True)
class Act:
    """One action on a phone, written in one transaction.

    First everything that has arrived from the number is read, then the phone sends its message.

    Args:
        is_heard: whether the business gets webhooks about it.
        wamid: the id of the message that the phone sends; empty: it sends none.
        reads: whether the messages that have arrived are read.
        opens_window: whether it opens the 24-hour window.
        has_contacts: whether the webhook of a status also names the recipient in `contacts`.
        also: written in the same transaction.
    """

    phone: Phone
    is_new: bool
    number: Number
    at_ms: int
    is_heard: bool
    wamid: str = ""
    type: str = ""
    shown: str = ""
    update: str = ""
    context_id: str | None = None
    reads: bool = True
    opens_window: bool = True
    has_contacts: bool = True
    also: Sequence[Statement] = ()


class PhoneActs:
    """Writes actions on phones."""

    def __init__(self, store: Store, phones: Phones, arrivals: Arrivals, outbox: Outbox) -> None:
        self._store = store
        self._phones = phones
        self._arrivals = arrivals
        self._outbox = outbox

    async def carry_out(self, act: Act) -> int:
        """Write an action, wake its waiters, and return how many messages were read."""
        count: int = await self._store.write(self._written, act)
        self._outbox.wake_of(act.number.waba_id).set()
        self._arrivals.tell(act.phone.phone)
        return count

    async def numbers_of(self, phone: str) -> set[str]:
        """Return the ids of the business numbers that the phone has a chat with."""
        return await numbers_of(self._store, phone)

    def _written(self, connection: sqlite3.Connection, acts: Sequence[Act]) -> Sequence[int]:
        return [self._write_act(connection, act) for act in acts]

    def _write_act(self, connection: sqlite3.Connection, act: Act) -> int:
        number, phone = act.number, act.phone.phone
        number_id = number.phone_number_id
        unread = unread_on(connection, phone, number_id, act.at_ms) if act.reads else []
        statements: list[Statement] = [self._phones.add_statement(phone)] if act.is_new else []
        for item in unread:
            statements.append(MESSAGES.update({"read_ms": act.at_ms}, position=item.position))
            if item.read_ms is not None:
                due = {"waba_id": number.waba_id, "due_ms": item.read_ms, "subject": item.wamid, "kind": "read"}
                statements.append(OUTBOX.update({"due_ms": act.at_ms}, **due))
            elif act.is_heard and act.phone.sends_read_receipts:
                rest = read_rest(act.phone, item.callback_data, has_contacts=act.has_contacts)
                statements.append(add_update(self._update(act, "read", item.wamid, rest)))
        if act.wamid:
            message = Message(
                position=self._arrivals.next_position(),
                wamid=act.wamid,
                phone=phone,
                phone_number_id=number_id,
                is_inbound=1,
                type=act.type,
                at_ms=act.at_ms,
                shown=act.shown,
                body=act.update,
                context_id=act.context_id,
            )
            MESSAGES.insert_all(connection, [message])
            if act.opens_window:
                statements.append(self._phones.window_statement(number_id, phone, act.at_ms))
            if act.is_heard:
                statements.append(add_update(self._update(act, MESSAGE, act.wamid, act.update)))
        run_statements(connection, [*statements, *act.also])
        return len(unread)

    def _update(self, act: Act, kind: str, subject: str, rest: str) -> Update:
        number = act.number
        return Update(
            number.waba_id, act.at_ms, self._outbox.next_id(), kind, number.phone_number_id, subject, rest
        )  # fmt: skip
