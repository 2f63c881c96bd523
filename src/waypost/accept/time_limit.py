"""How long a request may wait for the operator, where one call to it is not the whole."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from waypost.accept.direct import unavailable
from waypost.domain.app import App

WITHIN_S: Final = 10
"""For all that one request asks of the operator. Source: decision 0026."""


@asynccontextmanager
async def in_time(app: App, what: str) -> AsyncGenerator[None]:
    """What is asked of the operator inside is answered in time, or given up.

    Args:
        app: whose request it is.
        what: is asked, for our log.

    Raises:
        Refused: 503, as where the operator does not answer.
    """
    try:
        async with asyncio.timeout(WITHIN_S):
            yield
    except TimeoutError as late:
        raise unavailable(app, what, f"it took longer than {WITHIN_S} s in all") from late
