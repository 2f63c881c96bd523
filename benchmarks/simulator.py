"""The simulator as a process of a measurement: an account with a number for each source, phones that read."""

import argparse
from pathlib import Path

import uvloop

from benchmarks.bare import SOURCES
from benchmarks.service import (
    NEIGHBOUR_ACCOUNT,
    NEIGHBOUR_APP,
    NEIGHBOUR_NUMBER_ID,
    NEIGHBOUR_OPERATOR_TEMPLATE_ID,
    NEIGHBOUR_SOURCE,
    phone_number_id,
)
from waypost.assembly.dev import demo
from waypost.assembly.http.servers import HttpServer, bind_socket, handle_stop_signals
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.base.telemetry.logs import set_up_logs
from waypost.simulator import AccountSeed, NumberSeed, Simulator, SimulatorSettings


async def serve(options: argparse.Namespace) -> None:
    clock = SystemClock()
    set_up_logs(clock, as_json=False, level="warning")
    bound = bind_socket("127.0.0.1", options.port, option="--port")
    settings = SimulatorSettings(
        path=options.data,
        deliver_after_ms=options.deliver_after_ms,
        read_after_ms=options.read_after_ms,
        batch_at_most=1000,
        gather_ms=options.gather_ms,
    )
    simulator = Simulator(settings, clock, RandomIds(clock))
    await simulator.open()
    numbers = [
        NumberSeed(phone_number_id(nth), demo.WABA_ID, source, name, options.throughput)
        for nth, (source, name) in enumerate(SOURCES.items())
    ]
    await _seed_account(simulator, options, demo.WABA_ID, demo.OPERATOR_TEMPLATE_ID, numbers)
    waba_id = NEIGHBOUR_ACCOUNT.id
    numbers = [NumberSeed(NEIGHBOUR_NUMBER_ID, waba_id, NEIGHBOUR_SOURCE, NEIGHBOUR_APP, options.throughput)]
    await _seed_account(simulator, options, waba_id, NEIGHBOUR_OPERATOR_TEMPLATE_ID, numbers)
    server = HttpServer(simulator.application, bound)
    await server.start()
    await handle_stop_signals().wait()
    await server.stop()
    await simulator.close()


async def _seed_account(
    simulator: Simulator, options: argparse.Namespace, waba_id: str, template_id: str, numbers: list[NumberSeed]
) -> None:
    await simulator.seed(
        AccountSeed(
            waba_id=waba_id,
            name="Bench",
            namespace=demo.NAMESPACE,
            token=demo.GRAPH_TOKEN,
            app_id=demo.GRAPH_APP_ID,
            app_secret=demo.GRAPH_APP_SECRET,
            verify_token=demo.VERIFY_TOKEN,
            callback_uri=options.webhook,
        ),
        numbers,
    )
    draft = demo.template(0).draft
    await simulator.seed_template(
        template_id=template_id,
        waba_id=waba_id,
        name=draft.element_name or "",
        language=draft.language_code,
        category=draft.category or "",
        components=list(demo.COMPONENTS),
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--webhook", required=True)
    parser.add_argument("--deliver-after-ms", type=int, default=50)
    parser.add_argument("--read-after-ms", type=lambda text: None if text == "never" else int(text), default=200)
    parser.add_argument("--gather-ms", type=int, default=50)
    parser.add_argument("--throughput", type=int, default=1000)
    uvloop.run(serve(parser.parse_args()))
