"""The faults, one function each: each disrupts the running cluster and reports what it affected."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import time
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from crashes.fault_context import OPERATOR_TIMEOUT_S, FaultContext, FaultResult, record_fault
from crashes.postgres import Postgres
from crashes.processes import NotInTime

DOWN_S: Final = 1.0
"""How long a killed process stays down."""
PAUSED_S: Final = 4.0
"""How long a process is paused: longer than the timeout of a call to the operator."""
FULL_S: Final = 2.0
FILL_TIMEOUT_S: Final = 15
"""How long to wait until a full disk causes the first failure."""
CUT_S: Final = 4.0
CLOCK_OFFSETS_H: Final = (3, -2, 0)
"""Offsets of the service's clock from the true time after each jump."""

MAX_PAUSES = 20


async def kill_service(context: FaultContext) -> FaultResult:
    """Kill the service with `kill -9` and start it again on the same store and port."""
    cluster, pending = context.cluster, 0
    for _ in range(MAX_PAUSES):  # what was in flight may be done by the time of the kill: it is paused before one looks
        await context.wait_in_flight()
        cluster.service.pause()
        pending = context.load.pending
        if pending or cluster.store.in_flight():
            break
        cluster.service.resume()
    cluster.service.kill()
    in_flight = frozenset(cluster.store.in_flight())
    result = record_fault(len(in_flight) + pending, f"{len(in_flight)} in flight, {pending} without response",
                  in_flight=in_flight, waves=1)  # fmt: skip
    cluster.service.start()
    await cluster.wait_ready(cluster.service)
    return result


async def kill_worker(context: FaultContext) -> FaultResult:
    """Kill one of several processes that share a store while it is sending."""
    cluster = context.cluster
    before = await context.wait_in_flight()
    victim = cluster.services[context.nth % len(cluster.services)]
    pending = context.load.pending
    if cluster.layout.workers > 1:
        os.kill(find_sending_worker(victim.pid, urlsplit(cluster.service_graph_url).port or 0), signal.SIGKILL)
    else:
        victim.kill()
    in_flight = frozenset(await asyncio.to_thread(cluster.store.in_flight)) | before
    result = record_fault(len(in_flight) + pending, f"{len(in_flight)} in flight, {pending} without response", waves=1)
    if cluster.layout.workers == 1:
        await asyncio.sleep(DOWN_S)  # the other processes have to continue without it
        victim.start()
        await cluster.wait_ready(victim)
    return result


def find_sending_worker(pid: int, operators_port: int) -> int:
    """Return the pid of the child process with the most connections to the operator."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    sockets = {f"socket:[{field[9]}]" for field in fields if field[2].endswith(f":{operators_port:04X}")}
    started = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()

    def connections(worker: str) -> int:
        open_files = Path(f"/proc/{worker}/fd").iterdir()
        return sum(file.readlink().name in sockets for file in open_files)

    return int(max(started, key=connections))


async def kill_database(context: FaultContext) -> FaultResult:
    """Kill PostgreSQL's postmaster and all its processes, and start it again."""
    in_flight = await context.wait_in_flight()
    pending = context.load.pending
    server = context.servers[0]
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(DOWN_S)
    await asyncio.to_thread(server.start)
    return record_fault(len(in_flight) + pending, f"{len(in_flight)} in flight, {pending} without response", waves=1)


async def promote_standby(context: FaultContext) -> FaultResult:
    """Kill the primary, promote its synchronous standby, and rebuild the killed server as the next standby."""
    in_flight = await context.wait_in_flight()
    pending = context.load.pending
    primary, standby = context.servers
    if not await asyncio.to_thread(primary.has_sync_standby):
        raise NotInTime("the standby does not follow synchronously")
    await asyncio.to_thread(primary.kill)
    await context.cluster.wait_not_ready()
    await asyncio.to_thread(standby.promote)
    result = record_fault(len(in_flight) + pending, f"{len(in_flight)} in flight, {pending} without response", waves=1)
    context.cluster.read_store_from(standby.url)
    await asyncio.to_thread(_rebuild_standby, primary, standby)
    context.servers.reverse()
    return result


def _rebuild_standby(killed: Postgres, primary: Postgres) -> None:
    """Rebuild the killed server as a standby on an empty disk: its data is lost with the machine."""
    killed.delete_data()
    start_replication(primary, killed)


def start_replication(primary: Postgres, standby: Postgres) -> None:
    """Start synchronous replication; return once no commit can be lost with the primary."""
    standby.clone_primary(primary)
    standby.start()
    primary.require_standby()
    deadline_s = time.monotonic() + 20
    while not primary.has_sync_standby():
        if time.monotonic() > deadline_s:
            raise NotInTime(f"the standby does not follow\n{standby.child.last_lines()}")
        time.sleep(0.05)


async def fill_disk(context: FaultContext) -> FaultResult:
    """Fill the disk of the store until a request fails, keep it full for a while, and free the space again."""
    if context.disk is None:
        return await _limit_files(context)
    errors_before, deadline_s = context.load.server_errors, time.monotonic() + FILL_TIMEOUT_S
    ballast = context.disk / "ballast"
    full_s: float | None = None
    try:
        with ballast.open("wb") as file:
            size = 0
            while full_s is None or time.monotonic() < full_s + FULL_S:
                size = _fill(file.fileno(), size)
                if full_s is None and context.load.server_errors > errors_before:
                    full_s = time.monotonic()
                if time.monotonic() > deadline_s:
                    break
                await asyncio.sleep(0.005)
    finally:
        ballast.unlink()
    hit = context.load.server_errors - errors_before
    result = record_fault(hit, f"{hit} responses with status 500", waves=1)
    for server in context.servers:
        await asyncio.to_thread(server.wait_ready)
    return result


async def _limit_files(context: FaultContext) -> FaultResult:
    """Prevent the files of the service from growing for a while, where no disk can be mounted."""
    errors_before = context.load.server_errors
    pid = context.cluster.service.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    log = max(path.stat().st_size for path in context.folder.rglob("waypost.db-wal"))
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (log, hard))
    try:
        for _ in range(FILL_TIMEOUT_S * 100):  # writes succeed until the log has no space left
            if context.load.server_errors > errors_before:
                break
            await asyncio.sleep(0.01)
        await asyncio.sleep(FULL_S)
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
    hit = context.load.server_errors - errors_before
    return record_fault(hit, f"files limited, {hit} responses with status 500", waves=1)


def _fill(file: int, size: int) -> int:
    """Allocate all free space; return the new size."""
    step = 1 << 26
    while step >= 4096:
        try:
            os.posix_fallocate(file, size, step)
            size += step
        except OSError:
            step //= 2
    return size


async def stop_operator(context: FaultContext) -> FaultResult:
    """Pause the operator for a while, or kill it and start it again on its file."""
    cluster = context.cluster
    in_flight = await context.wait_in_flight()
    if context.nth % 2:
        cluster.simulator.kill()
        await asyncio.sleep(DOWN_S)
        result = record_fault(len(in_flight), f"killed, {len(in_flight)} in flight", waves=1)
        await cluster.restart_simulator()
        return result
    cluster.simulator.pause()
    await asyncio.sleep(PAUSED_S)
    stuck = len(await asyncio.to_thread(cluster.store.in_flight))
    cluster.simulator.resume()
    waves = 1 + int(PAUSED_S / OPERATOR_TIMEOUT_S)
    return record_fault(stuck + len(in_flight), f"paused, {stuck} in flight at the end", waves=waves)


async def stop_receiver(context: FaultContext) -> FaultResult:
    """Pause the receiver for a while, or kill it and start it again."""
    cluster = context.cluster
    if context.nth % 2:
        cluster.receiver.kill()
        await asyncio.sleep(DOWN_S)
        queued = (await asyncio.to_thread(cluster.store.depths)).get("callbacks", 0)
        await cluster.restart_receiver()
        return record_fault(queued, f"killed, {queued} callbacks queued")
    cluster.receiver.pause()
    await asyncio.sleep(PAUSED_S)
    queued = (await asyncio.to_thread(cluster.store.depths)).get("callbacks", 0)
    cluster.receiver.resume()
    return record_fault(queued, f"paused, {queued} callbacks queued")


async def jump_clock(context: FaultContext) -> FaultResult:
    """Move the service's clock by hours, forwards or backwards, while it runs, and leave it there.

    Every third time the service is killed as well, and starts with times written by a clock that was
    ahead.
    """
    assert context.clock is not None, "the clock of this row cannot be moved"
    cluster = context.cluster
    hours = CLOCK_OFFSETS_H[context.nth % len(CLOCK_OFFSETS_H)]
    in_flight = await context.wait_in_flight()
    queued = sum((await asyncio.to_thread(cluster.store.depths)).values())  # each has a due time
    context.clock.write_text(f"{3600 * hours:+d}\n")
    if restarts := hours == 0:
        cluster.service.kill()
        in_flight |= frozenset(cluster.store.in_flight())
    result = record_fault(1, "")
    if restarts:
        cluster.service.start()
        await cluster.wait_ready(cluster.service)
    actual_h = 0.0
    deadline_s = time.monotonic() + 5
    while abs(actual_h - hours) > 0.05 and time.monotonic() < deadline_s:
        actual_h = (await cluster.service_time_s() - time.time()) / 3600
        await asyncio.sleep(0.2)
    hit = max(queued, len(in_flight)) if abs(actual_h - hours) <= 0.05 else 0
    description = (
        f"clock at {actual_h:+.1f} h, {queued} queued, {len(in_flight)} in flight{', restarted' if restarts else ''}"
    )
    return FaultResult(hit, description, result.ended_s, result.ended_ms, waves=1)


async def cut_network(context: FaultContext) -> FaultResult:
    """Drop all packets between the service and one other process for a while, without an error."""
    name, link = list(context.links.items())[context.nth % len(context.links)]
    in_flight = await context.wait_in_flight()
    await link.cut()
    await asyncio.sleep(CUT_S)
    if name == "the database":
        stuck = context.load.pending
    else:
        depths = await asyncio.to_thread(context.cluster.store.depths)
        stuck = depths.get("callbacks" if name == "the receiver" else "outbound", 0)
    await link.restore()
    waves = 1 + int(CUT_S / OPERATOR_TIMEOUT_S)
    return record_fault(stuck, f"{name}: {len(in_flight)} in flight before, {stuck} stuck at the end", waves=waves)


async def reset_connections(context: FaultContext) -> FaultResult:
    """Reset every connection between the service and one other process."""
    name, link = list(context.links.items())[context.nth % len(context.links)]
    in_flight = await context.wait_in_flight()
    await link.reset()
    return record_fault(len(in_flight), f"{name}: {len(in_flight)} in flight", waves=1)


async def trace_only(_scene: FaultContext) -> FaultResult:
    """Cause no fault: the traced system calls are checked afterwards."""
    return record_fault(1, "traced")
