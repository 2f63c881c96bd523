"""The event loop of commands that run servers, and `waypost serve` in one process. The import takes a second."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

import typer

from waypost.assembly.http.servers import PortInUse
from waypost.assembly.serve import InvalidConfiguration, WorkerIdentity, serve
from waypost.assembly.workers import READY_LINE, PrintLine
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.cli.errors import fail
from waypost.cli.shown_settings import startup_lines
from waypost.config import Settings
from waypost.operations.tracing import TracingUnavailable
from waypost.store.contract import EXIT_STORE_UNAVAILABLE, StoreDamaged, StoreInUse, StoreUnavailable, WrongStore

STARTUP_ERRORS: Final = (PortInUse, StoreInUse, WrongStore, InvalidConfiguration, TracingUnavailable)
"""Errors that prevent a start; their texts have a fix hint."""


def run_until_stopped(work: Coroutine[Any, Any, None], *foreseen: type[Exception]) -> None:
    """Run to the end, on uvloop if it is installed; print as one line what prevents a start, and exit."""
    try:
        import uvloop

        factory = uvloop.new_event_loop
    except ImportError:
        factory = None
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(work)
    except StoreDamaged as error:  # waiting does not help
        fail(str(error))
    except StoreUnavailable as error:
        fail(str(error), code=EXIT_STORE_UNAVAILABLE)
    except (*STARTUP_ERRORS, *foreseen) as error:
        fail(str(error))
    except OSError as error:
        if error.filename is None:
            raise
        fail(f"{error.filename} cannot be used ({error.strerror}); choose another path")


def serve_in_process(settings: Settings, number: int | None, socket: int | None, *, print_line: PrintLine) -> None:
    """Serve in this process: alone, or as a worker with a number and the descriptor of its socket."""
    worker = None if number is None or socket is None else WorkerIdentity(number, socket)
    clock = SystemClock()
    if worker is None:
        for line in startup_lines(settings):
            print_line(line)

    def ready(address: str) -> None:
        if worker is None:
            print_line(f"waypost serves at {address}")
        else:
            typer.echo(READY_LINE.decode())  # to the supervisor, which reads it

    run_until_stopped(serve(settings, clock, RandomIds(clock), ready=ready, worker=worker))
