"""The layout of a cluster: where each process runs, how it is started, what they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Placement:
    """The placement of one process: where it runs, and how it is started.

    Attributes:
        host: where it listens, and where the others reach it.
        prefix: arguments before its command: another network, a tracer.
        variables: environment variables in addition to those of every cluster.
    """

    host: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


LOCAL: Final = Placement()


@dataclass(frozen=True, slots=True)
class ClusterLayout:
    """The layout of a cluster.

    Attributes:
        settings: settings of the service in addition to those of every cluster.
        database_url: None for SQLite in a folder of the cluster.
        reader_url: the URL from which the tests read the store; `database_url` unless set.
        services: number of `serve` processes that share the store, each with its own port.
        workers: number of worker processes of each.
        data: the service's folder; one in the cluster's folder by default.
        service, operator, receiver: their placements.
        external_host: the host under which the operator reaches the service.
        operator_port, receiver_port: their ports; free ones by default.
        operator_proxy_port, receiver_proxy_port: ports of the proxies through which the service reaches them.
    """

    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    database_url: str | None = None
    reader_url: str | None = None
    services: int = 1
    workers: int = 1
    data: Path | None = None
    service: Placement = LOCAL
    operator: Placement = LOCAL
    receiver: Placement = LOCAL
    external_host: str = "127.0.0.1"
    operator_port: int | None = None
    receiver_port: int | None = None
    operator_proxy_port: int | None = None
    receiver_proxy_port: int | None = None
