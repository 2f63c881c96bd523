"""An HTTP client for many small POSTs a second to few addresses, over kept connections.

A general client spends most of its time on what our POSTs never have: cookies, redirects, proxies,
streams, retries. Here a request is one write, and its response one future and one timer (decision 0048).
"""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Final

from waypost.base.http.connection_pools import ConnectionPools
from waypost.base.http.connections import HttpResponse, NotConnected
from waypost.base.http.request_heads import RequestTarget, header_lines, parse_target

_COMMON_HEADERS: Final = b"Accept: */*\r\nAccept-Encoding: identity\r\n"


class PostClient:
    """Sends POSTs over pooled connections.

    Args:
        pools: the connections; closed with this client.
        max_body_bytes: maximum size of a response's body; the rest is not read.
    """

    def __init__(self, pools: ConnectionPools, *, max_body_bytes: int) -> None:
        self._max_body_bytes = max_body_bytes
        self._pools = pools

    async def post(
        self,
        url: str,
        body: bytes,
        headers: Mapping[str, str],
        *,
        timeout_s: float,
        may_send: Callable[[], bool] | None = None,
    ) -> HttpResponse:
        """Post bytes; follows no redirects, decodes nothing, retries nothing.

        Args:
            url: of http or https.
            body: sent unchanged.
            headers: the last of one name counts; those that only the client sets are dropped.
            timeout_s: for everything together.
            may_send: called just before the request is sent, however long connecting took.

        Raises:
            NotConnected: nothing was sent.
            ResponseLost: the request may have been sent.
            ValueError: the URL or a header cannot be sent at all.
        """
        target = _parse_target(url)
        request = target.request_head + header_lines(headers, f"Content-Length: {len(body)}\r\n") + body
        now_s = asyncio.get_running_loop().time()
        connection = self._pools.take_idle(target.pool_key, now_s)
        if connection is None:
            connection = await self._pools.connect(target.pool_key, timeout_s)
        if may_send is not None and not may_send():
            connection.close()
            raise NotConnected("it may not be sent any more")
        response = connection.exchange(request, now_s + timeout_s, self._max_body_bytes)
        try:
            return await response
        finally:
            if response.cancelled():  # the rest of the response has no reader
                connection.close()

    async def close(self) -> None:
        """Close every connection; responses to requests in flight are lost."""
        await self._pools.close()


@lru_cache(maxsize=4096)
def _parse_target(url: str) -> RequestTarget:
    target = parse_target("POST", url)
    return replace(target, request_head=target.request_head + _COMMON_HEADERS)
