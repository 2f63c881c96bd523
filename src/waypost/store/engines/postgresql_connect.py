"""Opens connections to PostgreSQL: parameters, settings of each session, and checks of the server and of what is before it."""

from typing import Any, Final, cast

import psycopg
from psycopg.conninfo import conninfo_to_dict
from sqlalchemy import Connection

from waypost.base.telemetry.logs import log
from waypost.store.connections.server import count_server_connections
from waypost.store.contract import WrongStore

SESSION_SETTINGS: Final = (  # Source: postgresql.org, "Client Connection Defaults", "Write Ahead Log"; libpq, "Parameter Key Words"
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


def check_server(connection: Connection, *, needed_connections: int = 0) -> None:
    """Reject a server that is too old; warn about one that cannot preserve or serve what is required.

    Args:
        connection: to the server.
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
