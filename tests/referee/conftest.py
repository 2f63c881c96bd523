"""Arenas: a simulator between a public client of the operator's interface and that client's webhooks."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.referee.public_client import Arena, Redirected, WebhookServer, make_client
from tests.simulator.conftest import Receiver, make_bench
from waypost.base.clock import SystemClock


@asynccontextmanager
async def opened(folder: Path) -> AsyncGenerator[Arena]:
    """Real time, everything at once, one update a webhook: the client reads the first of each only."""
    server = WebhookServer()
    receiver = Receiver(uri=server.uri)
    async with aiohttp.ClientSession() as http:
        bench = make_bench(folder, SystemClock(), receiver, http, batch_at_most=1, limits=False)
        await bench.start()
        async with Redirected(bench.base) as transport:
            arena = Arena(bench, server, make_client(transport, server), transport)
            await arena.listen()
            yield arena
        await bench.stop()
        server.close()


@pytest.fixture
async def arena(tmp_path: Path) -> AsyncIterator[Arena]:
    """One of the test's own, for what changes more than it looks at."""
    async with opened(tmp_path) as arena:
        yield arena


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Arena]:
    """One for a whole table of cases, each of which looks only for what it has made itself.

    Starting a simulator takes longer than such a case.
    """
    async with opened(tmp_path_factory.mktemp("shared")) as arena:
        yield arena
