"""How a town is laid out: where each party lives, how it is started, what they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final


@dataclass(frozen=True, slots=True)
class Site:
    """Where one party of a town lives, and how it is started.

    Attributes:
        host: where it listens, and where the others find it.
        prefix: words before its command: another network, a tracer.
        variables: of its environment, beside those that every town needs.
    """

    host: str = "127.0.0.1"
    prefix: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])


HERE: Final = Site()


@dataclass(frozen=True, slots=True)
class Plan:
    """How a town is laid out.

    Attributes:
        settings: of the service, beside those that every town needs.
        database_url: None for SQLite in a folder of the town.
        stored_url: where what is stored is looked up; `database_url` unless set.
        services: how many `serve` processes share the store, each with a port of its own.
        workers: how many processes each of them starts for itself.
        data: the service's folder; one of the town's by default.
        service, operator, receiver: where they live.
        seen_from_outside: the host under which the operator finds the service.
        operator_port, receiver_port: where they listen; free ones by default.
        operator_seen_at, receiver_seen_at: ports of go-betweens under which the service finds them.
    """

    settings: Mapping[str, str] = field(default_factory=dict[str, str])
    database_url: str | None = None
    stored_url: str | None = None
    services: int = 1
    workers: int = 1
    data: Path | None = None
    service: Site = HERE
    operator: Site = HERE
    receiver: Site = HERE
    seen_from_outside: str = "127.0.0.1"
    operator_port: int | None = None
    receiver_port: int | None = None
    operator_seen_at: int | None = None
    receiver_seen_at: int | None = None
