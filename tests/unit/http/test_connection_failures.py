"""Reasons why an address gave no response: plain text, without a library's terms."""

import asyncio
import contextlib
import re
import socket
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

import pytest

from tests.support.loop_time import time_passes
from tests.support.polling import HANGS_AFTER_S
from waypost.base.http.connection_pools import AddrInfo
from waypost.base.http.connections import NotConnected, ResponseLost, ResponseTimeout
from waypost.outbound.failures import AddressNotAllowed, plain_reason
from waypost.outbound.vetted_client import VettedClient

LIBRARY = re.compile(r"[A-Z]\w*(Error|Allowed|Reached|Out|Lost)|Errno|ssl:|\(|\[|object at|getaddrinfo")


@dataclass
class Server:
    """A server that responds by the path of the request.

    Attributes:
        address: its host and port.
        silent_requests: number of requests so far that get no response.
    """

    address: str = ""
    silent_requests: int = 0


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    server = Server()
    closing = asyncio.Event()
    working: set[asyncio.Task[None]] = set()

    async def respond(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.read(100)
        if head[:1] == b"\x16":  # TLS
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        if b"/nonsense" in head:
            writer.write(b"220 smtp.example ready\r\n\r\n")
        if b"/silent" in head:
            server.silent_requests += 1
            await closing.wait()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        working.add(asyncio.create_task(respond(reader, writer)))

    listening = await asyncio.start_server(begin, "127.0.0.1", 0)
    server.address = f"127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    yield server
    closing.set()
    await asyncio.gather(*working, return_exceptions=True)
    listening.close()
    await listening.wait_closed()


async def resolve(host: str, port: int) -> Sequence[AddrInfo]:
    """Every name but one literal address is unknown."""
    if host != "127.0.0.1":
        raise socket.gaierror(-2, "Name or service not known")
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (host, port))]


# fmt: off
REASONS = {  # address: of a get, of a post
    "http://127.0.0.1:1/":       ("could not connect: the connection was refused",) * 2,
    "https://127.0.0.1:1/":      ("could not connect: the connection was refused",) * 2,
    "https://{server}/":         ("no secure connection could be made (TLS)",) * 2,
    "http://nowhere.test/":      ("its name was not found",) * 2,
    "http://{server}/cut":       ("the connection was closed before the response was complete",) * 2,
    "http://{server}/nonsense":  ("its response is not HTTP",) * 2,
    "http://{server}/silent":    ("timed out: no response in time",) * 2,
    "ftp://127.0.0.1/":          ("this is not an http or https address",) * 2,
    "http://10.0.0.1/":          ("10.0.0.1 is not a public address, and not in allowed_networks",) * 2,
}
# fmt: on


@pytest.mark.parametrize("address", REASONS)
async def test_an_address_without_a_response_has_a_plain_reason(address: str, server: Server) -> None:
    client = VettedClient(allowed_networks=("127.0.0.0/8",), timeout_s=HANGS_AFTER_S, resolve=resolve)
    await client.open()
    url = address.replace("{server}", server.address)

    async def take(_part: bytes) -> None:
        raise AssertionError("no content is expected")

    with time_passes(HANGS_AFTER_S, when=lambda: server.silent_requests == 1):
        got = await client.get(url, take)
    with time_passes(HANGS_AFTER_S, when=lambda: server.silent_requests == 2):  # not before the second has connected
        posted = await client.post(url, b"{}", {})

    await client.close()
    assert (got.error, posted.error) == REASONS[address]
    assert got.status is posted.status is None


def set_cause(error: BaseException, cause: BaseException) -> BaseException:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (set_cause(NotConnected("x"), ssl.SSLCertVerificationError(1, "self-signed")), "its certificate is not valid"),
        (set_cause(NotConnected("x"), TimeoutError()), "timed out: could not connect in time"),
        (set_cause(NotConnected("x"), OSError(113, "No route to host")), "could not connect"),
        (set_cause(NotConnected("x"), AddressNotAllowed("::1 is not public")), "::1 is not public"),
        (ResponseTimeout("x"), "timed out: no response in time"),
        (ResponseLost("x"), "the connection was closed before the response was complete"),
        (TimeoutError(), "timed out: no response in time"),
        (NotConnected("the client is closed"), "could not connect"),
        (RuntimeError("x"), "could not connect"),
    ],
)  # fmt: skip
def test_each_kind_of_failure_has_a_plain_reason(error: BaseException, reason: str) -> None:
    assert plain_reason(error) == reason
    assert not LIBRARY.search(reason.replace("(TLS)", ""))
