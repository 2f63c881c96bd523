"""A quiet service: no connection is used in the moment in which the other side closes it."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pytest

from crashes.load import Load
from crashes.reckoning import reckon
from crashes.town import Town

EVERY_S: Final = 2.0
"""As long as our pools keep an idle connection: its end and its next use meet here."""
TIMES: Final = 2
CLOSED_AFTER_S: Final = 2.5
OTHERS_S: Final = 5
"""As long as common servers keep an idle connection: ours have to end before, and our servers later."""
PHONES: Final = [f"15557001{number:03}" for number in range(20)]
"""As many as are sent at once: so many connections then lie idle, and end within milliseconds of each other."""
SOCKETS: Final = Path("/proc/net/tcp")
ESTABLISHED: Final = "01"
TIME_WAIT: Final = "06"
"""In which the side stays that has closed first."""


@pytest.mark.skipif(not SOCKETS.exists(), reason="the kernel shows its sockets on Linux only")
async def test_idle_connection_is_ended_by_whoever_opened_it_and_before_the_server_would(town: Town) -> None:
    load = Load(town, PHONES, (), at_least=len(PHONES) * TIMES)
    servers = (town.graph, town.callbacks)
    idle, writer = await asyncio.open_connection("127.0.0.1", port(town.base))
    writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
    await idle.readuntil(b"\r\n\r\n")
    with closing(writer):
        began_s = asyncio.get_running_loop().time()

        for _ in range(TIMES):
            await asyncio.gather(*(load.one_more() for _ in PHONES))
            await asyncio.sleep(EVERY_S)
        await town.completed()
        used = [closed_by_client(server) for server in servers]
        await asyncio.sleep(CLOSED_AFTER_S)
        kept = [established(one) for one in servers]
        closed = [(closed_by_client(one), closed_by_server(one)) for one in servers]
        reckoning = await reckon(town, load, [], written_in=0)
        state = await town.control("GET", "state")

        sys.stdout.write(f"\n{reckoning.table()}closed by us, by the server: {closed}, before {used}\n")
        assert not reckoning.faults
        assert town.stored.failed_attempts() == []
        assert [account["last_failure"] for account in state["accounts"]] == [None]
        assert kept == [0, 0]
        # A machine that stands still for seconds lets a few live until the server ends them.
        assert all(by_client > by_server for by_client, by_server in closed)
        assert asyncio.get_running_loop().time() - began_s > OTHERS_S
        writer.write(b"GET /readyz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert b" 200 OK\r\n" in await idle.readuntil(b"\r\n\r\n")


def established(server: str) -> int:
    """How many connections to a server are open."""
    at = port(server)
    return sockets(ESTABLISHED, lambda _, remote: remote == at)


def closed_by_client(server: str) -> int:
    """How many connections to a server were ended by whoever had opened them, in the last minute."""
    at = port(server)
    return sockets(TIME_WAIT, lambda _, remote: remote == at)


def closed_by_server(server: str) -> int:
    """How many connections to a server it ended itself, in the last minute."""
    at = port(server)
    return sockets(TIME_WAIT, lambda local, _: local == at)


def port(url: str) -> int:
    """Of an address."""
    found = urlsplit(url).port
    assert found is not None
    return found


def sockets(state: str, counts: Callable[[int, int], bool]) -> int:
    """How many sockets of this machine in a state have such a local and such a remote port."""
    found = 0
    for line in SOCKETS.read_text().splitlines()[1:]:
        _, local, remote, of, *_ = line.split()
        ports = (int(one.rpartition(":")[2], 16) for one in (local, remote))
        found += of == state and counts(*ports)
    return found
