"""What a phone's list of chats shows, and which phones have any."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from waypost.base.clock import Clock
from waypost.simulator.handsets.inboxes import Inboxes, Item
from waypost.simulator.store import Store

_NEWEST: Final = 5000
"""So many messages are looked through for phones that were active: a crowd is not counted for a list."""

_NEWEST_OF_PHONE: Final = 20_000
"""So many of one phone's: a load test may have sent it a hundred times that."""

_CHATS: Final = """
SELECT phone_number_id, max(position), sum(is_inbound=0 AND (read_ms IS NULL OR read_ms>?1)) FROM (
    SELECT phone_number_id, position, is_inbound, read_ms FROM messages
    WHERE phone=?2 AND failed_ms IS NULL AND (is_inbound=1 OR delivered_ms<=?1)
    ORDER BY position DESC LIMIT ?3
) GROUP BY phone_number_id ORDER BY max(position) DESC
"""
_ACTIVE: Final = """
SELECT phone, max(position) FROM (
    SELECT phone, position FROM messages
    WHERE phone_number_id IN (SELECT value FROM json_each(?)) AND failed_ms IS NULL
    AND phone NOT LIKE 'group:%'
    ORDER BY position DESC LIMIT ?
) GROUP BY phone ORDER BY max(position) DESC LIMIT ?
"""
_WITHOUT: Final = """
SELECT phone FROM phones WHERE NOT EXISTS (SELECT 1 FROM messages WHERE messages.phone=phones.phone)
AND phone>? ORDER BY phone LIMIT ?
"""


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
        asked = (self._clock.now_ms(), phone, _NEWEST_OF_PHONE)
        rows = await self._store.rows(_CHATS, asked)
        items = {item.position: item for item in await self._inboxes.at([row[1] for row in rows])}
        return [Chat(number_id, items[position], unread) for number_id, position, unread in rows if position in items]

    async def active(self, number_ids: Sequence[str], *, at_most: int) -> list[str]:
        """The phones that have a chat with one of these numbers, the most active of late first."""
        wanted = "[" + ",".join(f'"{one}"' for one in number_ids if one.isdigit()) + "]"
        rows = await self._store.rows(_ACTIVE, (wanted, _NEWEST, at_most))
        return [row[0] for row in rows]

    async def without(self, *, after: str, at_most: int) -> list[str]:
        """The phones that somebody named, and that have no chat with anybody."""
        return [row[0] for row in await self._store.rows(_WITHOUT, (after, at_most))]
