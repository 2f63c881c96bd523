"""The inbox of a phone: its messages, and waiting for messages that are on their way."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from waypost.base.clock import Clock
from waypost.simulator.messages.delivery_signals import DeliverySignals
from waypost.simulator.messages.statuses import state_at
from waypost.simulator.store import Store
from waypost.simulator.tables.messages import IS_NAMED, MESSAGES, SimulatedMessage, find_by_wamids

_MAX_POSITION: Final = 2**62
_SELECT_NEXT_DELIVERY: Final = (
    "SELECT min(delivered_ms) FROM messages WHERE phone=:phone AND is_inbound=0 AND delivered_ms>:now_ms"
)


class Inboxes:
    """Reads the messages on phones."""

    def __init__(self, store: Store, clock: Clock, signals: DeliverySignals) -> None:
        self._store = store
        self._clock = clock
        self._signals = signals

    async def inbox(
        self, phone: str, *, after: int, limit: int, before: int | None = None, number_ids: Sequence[str] = ()
    ) -> list[SimulatedMessage]:
        """Return the messages that the phone shows, received and sent, newest last.

        Args:
            phone: its digits.
            after: only messages after this position.
            limit: how many of the newest.
            before: only messages before this position.
            number_ids: only the chats with these business numbers; none: all.
        """
        number_filter = "AND phone_number_id IN (SELECT value FROM json_each(:number_ids)) " if number_ids else ""
        rows = await MESSAGES.rows(
            self._store,
            "phone=:phone AND position>:after AND position<:before AND failed_ms IS NULL "
            f"AND (is_inbound=1 OR delivered_ms<=:now_ms) {number_filter}ORDER BY position DESC LIMIT :limit",
            excluded_columns=("body",),
            phone=phone,
            now_ms=self._clock.now_ms(),
            after=after,
            before=_MAX_POSITION if before is None else before,
            number_ids=msgspec.json.encode(number_ids).decode(),
            limit=limit,
        )
        return rows[::-1]

    async def quoted(self, phone: str, messages: Sequence[SimulatedMessage]) -> list[SimulatedMessage]:
        """Return the messages that these reply to and that are not among them."""
        listed_wamids = {item.wamid for item in messages}
        wamids = sorted({item.context_id for item in messages if item.context_id} - listed_wamids)
        originals = await find_by_wamids(self._store, wamids) if wamids else []
        return [message for message in originals if message.phone == phone]

    async def wait_for_new(self, phone: str, *, wait_ms: int) -> None:
        """Wait until the phone has an unread message, or shows one that it did not show before."""
        shown = {item.wamid for item in await self.inbox(phone, after=0, limit=100)}
        has_unread = any_unread(self._clock)

        def is_complete(items: list[SimulatedMessage]) -> bool:
            return has_unread(items) or any(item.wamid not in shown for item in items)

        await self.wait_for(phone, wait_ms=wait_ms, is_complete=is_complete)

    async def wait_for(
        self, phone: str, *, wait_ms: int, is_complete: Callable[[list[SimulatedMessage]], bool], after: int = 0
    ) -> list[SimulatedMessage]:
        """Return the inbox once it satisfies a condition, or its content when the time is over.

        Args:
            phone: its digits.
            wait_ms: real time.
            is_complete: the condition; gets the newest 100 messages after `after`.
            after: only messages after this position.
        """
        try:
            async with asyncio.timeout(wait_ms / 1000):
                while True:
                    wakeup = self._signals.wake_event(phone)
                    messages = await self.inbox(phone, after=after, limit=100)
                    if is_complete(messages):
                        return messages
                    await self._clock.wait(wakeup, until_ms=await self._next_delivery_ms(phone))
        except TimeoutError:
            return await self.inbox(phone, after=after, limit=100)

    async def find_message(self, phone: str, wamid: str) -> SimulatedMessage | None:
        """Return one message of the phone, delivered or not; None if there is none."""
        return next(iter(await MESSAGES.find(self._store, wamid=wamid, phone=phone)), None)

    async def find_named(self, phone: str, message_id: str) -> list[SimulatedMessage]:
        """Return the messages of the phone with this wamid or with this id of their sender, delivered or not."""
        condition = f"phone=:phone AND {IS_NAMED} ORDER BY position"
        return await MESSAGES.rows(self._store, condition, phone=phone, message_id=message_id)

    async def _next_delivery_ms(self, phone: str) -> int:
        now_ms = self._clock.now_ms()
        due_ms: int | None = await self._store.value(_SELECT_NEXT_DELIVERY, phone=phone, now_ms=now_ms)
        return now_ms + 3_600_000 if due_ms is None else due_ms


def any_unread(clock: Clock) -> Callable[[list[SimulatedMessage]], bool]:
    """Return a condition for `wait_for`: a message from a business is unread."""

    def has_unread(items: list[SimulatedMessage]) -> bool:
        now_ms = clock.now_ms()
        return any(not item.is_inbound and (item.read_ms is None or item.read_ms > now_ms) for item in items)

    return has_unread


def message_view(message: SimulatedMessage, now_ms: int) -> dict[str, Any]:
    """Return a message as the control API shows it."""
    view: dict[str, Any] = {
        "position": message.position,
        "wamid": message.wamid,
        "direction": "from_phone" if message.is_inbound else "to_phone",
        "phone_number_id": message.phone_number_id,
        "type": message.type,
        "at_ms": message.at_ms,
        "state": state_at(message, now_ms),
        "context_id": message.context_id,
        **message.content,
    }
    if message.is_inbound:
        return view
    return view | {
        "callback_data": message.callback_data,
        "delivered_ms": message.delivered_ms,
        "read_ms": message.read_ms,
        "buttons": message.buttons,
    }
