"""Addresses: resolves names on threads of its own, where a slow one delays no other, and tells which are public."""

import asyncio
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

from waypost.base.http.connection_pools import AddrInfo, Resolve

RESOLVER_THREADS: Final = 64
"""A lookup cannot be cancelled. With the loop's own few threads, some dead names would stop all lookups."""

LOOKUP_CACHE_S: Final = 10
"""How long a result is used again. Every use is vetted, so a name may change its address."""

MAX_CACHED_LOOKUPS: Final = 10_000


class ThreadResolver:
    """Resolves by the system's resolver, as other programs on the machine do; once for simultaneous requests."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(RESOLVER_THREADS, thread_name_prefix="resolver")
        self._lookups: dict[tuple[str, int], tuple[float, asyncio.Future[list[AddrInfo]]]] = {}

    async def __call__(self, host: str, port: int) -> Sequence[AddrInfo]:
        """Return every address of a name. Raises OSError: it has none, or no name server responds."""
        loop = asyncio.get_running_loop()
        key = (host, port)
        known = self._lookups.get(key)
        if known is None or known[0] <= loop.time() or _has_failed(known[1]):
            if len(self._lookups) >= MAX_CACHED_LOOKUPS:
                self._lookups.clear()
            lookup = loop.run_in_executor(self._threads, _resolve_host, host, port)
            known = self._lookups[key] = (loop.time() + LOOKUP_CACHE_S, lookup)
        # A caller that is cancelled does not cancel the lookup for the others.
        return await asyncio.shield(known[1])

    def close(self) -> None:
        """Shut down without waiting for running lookups."""
        self._threads.shutdown(wait=False, cancel_futures=True)


class VettedResolver:
    """Resolves names with every result vetted.

    Args:
        resolve: returns the addresses.
        vet: raises `OSError` for one that may not be reached.
    """

    def __init__(self, resolve: Resolve, vet: Callable[[str], None]) -> None:
        self._resolve = resolve
        self._vet = vet

    async def resolve_all(self, host: str, port: int) -> Sequence[AddrInfo]:
        """Return every address of a name, all of them allowed.

        Raises:
            OSError: it has none, no name server responds, or one address may not be reached.
        """
        literal = literal_address(host)
        if literal is not None:  # whether or not this system's resolver knows the spelling
            self._vet(literal)
        infos = await self._resolve(host, port)
        for info in infos:
            self._vet(str(info[4][0]))
        return infos


def literal_address(host: str) -> str | None:
    """Return the address that a host is by itself: a literal one, also with a final dot or zone, or this machine.

    Source: RFC 6761, section 6.3, for names that end with `localhost`.
    """
    plain = host.rstrip(".").partition("%")[0]
    if plain.lower() == "localhost" or plain.lower().endswith(".localhost"):
        return "127.0.0.1"
    try:
        return str(ip_address(plain))
    except ValueError:
        pass
    try:  # the short forms, one number, octal and hexadecimal parts
        return socket.inet_ntoa(socket.inet_aton(plain))
    except (OSError, UnicodeError):
        return None


def _resolve_host(host: str, port: int) -> list[AddrInfo]:
    return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))


def _has_failed(lookup: "asyncio.Future[list[AddrInfo]]") -> bool:
    return lookup.done() and (lookup.cancelled() or lookup.exception() is not None)


Address = IPv4Address | IPv6Address

EMBEDDED_IPV4_RANGES: Final = (  # IPv6 ranges that embed an IPv4 address, and its bits. Source: RFC 4291, 6052, 3056
    # range, bits to the right of the IPv4 address
    (IPv6Network("::ffff:0:0/96"), 0),
    (IPv6Network("::/96"), 0),
    (IPv6Network("::ffff:0:0:0/96"), 0),  # translated. Source: RFC 7915
    (IPv6Network("64:ff9b::/96"), 0),
    (IPv6Network("2002::/16"), 80),
)
ISATAP: Final = (0x0000_5EFE, 0x0200_5EFE)  # the upper half of an interface id before an IPv4 address. Source: RFC 5214
NEVER_PUBLIC: Final = (  # public by mistake in some versions of Python. Source: IANA, special-purpose addresses
    ip_network("192.88.99.0/24"),  # 6to4 relay anycast
    ip_network("3fff::/20"),  # documentation
    ip_network("5f00::/16"),  # segment routing
    ip_network("64:ff9b:1::/48"),  # local NAT64
)
UNICAST: Final = IPv6Network("2000::/3")  # all that is assigned so far. Source: IANA, IPv6 address space


@lru_cache(maxsize=4096)
def is_public(address: Address) -> bool:
    """True if an address is public unicast, its embedded IPv4 address included."""
    if isinstance(address, IPv6Address):
        for network, shift in EMBEDDED_IPV4_RANGES:
            if address in network and int(address) > 1:
                return is_public(IPv4Address((int(address) >> shift) & 0xFFFFFFFF))
        if address not in UNICAST or address.teredo is not None:
            return False
        if (int(address) >> 32) & 0xFFFFFFFF in ISATAP:
            return is_public(IPv4Address(int(address) & 0xFFFFFFFF)) and _is_global(address)
    return _is_global(address)


def _is_global(address: Address) -> bool:
    if any(address in network for network in NEVER_PUBLIC):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved
