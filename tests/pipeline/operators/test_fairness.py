"""A healthy source beside operator accounts that hang: it gets slots, whatever they have queued."""

import asyncio
from pathlib import Path

from benchmarks.fairness import HANG_MS, HEALTHY_MS, BenchSources, OperatorServer
from tests.support.builders import INSTANCE_KEY
from tests.support.polling import poll_until
from tests.support.store_locations import StoreLocation
from waypost.assembly.service import Waypost
from waypost.base.clock import SystemClock
from waypost.base.ids import RandomIds
from waypost.config import Settings

IN_FLIGHT = 16
MESSAGES = 20


async def test_healthy_source_gets_a_slot_while_two_accounts_hang(
    store_location: StoreLocation, tmp_path: Path
) -> None:
    """The operator responds to none of the others' messages for the length of the test, and they would take all slots."""
    operator = OperatorServer()
    server = await asyncio.start_server(operator.serve, "127.0.0.1", 0)
    settings = Settings(
        data=tmp_path,
        **store_location.settings,
        secret_key=INSTANCE_KEY,
        in_flight=IN_FLIGHT,
        operator_timeout_s=HANG_MS / 1000,
        allowed_networks=("127.0.0.0/8",),
        stop_within_s=0.1,
    )
    waypost = Waypost(settings, SystemClock(), RandomIds(SystemClock()))
    await waypost.open()
    try:
        sources = BenchSources(waypost, server.sockets[0].getsockname()[1])
        await sources.add_account("healthy")
        healthy = await sources.add_source("healthy", HEALTHY_MS, partner_id=1)
        for nth in range(2):
            await sources.add_account(f"hanging{nth}")
            for _ in range(4):
                hanging = await sources.add_source(f"hanging{nth}", HANG_MS, partner_id=2 + nth)
                await sources.queue_messages(hanging, IN_FLIGHT)
        waypost.start()
        for nth in range(MESSAGES):
            await sources.send(healthy, f"healthy {nth}")
            await poll_until(lambda nth=nth: _received(operator, f"healthy {nth}"))

        assert 0 < operator.calls < IN_FLIGHT
    finally:
        await waypost.drain()
        await waypost.close()
        server.close()


async def _received(operator: OperatorServer, text: str) -> bool:
    return text in operator.received_s
