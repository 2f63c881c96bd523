"""One connection to PostgreSQL: sends as many statements as it can in one round trip, BEGIN and COMMIT with them.

Statements wait until a result is needed, or until the transaction ends. Then they are sent together, in libpq's
pipeline mode, in their order. Each is prepared once for each connection.

Source: postgresql.org, "Pipeline Mode" (libpq).

A whole column of rows is one value: an array in PostgreSQL's binary format, made several times faster than psycopg
makes it, member by member, as a text that the server has to parse.

Source: postgresql.org, "array_send" (src/backend/utils/adt/arrayfuncs.c) for the layout: dimensions, a flag for
NULL, the type of the members, length and lower bound of the dimension; then each member with its size.
"""

import select
import struct
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final, cast

import psycopg
from psycopg.adapt import Transformer
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ConnStatus, ExecStatus, Format, TransactionStatus
from sqlalchemy import Connection

from waypost.base.telemetry.logs import log
from waypost.store.contract import WrongStore
from waypost.store.postgresql_connections import count_server_connections

_HEADER: Final = struct.Struct("!iiIii").pack
_EMPTY: Final = struct.Struct("!iiI").pack
_SIZE: Final = struct.Struct("!i").pack
_NULL: Final = _SIZE(-1)
_INT2: Final = struct.Struct("!ih").pack
_INT4: Final = struct.Struct("!ii").pack
_INT8: Final = struct.Struct("!iq").pack
_BOOL: Final = {True: _SIZE(1) + b"\1", False: _SIZE(1) + b"\0"}


def _pack_text(value: str) -> bytes:
    encoded = value.encode()
    return _SIZE(len(encoded)) + encoded


def _pack_bytes(value: bytes) -> bytes:
    return _SIZE(len(value)) + value


class ArrayType:
    """A type of arrays.

    Args:
        name: of the members' type, in SQL.
        member_oid: of the members' type. Source: postgresql.org, src/include/catalog/pg_type.dat.
        array_oid: of the array type.
        pack: encodes one member with its size.
    """

    def __init__(self, name: str, member_oid: int, array_oid: int, pack: Callable[[Any], bytes]) -> None:
        self.name = name
        self.array_oid = array_oid
        self._member_oid = member_oid
        self._pack = pack

    def encode(self, values: Sequence[Any]) -> bytes:
        """Return an array as a parameter of a statement."""
        pack = self._pack
        if None in values:
            members = [_NULL if value is None else pack(value) for value in values]
            return _HEADER(1, 1, self._member_oid, len(members), 1) + b"".join(members)
        if not values:
            return _EMPTY(0, 0, self._member_oid)
        return _HEADER(1, 0, self._member_oid, len(values), 1) + b"".join(map(pack, values))


# fmt: off
ARRAY_TYPES: Final = {  # by the name of the members' type
    array_type.name: array_type
    for array_type in (
        #         name     member  array
        ArrayType("text",  25,     1009,   _pack_text),
        ArrayType("bytea", 17,     1001,  _pack_bytes),
        ArrayType("int8",  20,     1016,   lambda value: _INT8(8, value)),
        ArrayType("int4",  23,     1007,   lambda value: _INT4(4, value)),
        ArrayType("int2",  21,     1005,   lambda value: _INT2(2, value)),
        ArrayType("bool",  16,     1000,   lambda value: _BOOL[bool(value)]),
    )
}
# fmt: on


class Statement:
    """The text of a statement, and the types of the arrays that it takes.

    Args:
        text: SQL with `$1`, `$2`, … for the arrays.
        types: of the arrays.
        name: under which it is prepared; None for one that each connection chooses.
    """

    def __init__(self, text: str, types: Sequence[ArrayType] = (), *, name: str | None = None) -> None:
        self.text = text
        self.types = types
        self.oids = [array_type.array_oid for array_type in types]
        self.formats = [Format.BINARY] * len(types)
        self.name = name

    def encode_columns(self, rows: Sequence[tuple[Any, ...]]) -> list[bytes]:
        """Return the arrays: one for each column of the rows."""
        return [kind.encode(column) for kind, column in zip(self.types, zip(*rows, strict=True), strict=True)]


class Execution:
    """One execution of a statement.

    Attributes:
        rows: its result, once it has been sent; None until then, and if its transaction failed before.
    """

    __slots__ = ("arrays", "rows", "statement")

    def __init__(self, statement: Statement, arrays: Sequence[bytes]) -> None:
        self.statement = statement
        self.arrays = arrays
        self.rows: list[tuple[Any, ...]] | None = None


BEGIN: Final = Statement("BEGIN", name="waypost_begin")
COMMIT: Final = Statement("COMMIT", name="waypost_commit")


class PostgresSession:
    """A connection's statements that wait, and those that are prepared.

    An error is the one that psycopg itself would raise; nothing that followed the statement was executed, and the
    transaction is to be rolled back, by the caller. A connection that breaks is closed.

    Args:
        is_transactional: whether statements belong to transactions that begin with the first of them; else each
            is a transaction of its own.
    """

    def __init__(self, driver: psycopg.Connection[Any], *, is_transactional: bool) -> None:
        self.driver = driver
        self._pgconn = driver.pgconn
        self._is_transactional = is_transactional
        self._waiting: list[Execution] = []
        self._names: dict[tuple[Statement, bool], bytes] = {}
        self._transformer = Transformer(driver)
        self._poll = select.poll()
        self._poll.register(driver.fileno(), select.POLLIN)

    def add(self, statement: Statement, arrays: Sequence[bytes]) -> Execution:
        """Let a statement wait; its result is there once something has been sent."""
        execution = Execution(statement, arrays)
        self._waiting.append(execution)
        return execution

    def fetch(self, statement: Statement, arrays: Sequence[bytes] = ()) -> list[tuple[Any, ...]]:
        """Send what waits and this statement; return its rows."""
        execution = self.add(statement, arrays)
        self.send()
        return execution.rows or []

    def send(self) -> None:
        """Send what waits, in a transaction, which is begun if necessary."""
        if not self._waiting:
            return
        executions, self._waiting = self._waiting, []
        if self._is_transactional and self._is_idle:
            executions = [Execution(BEGIN, ()), *executions]
        self.execute(executions)

    def commit(self) -> None:
        """Send what waits, and commit. A statement that is the whole transaction needs no BEGIN and no COMMIT."""
        executions, self._waiting = self._waiting, []
        if not self._is_idle:
            self.execute([*executions, Execution(COMMIT, ())])
        elif len(executions) == 1:
            self.execute(executions, is_alone=True)
        elif executions:
            self.execute([Execution(BEGIN, ()), *executions, Execution(COMMIT, ())])

    def drop(self) -> None:
        """Drop what waits: its transaction has failed."""
        self._waiting = []

    @property
    def _is_idle(self) -> bool:
        """True if no transaction has begun."""
        return self._pgconn.transaction_status == TransactionStatus.IDLE

    def execute(self, executions: Sequence[Execution], *, is_alone: bool = False) -> None:
        """Execute statements, in one round trip.

        Args:
            is_alone: the only one is a transaction of its own, and has a name of its own: an observer of the
                connection recognises by it, and by that of COMMIT, what commits (tests, proofs).
        """
        if len(executions) == 1 and (name := self._names.get((executions[0].statement, is_alone))):
            [execution] = executions
            statement = execution.statement
            result = self._pgconn.exec_prepared(name, execution.arrays, statement.formats, Format.BINARY)
            self._check(result)
            self._store_result(execution, result)
            return
        new_names: dict[tuple[Statement, bool], bytes] = {}
        outcomes: list[tuple[Statement, bool] | Execution] = []  # what each result belongs to: a name, or an execution
        try:
            self._pgconn.enter_pipeline_mode()
            for execution in executions:
                statement = execution.statement
                key = statement, is_alone
                name = self._names.get(key) or new_names.get(key)
                if name is None:
                    number = len(self._names) + len(new_names)
                    chosen = statement.name or f"waypost_{'alone_' if is_alone else ''}{number}"
                    name = new_names[key] = chosen.encode()
                    self._pgconn.send_prepare(name, statement.text.encode(), statement.oids)
                    outcomes.append(key)
                self._pgconn.send_query_prepared(name, execution.arrays, statement.formats, Format.BINARY)
                outcomes.append(execution)
            self._pgconn.pipeline_sync()
            results = self._receive()
            self._pgconn.exit_pipeline_mode()
        except BaseException:
            self._pgconn.finish()  # whatever of it was executed: no other statement may follow
            raise
        for outcome, result in zip(outcomes, results, strict=False):
            self._check(result)
            if isinstance(outcome, Execution):
                self._store_result(outcome, result)
            else:
                self._names[outcome] = new_names[outcome]
        for result in results[len(outcomes) :]:  # an error of the commit of a statement that is alone
            self._check(result)

    def _receive(self) -> list[Any]:
        """Return one result for each message that was sent; none of those after a broken connection.

        Raises:
            psycopg.OperationalError: the connection broke before any statement failed.
        """
        results: list[Any] = []
        pgconn = self._pgconn
        if pgconn.flush():
            self._flush_all()
        while True:
            while pgconn.is_busy():
                self._poll.poll()
                try:
                    pgconn.consume_input()
                except psycopg.OperationalError:
                    self._raise_error_of(results)
                    raise
            result = pgconn.get_result()
            if result is None:  # the end of one statement's results
                if pgconn.status != ConnStatus.OK:
                    self._raise_error_of(results)
                    raise psycopg.OperationalError("the connection broke")
            elif result.status == ExecStatus.PIPELINE_SYNC:
                return results
            else:
                results.append(result)

    def _flush_all(self) -> None:
        """Send all that libpq still has; results are read meanwhile, because the server may wait for that."""
        self._poll.modify(self._pgconn.socket, select.POLLIN | select.POLLOUT)
        while self._pgconn.flush():
            if any(ready & ~select.POLLOUT for _, ready in self._poll.poll()):
                self._pgconn.consume_input()
        self._poll.modify(self._pgconn.socket, select.POLLIN)

    def _raise_error_of(self, results: Sequence[Any]) -> None:
        """Raise the error of the first result that has one: the reason why the server closed the connection."""
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise psycopg.errors.error_from_result(result)

    def _check(self, result: Any) -> None:
        """Raise the error of a result; a connection that broke has one without a state."""
        if result.status in _SUCCESSFUL:
            if result.command_status == b"ROLLBACK":  # the response to COMMIT in a transaction that has failed
                raise psycopg.errors.InFailedSqlTransaction("the transaction had failed before; it was rolled back")
            return
        if self._pgconn.status != ConnStatus.OK and not result.error_field(_SQLSTATE):
            raise psycopg.OperationalError(result.get_error_message() or "the connection broke")
        raise psycopg.errors.error_from_result(result)

    def _store_result(self, execution: Execution, result: Any) -> None:
        if result.status == ExecStatus.TUPLES_OK:
            self._transformer.set_pgresult(result)
            execution.rows = self._transformer.load_rows(0, result.ntuples, cast("Any", tuple))
        else:
            execution.rows = []


class ReturnedKeys(AbstractSet[Any]):
    """The keys that a statement returns: it is sent when they are read, or later with others if they never are."""

    def __init__(self, session: PostgresSession, execution: Execution) -> None:
        self._session = session
        self._execution = execution
        self._keys: frozenset[Any] | None = None

    def __contains__(self, key: object) -> bool:
        """Return True if the statement returned this key."""
        return key in self._read()

    def __iter__(self) -> Iterator[Any]:
        """Return the keys."""
        return iter(self._read())

    def __len__(self) -> int:
        """Return the number of keys."""
        return len(self._read())

    def _read(self) -> frozenset[Any]:
        if self._keys is None:
            if self._execution.rows is None:
                self._session.send()
            if self._execution.rows is None:
                raise RuntimeError("the transaction of this statement has failed")
            self._keys = frozenset(key for key, *_ in self._execution.rows)
        return self._keys


def has_ended(driver: psycopg.Connection[Any]) -> bool:
    """Return True if the server has closed a connection on which nothing is expected.

    Noticed here, it is certain that nothing of the next transaction was sent.
    """
    poll = select.poll()
    poll.register(driver.fileno(), select.POLLIN)
    while poll.poll(0):
        try:
            driver.pgconn.consume_input()
        except psycopg.OperationalError:
            return True
        driver.pgconn.is_busy()  # reads a notice
    return False


def driver_connection(connection: Connection) -> psycopg.Connection[Any]:
    """Return the psycopg connection of a SQLAlchemy connection."""
    return cast("Any", connection.connection.driver_connection)


_SUCCESSFUL: Final = (ExecStatus.COMMAND_OK, ExecStatus.TUPLES_OK)
_SQLSTATE: Final = psycopg.pq.DiagnosticField.SQLSTATE


SESSION_SETTINGS: Final = (
    # Source: postgresql.org, "Client Connection Defaults", "Write Ahead Log"; libpq, "Parameter Key Words"
    # name, value, why
    ("idle_in_transaction_session_timeout", "10s"),  # a process that hangs in a transaction delays reads of the others
    ("lock_timeout", "8s"),  # a lock that is not obtained is a defect of ours, and becomes visible
    ("timezone", "UTC"),
    ("enable_seqscan", "off"),  # plans made while a table is small are kept while it grows (decision 0109)
    ("client_min_messages", "warning"),  # a warning reports that a commit is on one server only
)
CONNECT_PARAMETERS: Final = {  # an unreachable server is noticed within seconds
    "connect_timeout": 5,
    "tcp_user_timeout": 10_000,
    "keepalives_idle": 5,
    "keepalives_interval": 2,
    "keepalives_count": 3,
    "application_name": "waypost",
}

REQUIRE_FLUSH: Final = (
    "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
)
"""Without waiting for its flush, a commit would be no acknowledgement, whatever the server's default is."""

POOLER_ERROR: Final = (
    "database_url leads to a pooler that changes the server connection between transactions (transaction or "
    "statement pooling); Waypost needs sessions: connect to the server itself, or set the pooler to session "
    "pooling (PgBouncer: pool_mode = session)"
)
_SERVER_PID: Final = "SELECT pg_backend_pid()"
_INTERLEAVINGS: Final = 5
"""Other clients of the pooler may take or return server connections between two of our statements."""
_STATEMENT_POOLING_SQLSTATES: Final = ("08P01",)  # PgBouncer's for BEGIN


def connect(url: str) -> psycopg.Connection[Any]:
    """Return a connection, without settings of ours: a pooler might give them to another client."""
    url_parameters = conninfo_to_dict(url)
    parameters = {**CONNECT_PARAMETERS, **url_parameters}
    if "," in str(parameters.get("host", "")):
        parameters.setdefault("target_session_attrs", "read-write")
    return psycopg.connect(**cast("Any", parameters))


def set_up_session(connection: psycopg.Connection[Any]) -> None:
    """Set what every session of the service has; by a statement, because PgBouncer rejects the parameter `options`."""
    connection.autocommit = True
    settings = list(SESSION_SETTINGS)
    if connection.info.server_version >= 170_000:
        settings.append(("transaction_timeout", "15s"))
    connection.execute("; ".join([REQUIRE_FLUSH, *(f"SET {name} = '{value}'" for name, value in settings)]).encode())
    connection.autocommit = False


def require_session(connection: psycopg.Connection[Any], url: str) -> None:
    """Return if a connection keeps its server process from one transaction to the next.

    A server sends its pid when a client connects. A pooler that assigns a server connection to each transaction
    cannot know it, so only where it differs the rest is examined, with a second connection: whatever size and order
    the pool has, either the first one's next transaction has another server process, or the second one gets the
    first one's.

    Raises:
        WrongStore: it does not keep it; nothing was set or written.
    """
    connection.autocommit = True
    pid = _server_pid(connection)
    if pid == connection.info.backend_pid:
        return
    with connect(url) as other:
        try:
            is_kept = all(_is_kept(connection, other, pid) for _ in range(_INTERLEAVINGS))
        except psycopg.Error as error:
            if error.sqlstate not in _STATEMENT_POOLING_SQLSTATES:
                raise
            is_kept = False
    if not is_kept:
        raise WrongStore(POOLER_ERROR)


def send_notification(connection: psycopg.Connection[Any], channel: str, payload: str) -> None:
    """Notify all who listen on a channel, in a transaction of its own.

    Through libpq: a cursor costs more than the rest of a notification, and there may be hundreds a second.

    Raises:
        psycopg.Error: the connection broke, or the server rejected it; the notification may be lost.
    """
    result = connection.pgconn.exec_params(b"SELECT pg_notify($1, $2)", [channel.encode(), payload.encode()])
    if result.status != ExecStatus.TUPLES_OK:
        raise psycopg.errors.error_from_result(result)


def read_notifications(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Yield the payloads that have arrived on a connection, and wait for none; through libpq, as they are sent.

    Raises:
        psycopg.Error: the connection broke.
    """
    connection.pgconn.consume_input()
    while (notified := connection.pgconn.notifies()) is not None:
        yield notified.extra.decode()


def check_server(connection: Connection, *, needed_connections: int = 0) -> None:
    """Reject a server that is too old; warn about one that cannot preserve or serve what is required.

    Args:
        needed_connections: how many connections the processes that were started together open.

    Raises:
        WrongStore: it is too old.
    """
    version = int(connection.exec_driver_sql("SHOW server_version_num").scalar_one())
    if version < 140_000:
        raise WrongStore(f"this PostgreSQL has version {version // 10_000}; waypost works on 14 and newer")
    standbys = connection.exec_driver_sql("SHOW synchronous_standby_names").scalar_one()
    if standbys and connection.exec_driver_sql("SHOW synchronous_commit").scalar_one() == "local":
        log("store").warning(
            "this PostgreSQL has synchronous standbys and does not wait for them (synchronous_commit = local): "
            "what is acknowledged can be lost with this server"
        )
    if connection.exec_driver_sql("SHOW fsync").scalar_one() == "off":
        log("store").warning(
            "this PostgreSQL does not flush (fsync = off): what is acknowledged can be lost with the power"
        )
    allowed = count_server_connections(connection).allowed
    if needed_connections > allowed:
        log("store").warning(
            "this PostgreSQL allows fewer connections than these processes may open: raise max_connections (or the "
            "limit of the role or the database), or set database_connections or workers lower",
            allowed=allowed,
            needed=needed_connections,
        )


def _is_kept(connection: psycopg.Connection[Any], other: psycopg.Connection[Any], pid: int) -> bool:
    """Return True if a connection still has this server process while the other one is in a transaction."""
    if _server_pid(connection) != pid:
        return False
    with other.transaction():  # it holds the server connection that it gets
        return _server_pid(other) != pid and _server_pid(connection) == pid


def _server_pid(connection: psycopg.Connection[Any]) -> int:
    row = connection.execute(_SERVER_PID, prepare=False).fetchone()
    return int(row[0]) if row is not None else 0
