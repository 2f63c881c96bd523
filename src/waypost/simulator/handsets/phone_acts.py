"""What happens on a phone at one moment, and how it is written: all of it together, or nothing."""

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from waypost.simulator.accounts.accounts import Number
from waypost.simulator.messages.messages import Messages
from waypost.simulator.messages.statuses import read_rest
from waypost.simulator.messages.takings import ADD_MESSAGE
from waypost.simulator.phones.phone import Phone
from waypost.simulator.phones.phones import ADD_PHONE, KEEP_WINDOW, row_of
from waypost.simulator.store import Row, Statement, Store
from waypost.simulator.webhooks.outbox import ADD_UPDATE, MESSAGE, Outbox

_UNREAD: Final = """
SELECT wamid, delivered_ms, read_ms, callback_data FROM messages
WHERE phone=? AND phone_number_id=? AND is_inbound=0 AND delivered_ms<=? AND (read_ms IS NULL OR read_ms>?)
ORDER BY position
"""
_SOONER: Final = "UPDATE outbox SET due_ms=? WHERE waba_id=? AND due_ms=? AND subject=? AND kind='read'"
_READ: Final = "UPDATE messages SET read_ms=? WHERE wamid=?"


@dataclass(frozen=True)
class Act:
    """What happens on a phone at one moment, written together.

    First everything that has arrived from the number is read, then the phone writes.

    Args:
        is_heard: whether the business hears of it.
        reads: whether what has arrived is read.
        opens_window: whether it counts as the person having written.
        has_contacts: whether statuses name the recipient beside them, too.
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
    """Writes what happens on phones."""

    def __init__(self, store: Store, messages: Messages, outbox: Outbox) -> None:
        self._store = store
        self._messages = messages
        self._outbox = outbox

    async def carry_out(self, act: Act) -> int:
        """Write an act, wake who waits for it, and say how many messages were read."""
        count: int = await self._store.write(self._written, act)
        self._outbox.wake_of(act.number.waba_id).set()
        self._messages.tell(act.phone.phone)
        return count

    def _written(self, connection: sqlite3.Connection, acts: Sequence[Act]) -> Sequence[int]:
        return [self._write_act(connection, act) for act in acts]

    def _write_act(self, connection: sqlite3.Connection, act: Act) -> int:
        number = act.number
        if act.is_new:
            connection.execute(ADD_PHONE, row_of(act.phone))
        unread: list[Row] = []
        if act.reads:
            pair_now = (act.phone.phone, number.phone_number_id, act.at_ms, act.at_ms)
            unread = connection.execute(_UNREAD, pair_now).fetchall()
        for wamid, _, planned_ms, callback_data in unread:
            connection.execute(_READ, (act.at_ms, wamid))
            if planned_ms is not None:
                connection.execute(_SOONER, (act.at_ms, number.waba_id, planned_ms, wamid))
            elif act.is_heard and act.phone.sends_read_receipts:
                rest = read_rest(act.phone, callback_data, has_contacts=act.has_contacts)
                connection.execute(ADD_UPDATE, self._update(act, "read", wamid, rest))
        if act.wamid:
            message: Row = (
                self._messages.next_position(), act.wamid, act.phone.phone, number.phone_number_id,
                1, act.type, act.at_ms, act.shown, act.update, None, act.context_id,
                None, None, None, None,
            )  # fmt: skip
            connection.execute(ADD_MESSAGE, message)
            if act.opens_window:
                pair = (number.phone_number_id, act.phone.phone)
                connection.execute(KEEP_WINDOW, (*pair, act.at_ms))
            if act.is_heard:
                connection.execute(ADD_UPDATE, self._update(act, MESSAGE, act.wamid, act.update))
        for statement, values in act.also:
            connection.execute(statement, values)
        return len(unread)

    def _update(self, act: Act, kind: str, subject: str, rest: str) -> Row:
        number = act.number
        return (
            number.waba_id, act.at_ms, self._outbox.next_id(), kind, number.phone_number_id,
            subject, rest,
        )  # fmt: skip
