"""Checks of the media that messages link to, after each message was accepted and before it is delivered."""

import asyncio
from collections.abc import Sequence
from typing import Any

from waypost.simulator.messages.delivery_signals import DeliverySignals
from waypost.simulator.messages.media_links.link_fetches import MediaLinkFetcher, OperatorMediaLink, find_links
from waypost.simulator.messages.paced_messages import PacedMessages
from waypost.simulator.store import Store
from waypost.simulator.tables.messages import find_by_wamids


class MediaChecks:
    """Fetches the links of held messages, each message in a task of its own, and releases or drops the messages.

    A message is held in the file until then, so that a restart fetches its links again.
    """

    def __init__(
        self, store: Store, fetcher: MediaLinkFetcher, paced_messages: PacedMessages, signals: DeliverySignals
    ) -> None:
        self._store = store
        self._fetcher = fetcher
        self._paced_messages = paced_messages
        self._signals = signals
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def is_fetching(self) -> bool:
        """True while a link is being fetched."""
        return bool(self._tasks)

    async def open(self) -> None:
        """Fetch the links of messages that were held when the simulator stopped."""
        for message in await find_by_wamids(self._store, await self._paced_messages.media_wamids()):
            self.start(message.wamid, self.find_links(message.content)[0])

    async def close(self) -> None:
        """Stop; the messages stay held."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._fetcher.close()

    def find_links(self, rendered: dict[str, Any]) -> tuple[list[OperatorMediaLink], list[str]]:
        """Return the links to be fetched, and the URLs that may not be reached from here."""
        links = find_links(rendered) if self._fetcher.is_on else []
        reachable = [link for link in links if self._fetcher.may_reach(link)]
        return reachable, [link.url for link in links if link not in reachable]

    def start(self, wamid: str, links: Sequence[OperatorMediaLink]) -> None:
        """Fetch a held message's links, then release or drop it."""
        task = asyncio.get_running_loop().create_task(self._check(wamid, links))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _check(self, wamid: str, links: Sequence[OperatorMediaLink]) -> None:
        problems = await asyncio.gather(*map(self._fetcher.find_problem, links))
        problem = next((problem for problem in problems if problem is not None), None)
        phone = await self._paced_messages.decide_media(wamid, problem)
        if phone is not None:
            self._signals.wake(phone)
            self._signals.actions_planned.set()
