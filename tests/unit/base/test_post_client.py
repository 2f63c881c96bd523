"""The HTTP client of the busiest calls: what it sends, how it reads responses, when it reconnects."""

import asyncio
import datetime
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.support.closed_port import closed_port
from tests.support.loop_time import time_passes
from tests.support.polling import HANGS_AFTER_S
from waypost.base.http.connection_pools import AddrInfo, ConnectionPools
from waypost.base.http.connections import HttpResponse, NotConnected, ResponseLost, ResponseTimeout
from waypost.base.http.post_client import PostClient

TIMEOUT_S = HANGS_AFTER_S / 4
"""A timeout that a test lets pass."""
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Peer:
    """A server that responds with raw bytes, and records requests and connections."""

    def __init__(self) -> None:
        self.responses: Callable[[int], bytes | None] = lambda _: OK
        self.hangs_up = False
        self.heads: list[list[str]] = []
        self.bodies: list[bytes] = []
        self.connections: list[asyncio.StreamWriter] = []
        self.open = 0
        self.most_open = 0
        self._server: asyncio.Server | None = None

    async def listen(self, tls: ssl.SSLContext | None = None) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=tls)

    @property
    def port(self) -> int:
        assert self._server is not None
        return self._server.sockets[0].getsockname()[1]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/callbacks?all=1"

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self.connections:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(writer)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
                [length] = [line[16:] for line in head if line.lower().startswith("content-length: ")]
                self.heads.append(head)
                self.bodies.append(await reader.readexactly(int(length)))
                response = self.responses(len(self.heads))
                if response is None:
                    await asyncio.Event().wait()
                else:
                    writer.write(response)
                    await writer.drain()
                if self.hangs_up:
                    break
        self.open -= 1
        writer.close()


@pytest.fixture
async def peer() -> AsyncIterator[Peer]:
    peer = Peer()
    await peer.listen()
    yield peer
    await peer.close()


@pytest.fixture
async def client() -> AsyncIterator[PostClient]:
    client = make_client()
    yield client
    await client.close()


def make_client(*, per_address: int = 4, idle_s: float = 2, keep_bytes: int = 100) -> PostClient:
    pools = ConnectionPools(max_per_address=per_address, idle_s=idle_s, connect_s=2)
    return PostClient(pools, max_body_bytes=keep_bytes)


async def test_request_arrives_complete_over_one_connection_that_is_reused(client: PostClient, peer: Peer) -> None:
    for body in (b"{}", b'{"n":"\xc3\xa4"}'):
        reply = await client.post(peer.url, body, {"X-Name": "ä"}, timeout_s=HANGS_AFTER_S)
        assert (reply.status, reply.body) == (200, b"ok")

    assert peer.bodies == [b"{}", b'{"n":"\xc3\xa4"}']
    assert peer.heads[0][0] == "POST /callbacks?all=1 HTTP/1.1"
    assert f"Host: 127.0.0.1:{peer.port}" in peer.heads[0]
    assert "X-Name: ä" in peer.heads[0]
    assert len(peer.connections) == 1


async def test_transport_headers_are_ours_and_the_last_header_of_a_name_counts(client: PostClient, peer: Peer) -> None:
    headers = {"Content-Length": "9", "host": "other", "x-name": "first", "X-Name": "last"}

    await client.post(peer.url, b"{}", headers, timeout_s=HANGS_AFTER_S)

    names = [line.partition(":")[0].lower() for line in peer.heads[0][1:]]
    assert sorted(names) == ["accept", "accept-encoding", "content-length", "host", "x-name"]
    assert "X-Name: last" in peer.heads[0]


async def test_credentials_in_an_address_travel_as_a_header(client: PostClient, peer: Peer) -> None:
    await client.post(peer.url.replace("//", "//ann:secret@"), b"", {}, timeout_s=HANGS_AFTER_S)

    assert "Authorization: Basic YW5uOnNlY3JldA==" in peer.heads[0]


@pytest.mark.parametrize("value", ["a\r\nX-Forged: 1", "a\nb", "a\rb", "a\0b"])
async def test_header_with_a_line_break_is_not_sent(client: PostClient, peer: Peer, value: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        await client.post(peer.url, b"", {"X-Name": value}, timeout_s=HANGS_AFTER_S)

    assert peer.connections == []


@pytest.mark.parametrize("url", ["ftp://a.test/", "http://", "/path", "http://a.test:0x/"])
async def test_invalid_url_is_rejected(client: PostClient, url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  yarl's own, of any text
        await client.post(url, b"", {}, timeout_s=HANGS_AFTER_S)


# fmt: off
RESPONSES = {  # raw response, its status and body, whether the connection can be used again
    "with a length":        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",                                200, b"ok",  True),
    "in chunks":            (b"HTTP/1.1 201 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\no\r\n1\r\nk\r\n0\r\n\r\n", 201, b"ok", True),
    "without a body":       (b"HTTP/1.1 204 No\r\n\r\n",                                                       204, b"",    True),
    "after an announcement": (b"HTTP/1.1 103 Hint\r\nX: 1\r\n\r\n" + OK,                                       200, b"ok",  True),
    "of an old server":     (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",                                200, b"ok",  False),
    "for the last time":    (b"HTTP/1.1 500 No\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",             500, b"",    False),
    "longer than is kept":  (b"HTTP/1.1 200 OK\r\nContent-Length: 900\r\n\r\n" + 200 * b"x",                   200, 100 * b"x", False),
    "twice":                (OK + OK,                                                                          200, b"ok",  False),
}
# fmt: on


@pytest.mark.parametrize("kind", RESPONSES)
async def test_response_is_read_however_it_is_framed(client: PostClient, peer: Peer, kind: str) -> None:
    response, status, body, is_kept = RESPONSES[kind]
    peer.responses = lambda _: response

    first = await client.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)
    await client.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)

    assert (first.status, first.body) == (status, body)
    assert len(peer.connections) == (1 if is_kept else 2)


async def test_response_without_a_length_ends_with_its_connection(client: PostClient, peer: Peer) -> None:
    peer.responses = lambda _: b"HTTP/1.1 200 OK\r\nX-A: b\r\n\r\nall of it"
    peer.hangs_up = True

    reply = await client.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)

    assert (reply.status, reply.body, reply.headers) == (200, b"all of it", (("x-a", "b"),))


# fmt: off
BROKEN = {  # what is sent before the connection is closed
    "nothing":           b"",
    "a part of a head":  b"HTTP/1.1 200",
    "a part of a body":  b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
    "something else":    b"SSH-2.0-OpenSSH\r\n\r\n",
}
# fmt: on


@pytest.mark.parametrize("kind", BROKEN)
async def test_incomplete_response_is_lost_and_nothing_is_sent_twice(client: PostClient, peer: Peer, kind: str) -> None:
    peer.responses = lambda _: BROKEN[kind]
    peer.hangs_up = True

    with pytest.raises(ResponseLost):
        await client.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)

    assert len(peer.bodies) == 1


async def test_response_that_is_too_late_is_lost_and_its_connection_is_not_reused(
    client: PostClient, peer: Peer
) -> None:
    peer.responses = lambda nth: None if nth == 1 else OK
    with time_passes(TIMEOUT_S, when=lambda: len(peer.bodies) == 1), pytest.raises(ResponseTimeout):
        await client.post(peer.url, b"", {}, timeout_s=TIMEOUT_S)

    await client.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)

    assert len(peer.connections) == 2


async def test_status_received_in_time_counts_although_its_body_is_slow(client: PostClient, peer: Peer) -> None:
    peer.responses = lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"

    with time_passes(TIMEOUT_S, when=lambda: peer.bodies):
        reply = await client.post(peer.url, b"", {}, timeout_s=TIMEOUT_S)

    assert (reply.status, reply.body) == (200, b"ok")


async def test_closed_port_is_not_reported_as_a_lost_response(client: PostClient) -> None:
    with closed_port() as port, pytest.raises(NotConnected):
        await client.post(f"http://127.0.0.1:{port}/", b"", {}, timeout_s=HANGS_AFTER_S)


async def test_rejected_socket_is_never_connected(peer: Peer) -> None:
    def reject(info: AddrInfo) -> socket.socket:
        raise PermissionError(f"not {info[4][0]}")

    pools = ConnectionPools(max_per_address=1, idle_s=1, connect_s=1, make_socket=reject)
    client = PostClient(pools, max_body_bytes=1)
    with pytest.raises(NotConnected, match=r"not 127\.0\.0\.1") as raised:
        await client.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)
    await client.close()

    assert isinstance(raised.value.__cause__, PermissionError)
    assert peer.connections == []


async def test_connections_are_limited_and_all_requests_are_sent(peer: Peer) -> None:
    client = make_client(per_address=3)

    replies = await asyncio.gather(
        *(client.post(peer.url, str(n).encode(), {}, timeout_s=HANGS_AFTER_S) for n in range(50))
    )
    await client.close()

    assert [reply.status for reply in replies] == [200] * 50
    assert sorted(int(body) for body in peer.bodies) == list(range(50))
    assert peer.most_open <= 3


async def test_request_that_gets_no_free_connection_in_time_is_not_sent(peer: Peer) -> None:
    peer.responses = lambda _: None
    client = make_client(per_address=1)
    first = asyncio.ensure_future(client.post(peer.url, b"1", {}, timeout_s=HANGS_AFTER_S))
    while not peer.bodies:  # noqa: ASYNC110
        await asyncio.sleep(0.001)

    with pytest.raises(NotConnected):
        await client.post(peer.url, b"2", {}, timeout_s=0.05)

    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await client.close()
    assert peer.bodies == [b"1"]


async def test_shorter_deadline_is_kept_while_a_longer_one_runs(client: PostClient, peer: Peer) -> None:
    peer.responses = lambda _: None
    patient = asyncio.ensure_future(client.post(peer.url, b"{}", {}, timeout_s=HANGS_AFTER_S))
    while not peer.bodies:  # noqa: ASYNC110
        await asyncio.sleep(0.001)

    with time_passes(TIMEOUT_S, when=lambda: len(peer.bodies) == 2), pytest.raises(ResponseTimeout):
        await client.post(peer.url, b"{}", {}, timeout_s=TIMEOUT_S)

    assert not patient.done()
    patient.cancel()


async def test_waiting_request_that_is_cancelled_takes_no_slot(peer: Peer) -> None:
    client = make_client(per_address=1)
    peer.responses = lambda nth: None if nth == 1 else OK
    first = asyncio.ensure_future(client.post(peer.url, b"1", {}, timeout_s=HANGS_AFTER_S))
    while not peer.bodies:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    waiting = [
        asyncio.ensure_future(client.post(peer.url, b"%d" % nth, {}, timeout_s=HANGS_AFTER_S)) for nth in (2, 3, 4)
    ]
    await asyncio.sleep(0)

    waiting[0].cancel()  # while it waits
    first.cancel()
    await asyncio.sleep(0)
    waiting[1].cancel()  # just as it gets the slot
    replies = await asyncio.gather(*waiting, return_exceptions=True)

    assert [type(reply) for reply in replies[:2]] == [asyncio.CancelledError] * 2
    assert isinstance(replies[2], HttpResponse)
    assert b"2" not in peer.bodies
    await client.close()


async def test_cancelled_request_closes_its_connection_and_frees_its_slot(peer: Peer) -> None:
    peer.responses = lambda nth: None if nth == 1 else OK
    client = make_client(per_address=1)
    first = asyncio.ensure_future(client.post(peer.url, b"1", {}, timeout_s=HANGS_AFTER_S))
    while not peer.bodies:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    first.cancel()

    reply = await client.post(peer.url, b"2", {}, timeout_s=HANGS_AFTER_S)
    await client.close()

    assert first.cancelled()
    assert reply.body == b"ok"
    assert len(peer.connections) == 2


async def test_connection_that_was_idle_for_long_is_closed_and_not_reused(peer: Peer) -> None:
    client = make_client(idle_s=0.05)
    await client.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)
    async with asyncio.timeout(HANGS_AFTER_S):
        while peer.open:  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    await client.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)
    await client.close()

    assert len(peer.connections) == 2


async def test_connection_that_the_peer_closed_while_idle_is_not_reused(client: PostClient, peer: Peer) -> None:
    await client.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)
    peer.connections[0].close()
    await peer.connections[0].wait_closed()
    await asyncio.sleep(0.01)  # until our side has noticed it

    reply = await client.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)

    assert reply.status == 200
    assert len(peer.connections) == 2


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key with a certificate for 127.0.0.1 that it has signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "peer")])
    now = datetime.datetime.now(datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(7)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path = tmp_path_factory.mktemp("tls") / "peer.pem"
    path.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
        + signed.public_bytes(serialization.Encoding.PEM)
    )
    return path


@pytest.mark.parametrize("is_known", [True, False])
async def test_certificate_is_checked_before_anything_is_sent(
    certificate: Path, monkeypatch: pytest.MonkeyPatch, *, is_known: bool
) -> None:
    if is_known:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate)
    peer, client = Peer(), make_client()
    await peer.listen(tls)
    url = peer.url.replace("http:", "https:")

    if is_known:
        assert (await client.post(url, b"{}", {}, timeout_s=HANGS_AFTER_S)).body == b"ok"
    else:
        with pytest.raises(NotConnected, match="certificate"):
            await client.post(url, b"{}", {}, timeout_s=HANGS_AFTER_S)
        assert peer.bodies == []

    await client.close()
    await peer.close()
