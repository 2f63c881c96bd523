"""Phones out of reach: offline and back, and those whose owner has blocked a business.

Everything begins in memory, so that what is taken from then on knows of it; then what had been taken
before is waited for, and only then the file is changed. So no message falls between the two.
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from waypost.base.clock import Clock
from waypost.base.json_values import object_or_none
from waypost.simulator.accounts.accounts import Accounts, Number
from waypost.simulator.messages.delivery_signals import Arrivals
from waypost.simulator.messages.statuses import read_rest
from waypost.simulator.phones.conditions import lifetime_ms
from waypost.simulator.phones.phone import Phone
from waypost.simulator.phones.phones import Phones
from waypost.simulator.settings import LiveSettings
from waypost.simulator.store import Statement, Store
from waypost.simulator.tables.messages import MESSAGES, Message, planned
from waypost.simulator.tables.phone_plans import ACTS, WAITING, Waiting, postpone_acts, resume_acts, waiting
from waypost.simulator.tables.updates import OUTBOX, Update, add_update, drop_arrivals
from waypost.simulator.templates.templates import Templates
from waypost.simulator.webhooks.outbox import Outbox


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
        arrivals: Arrivals,
        outbox: Outbox,
    ) -> None:
        self._store = store
        self._clock = clock
        self._settings = settings
        self._accounts = accounts
        self._templates = templates
        self._phones = phones
        self._arrivals = arrivals
        self._outbox = outbox
        self._turn = asyncio.Lock()

    async def change(self, phone: str, changes: Mapping[str, Any], also: Sequence[Statement] = ()) -> None:
        """Set members of a phone; makes the phone if it is new.

        One that sends no read receipts any more takes back those that are planned.

        Args:
            phone: its digits.
            changes: by the names of its members.
            also: written in the same transaction.
        """
        async with self._turn:
            known = self._phones.known(phone)
            changed = replace(known, **changes)
            self._phones.learn(changed)
            statements = [self._phones.save_statement(changed)]
            if known.sends_read_receipts and not changed.sends_read_receipts:
                await self._settled()
                now_ms = self._clock.now_ms()
                for row in await planned(self._store, phone, now_ms):
                    waba_id = self._accounts.numbers[row.phone_number_id].waba_id
                    planned_read = {"waba_id": waba_id, "due_ms": row.read_ms, "subject": row.wamid, "kind": "read"}
                    statements.append(OUTBOX.delete(**planned_read))
            await self._store.run([*statements, *also])

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
            statements = [self._phones.save_statement(gone)]
            if not known.is_offline:
                await self._settled()
                now_ms = self._clock.now_ms()
                for row in await planned(self._store, phone, now_ms):
                    statements += await self._called_off(phone, row, now_ms)
                statements.append(postpone_acts(phone))
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
            statements = [self._phones.save_statement(back)]
            accounts: set[str] = set()
            if known.is_offline:
                await self._settled()
                for row in await WAITING.find(self._store, phone=phone):
                    accounts.add(row.waba_id)
                    statements += self._arrival(self._phones.seen(back), row, at_ms)
                statements += [WAITING.delete(phone=phone), resume_acts(phone, at_ms)]
            await self._store.run([*statements, *also])
        for waba_id in accounts:
            self._outbox.wake_of(waba_id).set()
        self._arrivals.tell(phone)

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
            changed = self._phones.listed(phone, "has_blocked", number.phone_number_id, is_listed=blocks)
            self._phones.learn(changed)
            statements = [self._phones.save_statement(changed)]
            if blocks:
                await self._settled()
                now_ms = self._clock.now_ms()
                for row in await planned(self._store, phone, now_ms):
                    if row.phone_number_id == number.phone_number_id and (row.delivered_ms or 0) > now_ms:
                        statements += [*_undone(row, number.waba_id), ACTS.delete(phone=phone, wamid=row.wamid)]
                for waits in await WAITING.find(self._store, phone=phone):
                    if waits.phone_number_id == number.phone_number_id:
                        statements.append(WAITING.delete(phone=phone, position=waits.position))
                        statements.append(ACTS.delete(phone=phone, wamid=waits.wamid))
            await self._store.run([*statements, *also])

    async def _settled(self) -> None:
        """Everything handed in before is on disk."""
        await self._store.run([])

    async def _called_off(self, phone: str, row: Message, now_ms: int) -> list[Statement]:
        """The statements that let one planned message wait."""
        waba_id = self._accounts.numbers[row.phone_number_id].waba_id
        named = object_or_none(row.content.get("template")) or {}
        template = self._templates.by_key.get((waba_id, named.get("name", ""), named.get("language", "")))
        delivered_ms = row.delivered_ms or 0
        is_delivered = delivered_ms <= now_ms
        due_ms = row.read_ms if is_delivered else delivered_ms
        told = await OUTBOX.find(self._store, waba_id=waba_id, due_ms=due_ms, subject=row.wamid)
        rest = next((one.rest for one in told if one.kind in ("delivered", "read")), "")
        until_ms = row.at_ms + lifetime_ms(template)
        read_after_ms = None if row.read_ms is None else row.read_ms - delivered_ms
        waits = waiting(row, waba_id, until_ms, read_after_ms, rest, is_delivered=is_delivered)
        return [*_undone(row, waba_id, keeps_delivery=is_delivered), WAITING.insert(waits)]

    def _arrival(self, phone: Phone, row: Waiting, at_ms: int) -> list[Statement]:
        """The statements that let one waiting message arrive, or be read."""
        if row.until_ms <= at_ms and not row.is_delivered:
            return [ACTS.delete(phone=phone.phone, wamid=row.wamid)]
        read_after_ms = 0 if phone.has_chat_open else row.read_after_ms
        read_ms = None if read_after_ms is None else at_ms + read_after_ms
        statements: list[Statement] = [
            MESSAGES.update({"read_ms": read_ms}, position=row.position, read_ms=None)
            if row.is_delivered
            else MESSAGES.update({"delivered_ms": at_ms, "read_ms": read_ms}, position=row.position)
        ]
        if not row.rest:  # nobody hears of it
            return statements
        is_read = read_ms is not None and phone.sends_read_receipts
        skips_delivered = bool(row.is_delivered) or (is_read and phone.has_chat_open)

        def told(kind: str, due_ms: int, text: str) -> Statement:
            return add_update(
                Update(row.waba_id, due_ms, self._outbox.next_id(), kind, row.phone_number_id, row.wamid, text)
            )

        if not skips_delivered:
            statements.append(told("delivered", at_ms, row.rest))
        if read_ms is not None and is_read:
            priced = row.rest if skips_delivered and not row.is_delivered else None
            bare = read_rest(phone, row.callback_data, has_contacts=self._settings.value.statuses_contacts)
            statements.append(told("read", read_ms, priced or bare))
        return statements


def _undone(row: Message, waba_id: str, *, keeps_delivery: bool = False) -> list[Statement]:
    """The statements that take back a message's planned statuses."""
    dues_ms = [row.read_ms] if keeps_delivery else [row.delivered_ms, row.read_ms]
    undone = {"read_ms": None} if keeps_delivery else {"delivered_ms": None, "read_ms": None}
    return [MESSAGES.update(undone, position=row.position), *drop_arrivals(row.wamid, waba_id, dues_ms)]
