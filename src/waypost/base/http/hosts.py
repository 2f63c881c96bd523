"""Hosts in URLs, for the checks of Host and Origin; no URL is an error."""

from ipaddress import ip_address
from urllib.parse import urlsplit


def hostname_of(address: str) -> str:
    """Return the host name of a URL, in lower case; empty if it has none. A bare host follows `//`."""
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""


def netloc_of(address: str) -> str:
    """Return host and port of a URL, in lower case; empty if it has none, as in `null`."""
    try:
        return urlsplit(address).netloc.lower()
    except ValueError:
        return ""


def is_ip_address(host: str) -> bool:
    """True if a host is an IP address."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """True if a host is this machine by name or IP address: `localhost`, 127.0.0.0/8, `::1`."""
    return host == "localhost" or (is_ip_address(host) and ip_address(host).is_loopback)
