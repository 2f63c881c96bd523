"""The list of chats of a phone, and the phones that have chats."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from waypost.base.clock import Clock
from waypost.simulator.phones.phones import PHONE_KIND
from waypost.simulator.store import Store
from waypost.simulator.tables.messages import MESSAGES, SimulatedMessage

_MAX_SCANNED_MESSAGES: Final = 5000
"""How many of the newest messages are searched for active phones: a list does not need the whole crowd."""

_MAX_SCANNED_OF_PHONE: Final = 20_000
"""How many of one phone's newest messages are searched: a load test may have sent it a hundred times that."""

_SELECT_CHATS: Final = """
SELECT phone_number_id, max(position) AS position, sum(is_inbound=0 AND (read_ms IS NULL OR read_ms>:now_ms)) AS unread
FROM (
    SELECT phone_number_id, position, is_inbound, read_ms FROM messages
    WHERE phone=:phone AND failed_ms IS NULL AND (is_inbound=1 OR delivered_ms<=:now_ms)
    ORDER BY position DESC LIMIT :limit
) GROUP BY phone_number_id ORDER BY max(position) DESC
"""
_SELECT_ACTIVE_PHONES: Final = """
SELECT phone FROM (
    SELECT phone, position FROM messages
    WHERE phone_number_id IN (SELECT value FROM json_each(:number_ids)) AND failed_ms IS NULL
    AND phone NOT LIKE 'group:%'
    ORDER BY position DESC LIMIT :newest
) GROUP BY phone ORDER BY max(position) DESC LIMIT :limit
"""
_SELECT_ACTIVE_AMONG: Final = """
SELECT phone FROM (
    SELECT named.value AS phone, (
        SELECT max(position) FROM messages WHERE messages.phone=named.value AND failed_ms IS NULL
        AND phone_number_id IN (SELECT value FROM json_each(:number_ids))
    ) AS newest FROM json_each(:phones) AS named
) WHERE newest IS NOT NULL ORDER BY newest DESC LIMIT :limit
"""
_SELECT_PHONES_WITHOUT_CHATS: Final = """
SELECT key FROM state WHERE kind=:kind AND owner='' AND key>:after
AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.phone=state.key) ORDER BY key LIMIT :limit
"""


@dataclass(frozen=True)
class SimulatedChat:
    """The chat of a phone with one business number.

    Args:
        last_message: the newest message that the phone shows.
        unread: number of unread messages from the business, among the messages searched.
    """

    phone_number_id: str
    last_message: SimulatedMessage
    unread: int


class _ChatRow(NamedTuple):
    phone_number_id: str
    position: int
    unread: int


class Chats:
    """Lists of chats, read from the messages."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock

    async def list_chats(self, phone: str) -> list[SimulatedChat]:
        """Return the chats of a phone among its newest messages, newest first."""
        rows = await self._store.rows(
            _ChatRow, _SELECT_CHATS, phone=phone, now_ms=self._clock.now_ms(), limit=_MAX_SCANNED_OF_PHONE
        )
        messages = {row.position: await MESSAGES.find(self._store, position=row.position) for row in rows}
        return [
            SimulatedChat(row.phone_number_id, message, row.unread)
            for row in rows
            for message in messages[row.position]
        ]

    async def active_phones(self, number_ids: Sequence[str], *, limit: int) -> list[str]:
        """Return the phones that have a chat with one of these numbers, the most recently active first."""
        number_ids_json = msgspec.json.encode(number_ids).decode()
        return await self._store.column(
            _SELECT_ACTIVE_PHONES, number_ids=number_ids_json, newest=_MAX_SCANNED_MESSAGES, limit=limit
        )

    async def active_among(self, phones: Collection[str], number_ids: Sequence[str], *, limit: int) -> list[str]:
        """Return those of these phones that have a chat with one of these numbers, the most recently active first."""
        phones_json = msgspec.json.encode(sorted(phones)).decode()
        number_ids_json = msgspec.json.encode(number_ids).decode()
        return await self._store.column(
            _SELECT_ACTIVE_AMONG, phones=phones_json, number_ids=number_ids_json, limit=limit
        )

    async def phones_without_chats(self, *, after: str, limit: int) -> list[str]:
        """Return the phones that were named and have no chat."""
        return await self._store.column(_SELECT_PHONES_WITHOUT_CHATS, kind=PHONE_KIND, after=after, limit=limit)
