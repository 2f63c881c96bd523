"""The faults, one function each: what is done to a running town, and what it was seen to hit."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import time
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from crashes.postgres import Postgres
from crashes.processes import NotInTime
from crashes.scene import OPERATOR_TIMEOUT_S, Scene, Struck, over

AWAY_S: Final = 1.0
"""How long a killed party stays away."""
SILENT_S: Final = 4.0
"""How long a party that only stopped says nothing: longer than a call of the operator may take."""
FULL_FOR_S: Final = 2.0
ROOM_LASTS_S: Final = 15
"""How long a full disk may go unnoticed."""
TORN_FOR_S: Final = 4.0
HOURS: Final = (3, -2, 0)
"""Where the service's clock stands after each jump, beside the true time."""


async def kill_service(scene: Scene) -> Struck:
    """`kill -9` of the service, and its next start on the same store and port."""
    town = scene.town
    await scene.something_in_hand()
    asking = scene.load.asking
    town.service.kill()
    in_flight = frozenset(town.stored.in_flight())
    struck = over(len(in_flight) + asking, f"{len(in_flight)} in hand, {asking} unanswered",
                  in_flight=in_flight, waves=1)  # fmt: skip
    town.service.start()
    await town.is_ready(town.service)
    return struck


async def kill_worker(scene: Scene) -> Struck:
    """`kill -9` of one process of several that share a store, in the middle of sending."""
    town = scene.town
    before = await scene.something_in_hand()
    victim = town.services[scene.nth % len(town.services)]
    asking = scene.load.asking
    if town.plan.workers > 1:
        os.kill(sender_of(victim.pid, urlsplit(town.graph_seen).port or 0), signal.SIGKILL)
    else:
        victim.kill()
    in_flight = frozenset(await asyncio.to_thread(town.stored.in_flight)) | before
    struck = over(len(in_flight) + asking, f"{len(in_flight)} in hand, {asking} unanswered", waves=1)
    if town.plan.workers == 1:
        await asyncio.sleep(AWAY_S)  # the others have to go on without it
        victim.start()
        await town.is_ready(victim)
    return struck


def sender_of(pid: int, operators_port: int) -> int:
    """Of the processes that one has started, the one with the most connections to the operator."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    fields = [line.split() for line in lines]
    ours = {f"socket:[{one[9]}]" for one in fields if one[2].endswith(f":{operators_port:04X}")}
    started = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()

    def connections(worker: str) -> int:
        open_files = Path(f"/proc/{worker}/fd").iterdir()
        return sum(file.readlink().name in ours for file in open_files)

    return int(max(started, key=connections))


async def kill_database(scene: Scene) -> Struck:
    """`kill -9` of PostgreSQL's postmaster and all its processes, and its next start."""
    in_flight = await scene.something_in_hand()
    asking = scene.load.asking
    server = scene.servers[0]
    await asyncio.to_thread(server.kill)
    await asyncio.sleep(AWAY_S)
    await asyncio.to_thread(server.start)
    return over(len(in_flight) + asking, f"{len(in_flight)} in hand, {asking} unanswered", waves=1)


async def promote_standby(scene: Scene) -> Struck:
    """`kill -9` of the primary; its synchronous standby takes over, and the dead one becomes the next standby."""
    in_flight = await scene.something_in_hand()
    asking = scene.load.asking
    primary, standby = scene.servers
    if not await asyncio.to_thread(primary.has_a_standby):
        raise NotInTime("the standby does not follow synchronously")
    await asyncio.to_thread(primary.kill)
    await asyncio.to_thread(standby.promote)
    struck = over(len(in_flight) + asking, f"{len(in_flight)} in hand, {asking} unanswered", waves=1)
    scene.town.look_into(standby.url)
    await asyncio.to_thread(_follow_anew, primary, standby)
    scene.servers.reverse()
    return struck


def _follow_anew(dead: Postgres, primary: Postgres) -> None:
    """The disk of the dead server is thrown away, as that of a machine that burned."""
    dead.forget()
    pair_up(primary, dead)


def pair_up(primary: Postgres, standby: Postgres) -> None:
    """Make a synchronous pair; returns once no commit can be lost with the primary."""
    standby.follow(primary)
    standby.start()
    primary.wants_a_standby()
    until_s = time.monotonic() + 20
    while not primary.has_a_standby():
        if time.monotonic() > until_s:
            raise NotInTime(f"the standby does not follow\n{standby.child.last_lines()}")
        time.sleep(0.05)


async def fill_disk(scene: Scene) -> Struck:
    """The disk of the store is filled until something fails, stays full for a while, and gets room again."""
    if scene.full is None:
        return await _limit_files(scene)
    refused, until_s = scene.load.refused, time.monotonic() + ROOM_LASTS_S
    ballast = scene.full / "ballast"
    full_s: float | None = None
    try:
        with ballast.open("wb") as file:
            size = 0
            while full_s is None or time.monotonic() < full_s + FULL_FOR_S:
                size = _fill(file.fileno(), size)
                if full_s is None and scene.load.refused > refused:
                    full_s = time.monotonic()
                if time.monotonic() > until_s:
                    break
                await asyncio.sleep(0.005)
    finally:
        ballast.unlink()
    hit = scene.load.refused - refused
    struck = over(hit, f"{hit} answered with 500", waves=1)
    for server in scene.servers:
        await asyncio.to_thread(server.wait_ready)
    return struck


async def _limit_files(scene: Scene) -> Struck:
    """Where no disk can be mounted: no file of the service may grow for a while."""
    refused = scene.load.refused
    pid = scene.town.service.pid
    soft, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    log = max(path.stat().st_size for path in scene.folder.rglob("waypost.db-wal"))
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (log, hard))
    try:
        for _ in range(ROOM_LASTS_S * 100):  # what has room in the log is still written
            if scene.load.refused > refused:
                break
            await asyncio.sleep(0.01)
        await asyncio.sleep(FULL_FOR_S)
    finally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (soft, hard))
    hit = scene.load.refused - refused
    return over(hit, f"files limited, {hit} answered with 500", waves=1)


def _fill(file: int, size: int) -> int:
    """Take all the room there is; give the new size."""
    step = 1 << 26
    while step >= 4096:
        try:
            os.posix_fallocate(file, size, step)
            size += step
        except OSError:
            step //= 2
    return size


async def stop_operator(scene: Scene) -> Struck:
    """The operator says nothing for a while; or is killed, and starts again on its file."""
    town = scene.town
    in_flight = await scene.something_in_hand()
    if scene.nth % 2:
        town.simulator.kill()
        await asyncio.sleep(AWAY_S)
        struck = over(len(in_flight), f"killed, {len(in_flight)} in hand", waves=1)
        await town.simulator_answers_again()
        return struck
    town.simulator.pause()
    await asyncio.sleep(SILENT_S)
    stuck = len(await asyncio.to_thread(town.stored.in_flight))
    town.simulator.resume()
    waves = 1 + int(SILENT_S / OPERATOR_TIMEOUT_S)
    return over(stuck + len(in_flight), f"silent, {stuck} in hand at its end", waves=waves)


async def stop_receiver(scene: Scene) -> Struck:
    """The receiver says nothing for a while; or is killed, and starts again."""
    town = scene.town
    if scene.nth % 2:
        town.receiver.kill()
        await asyncio.sleep(AWAY_S)
        waiting = (await asyncio.to_thread(town.stored.depths)).get("callbacks", 0)
        await town.receiver_answers_again()
        return over(waiting, f"killed, {waiting} callbacks waiting")
    town.receiver.pause()
    await asyncio.sleep(SILENT_S)
    waiting = (await asyncio.to_thread(town.stored.depths)).get("callbacks", 0)
    town.receiver.resume()
    return over(waiting, f"silent, {waiting} callbacks waiting")


async def jump_clock(scene: Scene) -> Struck:
    """The service's clock jumps by hours, forwards or backwards, while it runs; and stays there.

    Every third time the service is killed as well, and starts with what a clock that ran ahead has
    written down.
    """
    assert scene.clock is not None, "no clock that can be moved"
    town = scene.town
    hours = HOURS[scene.nth % len(HOURS)]
    in_flight = await scene.something_in_hand()
    waiting = sum((await asyncio.to_thread(town.stored.depths)).values())  # all with due times
    scene.clock.write_text(f"{3600 * hours:+d}\n")
    if restarts := hours == 0:
        town.service.kill()
        in_flight |= frozenset(town.stored.in_flight())
    struck = over(1, "")
    if restarts:
        town.service.start()
        await town.is_ready(town.service)
    seen_h = 0.0
    until_s = time.monotonic() + 5
    while abs(seen_h - hours) > 0.05 and time.monotonic() < until_s:
        seen_h = (await town.date_s() - time.time()) / 3600
        await asyncio.sleep(0.2)
    hit = max(waiting, len(in_flight)) if abs(seen_h - hours) <= 0.05 else 0
    what = (
        f"its clock at {seen_h:+.1f} h, {waiting} waiting, {len(in_flight)} in hand{', restarted' if restarts else ''}"
    )
    return Struck(hit, what, struck.ended_s, struck.ended_ms, waves=1)


async def tear_network(scene: Scene) -> Struck:
    """Nothing comes through between the service and one other party for a while, and nobody is told."""
    name, wire = list(scene.wires.items())[scene.nth % len(scene.wires)]
    in_flight = await scene.something_in_hand()
    await wire.cut()
    await asyncio.sleep(TORN_FOR_S)
    if name == "the database":
        stuck = scene.load.asking
    else:
        depths = await asyncio.to_thread(scene.town.stored.depths)
        stuck = depths.get("callbacks" if name == "the receiver" else "outbound", 0)
    await wire.mend()
    waves = 1 + int(TORN_FOR_S / OPERATOR_TIMEOUT_S)
    return over(stuck, f"{name}: {len(in_flight)} in hand before, {stuck} stuck at its end", waves=waves)


async def break_connections(scene: Scene) -> Struck:
    """Every connection between the service and one other party breaks at once."""
    name, wire = list(scene.wires.items())[scene.nth % len(scene.wires)]
    in_flight = await scene.something_in_hand()
    await wire.reset()
    return over(len(in_flight), f"{name}: {len(in_flight)} in hand", waves=1)


async def only_trace(_scene: Scene) -> Struck:
    """No fault: the system calls are looked at afterwards."""
    return over(1, "traced")
