"""Setting a stage: the servers, disks, networks, clocks and tracers that a row needs, and the town among them."""

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

from crashes.faults import pair_up
from crashes.plans import HERE, Plan, Site
from crashes.postgres import Postgres, url_of
from crashes.processes import free_port
from crashes.rows import Engine, Row
from crashes.scene import OPERATOR_TIMEOUT_S, Missing
from crashes.town import Town
from crashes.traces import CALLS, LONGEST
from crashes.wires import GoBetween, Namespace, Wire, namespaces_permitted
from tests.support.postgres import binaries

DISK_MB: Final = 512
"""Of a disk that is to be filled: room for a run's store and logs, and no more."""
SETTINGS: Final = {"WAYPOST_OPERATOR_TIMEOUT_S": str(OPERATOR_TIMEOUT_S)}


@dataclass
class Stage:
    """What a row has beside its load."""

    town: Town
    servers: list[Postgres] = field(default_factory=list[Postgres])
    wires: dict[str, Wire] = field(default_factory=dict[str, Wire])
    clock: Path | None = None
    full: Path | None = None
    traces: list[Path] = field(default_factory=list[Path])
    note: str = ""


@contextlib.asynccontextmanager
async def staged(row: Row, engine: Engine, folder: Path) -> AsyncGenerator[Stage]:
    """Set everything up, and take everything down again, however the row ends.

    Raises:
        Missing: this machine has not what the row needs.
    """
    async with contextlib.AsyncExitStack() as held:
        plan, wires, note = Plan(settings=SETTINGS), dict[str, Wire](), ""
        clock = full = None
        traces = list[Path]()
        databases = HERE
        match row.needs:
            case "disk":
                full = held.enter_context(_disk(folder)) if _may_mount() else None
                note = "" if full else "no right to mount: files are limited instead"
                if full is None and engine == "postgresql":
                    raise Missing("needs the right to mount a disk in memory")
                plan = replace(plan, data=full / "service" if full else None)
            case "clock":
                clock = folder / "clock"
                plan = replace(plan, service=Site(variables=_clock_variables(clock)))
            case "trace":
                traces = [folder / "trace-service"]
                plan = replace(plan, service=Site(prefix=_tracer(traces[0])))
                if engine == "postgresql":
                    traces.append(folder / "trace-server")
                    databases = Site(prefix=_tracer(traces[1]))
            case "many":
                plan = replace(plan, workers=2)
            case "network" if await asyncio.to_thread(namespaces_permitted):
                sites = [await _network(held, number) for number in range(3)]
                wires.update({"the operator": sites[0], "the receiver": sites[1]})
                databases = Site(sites[2].far, sites[2].prefix)
                if engine == "postgresql":
                    wires["the database"] = sites[2]
                plan = replace(
                    plan,
                    operator=Site(sites[0].far, sites[0].prefix),
                    receiver=Site(sites[1].far, sites[1].prefix),
                    seen_from_outside=sites[0].near,
                )
            case "network":
                note = "no right to make networks: a go-between keeps the bytes instead"
            case _:
                pass
        servers = await _servers(held, row, engine, full or folder, folder, databases)
        if servers:
            plan = replace(plan, database_url=url_of(*servers), stored_url=servers[0].url)
        if row.needs in ("network", "go-between") and not wires:
            plan, wires = await _go_betweens(held, plan, servers)
        town = Town(folder, plan)
        held.push_async_callback(town.close)
        if clock is not None:
            clock.write_text("+0\n")
        await town.open()
        yield Stage(town, servers, wires, clock, full, traces, note)


async def _servers(
    held: contextlib.AsyncExitStack, row: Row, engine: Engine, data: Path, logs: Path, site: Site
) -> list[Postgres]:
    if engine == "sqlite":
        return []
    try:
        binaries()
    except RuntimeError as error:
        raise Missing("needs the wheel with PostgreSQL's programs") from error
    servers = [
        Postgres(data / name, host=site.host, prefix=site.prefix, log=logs)
        for name in (("primary", "standby") if row.needs == "standby" else ("server",))
    ]
    for server in servers:
        held.callback(server.close)
    await asyncio.to_thread(servers[0].make)
    await asyncio.to_thread(servers[0].start)
    servers[0].make_database()
    if len(servers) > 1:
        await asyncio.to_thread(pair_up, *servers)
    return servers


async def _network(held: contextlib.AsyncExitStack, number: int) -> Namespace:
    made = Namespace(number)
    held.push_async_callback(made.close)
    made.open()
    return made


async def _go_betweens(
    held: contextlib.AsyncExitStack, plan: Plan, servers: list[Postgres]
) -> tuple[Plan, dict[str, Wire]]:
    ports = (free_port(), free_port())
    wires: dict[str, GoBetween] = {
        "the operator": GoBetween("127.0.0.1", ports[0]),
        "the receiver": GoBetween("127.0.0.1", ports[1]),
    }
    plan = replace(
        plan,
        operator_port=ports[0],
        receiver_port=ports[1],
        operator_seen_at=wires["the operator"].port,
        receiver_seen_at=wires["the receiver"].port,
    )
    if servers:
        wires["the database"] = GoBetween(servers[0].host, servers[0].port)
        url = servers[0].url.replace(f":{servers[0].port}/", f":{wires['the database'].port}/")
        plan = replace(plan, database_url=url)
    for wire in wires.values():
        await wire.open()
        held.push_async_callback(wire.close)
    return plan, dict(wires)


def _may_mount() -> bool:
    return os.getuid() == 0 and shutil.which("mount") is not None


@contextlib.contextmanager
def _disk(folder: Path) -> Generator[Path]:
    """A small disk in memory, mounted below the folder."""
    at = folder / "disk"
    at.mkdir()
    options = f"size={DISK_MB}m,mode=0711"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(at)], capture_output=True, check=False)
    if done.returncode:
        raise Missing(f"needs the right to mount a disk in memory: {done.stderr.decode().strip()}")
    try:
        yield at
    finally:
        subprocess.run(["umount", "--lazy", str(at)], check=False)


def clock_library() -> Path:
    """Return the library that gives a process another date; to be preloaded.

    Raises:
        Missing: it is not installed.
    """
    found = importlib.util.find_spec("libfaketime")
    library = None
    if found is not None and found.origin is not None:
        library = next(Path(found.origin).parent.rglob("libfaketime*.so.1"), None)
    if library is None:
        raise Missing("needs libfaketime, which is of the development set")
    return library


def _clock_variables(clock: Path) -> dict[str, str]:
    """An environment in which the clock of rules is what a file says, and the steady clock is the machine's."""
    return {
        "LD_PRELOAD": str(clock_library()),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_CACHE_DURATION": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }


def _tracer(trace: Path) -> tuple[str, ...]:
    if shutil.which("strace") is None:
        raise Missing("needs strace")
    return (*("strace", "-D", "-f", "--seccomp-bpf", "-qq", "-y", "-s", str(LONGEST)),
            *("-e", f"trace={CALLS}", "-e", "signal=none", "-o", str(trace)))  # fmt: skip
