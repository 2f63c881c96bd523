"""Limits of HTTP connections: what a server accepts before an application sees a request.

`http_protocol.py` enforces them; `servers.py` hands them to each server.
"""

import resource
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import msgspec

from waypost.api.http.proxies import Proxies, counted_as
from waypost.config import Settings

HEADER_BYTES: Final = 64 * 1024
HEADERS: Final = 100
URL_BYTES: Final = 8 * 1024

_USEFUL_DESCRIPTORS: Final = 65_536
"""A soft limit above this brings nothing."""


@dataclass(frozen=True, slots=True)
class HttpError:
    """An error response of the server itself; the connection is closed after it."""

    status: int
    text: str


ErrorBody = Callable[[int, str], bytes]
"""Gives the JSON body of an error response in the shape of the API that the server serves."""


def service_error_body(status: int, text: str) -> bytes:
    """The shape of the service's errors."""
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
        reserved_descriptors: file descriptors that no incoming connection takes.
        proxies: connections of trusted ones are limited in total only.
    """

    header_timeout_s: float = 10
    body_timeout_s: float = 30
    min_body_rate: int = 500
    max_connections: int = 4000
    max_connections_per_address: int = 256
    reserved_descriptors: int = 256
    proxies: Proxies = field(default_factory=Proxies)


DEFAULT_LIMITS: Final = HttpLimits()


def limits_of(settings: Settings) -> HttpLimits:
    """The limits as the settings choose them."""
    return HttpLimits(
        header_timeout_s=settings.header_timeout_s,
        body_timeout_s=settings.body_timeout_s,
        min_body_rate=settings.min_body_rate,
        max_connections=settings.max_connections,
        max_connections_per_address=settings.max_connections_per_address,
        reserved_descriptors=settings.reserved_descriptors,
        proxies=Proxies(settings.trusted_proxies),
    )


class OpenConnection(Protocol):
    """A connection as `Connections` counts it."""

    def end_idle(self) -> None:
        """Close it: nothing is being received or answered on it."""
        ...

    def check_deadlines(self, now_s: float) -> None:
        """Refuse what has taken too long."""
        ...


class Connections:
    """The open connections of one server, counted in total and by client address.

    Attributes:
        refused: how often the server itself has answered with which status.
    """

    def __init__(self, limits: HttpLimits = DEFAULT_LIMITS, error_body: ErrorBody = service_error_body) -> None:
        self.limits = limits
        self.error_body = error_body
        self.refused: Counter[int] = Counter()
        self._open: dict[OpenConnection, str] = {}
        self._by_address: dict[str, set[OpenConnection]] = {}
        self._idle: dict[OpenConnection, None] = {}  # the longest idle first
        self._most_descriptors = _usable_descriptors(limits.reserved_descriptors)

    @property
    def open_count(self) -> int:
        """How many are open."""
        return len(self._open)

    def admit(self, connection: OpenConnection, address: str, descriptor: int) -> HttpError | None:
        """Count a new connection; an idle one is closed in its place where there is no room.

        Args:
            connection: just accepted; `remove` must follow whatever is returned.
            address: the peer's.
            descriptor: of its socket. The system gives the lowest free number, so a high one says
                how many are in use in the whole process.

        Returns:
            Why it cannot be served; None where it can.
        """
        counted = counted_as(address)
        error = self._no_room(address, counted, descriptor)
        self._open[connection] = counted
        self._by_address.setdefault(counted, set()).add(connection)
        return error

    def remove(self, connection: OpenConnection) -> None:
        """Forget a connection that is closed."""
        self._idle.pop(connection, None)
        counted = self._open.pop(connection, None)
        if counted is None:
            return
        others = self._by_address[counted]
        others.discard(connection)
        if not others:
            del self._by_address[counted]

    def mark_idle(self, connection: OpenConnection) -> None:
        """Its last request has been answered, and no other has begun."""
        if connection in self._open:
            self._idle[connection] = None

    def mark_active(self, connection: OpenConnection) -> None:
        """A request begins on it."""
        self._idle.pop(connection, None)

    def check_deadlines(self, now_s: float) -> None:
        """Refuse every request that has taken too long to arrive."""
        for connection in tuple(self._open):
            connection.check_deadlines(now_s)

    def _no_room(self, address: str, counted: str, descriptor: int) -> HttpError | None:
        others = self._by_address.get(counted, ())
        most = self.limits.max_connections_per_address
        if most and len(others) >= most and not self.limits.proxies.trusts(address):
            idle = next((one for one in others if one in self._idle), None)
            if idle is None:
                return HttpError(429, f"At most {most} connections may be open from one address.")
            idle.end_idle()
        most = self.limits.max_connections
        if (most and len(self._open) >= most) or descriptor >= self._most_descriptors:
            idle = next(iter(self._idle), None)
            if idle is None:
                return HttpError(503, "The server has no room for more connections; try again.")
            idle.end_idle()
        return None


def _usable_descriptors(reserved: int) -> int:
    """How many descriptors may be in use before connections are refused."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return 2**31
    return max(soft - reserved, soft // 2)


def raise_descriptor_limit() -> None:
    """Let this process have as many open files and connections as the system allows it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _USEFUL_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, _USEFUL_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        except (OSError, ValueError):  # a system that allows less than it says
            return


def graph_error_body(status: int, text: str) -> bytes:
    """The shape of the simulator's errors. Source: Cloud API facts 8."""
    code = 1 if status >= 500 else 100
    error: dict[str, Any] = {"message": text, "type": "OAuthException", "code": code}
    return msgspec.json.encode({"error": error})
