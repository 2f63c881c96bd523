"""The table of rows: each fault, its engines, and what it needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal

from crashes import faults
from crashes.fault_context import FaultContext, FaultResult

Engine = Literal["sqlite", "postgresql"]
Needs = Literal["disk", "clock", "network", "proxy", "trace", "standby", "many"]
BOTH: Final[tuple[Engine, ...]] = ("sqlite", "postgresql")
SERVER: Final[tuple[Engine, ...]] = ("postgresql",)


@dataclass(frozen=True, slots=True)
class Row:
    """One row: a kind of fault.

    Attributes:
        name: its name in `--rows`.
        title: its title in the table.
        engines: the engines on which it runs.
        cause: causes the fault once.
        needs: what its environment has in addition to the cluster; None for nothing.
        may_log: true if the service has to log errors of this fault.
    """

    name: str
    title: str
    engines: tuple[Engine, ...]
    cause: Callable[[FaultContext], Awaitable[FaultResult]]
    needs: Needs | None
    may_log: bool


# fmt: off
ROWS: Final = (  # Source: decision 0047
    #   name        title                                        engines  strike                    needs          may log
    Row("service",  "kill -9 the service",                       BOTH,    faults.kill_service,      None,          False),
    Row("worker",   "kill -9 one process of two, mid-send",      SERVER,  faults.kill_worker,       "many",        False),
    Row("database", "kill -9 PostgreSQL",                        SERVER,  faults.kill_database,     None,          True),
    Row("standby",  "kill -9 the primary, promote the standby",  SERVER,  faults.promote_standby,   "standby",     True),
    Row("disk",     "fill the disk of the store",                BOTH,    faults.fill_disk,         "disk",        True),
    Row("operator", "stop the operator: paused, then killed",    BOTH,    faults.stop_operator,     None,          False),
    Row("receiver", "stop the receiver: paused, then killed",    BOTH,    faults.stop_receiver,     None,          False),
    Row("clock",    "jump the service's clock by hours",         BOTH,    faults.jump_clock,        "clock",       False),
    Row("network",  "cut the network between two processes",     BOTH,    faults.cut_network,      "network",     True),
    Row("reset",    "reset every connection between two",        BOTH,    faults.reset_connections, "proxy",  True),
    Row("power",    "trace: no response is sent before a flush", BOTH,    faults.trace_only,        "trace",       False),
)
# fmt: on
