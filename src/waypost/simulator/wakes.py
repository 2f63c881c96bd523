"""Events that are set together: several wait for one thing, and each clears its own."""

import asyncio


class Wakes:
    """The events of everybody who waits."""

    def __init__(self) -> None:
        self._events: list[asyncio.Event] = []

    def event(self) -> asyncio.Event:
        """One more event, which `set` sets from now on."""
        event = asyncio.Event()
        self._events.append(event)
        return event

    def set(self) -> None:
        """Wake everybody who waits."""
        for event in self._events:
            event.set()
