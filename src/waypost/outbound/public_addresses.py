"""Decides whether a network address is public unicast, including any address that it embeds."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_network
from typing import Final

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
NEVER_PUBLIC: Final = (  # public by mistake in some versions of Python. Source: IANA, special-purpose address registries
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
