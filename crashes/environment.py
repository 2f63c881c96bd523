"""The environment of a row: the servers, disks, networks, clocks and tracers that it needs, and the cluster."""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, Generator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from crashes.cluster import ClusterUnderTest
from crashes.fault_context import OPERATOR_TIMEOUT_S, MissingRequirement
from crashes.faults import start_replication
from crashes.layout import LOCAL, ClusterLayout, Placement
from crashes.network_links import HoldingProxy, NetworkLink, NetworkNamespace, can_create_namespaces
from crashes.postgres import Postgres, build_url
from crashes.processes import free_port
from crashes.rows import Engine, Row
from crashes.traces import CALLS, LONGEST
from tests.support.postgres import binaries

DISK_MB: Final = 512
"""Size of the disk that is to be filled: just enough for the store and logs of a run."""
SETTINGS: Final = {"WAYPOST_OPERATOR_TIMEOUT_S": str(OPERATOR_TIMEOUT_S)}


@dataclass
class RowEnvironment:
    """The cluster of a row, and what else the row needs."""

    cluster: ClusterUnderTest
    servers: list[Postgres] = field(default_factory=list[Postgres])
    links: dict[str, NetworkLink] = field(default_factory=dict[str, NetworkLink])
    clock: Path | None = None
    disk: Path | None = None
    traces: list[Path] = field(default_factory=list[Path])
    note: str = ""


@contextlib.asynccontextmanager
async def open_environment(row: Row, engine: Engine, folder: Path) -> AsyncGenerator[RowEnvironment]:
    """Set everything up, and remove it again, however the row ends.

    Raises:
        MissingRequirement: this machine lacks a requirement of the row.
    """
    async with contextlib.AsyncExitStack() as stack:
        layout, links, note = ClusterLayout(settings=SETTINGS), dict[str, NetworkLink](), ""
        clock = disk = None
        traces = list[Path]()
        databases = LOCAL
        match row.needs:
            case "disk":
                disk = stack.enter_context(_disk(folder)) if _can_mount() else None
                note = "" if disk else "no permission to mount: file sizes are limited instead"
                if disk is None and engine == "postgresql":
                    raise MissingRequirement("needs permission to mount a disk in memory")
                layout = replace(layout, data=disk / "service" if disk else None)
            case "clock":
                clock = folder / "clock"
                layout = replace(layout, service=Placement(variables=_clock_variables(clock)))
            case "trace":
                traces = [folder / "trace-service"]
                layout = replace(layout, service=Placement(prefix=_tracer(traces[0])))
                if engine == "postgresql":
                    traces.append(folder / "trace-server")
                    databases = Placement(prefix=_tracer(traces[1]))
            case "many":
                layout = replace(layout, workers=2)
            case "network" if await asyncio.to_thread(can_create_namespaces):
                networks = [await _network(stack, number) for number in range(3)]
                links.update({"the operator": networks[0], "the receiver": networks[1]})
                databases = Placement(networks[2].far, networks[2].prefix)
                if engine == "postgresql":
                    links["the database"] = networks[2]
                layout = replace(
                    layout,
                    operator=Placement(networks[0].far, networks[0].prefix),
                    receiver=Placement(networks[1].far, networks[1].prefix),
                    external_host=networks[0].near,
                )
            case "network":
                note = "no permission to create networks: a proxy holds back the bytes instead"
            case _:
                pass
        servers = await _servers(stack, row, engine, disk or folder, folder, databases)
        if servers:
            layout = replace(layout, database_url=build_url(*servers), reader_url=servers[0].url)
        if row.needs in ("network", "proxy") and not links:
            layout, links = await _add_proxies(stack, layout, servers)
        cluster = ClusterUnderTest(folder, layout)
        stack.push_async_callback(cluster.close)
        if clock is not None:
            clock.write_text("+0\n")
        await cluster.open()
        yield RowEnvironment(cluster, servers, links, clock, disk, traces, note)


async def _servers(
    stack: contextlib.AsyncExitStack, row: Row, engine: Engine, data: Path, logs: Path, placement: Placement
) -> list[Postgres]:
    if engine == "sqlite":
        return []
    try:
        binaries()
    except RuntimeError as error:
        raise MissingRequirement("needs the wheel with PostgreSQL's binaries") from error
    servers = [
        Postgres(data / name, host=placement.host, prefix=placement.prefix, log=logs)
        for name in (("primary", "standby") if row.needs == "standby" else ("server",))
    ]
    for server in servers:
        stack.callback(server.close)
    await asyncio.to_thread(servers[0].initialize)
    await asyncio.to_thread(servers[0].start)
    servers[0].create_database()
    if len(servers) > 1:
        await asyncio.to_thread(start_replication, *servers)
    return servers


async def _network(stack: contextlib.AsyncExitStack, number: int) -> NetworkNamespace:
    namespace = NetworkNamespace(number)
    stack.push_async_callback(namespace.close)
    namespace.open()
    return namespace


async def _add_proxies(
    stack: contextlib.AsyncExitStack, layout: ClusterLayout, servers: list[Postgres]
) -> tuple[ClusterLayout, dict[str, NetworkLink]]:
    ports = (free_port(), free_port())
    links: dict[str, HoldingProxy] = {
        "the operator": HoldingProxy("127.0.0.1", ports[0]),
        "the receiver": HoldingProxy("127.0.0.1", ports[1]),
    }
    layout = replace(
        layout,
        operator_port=ports[0],
        receiver_port=ports[1],
        operator_proxy_port=links["the operator"].port,
        receiver_proxy_port=links["the receiver"].port,
    )
    if servers:
        links["the database"] = HoldingProxy(servers[0].host, servers[0].port)
        url = servers[0].url.replace(f":{servers[0].port}/", f":{links['the database'].port}/")
        layout = replace(layout, database_url=url)
    for link in links.values():
        await link.open()
        stack.push_async_callback(link.close)
    return layout, dict(links)


def _can_mount() -> bool:
    return os.getuid() == 0 and shutil.which("mount") is not None


@contextlib.contextmanager
def _disk(folder: Path) -> Generator[Path]:
    """Mount a small disk in memory below the folder; yield its path."""
    path = folder / "disk"
    path.mkdir()
    options = f"size={DISK_MB}m,mode=0711"
    completed_process = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(path)], capture_output=True, check=False
    )
    if completed_process.returncode:
        raise MissingRequirement(
            f"needs permission to mount a disk in memory: {completed_process.stderr.decode().strip()}"
        )
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", str(path)], check=False)


def clock_library() -> Path:
    """Return the library that changes a process's clock when preloaded.

    Raises:
        MissingRequirement: it is not installed.
    """
    spec = importlib.util.find_spec("libfaketime")
    library = None
    if spec is not None and spec.origin is not None:
        library = next(Path(spec.origin).parent.rglob("libfaketime*.so.1"), None)
    if library is None:
        raise MissingRequirement("needs libfaketime, which is a development dependency")
    return library


def _clock_variables(clock: Path) -> dict[str, str]:
    """Return variables that set the wall clock from a file and leave the monotonic clock unchanged."""
    return {
        "LD_PRELOAD": str(clock_library()),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def _tracer(trace: Path) -> tuple[str, ...]:
    if shutil.which("strace") is None:
        raise MissingRequirement("needs strace")
    return (*("strace", "-D", "-f", "--seccomp-bpf", "-qq", "-y", "-s", str(LONGEST)),
            *("-e", f"trace={CALLS}", "-e", "signal=none", "-o", str(trace)))  # fmt: skip
