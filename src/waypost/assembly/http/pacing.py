"""The share of the loop's time for requests without a credential and for those that end in an error.

All listeners use it. Nobody has to pay for what a service does for anybody, or for what it rejects: so a few
connections could take all of the loop's time from those whose requests it carries out. Such a request is measured, and
its response is sent when its network has paid for it, at a fixed share of the time that passes. Others of that network
whose requests are carried out wait for nothing. Source: decision 0069.
"""

import asyncio
import time
from collections import deque
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Final

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
