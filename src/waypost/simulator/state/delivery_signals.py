"""Signals about messages on their way to phones: positions, typing indicators, and wake-ups of waiters."""

import asyncio
import itertools
from typing import Final

from waypost.base.clock import Clock
from waypost.base.json_values import object_of
from waypost.simulator.apis.errors import bad_parameter, message_error
from waypost.simulator.state.accounts import Number
from waypost.simulator.storage.store import Store
from waypost.simulator.storage.tables.messages import MESSAGES

_TYPING_MS: Final = 25_000  # Source: facts 4.1


class DeliverySignals:
    """Numbers messages in the order in which they are accepted, and wakes those who wait for one on a phone."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._positions = itertools.count(1)
        self._wake_events: dict[str, asyncio.Event] = {}
        self._typing_until_ms: dict[tuple[str, str], int] = {}
        store.register_reset(self._typing_until_ms.clear)
        self.actions_planned = asyncio.Event()
        """Set when a message has made its phone plan actions."""

    async def open(self) -> None:
        """Continue after the last position in the file."""
        self._positions = itertools.count(await MESSAGES.highest(self._store, "position") + 1)

    def next_position(self) -> int:
        """Return a higher position than any before; may be called on the writer's thread."""
        return next(self._positions)

    async def mark_read(self, number: Number, message_id: object, typing_indicator: object = None) -> None:
        """Mark a phone's message as read by the business, and optionally show the typing indicator.

        Args:
            typing_indicator: `{"type": "text"}`, or None. The phone shows it for 25 seconds.

        Raises:
            GraphApiError: 131009, this number received no such message; 100, another indicator.

        Source: facts 4.1, "Mark as read / typing".
        """
        wamid = message_id if isinstance(message_id, str) else ""
        received = {"phone_number_id": number.phone_number_id, "is_inbound": 1}
        message = next(iter(await MESSAGES.find(self._store, wamid=wamid, **received)), None)
        if message is None:
            raise message_error(131009, "message_id: no message with this id was received")
        now_ms = self._clock.now_ms()
        if typing_indicator is not None:
            if object_of(typing_indicator).get("type") != "text":
                raise bad_parameter("Param typing_indicator['type'] must be one of {text}.")
            self._typing_until_ms[message.phone, number.phone_number_id] = now_ms + _TYPING_MS
            self.wake(message.phone)
        await self._store.run([MESSAGES.update({"read_ms": now_ms}, position=message.position, read_ms=None)])

    def end_typing(self, number: Number, phone: str) -> None:
        """End the typing indicator, because the number has sent a message."""
        self._typing_until_ms.pop((phone, number.phone_number_id), None)

    def typing_number_ids(self, phone: str) -> list[str]:
        """Return the ids of the business numbers that the phone shows as typing."""
        now_ms = self._clock.now_ms()
        return [
            number_id
            for (typed_to, number_id), until_ms in self._typing_until_ms.items()
            if typed_to == phone and until_ms > now_ms
        ]

    def wake(self, phone: str) -> None:
        """Wake those who wait for a phone: a message is on its way to it, or something has happened on it."""
        if phone in self._wake_events:
            self._wake_events.pop(phone).set()

    def wake_event(self, phone: str) -> asyncio.Event:
        """Return an event that is set when something happens on a phone after this call."""
        return self._wake_events.setdefault(phone, asyncio.Event())
