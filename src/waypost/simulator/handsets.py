"""What a person does with a phone: read, write, reply, tap a button."""

import asyncio
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from waypost.base.clock import Clock
from waypost.base.ids import Ids
from waypost.simulator.accounts import Number
from waypost.simulator.inboxes import Item
from waypost.simulator.messages import ADD_MESSAGE, Messages
from waypost.simulator.outbox import ADD_UPDATE, MESSAGE, Outbox, ascii_json, status_rest
from waypost.simulator.phones import ADD_PHONE, KEEP_WINDOW, Phone, Phones
from waypost.simulator.store import Row, Store
from waypost.simulator.wamids import received_wamid

_UNREAD: Final = """
SELECT wamid, delivered_ms, read_ms, callback_data FROM messages
WHERE phone=? AND phone_number_id=? AND is_inbound=0 AND delivered_ms<=? AND (read_ms IS NULL OR read_ms>?)
ORDER BY position
"""
_SOONER: Final = (
    "UPDATE outbox SET due_ms=? WHERE waba_id=? AND due_ms=? AND subject=? AND kind='read'"
)
_READ: Final = "UPDATE messages SET read_ms=? WHERE wamid=?"


class NotThere(Exception):
    """The phone has no such message or button, or not yet; says what would be accepted."""


@dataclass(frozen=True)
class Act:
    """What happens on a phone at one moment, written together.

    First everything that has arrived from the number is read, then the phone writes.
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


class Handsets:
    """The phones' side of the simulator."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        ids: Ids,
        phones: Phones,
        messages: Messages,
        outbox: Outbox,
    ) -> None:
        self._store = store
        self._clock = clock
        self._ids = ids
        self._phones = phones
        self._messages = messages
        self._outbox = outbox

    async def read(self, phone: str, numbers: Sequence[Number]) -> int:
        """Read everything that has arrived from these numbers, and say how many that were."""
        handset, is_new = self._phones.meet(phone)
        at_ms = self._clock.now_ms()
        acts = [self._act(handset, number, at_ms, is_new=is_new) for number in numbers]
        counts: list[int] = await asyncio.gather(*map(self._carry_out, acts))
        return sum(counts)

    async def write(
        self, phone: str, number: Number, text: str, *, context_id: str | None = None
    ) -> str:
        """The phone writes a text, perhaps in reply to a message; gives the new message's id.

        Source: facts 7.4, `text`.
        """
        context = {"from": number.phone_number, "id": context_id} if context_id else None
        return await self._say(phone, number, "text", {"text": {"body": text}}, text, context)

    async def tap(self, phone: str, number: Number, item: Item, button: dict[str, Any]) -> str:
        """Tap a button of a message; gives the id of the message that this sends.

        Source: facts 7.4, `button` and `interactive`.
        """
        kind, content = _tapped(button)
        context = {"from": number.phone_number, "id": item.wamid}
        return await self._say(phone, number, kind, {kind: content}, button["text"], context)

    async def _say(
        self,
        phone: str,
        number: Number,
        kind: str,
        content: dict[str, Any],
        text: str,
        context: dict[str, str] | None,
    ) -> str:
        handset, is_new = self._phones.meet(phone)
        at_ms = self._clock.now_ms()
        wamid = received_wamid(self._ids, phone)
        message: dict[str, Any] = {
            "from": phone,
            "id": wamid,
            "timestamp": str(at_ms // 1000),
            **content,
            "type": kind,
        }
        if context is not None:
            message = {"context": context, **message}
        contacts = [{"profile": {"name": handset.name}, "wa_id": phone}]
        update = ascii_json({"contacts": contacts, "messages": [message]})[1:-1]
        await self._carry_out(
            self._act(
                handset,
                number,
                at_ms,
                is_new=is_new,
                wamid=wamid,
                type=kind,
                shown=msgspec.json.encode({"text": text}).decode(),
                update=update,
                context_id=context["id"] if context else None,
            )
        )
        self._phones.wrote(number.phone_number_id, phone, at_ms)
        return wamid

    def _act(
        self, handset: Phone, number: Number, at_ms: int, *, is_new: bool, **message: Any
    ) -> Act:
        is_heard = self._outbox.listens(number.waba_id)
        return Act(handset, is_new, number, at_ms, is_heard, **message)

    async def _carry_out(self, act: Act) -> int:
        count: int = await self._store.write(self._written, act)
        self._outbox.wake_of(act.number.waba_id).set()
        self._messages.tell(act.phone.phone)
        return count

    def _written(self, connection: sqlite3.Connection, acts: Sequence[Act]) -> Sequence[int]:
        return [self._write_act(connection, act) for act in acts]

    def _write_act(self, connection: sqlite3.Connection, act: Act) -> int:
        number = act.number
        if act.is_new:
            connection.execute(ADD_PHONE, act.phone.row())
        unread = connection.execute(
            _UNREAD, (act.phone.phone, number.phone_number_id, act.at_ms, act.at_ms)
        ).fetchall()
        for wamid, _, planned_ms, callback_data in unread:
            connection.execute(_READ, (act.at_ms, wamid))
            if planned_ms is not None:
                connection.execute(_SOONER, (act.at_ms, number.waba_id, planned_ms, wamid))
            elif act.is_heard:
                rest = status_rest(act.phone.phone, callback_data)
                connection.execute(ADD_UPDATE, self._update(act, "read", wamid, rest))
        if act.wamid:
            message: Row = (
                self._messages.next_position(), act.wamid, act.phone.phone, number.phone_number_id,
                1, act.type, act.at_ms, act.shown, act.update, None, act.context_id,
                None, None, None, None,
            )  # fmt: skip
            connection.execute(ADD_MESSAGE, message)
            connection.execute(KEEP_WINDOW, (number.phone_number_id, act.phone.phone, act.at_ms))
            if act.is_heard:
                connection.execute(ADD_UPDATE, self._update(act, MESSAGE, act.wamid, act.update))
        return len(unread)

    def _update(self, act: Act, kind: str, subject: str, rest: str) -> Row:
        number = act.number
        return (
            number.waba_id, act.at_ms, self._outbox.next_id(), kind, number.phone_number_id,
            subject, rest,
        )  # fmt: skip


def _tapped(button: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    chosen = {"id": button.get("payload"), "title": button["text"]}
    match button["type"]:
        case "QUICK_REPLY":
            return "button", {"payload": button["payload"], "text": button["text"]}
        case "REPLY":
            return "interactive", {"type": "button_reply", "button_reply": chosen}
        case "LIST_ROW":
            if button.get("description"):
                chosen["description"] = button["description"]
            return "interactive", {"type": "list_reply", "list_reply": chosen}
        case other:
            raise NotThere(
                f"button {button['index']} is a {other} button; a tap that the business hears of "
                "takes QUICK_REPLY, REPLY or LIST_ROW"
            )
