"""Hosts in URLs, for the checks of Host and Origin; no URL is an error."""

import re
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

_NOT_IN_URL: Final = re.compile(r'[\s<>"{}|\\^`]')  # Source: RFC 3986, section 2


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


def is_web_url(text: str) -> bool:
    """True if a text is an absolute http or https URL with a host, without a space or another character of no URL."""
    try:
        parts = urlsplit(text)
        _ = parts.port
    except ValueError:
        return False
    is_web = parts.scheme in ("http", "https") and bool(parts.hostname)
    return is_web and text.isprintable() and not _NOT_IN_URL.search(text)
