"""The connections that a PostgreSQL server allows and has; only for engines whose store is one."""

from dataclasses import dataclass
from typing import Final

from sqlalchemy import Connection, text

_COUNTS: Final = text("""
    SELECT least(
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
            - coalesce(current_setting('reserved_connections', true)::int, 0),
        (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = session_user),
        (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
""")  # Source: postgresql.org, "Connections and Authentication"; `least` ignores nulls


@dataclass(frozen=True, slots=True)
class ServerConnections:
    """Connections of a server.

    Attributes:
        allowed: to our role and database; all clients share them.
        used: by all clients.
    """

    allowed: int
    used: int


def count_server_connections(connection: Connection) -> ServerConnections:
    """Return how many connections the server allows, and how many it has now."""
    allowed, used = connection.execute(_COUNTS).one()
    return ServerConnections(allowed, used)
