"""The IP address of a request's client, behind trusted and untrusted proxies."""

from collections.abc import MutableMapping, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

Address = IPv4Address | IPv6Address

IPV6_NETWORK_BITS: Final = 64
"""The smallest IPv6 network that a subscriber gets; a client can use any address within it at any time.

Source: RFC 6177, section 2; RFC 8981.
"""

IPV4_SITE_BITS: Final = 24
IPV6_SITE_BITS: Final = 48
"""Networks that usually belong to one site: a client with an address of one easily gets the others.

Source: RFC 6177, section 2, for IPv6; for IPv4 the longest prefix that is routed between providers.
"""

_FORWARDED: Final = b"x-forwarded-for"
UNKNOWN: Final = "unknown"


class TrustedProxies:
    """Finds a client's address in the headers that trusted proxies add.

    Each proxy appends the address of its peer to `X-Forwarded-For`. Any client may send this header, so
    it is read from its end, and only as far as each writer is trusted: the result is the farthest address
    that a trusted proxy has seen as its peer. `X-Forwarded-Proto` and `X-Forwarded-Host` are not read
    at all: our own URL is the setting `public_url`, because callbacks, which belong to no request, need
    it too.

    Args:
        trusted: networks of the trusted proxies; empty: no proxy is trusted.
    """

    def __init__(self, trusted: Sequence[str] = ()) -> None:
        self._trusted = [ip_network(network) for network in trusted]

    def client_address(self, scope: MutableMapping[str, Any]) -> str:
        """Return the client's address, as far as it can be known; `UNKNOWN` without one."""
        client = scope.get("client")
        peer = str(client[0]) if client else UNKNOWN
        if not self._trusted:
            return peer
        address = _parse_address(peer)
        if address is None:
            return peer
        for forwarded in reversed(_forwarded_addresses(scope)):
            if not self._is_trusted(address):
                break
            before = _parse_address(forwarded)
            if before is None:  # unreadable, so the proxy itself counts as the client
                break
            address = before
        return str(address)

    def trusts(self, address: str) -> bool:
        """True if this is the address of a trusted proxy."""
        read = _parse_address(address)
        return read is not None and self._is_trusted(read)

    def _is_trusted(self, address: Address) -> bool:
        return any(address in network for network in self._trusted)


def rate_limit_address(address: str) -> str:
    """Return the address that a client's requests are counted by: its IPv4 address, or its IPv6 network.

    Args:
        address: as `TrustedProxies.client_address` returns it.
    """
    read = _parse_address(address)
    if isinstance(read, IPv6Address):
        return str(IPv6Network((read, IPV6_NETWORK_BITS), strict=False))
    return address if read is None else str(read)


def network_of(address: str) -> str:
    """Return the network of a site that an address belongs to, or the text itself if it is no address."""
    read = _parse_address(address)
    if read is None:
        return address
    bits = IPV4_SITE_BITS if read.version == 4 else IPV6_SITE_BITS
    return str(ip_network((read, bits), strict=False))


def _forwarded_addresses(scope: MutableMapping[str, Any]) -> list[str]:
    """Return the forwarded addresses in order: a proxy appends to the last header, or adds a header."""
    lines = [value.decode("latin-1") for name, value in scope["headers"] if name == _FORWARDED]
    return [address.strip() for line in lines for address in line.split(",") if address.strip()]


def _parse_address(text: str) -> Address | None:
    """Return the parsed address, with or without port and brackets; None if it is not one.

    An IPv4 address mapped into IPv6 counts as the IPv4 address, like the networks in the setting.
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
