"""Phones that cannot be reached: offline phones, and phones whose owner has blocked a business.

A change is first made in memory, so that messages accepted from then on respect it. Then the pending writes of
earlier messages are awaited, and only then the file is changed. So no message escapes the change.
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
    """Takes phones offline and online, and blocks businesses."""

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
        """Set members of a phone; create the phone if it is new.

        When a phone stops sending read receipts, the planned ones are deleted.

        Args:
            phone: its digits.
            changes: new values by member.
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
        """Take the phone offline: messages on their way and planned actions wait.

        Args:
            phone: its digits.
            also: written in the same transaction.
        """
        async with self._turn:
            known = self._phones.known(phone)
            changed = replace(known, is_offline=True)
            self._phones.learn(changed)
            statements = [self._phones.save_statement(changed)]
            if not known.is_offline:
                await self._settled()
                now_ms = self._clock.now_ms()
                for row in await planned(self._store, phone, now_ms):
                    statements += await self._called_off(phone, row, now_ms)
                statements.append(postpone_acts(phone))
            await self._store.run([*statements, *also])

    async def come_back(self, phone: str, also: Sequence[Statement] = ()) -> None:
        """Bring the phone online: waiting messages arrive in order, unless their lifetime is over.

        Args:
            phone: its digits.
            also: written in the same transaction.
        """
        async with self._turn:
            known = self._phones.known(phone)
            changed = replace(known, is_offline=False)
            self._phones.learn(changed)
            at_ms = self._clock.now_ms()
            statements = [self._phones.save_statement(changed)]
            accounts: set[str] = set()
            if known.is_offline:
                await self._settled()
                for row in await WAITING.find(self._store, phone=phone):
                    accounts.add(row.waba_id)
                    statements += self._arrival(self._phones.seen(changed), row, at_ms)
                statements += [WAITING.delete(phone=phone), resume_acts(phone, at_ms)]
            await self._store.run([*statements, *also])
        for waba_id in accounts:
            self._outbox.wake_of(waba_id).set()
        self._arrivals.tell(phone)

    async def block(self, phone: str, number: Number, *, blocks: bool, also: Sequence[Statement] = ()) -> None:
        """Block a business number for the phone's owner, or unblock it.

        Messages on their way never arrive, even after an unblock, and the business is not notified.

        Args:
            phone: its digits.
            number: the business number.
            blocks: True to block, False to unblock.
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
                for waiting_message in await WAITING.find(self._store, phone=phone):
                    if waiting_message.phone_number_id == number.phone_number_id:
                        statements.append(WAITING.delete(phone=phone, position=waiting_message.position))
                        statements.append(ACTS.delete(phone=phone, wamid=waiting_message.wamid))
            await self._store.run([*statements, *also])

    async def _settled(self) -> None:
        """Wait until all earlier writes are on disk."""
        await self._store.run([])

    async def _called_off(self, phone: str, row: Message, now_ms: int) -> list[Statement]:
        """Return the statements that make one planned message wait."""
        waba_id = self._accounts.numbers[row.phone_number_id].waba_id
        reference = object_or_none(row.content.get("template")) or {}
        template = self._templates.by_key.get((waba_id, reference.get("name", ""), reference.get("language", "")))
        delivered_ms = row.delivered_ms or 0
        is_delivered = delivered_ms <= now_ms
        due_ms = row.read_ms if is_delivered else delivered_ms
        updates = await OUTBOX.find(self._store, waba_id=waba_id, due_ms=due_ms, subject=row.wamid)
        rest = next((update.rest for update in updates if update.kind in ("delivered", "read")), "")
        until_ms = row.at_ms + lifetime_ms(template)
        read_after_ms = None if row.read_ms is None else row.read_ms - delivered_ms
        waiting_message = waiting(row, waba_id, until_ms, read_after_ms, rest, is_delivered=is_delivered)
        return [*_undone(row, waba_id, keeps_delivery=is_delivered), WAITING.insert(waiting_message)]

    def _arrival(self, phone: Phone, row: Waiting, at_ms: int) -> list[Statement]:
        """Return the statements that deliver one waiting message, or mark it read."""
        if row.until_ms <= at_ms and not row.is_delivered:
            return [ACTS.delete(phone=phone.phone, wamid=row.wamid)]
        read_after_ms = 0 if phone.has_chat_open else row.read_after_ms
        read_ms = None if read_after_ms is None else at_ms + read_after_ms
        statements: list[Statement] = [
            MESSAGES.update({"read_ms": read_ms}, position=row.position, read_ms=None)
            if row.is_delivered
            else MESSAGES.update({"delivered_ms": at_ms, "read_ms": read_ms}, position=row.position)
        ]
        if not row.rest:  # no app is subscribed
            return statements
        is_read = read_ms is not None and phone.sends_read_receipts
        skips_delivered = bool(row.is_delivered) or (is_read and phone.has_chat_open)

        def status_update(kind: str, due_ms: int, text: str) -> Statement:
            return add_update(
                Update(row.waba_id, due_ms, self._outbox.next_id(), kind, row.phone_number_id, row.wamid, text)
            )

        if not skips_delivered:
            statements.append(status_update("delivered", at_ms, row.rest))
        if read_ms is not None and is_read:
            priced = row.rest if skips_delivered and not row.is_delivered else None
            unpriced = read_rest(phone, row.callback_data, has_contacts=self._settings.value.statuses_contacts)
            statements.append(status_update("read", read_ms, priced or unpriced))
        return statements


def _undone(row: Message, waba_id: str, *, keeps_delivery: bool = False) -> list[Statement]:
    """Return the statements that delete a message's planned statuses."""
    dues_ms = [row.read_ms] if keeps_delivery else [row.delivered_ms, row.read_ms]
    changes = {"read_ms": None} if keeps_delivery else {"delivered_ms": None, "read_ms": None}
    return [MESSAGES.update(changes, position=row.position), *drop_arrivals(row.wamid, waba_id, dues_ms)]
