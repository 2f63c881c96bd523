"""Connections to PostgreSQL: how many a process opens, by its stages and a setting, and how many the server allows."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:  # slow to import, and every command that reads settings reads this module
    from sqlalchemy import Connection


@dataclass(frozen=True, slots=True)
class ConnectionBudget:
    """The connections of one process, by their use. Each is opened when it is first needed, and kept."""

    writers: int = 2  # for writes; the second is for writes of the queues' stages, so that clients do not wait for them
    readers: int = 4  # for reads at the same time
    background: int = 1  # for deleting expired data; without it a writer deletes it, a little at a time
    notifications: int = 2  # one for LISTEN, one for NOTIFY

    @property
    def total(self) -> int:
        """All of them."""
        return self.writers + self.readers + self.background + self.notifications

    def describe(self) -> str:
        """Return it as text, such as `at most 9 (2 writers, 4 readers, 1 background, 2 notifications)`."""
        counts = (
            f"{self.writers} writer{'' if self.writers == 1 else 's'}",
            f"{self.readers} reader{'' if self.readers == 1 else 's'}",
            *([f"{self.background} background"] if self.background else []),
            f"{self.notifications} notifications",
        )
        return f"at most {self.total} ({', '.join(counts)})"


# fmt: off
ROLE_BUDGETS: Final = (  # the first whose stages are all that a process runs; more stages need no more than the last
    #  stages                                         connections
    (("api",),                                        ConnectionBudget(writers=1, readers=2)),
    (("dispatch", "callbacks"),                       ConnectionBudget(writers=1)),  # no client waits for its writes
    (("api", "dispatch", "events", "callbacks"),      ConnectionBudget()),
)
REDUCTIONS: Final = (  # in this order, until the bound is met: what costs least first
    {"readers": 3}, {"readers": 2}, {"background": 0}, {"readers": 1}, {"writers": 1},
)
# fmt: on
MIN_CONNECTIONS: Final = ConnectionBudget(writers=1, readers=1, background=0).total
"""With fewer, a process could not write, read and be notified."""


def connection_budget(stages: Iterable[str], *, at_most: int | None = None) -> ConnectionBudget:
    """Return the connections of a process that runs these stages.

    Args:
        at_most: at least `MIN_CONNECTIONS`; None: what the stages need.
    """
    run = set(stages)
    budget = next((budget for names, budget in ROLE_BUDGETS if run <= set(names)), ConnectionBudget())
    for reduction in REDUCTIONS:
        if at_most is None or budget.total <= at_most:
            break
        counts = {name: min(count, getattr(budget, name)) for name, count in reduction.items()}
        budget = replace(budget, **counts)
    return budget


_COUNTS: Final = """
    SELECT least(
        current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
            - coalesce(current_setting('reserved_connections', true)::int, 0),
        (SELECT nullif(rolconnlimit, -1) FROM pg_roles WHERE rolname = session_user),
        (SELECT nullif(datconnlimit, -1) FROM pg_database WHERE datname = current_database())),
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
"""  # Source: postgresql.org, "Connections and Authentication"; `least` ignores nulls


@dataclass(frozen=True, slots=True)
class ServerConnections:
    """Connections of a server."""

    allowed: int  # to our role and database; all clients share them
    used: int  # by all clients


def count_server_connections(connection: "Connection") -> ServerConnections:
    """Return how many connections the server allows, and how many it has now."""
    allowed, used = connection.exec_driver_sql(_COUNTS).one()
    return ServerConnections(allowed, used)
