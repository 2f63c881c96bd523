"""`waypost serve` in one process. Only that command imports this module."""

import typer

from waypost.assembly.serve import WorkerIdentity, serve
from waypost.assembly.workers import READY_LINE, PrintLine
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.cli.commands.store_place import describe_connections, describe_store
from waypost.cli.serving import run_until_stopped
from waypost.config import Settings
from waypost.domain.rates import describe_rates


def serve_in_process(settings: Settings, number: int | None, socket: int | None, *, print_line: PrintLine) -> None:
    """Serve in this process.

    Args:
        settings: of the service.
        print_line: prints a line.
        number: of this worker among several; None if it is the only one.
        socket: the descriptor on which such a worker listens.
    """
    worker = None if number is None or socket is None else WorkerIdentity(number, socket)
    clock = SystemClock()
    if worker is None:
        print_line(f"store: {describe_store(settings)}")
        if connections := describe_connections(settings):
            print_line(f"connections to PostgreSQL: {connections}")
        print_line(f"rates: {describe_rates(settings.rate_limits, on=settings.rates)}")

    def ready(address: str) -> None:
        if worker is None:
            print_line(f"waypost serves at {address}")
        else:
            typer.echo(READY_LINE.decode())  # to the supervisor, which reads it

    run_until_stopped(serve(settings, clock, RandomIds(clock), ready=ready, worker=worker))
