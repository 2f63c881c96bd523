"""How a command runs what serves until it is stopped. Loaded by those commands only: it takes a second."""

import asyncio
from collections.abc import Coroutine
from typing import Any, Final

from waypost.assembly.http.servers import PortInUse
from waypost.assembly.serve import NotFit
from waypost.assembly.workers import STORE_AWAY
from waypost.cli.errors import complain
from waypost.operations.tracing import NoTracing
from waypost.simulator import IncompatibleFile, InvalidScenario, SnapshotError
from waypost.store.contract import StoreAway, StoreInUse, WrongStore

FORESEEN: Final = (
    PortInUse,
    StoreInUse,
    WrongStore,
    IncompatibleFile,
    NotFit,
    SnapshotError,
    NoTracing,
    InvalidScenario,
)
"""What keeps something from starting, and says its own remedy."""


def run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end on the fast loop where there is one; say in one line what keeps it from starting."""
    try:
        import uvloop

        factory = uvloop.new_event_loop
    except ImportError:
        factory = None
    try:
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(work)
    except StoreAway as error:
        complain(str(error), code=STORE_AWAY)
    except FORESEEN as error:
        complain(str(error))
    except OSError as error:
        if error.filename is None:
            raise
        complain(f"{error.filename} cannot be used ({error.strerror}); name another place for it")
