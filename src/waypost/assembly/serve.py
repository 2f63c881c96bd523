"""`waypost serve`: the service alone, for real traffic. `waypost simulator`: the other party alone."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from waypost.assembly import demo
from waypost.assembly.clock_file import kept_clock
from waypost.assembly.servers import HttpServer, bind, hear_signals, port_of, settle_memory
from waypost.assembly.service import Waypost
from waypost.base.clock import Clock
from waypost.base.ids import Ids, RandomIds
from waypost.base.seals import hash_of
from waypost.base.travel import Travel
from waypost.config import Settings
from waypost.simulator import Simulator, SimulatorSettings, read_scenario
from waypost.store.engines.sqlite import take_lock
from waypost.store.kind import check_real

Ready = Callable[[str], None]
"""Called once with the address at which requests are answered."""


class NotFit(Exception):
    """A setting is missing, or one is known to everybody; the text says the remedy."""


async def serve(settings: Settings, clock: Clock, ids: Ids, *, ready: Ready) -> None:
    """Run the service until a signal, then stop in order: doors, stages, leases, store.

    Raises:
        NotFit: a setting is missing or known.
        PortInUse: somebody else listens there.
        StoreInUse: another process has the store open.
        WrongStore: the store is not for real traffic.
    """
    if settings.secret_key is None:
        raise NotFit(
            "secret_key is not set: set WAYPOST_SECRET_KEY to 64 random hex digits "
            "and keep it, because sealed secrets can be opened with no other"
        )
    if settings.secret_key == demo.INSTANCE_KEY or settings.admin_token == demo.ADMIN_TOKEN:
        raise NotFit(
            "secret_key or admin_token is the demonstration's, which everybody knows; set others"
        )
    told = hear_signals()
    bound = bind(settings.host, settings.port, option="--port")
    waypost = Waypost(settings, clock, ids)
    await waypost.open()
    try:
        known = {hash_of(demo.API_KEY), hash_of(demo.CLIENT_SECRET)}
        await waypost.database.read(check_real, known)
        server = HttpServer(waypost.application, bound)
        await server.start()
        waypost.start()
        settle_memory()
        ready(f"http://{settings.host}:{port_of(bound)}")
        await told.wait()
        await server.stop()
        await waypost.drain()
    finally:
        await waypost.close()


async def simulate(
    settings: SimulatorSettings,
    host: str,
    port: int,
    *,
    ready: Ready,
    scenario: Path | None = None,
) -> None:
    """Run the simulator alone until a signal; its clock can be moved, and is kept beside its file.

    Args:
        settings: the simulator's.
        host: to listen on.
        port: 0 takes a free one.
        ready: called once it answers.
        scenario: a file of faults to arm before anything is answered.

    Raises:
        PortInUse: somebody else listens there.
        StoreInUse: another process has the simulator's file open.
        WrongScenario: the file says something that no fault can have.
    """
    armed = None if scenario is None else read_scenario(scenario)
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
                await simulator.arm(armed)
            server = HttpServer(simulator.application, bound)
            await server.start()
            settle_memory()
            ready(f"http://{host}:{port_of(bound)}")
            await told.wait()
            await server.stop()
        finally:
            await simulator.close()
