"""A simulator between a public client of the Graph API and that client's webhooks."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
import pytest_asyncio

from tests.referee.public_client import ClientHarness, RedirectingTransport, WebhookServer, make_client
from tests.simulator.conftest import Receiver, make_bench
from waypost.base.clock import SystemClock


@asynccontextmanager
async def open_harness(folder: Path) -> AsyncGenerator[ClientHarness]:
    """Open a harness in real time, without delays, with one update per webhook: the client reads only the first."""
    server = WebhookServer()
    receiver = Receiver(uri=server.uri)
    async with aiohttp.ClientSession() as http:
        bench = make_bench(folder, SystemClock(), receiver, http, batch_at_most=1, limits=False)
        await bench.start()
        async with RedirectingTransport(bench.base) as transport:
            harness = ClientHarness(bench, server, make_client(transport, server), transport)
            await harness.listen()
            yield harness
        await bench.stop()
        server.close()


@pytest.fixture
async def harness(tmp_path: Path) -> AsyncIterator[ClientHarness]:
    """A harness for one test, which may change anything."""
    async with open_harness(tmp_path) as harness:
        yield harness


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_harness(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[ClientHarness]:
    """A harness shared by a module's cases, each of which examines only what it has created.

    Starting a simulator takes longer than such a case.
    """
    async with open_harness(tmp_path_factory.mktemp("shared_harness")) as harness:
        yield harness
