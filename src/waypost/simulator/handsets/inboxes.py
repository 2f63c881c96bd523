"""Looking at a phone: what it shows, and waiting for what is on its way."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from waypost.base.clock import Clock
from waypost.simulator.loose import objects
from waypost.simulator.messages.messages import Messages
from waypost.simulator.messages.statuses import Fate, fate_of, state_at
from waypost.simulator.store import Store
from waypost.simulator.tables import messages as table
from waypost.simulator.tables.messages import MessageRow


@dataclass(frozen=True)
class Item:
    """One message on a phone, in either direction.

    Args:
        position: orders the messages of all phones.
        shown: `text`, and where there are any `header`, `footer`, `buttons`, …
        fate: of a message from a phone only whether the business has read it.
    """

    position: int
    wamid: str
    phone_number_id: str
    is_inbound: bool
    type: str
    at_ms: int
    shown: dict[str, Any]
    callback_data: str | None
    context_id: str | None
    fate: Fate

    @property
    def cards(self) -> list[dict[str, Any]]:
        """The cards of a carousel, each with its `index` and perhaps `buttons`."""
        return objects(self.shown.get("cards"))

    @property
    def has_buttons(self) -> bool:
        """Whether there is anything to tap, on the message or on a card."""
        return bool(self.buttons) or any(card.get("buttons") for card in self.cards)

    @property
    def buttons(self) -> list[dict[str, Any]]:
        """The buttons a person sees under the message."""
        return objects(self.shown.get("buttons"))


class Inboxes:
    """Reads what is on the phones."""

    def __init__(self, store: Store, clock: Clock, messages: Messages) -> None:
        self._store = store
        self._clock = clock
        self._messages = messages

    async def inbox(
        self, phone: str, *, after: int, at_most: int, before: int | None = None, number_ids: Sequence[str] = ()
    ) -> list[Item]:
        """What the phone shows: what has arrived and what it wrote itself, newest last.

        Args:
            phone: its digits.
            after: only messages beyond this position.
            at_most: the newest so many.
            before: only messages below this position.
            number_ids: only the chats with these business numbers; none: all.
        """
        rows = await table.inbox(
            self._store,
            phone,
            now_ms=self._clock.now_ms(),
            after=after,
            before=before,
            number_ids=number_ids,
            at_most=at_most,
        )
        return [_item(row) for row in reversed(rows)]

    async def at(self, positions: Sequence[int]) -> list[Item]:
        """The messages at these positions, in no order."""
        return [_item(row) for row in await table.at(self._store, positions)]

    async def quoted(self, phone: str, items: Sequence[Item]) -> list[Item]:
        """What these messages refer to and are not beside: replies quote it."""
        shown = {item.wamid for item in items}
        wanted = sorted({item.context_id for item in items if item.context_id} - shown)
        rows = await table.of_wamids(self._store, wanted, phone) if wanted else []
        return [_item(row) for row in rows]

    async def wait_for(
        self, phone: str, *, wait_ms: int, found: Callable[[list[Item]], bool], after: int = 0
    ) -> list[Item]:
        """The inbox as soon as it holds what is looked for, or as it is when the time is over.

        Args:
            phone: its digits.
            wait_ms: real time.
            found: is shown the newest 100 messages after `after`.
            after: only messages beyond this position.
        """
        try:
            async with asyncio.timeout(wait_ms / 1000):
                while True:
                    arrival = self._messages.arrival(phone)
                    items = await self.inbox(phone, after=after, at_most=100)
                    if found(items):
                        return items
                    await self._clock.wait(arrival, until_ms=await self._next_arrival_ms(phone))
        except TimeoutError:
            return await self.inbox(phone, after=after, at_most=100)

    async def item(self, phone: str, wamid: str) -> Item | None:
        """One message on the phone, whether it has arrived or not."""
        row = await table.find(self._store, wamid)
        return _item(row) if row is not None and row.phone == phone else None

    async def _next_arrival_ms(self, phone: str) -> int:
        now_ms = self._clock.now_ms()
        due_ms = await table.next_arrival_ms(self._store, phone, now_ms)
        return now_ms + 3_600_000 if due_ms is None else due_ms


def item_view(item: Item, now_ms: int) -> dict[str, Any]:
    """A message as the control door shows it."""
    view: dict[str, Any] = {
        "position": item.position,
        "wamid": item.wamid,
        "direction": "from_phone" if item.is_inbound else "to_phone",
        "phone_number_id": item.phone_number_id,
        "type": item.type,
        "at_ms": item.at_ms,
        "state": state_at(item.fate, now_ms),
        "context_id": item.context_id,
        **item.shown,
    }
    if item.is_inbound:
        return view
    fate = item.fate
    return view | {
        "callback_data": item.callback_data,
        "delivered_ms": fate.delivered_ms,
        "read_ms": fate.read_ms,
        "buttons": item.buttons,
    }


def _item(row: MessageRow) -> Item:
    return Item(
        position=row.position,
        wamid=row.wamid,
        phone_number_id=row.phone_number_id,
        is_inbound=bool(row.is_inbound),
        type=row.type,
        at_ms=row.at_ms,
        shown=msgspec.json.decode(row.shown, type=dict[str, Any]),
        callback_data=row.callback_data,
        context_id=row.context_id,
        fate=fate_of(row),
    )
