"""`waypost serve` in one process. Only that command imports this module."""

import typer

from waypost.assembly.serve import WorkerIdentity, serve
from waypost.assembly.workers import READY_LINE
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.cli.server_loop import run_until_stopped
from waypost.config import Settings


def serve_in_process(settings: Settings, number: int | None, socket: int | None) -> None:
    """Serve in this process.

    Args:
        settings: of the service.
        number: of this worker among several; None if it is the only one.
        socket: the descriptor on which such a worker listens.
    """
    worker = None if number is None or socket is None else WorkerIdentity(number, socket)
    clock = SystemClock()

    def ready(address: str) -> None:
        typer.echo(READY_LINE.decode() if worker else f"waypost serves at {address}")

    run_until_stopped(serve(settings, clock, RandomIds(clock), ready=ready, worker=worker))
