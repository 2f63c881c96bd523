"""`waypost serve` in one process. Loaded by that command only."""

import typer

from waypost.assembly.serve import Worker, serve
from waypost.assembly.workers import READY
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.cli.server_loop import run
from waypost.config import Settings


def work(settings: Settings, number: int | None, socket: int | None) -> None:
    """Serve in this process.

    Args:
        settings: of the service.
        number: which of several workers this is; None for the only one.
        socket: the descriptor on which such a worker listens.
    """
    worker = None if number is None or socket is None else Worker(number, socket)
    clock = SystemClock()

    def ready(address: str) -> None:
        typer.echo(READY.decode() if worker else f"waypost serves at {address}")

    run(serve(settings, clock, RandomIds(clock), ready=ready, worker=worker))
