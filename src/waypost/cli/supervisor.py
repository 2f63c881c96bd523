"""`waypost serve --workers N`. What the workers load is not loaded here: a supervisor is small."""

import asyncio
from collections.abc import Mapping

import typer

from waypost.assembly.compatibility_check import NotFit, check_fit
from waypost.assembly.http.sockets import PortInUse
from waypost.assembly.workers import Workers, WorkersFailed, worker_command
from waypost.cli.errors import complain
from waypost.config import Settings


def supervise(settings: Settings, *, given: Mapping[str, object]) -> None:
    """Serve with several processes, and say in one line what keeps them from starting.

    Args:
        settings: of the service.
        given: options that this process was given and a worker needs too; None is not given. All
            other settings come to it by the environment.
    """
    options = [
        part
        for name, value in given.items()
        if value is not None
        for part in ((f"--{name}",) if value is True else (f"--{name}", str(value)))
    ]

    def ready(address: str) -> None:
        typer.echo(f"waypost serves at {address} with {settings.workers} workers")

    async def supervised() -> None:
        check_fit(settings)
        await Workers(settings, worker_command(options), say=typer.echo).run(ready=ready)

    try:
        asyncio.run(supervised())
    except WorkersFailed as error:
        if str(error):
            complain(str(error), code=error.code)
        raise typer.Exit(error.code) from error
    except (NotFit, PortInUse) as error:
        complain(str(error))
