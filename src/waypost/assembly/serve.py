"""`waypost serve`: the service alone, for real traffic. `waypost simulator`: the other party alone."""

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from waypost.assembly.clock_file import kept_clock
from waypost.assembly.compatibility_check import NotFit as NotFit
from waypost.assembly.compatibility_check import check_fit
from waypost.assembly.dev import demo
from waypost.assembly.http.limits import DEFAULT_LIMITS, HttpLimits, graph_error_body, limits_of, raise_descriptor_limit
from waypost.assembly.http.servers import HttpServer, bind, hear_end_of_input, hear_signals, port_of, settle_memory
from waypost.assembly.http.sockets import take_over
from waypost.assembly.service import Waypost
from waypost.base.clock import Clock
from waypost.base.encryption import hash_of
from waypost.base.files import tighten
from waypost.base.ids import Ids, RandomIds
from waypost.base.time_travel import Travel
from waypost.config import Settings
from waypost.simulator import Simulator, SimulatorSettings, read_scenario
from waypost.store.contract import StoreAway
from waypost.store.engines.sqlite import take_lock
from waypost.store.media.folder import check_folder, name_of
from waypost.store.properties import check_real

_ADMIN: Final = "/admin"
_METRICS: Final = "/metrics"
_PROBES: Final = ("/healthz", "/readyz")
_NOT_HERE: Final = b'{"status":"error","message":"There is nothing at this path."}'


def is_administrative(path: str) -> bool:
    """True for the admin API and the metrics."""
    path = path.rstrip("/")
    return path in (_ADMIN, _METRICS) or path.startswith(f"{_ADMIN}/")


def is_for_administrators(path: str) -> bool:
    """True for what the listener of its own serves: those, and the probes."""
    return is_administrative(path) or path.rstrip("/") in _PROBES


class PathFilter:
    """An ASGI application that passes some paths on, and responds 404 to others.

    Args:
        application: that serves them.
        serves: whether a path is passed on.
    """

    def __init__(self, application: Any, serves: Callable[[str], bool]) -> None:
        self._application = application
        self._serves = serves

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Respond to one request."""
        if scope["type"] != "http" or self._serves(scope["path"]):
            await self._application(scope, receive, send)
            return
        head = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(_NOT_HERE))]
        await send({"type": "http.response.start", "status": 404, "headers": head})
        await send({"type": "http.response.body", "body": _NOT_HERE})


Ready = Callable[[str], None]
"""Called once with the address at which requests are answered."""


DOORS_S: Final = 5
"""How long a stop lets requests be answered that have been asked; of `stop_within_s`."""


@dataclass(frozen=True, slots=True)
class Worker:
    """Which of several processes this one is, of those that one supervisor has started.

    Attributes:
        number: from 1.
        socket: the descriptor of a listening socket that was handed down.
    """

    number: int
    socket: int


async def serve(settings: Settings, clock: Clock, ids: Ids, *, ready: Ready, worker: Worker | None = None) -> None:
    """Run the service until a signal, then stop in order: doors, stages, leases, store.

    Args:
        settings: fit for real traffic.
        clock: what rules follow.
        ids: for everything new.
        ready: called once it answers.
        worker: which of several; such a one stops too when the pipe from its supervisor ends.

    Raises:
        NotFit: a setting is missing or known.
        PortInUse: somebody else listens there.
        StoreAway: it cannot be reached.
        StoreInUse: another process has the store open.
        WrongStore: the store is not for real traffic.
    """
    check_fit(settings)
    await asyncio.to_thread(tighten, settings.data)
    raise_descriptor_limit()
    limits = limits_of(settings)
    told = hear_signals()
    number = 0
    if worker is None:
        bound = bind(settings.host, settings.port, option="--port")
    else:
        hear_end_of_input(told, within_s=settings.stop_within_s + 2 * DOORS_S)
        number, bound = worker.number, take_over(worker.socket)
    seen = apart = None
    more: list[HttpServer] = []
    if settings.metrics_port is not None:
        seen = bind(settings.host, settings.metrics_port + number, option="WAYPOST_METRICS_PORT")
    if settings.admin_port is not None:
        host = settings.admin_host or "127.0.0.1"
        apart = bind(host, settings.admin_port + number, option="WAYPOST_ADMIN_PORT")
    waypost = Waypost(settings, clock, ids, process=str(number))
    await waypost.open()
    try:
        known = {hash_of(demo.API_KEY), hash_of(demo.CLIENT_SECRET)}
        await waypost.database.read(check_real, known)
        if not waypost.database.sole and settings.stages != ("callbacks",):
            folder = settings.media_folder
            name = await asyncio.to_thread(name_of, folder, ids.new())
            await waypost.database.write(check_folder, folder, name)
        doors_s = min(DOORS_S, settings.stop_within_s)
        waypost.start()
        with contextlib.suppress(StoreAway):
            if not settings.hold:
                await waypost.queue.shards.keep()  # so that it is ready when it first says anything
        public: Any = waypost.application
        if apart is not None:
            more.append(HttpServer(PathFilter(public, is_for_administrators), apart, limits=limits))
            public = PathFilter(public, lambda path: not is_administrative(path))
        if seen is not None:
            more.append(HttpServer(waypost.outside.on_its_own(), seen, limits=limits))
        server = HttpServer(public, bound, stop_within_s=doors_s, limits=limits)
        waypost.outside.servers = [one.connections for one in (server, *more)]
        for one in (server, *more):
            await one.start()
        settle_memory()
        ready(f"http://{settings.host}:{port_of(bound)}")
        await told.wait()
        until_s = time.monotonic() + settings.stop_within_s
        waypost.outside.stopping()
        waypost.console.end_streams()
        await server.stop()
        await waypost.drain(within_s=max(0, until_s - time.monotonic()))
        for one in more:  # seen from outside until nothing is worked any more
            await one.stop()
    finally:
        await waypost.close()


async def simulate(
    settings: SimulatorSettings,
    host: str,
    port: int,
    *,
    ready: Ready,
    scenario: Path | None = None,
    limits: HttpLimits = DEFAULT_LIMITS,
) -> None:
    """Run the simulator alone until a signal; its clock can be moved, and is kept beside its file.

    Args:
        settings: the simulator's.
        host: to listen on.
        port: 0 takes a free one.
        ready: called once it answers.
        scenario: a file of faults to arm before anything is answered.
        limits: of connections.

    Raises:
        PortInUse: somebody else listens there.
        StoreInUse: another process has the simulator's file open.
        InvalidScenario: the file says something that no fault can have.
    """
    armed = None if scenario is None else read_scenario(scenario)
    await asyncio.to_thread(tighten, settings.path.parent)
    raise_descriptor_limit()
    told = hear_signals()
    clock = kept_clock(settings.path.parent)
    travel = Travel(clock)
    simulator = Simulator(settings, clock, RandomIds(clock), travel=travel)
    with contextlib.ExitStack() as held:
        held.callback(os.close, take_lock(settings.path))
        bound = held.enter_context(bind(host, port, option="--port"))
        try:
            await simulator.open()
            travel.sides = (simulator,)
            if armed is not None:
                await simulator.arm_scenario(armed)
            server = HttpServer(simulator.application, bound, limits=limits, error_body=graph_error_body)
            await server.start()
            settle_memory()
            ready(f"http://{host}:{port_of(bound)}")
            await told.wait()
            await server.stop()
        finally:
            await simulator.close()
