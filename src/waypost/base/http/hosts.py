"""Hosts in addresses, for the checks of Host and Origin: no address is too odd to be read."""

from ipaddress import ip_address
from urllib.parse import urlsplit


def hostname_of(address: str) -> str:
    """Return the host name of an address, in lower case; empty where it has none. A bare host follows `//`."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def netloc_of(address: str) -> str:
    """Return host and port of an address, in lower case; empty where it has none, as in `null`."""
    try:
        return urlsplit(address).netloc.lower()
    except ValueError:
        return ""


def is_ip_address(host: str) -> bool:
    """Return whether a host is an IP address."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Return whether a host is this machine's by its name or address: `localhost`, 127.0.0.0/8, `::1`."""
    return host == "localhost" or (is_ip_address(host) and ip_address(host).is_loopback)
