"""What a phone's list of chats shows, and which phones have any."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from waypost.base.clock import Clock
from waypost.simulator.handsets.inboxes import Inboxes, Item
from waypost.simulator.phones.phones import PHONE
from waypost.simulator.store import Store
from waypost.simulator.tables import messages as table

_NEWEST: Final = 5000
"""So many messages are looked through for phones that were active: a crowd is not counted for a list."""

_NEWEST_OF_PHONE: Final = 20_000
"""So many of one phone's: a load test may have sent it a hundred times that."""


@dataclass(frozen=True)
class Chat:
    """What a phone has with one business number.

    Args:
        last: the newest message that the phone shows.
        unread: how many from the business have arrived and are not read, as far back as was looked.
    """

    phone_number_id: str
    last: Item
    unread: int


class Chats:
    """Reads lists of chats."""

    def __init__(self, store: Store, clock: Clock, inboxes: Inboxes) -> None:
        self._store = store
        self._clock = clock
        self._inboxes = inboxes

    async def of(self, phone: str) -> list[Chat]:
        """The chats of a phone, as far as its newest messages go, the one with the newest first."""
        rows = await table.chats(self._store, phone, now_ms=self._clock.now_ms(), at_most=_NEWEST_OF_PHONE)
        items = {item.position: item for item in await self._inboxes.at([row.position for row in rows])}
        return [Chat(row.phone_number_id, items[row.position], row.unread) for row in rows if row.position in items]

    async def active(self, number_ids: Sequence[str], *, at_most: int) -> list[str]:
        """The phones that have a chat with one of these numbers, the most active of late first."""
        wanted = [one for one in number_ids if one.isdigit()]
        return await table.active_phones(self._store, wanted, newest=_NEWEST, at_most=at_most)

    async def without(self, *, after: str, at_most: int) -> list[str]:
        """The phones that somebody named, and that have no chat with anybody."""
        return await table.phones_without(self._store, PHONE, after=after, at_most=at_most)
