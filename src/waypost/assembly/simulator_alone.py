"""`waypost simulator`: the simulator without a service. `serve` does not load it."""

import asyncio
import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from waypost.assembly.clock_file import open_stored_clock
from waypost.assembly.http.limits import DEFAULT_LIMITS, HttpLimits, graph_error_body, raise_descriptor_limit
from waypost.assembly.http.servers import HttpServer, bind_socket, handle_stop_signals, port_of, tune_garbage_collector
from waypost.base.files import remove_others_access
from waypost.base.ids import RandomIds
from waypost.base.time_travel import TimeTravel
from waypost.simulator import Simulator, SimulatorSettings, read_scenario
from waypost.store.engines.sqlite import take_lock


async def simulate(
    settings: SimulatorSettings,
    host: str,
    port: int,
    *,
    ready: Callable[[str], None],
    scenario: Path | None = None,
    limits: HttpLimits = DEFAULT_LIMITS,
) -> None:
    """Run the simulator alone until a signal; its clock can be advanced, and is stored next to its file.

    Args:
        port: 0 takes a free one.
        ready: called once with the URL, as soon as requests are served.
        scenario: a file of faults to arm before the first request.
        limits: of connections.

    Raises:
        PortInUse: the port is in use.
        StoreInUse: another process has the simulator's file open.
        InvalidScenario: a fault in the file is not valid.
    """
    faults = None if scenario is None else read_scenario(scenario)
    await asyncio.to_thread(remove_others_access, settings.path.parent)
    raise_descriptor_limit()
    stop_event = handle_stop_signals()
    clock = open_stored_clock(settings.path.parent)
    travel = TimeTravel(clock)
    simulator = Simulator(settings, clock, RandomIds(clock), travel=travel)
    with contextlib.ExitStack() as stack:
        stack.callback(os.close, take_lock(settings.path))
        bound = stack.enter_context(bind_socket(host, port, option="--port"))
        try:
            await simulator.open()
            travel.sides = (simulator,)
            if faults is not None:
                await simulator.arm_scenario(faults)
            server = HttpServer(simulator.application, bound, limits=limits, error_body=graph_error_body)
            await server.start()
            tune_garbage_collector()
            ready(f"http://{host}:{port_of(bound)}")
            await stop_event.wait()
            await server.stop()
        finally:
            await simulator.close()
