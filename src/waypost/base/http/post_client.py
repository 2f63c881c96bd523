"""An HTTP client for many small POSTs a second to few addresses, over kept connections.

A general client spends most of its time on what our POSTs never have: cookies, redirects, proxies,
streams, retries. Here a request is one write, and its response one future and one timer (decision 0048).
"""

import asyncio
import base64
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from yarl import URL

from waypost.base.http.connections import ConnectionPools, HttpResponse, MakeSocket, NotConnected, PoolKey, Resolve

CLIENT_HEADERS: Final = frozenset({"content-length", "transfer-encoding", "connection", "host"})
"""Headers that only this client sets."""


@dataclass(frozen=True, slots=True)
class _PostTarget:
    """A parsed URL, ready for requests."""

    request_head: bytes  # the request line and the Host header
    pool_key: PoolKey


class PostClient:
    """Sends POSTs over connections that are pooled by address.

    Args:
        max_per_address, idle_s, connect_s, make_socket, resolve: of `ConnectionPools`.
        max_body_bytes: maximum size of a response's body; the rest is not read.
    """

    def __init__(
        self,
        *,
        max_per_address: int,
        idle_s: float,
        connect_s: float,
        max_body_bytes: int,
        make_socket: MakeSocket | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        self._max_body_bytes = max_body_bytes
        self._connections = ConnectionPools(
            max_per_address=max_per_address,
            idle_s=idle_s,
            connect_s=connect_s,
            make_socket=make_socket,
            resolve=resolve,
        )

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
            headers: the last of one name counts; those of `CLIENT_HEADERS` are dropped.
            timeout_s: for everything together.
            may_send: called just before the request is sent, however long connecting took.

        Raises:
            NotConnected: nothing was sent.
            ResponseLost: the request may have been sent.
            ValueError: the URL or a header cannot be sent at all.
        """
        target = _parse_target(url)
        request = target.request_head + _header_lines(headers, len(body)) + body
        now_s = asyncio.get_running_loop().time()
        connection = self._connections.take_idle(target.pool_key, now_s)
        if connection is None:
            connection = await self._connections.connect(target.pool_key, timeout_s)
        if may_send is not None and not may_send():
            connection.close()
            raise NotConnected("it may not be sent any more")
        return await connection.exchange(request, now_s + timeout_s, self._max_body_bytes)

    async def close(self) -> None:
        """Close every connection; responses to requests in flight are lost."""
        await self._connections.close()


@lru_cache(maxsize=4096)
def _parse_target(url: str) -> _PostTarget:
    """Parse a URL.

    Raises:
        ValueError: it is not a URL of http or https.
    """
    parsed = URL(url)
    if parsed.scheme not in ("http", "https") or not parsed.raw_host or not parsed.port:
        raise ValueError(f"{url[:200]} is not a URL of http or https")
    opening = f"POST {parsed.raw_path_qs or '/'} HTTP/1.1\r\nHost: {parsed.host_port_subcomponent}\r\n"
    if parsed.user is not None:
        secret = base64.b64encode(f"{parsed.user}:{parsed.password or ''}".encode()).decode()
        opening += f"Authorization: Basic {secret}\r\n"
    if "\r" in opening.replace("\r\n", "") or opening.isascii() is False:
        raise ValueError(f"{url[:200]} cannot be sent")
    return _PostTarget(opening.encode(), (parsed.raw_host, parsed.port, parsed.scheme == "https"))


def _header_lines(headers: Mapping[str, str], length: int) -> bytes:
    """Return a request's headers, and the empty line that ends them.

    Raises:
        ValueError: a header has a line break or a zero.
    """
    if _are_names_plain(tuple(headers)):
        text = "".join([f"{name}: {value}\r\n" for name, value in headers.items()])
        lines = len(headers)
    else:
        by_name = {name.lower(): f"{name}: {value}\r\n" for name, value in headers.items()}
        kept = [line for name, line in by_name.items() if name not in CLIENT_HEADERS]
        text, lines = "".join(kept), len(kept)
    if not text.count("\r") == text.count("\n") == lines or "\0" in text:
        raise ValueError("a header has a line break or a zero in it")
    return f"Accept: */*\r\nAccept-Encoding: identity\r\n{text}Content-Length: {length}\r\n\r\n".encode()


@lru_cache(maxsize=4096)
def _are_names_plain(names: tuple[str, ...]) -> bool:
    """Return True if no header is there twice, and none is set by the client."""
    lower = {name.lower() for name in names}
    return len(lower) == len(names) and not lower & CLIENT_HEADERS
