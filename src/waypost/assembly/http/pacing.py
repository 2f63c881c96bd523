"""The share of the loop's time for requests without a credential and for those that end in an error.

All listeners use it. Nobody has to pay for what a service does for anybody, or for what it rejects: so a few
connections could take all of the loop's time from those whose requests it carries out. Such a request is measured, and
its response is sent when its network has paid for it, at a fixed share of the time that passes. Others of that network
whose requests are carried out wait for nothing. Source: decision 0069.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator, MutableMapping
from typing import Any, Final, Protocol

NETWORK_SHARE: Final = 0.1
"""Of the loop's time, for one network."""
TOTAL_SHARE: Final = 0.4
"""For all networks together."""
FREE_S: Final = 0.2
"""So late may a payment be: 20 ms of work at once, more than a page with its assets needs."""
MAX_DELAY_S: Final = 5.0
"""Of one response; what is spent beyond that is not remembered."""
MAX_NETWORKS: Final = 10_000
"""Networks that are remembered; beyond, the one that spent something longest ago is dropped."""

CONNECTION_COST_S: Final = 0.0001
REQUEST_COST_S: Final = 0.0001
"""What the system and the loop spend on a connection, and on a request, beside what is measured."""
READ_COST_S: Final = 5e-10
"""The same for each byte of a request."""

_TOTAL: Final = ""


class Pacing:
    """The time that networks have spent on requests that nobody pays for."""

    def __init__(self, now_s: Callable[[], float] = time.monotonic) -> None:
        self._now_s = now_s
        self._paid_at_s: dict[str, float] = {}  # by network, the one that spent something longest ago first

    def charge(self, network: str, spent_s: float) -> float:
        """Charge a network for processor time; return how long the response to its request has to wait, in s."""
        now_s = self._now_s()
        delay_s = 0.0
        for payer, share in ((network, NETWORK_SHARE), (_TOTAL, TOTAL_SHARE)):
            paid_at_s = max(self._paid_at_s.pop(payer, now_s), now_s) + spent_s / share
            self._paid_at_s[payer] = min(paid_at_s, now_s + MAX_DELAY_S + FREE_S)
            delay_s = max(delay_s, self._paid_at_s[payer] - now_s - FREE_S)
        if len(self._paid_at_s) > MAX_NETWORKS:
            del self._paid_at_s[next(iter(self._paid_at_s))]
        return delay_s


class Turns:
    """Lets one request begin in a turn of the loop, of each network in turn.

    So hundreds that arrive together delay nobody else by what they all take.
    """

    def __init__(self) -> None:
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}  # by network; the first one has the next turn
        self._is_taken = False

    async def take(self, network: str) -> None:
        """Return when a request of a network may begin: at once, if none has begun in this turn of the loop."""
        loop = asyncio.get_running_loop()
        if not self._is_taken:
            self._is_taken = True
            loop.call_soon(self._pass_on, loop)
            return
        turn = loop.create_future()
        self._waiting.setdefault(network, deque()).append(turn)
        await turn

    def _pass_on(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting:
            network = next(iter(self._waiting))
            turns = self._waiting.pop(network)
            turn = turns.popleft()
            if turns:
                self._waiting[network] = turns  # now the last
            if not turn.done():
                turn.set_result(None)
                loop.call_soon(self._pass_on, loop)
                return
        self._is_taken = False


class MeasuredSteps:
    """An awaitable that adds the processor time of each step of another one to a sum.

    Args:
        work: what is awaited.
        add: called with the seconds of each step; those for which the machine did something else are not among them.
    """

    def __init__(self, work: Awaitable[None], add: Callable[[float], None]) -> None:
        self._work = work
        self._add = add

    def __await__(self) -> Generator[Any, Any, None]:
        """Return the steps."""
        steps: Any = self._work.__await__()
        step, argument = steps.send, None
        while True:
            began_s = time.thread_time()
            try:
                waits_for = step(argument)
            except StopIteration:
                return
            finally:
                self._add(time.thread_time() - began_s)
            try:
                argument = yield waits_for
                step = steps.send
            except BaseException as error:  # noqa: BLE001  passed on to where it belongs
                step, argument = steps.throw, error


class PacedClients(Protocol):
    """The clients of a listener, who share what it does for nobody."""

    turns: Turns
    paced_responses: int

    def charge(self, scope: MutableMapping[str, Any], spent_s: float) -> float:
        """Charge a client for processor time; return how long the response to its request has to wait, in s."""
        ...

    def network_of_client(self, scope: MutableMapping[str, Any]) -> str:
        """Return the network of a request's client."""
        ...


class PacedConnection(Protocol):
    """A connection, as its unpaid requests use it."""

    app: Any  # the application that it passes its next request to
    is_carried_out: bool  # the open request has a valid credential, and has not been rejected
    cycle: Any  # the newest request; None once the connection is closed
    transport: Any
    flow: Any
    client: Any


class UnpaidRequests:
    """The application of a connection until one of its requests is carried out, and again after one that is not.

    It runs the real one, and measures what that takes, for which nobody may pay; if nobody does, the response waits.

    Args:
        clients: of its listener.
        application: the real application.
    """

    def __init__(self, connection: PacedConnection, clients: PacedClients, application: Any) -> None:
        self._connection = connection
        self._clients = clients
        self._application = application
        self._unpaid_s = CONNECTION_COST_S
        self._held: asyncio.Future[None] | None = None  # the response that waits until it is paid

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to a request.

        A response waits when it is complete, so that nothing of its request waits with it; one that is sent in parts
        waits with its first part.
        """
        connection, clients = self._connection, self._clients
        held: list[MutableMapping[str, Any]] = []
        is_passed = is_free = False

        async def send_when_paid(message: MutableMapping[str, Any]) -> None:
            nonlocal is_passed, is_free
            if message["type"] == "http.response.start":
                is_passed = is_free = connection.is_carried_out
            if is_passed:
                await send(message)
                return
            held.append(message)
            if message.get("more_body", False):
                is_passed = True
                await self._await_payment(scope)
                for each in held:
                    await send(each)
                held.clear()

        cycle = connection.cycle
        if cycle is not None and not (cycle.more_body or cycle.body):  # the limit of all bodies is the application's
            await clients.turns.take(clients.network_of_client(scope))
        if connection.transport.is_closing():
            return
        self._unpaid_s += REQUEST_COST_S
        await MeasuredSteps(self._application(scope, receive, send_when_paid), self._add)
        if is_free:
            self._unpaid_s, connection.app = 0.0, self._application
            return
        if held:
            cycle = connection.cycle
            if cycle is not None and cycle.scope is scope and cycle.more_body:  # nobody reads the rest
                cycle.body = bytearray()
                connection.flow.pause_reading()
            await self._await_payment(scope)
        for each in held:
            await send(each)

    def measure_parsing(self, parse: Callable[[bytes, int], None], data: bytes) -> None:
        """Parse data of which nobody knows yet whether somebody pays for it."""
        began_s = time.thread_time()
        parse(data, 0)
        self._unpaid_s += time.thread_time() - began_s + len(data) * READ_COST_S

    def charge(self, scope: Any) -> float:
        """Charge the client for what is not paid yet; return how long its response has to wait."""
        unpaid_s, self._unpaid_s = self._unpaid_s, 0.0
        return self._clients.charge(scope or {"client": self._connection.client, "headers": ()}, unpaid_s)

    def release(self) -> None:
        """Let the response that waits be sent."""
        if self._held is not None and not self._held.done():
            self._held.set_result(None)

    def end(self, scope: Any, *, is_paid: bool) -> None:
        """Charge the client of a connection that is closed, unless somebody pays."""
        self.release()
        if self._unpaid_s and not is_paid:
            self.charge(scope)

    def _add(self, spent_s: float) -> None:
        self._unpaid_s += spent_s

    async def _await_payment(self, scope: Any) -> None:
        delay_s = self.charge(scope)
        if delay_s <= 0 or self._connection.transport.is_closing():
            return
        self._clients.paced_responses += 1
        loop = asyncio.get_running_loop()
        self._held = loop.create_future()
        timer = loop.call_later(delay_s, self.release)
        try:
            await self._held
        finally:
            timer.cancel()
            self._held = None
