"""Resolve, vet, connect to what was vetted, follow nothing."""

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

import aiohttp

Network = str
Address = IPv4Address | IPv6Address

IDLE_S: Final = 2
MOST_ANSWER_BYTES: Final = 4096

# fmt: off
EMBEDDING: Final = (  # IPv6 ranges that carry an IPv4 address, and which bits it is. Source: RFC 4291, 6052, 3056, 4380
    #  range                          bits to the right of the IPv4 address
    (IPv6Network("::ffff:0:0/96"),    0),
    (IPv6Network("::/96"),            0),
    (IPv6Network("64:ff9b::/96"),     0),
    (IPv6Network("2002::/16"),       80),
)
# fmt: on


# fmt: off
NEVER_PUBLIC: Final = (  # what older versions of Python take for public. Source: IANA, special-purpose address registries
    ip_network("192.88.99.0/24"),  # 6to4 relay anycast
    ip_network("3fff::/20"),       # documentation
    ip_network("5f00::/16"),       # segment routing
    ip_network("64:ff9b:1::/48"),  # local NAT64
)
# fmt: on


class NotAllowed(OSError):
    """The address is not public, or a port is not one to talk to; nothing was connected."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back.

    Attributes:
        status: None when there was no answer.
        body: its first 4 KiB.
        error: why there was none.
    """

    status: int | None
    duration_ms: int
    body: bytes = b""
    headers: Mapping[str, str] | None = None
    error: str | None = None


def is_public(address: Address) -> bool:
    """Whether an address is public unicast, its embedded IPv4 address included."""
    if isinstance(address, IPv6Address):
        for network, shift in EMBEDDING:
            if address in network and int(address) > 1:
                inner = IPv4Address((int(address) >> shift) & 0xFFFFFFFF)
                return is_public(inner)
        if address.teredo is not None or address.is_site_local:
            return False
    if any(address in network for network in NEVER_PUBLIC):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


class VettedClient:
    """Posts to addresses that partners chose, and gets what stands behind them.

    Each connection is vetted where its socket is made, so literal addresses, every resolved address
    and rebinding are all seen. No redirect is followed, no proxy of the environment is used.

    Args:
        allowed_networks: ranges that may be reached although they are not public.
        timeout_s: for one whole request. Source: facts 4.6.
    """

    def __init__(self, *, allowed_networks: Sequence[Network] = (), timeout_s: float = 10) -> None:
        self._allowed = [ip_network(network) for network in allowed_networks]
        self._timeout = aiohttp.ClientTimeout(total=timeout_s, connect=5)
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Make the connection pool."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(
                limit=0,
                limit_per_host=64,
                keepalive_timeout=IDLE_S,
                socket_factory=self._vetted_socket,
            ),
            timeout=self._timeout,
            trust_env=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )

    async def close(self) -> None:
        """Close the pool."""
        if self._session is not None:
            await self._session.close()

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Post bytes and say what came back; never raises for what the other side does."""
        if self._session is None:
            raise RuntimeError("the client is not open")
        began_ns = time.monotonic_ns()
        try:
            async with self._session.post(
                url, data=body, headers=headers, allow_redirects=False
            ) as response:
                content = await response.content.read(MOST_ANSWER_BYTES)
                return Answer(response.status, _since_ms(began_ns), content, response.headers)
        except asyncio.CancelledError:
            raise
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return Answer(None, _since_ms(began_ns), error=_why(error))

    async def get(
        self,
        url: str,
        take: Callable[[bytes], Awaitable[None]],
        *,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Get bytes, handed on as they come, and say what came back; the body is not in the answer.

        Only a 200 is read. An answer of another status, one that is encoded, and one that breaks off
        are told apart by `status` and `error`.

        Args:
            url: of a partner's choice.
            take: is given each part. What it raises ends the call, and is raised here.
            headers: to send.
        """
        if self._session is None:
            raise RuntimeError("the client is not open")
        began_ns = time.monotonic_ns()
        sent = {"Accept-Encoding": "identity", **(headers or {})}
        try:
            async with self._session.get(url, headers=sent, allow_redirects=False) as response:
                status, told = response.status, response.headers
                if status != 200:
                    return Answer(status, _since_ms(began_ns), headers=told)
                encoding = told.get("Content-Encoding", "identity").lower()
                if encoding != "identity":
                    error = f"its answer is encoded as {encoding[:20]}"
                    return Answer(None, _since_ms(began_ns), headers=told, error=error)
                async for part in response.content.iter_any():
                    await _hand_on(part, take)
                return Answer(status, _since_ms(began_ns), headers=told)
        except asyncio.CancelledError:
            raise
        except _NotTaken as not_taken:
            raise not_taken.error from None
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            return Answer(None, _since_ms(began_ns), error=_why(error))

    def vet(self, host: str) -> None:
        """Refuse an address that may not be reached.

        Raises:
            NotAllowed: not public, and in no allowed network.
        """
        address = ip_address(host.partition("%")[0])
        if is_public(address):
            return
        plain = address.ipv4_mapped if isinstance(address, IPv6Address) else None
        for network in self._allowed:
            if address in network or (plain is not None and plain in network):
                return
        raise NotAllowed(f"{host} is not a public address, and not in allowed_networks")

    def _vetted_socket(self, info: tuple[Any, ...]) -> socket.socket:
        family, kind, protocol, _, where = info
        self.vet(str(where[0]))
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made


class _NotTaken(Exception):
    """Whoever took the parts has failed, not the other side."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


async def _hand_on(part: bytes, take: Callable[[bytes], Awaitable[None]]) -> None:
    try:
        await take(part)
    except Exception as error:
        raise _NotTaken(error) from error


def _since_ms(began_ns: int) -> int:
    return (time.monotonic_ns() - began_ns) // 1_000_000


def _why(error: BaseException) -> str:
    cause = error.__cause__ if isinstance(error.__cause__, NotAllowed) else error
    return f"{type(cause).__name__}: {cause}"[:500] or type(cause).__name__
