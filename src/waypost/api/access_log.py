"""The access log, and the address of a client behind trusted proxies."""

import re
import time
from collections.abc import Callable, MutableMapping, Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final

from waypost.base.ids import Ids
from waypost.base.telemetry.logs import log

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


REQUEST_ID_HEADER: Final = b"x-request-id"
"""The header of a request's id, in requests, responses and calls to the operator."""
ACCESS_RECORD: Final = "waypost.access"
"""A key in the scope of a request that is logged: its `AccessRecord`."""

_SAFE_ID: Final = re.compile(r"[A-Za-z0-9._~:/+=@-]{1,128}")
_log = log("access")


@dataclass(slots=True)
class AccessRecord:
    """The fields of a request's record that endpoints add."""

    request_id: str  # the client's, if it sent a valid one; else a new one
    partner_id: int | None = None  # whose credential the request has; None: not known
    app_id: str | None = None  # the app that it is about; None: not known


def read_request_id(sent: str | None, ids: Ids) -> str:
    """Return the id that a client sent; a new one if it is not 1 to 128 letters, digits and `._~:/+=@-`."""
    return sent if sent is not None and _SAFE_ID.fullmatch(sent) else ids.new()


class AccessLog:
    """An ASGI application that writes one record for each request of another one.

    Args:
        application: serves the requests.
        route_of: returns the template of the path that a request was for; empty if no route matched.
        proxies: those in front of the service.
        ids: makes the ids of requests without one.
    """

    def __init__(
        self, application: Any, route_of: Callable[[MutableMapping[str, Any]], str], proxies: TrustedProxies, ids: Ids
    ) -> None:
        self._application = application
        self._route_of = route_of
        self._proxies = proxies
        self._ids = ids

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to one request, and write its record."""
        if scope["type"] != "http":
            await self._application(scope, receive, send)
            return
        began_s = time.perf_counter()
        sent_id = next((value.decode("latin-1") for name, value in scope["headers"] if name == REQUEST_ID_HEADER), None)
        record = scope[ACCESS_RECORD] = AccessRecord(read_request_id(sent_id, self._ids))
        status, size_bytes = None, 0

        async def send_counted(message: MutableMapping[str, Any]) -> None:
            nonlocal status, size_bytes
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (REQUEST_ID_HEADER, record.request_id.encode())]
            elif message["type"] == "http.response.body":
                size_bytes += len(message.get("body", b""))
            await send(message)

        try:
            await self._application(scope, receive, send_counted)
        finally:
            _log.info(
                "request",
                request_id=record.request_id,
                method=scope["method"],
                route=self._route_of(scope),
                status=status,
                took_ms=round((time.perf_counter() - began_s) * 1000, 1),
                bytes=size_bytes,
                client=self._proxies.client_address(scope),
                partner_id=record.partner_id,
                app_id=record.app_id,
            )
