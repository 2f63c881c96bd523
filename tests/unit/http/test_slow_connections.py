"""When there is no room for another connection, the slowest goes first, per network; those that authenticated stay."""

from dataclasses import dataclass, field, replace
from typing import Any, Final

import pytest

from waypost.api.access_log import network_of
from waypost.assembly.http.limits import DEFAULT_LIMITS, MANY_ARRIVING, SLOW_AFTER_S, Connections, HttpError

ROOM: Final = 6


@dataclass(eq=False)
class Connection:
    """A connection that notes whether it was ended."""

    connections: Connections
    address: str
    is_ended: bool = False

    def end_for_another(self) -> None:
        self.is_ended = True
        self.connections.remove(self)

    def check_deadlines(self, now_s: float) -> None: ...

    def announce_end(self) -> None: ...


@dataclass
class Listener:
    """The connections of one server, at a time that a test sets."""

    now_s: float = 0
    per_address: int = 0
    room: int = ROOM
    errors: list[HttpError] = field(default_factory=list[HttpError])

    def __post_init__(self) -> None:
        limits = replace(DEFAULT_LIMITS, max_connections=self.room, max_connections_per_address=self.per_address)
        self.connections = Connections(limits, now_s=lambda: self.now_s)

    def connect(self, address: str) -> Connection:
        connection = Connection(self.connections, address)
        error = self.connections.admit(connection, address, -1)
        if error is not None:
            self.errors.append(error)
        return connection

    def serve(self, connection: Connection, *, authenticated: bool = False, idle: bool = True) -> None:
        """Let a request arrive, and be responded to."""
        self.connections.mark_active(connection)
        self.connections.mark_arriving(connection, False)
        if authenticated:
            self.connections.mark_authenticated(connection)
        if idle:
            self.connections.mark_idle(connection)


@pytest.fixture
def listener() -> Listener:
    return Listener()


def ended(connections: list[Connection]) -> list[int]:
    return [nth for nth, each in enumerate(connections) if each.is_ended]


def test_slowest_of_the_network_with_most_of_them_goes_first(listener: Listener) -> None:
    others = [listener.connect("198.51.100.4"), listener.connect("2001:db8:1::1")]
    slow = [listener.connect(f"203.0.113.{nth + 1}") for nth in range(4)]
    listener.now_s = SLOW_AFTER_S

    new = [listener.connect("192.0.2.1") for _ in range(2)]

    assert ended(slow) == [0, 1]
    assert ended([*others, *new]) == []
    assert not listener.errors


def test_requests_that_have_just_begun_are_not_slow(listener: Listener) -> None:
    connections = [listener.connect("203.0.113.1") for _ in range(ROOM)]
    listener.now_s = SLOW_AFTER_S / 2

    listener.connect("192.0.2.1")

    assert ended(connections) == []
    assert [error.status for error in listener.errors] == [503]


def test_network_that_fills_the_room_at_once_makes_room_for_others_but_not_for_itself() -> None:
    listener = Listener(room=MANY_ARRIVING + 1)
    partner = listener.connect("192.0.2.1")
    listener.serve(partner, authenticated=True)
    flood = [listener.connect(f"203.0.113.{nth}") for nth in range(MANY_ARRIVING)]

    new = [listener.connect("198.51.100.4"), listener.connect("203.0.113.200")]

    assert ended(flood) == [0]
    assert ended([*new, partner]) == []
    assert [error.status for error in listener.errors] == [503]


def test_slow_connections_go_before_idle_ones_and_those_that_authenticated_keep_half(listener: Listener) -> None:
    authenticated = [listener.connect("203.0.113.1") for _ in range(4)]
    idle, slow = [listener.connect("203.0.113.1") for _ in range(2)]
    for each in authenticated:
        listener.serve(each, authenticated=True)
    listener.serve(idle)
    listener.now_s = SLOW_AFTER_S
    order: list[int] = []

    for _ in range(4):
        before = ended([*authenticated, idle, slow])
        listener.serve(listener.connect("192.0.2.1"), idle=False)
        order += [nth for nth in ended([*authenticated, idle, slow]) if nth not in before]

    assert order == [5, 4, 0]
    assert [error.status for error in listener.errors] == [503]


def test_authenticated_connection_whose_next_request_is_slow_stays(listener: Listener) -> None:
    partner = listener.connect("203.0.113.1")
    listener.serve(partner, authenticated=True)
    listener.connections.mark_active(partner)
    listener.connections.mark_arriving(partner, True)
    slow = [listener.connect("203.0.113.1") for _ in range(ROOM - 1)]
    listener.now_s = 10 * SLOW_AFTER_S

    for _ in range(ROOM - 1):
        listener.connect("203.0.113.1")

    assert ended([partner, *slow]) == [1, 2, 3, 4, 5]


def test_same_order_holds_among_the_connections_of_one_address() -> None:
    listener = Listener(per_address=2)
    slow, served = listener.connect("203.0.113.1"), listener.connect("203.0.113.1")
    elsewhere = listener.connect("203.0.113.2")
    listener.serve(served, idle=False)
    listener.now_s = SLOW_AFTER_S

    listener.connect("203.0.113.1")

    assert ended([slow, served, elsewhere]) == [0]
    assert not listener.errors


def test_nothing_is_left_of_connections_that_have_ended(listener: Listener) -> None:
    for nth in range(20):
        connection = listener.connect(f"203.0.{nth}.1")
        listener.serve(connection, authenticated=nth % 2 == 0)
        listener.connections.remove(connection)

    kept: dict[str, Any] = vars(listener.connections)
    assert not [name for name, value in kept.items() if value and isinstance(value, (dict, set)) and name[0] == "_"]


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("203.0.113.77", "203.0.113.0/24"),
        ("::ffff:203.0.113.77", "203.0.113.0/24"),
        ("2001:db8:1:2:3::4", "2001:db8:1::/48"),
        ("unix", "unix"),
    ],
)
def test_network_of_a_site_has_24_bits_or_48(address: str, network: str) -> None:
    assert network_of(address) == network
