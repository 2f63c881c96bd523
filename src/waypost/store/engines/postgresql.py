"""PostgreSQL: up to two writing connections per process, separate readers, and wake-ups by NOTIFY."""

import queue
import secrets
import select
import socket
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from typing import Any, Final

import psycopg
from psycopg import sql
from sqlalchemy import Connection, create_engine, event, text
from sqlalchemy.engine import Engine as Pool
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from waypost.store.bulk_statements import BULK_STATEMENTS, IS_WRITER
from waypost.store.contract import DamageSearch, PayloadListener, StoreUnavailable
from waypost.store.engines.postgresql_bulk import PostgresBulkStatements
from waypost.store.engines.postgresql_session import (
    check_server,
    connect,
    driver_connection,
    has_ended,
    read_notifications,
    require_session,
    send_notification,
    set_up_session,
)
from waypost.store.postgresql_connections import ConnectionBudget
from waypost.store.revision import create_or_check_schema
from waypost.store.writer import first_line

FULL_BUDGET: Final = ConnectionBudget()
CHANNEL: Final = "waypost"
MAX_NOTIFICATION_BYTES: Final = 7_000  # of one notification; PostgreSQL allows 8,000

MIN_NOTIFY_INTERVAL_S: Final = 0.002  # minimum time between two notifications: every process has to read each
MAX_NOTIFY_INTERVAL_S: Final = 0.016
"""Each time that payloads already wait when the pause is over, the next pause is twice as long, up to this:
under load each notification costs the server and this process as much as several messages do."""

# Classes and codes of errors: not now, or not this server
UNAVAILABLE_SQLSTATES: Final = ("08", "53", "57P", "25006", "55000", "XX000")
DAMAGE_SQLSTATES: Final = ("XX001", "XX002")  # a page, or an index. Source: postgresql.org, "PostgreSQL Error Codes"
CONFLICT_SQLSTATES: Final = ("40001", "40P01", "55P03", "57014")  # 57014: a person, or a role's time-out, canceled it
MAX_OPENING_ATTEMPTS: Final = 8  # each waits for a lock for up to lock_timeout

_CHECKSUM_FAILURES: Final = text(
    "SELECT checksum_failures FROM pg_stat_database WHERE datname = current_database()"
)  # null without checksums. Source: postgresql.org, "pg_stat_database"
STANDBY_WAIT_FUNCTION: Final = "SyncRepWaitForLSN"
"""The server function that issues this warning: its text is in the server's language."""
NOT_REPLICATED_WARNING: Final = "canceling wait for synchronous replication"
"""A commit with this warning is on this server only: it must not be acknowledged."""


class PostgresEngine:
    """A PostgreSQL database, shared by any number of processes.

    Statements have no time-out: one that ended the wait for a synchronous standby would make a commit
    appear complete that is not.

    Args:
        url: as libpq accepts it: `postgresql://user:password@host/database`, several hosts with commas.
        processes: how many are started together with this one, for a warning.
        upgrade: whether a store of an older revision is upgraded.
    """

    name = "postgresql"
    is_exclusive = False
    commits_in_order = False  # numbers are assigned before the commit

    def __init__(
        self, url: str, *, budget: ConnectionBudget = FULL_BUDGET, processes: int = 1, upgrade: bool = True
    ) -> None:
        self.readers = budget.readers
        self.writers = budget.writers
        self._budget = budget
        self._processes = processes
        self._has_sessions = False  # until the first connection has shown it
        self._upgrade = upgrade
        self._url = url
        self.damage = ""
        self._pool: Pool | None = None
        self._writer_connections: list[Connection | None] = [None] * self.writers
        self._idle_readers: queue.SimpleQueue[Connection | None] = queue.SimpleQueue()
        self._idle_background: queue.SimpleQueue[Connection | None] = queue.SimpleQueue()
        self._bulk_statements = PostgresBulkStatements()
        self._not_replicated: set[int] = set()  # writers whose last commit is on this server only
        self._outgoing: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._closed = threading.Event()
        self._wake_sockets: tuple[socket.socket, socket.socket] | None = None  # closing one end wakes the listener
        self._sender_id = secrets.token_hex(4)  # in this process's notifications: it ignores its own

    def open(self) -> None:
        self._pool = create_engine(
            "postgresql+psycopg://",
            creator=self._connect,
            poolclass=NullPool,
            pool_reset_on_return=None,  # closing one needs no rollback, and on a broken one it is a logged error
            hide_parameters=True,  # error texts are logged, and parameters may hold messages of people
        )
        # The bulk statements that wait go before one of SQLAlchemy's, which may read what they write
        event.listen(self._pool, "before_cursor_execute", self._bulk_statements.send)
        for runs_left in reversed(range(MAX_OPENING_ATTEMPTS)):
            try:
                with self.write() as connection:
                    check_server(connection, needed_connections=self._processes * self._budget.total)
                    connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('waypost revision'))"))
                    connection.execute(text("SET LOCAL enable_seqscan = on"))  # a migration does read whole tables
                    create_or_check_schema(connection, upgrade=self._upgrade)
            except Exception as error:
                if self.is_conflict(error):
                    if runs_left:
                        continue
                    raise StoreUnavailable("the store is being upgraded, or is too busy; try again later") from error
                if not self.is_unavailable(error):
                    raise
                raise StoreUnavailable(f"cannot connect to PostgreSQL at database_url: {first_line(error)}") from error
            else:
                break
        self._idle_background.put(None)
        for _ in range(self.readers):
            self._idle_readers.put(None)

    @contextmanager
    def write(self, nth: int = 0) -> Generator[Connection]:
        if self._pool is None:
            raise RuntimeError("the store is not open")
        connection = self._writer_connections[nth]
        if connection is not None and has_ended(driver_connection(connection)):
            self._discard_broken(nth)
            connection = None
        if connection is None:
            connection = self._writer_connections[nth] = self._connect_writer(self._pool)
            driver_connection(connection).add_notice_handler(partial(self._handle_notice, nth))
        try:
            self._not_replicated.discard(nth)
            with connection.begin():
                yield connection
                self._bulk_statements.commit(connection)
        except BaseException:
            self._discard_broken(nth)
            if self._writer_connections[nth] is not None:  # using a broken one would reconnect it
                self._bulk_statements.drop(connection)
            raise
        if nth in self._not_replicated:
            raise StoreUnavailable("the commit was not confirmed by its synchronous standby")

    @contextmanager
    def read(self) -> Generator[Connection]:
        if self._pool is None:
            raise RuntimeError("the store is not open")
        connection = self._idle_readers.get()
        try:
            if connection is None:
                connection = self._pool.connect().execution_options(isolation_level="AUTOCOMMIT")
                connection.info[BULK_STATEMENTS] = self._bulk_statements
                connection.exec_driver_sql("SET default_transaction_read_only = on")
            yield connection
        except BaseException:
            if connection is not None and _is_broken(connection):
                _close(connection)
                connection = None
                self._close_idle_readers()
            raise
        finally:
            self._idle_readers.put(connection)

    def _close_idle_readers(self) -> None:
        """Close all idle readers: when one connection has broken, the others have too."""
        for _ in range(self.readers):
            try:
                connection = self._idle_readers.get_nowait()
            except queue.Empty:
                return
            if connection is not None:
                _close(connection)
            self._idle_readers.put(None)

    @property
    def background_transaction(self) -> Callable[[], AbstractContextManager[Connection]] | None:
        return self._begin_in_background if self._budget.background else None

    @contextmanager
    def _begin_in_background(self) -> Generator[Connection]:
        if self._pool is None:
            raise RuntimeError("the store is not open")
        connection = self._idle_background.get()
        try:
            if connection is None:
                connection = self._connect_writer(self._pool)
            with connection.begin():
                yield connection
                self._bulk_statements.commit(connection)
        except BaseException:
            if connection is not None and _is_broken(connection):
                _close(connection)
                connection = None
            if connection is not None:
                self._bulk_statements.drop(connection)
            raise
        finally:
            self._idle_background.put(connection)

    def is_unavailable(self, error: BaseException) -> bool:
        """Return True if the server was not reached, is stopping or starting, accepts no writes, or others were in the way.

        A conflict that comes each time is no defect of the work, which would count against its job.
        """
        if isinstance(error, StoreUnavailable):
            return True
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            return True
        cause = error.orig if isinstance(error, DBAPIError) else error
        if isinstance(cause, psycopg.Error) and cause.sqlstate is not None:
            return cause.sqlstate.startswith((*UNAVAILABLE_SQLSTATES, *CONFLICT_SQLSTATES))
        return isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError)

    def is_damage(self, error: BaseException) -> bool:
        """Return True if the server found a damaged page or index."""
        cause = error.orig if isinstance(error, DBAPIError) else error
        return isinstance(cause, psycopg.Error) and cause.sqlstate in DAMAGE_SQLSTATES

    def find_damage(self, within_s: float) -> DamageSearch:
        """Return how many pages with a wrong checksum the server has met; it checks each page that it reads."""
        del within_s
        with self.read() as connection:
            failures = connection.execute(_CHECKSUM_FAILURES).scalar_one_or_none()
        if failures is None:
            return DamageSearch((), "nothing: the server keeps no checksums; pg_amcheck checks tables and indexes")
        found = (f"the server has met {failures} pages with a wrong checksum",) if failures else ()
        return DamageSearch(found, "the checksums of the pages that the server has read")

    def is_conflict(self, error: BaseException) -> bool:
        """Return True for a deadlock, a lock not obtained in time, a canceled statement, or a partition added meanwhile.

        A row that waited for the default partition is rejected once another has taken its range; run again,
        it goes there. That violation names no constraint, unlike those of the tables' own rules.
        """
        cause = error.orig if isinstance(error, DBAPIError) else error
        if isinstance(cause, psycopg.errors.CheckViolation):
            return cause.diag.constraint_name is None
        return isinstance(cause, psycopg.Error) and cause.sqlstate in CONFLICT_SQLSTATES

    def listen(self, listener: PayloadListener) -> None:
        self._wake_sockets = socket.socketpair()
        for name, work in (
            ("store-listen", lambda: self._receive_notifications(listener)),
            ("store-notify", self._send_notifications),
        ):
            thread = threading.Thread(target=work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def notify(self, payloads: Sequence[str]) -> None:
        for payload in payloads:
            self._outgoing.put(payload)

    def compact(self, tables: Sequence[str]) -> None:
        """Rewrite each table, on a connection of its own in place of a reader's; those who use the table wait."""
        reader = self._idle_readers.get()  # the budget counts it; a thread of the readers runs this, so one is idle
        try:
            if reader is not None:
                _close(reader)
            with closing(self._connect()) as connection:
                connection.autocommit = True
                connection.execute("SET lock_timeout = '60s'")
                if connection.info.server_version >= 170_000:
                    connection.execute("SET transaction_timeout = 0")
                for name in tables:
                    connection.execute(sql.SQL("VACUUM (FULL, ANALYZE) {}").format(sql.Identifier(name)))
        finally:
            self._idle_readers.put(None)

    def close(self) -> None:
        self._closed.set()
        if self._threads:
            self._outgoing.put("bye")  # wakes the listener
        self._outgoing.put(None)
        if self._wake_sockets is not None:
            self._wake_sockets[1].close()
        for thread in self._threads:
            thread.join(timeout=3)
        if self._wake_sockets is not None:
            self._wake_sockets[0].close()
        idle = [pool.get() for pool in (self._idle_readers, self._idle_background) for _ in range(pool.qsize())]
        for connection in [*idle, *self._writer_connections]:
            if connection is not None:
                _close(connection)
        self._writer_connections = [None] * self.writers
        if self._pool is not None:
            self._pool.dispose()

    def _connect_writer(self, pool: Pool) -> Connection:
        connection = pool.connect()
        connection.info.update({BULK_STATEMENTS: self._bulk_statements, IS_WRITER: True})
        # A rollback, or a dropped table, would make psycopg deallocate all prepared statements, with those of ours.
        driver_connection(connection).prepare_threshold = None
        return connection

    def _connect(self) -> psycopg.Connection[Any]:
        connection = connect(self._url)
        try:
            if not self._has_sessions:
                require_session(connection, self._url)
                self._has_sessions = True
            set_up_session(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _handle_notice(self, nth: int, diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.source_function == STANDBY_WAIT_FUNCTION or (diagnostic.message_primary or "").startswith(
            NOT_REPLICATED_WARNING
        ):
            self._not_replicated.add(nth)

    def _discard_broken(self, nth: int) -> None:
        connection = self._writer_connections[nth]
        if connection is not None and _is_broken(connection):
            _close(connection)
            self._writer_connections[nth] = None

    def _receive_notifications(self, listener: PayloadListener) -> None:
        is_first = True
        while not self._closed.is_set():
            try:
                with self._connect() as connection:
                    connection.autocommit = True
                    connection.execute(f"LISTEN {CHANNEL}")
                    if not is_first:
                        listener("")
                    is_first = False
                    poll = select.poll()
                    poll.register(connection.fileno(), select.POLLIN)
                    if self._wake_sockets is not None:
                        poll.register(self._wake_sockets[0], select.POLLIN)
                    while not self._closed.is_set():
                        poll.poll(5_000)
                        for notification in read_notifications(connection):
                            if self._closed.is_set():
                                return
                            sender_id, *payloads = notification.split("\n")
                            if sender_id != self._sender_id:
                                for payload in payloads:
                                    listener(payload)
            except psycopg.Error:
                self._closed.wait(0.5)

    def _send_notifications(self) -> None:
        """Collect payloads while the last notification is being sent.

        A notification is a transaction of its own, after the one that it announces: PostgreSQL lets only one
        transaction at a time commit with a notification in it, and a flush under that lock would make all
        processes flush one after the other. One that is lost, because the server is away, delays its receivers until
        their next poll.
        """
        connection: psycopg.Connection[Any] | None = None
        pause_s = MIN_NOTIFY_INTERVAL_S
        while True:
            has_waited = not self._outgoing.empty()
            pause_s = min(2 * pause_s, MAX_NOTIFY_INTERVAL_S) if has_waited else MIN_NOTIFY_INTERVAL_S
            payload = self._outgoing.get()
            payloads = dict.fromkeys([payload] if payload is not None else [])
            while not self._outgoing.empty():
                next_payload = self._outgoing.get()
                if next_payload is None:
                    payload = None
                else:
                    payloads[next_payload] = None
            connection = self._send_all(connection, _pack_notifications(self._sender_id, list(payloads)))
            if payload is None:
                break
            self._closed.wait(pause_s)  # payloads of this time go with the next notification
        if connection is not None:
            connection.close()

    def _send_all(
        self, connection: psycopg.Connection[Any] | None, notifications: Sequence[str]
    ) -> psycopg.Connection[Any] | None:
        """Send notifications on a connection, or on a new one; return it, or None if the last one broke.

        A connection that has broken while it was idle is noticed only now: it is replaced once.
        """
        for notification in notifications:
            was_open = connection is not None and not connection.closed
            for may_be_stale in (True, False) if was_open else (False,):
                try:
                    if connection is None or connection.closed:
                        connection = self._connect()
                        connection.autocommit = True
                    send_notification(connection, CHANNEL, notification)
                    break
                except psycopg.Error:
                    if connection is not None:
                        connection.close()
                    connection = None
                    if not may_be_stale:
                        return None
        return connection


def _close(connection: Connection) -> None:
    with suppress(Exception):  # it may be broken
        connection.close()


def _is_broken(connection: Connection) -> bool:
    if connection.invalidated:  # checked first: using it would reconnect it, without our settings
        return True
    try:
        driver: Any = driver_connection(connection)
    except Exception:  # noqa: BLE001  one that raises here is broken
        return True
    return driver is None or driver.closed or driver.broken


def _pack_notifications(sender_id: str, payloads: Sequence[str]) -> list[str]:
    """Return notifications that hold all payloads, each within the size limit."""
    notifications: list[str] = []
    parts, size = [sender_id], len(sender_id)
    for payload in payloads:
        if size + len(payload.encode()) + 1 > MAX_NOTIFICATION_BYTES and len(parts) > 1:
            notifications.append("\n".join(parts))
            parts, size = [sender_id], len(sender_id)
        parts.append(payload)
        size += len(payload.encode()) + 1
    if len(parts) > 1:
        notifications.append("\n".join(parts))
    return notifications
