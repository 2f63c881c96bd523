"""One process of the service in the simulated network: started, stopped as by a signal, and killed at any step.

Each life is a host of simloom: after a kill none of its tasks, callbacks and timers runs again, not even `finally`.
"""

import asyncio
import contextlib
import contextvars
import os
import sqlite3
from collections.abc import Awaitable, Callable, Coroutine
from enum import StrEnum
from typing import Any, Final, Protocol, TypeVar

from simloom._context import current_host
from sqlalchemy import event
from sqlalchemy.pool import Pool

from simulation.choices import Choices, declare
from simulation.machine import listen_at
from simulation.observed import Observed
from simulation.story import tell
from waypost.assembly.http.servers import HttpServer
from waypost.assembly.service import Waypost
from waypost.store.contract import StoreDamaged, StoreUnavailable
from waypost.store.engines import sqlite

Result = TypeVar("Result")

REQUESTS_END_WITHIN_S: Final = 5
STARTED_AGAIN_AFTER_S: Final = 1
PAUSES_S: Final = (0, 0, 0.05, 0.3, 1, 20)
"""Before a killed process is started again."""
MAX_STEPS: Final = 6000
"""Between two kills: about as many as all messages take under faults."""
MAX_OPERATIONS: Final = 400
MAX_ANSWERS: Final = 40
STARTING_STEPS: Final = 150
SHARE: Final = 0.25
"""Of the kills of each kind, for each of the kills that there may be."""


class Death(StrEnum):
    """How a process ends that is not stopped."""

    KILLED = "was killed"  # the operating system writes what it had written, and ends its connections
    LOST_POWER = "lost power"  # what was not flushed is lost, and peers learn of it at the next start


class ProcessDied(Exception):
    """The process was killed before it had a result."""


class Storage(Protocol):
    """What a process has its store on."""

    def turn_off(self) -> None:
        """Let every operation of the dead process fail without any effect."""

    def turn_on(self, *, lost_power: bool) -> None:
        """Bring the storage into the state in which the next life finds it; no connection is open."""


class Connections(Protocol):
    """The connections of a process to a database that others share."""

    async def stand_still(self, host: Any, for_s: float) -> None:
        """Return after so many seconds, in which this host sends nothing; the server may end its transactions."""

    def leave(self, host: Any, *, lost_power: bool) -> None:
        """Let the server go on without this host, which was killed."""


class Process:
    """A process of the service, with its server.

    Args:
        name: of its hosts; unique in the network.
        port: on which it serves.
        make: returns the service of one life.
        storage: what its store is on; None: it loses nothing.
        connections: to its database, if it is a server.
        serve: returns the application that its server has, from its own.

    Attributes:
        name: of its hosts.
        lives: how often it was started.
        lifecycle: whoever starts or stops it holds this lock.
        waypost: the service of the current life, or of the last.
        is_running: True from the begin of a start until the end.
        on_wait: called when it waits for somebody: it opens a connection, or has sent statements.
        on_end: run outside of it when it has ended by itself.
    """

    def __init__(
        self,
        name: str,
        port: int,
        make: Callable[[], Waypost],
        *,
        storage: Storage | None = None,
        connections: Connections | None = None,
        serve: Callable[[Any], Any] = lambda application: application,
    ) -> None:
        self.name = name
        self._port = port
        self._make = make
        self._storage = storage
        self._connections = connections
        self._serve = serve
        self._host: Any = None
        self._silent: list[Any] = []  # transports whose peer has lost power
        self._waiting: dict[int, asyncio.Future[Any]] = {}  # callers outside of the process
        self._stop: asyncio.Event | None = None
        self._settled = asyncio.Event()
        self._settled.set()
        self.lifecycle = asyncio.Lock()
        self.waypost: Any = None
        self.lives = 0
        self.is_running = False
        self.on_wait: Callable[[], None] | None = None
        self.on_end: Callable[[Process], Coroutine[Any, Any, None]] | None = None

    def _call_on_wait(self) -> None:
        if self.on_wait is not None:
            self.on_wait()

    async def start(self, prepare: Callable[[Waypost], Awaitable[None]] | None = None) -> None:
        """Return once it serves requests.

        Args:
            prepare: called with the open store, before requests are served.

        Raises:
            ProcessDied: it was killed before that.
            Exception: it could not start; it has ended.
        """
        await self._settled.wait()
        for transport in self._silent:
            transport._reset_by_peer()
        self._silent.clear()
        self._host = _loop().machines.host(f"{self.name}/{self.lives}")
        self._host.connections_of = self._connections
        self._host.on_wait = self._call_on_wait
        self._host.end = self._end
        self.is_running, self._stop = True, (stop := asyncio.Event())
        serving, self._ended = self._future(), self._future()
        self._host.spawn(lambda: self._live(stop, serving, prepare))
        self.lives += 1
        await serving

    async def supervise_start(self) -> None:
        """Start it, again after a second while its store is away.

        Raises:
            ProcessDied: it was killed before it served.
            StoreDamaged: no start will succeed.
        """
        while True:
            try:
                await self.start()
            except StoreDamaged:
                raise
            except StoreUnavailable:
                await asyncio.sleep(STARTED_AGAIN_AFTER_S)
            else:
                return

    async def stop(self) -> None:
        """Stop it as a signal does; return when it has ended. Raises ProcessDied: it was killed before."""
        if not self.is_running or self._stop is None:
            raise ProcessDied
        self._stop.set()
        await self._ended

    async def run(self, work: Callable[[], Coroutine[Any, Any, Result]]) -> Result:
        """Run a coroutine in the process, for a caller outside of it.

        Raises:
            ProcessDied: the process was killed before the coroutine ended.
        """
        if not self.is_running:
            raise ProcessDied
        result = self._future()

        async def in_process() -> None:
            try:
                _resolve(result, await work(), None)
            except Exception as error:  # noqa: BLE001  raised to the caller
                _resolve(result, None, error)

        self._host.spawn(in_process())
        return await result

    async def stand_still(self, for_s: float) -> None:
        """Let it take no step for so many seconds, unless it is killed meanwhile; its connections stay open."""
        host = self._host
        if not _loop().is_suspended(host):  # already, if it waits for somebody
            _loop().suspend(host)
        try:
            if self._connections is not None:
                await self._connections.stand_still(host, for_s)
            else:
                await asyncio.sleep(for_s)
        finally:
            _loop().resume(host)

    def suspend(self) -> None:
        """Let it take no further step; `stand_still` says for how long."""
        _loop().suspend(self._host)

    def kill(self, death: Death, *, sent_arrives: bool = True) -> None:
        """End it between two steps, or within an operation of its storage. Do nothing if it is not running.

        Args:
            sent_arrives: if it is killed, whether its peers get what it had sent, or only a reset.
        """
        if not self.is_running:
            return
        self.is_running = False
        _loop().resume(self._host)
        self._end_connections(death, sent_arrives=sent_arrives)
        self._host.crash()
        if self._storage is not None:
            self._storage.turn_off()
        if self._connections is not None:
            self._connections.leave(self._host, lost_power=death is Death.LOST_POWER)
        self._settled.clear()
        # Not now: the store may be in the call of the storage that this kill interrupts
        asyncio.get_running_loop().call_soon(self._settle, self._host, death, context=contextvars.Context())
        for waiting in list(self._waiting.values()):
            _resolve(waiting, None, ProcessDied())

    def _end(self) -> None:
        """End it as `os._exit` does."""
        tell(f"{self.name} ended its process")
        self.kill(Death.KILLED)
        if self.on_end is not None:
            outside = contextvars.Context()
            self._ending = outside.run(asyncio.get_running_loop().create_task, self.on_end(self), context=outside)

    def _release(self, host: Any) -> None:
        """Close what the operating system closes when a process ends."""
        close_connections(host)
        if self._connections is not None:
            self._connections.leave(host, lost_power=False)
        engine: Any = self.waypost.database._engine if self.waypost is not None else None
        if getattr(engine, "_lock", None) is not None:
            os.close(engine._lock)
            engine._lock = None

    def _settle(self, host: Any, death: Death) -> None:
        if self._connections is None:
            self._release(host)
        if self._storage is not None:
            self._storage.turn_on(lost_power=death is Death.LOST_POWER)
        self._settled.set()

    def _end_connections(self, death: Death, *, sent_arrives: bool) -> None:
        for transport in list(_loop().machines.net._live_transports.values()):
            if transport.owner is not self._host:
                continue
            if death is Death.LOST_POWER:
                self._silent.append(transport._peer)
            elif sent_arrives and not transport._closing:
                transport.write_eof()  # the bytes in flight arrive
            else:
                continue  # they do not: the crash resets the peer
            transport._closing = transport._closed = True
            _loop().machines.net._forget(transport)

    async def _live(
        self, stop: asyncio.Event, serving: asyncio.Future[None], prepare: Callable[[Waypost], Awaitable[None]] | None
    ) -> None:
        try:
            self.waypost = waypost = self._make()
            await waypost.open()
            try:
                if prepare is not None:
                    await prepare(waypost)
                waypost.start()
                server = HttpServer(
                    self._serve(waypost.application), listen_at(self._port), stop_within_s=REQUESTS_END_WITHIN_S
                )
                await server.start()
                _resolve(serving, None, None)
                await stop.wait()
                waypost.observability.mark_stopping()
                waypost.console.end_streams()
                await server.stop()
                await waypost.drain()
            finally:
                await waypost.close()
        except Exception as error:  # noqa: BLE001  raised to the caller
            if self._host.crashed:
                return
            self._end_connections(Death.KILLED, sent_arrives=True)
            self._host.crash()
            self._release(self._host)
            self.is_running = False
            _resolve(serving, None, error)
            _resolve(self._ended, None, error)
        else:
            self._release(self._host)
            self.is_running = False
            _resolve(self._ended, None, None)

    def _future(self) -> asyncio.Future[Any]:
        future = asyncio.get_running_loop().create_future()
        self._waiting[id(future)] = future
        future.add_done_callback(lambda done: self._waiting.pop(id(done)), context=contextvars.Context())
        return future


def _resolve(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
        future.exception()  # its caller may have gone


class Killer:
    """Kills a process at steps and storage operations that the seed chooses, and starts it again.

    Args:
        storage: calls its `on_operation`: the disk, or the connections to a database.
        settles_s: how long after a kill others may wait for what the process had leased.
    """

    def __init__(self, process: Process, choices: Choices, observed: Observed, storage: Any, settles_s: float) -> None:
        self._process, self._settles_s = process, settles_s
        self._choices = choices
        self._observed = observed
        self._storage = storage
        self._killed = asyncio.Event()
        self._alarm = 0
        name = process.name
        self._between = {death: f"{name}: {death} between steps" for death in Death}
        self._within = {death: f"{name}: {death} within a write" for death in Death}
        self._after_answer = {death: f"{name}: {death} after it answered" for death in Death}
        self._while_starting = f"{name}: {Death.KILLED} while it started"
        declare({self._while_starting: f"the process {name} {Death.KILLED} while it started"})
        declare({kind: f"the process {name} {death} between two steps" for death, kind in self._between.items()})
        declare({kind: f"the process {name} {death} while it wrote" for death, kind in self._within.items()})
        words = "just after it had answered the operator"
        declare({kind: f"the process {name} {death} {words}" for death, kind in self._after_answer.items()})

    async def run(self, most: int, until_s: float) -> None:
        """Kill the process at most this often, and start it again; return at the latest at this time of the loop."""
        for _ in range(most):
            pause_s = self._arm()
            if pause_s is None:
                continue
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(until_s):
                    await self._killed.wait()
            self._disarm()
            if not self._killed.is_set():
                break
            with self._observed.interruption():
                await asyncio.gather(self._start_again(pause_s), asyncio.sleep(self._settles_s))

    async def _start_again(self, pause_s: float) -> None:
        """Start the process after a pause; it may be killed once more while it starts."""
        if self._choices.happens(self._while_starting, SHARE):
            self._count_down(self._choices.between("after", 1, STARTING_STEPS, of=self._while_starting), Death.KILLED)
        await asyncio.sleep(pause_s)
        async with self._process.lifecycle:
            while not self._process.is_running:
                try:
                    await self._process.supervise_start()
                except ProcessDied:  # the disk may fail a flush of each start
                    await asyncio.sleep(STARTED_AGAIN_AFTER_S)
        self._disarm()

    def _arm(self) -> float | None:
        """Choose the next kill; return how long the process will be away, None if it is not killed this time."""
        self._killed.clear()
        kinds = [*self._between.items(), *self._within.items(), *self._after_answer.items()]
        chosen = [(death, kind) for death, kind in kinds if self._choices.happens(kind, SHARE)]
        if not chosen:
            return None
        death, kind = chosen[0]
        after = self._choices.between("after", 0, 1, of=kind)
        is_early = self._choices.pick("is early", (False, True), of=kind)  # as starts are short
        sent_arrives = self._choices.pick("what was sent arrives", (True, False), of=kind)
        pause_s = self._choices.pick("seconds away", PAUSES_S, of=kind)
        if kind in self._after_answer.values():
            self._count_answers(int(MAX_ANSWERS**after), death, sent_arrives=sent_arrives)
            return pause_s
        most = MAX_STEPS if kind in self._between.values() else MAX_OPERATIONS
        steps = most**after if is_early else most * after
        is_within = kind in self._within.values()
        self._count_down(steps, death, sent_arrives=sent_arrives, is_within=is_within)
        return pause_s

    def _count_down(self, left: float, death: Death, *, sent_arrives: bool = True, is_within: bool = False) -> None:
        """Kill the process after so many steps of the loop, or operations of its storage."""

        def strike() -> None:
            if self._process.is_running:
                self._disarm()
                self._process.kill(death, sent_arrives=sent_arrives)
                self._killed.set()
            elif not is_within:
                self._alarm = _loop().after_steps(1, strike)

        def count(*_: Any) -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                strike()

        if is_within:
            self._storage.on_operation = count
        else:
            self._alarm = _loop().after_steps(left, strike)

    def _count_answers(self, left: int, death: Death, *, sent_arrives: bool) -> None:
        """Kill the process at the step in which the operator gets so many answers: what is not stored then is lost.

        Of several processes, the one that is killed may not be the one that has answered.
        """

        def count() -> None:
            nonlocal left
            left -= 1
            if left <= 0:
                self._observed.on_answer.pop(self._process.name, None)
                self._count_down(1, death, sent_arrives=sent_arrives)

        self._observed.on_answer[self._process.name] = count

    def _disarm(self) -> None:
        _loop().cancel_alarm(self._alarm)
        self._storage.on_operation = None
        self._observed.on_answer.pop(self._process.name, None)


def close_connections(host: Any) -> None:
    """Close every connection to a file that this host has opened, without a commit."""
    for connection in host.__dict__.pop("connections", ()):
        connection.close()


def _add_connection(connection: Any, _record: Any) -> None:
    if (host := current_host.get()) is not None and isinstance(connection, sqlite3.Connection):
        host.__dict__.setdefault("connections", []).append(connection)


def watch_connections() -> None:
    """Know the connections to stores that each host opens; called once in a process."""
    event.listen(Pool, "connect", _add_connection)


def end_hosts() -> None:
    """Let what ends a process of the service end its host; called once in a process."""
    sqlite.end_process = lambda _reason: current_host.get().end()


def _loop() -> Any:
    return asyncio.get_running_loop()
