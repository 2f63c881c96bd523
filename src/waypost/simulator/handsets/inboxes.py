"""Inboxes of phones: chats, its messages, and waiting for messages that are on their way."""

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NotRequired, TypedDict, TypeVar, cast

import msgspec

from waypost.base.clock import HOUR_MS
from waypost.simulator.state.simulator_state import SimulatorState
from waypost.simulator.storage.tables.messages import MESSAGES, SimulatedMessage, find_by_wamids

Shown = TypeVar("Shown")
_NEXT_DELIVERY: Final = (
    "SELECT min(delivered_ms) FROM messages WHERE phone=:phone AND is_inbound=0 AND delivered_ms>:now_ms"
)


async def list_messages(
    state: SimulatorState, phone: str, *, after: int, limit: int, before: int = 2**62, number_ids: Sequence[str] = ()
) -> list[SimulatedMessage]:
    """Return the messages that the phone shows, received and sent, newest last.

    Args:
        after: only messages after this position.
        limit: how many of the newest.
        before: only messages before this position.
        number_ids: only the chats with these business numbers; none: all.
    """
    number_filter = "AND phone_number_id IN (SELECT value FROM json_each(:number_ids)) " if number_ids else ""
    rows = await MESSAGES.rows(
        state.store,
        "phone=:phone AND position>:after AND position<:before AND failed_ms IS NULL "
        f"AND (is_inbound=1 OR delivered_ms<=:now_ms) {number_filter}ORDER BY position DESC LIMIT :limit",
        phone=phone,
        now_ms=state.clock.now_ms(),
        after=after,
        before=before,
        number_ids=msgspec.json.encode(number_ids).decode(),
        limit=limit,
    )
    return rows[::-1]


async def list_quoted(
    state: SimulatorState, phone: str, messages: Sequence[SimulatedMessage]
) -> list[SimulatedMessage]:
    """Return the messages that these reply to and that are not among them."""
    listed_wamids = {item.wamid for item in messages}
    wamids = sorted({item.context_id for item in messages if item.context_id} - listed_wamids)
    originals = await find_by_wamids(state.store, wamids) if wamids else []
    return [message for message in originals if message.phone == phone]


async def wait_for_new_message(state: SimulatorState, phone: str, *, wait_ms: int) -> None:
    """Wait until the phone has an unread message, or shows one that it did not show before."""
    shown = {item.wamid for item in await list_messages(state, phone, after=0, limit=100)}

    def is_complete(items: list[SimulatedMessage]) -> bool:
        return has_unread(state, items) or any(item.wamid not in shown for item in items)

    await wait_for_messages(state, phone, wait_ms=wait_ms, is_complete=is_complete)


async def wait_for_messages(
    state: SimulatorState,
    phone: str,
    *,
    wait_ms: int,
    is_complete: Callable[[list[SimulatedMessage]], bool],
    after: int = 0,
) -> list[SimulatedMessage]:
    """Return the inbox once it satisfies a condition, or its content when the time is over."""
    return await wait_until(
        state, phone, wait_ms, lambda: list_messages(state, phone, after=after, limit=100), is_complete, _NEXT_DELIVERY
    )


async def wait_until(
    state: SimulatorState,
    phone: str,
    wait_ms: int,
    read: Callable[[], Awaitable[list[Shown]]],
    is_complete: Callable[[list[Shown]], bool],
    next_delivery: str,
) -> list[Shown]:
    """Return what a phone shows once it satisfies a condition, or when the time is over.

    Args:
        wait_ms: of real time.
        next_delivery: the statement that returns when the next message arrives on the phone.
    """
    try:
        async with asyncio.timeout(wait_ms / 1000):
            while True:
                wakeup = state.delivery_signals.wake_event(phone)
                shown = await read()
                if is_complete(shown):
                    return shown
                now_ms = state.clock.now_ms()
                due_ms: int | None = await state.store.value(next_delivery, phone=phone, now_ms=now_ms)
                await state.clock.wait(wakeup, until_ms=now_ms + HOUR_MS if due_ms is None else due_ms)
    except TimeoutError:
        return await read()


async def find_message(state: SimulatorState, phone: str, wamid: str) -> SimulatedMessage | None:
    """Return one message of the phone, delivered or not; None if there is none."""
    return next(iter(await MESSAGES.find(state.store, wamid=wamid, phone=phone)), None)


def has_unread(state: SimulatorState, items: list[SimulatedMessage]) -> bool:
    """True if a message from a business is unread."""
    now_ms = state.clock.now_ms()
    return any(not item.is_inbound and (item.read_ms is None or item.read_ms > now_ms) for item in items)


MessageView = TypedDict(
    "MessageView",
    {
        "position": int,
        "wamid": str,
        "direction": Literal["from_phone", "to_phone"],
        "phone_number_id": str,
        "type": str,
        "at_ms": int,
        "state": str,
        "context_id": str | None,
        # what the phone shows, by the type of the message
        "text": NotRequired[str],
        "preview_url": NotRequired[bool],
        "media": NotRequired[dict[str, Any]],
        "location": NotRequired[dict[str, Any]],
        "contacts": NotRequired[list[Any]],
        "reaction": NotRequired[dict[str, Any]],
        "interactive": NotRequired[dict[str, Any]],
        "template": NotRequired[dict[str, Any]],
        "header": NotRequired[dict[str, Any]],
        "footer": NotRequired[str],
        "cards": NotRequired[list[dict[str, Any]]],
        "limited_time_offer": NotRequired[dict[str, Any]],
        "payment": NotRequired[dict[str, Any]],
        "transactions": NotRequired[list[dict[str, Any]]],
        "not_fetched": NotRequired[list[str]],
        "marketing_messages": NotRequired[bool],
        # of a message from a phone
        "button": NotRequired[dict[str, Any]],
        "order": NotRequired[dict[str, Any]],
        "response": NotRequired[dict[str, Any]],
        "system": NotRequired[dict[str, Any]],
        "unsupported": NotRequired[dict[str, Any]],
        "forwarded": NotRequired[bool],
        "frequently_forwarded": NotRequired[bool],
        "edited_ms": NotRequired[int],
        "revoked_ms": NotRequired[int],
        # of a message to a phone
        "sent_by": NotRequired[Literal["business_app"]],
        "callback_data": NotRequired[str | None],
        "delivered_ms": NotRequired[int | None],
        "read_ms": NotRequired[int | None],
        "buttons": NotRequired[list[dict[str, Any]]],
        # of another participant's message in a group
        "from": NotRequired[str],
        "from_name": NotRequired[str],
    },
)
"""A message as the control API shows it."""


def message_view(message: SimulatedMessage, now_ms: int) -> MessageView:
    """Return a message as the control API shows it."""
    view: dict[str, Any] = {
        "position": message.position,
        "wamid": message.wamid,
        "direction": "from_phone" if message.is_inbound else "to_phone",
        "phone_number_id": message.phone_number_id,
        "type": message.type,
        "at_ms": message.at_ms,
        "state": message.state_at(now_ms),
        "context_id": message.context_id,
        **message.content,
    }
    if not message.is_inbound:
        view |= {
            "callback_data": message.callback_data,
            "delivered_ms": message.delivered_ms,
            "read_ms": message.read_ms,
            "buttons": message.buttons,
        }
    return cast("MessageView", view)


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
PHONES_WITHOUT_CHATS: Final = """
SELECT key FROM state WHERE kind='phone' AND owner='' AND key>:after
AND NOT EXISTS (SELECT 1 FROM messages WHERE messages.phone=state.key) ORDER BY key LIMIT :limit
"""


@dataclass(frozen=True)
class SimulatedChat:
    """The chat of a phone with one business number."""

    phone_number_id: str
    last_message: SimulatedMessage  # the newest message that the phone shows
    unread: int  # number of unread messages from the business, among the messages searched


async def list_chats(state: SimulatorState, phone: str) -> list[SimulatedChat]:
    """Return the chats of a phone among its newest messages, newest first."""
    values = {"phone": phone, "now_ms": state.clock.now_ms(), "limit": _MAX_SCANNED_OF_PHONE}

    def read(connection: sqlite3.Connection) -> list[SimulatedChat]:
        return [
            SimulatedChat(number_id, message, unread)
            for number_id, position, unread in connection.execute(_SELECT_CHATS, values).fetchall()
            for message in MESSAGES.find_on(connection, position=position)
        ]

    return await state.store.read(read)


async def list_active_phones(
    state: SimulatorState, number_ids: Sequence[str], *, limit: int, among: Collection[str] | None = None
) -> list[str]:
    """Return the phones that have a chat with one of these numbers, the most recently active first.

    Args:
        limit: how many at most.
        among: only these phones; None: all.
    """
    statement = _SELECT_ACTIVE_PHONES if among is None else _SELECT_ACTIVE_AMONG
    return await state.store.column(
        statement,
        number_ids=msgspec.json.encode(number_ids).decode(),
        newest=_MAX_SCANNED_MESSAGES,
        phones=msgspec.json.encode(sorted(among or ())).decode(),
        limit=limit,
    )
