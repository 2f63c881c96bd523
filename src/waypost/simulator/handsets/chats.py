"""The list of chats of a phone, and the phones that have chats."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from waypost.base.clock import Clock
from waypost.simulator.phones.phones import PHONE
from waypost.simulator.store import Store
from waypost.simulator.tables.messages import MESSAGES, Message

_NEWEST: Final = 5000
"""How many of the newest messages are searched for active phones: a list does not need the whole crowd."""

_NEWEST_OF_PHONE: Final = 20_000
"""How many of one phone's newest messages are searched: a load test may have sent it a hundred times that."""

_CHATS: Final = """
SELECT phone_number_id, max(position) AS position, sum(is_inbound=0 AND (read_ms IS NULL OR read_ms>:now_ms)) AS unread
FROM (
    SELECT phone_number_id, position, is_inbound, read_ms FROM messages
    WHERE phone=:phone AND failed_ms IS NULL AND (is_inbound=1 OR delivered_ms<=:now_ms)
    ORDER BY position DESC LIMIT :limit
) GROUP BY phone_number_id ORDER BY max(position) DESC
"""
_ACTIVE: Final = """
SELECT phone FROM (
    SELECT phone, position FROM messages
    WHERE phone_number_id IN (SELECT value FROM json_each(:number_ids)) AND failed_ms IS NULL
    AND phone NOT LIKE 'group:%'
    ORDER BY position DESC LIMIT :newest
) GROUP BY phone ORDER BY max(position) DESC LIMIT :limit
"""
_WITHOUT: Final = """
SELECT key FROM state WHERE kind=:kind AND owner='' AND key>:after
AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.phone=state.key) ORDER BY key LIMIT :limit
"""


@dataclass(frozen=True)
class Chat:
    """The chat of a phone with one business number.

    Args:
        last: the newest message that the phone shows.
        unread: number of unread messages from the business, among the messages searched.
    """

    phone_number_id: str
    last: Message
    unread: int


class _Newest(NamedTuple):
    phone_number_id: str
    position: int
    unread: int


class Chats:
    """Lists of chats, read from the messages."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def of(self, phone: str) -> list[Chat]:
        """Return the chats of a phone among its newest messages, newest first."""
        rows = await self._store.rows(_Newest, _CHATS, phone=phone, now_ms=self._clock.now_ms(), limit=_NEWEST_OF_PHONE)
        messages = {row.position: await MESSAGES.find(self._store, position=row.position) for row in rows}
        return [Chat(row.phone_number_id, message, row.unread) for row in rows for message in messages[row.position]]

    async def active(self, number_ids: Sequence[str], *, at_most: int) -> list[str]:
        """Return the phones that have a chat with one of these numbers, the most recently active first."""
        number_ids_json = msgspec.json.encode(number_ids).decode()
        return await self._store.column(_ACTIVE, number_ids=number_ids_json, newest=_NEWEST, limit=at_most)

    async def without(self, *, after: str, at_most: int) -> list[str]:
        """Return the phones that were named and have no chat."""
        return await self._store.column(_WITHOUT, kind=PHONE, after=after, limit=at_most)
