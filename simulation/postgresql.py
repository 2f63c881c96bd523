"""A real PostgreSQL server under the simulation: its statements run one at a time, in the order that the seed chooses.

Before each statement, commit and rollback the greenlet that sends it lets the loop take other steps, so transactions of
several connections and processes interleave. Only one backend runs at any moment: one that waits for a lock is stopped
(SIGSTOP) until the lock is granted and the scheduler chooses its next step. So what a statement finds follows from
the seed. The server's clock is virtual: `clock_timestamp()` reads a file. Notifications arrive when the seed says so.

The server runs in a temporary folder, without flushes; each run has a database of its own.
"""

import asyncio
import contextlib
import contextvars
import os
import select
import signal
import socket
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from queue import Empty
from types import SimpleNamespace
from typing import Any, Final, cast

import psycopg
from psycopg import Notify
from psycopg.pq import TransactionStatus
from psycopg.rows import namedtuple_row
from simloom._context import current_host

from simulation.choices import Choices, declare
from simulation.environment import ROOT
from simulation.greenlets import Condition, GreenEvent, GreenQueue, GreenThread, abandon, in_greenlet, pause
from tests.support import postgres
from waypost.store.engines import postgresql, postgresql_session
from waypost.store.engines.postgresql import PostgresEngine
from waypost.store.engines.postgresql_session import COMMIT, Execution, PostgresSession

LOCK_TIMEOUT_S: Final = 8
IDLE_TIMEOUT_S: Final = 10
"""Those of the product's sessions, in virtual time."""
TEMPLATE: Final = "waypost_simulation"
_LOOK_AFTER_MS: Final = 3
"""After this real time without a response, it is asked whether the statement waits for a lock."""
_HANGS_AFTER_S: Final = 60
_SETTINGS: Final = {
    **postgres.UNSAFE,
    "jit": "off",
    "search_path": "public, pg_catalog",  # so that our clock is found first
    "max_parallel_workers_per_gather": "0",
    "synchronize_seqscans": "off",
    "deadlock_timeout": "1s",  # real: longer than it takes to stop a backend that waits
}
_CLOCK: Final = """
    CREATE FUNCTION public.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
    $$ SELECT to_timestamp(pg_read_file('{}/' || current_database())::float8) $$
"""
_START: Final = b"1704067200.000000000"
_OUR_TIMEOUTS: Final = b"SET lock_timeout = 0; SET idle_in_transaction_session_timeout = 0"
_WAITING: Final = "SELECT DISTINCT pid FROM pg_locks WHERE NOT granted AND pid = ANY(%s)"
_IS_IN_CYCLE: Final = """
    WITH RECURSIVE blockers(pid) AS (
        SELECT unnest(pg_blocking_pids(%(pid)s)) UNION SELECT unnest(pg_blocking_pids(blockers.pid)) FROM blockers
    ) SELECT EXISTS (SELECT FROM blockers WHERE pid = %(pid)s)
"""
_IS_ACTIVE: Final = (
    "SELECT state = 'active' AND wait_event IS DISTINCT FROM 'ClientRead' FROM pg_stat_activity WHERE pid = %s"
)
_CONFLICT: Final = b"DO $$ BEGIN RAISE EXCEPTION 'a conflict of the simulation' USING ERRCODE = '%s'; END $$"

_CUT, _LOST, _AWAY = "database: cut", "database: response lost", "database: away"
_SLOW = "database: slow"
_DEADLOCK, _SERIALIZATION, _LATE = "database: deadlock", "database: serialization", "database: notified late"
SHARES: Final = {_SLOW: 0.004, _CUT: 0.004, _LOST: 0.004, _AWAY: 0.001, _DEADLOCK: 0.004, _SERIALIZATION: 0.002}
"""Of the statements that meet a fault."""
NOTIFIED_LATE: Final = 0.2
_LATE_S: Final = (0.001, 0.1, 2)
_AWAY_S: Final = (0.2, 3, 20)
_SLOW_S: Final = (0.5, 5, 12, 40)
declare(
    {
        _SLOW: "a connection to the database stood still before a statement",
        _CUT: "a connection to the database broke before a statement",
        _LOST: "a connection to the database broke after a statement, before its result",
        _AWAY: "the database was away",
        _DEADLOCK: "the database reported a deadlock",
        _SERIALIZATION: "the database reported a serialization failure",
        _LATE: "a notification of the database was late",
    }
)

_run: "DatabaseRun | None" = None


class SimulatedConnection(psycopg.Connection[Any]):
    """A connection of a process: each use is a step, and may meet a fault."""

    host: Any = None  # of the process that has it
    is_awaited = False  # whether its process was seen to wait for what it has sent
    is_notifying = False
    loses_response = False
    has_timed_out = False
    is_cut = False

    def wait(self, gen: Any, interval: float = 0, timeout: float | None = None) -> Any:
        """Run one of psycopg's generators, which sends statements and receives their results."""
        del interval, timeout
        if _run is None or _run.is_over:
            return super().wait(gen)
        _run.step(self)
        return _run.drive(self, gen)

    def execute(self, query: Any, params: Any = None, **options: Any) -> Any:
        """Note what listens, and what notifies."""
        text: str = query if isinstance(query, str) else ""
        self.is_notifying = "pg_notify" in text
        result = super().execute(cast("Any", query), params, **options)
        if _run is not None and text.startswith("LISTEN"):
            _run.listeners.append(self)
            self.inbox: list[Notify] = []
        elif _run is not None and self.is_notifying:
            _run.collect_notifications()
        return result

    def notifies(self, **_options: Any) -> Iterator[Notify]:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return what has arrived by now."""
        if _is_readable(self.pgconn.socket, 0):
            self.pgconn.consume_input()  # raises if the connection has ended
        arrived, self.inbox = self.inbox, []
        yield from arrived

    def close(self) -> None:
        """Close it, and wait for the end of its transaction."""
        super().close()
        if _run is not None:
            _run.forget(self)


class DatabaseRun:
    """The database of one run, with everything that is connected to it.

    Args:
        choices: of the seed.
        monitor: a connection to another database of the server.
        clock: a file that the server's clock reads.

    Attributes:
        failures: from when to when the server was away, or a connection stood still.
    """

    def __init__(self, url: str, choices: Choices, monitor: psycopg.Connection[Any], clock: int) -> None:
        self.url = url
        self.listeners: list[SimulatedConnection] = []
        self.waits: Counter[str] = Counter()
        self._has_faults = False
        self.is_over = False
        self.statements = 0
        self._choices = choices
        self._monitor = monitor
        self._clock = clock
        self._connections: dict[int, SimulatedConnection] = {}  # by their descriptors
        self._pids: dict[SimulatedConnection, int] = {}
        self._waiting: dict[SimulatedConnection, Condition] = {}  # for locks; their backends are stopped
        self._orphans: dict[int, asyncio.TimerHandle] = {}  # backends of killed processes that wait for locks
        self._away_until_s = self._heals_s = 0.0
        self.failures: list[tuple[float, float]] = []
        self._reader: psycopg.Connection[Any] | None = None
        self.arrived = Condition()

    def connect(self, **parameters: Any) -> SimulatedConnection:
        """Connect, unless the server is away."""
        pause()
        self._set_clock()
        if asyncio.get_running_loop().time() < self._away_until_s:
            raise psycopg.OperationalError("connection refused")
        limited: dict[str, Any] = parameters | {"connect_timeout": _HANGS_AFTER_S}
        connection = SimulatedConnection.connect(**limited)
        self._connections[connection.fileno()] = connection
        self._pids[connection] = connection.info.backend_pid
        connection.host = current_host.get()
        return connection

    async def read(self, query: str) -> list[Any]:
        """Return what is committed, on a connection that has no faults and is no part of the service."""
        if self._reader is None:
            self._reader = psycopg.Connection.connect(self.url, autocommit=True, row_factory=namedtuple_row)
            self._reader.execute("SET lock_timeout = '100ms'")
        while True:
            try:
                return self._reader.execute(query.encode()).fetchall()
            except psycopg.errors.LockNotAvailable:  # one that is stopped has it; nothing runs now
                await asyncio.sleep(0.1)

    def start_faults(self) -> None:
        """Let statements and notifications meet faults, until `stop_faults`."""
        self._has_faults = True

    async def stop_faults(self) -> None:
        """Let everything succeed from now on; return when those that stand still go on, and the server is there."""
        self._has_faults = False
        for connection in self._connections.values():
            connection.loses_response = False  # of a statement whose response has not been waited for since
        await asyncio.sleep(max(0, self._heals_s - asyncio.get_running_loop().time()))

    def split(self, executions: Sequence[Execution]) -> list[Sequence[Execution]]:
        """Divide statements that are sent together, so that others may take steps between them."""
        loop: Any = asyncio.get_running_loop()  # like the order of steps, it is no decision to be told
        at = loop.tape.draw("split", 2 * len(executions)) if len(executions) > 1 else 0
        if not 0 < at < len(executions):
            return [executions]
        return [executions[:at], executions[at:]]

    def connection_of(self, descriptor: int) -> SimulatedConnection | None:
        """Return the connection with a descriptor."""
        return self._connections.get(descriptor)

    def step(self, connection: SimulatedConnection, *, can_conflict: bool = False) -> None:
        """Let others take steps, then let a fault happen if the seed says so."""
        pause()
        self.statements += 1
        connection.is_awaited = False
        self._set_clock()
        if not self._has_faults or connection.closed:
            return
        happened = [
            name
            for name, share in SHARES.items()
            if (can_conflict or name not in (_DEADLOCK, _SERIALIZATION)) and self._choices.happens(name, share)
        ]
        if happened:
            self._fail(happened[0], connection)

    def _fail(self, name: str, connection: SimulatedConnection) -> None:
        if name == _SLOW:
            self._stand_still(connection, self._choices.pick("seconds", _SLOW_S, of=_SLOW))
        elif name == _CUT:
            self.cut(connection, by_server=self._choices.pick("by the server", (False, True), of=_CUT))
        elif name == _LOST:
            connection.loses_response = True
        elif name == _AWAY:
            self._away_until_s = self._note_failure(self._choices.pick("seconds", _AWAY_S, of=_AWAY))
            for other in list(self._pids):
                self.cut(other, by_server=True)
        else:
            error = psycopg.errors.DeadlockDetected if name == _DEADLOCK else psycopg.errors.SerializationFailure
            if connection.pgconn.transaction_status == TransactionStatus.INTRANS:
                connection.pgconn.exec_(_CONFLICT % str(error.sqlstate).encode())
            raise error("a conflict of the simulation")

    def _note_failure(self, for_s: float) -> float:
        """Note that something stands still or is away for some seconds; return until when."""
        now_s = asyncio.get_running_loop().time()
        self.failures.append((now_s, now_s + for_s))
        self._heals_s = max(self._heals_s, now_s + for_s)
        return now_s + for_s

    def _stand_still(self, connection: SimulatedConnection, for_s: float) -> None:
        self._note_failure(for_s)
        if connection.pgconn.transaction_status != TransactionStatus.IDLE and for_s > IDLE_TIMEOUT_S:
            self._sleep(IDLE_TIMEOUT_S)
            self.cut(connection, by_server=True)
            for_s -= IDLE_TIMEOUT_S
        self._sleep(for_s)
        self._set_clock()

    def _sleep(self, for_s: float) -> None:
        if in_greenlet():
            Condition().wait(for_s)

    def cut(self, connection: SimulatedConnection, *, by_server: bool) -> None:
        """End a connection, from outside: its transaction is rolled back, unless its commit is done."""
        if connection.is_cut or connection.closed:
            return
        connection.is_cut = True
        pid = self._pids[connection]
        if by_server:
            self._monitor.execute("SELECT pg_terminate_backend(%s)", (pid,))
        else:
            _shut_down(connection)
            self._monitor.execute("SELECT pg_cancel_backend(%s)", (pid,)) if connection in self._waiting else None
        self._wait_for_end(pid)
        if connection in self._waiting:
            self._waiting.pop(connection).wake()
        self.settle()
        self.arrived.wake()

    def forget(self, connection: SimulatedConnection) -> None:
        """Wait until a closed connection's transaction is rolled back."""
        pid = self._remove(connection)
        if pid is not None:
            self._wait_for_end(pid)
            if connection in self._waiting:
                self._waiting.pop(connection).wake()
            self.settle()

    def _remove(self, connection: SimulatedConnection) -> int | None:
        for descriptor in [key for key, other in self._connections.items() if other is connection]:
            del self._connections[descriptor]
        if connection in self.listeners:
            self.listeners.remove(connection)
        return self._pids.pop(connection, None)

    def end_idle_transactions(self, host: Any) -> None:
        """Do what the server does to the transactions of a process that has sent nothing for a while."""
        for connection in [each for each in self._pids if each.host is host]:
            if connection.pgconn.transaction_status != TransactionStatus.IDLE:
                self.cut(connection, by_server=True)

    def leave(self, host: Any, *, lost_power: bool) -> None:
        """Go on without a process that was killed.

        The server notices at once that a connection has ended, unless it waits for a lock: then it goes on when it has
        it, and commits if it had got a commit. If the power was lost, no connection has ended: a transaction keeps its
        locks until it has been idle for too long.
        """
        loop = asyncio.get_running_loop()
        for connection in [each for each in self._pids if each.host is host]:
            is_idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
            if connection in self._waiting:
                del self._waiting[connection]
                self._orphan(connection)
            elif lost_power and not is_idle:
                loop.call_later(IDLE_TIMEOUT_S, connection.close, context=contextvars.Context())
            else:
                loop.call_soon(connection.close, context=contextvars.Context())  # a call of it may be running now

    def _orphan(self, connection: SimulatedConnection) -> None:
        _shut_down(connection)
        pid = self._remove(connection)
        if pid is not None:
            self._await_lock(pid)

    def _await_lock(self, pid: int) -> None:
        self._orphans[pid] = asyncio.get_running_loop().call_later(
            LOCK_TIMEOUT_S, self._continue_orphan, pid, True, context=contextvars.Context()
        )

    def _continue_orphan(self, pid: int, has_timed_out: bool) -> None:
        """Let the backend of a killed process go on until it ends, or waits for another lock."""
        if (timer := self._orphans.pop(pid, None)) is None:
            return
        timer.cancel()
        if has_timed_out:
            self._monitor.execute("SELECT pg_cancel_backend(%s)", (pid,))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
            until_s = _real_s() + _HANGS_AFTER_S
            while _real_s() < until_s:
                os.kill(pid, 0)
                if not has_timed_out and self._are_waiting([pid]) and not self._is_in_cycle(pid):
                    os.kill(pid, signal.SIGSTOP)
                    self._await_lock(pid)
                    return
                _sleep()
        self.settle()

    def finish_statement(self, connection: SimulatedConnection) -> None:
        """Let the server execute what a process had sent before it was killed, until it ends or waits for a lock."""
        pid = self._pids[connection]
        self._orphan(connection)
        self._continue_orphan(pid, False)
        if connection.is_notifying and not connection.is_cut:
            self.collect_notifications()

    def drive(self, connection: SimulatedConnection, generator: Any) -> Any:
        """Run one of psycopg's generators to its end."""
        with self.executing(connection):
            try:
                wanted = next(generator)
                while True:
                    wanted = generator.send(self.wait_ready(connection, wanted))
            except StopIteration as end:
                return end.value

    @contextlib.contextmanager
    def executing(self, connection: SimulatedConnection) -> Generator[None]:
        """Within this context, statements are executed; raise the error of a lock that was not granted in time."""
        try:
            yield
        except psycopg.errors.QueryCanceled as error:
            if not connection.has_timed_out:
                raise
            raise psycopg.errors.LockNotAvailable("canceling statement due to lock timeout") from error
        finally:
            connection.has_timed_out = False
            if connection.closed:
                self.forget(connection)
            self.settle()

    def wait_ready(self, connection: SimulatedConnection, wanted: int) -> int:
        """Return which of reading (1) and writing (2) is possible; let others take steps while a lock is missing.

        Who can write is not told that there is something to read: whether a part of the response is there by then
        follows from real time, and how often it is waited for must not.
        """
        descriptor = connection.pgconn.socket
        poll = select.poll()
        poll.register(descriptor, (select.POLLIN if wanted & 1 else 0) | (select.POLLOUT if wanted & 2 else 0))
        until_s = _real_s() + _HANGS_AFTER_S
        if not wanted & 2 and not connection.is_awaited:  # in how many parts a response arrives does not count
            connection.is_awaited = True
            self._note_wait(connection)
        while True:
            ready = poll.poll(_LOOK_AFTER_MS)
            if ready:
                [(_, events)] = ready
                if connection.loses_response and events & select.POLLIN:
                    connection.loses_response = False
                    self._lose_response(connection)
                return 2 if events & select.POLLOUT else 1
            if self._are_waiting([self._pids[connection]]):
                self._wait_for_lock(connection)
            elif _real_s() > until_s:
                raise RuntimeError("the server does not respond")

    def _note_wait(self, connection: SimulatedConnection) -> None:
        """Tell that everything was sent, and its response is awaited: the process may be suspended or killed now."""
        if getattr(connection.host, "on_wait", None) is not None:
            connection.host.on_wait()
        connections = getattr(connection.host, "connections_of", None)
        if connections is not None and connections.on_operation is not None:
            connections.on_operation("statement")
            if connection.host.crashed:
                self.finish_statement(connection)
                abandon()

    def _lose_response(self, connection: SimulatedConnection) -> None:
        """Cut a connection after its statements were executed, and before their results were read."""
        pid, was_executed = self._pids[connection], not connection.is_cut
        while self._is_active(pid):
            _sleep()
        descriptor = os.dup(connection.pgconn.socket)
        with socket.socket(fileno=descriptor) as other, contextlib.suppress(BlockingIOError):
            while other.recv(65536, socket.MSG_DONTWAIT):
                pass
        self.cut(connection, by_server=False)
        if connection.is_notifying and was_executed:
            self.collect_notifications()

    def _is_active(self, pid: int) -> bool:
        row = self._monitor.execute(_IS_ACTIVE, (pid,)).fetchone()
        return row is not None and row[0]

    def _wait_for_lock(self, connection: SimulatedConnection) -> None:
        pid = self._pids[connection]
        self.waits["for a lock"] += 1
        if self._is_in_cycle(pid):
            self.waits["in a deadlock"] += 1
            until_s = _real_s() + _HANGS_AFTER_S
            while self._is_in_cycle(pid) and _real_s() < until_s:
                _sleep()  # the server finds it, and ends this transaction: its wait closed the cycle
            return
        if not in_greenlet():
            raise RuntimeError("the loop itself waits for a lock")
        os.kill(pid, signal.SIGSTOP)
        granted = self._waiting[connection] = Condition()
        is_granted = granted.wait(LOCK_TIMEOUT_S) or self._waiting.pop(connection, None) is None
        self._set_clock()
        if not is_granted:
            connection.has_timed_out = True
            self.waits["too long"] += 1
            self._monitor.execute("SELECT pg_cancel_backend(%s)", (pid,))
        with contextlib.suppress(ProcessLookupError):  # it was cut
            os.kill(pid, signal.SIGCONT)
        while not is_granted and self._are_waiting([pid]):  # else this would be taken for another wait
            _sleep()

    def _is_in_cycle(self, pid: int) -> bool:
        row = self._monitor.execute(_IS_IN_CYCLE, {"pid": pid}).fetchone()
        return row is not None and row[0]

    def settle(self) -> None:
        """Let those continue whose lock was granted, each at a step that the scheduler chooses."""
        if not self._waiting and not self._orphans:
            return
        still = self._are_waiting([*(self._pids[connection] for connection in self._waiting), *self._orphans])
        for pid in [each for each in self._orphans if each not in still]:
            asyncio.get_running_loop().call_soon(self._continue_orphan, pid, False, context=contextvars.Context())
        for connection in [each for each in self._waiting if self._pids[each] not in still]:
            self._waiting.pop(connection).wake()

    def collect_notifications(self) -> None:
        """Take a notification from the server for each listener, and let it arrive later."""
        for listener in self.listeners:
            if listener.is_cut or listener.closed:
                continue
            until_s = _real_s() + _HANGS_AFTER_S
            while (notified := listener.pgconn.notifies()) is None and _real_s() < until_s:
                if _is_readable(listener.pgconn.socket, 100):
                    listener.pgconn.consume_input()
            if notified is None:
                raise RuntimeError("the server sent no notification")
            notify = Notify(notified.relname.decode(), notified.extra.decode(), notified.be_pid)
            loop = asyncio.get_running_loop()
            if self._has_faults and self._choices.happens(_LATE, NOTIFIED_LATE):
                late_s = self._choices.pick("seconds", _LATE_S, of=_LATE)
                loop.call_later(late_s, self._arrive, listener, notify, context=contextvars.Context())
            else:
                loop.call_soon(self._arrive, listener, notify, context=contextvars.Context())

    def _arrive(self, listener: SimulatedConnection, notify: Notify) -> None:
        listener.inbox.append(notify)
        self.arrived.wake()

    def end(self) -> None:
        """Close what is still open."""
        self.is_over = True
        if self._reader is not None:
            self._reader.close()
        for pid in self._pids.values():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)

    def _are_waiting(self, pids: Sequence[int]) -> set[int]:
        return {pid for (pid,) in self._monitor.execute(_WAITING, (list(pids),))}

    def _set_clock(self) -> None:
        os.pwrite(self._clock, f"{time.time():020.6f}".encode(), 0)

    def _wait_for_end(self, pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)
            while True:
                os.kill(pid, 0)
                _sleep()


class ProcessConnections:
    """The connections of one process, of each of its lives.

    Attributes:
        on_operation: called when statements were sent, before their results are read; it may kill the process.
    """

    def __init__(self, run: DatabaseRun) -> None:
        self._run = run
        self.on_operation: Callable[[str], None] | None = None

    async def stand_still(self, host: Any, for_s: float) -> None:
        """Return after so many seconds, in which the host sends nothing: transactions that are open may be ended."""
        await asyncio.sleep(min(for_s, IDLE_TIMEOUT_S))
        if for_s > IDLE_TIMEOUT_S:
            if not host.crashed:
                self._run.end_idle_transactions(host)
            await asyncio.sleep(for_s - IDLE_TIMEOUT_S)

    def leave(self, host: Any, *, lost_power: bool) -> None:
        """Let the server go on without a host that was killed."""
        self._run.leave(host, lost_power=lost_power)


class _PgConn:
    """libpq's connection; `exec_prepared` lets others take steps while it waits for a lock."""

    def __init__(self, connection: SimulatedConnection) -> None:
        self._connection = connection
        self._real = connection.pgconn

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def exec_prepared(self, *args: Any) -> Any:
        run, real, last = _run, self._real, None
        if run is None or run.is_over:
            return real.exec_prepared(*args)
        real.send_query_prepared(*args)
        while real.flush():
            if run.wait_ready(self._connection, 3) & 1:
                real.consume_input()
        while True:
            while real.is_busy():
                run.wait_ready(self._connection, 1)
                real.consume_input()
            result = real.get_result()
            if result is None:
                return last
            last = result


class _Poll:
    """`select.poll`, for descriptors of connections: a wait lets others take steps."""

    def __init__(self) -> None:
        self._real = select.poll()
        self._masks: dict[int, int] = {}

    def register(self, descriptor: Any, mask: int) -> None:
        self._real.register(descriptor, mask)
        self._masks[descriptor if isinstance(descriptor, int) else descriptor.fileno()] = mask

    def modify(self, descriptor: int, mask: int) -> None:
        self._real.modify(descriptor, mask)
        self._masks[descriptor] = mask

    def poll(self, timeout_ms: int | None = None) -> list[tuple[int, int]]:
        if _run is None or _run.is_over or timeout_ms == 0:
            return self._real.poll(timeout_ms)
        if timeout_ms is not None:  # the listener's
            _run.arrived.wait(timeout_ms / 1000)
            return []
        [(descriptor, mask)] = self._masks.items()
        connection = _run.connection_of(descriptor)
        if connection is None:
            return self._real.poll(timeout_ms)
        ready = _run.wait_ready(connection, (1 if mask & select.POLLIN else 0) | (2 if mask & select.POLLOUT else 0))
        return [(descriptor, (select.POLLIN if ready & 1 else 0) | (select.POLLOUT if ready & 2 else 0))]


class _ClosedEvent(GreenEvent):
    """The engine's `_closed`: its listener has to notice."""

    def set(self) -> None:
        super().set()
        if _run is not None:
            _run.arrived.wake()


def replace_driver() -> None:
    """Let the engine of PostgreSQL run in greenlets; once in a process."""
    select_module = SimpleNamespace(poll=_Poll, POLLIN=select.POLLIN, POLLOUT=select.POLLOUT)
    engine: Any = postgresql
    session_module: Any = postgresql_session
    engine.select = session_module.select = select_module
    engine.threading = SimpleNamespace(Thread=GreenThread, Event=_ClosedEvent)
    engine.queue = SimpleNamespace(SimpleQueue=GreenQueue, Empty=Empty)

    def connect(*url: str, **parameters: Any) -> Any:
        if url or _run is None or _run.is_over:  # ours, not the service's
            return psycopg.Connection.connect(*url, **parameters)
        return _run.connect(**parameters)

    psycopg.connect = connect

    set_up = postgresql_session.set_up_session

    def set_up_session(connection: psycopg.Connection[Any]) -> None:
        set_up(connection)
        connection.autocommit = True
        more = b"; SET transaction_timeout = 0" if connection.info.server_version >= 170_000 else b""
        connection.execute(_OUR_TIMEOUTS + more)  # they would be in real time
        connection.autocommit = False

    engine.set_up_session = set_up_session
    engine.send_notification = lambda connection, *values: connection.execute(
        "SELECT pg_notify(%s, %s)",
        values,
        prepare=False,  # a round trip of its own, which notifies nobody
    )
    engine.read_notifications = lambda connection: [notified.payload for notified in connection.notifies()]

    session_class: Any = PostgresSession
    make, execute = PostgresSession.__init__, PostgresSession.execute

    def make_session(session: Any, driver: Any, *, is_transactional: bool) -> None:
        make(session, driver, is_transactional=is_transactional)
        if isinstance(driver, SimulatedConnection):
            session._pgconn = _PgConn(driver)

    def execute_in_steps(session: Any, executions: Sequence[Execution], *, is_alone: bool = False) -> None:
        run = _run
        if run is None or run.is_over:
            execute(session, executions, is_alone=is_alone)
            return
        for part in run.split(executions):
            commits = is_alone or part[-1].statement is COMMIT
            run.step(session.driver, can_conflict=not commits or len(part) > 1)
            with run.executing(session.driver):
                execute(session, part, is_alone=is_alone)

    session_class.__init__, session_class.execute = make_session, execute_in_steps


class DatabaseServer:
    """The server of runs that follow each other, each in a process of its own.

    Args:
        folder: of the clocks.
    """

    def __init__(self, server: postgres.Server, folder: Path) -> None:
        self._server = server
        self._folder = folder
        url = server.create(TEMPLATE)
        with psycopg.Connection.connect(url, autocommit=True) as connection:
            connection.execute(_CLOCK.format(folder).encode())
        (folder / TEMPLATE).write_bytes(_START)
        engine = PostgresEngine(url)
        engine.open()  # makes the schema
        engine.close()

    @contextlib.contextmanager
    def database(self, choices: Choices) -> Generator[DatabaseRun]:
        """Create a database for a run, and drop it afterwards."""
        global _run
        name = f"{TEMPLATE}_{os.getpid()}"
        clock = self._folder / name
        clock.write_bytes(_START)
        url = self._server.create(name, template=TEMPLATE)
        with (
            psycopg.Connection.connect(self._server.url(), autocommit=True, prepare_threshold=1) as monitor,
            clock.open("r+b", buffering=0) as file,
        ):
            _run = run = DatabaseRun(url, choices, monitor, file.fileno())
            try:
                yield run
            finally:
                run.end()
                _run = None
        postgres.drop_database(self._server.url(), name)


@contextlib.contextmanager
def running_database_server() -> Generator[DatabaseServer]:
    """Run a server, with the binaries of the project's own environment."""
    with _importable_wheel():
        postgres.binaries()
    with postgres.running_server(_SETTINGS) as server:
        clocks = server.folder / "clocks"
        clocks.mkdir()
        try:
            yield DatabaseServer(server, clocks)
        finally:
            if server.process is not None:
                for pid in postgres.children_of(server.process.pid):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGCONT)  # of a run that was ended from outside


@contextlib.contextmanager
def _importable_wheel() -> Generator[None]:
    folders = [str(folder) for folder in (ROOT / ".venv" / "lib").glob("python3.*/site-packages")]
    sys.path += folders
    try:
        yield
    finally:
        for folder in folders:
            sys.path.remove(folder)


def _shut_down(connection: SimulatedConnection) -> None:
    """End a connection on this side; do nothing if the server has ended it."""
    with socket.socket(fileno=os.dup(connection.fileno())) as other, contextlib.suppress(OSError):
        other.shutdown(socket.SHUT_RDWR)


def _is_readable(descriptor: int, timeout_ms: int) -> bool:
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(timeout_ms))


def _real_s() -> float:
    return time.clock_gettime(time.CLOCK_MONOTONIC)


def _sleep() -> None:
    """Sleep half a millisecond of real time."""
    select.select([], [], [], 0.0005)
