"""PostgreSQL: two writing connections a process, readers of their own, and wake-ups by NOTIFY."""

import queue
import secrets
import select
import socket
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.engine import Engine as Pool
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from waypost.base.telemetry.logs import log
from waypost.store.bulk_statements import WAYS
from waypost.store.contract import Hear, StoreAway, WrongStore
from waypost.store.engines.many_rows import ManyRows
from waypost.store.revision import make_or_check

CHANNEL: Final = "waypost"
MOST_BYTES: Final = 7_000
"""Of one notification; PostgreSQL takes 8,000."""

TELL_EVERY_S: Final = 0.002
TELL_AT_LEAST_EVERY_S: Final = 0.016
"""Each time that something waits already when the pause is over, the next pause is twice as long, up to this:
under load each telling costs the server and this process as much as several messages do."""
"""Time between two notifications: every process has to read each."""

# fmt: off
SETTINGS: Final = (  # Source: postgresql.org, "Client Connection Defaults", "Write Ahead Log"; libpq, "Parameter Key Words"
    #  name                                   value    why
    ("idle_in_transaction_session_timeout",  "10s"),  # a process that hangs in a transaction holds up the others' reading
    ("lock_timeout",                         "8s"),   # a lock that is not got is an error of ours, and seen
    ("timezone",                             "UTC"),
    ("client_min_messages",                  "warning"),  # by a warning we learn that a commit is on one server only
)
CONNECT: Final = {  # by which a server that is gone is noticed within seconds
    "connect_timeout":       5,
    "tcp_user_timeout":      10_000,
    "keepalives_idle":       5,
    "keepalives_interval":   2,
    "keepalives_count":      3,
    "application_name":      "waypost",
}
AWAY: Final = ("08", "53", "57P", "25006", "55000", "XX000")  # classes and codes of errors that say: not now, or not this server
CLASHES: Final = ("40001", "40P01", "55P03")
CLASHES_AT_OPENING: Final = 8  # each waits for a lock as long as lock_timeout says
# fmt: on

FLUSHED: Final = (
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
"""A commit that does not wait for its flush is no acknowledgement, whatever the server's default is."""

WAITS_FOR_STANDBY: Final = "SyncRepWaitForLSN"
"""The place in the server that warns so: its words are in the server's language."""
NOT_REPLICATED: Final = "canceling wait for synchronous replication"
"""A commit that warns so is on this server only: whoever waits for it may not be told that it is safe."""


class PostgresEngine:
    """A PostgreSQL database, shared by any number of processes.

    There is no time-out on statements: one that ended the wait for a synchronous standby would make a
    commit look done that is not.

    Args:
        url: as libpq takes it: `postgresql://user:password@host/database`, several hosts with commas.
        readers: how many threads may read at once.
        upgrade: whether a store of an older revision is upgraded.
    """

    name = "postgresql"
    sole = False
    writers = 2  # one for what is acknowledged, one for what the stages write
    in_order = False  # numbers are given out before the commit

    def __init__(self, url: str, *, readers: int = 4, upgrade: bool = True) -> None:
        self.readers = readers
        self._upgrade = upgrade
        self._url = url
        self._pool: Pool | None = None
        self._writing: list[Connection | None] = [None] * self.writers
        self._idle: queue.SimpleQueue[Connection | None] = queue.SimpleQueue()
        self._aside: queue.SimpleQueue[Connection | None] = queue.SimpleQueue()
        self._ways = ManyRows()
        self._not_replicated: set[int] = set()  # the writers whose commit has been cut off so
        self._told: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._closed = threading.Event()
        self._bell: tuple[socket.socket, socket.socket] | None = None  # its end wakes who hears
        self._me = secrets.token_hex(4)  # in what this process tells: it need not hear itself
        self._log = log("store")

    def open(self) -> None:
        """Connect, and make or check the schema.

        Raises:
            StoreAway: no server answers, or none that takes writes.
            WrongStore: it has another revision.
        """
        self._pool = create_engine(
            "postgresql+psycopg://",
            creator=self._connect,
            poolclass=NullPool,
            hide_parameters=True,  # an error's text is logged, and parameters are what people write
        )
        for left in reversed(range(CLASHES_AT_OPENING)):
            try:
                with self.write() as connection:
                    self._check_server(connection)
                    connection.execute(text("SELECT pg_advisory_xact_lock(hashtext('waypost revision'))"))
                    make_or_check(connection, upgrade=self._upgrade)
            except Exception as error:
                if self.is_away(error):
                    raise StoreAway(f"no PostgreSQL server answers as database_url says: {_short(error)}") from error
                if not self.is_clash(error):
                    raise
                if not left:
                    raise StoreAway("the store is being upgraded, or too busy to be; try again later") from error
            else:
                break
        self._aside.put(None)
        for _ in range(self.readers):
            self._idle.put(None)

    @contextmanager
    def write(self, nth: int = 0) -> Generator[Connection]:
        """A transaction on a writing connection, which is made anew when it has broken."""
        if self._pool is None:
            raise RuntimeError("the store is not open")
        connection = self._writing[nth]
        if connection is None:
            connection = self._writing[nth] = self._pool.connect()
            connection.info[WAYS] = self._ways
            driver: Any = connection.connection.driver_connection
            driver.add_notice_handler(partial(self._noticed, nth))
        try:
            self._not_replicated.discard(nth)
            with connection.begin():
                yield connection
        except BaseException:
            self._discard_broken(nth)
            raise
        if nth in self._not_replicated:
            raise StoreAway("the commit was cut off from its synchronous standby")

    @contextmanager
    def read(self) -> Generator[Connection]:
        """A connection on which each statement sees what is committed; it goes back for the next reader."""
        if self._pool is None:
            raise RuntimeError("the store is not open")
        connection = self._idle.get()
        try:
            if connection is None:
                connection = self._pool.connect().execution_options(isolation_level="AUTOCOMMIT")
                connection.exec_driver_sql("SET default_transaction_read_only = on")
            yield connection
        except BaseException:
            if connection is not None and _is_broken(connection):
                with suppress(Exception):
                    connection.close()
                connection = None
                self._forget_idle()
            raise
        finally:
            self._idle.put(connection)

    def _forget_idle(self) -> None:
        """When one connection has broken, those that wait have too: nobody need find out one by one."""
        for _ in range(self.readers):
            try:
                connection = self._idle.get_nowait()
            except queue.Empty:
                return
            if connection is not None:
                with suppress(Exception):
                    connection.close()
            self._idle.put(None)

    @contextmanager
    def beside(self) -> Generator[Connection]:
        """A transaction on a connection of its own, for work that nobody waits for."""
        if self._pool is None:
            raise RuntimeError("the store is not open")
        connection = self._aside.get()
        try:
            if connection is None:
                connection = self._pool.connect()
                connection.info[WAYS] = self._ways
            with connection.begin():
                yield connection
        except BaseException:
            if connection is not None and _is_broken(connection):
                with suppress(Exception):
                    connection.close()
                connection = None
            raise
        finally:
            self._aside.put(connection)

    def is_away(self, error: BaseException) -> bool:
        """Whether the server was not reached, is going or coming, or takes no writes."""
        if isinstance(error, StoreAway):
            return True
        if isinstance(error, DBAPIError) and error.connection_invalidated:
            return True
        cause = error.orig if isinstance(error, DBAPIError) else error
        if isinstance(cause, psycopg.Error) and cause.sqlstate is not None:
            return cause.sqlstate.startswith(AWAY)
        return isinstance(cause, psycopg.OperationalError | psycopg.InterfaceError)

    def is_clash(self, error: BaseException) -> bool:
        """Whether two transactions met: a deadlock, or a lock that was not got in time."""
        cause = error.orig if isinstance(error, DBAPIError) else error
        return isinstance(cause, psycopg.Error) and cause.sqlstate in CLASHES

    def listen(self, hear: Hear) -> None:
        """Hear what other processes tell, on a thread and a connection of their own."""
        self._bell = socket.socketpair()
        for name, work in (("store-hears", lambda: self._hear_on(hear)), ("store-tells", self._tell_on)):
            thread = threading.Thread(target=work, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    def notify(self, words: Sequence[str]) -> None:
        """Tell the others, after what was told before; see `_tell_on`."""
        for one in words:
            self._told.put(one)

    def close(self) -> None:
        """Tell what is still to be told, and close every connection."""
        self._closed.set()
        if self._threads:
            self._told.put("bye")  # which wakes the one that hears
        self._told.put(None)
        if self._bell is not None:
            self._bell[1].close()
        for thread in self._threads:
            thread.join(timeout=3)
        if self._bell is not None:
            self._bell[0].close()
        for idle in (self._idle, self._aside):
            while not idle.empty():
                connection = idle.get()
                if connection is not None:
                    with suppress(Exception):
                        connection.close()
        for connection in self._writing:
            if connection is not None:
                with suppress(Exception):
                    connection.close()
        self._writing = [None] * self.writers
        if self._pool is not None:
            self._pool.dispose()

    def _connect(self) -> psycopg.Connection[Any]:
        given = conninfo_to_dict(self._url)
        wanted = {**CONNECT, **given}
        if "," in str(wanted.get("host", "")):
            wanted.setdefault("target_session_attrs", "read-write")
        options = " ".join(f"-c {name}={value}" for name, value in SETTINGS)
        wanted["options"] = f"{given.get('options', '')} {options}".strip()
        connection = psycopg.connect(**cast("Any", wanted))
        connection.autocommit = True
        connection.execute(FLUSHED)
        if connection.info.server_version >= 170_000:
            connection.execute("SET transaction_timeout = '15s'")
        connection.autocommit = False
        return connection

    def _check_server(self, connection: Connection) -> None:
        """Refuse a server that is too old; hold one that does not flush to what we promise, or say so."""
        version = int(connection.exec_driver_sql("SHOW server_version_num").scalar_one())
        if version < 140_000:
            raise WrongStore(f"this PostgreSQL has version {version // 10_000}; waypost works on 14 and newer")
        standbys = connection.exec_driver_sql("SHOW synchronous_standby_names").scalar_one()
        if standbys and connection.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "local":
            self._log.warning(
                "this PostgreSQL has synchronous standbys and does not wait for them (synchronous_commit = local): "
                "what is acknowledged can be lost with this server"
            )
        if connection.exec_driver_sql("SHOW fsync").scalar_one() == "off":
            self._log.warning(
                "this PostgreSQL does not flush (fsync = off): what is acknowledged can be lost with the power"
            )

    def _noticed(self, nth: int, diagnostic: psycopg.errors.Diagnostic) -> None:
        if diagnostic.source_function == WAITS_FOR_STANDBY or (diagnostic.message_primary or "").startswith(
            NOT_REPLICATED
        ):
            self._not_replicated.add(nth)

    def _discard_broken(self, nth: int) -> None:
        connection = self._writing[nth]
        if connection is not None and _is_broken(connection):
            with suppress(Exception):
                connection.close()
            self._writing[nth] = None

    def _hear_on(self, hear: Hear) -> None:
        is_first = True
        while not self._closed.is_set():
            try:
                with self._connect() as connection:
                    connection.autocommit = True
                    connection.execute(f"LISTEN {CHANNEL}")
                    if not is_first:
                        hear("")
                    is_first = False
                    told = select.poll()
                    told.register(connection.fileno(), select.POLLIN)
                    if self._bell is not None:
                        told.register(self._bell[0], select.POLLIN)
                    while not self._closed.is_set():
                        told.poll(5_000)
                        for notified in connection.notifies(timeout=0):
                            if self._closed.is_set():
                                return
                            teller, *words = notified.payload.split("\n")
                            if teller != self._me:
                                for one in words:
                                    hear(one)
            except psycopg.Error:
                self._closed.wait(0.5)

    def _tell_on(self) -> None:
        """Gather what is to be told while the last notification is on its way.

        A notification is a transaction of its own, after the one that it tells of: PostgreSQL lets one
        transaction at a time commit with a notification in it, and a flush under that lock would make
        all processes flush one after the other. One that is lost costs its hearers their poll.
        """
        connection: psycopg.Connection[Any] | None = None
        pause_s = TELL_EVERY_S
        while True:
            has_waited = not self._told.empty()
            pause_s = min(2 * pause_s, TELL_AT_LEAST_EVERY_S) if has_waited else TELL_EVERY_S
            one = self._told.get()
            waiting = dict.fromkeys([one] if one is not None else [])
            while not self._told.empty():
                more = self._told.get()
                if more is None:
                    one = None
                else:
                    waiting[more] = None
            try:
                for payload in _payloads(self._me, list(waiting)):
                    if connection is None or connection.closed:
                        connection = self._connect()
                        connection.autocommit = True
                    connection.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))
            except psycopg.Error:
                connection = None
            if one is None:
                break
            self._closed.wait(pause_s)  # what is told meanwhile goes with the next
        if connection is not None:
            connection.close()


def _is_broken(connection: Connection) -> bool:
    if connection.invalidated:  # asked first: to touch it would connect it anew, without what we gave the first
        return True
    try:
        driver: Any = connection.connection.driver_connection
    except Exception:  # noqa: BLE001  one that cannot even be asked is broken
        return True
    return driver is None or driver.closed or driver.broken


def _payloads(teller: str, words: Sequence[str]) -> list[str]:
    """Notifications that hold all words, each below what a notification may have."""
    payloads: list[str] = []
    gathered, size = [teller], len(teller)
    for one in words:
        if size + len(one.encode()) + 1 > MOST_BYTES and len(gathered) > 1:
            payloads.append("\n".join(gathered))
            gathered, size = [teller], len(teller)
        gathered.append(one)
        size += len(one.encode()) + 1
    if len(gathered) > 1:
        payloads.append("\n".join(gathered))
    return payloads


def _short(error: BaseException) -> str:
    cause = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    return str(cause).strip().splitlines()[0] if str(cause).strip() else type(cause).__name__
