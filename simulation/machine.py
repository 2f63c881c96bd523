"""What replaces the machine: threads, listening sockets and the steady clock. Everything else runs as it is.

simloom replaces the event loop, the network, and the functions of `time` and `random`.
"""

import asyncio
import contextvars
import socket
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import anyio.to_thread
from greenlet import getcurrent
from simloom._loop import SimLoop
from simloom._net import SimNetwork, SimTransport

from simulation.greenlets import Condition, in_greenlet, start
from simulation.loop import CallbackSequence
from waypost.base.clock import SystemClock
from waypost.base.threads import ThreadPool


def simulated_clock() -> SystemClock:
    """Return the machine's clock on virtual time."""
    return SystemClock(machine_ns=lambda: time.time_ns(), steady_ns=lambda: time.monotonic_ns())


class _Listener:
    """A listening socket of the simulated network."""

    family = socket.AF_INET

    def __init__(self, port: int) -> None:
        self._address = ("127.0.0.1", port)

    def getsockname(self) -> tuple[str, int]:
        return self._address

    def close(self) -> None:
        """Do nothing: the server closes the listener."""


def listen_at(port: int) -> Any:
    """Return a listening socket of the simulated network, for a server."""
    return _Listener(port)


@dataclass(frozen=True, eq=False)
class _Call:
    """A call of a pool, in the context of its caller: that of a killed process never runs."""

    context: contextvars.Context
    work: Callable[..., Any]
    args: tuple[Any, ...]


class _Calls:
    """The calls of one pool: each begins at a step that the scheduler chooses, and may wait as a thread does.

    Args:
        count: how many may have begun and not ended.
    """

    def __init__(self, count: int) -> None:
        self._count = count
        self._waiting: deque[_Call] = deque()
        self._callbacks = CallbackSequence()
        self._running = self._scheduled = 0
        self._ended = Condition()

    def add(self, work: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self._waiting.append(_Call(contextvars.copy_context(), work, args))
        self._begin()

    def run_all(self) -> None:
        while self._waiting and not in_greenlet():
            call = self._waiting.popleft()
            call.context.run(call.work, *call.args)
        while in_greenlet() and (self._running or self._waiting):
            self._ended.wait()

    def _begin(self) -> None:
        if len(self._waiting) > self._scheduled and self._running < self._count:
            call = self._waiting[self._scheduled]
            self._running += 1
            self._scheduled += 1
            loop: Any = asyncio.get_running_loop()
            begin = partial(loop.call_later, loop.thread_delay_s) if loop.thread_delay_s else loop.call_soon
            begin(start, self._run_one, call, context=call.context)

    def _run_one(self, call: "_Call") -> None:
        greenlet: Any = getcurrent()
        greenlet.callbacks = self._callbacks if self._count == 1 else CallbackSequence()
        self._scheduled -= 1
        try:
            if call in self._waiting:  # otherwise a shutdown has run it
                self._waiting.remove(call)
                call.work(*call.args)
        finally:
            self._running -= 1
            self._begin()
            self._ended.wake()


def replace_machine(transports: list[Any]) -> None:
    """Replace threads by steps of the loop, and let servers listen in the simulated network; once in a process.

    Args:
        transports: every connection's end is added when it is made.
    """

    def submit(pool: Any, work: Callable[..., Any], /, *args: Any) -> None:
        if pool._is_closed:
            raise RuntimeError("no calls are taken after the end")
        calls_of(pool).add(work, args)

    def shutdown(pool: Any) -> None:
        pool._is_closed = True
        calls_of(pool).run_all()

    def calls_of(pool: Any) -> _Calls:
        if not isinstance(pool._calls, _Calls):
            pool._calls = _Calls(pool._count)
        return pool._calls

    pool_class: Any = ThreadPool
    network_class: Any = SimNetwork
    transport_class: Any = SimTransport
    loop_class: Any = SimLoop
    pool_class.submit, pool_class.shutdown = submit, shutdown

    listen, connect = SimNetwork.create_server, SimTransport.__init__

    async def create_server(network: Any, factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        listener = options.pop("sock", None)
        if listener is not None:
            host, port = listener.getsockname()
        return await listen(network, factory, host, port, **options)

    def add_transport(transport: Any, *args: Any, **options: Any) -> None:
        connect(transport, *args, **options)
        transports.append(transport)

    reach = SimNetwork._reach_listener

    async def reach_listener(network: Any, ip: str, port: int, owner: Any) -> Any:
        server: Any = await reach(network, ip, port, owner)
        if getattr(owner, "on_wait", None) is not None:
            owner.on_wait()
            await asyncio.sleep(0)  # if it stands still from now on, its next step comes later
        while network._loop.is_suspended(server.owner):  # its machine has accepted the connection, and it has not yet
            await network._loop.wait_until_resumed(server.owner)
            server = await reach(network, ip, port, owner)
        return server

    network_class.create_server, transport_class.__init__ = create_server, add_transport
    network_class._reach_listener = reach_listener

    def run_in_executor(loop: Any, _executor: Any, work: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        future = loop.create_future()

        def run() -> None:
            if future.cancelled():
                return
            try:
                result, error = work(*args), None
            except Exception as raised:  # noqa: BLE001  passed to the caller
                result, error = None, raised
            if future.cancelled():
                return
            if error is None:
                future.set_result(result)
            else:
                future.set_exception(error)

        loop.call_soon(start, run)
        return future

    async def run_sync(work: Callable[..., Any], *args: Any, **_options: Any) -> Any:
        return await run_in_executor(asyncio.get_running_loop(), None, work, *args)

    loop_class.run_in_executor = run_in_executor
    anyio.to_thread.run_sync = run_sync  # of files that Starlette sends
    loop_class.remove_reader = lambda _loop, _listener: False  # a server that stops reads no more connections
