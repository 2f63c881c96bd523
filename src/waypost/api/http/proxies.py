"""Where a request comes from, behind proxies that may be believed and others that may not."""

from collections.abc import MutableMapping, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

Address = IPv4Address | IPv6Address

NETWORK_BITS: Final = 64
"""The least that a subscriber of version 6 is given; within it, a client has a new address whenever it likes.

Source: RFC 6177, section 2; RFC 8981.
"""

_FORWARDED: Final = b"x-forwarded-for"
UNKNOWN: Final = "unknown"


class Proxies:
    """Tells a client's address from what proxies have written about it.

    `X-Forwarded-For` is a list to whose end each proxy adds who has asked it. Anybody may send one, so
    it is read from its end, and only as far as each writer is trusted: the address found is the last one
    that a trusted proxy has seen with its own eyes. `X-Forwarded-Proto` and `X-Forwarded-Host` are not
    read at all: where we are reached is the setting `public_url`, for callbacks too, which belong to
    no request.

    Args:
        trusted: networks of the proxies; empty: nobody is believed.
    """

    def __init__(self, trusted: Sequence[str] = ()) -> None:
        self._trusted = [ip_network(network) for network in trusted]

    def client_address(self, scope: MutableMapping[str, Any]) -> str:
        """Whoever has asked, as far as can be known; `not_found` without an address."""
        client = scope.get("client")
        peer = str(client[0]) if client else UNKNOWN
        if not self._trusted:
            return peer
        address = _read(peer)
        if address is None:
            return peer
        for told in reversed(_forwarded(scope)):
            if not self._is_trusted(address):
                break
            before = _read(told)
            if before is None:  # whom it names, nobody can tell: the proxy itself answers for it
                break
            address = before
        return str(address)

    def trusts(self, address: str) -> bool:
        """True if a connection from this address is one of a trusted proxy."""
        read = _read(address)
        return read is not None and self._is_trusted(read)

    def _is_trusted(self, address: Address) -> bool:
        return any(address in network for network in self._trusted)


def counted_as(address: str) -> str:
    """What a client's requests are counted by: its address; of version 6 its network.

    Args:
        address: as `Proxies.client_address` gives it.
    """
    read = _read(address)
    if isinstance(read, IPv6Address):
        return str(IPv6Network((read, NETWORK_BITS), strict=False))
    return address if read is None else str(read)


def _forwarded(scope: MutableMapping[str, Any]) -> list[str]:
    """What proxies have added, in their order: a proxy adds to the last header, or a header of its own."""
    lines = [value.decode("latin-1") for name, value in scope["headers"] if name == _FORWARDED]
    return [one.strip() for line in lines for one in line.split(",") if one.strip()]


def _read(text: str) -> Address | None:
    """An address, with a port or without, in brackets or without; None: it is none.

    One of version 4 inside one of version 6 is that of version 4, as a network in the setting is.
    """
    host = text.strip().strip('"')
    if host.startswith("["):
        host = host[1:].partition("]")[0]
    elif host.count(":") == 1:
        host = host.partition(":")[0]
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped
