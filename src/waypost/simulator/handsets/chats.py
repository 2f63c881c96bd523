"""What a phone's list of chats shows, and which phones have any."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from waypost.base.clock import Clock
from waypost.simulator.phones.phones import PHONE
from waypost.simulator.store import Store
from waypost.simulator.tables.messages import MESSAGES, Message

_NEWEST: Final = 5000
"""So many messages are looked through for phones that were active: a crowd is not counted for a list."""

_NEWEST_OF_PHONE: Final = 20_000
"""So many of one phone's: a load test may have sent it a hundred times that."""

_CHATS: Final = """
SELECT phone_number_id, max(position) AS position, sum(is_inbound=0 AND (read_ms IS NULL OR read_ms>:now_ms)) AS unread
FROM (
    SELECT phone_number_id, position, is_inbound, read_ms FROM messages
    WHERE phone=:phone AND failed_ms IS NULL AND (is_inbound=1 OR delivered_ms<=:now_ms)
    ORDER BY position DESC LIMIT :at_most
) GROUP BY phone_number_id ORDER BY max(position) DESC
"""
_ACTIVE: Final = """
SELECT phone FROM (
    SELECT phone, position FROM messages
    WHERE phone_number_id IN (SELECT value FROM json_each(:number_ids)) AND failed_ms IS NULL
    AND phone NOT LIKE 'group:%'
    ORDER BY position DESC LIMIT :newest
) GROUP BY phone ORDER BY max(position) DESC LIMIT :at_most
"""
_WITHOUT: Final = """
SELECT key FROM state WHERE kind=:kind AND owner='' AND key>:after
AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.phone=state.key) ORDER BY key LIMIT :at_most
"""


@dataclass(frozen=True)
class Chat:
    """What a phone has with one business number.

    Args:
        last: the newest message that the phone shows.
        unread: how many from the business have arrived and are not read, as far back as was looked.
    """

    phone_number_id: str
    last: Message
    unread: int


class _Newest(NamedTuple):
    phone_number_id: str
    position: int
    unread: int


class Chats:
    """Reads lists of chats."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def of(self, phone: str) -> list[Chat]:
        """The chats of a phone, as far as its newest messages go, the one with the newest first."""
        rows = await self._store.rows(
            _Newest, _CHATS, phone=phone, now_ms=self._clock.now_ms(), at_most=_NEWEST_OF_PHONE
        )
        newest = {row.position: await MESSAGES.find(self._store, position=row.position) for row in rows}
        return [Chat(row.phone_number_id, one, row.unread) for row in rows for one in newest[row.position]]

    async def active(self, number_ids: Sequence[str], *, at_most: int) -> list[str]:
        """The phones that have a chat with one of these numbers, the most active of late first."""
        wanted = msgspec.json.encode(number_ids).decode()
        return await self._store.column(_ACTIVE, number_ids=wanted, newest=_NEWEST, at_most=at_most)

    async def without(self, *, after: str, at_most: int) -> list[str]:
        """The phones that somebody named, and that have no chat with anybody."""
        return await self._store.column(_WITHOUT, kind=PHONE, after=after, at_most=at_most)
