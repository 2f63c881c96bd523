"""Limits of HTTP connections, which apply before an application sees a request.

`protocol.py` enforces them; `servers.py` passes them to each server.
"""

import resource
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec

from waypost.api.http.proxies import TrustedProxies, rate_limit_address
from waypost.config import Settings

MAX_HEADER_BYTES: Final = 64 * 1024
MAX_HEADERS: Final = 100
MAX_URL_BYTES: Final = 8 * 1024

_USEFUL_DESCRIPTORS: Final = 65_536
"""A soft limit above this has no benefit."""


@dataclass(frozen=True, slots=True)
class HttpError:
    """An error response of the server itself; the connection is closed after it."""

    status: int
    text: str


ErrorBody = Callable[[int, str], bytes]
"""Returns the JSON body of an error response in the format of the API that the server serves."""


def service_error_body(status: int, text: str) -> bytes:
    """Return the body of an error of the service."""
    del status
    return msgspec.json.encode({"status": "error", "message": text})


@dataclass(frozen=True, slots=True)
class HttpLimits:
    """Limits of one server. Sizes of headers and URL are fixed; the rest are settings.

    Attributes:
        header_timeout_s: from the first byte of a request, or from accepting the connection, to the end
            of the headers.
        body_timeout_s: over each such period a request body must arrive at `min_body_rate` at least.
        min_body_rate: bytes a second.
        max_connections: in total; 0: no limit.
        max_connections_per_address: of one client address, or one IPv6 network; 0: no limit.
        reserved_descriptors: file descriptors that incoming connections cannot use.
        proxies: connections of trusted proxies are limited in total only.
    """

    header_timeout_s: float = 10
    body_timeout_s: float = 30
    min_body_rate: int = 500
    max_connections: int = 4000
    max_connections_per_address: int = 256
    reserved_descriptors: int = 256
    proxies: TrustedProxies = field(default_factory=TrustedProxies)


DEFAULT_LIMITS: Final = HttpLimits()


def http_limits(settings: Settings) -> HttpLimits:
    """Return the limits of the settings."""
    return HttpLimits(
        header_timeout_s=settings.header_timeout_s,
        body_timeout_s=settings.body_timeout_s,
        min_body_rate=settings.min_body_rate,
        max_connections=settings.max_connections,
        max_connections_per_address=settings.max_connections_per_address,
        reserved_descriptors=settings.reserved_descriptors,
        proxies=TrustedProxies(settings.trusted_proxies),
    )


class OpenConnection(Protocol):
    """A connection as `Connections` counts it."""

    def end_idle(self) -> None:
        """Close it: no request is open on it."""
        ...

    def check_deadlines(self, now_s: float) -> None:
        """Reject a request that takes too long to arrive."""
        ...

    def announce_end(self) -> None:
        """Let the response to its open request say that the connection ends."""
        ...


class Connections:
    """The open connections of one server, counted in total and by client address.

    Attributes:
        errors_sent: number of error responses of the server itself, by status.
        is_draining: each connection ends with its next response, which says so.
    """

    def __init__(self, limits: HttpLimits = DEFAULT_LIMITS, error_body: ErrorBody = service_error_body) -> None:
        self.limits = limits
        self.error_body = error_body
        self.errors_sent: Counter[int] = Counter()
        self.is_draining = False
        self._open: dict[OpenConnection, str] = {}
        self._by_address: dict[str, set[OpenConnection]] = {}
        self._idle: dict[OpenConnection, None] = {}  # the longest idle first
        self._max_descriptors = _usable_descriptors(limits.reserved_descriptors)

    @property
    def open_count(self) -> int:
        """Number of open connections."""
        return len(self._open)

    def admit(self, connection: OpenConnection, address: str, descriptor: int) -> HttpError | None:
        """Count a new connection; if there is no room, close an idle one for it.

        Args:
            connection: just accepted; `remove` must follow in any case.
            address: the peer's.
            descriptor: of its socket. The system assigns the lowest free number, so it shows how many
                are in use in the whole process.

        Returns:
            The error if it cannot be served, else None.
        """
        key = rate_limit_address(address)
        error = self._check_room(address, key, descriptor)
        self._open[connection] = key
        self._by_address.setdefault(key, set()).add(connection)
        return error

    def remove(self, connection: OpenConnection) -> None:
        """Remove a connection that is closed."""
        self._idle.pop(connection, None)
        key = self._open.pop(connection, None)
        if key is None:
            return
        others = self._by_address[key]
        others.discard(connection)
        if not others:
            del self._by_address[key]

    def mark_idle(self, connection: OpenConnection) -> None:
        """Mark a connection as idle: its last request is complete, and no other has begun."""
        if connection in self._open:
            self._idle[connection] = None

    def mark_active(self, connection: OpenConnection) -> None:
        """Mark a connection as active: a request begins on it."""
        self._idle.pop(connection, None)

    def check_deadlines(self, now_s: float) -> None:
        """Reject every request that takes too long to arrive."""
        for connection in tuple(self._open):
            connection.check_deadlines(now_s)

    def begin_drain(self) -> None:
        """Let each connection end with its next response."""
        self.is_draining = True
        for connection in tuple(self._open):
            connection.announce_end()

    def _check_room(self, address: str, key: str, descriptor: int) -> HttpError | None:
        others = self._by_address.get(key, ())
        limit = self.limits.max_connections_per_address
        if limit and len(others) >= limit and not self.limits.proxies.trusts(address):
            idle = next((each for each in others if each in self._idle), None)
            if idle is None:
                return HttpError(429, f"At most {limit} connections may be open from one address.")
            idle.end_idle()
        limit = self.limits.max_connections
        if (limit and len(self._open) >= limit) or descriptor >= self._max_descriptors:
            idle = next(iter(self._idle), None)
            if idle is None:
                return HttpError(503, "The server has no room for more connections; try again.")
            idle.end_idle()
        return None


def _usable_descriptors(reserved: int) -> int:
    """Return how many descriptors can be in use before connections are rejected."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 2**31
    return max(soft - reserved, soft // 2)


def raise_descriptor_limit() -> None:
    """Raise this process's limit of open files and connections as far as the system allows."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = _USEFUL_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _USEFUL_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < target:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
        except (OSError, ValueError):  # the system allows less than it reports
            return


def graph_error_body(status: int, text: str) -> bytes:
    """Return the body of an error of the simulator. Source: Cloud API facts 8."""
    code = 1 if status >= 500 else 100
    error: dict[str, Any] = {"message": text, "type": "OAuthException", "code": code}
    return msgspec.json.encode({"error": error})
