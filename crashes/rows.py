"""The table of rows: what is done to the service, on which engine, and what may come of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, Literal

from crashes import faults
from crashes.scene import Scene, Struck

Engine = Literal["sqlite", "postgresql"]
Needs = Literal["disk", "clock", "network", "go-between", "trace", "standby", "many"]
BOTH: Final[tuple[Engine, ...]] = ("sqlite", "postgresql")
SERVER: Final[tuple[Engine, ...]] = ("postgresql",)


@dataclass(frozen=True, slots=True)
class Row:
    """One kind of fault.

    Attributes:
        name: for `--rows`.
        title: for the table.
        engines: where it means something.
        strike: does it once.
        needs: what its stage has beside the town; None for nothing.
        may_log: whether the fault is one of which the service has to log errors.
    """

    name: str
    title: str
    engines: tuple[Engine, ...]
    strike: Callable[[Scene], Awaitable[Struck]]
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
    Row("operator", "stop the operator: silent, then killed",    BOTH,    faults.stop_operator,     None,          False),
    Row("receiver", "stop the receiver: silent, then killed",    BOTH,    faults.stop_receiver,     None,          False),
    Row("clock",    "jump the service's clock by hours",         BOTH,    faults.jump_clock,        "clock",       False),
    Row("network",  "tear the network between two processes",    BOTH,    faults.tear_network,      "network",     True),
    Row("reset",    "break every connection between two",        BOTH,    faults.break_connections, "go-between",  True),
    Row("power",    "trace: nothing is answered before a flush", BOTH,    faults.only_trace,        "trace",       False),
)
# fmt: on
