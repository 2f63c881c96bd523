"""`waypost serve --workers N`. The supervisor does not import what workers do, so that it stays small."""

import asyncio
from collections.abc import Mapping

import typer

from waypost.assembly.http.sockets import PortInUse
from waypost.assembly.serve import InvalidConfiguration, check_configuration
from waypost.assembly.workers import PrintLine, WorkersFailed, WorkerSupervisor, worker_command
from waypost.cli.errors import fail
from waypost.cli.shown_settings import startup_lines
from waypost.config import Settings


def supervise(settings: Settings, *, worker_options: Mapping[str, object], print_line: PrintLine) -> None:
    """Serve with several processes; print as one line what prevents a start, and exit.

    A worker gets the options of this process that are not None, and reads all other settings as this process did.
    """
    options = [
        part
        for name, value in worker_options.items()
        if value is not None
        for part in ((f"--{name}",) if value is True else (f"--{name}", str(value)))
    ]

    def ready(address: str) -> None:
        print_line(f"waypost serves at {address} with {settings.workers} workers")

    async def supervised() -> None:
        check_configuration(settings)
        for line in startup_lines(settings):
            print_line(line)
        await WorkerSupervisor(settings, worker_command(options), print_line=print_line).run(ready=ready)

    try:
        asyncio.run(supervised())
    except WorkersFailed as error:
        if str(error):
            fail(str(error), code=error.code)
        raise typer.Exit(error.code) from error
    except (InvalidConfiguration, PortInUse) as error:
        fail(str(error))
