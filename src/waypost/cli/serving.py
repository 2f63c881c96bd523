"""The event loop of commands that run servers. Only they import this module: it takes a second."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from waypost.assembly.http.servers import PortInUse
from waypost.assembly.serve import InvalidConfiguration
from waypost.assembly.workers import EXIT_STORE_UNAVAILABLE
from waypost.cli.errors import fail
from waypost.operations.tracing import TracingUnavailable
from waypost.store.contract import StoreDamaged, StoreInUse, StoreUnavailable, WrongStore

STARTUP_ERRORS: Final = (PortInUse, StoreInUse, WrongStore, InvalidConfiguration, TracingUnavailable)
"""Errors that prevent a start; their texts have a fix hint."""


def run_until_stopped(work: Coroutine[Any, Any, None], *foreseen: type[Exception]) -> None:
    """Run to the end, on uvloop if it is installed; print as one line what prevents a start, and exit.

    Args:
        work: of the command.
        foreseen: further errors that prevent a start; their texts have a fix hint too.
    """
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
