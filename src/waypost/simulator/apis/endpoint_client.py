"""Requests of handsets to endpoints of Flows over HTTP, and what the handsets send in the background.

Some at a time, and few to one address: a slow endpoint delays only its own flows.
"""

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any, Final
from weakref import WeakValueDictionary

from yarl import URL

from waypost.base.http.connection_pools import ConnectionPools
from waypost.base.http.connections import HttpResponse
from waypost.base.http.http_client import HttpClient

MAX_ENDPOINT_RESPONSE_BYTES: Final = 1024 * 1024
"""Source: the operator's page "Flow JSON", limits."""
_MAX_REQUESTS: Final = 128
_MAX_PER_ADDRESS: Final = 16
_MAX_TASKS: Final = 256
_IDLE_S: Final = 2
_CONNECT_S: Final = 60


class EndpointClient:
    """Sends requests to endpoints, and runs tasks that do."""

    def __init__(self) -> None:
        self._client: HttpClient | None = None
        self._requests = asyncio.Semaphore(_MAX_REQUESTS)
        self._addresses: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        self._tasks: set[asyncio.Task[None]] = set()
        self.active_requests = 0
        """Number of requests that wait for a response."""

    @property
    def is_busy(self) -> bool:
        """True while a request waits for a response, or a task runs."""
        return bool(self._tasks) or self.active_requests > 0

    async def post(self, url: str, headers: Mapping[str, str], body: bytes, *, timeout_s: float) -> HttpResponse:
        """Post a body and return the whole response; redirects are not followed.

        Args:
            timeout_s: for everything together, the wait for other requests included.

        Raises:
            TimeoutError: there is no whole response in time.
            OSError: there is no response, or it is larger than 1 MB.
            ValueError: the URL cannot be requested.
        """
        if self._client is None:
            pools = ConnectionPools(max_per_address=_MAX_PER_ADDRESS, idle_s=_IDLE_S, connect_s=_CONNECT_S)
            self._client = HttpClient(pools, max_body_bytes=MAX_ENDPOINT_RESPONSE_BYTES)
        address = self._addresses.setdefault(URL(url).raw_authority, asyncio.Semaphore(_MAX_PER_ADDRESS))
        self.active_requests += 1
        try:
            async with asyncio.timeout(timeout_s), address, self._requests:
                return await self._client.request("POST", url, headers, body, timeout_s=2 * timeout_s)
        finally:
            self.active_requests -= 1

    def start(self, work: Coroutine[Any, Any, None]) -> bool:
        """Run work in the background; False if too much runs, and the work is dropped."""
        if len(self._tasks) >= _MAX_TASKS:
            work.close()
            return False
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return True

    async def close(self) -> None:
        """Cancel the tasks, and close the connections."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._client is not None:
            await self._client.close()
