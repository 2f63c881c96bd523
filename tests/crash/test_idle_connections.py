"""An idle service: no connection is used at the moment at which the other side closes it."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from crashes.cluster import ClusterUnderTest
from crashes.load import Load
from crashes.verification import verify_load

INTERVAL_S: Final = 2.0
"""As long as our pools keep an idle connection, so that its end and its next use coincide."""
TIMES: Final = 2
CLOSED_AFTER_S: Final = 2.5
COMMON_SERVERS_S: Final = 5
"""As long as common servers keep an idle connection: our clients have to close before, our servers later."""
PHONES: Final = [f"15557001{number:03}" for number in range(20)]
"""As many as are sent at once: as many connections are then idle, and end within milliseconds of each other."""
SOCKETS: Final = Path("/proc/net/tcp")
ESTABLISHED: Final = "01"
TIME_WAIT: Final = "06"
"""The state of the side that closed first."""


@pytest.mark.skipif(not SOCKETS.exists(), reason="the kernel shows its sockets on Linux only")
async def test_idle_connection_is_closed_by_its_client_before_the_server_would_close_it(
    cluster: ClusterUnderTest,
) -> None:
    load = Load(cluster, PHONES, (), at_least=len(PHONES) * TIMES)
    servers = (cluster.graph_url, cluster.callbacks_url)
    idle, writer = await asyncio.open_connection("127.0.0.1", port(cluster.base_url))
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    await idle.readuntil(b"\r\n\r\n")
    with closing(writer):
        began_s = asyncio.get_running_loop().time()

        for _ in range(TIMES):
            await asyncio.gather(*(load.submit_one() for _ in PHONES))
            await asyncio.sleep(INTERVAL_S)
        await cluster.wait_idle()
        closed_during_load = [closed_by_client(server) for server in servers]
        await asyncio.sleep(CLOSED_AFTER_S)
        still_open = [established(server) for server in servers]
        closed = [(closed_by_client(server), closed_by_server(server)) for server in servers]
        verification = await verify_load(cluster, load, [], inbound_count=0)
        state = await cluster.control("GET", "state")

        sys.stdout.write(
            f"\n{verification.table()}closed by us, by the server: {closed}; closed during the load: {closed_during_load}\n"
        )
        assert not verification.violations
        assert cluster.store.failed_attempts() == []
        assert [account["last_failure"] for account in state["accounts"]] == [None]
        assert still_open == [0, 0]
        # On a machine that stalls for seconds a few may live until the server closes them.
        assert all(by_client > by_server for by_client, by_server in closed)
        assert asyncio.get_running_loop().time() - began_s > COMMON_SERVERS_S
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b" 200 OK\r\n" in await idle.readuntil(b"\r\n\r\n")


def established(server: str) -> int:
    """Return the number of open connections to a server."""
    at = port(server)
    return sockets(ESTABLISHED, lambda _, remote: remote == at)


def closed_by_client(server: str) -> int:
    """Return the number of connections to a server that its clients closed in the last minute."""
    at = port(server)
    return sockets(TIME_WAIT, lambda _, remote: remote == at)


def closed_by_server(server: str) -> int:
    """Return the number of connections to a server that it closed itself in the last minute."""
    at = port(server)
    return sockets(TIME_WAIT, lambda local, _: local == at)


def port(url: str) -> int:
    """Return the port of a URL."""
    number = urlsplit(url).port
    assert number is not None
    return number


def sockets(state: str, matches: Callable[[int, int], bool]) -> int:
    """Return the number of sockets in a state whose local and remote port match."""
    count = 0
    for line in SOCKETS.read_text().splitlines()[1:]:
        _, local, remote, socket_state, *_ = line.split()
        ports = (int(address.rpartition(":")[2], 16) for address in (local, remote))
        count += socket_state == state and matches(*ports)
    return count
