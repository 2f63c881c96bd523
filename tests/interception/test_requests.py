"""What arrives for intercepted hosts and for others, seen from a client and from the sandbox."""

import asyncio
import contextlib
import hashlib
import ssl
from pathlib import Path
from typing import Final

import pytest
from cryptography import x509

from tests.interception.conftest import OpenInterception, RecordingSandbox
from tests.support.polling import HANGS_AFTER_S, poll_until
from waypost.interception.hosts import HOST_NAMES, HOSTS, SandboxSide
from waypost.interception.interception import Interception
from waypost.interception.listeners import MAX_CONNECTIONS

API: Final = "api.gupshup.io"
GRAPH: Final = "graph.facebook.com"
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def ask(streams: Streams, head: str, body: bytes = b"") -> bytes:
    """Send a request and return the status line and headers of the response; its body is read, and dropped."""
    reader, writer = streams
    writer.write(head.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
    await writer.drain()
    async with asyncio.timeout(HANGS_AFTER_S):
        response = await reader.readuntil(b"\r\n\r\n")
        lengths = [line for line in response.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        if lengths:
            await reader.readexactly(int(lengths[0].partition(b":")[2]))
    return response


@pytest.mark.parametrize("host", HOSTS, ids=lambda host: host.name)
async def test_each_host_reaches_its_side_of_the_sandbox(
    opened: OpenInterception, sandbox: RecordingSandbox, host: object
) -> None:
    row = next(one for one in HOSTS if one is host)
    streams = await opened.connect(row.name)

    response = await ask(streams, f"GET /a?b=1 HTTP/1.1\nHost: {row.name}")

    assert response.startswith(b"HTTP/1.1 200 ")
    (request,) = sandbox.requests
    assert (request.side, request.path) == (row.side, "/a?b=1")
    assert request.headers["host"] == sandbox.urls[row.side].removeprefix("http://")
    assert (request.headers["x-forwarded-host"], request.headers["x-forwarded-proto"]) == (row.name, "https")
    streams[1].close()


async def test_kept_connection_has_each_request_checked_and_counted(
    opened: OpenInterception, sandbox: RecordingSandbox
) -> None:
    streams = await opened.connect(API)
    chunked = b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: 1\r\n\r\n"

    await ask(streams, f"GET /1 HTTP/1.1\nHost: {API}")
    await ask(streams, f"POST /2 HTTP/1.1\nHost: {API}\nContent-Length: 4", b"abcd")
    await ask(streams, f"POST /3 HTTP/1.1\nHost: {API}:443\nTransfer-Encoding: chunked", chunked)
    last = await ask(streams, f"GET /4 HTTP/1.1\nHost: {GRAPH}")

    assert [(one.path, one.body_bytes) for one in sandbox.requests] == [("/1", 0), ("/2", 4), ("/3", 5)]
    assert opened.interception.requests == {API: 3}
    assert last.startswith(b"HTTP/1.1 421 ")
    assert await streams[0].read() == b""


@pytest.mark.parametrize("other", [GRAPH, "example.com", "127.0.0.1:8080"])
async def test_host_other_than_that_of_the_certificate_is_an_error(
    opened: OpenInterception, sandbox: RecordingSandbox, other: str
) -> None:
    streams = await opened.connect(API)

    response = await ask(streams, f"GET / HTTP/1.1\nHost: {other}")

    assert response.startswith(b"HTTP/1.1 421 ")
    assert sandbox.requests == []


@pytest.mark.parametrize("name", ["example.com", "gupshup.io", "evil.api.gupshup.io", "localhost"])
async def test_no_other_host_has_a_certificate(opened: OpenInterception, name: str) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await opened.connect(API, name)

    assert opened.interception.outcomes.blocked == {name: 1}


async def test_connection_without_a_name_has_no_certificate(opened: OpenInterception) -> None:
    context = opened.client_context()
    context.check_hostname = False
    reader, writer = await asyncio.open_connection("127.0.0.1", opened.proxy_port)
    writer.write(f"CONNECT {API}:443 HTTP/1.1\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")

    with pytest.raises((ssl.SSLError, ConnectionError)):
        await writer.start_tls(context)

    writer.close()


async def test_certificate_is_for_one_host_and_its_authority_for_those_of_the_table(opened: OpenInterception) -> None:
    streams = await opened.connect(GRAPH)
    served = x509.load_der_x509_certificate(streams[1].get_extra_info("ssl_object").getpeercert(binary_form=True))
    authority = x509.load_pem_x509_certificate(opened.authorities.read_bytes())
    streams[1].close()

    names = served.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    permitted = authority.extensions.get_extension_for_class(x509.NameConstraints)

    assert names.get_values_for_type(x509.DNSName) == [GRAPH]
    assert permitted.critical
    assert {name.value for name in permitted.value.permitted_subtrees or ()} == HOST_NAMES
    assert served.issuer == authority.subject


def test_keys_are_in_no_file_and_the_folder_is_deleted(opened: OpenInterception) -> None:
    files = [path for path in opened.authorities.parent.rglob("*") if path.is_file()]

    assert files
    assert not any(b"PRIVATE KEY" in path.read_bytes() for path in files)
    assert opened.authorities.parent.stat().st_mode & 0o077 == 0


async def test_folder_is_deleted_at_the_end(sandbox: RecordingSandbox) -> None:
    interception = Interception(sandbox.urls, blocks_others=False)
    await interception.open({})
    folder = Path(interception.proxy_variables()["SSL_CERT_FILE"]).parent
    assert folder.is_dir()

    await interception.close()

    assert not folder.exists()


async def test_large_bodies_pass_in_parts(opened: OpenInterception, sandbox: RecordingSandbox) -> None:
    """The sandbox has received most of an upload before its end is sent."""
    size, part = 48 * 1024 * 1024, bytes(1024 * 1024)
    reader, writer = await opened.connect(API)
    writer.write(f"POST /upload HTTP/1.1\r\nHost: {API}\r\nContent-Length: {size}\r\n\r\n".encode())
    for _ in range(size // len(part) - 1):
        writer.write(part)
        await writer.drain()

    async def received_before_the_end() -> int:
        return sandbox.received_bytes

    await poll_until(received_before_the_end, lambda count: count >= size // 2)
    writer.write(part)
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    await reader.readuntil(b"}")

    writer.write(f"GET /download/{size} HTTP/1.1\r\nHost: {API}\r\nConnection: close\r\n\r\n".encode())
    received = 0
    while data := await reader.read(1 << 20):
        received += len(data)

    assert received > size
    assert sandbox.requests[0].body_bytes == size
    writer.close()


async def test_thousand_connections_are_bounded_and_the_next_program_is_served(opened: OpenInterception) -> None:
    held: list[asyncio.StreamWriter] = []
    for _ in range(1000):
        _, writer = await asyncio.open_connection("127.0.0.1", opened.proxy_port)
        held.append(writer)

    async def turned_away() -> int:
        return opened.interception.outcomes.turned_away

    await poll_until(turned_away, lambda count: count >= 1000 - MAX_CONNECTIONS)
    closed = opened.interception.outcomes.turned_away
    for writer in held:
        writer.close()
    await asyncio.sleep(0.1)

    streams = await opened.connect(API)

    assert closed == 1000 - MAX_CONNECTIONS
    assert (await ask(streams, f"GET / HTTP/1.1\nHost: {API}")).startswith(b"HTTP/1.1 200 ")
    streams[1].close()


@pytest.mark.parametrize(
    ("request_text", "status"),
    [
        ("GET / HTTP/1.1\r\n\r\n", 400),  # a proxy is asked for a URL
        ("GET / HTTP/2.0\r\n\r\n", 400),
        ("nonsense\r\n\r\n", 400),
        ("GET http://[x/ HTTP/1.1\r\n\r\n", 400),
        ("GET http://api.gupshup.io/ HTTP/1.1\r\nA : b\r\n\r\n", 400),
        ("POST http://api.gupshup.io/ HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("POST http://api.gupshup.io/ HTTP/1.1\r\nContent-Length: -1\r\n\r\n", 400),
        ("POST http://api.gupshup.io/ HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("POST http://api.gupshup.io/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400),
        (f"GET http://api.gupshup.io/ HTTP/1.1\r\nA: {'b' * 70_000}\r\n\r\n", 431),
        ("CONNECT api.gupshup.io:22 HTTP/1.1\r\n\r\n", 403),
        ("CONNECT :1 HTTP/1.1\r\n\r\n", 400),
        ("CONNECT api.gupshup.io:99999 HTTP/1.1\r\n\r\n", 400),
        ("CONNECT localhost:1 HTTP/1.1\r\n\r\n", 502),
        ("GET https://example.com/ HTTP/1.1\r\n\r\n", 501),
        ("GET http://api.gupshup.io/ HTTP/1.1\r\nHost: api.gupshup.io\r\n\r\n", 200),
        ("GET https://api.gupshup.io/ HTTP/1.1\r\nHost: api.gupshup.io\r\n\r\n", 200),
    ],
)
async def test_request_to_the_proxy_gets_its_status(opened: OpenInterception, request_text: str, status: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", opened.proxy_port)

    writer.write(request_text.encode())
    async with asyncio.timeout(HANGS_AFTER_S):
        response = await reader.read()

    assert response.startswith(f"HTTP/1.1 {status} ".encode()), response
    writer.close()


async def test_sandbox_that_has_ended_is_an_error(opened: OpenInterception, sandbox: RecordingSandbox) -> None:
    interception = Interception(dict.fromkeys(SandboxSide, "http://127.0.0.1:9"), blocks_others=False)
    await interception.open({})
    streams = await OpenInterception(interception, Path(interception.proxy_variables()["SSL_CERT_FILE"])).connect(API)

    response = await ask(streams, f"GET / HTTP/1.1\nHost: {API}")

    assert response.startswith(b"HTTP/1.1 502 ")
    await interception.close()


async def test_other_host_is_tunnelled_unread(opened: OpenInterception) -> None:
    """What is no HTTP and no TLS passes, too."""
    received: list[bytes] = []

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        received.append(await reader.readexactly(1 << 20))
        writer.write(hashlib.sha256(received[0]).digest())
        writer.close()

    server = await asyncio.start_server(echo, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    reader, writer = await asyncio.open_connection("127.0.0.1", opened.proxy_port)
    writer.write(f"CONNECT localhost:{port} HTTP/1.1\r\n\r\n".encode())
    await reader.readuntil(b"\r\n\r\n")
    sent = bytes(range(256)) * 4096

    writer.write(sent)

    assert await reader.read() == hashlib.sha256(sent).digest()
    writer.close()
    assert received == [sent]
    assert opened.interception.outcomes.passed == {"localhost": 1}
    server.close()


async def test_other_host_is_refused_and_named_if_it_is_to_be(sandbox: RecordingSandbox) -> None:
    interception = Interception(sandbox.urls, blocks_others=True)
    await interception.open({})
    for head in ("CONNECT example.com:443 HTTP/1.1", "GET http://example.com/ HTTP/1.1"):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(interception.proxy_url.rpartition(":")[2]))
        writer.write(f"{head}\r\n\r\n".encode())
        assert (await reader.read()).startswith(b"HTTP/1.1 403 ")
        writer.close()

    assert interception.outcomes.blocked == {"example.com": 2}
    await interception.close()


async def test_other_host_is_reached_by_the_proxy_of_the_environment(
    opened: OpenInterception, sandbox: RecordingSandbox
) -> None:
    """A network whose way out is a proxy stays usable: ours asks it."""
    chained = Interception(sandbox.urls, blocks_others=False)
    await chained.open({"HTTPS_PROXY": opened.interception.proxy_url, "NO_PROXY": "example.com"})
    reader, writer = await asyncio.open_connection("127.0.0.1", int(chained.proxy_url.rpartition(":")[2]))
    server = await asyncio.start_server(lambda _reader, one: one.close(), "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    writer.write(f"CONNECT localhost:{port} HTTP/1.1\r\n\r\n".encode())
    response = await reader.readuntil(b"\r\n\r\n")

    assert response.startswith(b"HTTP/1.1 200 ")
    assert opened.interception.outcomes.passed == {"localhost": 1}
    with contextlib.suppress(OSError):
        writer.close()
    server.close()
    await chained.close()


async def test_origin_of_a_page_of_the_host_is_the_sandboxs_own(
    opened: OpenInterception, sandbox: RecordingSandbox
) -> None:
    host = "www.facebook.com"
    streams = await opened.connect(host)

    await ask(streams, f"POST /dialog HTTP/1.1\nHost: {host}\nOrigin: https://{host}\nContent-Length: 0")
    await ask(streams, f"POST /dialog HTTP/1.1\nHost: {host}\nOrigin: https://shop.example\nContent-Length: 0")

    origins = [request.headers["origin"] for request in sandbox.requests]
    assert origins == [sandbox.urls[SandboxSide.SIMULATOR], "https://shop.example"]
    streams[1].close()
