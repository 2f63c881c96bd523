"""Phones out of reach: offline and back, and those whose owner has blocked a business.

Everything begins in memory, so that what is taken from then on knows of it; then what had been taken
before is waited for, and only then the file is changed. So no message falls between the two.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from waypost.base.clock import Clock
from waypost.simulator.accounts.accounts import Accounts, Number
from waypost.simulator.live_settings import LiveSettings
from waypost.simulator.messages.messages import Messages
from waypost.simulator.messages.statuses import read_rest
from waypost.simulator.messages.takings import ADD_WAITING
from waypost.simulator.phones.conditions import lifetime_ms
from waypost.simulator.phones.phone import Phone
from waypost.simulator.phones.phones import Phones, keeping
from waypost.simulator.store import Row, Statement, Store
from waypost.simulator.templates.templates import Templates
from waypost.simulator.webhooks.outbox import ADD_UPDATE, Outbox

_PLANNED: Final = """
SELECT position, wamid, phone_number_id, at_ms, delivered_ms, read_ms,
    json_extract(shown, '$.template.name'), json_extract(shown, '$.template.language')
FROM messages WHERE phone=? AND is_inbound=0 AND (delivered_ms>? OR read_ms>?) ORDER BY position
"""
_REST: Final = (
    "SELECT rest FROM outbox WHERE waba_id=? AND due_ms=? AND subject=? "
    "AND kind IN ('delivered', 'read') ORDER BY id LIMIT 1"
)
_CALL_OFF: Final = (
    "DELETE FROM outbox WHERE waba_id=? AND due_ms IN (?,?) AND subject=? AND kind IN ('delivered', 'read')"
)
_NO_RECEIPT: Final = "DELETE FROM outbox WHERE waba_id=? AND due_ms=? AND subject=? AND kind='read'"
_UNREAD: Final = "UPDATE messages SET read_ms=NULL WHERE position=?"
_UNDELIVERED: Final = "UPDATE messages SET delivered_ms=NULL, read_ms=NULL WHERE position=?"
_ARRIVES: Final = "UPDATE messages SET delivered_ms=?, read_ms=? WHERE position=?"
_READS: Final = "UPDATE messages SET read_ms=? WHERE position=? AND read_ms IS NULL"
_POSTPONE_ACTS: Final = "UPDATE planned_acts SET due_ms=NULL WHERE phone=? AND json_extract(act, '$.do')<>'return'"
_RESUME_ACTS: Final = (
    "UPDATE planned_acts SET due_ms=?+after_ms WHERE phone=? AND due_ms IS NULL "
    "AND wamid NOT IN (SELECT wamid FROM held)"
)
_DROP_ACTS: Final = "DELETE FROM planned_acts WHERE phone=? AND wamid=?"
_WAITING: Final = """
SELECT waiting.position, waiting.wamid, waba_id, waiting.phone_number_id, until_ms, is_delivered,
    read_after_ms, rest, callback_data
FROM waiting JOIN messages USING (position) WHERE waiting.phone=? ORDER BY waiting.position
"""
_DROP_WAITING: Final = "DELETE FROM waiting WHERE phone=?"
_DROP_WAITING_OF: Final = "DELETE FROM waiting WHERE phone=? AND position=?"


class Absences:
    """Takes phones out of reach, and brings them back."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        settings: LiveSettings,
        accounts: Accounts,
        templates: Templates,
        phones: Phones,
        messages: Messages,
        outbox: Outbox,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._accounts = accounts
        self._templates = templates
        self._phones = phones
        self._messages = messages
        self._outbox = outbox
        self._turn = asyncio.Lock()

    async def change(self, phone: str, changes: Mapping[str, Any]) -> None:
        """Set a phone's name, habits or identity; makes the phone if it is new.

        One that sends no read receipts any more takes back those that are planned.
        """
        async with self._turn:
            known = self._phones.known(phone)
            changed = replace(known, **changes)
            self._phones.learn(changed)
            statements = keeping(changed)
            if known.sends_read_receipts and not changed.sends_read_receipts:
                await self._settled()
                now_ms = self._clock.now_ms()
                for row in await self._store.rows(_PLANNED, (phone, now_ms, now_ms)):
                    waba_id = self._accounts.numbers[row[2]].waba_id
                    statements.append((_NO_RECEIPT, (waba_id, row[5], row[1])))
            await self._store.run(statements)

    async def leave(self, phone: str, also: Sequence[Statement] = ()) -> None:
        """The phone goes offline: what is on its way waits, and so does what its script has planned.

        Args:
            phone: its digits.
            also: written in the same transaction.
        """
        async with self._turn:
            known = self._phones.known(phone)
            gone = replace(known, is_offline=True)
            self._phones.learn(gone)
            statements = keeping(gone)
            if not known.is_offline:
                await self._settled()
                now_ms = self._clock.now_ms()
                for row in await self._store.rows(_PLANNED, (phone, now_ms, now_ms)):
                    statements += await self._called_off(phone, row, now_ms)
                statements.append((_POSTPONE_ACTS, (phone,)))
            await self._store.run([*statements, *also])

    async def come_back(self, phone: str, also: Sequence[Statement] = ()) -> None:
        """The phone is online again: what has waited arrives in order, unless its lifetime is over.

        Args:
            phone: its digits.
            also: written in the same transaction.
        """
        async with self._turn:
            known = self._phones.known(phone)
            back = replace(known, is_offline=False)
            self._phones.learn(back)
            at_ms = self._clock.now_ms()
            statements = keeping(back)
            accounts: set[str] = set()
            if known.is_offline:
                await self._settled()
                for row in await self._store.rows(_WAITING, (phone,)):
                    accounts.add(row[2])
                    statements += self._arrival(self._phones.seen(back), row, at_ms)
                statements += [(_DROP_WAITING, (phone,)), (_RESUME_ACTS, (at_ms, phone))]
            await self._store.run([*statements, *also])
        for waba_id in accounts:
            self._outbox.wake_of(waba_id).set()
        self._messages.tell(phone)

    async def block(self, phone: str, number: Number, *, blocks: bool, also: Sequence[Statement] = ()) -> None:
        """The phone's owner blocks a business number, or takes that back.

        What is on its way never arrives, then or later, and the business hears nothing of it.

        Args:
            phone: its digits.
            number: the business number.
            blocks: or takes it back.
            also: written in the same transaction.
        """
        async with self._turn:
            known = self._phones.known(phone)
            self._phones.learn(known)
            statements = keeping(known)
            statements.append(self._phones.block(number.phone_number_id, phone, blocks=blocks))
            if blocks:
                await self._settled()
                now_ms = self._clock.now_ms()
                for row in await self._store.rows(_PLANNED, (phone, now_ms, now_ms)):
                    if row[2] == number.phone_number_id and row[4] > now_ms:
                        statements += self._undone(row, number.waba_id)
                        statements.append((_DROP_ACTS, (phone, row[1])))
                for row in await self._store.rows(_WAITING, (phone,)):
                    if row[3] == number.phone_number_id:
                        statements.append((_DROP_WAITING_OF, (phone, row[0])))
                        statements.append((_DROP_ACTS, (phone, row[1])))
            await self._store.run([*statements, *also])

    async def _settled(self) -> None:
        """Everything handed in before is on disk."""
        await self._store.run([])

    async def _called_off(self, phone: str, row: Row, now_ms: int) -> list[Statement]:
        """The statements that let one planned message wait."""
        position, wamid, number_id, at_ms, delivered_ms, read_ms, name, language = row
        waba_id = self._accounts.numbers[number_id].waba_id
        template = self._templates.by_key.get((waba_id, name, language)) if name else None
        is_delivered = delivered_ms <= now_ms
        rests = await self._store.rows(_REST, (waba_id, read_ms if is_delivered else delivered_ms, wamid))
        read_after_ms = None if read_ms is None else read_ms - delivered_ms
        waiting: Row = (
            phone, position, wamid, waba_id, number_id, at_ms + lifetime_ms(template), is_delivered,
            read_after_ms, rests[0][0] if rests else "",
        )  # fmt: skip
        return [*self._undone(row, waba_id, keeps_delivery=is_delivered), (ADD_WAITING, waiting)]

    def _undone(self, row: Row, waba_id: str, *, keeps_delivery: bool = False) -> list[Statement]:
        """The statements that take back a message's planned statuses."""
        position, wamid, _, _, delivered_ms, read_ms, *_ = row
        dues = (read_ms, read_ms) if keeps_delivery else (delivered_ms, read_ms)
        return [(_UNREAD if keeps_delivery else _UNDELIVERED, (position,)), (_CALL_OFF, (waba_id, *dues, wamid))]

    def _arrival(self, phone: Phone, row: Row, at_ms: int) -> list[Statement]:
        """The statements that let one waiting message arrive, or be read."""
        position, wamid, waba_id, number_id, until_ms, is_delivered, read_after_ms, rest, data = row
        if until_ms <= at_ms and not is_delivered:
            return [(_DROP_ACTS, (phone.phone, wamid))]
        if phone.has_chat_open:
            read_after_ms = 0
        read_ms = None if read_after_ms is None else at_ms + read_after_ms
        statements: list[Statement] = [
            (_READS, (read_ms, position)) if is_delivered else (_ARRIVES, (at_ms, read_ms, position))
        ]
        if not rest:  # nobody hears of it
            return statements
        is_read = read_ms is not None and phone.sends_read_receipts
        skips_delivered = is_delivered or (is_read and phone.has_chat_open)

        def told(kind: str, due_ms: int | None, text: str) -> Statement:
            update: tuple[Any, ...] = (
                waba_id, due_ms, self._outbox.next_id(), kind, number_id, wamid, text,
            )  # fmt: skip
            return ADD_UPDATE, update

        if not skips_delivered:
            statements.append(told("delivered", at_ms, rest))
        if is_read:
            priced = rest if skips_delivered and not is_delivered else None
            bare = read_rest(phone, data, has_contacts=self._settings.value.statuses_contacts)
            statements.append(told("read", read_ms, priced or bare))
        return statements
