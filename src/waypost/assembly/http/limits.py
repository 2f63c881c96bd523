"""Limits of HTTP connections, which apply before an application sees a request.

`protocol.py` enforces them; `servers.py` passes them to each server.
"""

import resource
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from waypost.api.access_log import TrustedProxies, network_of, rate_limit_address
from waypost.assembly.http.pacing import Pacing, Turns
from waypost.config import Settings

MAX_HEADER_BYTES: Final = 64 * 1024
MAX_HEADERS: Final = 100
MAX_URL_BYTES: Final = 8 * 1024

MAX_UNPARSED_BYTES: Final = 16_000_000
"""Of pipelined requests that wait to be parsed, on all connections of a listener."""

SLOW_AFTER_S: Final = 1.0
"""A request that has taken longer to arrive goes first when there is no room."""

MANY_ARRIVING: Final = 32
"""A network with so many requests that are arriving makes room for one that has less than half as many."""

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
    """Limits of one server. Sizes of headers and URL are fixed; the rest are settings."""

    # from the first byte of a request, or from accepting the connection, to the end of the headers
    header_timeout_s: float = 10
    # over each such period a request body must arrive at `min_body_rate` at least, and a response be read
    body_timeout_s: float = 30
    min_body_rate: int = 500  # bytes a second
    max_connections: int = 4000  # in total; 0: no limit
    max_connections_per_address: int = 256  # of one client address, or one IPv6 network; 0: no limit
    reserved_descriptors: int = 256  # file descriptors that incoming connections cannot use
    # connections of trusted proxies are limited in total only
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

    def end_for_another(self) -> None:
        """End it: no request is open on it, or one that is not complete yet."""
        ...

    def check_deadlines(self, now_s: float) -> None:
        """Reject a request that takes too long to arrive."""
        ...

    def announce_end(self) -> None:
        """Let the response to its open request say that the connection ends."""
        ...


class Connections:
    """The open connections of one server, counted in total and by client address.

    When there is no room for a new one, another is ended, in this order: the one whose request has been arriving for
    longest, of the network with most of them, if that is more than a second, or if the network has many and the new
    connection's own less than half as many; the longest idle without a valid credential; the longest idle, if more than
    half had one. Those that had a valid credential are not among the slow ones. Otherwise the new one is rejected.

    Attributes:
        errors_sent: number of error responses of the server itself, by status.
        turns: of requests that may be ones that nobody pays for.
        unparsed_bytes: of pipelined requests that wait to be parsed.
        paced_responses: number of responses that have waited until they were paid.
        is_draining: each connection ends with its next response, which says so.
    """

    def __init__(
        self,
        limits: HttpLimits = DEFAULT_LIMITS,
        error_body: ErrorBody = service_error_body,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self.error_body = error_body
        self.errors_sent: Counter[int] = Counter()
        self.paced_responses = 0
        self.unparsed_bytes = 0
        self.is_draining = False
        self._now_s = now_s
        self._open: dict[OpenConnection, _Origin] = {}
        self._by_address: dict[str, set[OpenConnection]] = {}
        self._idle: dict[OpenConnection, None] = {}  # the longest idle first
        self._arriving: dict[str, dict[OpenConnection, float]] = {}  # by network, with its start, the oldest first
        self._authenticated: set[OpenConnection] = set()
        self.turns = Turns()
        self._pacing = Pacing(now_s)
        self._max_descriptors = _usable_descriptors(limits.reserved_descriptors)

    @property
    def open_count(self) -> int:
        """Number of open connections."""
        return len(self._open)

    def admit(self, connection: OpenConnection, address: str, descriptor: int) -> HttpError | None:
        """Count a new connection; if there is no room, end another one for it.

        Args:
            connection: just accepted; `remove` must follow in any case.
            address: the peer's.
            descriptor: of its socket. The system assigns the lowest free number, so it shows how many
                are in use in the whole process.

        Returns:
            The error if it cannot be served, else None.
        """
        origin = _Origin(rate_limit_address(address), network_of(address))
        error = self._check_room(address, origin, descriptor)
        self._open[connection] = origin
        self._by_address.setdefault(origin.address, set()).add(connection)
        if error is None:
            self.mark_arriving(connection, True)
        return error

    def remove(self, connection: OpenConnection) -> None:
        """Remove a connection that is closed."""
        origin = self._open.get(connection)
        if origin is None:
            return
        self._idle.pop(connection, None)
        self._authenticated.discard(connection)
        self.mark_arriving(connection, False)
        del self._open[connection]
        others = self._by_address[origin.address]
        others.discard(connection)
        if not others:
            del self._by_address[origin.address]

    def mark_idle(self, connection: OpenConnection) -> None:
        """Mark a connection as idle: its last request is complete, and no other has begun."""
        if connection in self._open:
            self._idle[connection] = None

    def mark_active(self, connection: OpenConnection) -> None:
        """Mark a connection as active: a request begins on it."""
        self._idle.pop(connection, None)

    def mark_arriving(self, connection: OpenConnection, is_arriving: bool) -> None:
        """Note whether a connection is waiting for its first request, or for the rest of any."""
        origin = self._open.get(connection)
        if origin is None:
            return
        if is_arriving:
            if connection not in self._authenticated:
                self._arriving.setdefault(origin.network, {})[connection] = self._now_s()
            return
        arriving = self._arriving.get(origin.network)
        if arriving is not None and arriving.pop(connection, None) is not None and not arriving:
            del self._arriving[origin.network]

    def mark_authenticated(self, connection: OpenConnection) -> None:
        """Note that a request of the connection had a valid credential."""
        if connection in self._open and connection not in self._authenticated:
            self._authenticated.add(connection)
            self.mark_arriving(connection, False)

    def check_deadlines(self, now_s: float) -> None:
        """Reject every request that takes too long to arrive."""
        for connection in tuple(self._open):
            connection.check_deadlines(now_s)

    def charge(self, scope: MutableMapping[str, Any], spent_s: float) -> float:
        """Charge a client for processor time; return how long the response to its request has to wait, in s."""
        return self._pacing.charge(self.network_of_client(scope), spent_s)

    def network_of_client(self, scope: MutableMapping[str, Any]) -> str:
        """Return the network of a request's client, which may be behind a trusted proxy."""
        return network_of(self.limits.proxies.client_address(scope))

    def begin_drain(self) -> None:
        """Let each connection end with its next response."""
        self.is_draining = True
        for connection in tuple(self._open):
            connection.announce_end()

    def _check_room(self, address: str, origin: "_Origin", descriptor: int) -> HttpError | None:
        others = self._by_address.get(origin.address, ())
        limit = self.limits.max_connections_per_address
        if limit and len(others) >= limit and not self.limits.proxies.trusts(address):
            arriving = self._arriving.get(origin.network, {})
            ended = self._slowest([{each: since_s for each, since_s in arriving.items() if each in others}])
            ended = ended or next((each for each in self._idle if each in others), None)  # the longest idle
            if ended is None:
                return HttpError(429, f"At most {limit} connections may be open from one address.")
            ended.end_for_another()
        limit = self.limits.max_connections
        if (limit and len(self._open) >= limit) or descriptor >= self._max_descriptors:
            ended = self._slowest(self._arriving.values()) or self._oldest_of_many(origin.network)
            ended = ended or self._longest_idle()
            if ended is None:
                return HttpError(503, "The server has no room for more connections; try again.")
            ended.end_for_another()
        return None

    def _slowest(self, networks: Iterable[Mapping[OpenConnection, float]]) -> OpenConnection | None:
        """Return the connection whose request has been arriving for longest, of the network with most; or None."""
        before_s = self._now_s() - SLOW_AFTER_S
        slow = [arriving for arriving in networks if arriving and next(iter(arriving.values())) <= before_s]
        return next(iter(max(slow, key=len))) if slow else None

    def _oldest_of_many(self, network: str) -> OpenConnection | None:
        """Return the first one of the network with most that are arriving, if it has many more than another; or None.

        Thousands that arrive at once fill the room before any of them is slow.
        """
        most = max(self._arriving.values(), key=len, default=None)
        many = max(MANY_ARRIVING, 2 * (len(self._arriving.get(network, ())) + 1))
        return next(iter(most)) if most is not None and len(most) >= many else None

    def _longest_idle(self) -> OpenConnection | None:
        without = (each for each in self._idle if each not in self._authenticated)
        ended = next(without, None)
        if ended is None and len(self._authenticated) > len(self._open) // 2:
            return next(iter(self._idle), None)
        return ended


class _Origin(NamedTuple):
    """The address that a client is counted by, and its network."""

    address: str
    network: str


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
    code = 1 if status >= 500 else {403: 200}.get(status, 100)
    error: dict[str, Any] = {"message": text, "type": "OAuthException", "code": code}
    return msgspec.json.encode({"error": error})
