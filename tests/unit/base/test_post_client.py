"""The client of the busiest calls: what it sends, what it makes of answers, when it connects anew."""

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

from tests.support.closed_port import refusing_port
from tests.support.waiting import HANGS_AFTER_S
from waypost.base.http.post_client import AddrInfo, NotConnected, PostClient, ResponseLost, ResponseTimeout

LONG_ENOUGH_TO_SEND_S = 2
"""Of a test that waits for it to pass, on a busy machine too."""
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Peer:
    """A server that answers raw bytes, and keeps what it was sent, by connection."""

    def __init__(self) -> None:
        self.answers: Callable[[int], bytes | None] = lambda _: OK
        self.hangs_up = False
        self.heads: list[list[str]] = []
        self.bodies: list[bytes] = []
        self.lines: list[asyncio.StreamWriter] = []
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
        return f"http://127.0.0.1:{self.port}/hear?all=1"

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for line in self.lines:
            line.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.lines.append(writer)
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[:-2]
                [length] = [one[16:] for one in head if one.lower().startswith("content-length: ")]
                self.heads.append(head)
                self.bodies.append(await reader.readexactly(int(length)))
                answer = self.answers(len(self.heads))
                if answer is None:
                    await asyncio.Event().wait()
                else:
                    writer.write(answer)
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
async def posts() -> AsyncIterator[PostClient]:
    posts = made()
    yield posts
    await posts.close()


def made(*, per_address: int = 4, idle_s: float = 2, keep_bytes: int = 100) -> PostClient:
    return PostClient(max_per_address=per_address, idle_s=idle_s, connect_s=2, max_body_bytes=keep_bytes)


async def test_request_arrives_whole_over_one_connection_that_is_kept(posts: PostClient, peer: Peer) -> None:
    for body in (b"{}", b'{"n":"\xc3\xa4"}'):
        reply = await posts.post(peer.url, body, {"X-Name": "ä"}, timeout_s=HANGS_AFTER_S)
        assert (reply.status, reply.body) == (200, b"ok")

    assert peer.bodies == [b"{}", b'{"n":"\xc3\xa4"}']
    assert peer.heads[0][0] == "POST /hear?all=1 HTTP/1.1"
    assert f"Host: 127.0.0.1:{peer.port}" in peer.heads[0]
    assert "X-Name: ä" in peer.heads[0]
    assert len(peer.lines) == 1


async def test_headers_that_say_how_it_is_sent_are_ours_and_the_last_of_a_name_counts(
    posts: PostClient, peer: Peer
) -> None:
    given = {"Content-Length": "9", "host": "other", "x-name": "first", "X-Name": "last"}

    await posts.post(peer.url, b"{}", given, timeout_s=HANGS_AFTER_S)

    names = [line.partition(":")[0].lower() for line in peer.heads[0][1:]]
    assert sorted(names) == ["accept", "accept-encoding", "content-length", "host", "x-name"]
    assert "X-Name: last" in peer.heads[0]


async def test_credentials_in_an_address_travel_as_a_header(posts: PostClient, peer: Peer) -> None:
    await posts.post(peer.url.replace("//", "//ann:secret@"), b"", {}, timeout_s=HANGS_AFTER_S)

    assert "Authorization: Basic YW5uOnNlY3JldA==" in peer.heads[0]


@pytest.mark.parametrize("value", ["a\r\nX-Forged: 1", "a\nb", "a\rb", "a\0b"])
async def test_header_with_a_line_break_is_not_sent(posts: PostClient, peer: Peer, value: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        await posts.post(peer.url, b"", {"X-Name": value}, timeout_s=HANGS_AFTER_S)

    assert peer.lines == []


@pytest.mark.parametrize("url", ["ftp://a.test/", "http://", "/path", "http://a.test:0x/"])
async def test_what_is_no_address_is_refused(posts: PostClient, url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  yarl's own, of any text
        await posts.post(url, b"", {}, timeout_s=HANGS_AFTER_S)


# fmt: off
ANSWERS = {  # what is answered, and what it is: status, body, whether the connection can be used again
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


@pytest.mark.parametrize("kind", ANSWERS)
async def test_answer_is_understood_however_it_is_framed(posts: PostClient, peer: Peer, kind: str) -> None:
    answer, status, body, is_kept = ANSWERS[kind]
    peer.answers = lambda _: answer

    first = await posts.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)
    await posts.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)

    assert (first.status, first.body) == (status, body)
    assert len(peer.lines) == (1 if is_kept else 2)


async def test_answer_without_a_length_ends_with_its_connection(posts: PostClient, peer: Peer) -> None:
    peer.answers = lambda _: b"HTTP/1.1 200 OK\r\nX-A: b\r\n\r\nall of it"
    peer.hangs_up = True

    reply = await posts.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)

    assert (reply.status, reply.body, reply.headers) == (200, b"all of it", (("x-a", "b"),))


# fmt: off
BROKEN = {  # what is answered before the connection is closed
    "nothing":           b"",
    "a part of a head":  b"HTTP/1.1 200",
    "a part of a body":  b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok",
    "something else":    b"SSH-2.0-OpenSSH\r\n\r\n",
}
# fmt: on


@pytest.mark.parametrize("kind", BROKEN)
async def test_answer_that_breaks_off_is_lost_and_nothing_is_sent_twice(
    posts: PostClient, peer: Peer, kind: str
) -> None:
    peer.answers = lambda _: BROKEN[kind]
    peer.hangs_up = True

    with pytest.raises(ResponseLost):
        await posts.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)

    assert len(peer.bodies) == 1


async def test_no_answer_in_time_is_lost_and_the_connection_is_not_used_again(posts: PostClient, peer: Peer) -> None:
    peer.answers = lambda nth: None if nth == 1 else OK
    with pytest.raises(ResponseTimeout):
        await posts.post(peer.url, b"", {}, timeout_s=LONG_ENOUGH_TO_SEND_S)

    await posts.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)

    assert len(peer.lines) == 2


async def test_status_that_came_in_time_counts_although_its_body_drips(posts: PostClient, peer: Peer) -> None:
    peer.answers = lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"

    reply = await posts.post(peer.url, b"", {}, timeout_s=LONG_ENOUGH_TO_SEND_S)

    assert (reply.status, reply.body) == (200, b"ok")


async def test_nobody_listening_is_told_apart_from_a_lost_answer(posts: PostClient) -> None:
    with refusing_port() as port, pytest.raises(NotConnected):
        await posts.post(f"http://127.0.0.1:{port}/", b"", {}, timeout_s=HANGS_AFTER_S)


async def test_socket_that_is_refused_is_never_connected(peer: Peer) -> None:
    def refuse(info: AddrInfo) -> socket.socket:
        raise PermissionError(f"not {info[4][0]}")

    posts = PostClient(max_per_address=1, idle_s=1, connect_s=1, max_body_bytes=1, make_socket=refuse)
    with pytest.raises(NotConnected, match=r"not 127\.0\.0\.1") as raised:
        await posts.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)
    await posts.close()

    assert isinstance(raised.value.__cause__, PermissionError)
    assert peer.lines == []


async def test_no_more_connections_than_allowed_and_all_get_their_turn(peer: Peer) -> None:
    posts = made(per_address=3)

    replies = await asyncio.gather(
        *(posts.post(peer.url, str(n).encode(), {}, timeout_s=HANGS_AFTER_S) for n in range(50))
    )
    await posts.close()

    assert [reply.status for reply in replies] == [200] * 50
    assert sorted(int(body) for body in peer.bodies) == list(range(50))
    assert peer.most_open <= 3


async def test_who_waits_in_vain_for_a_free_connection_has_sent_nothing(peer: Peer) -> None:
    peer.answers = lambda _: None
    posts = made(per_address=1)
    first = asyncio.ensure_future(posts.post(peer.url, b"1", {}, timeout_s=HANGS_AFTER_S))
    while not peer.bodies:  # noqa: ASYNC110
        await asyncio.sleep(0.001)

    with pytest.raises(NotConnected):
        await posts.post(peer.url, b"2", {}, timeout_s=0.05)

    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await posts.close()
    assert peer.bodies == [b"1"]


async def test_who_goes_away_takes_the_connection_along_and_leaves_its_place(peer: Peer) -> None:
    peer.answers = lambda nth: None if nth == 1 else OK
    posts = made(per_address=1)
    first = asyncio.ensure_future(posts.post(peer.url, b"1", {}, timeout_s=HANGS_AFTER_S))
    while not peer.bodies:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    first.cancel()

    reply = await posts.post(peer.url, b"2", {}, timeout_s=HANGS_AFTER_S)
    await posts.close()

    assert first.cancelled()
    assert reply.body == b"ok"
    assert len(peer.lines) == 2


async def test_connection_that_was_idle_for_long_is_closed_and_not_used(peer: Peer) -> None:
    posts = made(idle_s=0.05)
    await posts.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)
    async with asyncio.timeout(HANGS_AFTER_S):
        while peer.open:  # noqa: ASYNC110
            await asyncio.sleep(0.005)

    await posts.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)
    await posts.close()

    assert len(peer.lines) == 2


async def test_connection_that_the_other_side_closed_while_idle_is_not_used(posts: PostClient, peer: Peer) -> None:
    await posts.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)
    peer.lines[0].close()
    await peer.lines[0].wait_closed()
    await asyncio.sleep(0.01)  # until our side has heard of it

    reply = await posts.post(peer.url, b"", {}, timeout_s=HANGS_AFTER_S)

    assert reply.status == 200
    assert len(peer.lines) == 2


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A key with a certificate for 127.0.0.1 that it has signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "peer")])
    now = datetime.datetime.now(datetime.UTC)
    made = (
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
        + made.public_bytes(serialization.Encoding.PEM)
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
    peer, posts = Peer(), made()
    await peer.listen(tls)
    url = peer.url.replace("http:", "https:")

    if is_known:
        assert (await posts.post(url, b"{}", {}, timeout_s=HANGS_AFTER_S)).body == b"ok"
    else:
        with pytest.raises(NotConnected, match="certificate"):
            await posts.post(url, b"{}", {}, timeout_s=HANGS_AFTER_S)
        assert peer.bodies == []

    await posts.close()
    await peer.close()
